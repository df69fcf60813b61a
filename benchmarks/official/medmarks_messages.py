"""Hashes of Medmarks' prompts for the sample rows, made by the code of its environments itself.

It needs the authors' repository at the commit that `tasks/medmarks/suite.yaml` names, and an environment with
the two packages that it names:

    git clone https://github.com/MedARC-AI/Medmarks && git -C Medmarks checkout 154710b
    python -m venv /tmp/medmarks
    /tmp/medmarks/bin/pip install medarc-verifiers==0.1.0 verifiers==0.1.14
    /tmp/medmarks/bin/python benchmarks/official/medmarks_messages.py Medmarks/environments tasks/medmarks \\
        > tasks/medmarks/official.json

Environments get the sample rows in place of the hub's, no examples, and letters in the order of the file,
since this is how the questions are asked here. All else is theirs.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import sys
from pathlib import Path

import datasets
import verifiers

os.environ.setdefault("OPENAI_API_KEY", "none is asked")


def rows_of(folder):
    """The test rows of a dataset, without our own column."""
    lines = (folder / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        {key: value for key, value in row.items() if key != "_split"}
        for row in rows
        if row["_split"] == "test"
    ]


def as_hub(rows, split):
    """What `datasets.load_dataset` returns of rows, as each environment asks for it."""

    def load(*_, **named):
        table = datasets.Dataset.from_list(rows)
        if isinstance(asked := named.get("split"), str):
            return table if asked == split else table.select([])
        if asked:
            return [table if name == split else table.select([]) for name in asked]
        return datasets.DatasetDict(dict.fromkeys((split, "train", "dev"), table))

    return load


def messages(module, rows, part, **arguments):
    """The message list of each row."""
    environment = importlib.import_module(module)
    environment.load_dataset = as_hub(rows, part)
    loaded = environment.load_environment(**arguments)
    return [
        [{"role": turn["role"], "content": turn["content"]} for turn in row["prompt"]]
        for row in loaded.get_eval_dataset()
    ]


def lettered(rows):
    """Rows whose options are a list that was written as text, with an object of letters as on the hub.

    A letter without an option has an empty text, which the environment leaves out.
    """
    empty = dict.fromkeys("ABCDEFG", "")
    return [
        {**row, "options": {**empty, **dict(zip(empty, json.loads(row["options"]), strict=False))}}
        for row in rows
    ]


def of_m_arc(rows):
    """M-ARC reads its examples elsewhere; there are none."""
    return messages("m_arc", lettered(rows), "test", num_few_shot=0)


def of_mmlu_pro(rows):
    """The rows that are on health."""
    rows = [{"category": "health", "cot_content": "", **row} for row in rows]
    return messages("mmlu_pro_health", rows, "test", num_few_shot=0)


def of_longhealth(rows):
    """Letters stand in the order of the file: the environment draws another, and leaves some out."""
    environment, found = importlib.import_module("longhealth"), []
    for row in rows:
        options = {letter: row[f"answer_{letter.lower()}"] for letter in "ABCDE"}
        prompt = environment._build_longhealth_prompt([*row["texts"].values()], row["question"], options)
        system = environment.LONGHEALTH_SYSTEM_PROMPT
        found.append([{"role": "system", "content": system}, {"role": "user", "content": prompt}])
    return found


TASKS = {
    "careqa": lambda rows: messages("careqa", rows, "test", split="en"),
    "careqa_open": lambda rows: messages("careqa", rows, "test", split="open"),
    "longhealth": of_longhealth,
    "m_arc": of_m_arc,
    "medcasereasoning": lambda rows: messages("medcasereasoning", rows, "val"),
    "medconceptsqa": lambda rows: messages("medconceptsqa", rows, "test", num_few_shot=0),
    "metamedqa": lambda rows: messages("metamedqa", rows, "test"),
    "mmlu_pro_health": of_mmlu_pro,
    "pubhealthbench": lambda rows: messages("pubhealthbench.pubhealthbench", rows, "reviewed"),
    "pubhealthbench_open": lambda rows: messages(
        "pubhealthbench.pubhealthbench", rows, "reviewed", split="freeform"
    ),
    "supergpqa_medicine": lambda rows: messages("supergpqa_medicine", rows, "train"),
}


#: What judges are asked about, as in `medtasks_ext.runner.proof`.
ANSWER = "An answer with {QUESTION}, $RESPONSE, {{ GOLD_RESPONSE }} and a \\ in it.\n"


def asked_of_judges(module, rows, part, answered, **arguments):
    """The message list that a judge gets about an answer to each row."""
    environment = importlib.import_module(module)
    environment.load_dataset = as_hub(rows, part)
    loaded = environment.load_environment(**{"judge_api_key": "none", **arguments})
    seen = []

    async def answer(_, prompt, *__):
        seen.append([{"role": "user", "content": prompt}])
        return "yes"

    verifiers.JudgeRubric.judge = answer
    for row in loaded.get_eval_dataset():
        state = {"info": row["info"], "answer": row["answer"]}
        for reward in loaded.rubric._get_reward_funcs():
            if "completion" in reward.__code__.co_varnames[: reward.__code__.co_argcount]:
                kept = {key: row[key] for key in ("answer", "info")}
                asyncio.run(reward(completion=answered, state=state, **kept, **prompt_of(reward, row)))
    return seen


def prompt_of(reward, row):
    """The prompt, where a reward asks for it."""
    return {"prompt": row["prompt"]} if "prompt" in reward.__code__.co_varnames else {}


JURIES = {
    "careqa_open": lambda rows: asked_of_judges("careqa", rows, "test", ANSWER, split="open"),
    "medcasereasoning": lambda rows: asked_of_judges(
        "medcasereasoning", rows, "val", f"<answer>{ANSWER}</answer>"
    ),
    "pubhealthbench_open": lambda rows: asked_of_judges(
        "pubhealthbench.pubhealthbench", rows, "reviewed", ANSWER, split="freeform"
    ),
}


def digest(turns):
    """The hash of a message list, as `medtasks_ext.runner.proof` writes it."""
    text = json.dumps(turns, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main():
    """Hashes of the message lists of all datasets, as JSON."""
    environments, root = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path[:0] = [str(folder) for folder in environments.iterdir() if folder.is_dir()]
    found = {
        name: {"messages": {"zero_shot": [digest(turns) for turns in make(rows_of(root / name))]}}
        for name, make in TASKS.items()
    }
    for name, make in JURIES.items():
        found[name]["jury"] = [digest(turns) for turns in make(rows_of(root / name))]
    made_by = {"repository": "MedARC-AI/Medmarks", "commit": "154710b"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(proof)}" for name, proof in found.items())
    print(f'{{"made_by": {json.dumps(made_by)},\n "tasks": {{\n{lines}\n}}}}')


if __name__ == "__main__":
    main()
