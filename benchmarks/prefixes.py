"""What the prefix cache of the real vLLM engine keeps of long records, asked in turn and task by task.

Both strategies of MedHELM's CDI-QA, in its own words, on invented notes of some thousand tokens each. The
cache holds about five notes. Both runs ask the same; only the order differs. The share of
answers that are equal with both orders stands beside.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ROOT, Row, environment, words

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES, WORDS, HELD, TASK = 60, 900, 5, "medhelm_cdi_qa"
TASKS = f"{TASK},{TASK}_cot"
#: Tokens that vLLM keeps or drops together on the CPU.
BLOCK = 128
IN_TURN = "from medtasks_ext.cli.main import main; main()"
APART = f"import medtasks_ext.runner.asking as asking; asking.LONG = 10**9; {IN_TURN}"


def run(quick: bool) -> Iterator[Row]:
    name = f"{NOTES // (5 if quick else 1)} notes, both strategies: prompt tokens from the prefix cache"
    if find_spec("vllm") is None:
        yield Row(name, "not run: needs the engine environment", "")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tokens = _made(place, NOTES // (5 if quick else 1))
        found = {
            way: _asked(place, way, code, tokens) for way, code in (("turns", IN_TURN), ("apart", APART))
        }
    if any(item["words"] != "official" for item in found.values()):
        yield Row(name, "not run: HELM's words are not here (medtasks data fetch official)", "")
        return
    shares = {way: item["cached"] / item["input"] for way, item in found.items()}
    yield Row(
        name,
        f"{shares['turns']:.1%} in turn, {shares['apart']:.1%} task by task (of {found['turns']['input']:,})",
    )
    one, other = (item["answers"] for item in found.values())
    equal = sum(other[key] == text for key, text in one.items())
    yield Row("answers that are equal with both orders", f"{equal} of {len(one)} ({equal / len(one):.1%})")


def _made(folder: Path, notes: int) -> int:
    """Model and notes; returns the tokens of a note."""
    sys.path.insert(0, str(ROOT))
    from transformers import AutoTokenizer

    from tests.engine.tiny_model import make

    make(folder / "model")
    rng, rows = random.Random(0), []
    for i in range(notes):
        note = words(rng, WORDS)
        rows.append({"id": f"n{i}", "prompt": f"Was {words(rng, 3)} present?", "context": note, "label": "A"})
    shots = [{"id": f"s{i}", "prompt": "Was it?", "context": words(rng, 9), "label": "B"} for i in range(5)]
    data = folder / "data" / "medhelm" / "cdi_qa"
    data.mkdir(parents=True)
    for split, some in (("test", rows), ("fewshot", shots)):
        (data / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    return max(len(tokenizer(row["context"])["input_ids"]) for row in rows)


def _asked(folder: Path, way: str, code: str, tokens: int) -> dict[str, Any]:
    """What a run with the real engine stored: tokens, answers, and whose words it asked in."""
    blocks = HELD * -(-tokens // BLOCK)
    arguments = (
        f"pretrained={folder / 'model'},dtype=float32,enforce_eager=True,max_model_len={tokens + 1024}"
    )
    arguments += f",max_num_seqs=2,enable_prefix_caching=True,num_gpu_blocks_override={blocks}"
    command = ["run", "--model", "vllm", "--model_args", arguments, "--tasks", TASKS, "--apply_chat_template"]
    command += ["--gen_kwargs", "max_gen_toks=8", "--output_path", str(folder / way)]
    _medtasks(folder, code, *command)
    from medtasks_ext.run.store import rows_in
    from medtasks_ext.runs.folder import RunFolder

    results = RunFolder(folder / way).read_tasks()
    found: dict[str, Any] = {"input": 0, "cached": 0, "answers": {}}
    for task in TASKS.split(","):
        result = results[task]
        found["input"] += result["tokens"]["input"]
        found["cached"] += result["tokens"]["cached"]
        found["words"] = result["loaded"]["instruction"].partition(",")[0]
    found["answers"] = {row["key"]: row["text"] for row in rows_in(folder / way, "answer")}
    return found


def _medtasks(folder: Path, code: str, *arguments: str) -> str:
    more = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(MEDTASKS_DATA_DIR=str(folder / "data"), PYTHONPATH=str(ROOT), **more),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip()[-2000:])
    return done.stdout
