"""Hashes of BRIDGE's own message lists for the sample rows, made by its authors' code at commit 8380300.

    python benchmarks/official/bridge_messages.py CHECKOUT tasks/bridge > tasks/bridge/official.json

CHECKOUT is https://github.com/YLab-Open/BRIDGE at 838030090a937d6ee3caca51df0decef5c7853c6. The sample rows
carry no official instruction, so each gets an invented one, and for reasoning the authors' sentence in it,
as the proof does (`medtasks_ext/runner/proof.py`). Its modules import with what they do not need here
stubbed. Only hashes are written, and the
budget of `BRIDGE.yaml`.

With names of datasets behind, the hashes of the plain texts that Meditron and Me-LLaMA get are written, for
`tests/runner/layouts.json`:

    python benchmarks/official/bridge_messages.py CHECKOUT tasks/bridge mie mednli
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import types
from pathlib import Path

import yaml

BEFORE, AFTER = "Read the text.\n", "answer: text"
SHOTS = 5


def official(checkout):
    """The authors' modules `dataset/config.py` and `dataset/process.py`."""
    package = types.ModuleType("dataset")
    package.__path__ = [str(checkout / "dataset")]
    sys.modules["dataset"] = package
    for name, content in {"util": {}, "util.preprocess": {"process_punc_to_en": str}}.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(content)
    loaded = []
    for name in ("config", "process"):
        spec = importlib.util.spec_from_file_location(f"dataset.{name}", checkout / "dataset" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"dataset.{name}"] = module
        spec.loader.exec_module(module)
        loaded.append(module)
    return loaded


def digest(messages):
    """The hash of a message list, its first 16 digits."""
    return hashlib.sha256(json.dumps(messages, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


def of_task(rows, config, process):
    """Hashes by strategy; without gold rows are not asked, as officially."""
    plain = BEFORE + AFTER
    direct = BEFORE + config.get_tempalte_direct()[0] + "\n" + AFTER
    test = [row for row in rows if row["_split"] == "test" and row["output"].strip()]
    examples = [row for row in rows if row["_split"] == "fewshot"][:SHOTS]
    ways = {
        "zero_shot": (plain, [], process.format_message),
        "cot": (config.transform_instruction_to_cot(direct), [], process.format_message),
        "five_shot": (plain, examples, process.format_message),
        "no_system": (plain, [], process.format_message_user_assistant),
    }
    return {
        way: [digest(make(instruction, row["input"], shots)[1]) for row in test]
        for way, (instruction, shots, make) in ways.items()
    }


class _Characters:
    """In place of a tokenizer."""

    def encode(self, text):
        return list(text)


def of_plain_text(rows, process):
    """Model -> strategy -> hash of the text of each row, nothing being cut."""
    test = [row for row in rows if row["_split"] == "test" and row["output"].strip()]
    examples = [row for row in rows if row["_split"] == "fewshot"][:SHOTS]
    makers = {"meditron-7b": process.format_chat_meditron, "MeLLaMA-13B-chat": process.format_chat_mellama}
    ways = {"zero_shot": [], "five_shot": examples}

    def hashed(model, row, shots):
        made = makers[model](model, _Characters(), "", BEFORE + AFTER, row["input"], 10**9, examples=shots)
        return hashlib.sha256(made[1].encode()).hexdigest()[:16]

    return {
        model: {way: [hashed(model, row, shots) for row in test] for way, shots in ways.items()}
        for model in makers
    }


def main():
    """Hashes of the message lists of all datasets, as JSON."""
    checkout, root = Path(sys.argv[1]), Path(sys.argv[2])
    config, process = official(checkout)
    if names := sys.argv[3:]:
        files = {name: (root / name / "sample.jsonl").read_text(encoding="utf-8") for name in names}
        texts = {
            name: of_plain_text([json.loads(line) for line in text.splitlines()], process)
            for name, text in files.items()
        }
        sys.stdout.write(json.dumps(texts, indent=1) + "\n")
        return
    longest = yaml.safe_load((checkout / "BRIDGE.yaml").read_text(encoding="utf-8"))["max_token_output"]
    found = {}
    for file in sorted(root.glob("*/sample.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        lists = of_task(rows, config, process)
        found[file.parent.name] = {"messages": lists, "max_tokens": longest, "stop": []}
    made_by = {"repository": "YLab-Open/BRIDGE", "commit": "838030090a937d6ee3caca51df0decef5c7853c6"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(proof)}" for name, proof in found.items())
    sys.stdout.write(f'{{"made_by": {json.dumps(made_by)},\n "tasks": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
