"""Weighted criteria as batch files: 5,000 dialogues with 11 criteria each are asked about and read back.

The dialogues are random words, a few hundred each, as HealthBench's have. The answers are written by a
script, as a provider's batch service would write them. Each command has a process of its own.

5,000 dialogues of random words with 11 weighted criteria each: `medtasks judge --requests` writes 55,000
requests as batch files, a script writes a verdict for each, and `medtasks judge --responses` reads them
back. Seconds and memory of both commands, each in a process of its own, and whether every request has its
verdict.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes, words

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK, DIALOGUES, CRITERIA = "healthbench_full", 5000, 11
SECONDS, GIGABYTES = 60, 1.5
CODE = re.compile(r"<<<\w+ (\w{16})")


def run(quick: bool) -> Iterator[Row]:
    n = DIALOGUES // 10 if quick else DIALOGUES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder, n)
        written = fresh("rubrics", "write", folder=name, timeout=1800)
        replies = _answer(folder)
        read = fresh("rubrics", "read", folder=name, timeout=1800)
        seconds, memory = written["seconds"] + read["seconds"], max(written["peak"], read["peak"])
        what = f"{n:,} dialogues x {CRITERIA} criteria as batch files"
        parts = f"{written['seconds']:.1f} s written, {read['seconds']:.1f} s read"
        yield Row(what, f"{seconds:.1f} s ({parts})", f"under {SECONDS} s", seconds < SECONDS)
        yield Row("  memory", f"{memory:.2f} GB", f"under {GIGABYTES} GB", memory < GIGABYTES)
        total = n * CRITERIA
        kept = f"{written['requests']:,}, {replies:,}, {read['kept']:,}"
        yield Row(
            "  requests, answers, verdicts", kept, f"{total:,} each", kept == ", ".join([f"{total:,}"] * 3)
        )


def write(folder: str) -> dict[str, float]:
    """`medtasks judge --requests`."""
    began = time.perf_counter()
    _judge(folder, requests=f"{folder}/batch.jsonl")
    lines = sum(_lines(path) for path in Path(folder).glob("batch*.jsonl"))
    return {"seconds": time.perf_counter() - began, "peak": peak_gigabytes(), "requests": lines}


def read(folder: str) -> dict[str, float]:
    """`medtasks judge --responses`."""
    began = time.perf_counter()
    _judge(folder, responses=[str(path) for path in sorted(Path(folder).glob("answers*.jsonl"))])
    kept = _lines(Path(folder, "run", "judgements", f"{TASK}.jsonl"))
    return {"seconds": time.perf_counter() - began, "peak": peak_gigabytes(), "kept": kept}


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _judge(folder: str, **batch: Any) -> None:
    from medtasks_ext.cli import judge as command

    command.judge([f"{folder}/run"], jury_name=f"{folder}/jury.yaml", prompts="own", **batch)


def _answer(folder: Path) -> int:
    """Write a verdict for every request; how many."""
    n = 0
    for path in sorted(folder.glob("batch*.jsonl")):
        with path.open() as requests, (folder / path.name.replace("batch", "answers")).open("w") as answers:
            for line in requests:
                request = json.loads(line)
                text = request["body"]["messages"][-1]["content"]
                decision = {"explanation": "as told", "criteria_met": n % 3 > 0}
                verdict = json.dumps({"code": CODE.search(text)[1], "decision": decision})
                choice = {
                    "index": 0,
                    "message": {"role": "assistant", "content": verdict},
                    "finish_reason": "stop",
                }
                usage = {"prompt_tokens": 900, "completion_tokens": 60}
                body = {"id": f"r{n}", "choices": [choice], "usage": usage}
                answer = {
                    "custom_id": request["custom_id"],
                    "response": {"status_code": 200, "request_id": f"q{n}", "body": body},
                    "error": None,
                }
                answers.write(json.dumps(answer) + "\n")
                n += 1
    return n


def _make(folder: Path, n: int) -> None:
    """A run whose answers are random words."""
    from judge import manifest_of

    rng, run = random.Random(2), folder / "run"
    manifest_of(run, TASK, n)
    with (run / f"samples_{TASK}.jsonl").open("w") as file:
        for index in range(n):
            points = [
                {"id": f"p{number}", "text": words(rng, 20), "weight": rng.choice([-6, 3, 5, 8])}
                for number in range(1, CRITERIA)
            ]
            points.append(
                {"id": f"p{CRITERIA}", "text": words(rng, 20), "weight": 7, "tags": ["axis:accuracy"]}
            )
            document = {
                "id": f"d{index}",
                "question": f"user: {index} {words(rng, 150)}",
                "target": "",
                "points": points,
                "data": "local",
            }
            answer = {"answer": words(rng, 300), "valid": True}
            file.write(json.dumps({"doc_id": index, "doc": document, "filtered_resps": [answer]}) + "\n")
    judges = [{"name": "grader", "model": "grader", "base_url": "https://api.example.org/v1"}]
    (folder / "jury.yaml").write_text(json.dumps({"judges": judges}))
