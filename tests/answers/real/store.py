"""Answers of a real model as a store, and what the readers make of each of them today.

    python -m tests.answers.real          # after a change of readers that is meant: the kept readings anew
    python -m tests.answers.real OUT      # the answers of OUT anew, as `tools/real_answers.py` wrote them

`answers.jsonl.gz` holds what SmolLM2-135M-Instruct, from Q4_1 weights, wrote on bundled rows: the 200 answers
that a person read (`drawn.yaml`; of another making, whose ends were not kept), and one row of each dataset of
the four suites in six passes: three strategies, greedy and sampled, with 96, 160 and 64 tokens for an answer.
The rows are invented and the model's licence is Apache-2.0, so that its answers may stand here. No score of
them is a result. `readings.jsonl` has a line for each, in their order: its diff shows what a reader changes.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Reader, Settings, build_task
from tests.conftest import outcomes

FOLDER = Path(__file__).parent
ANSWERS, READINGS = FOLDER / "answers.jsonl.gz", FOLDER / "readings.jsonl"
#: makings of answers: those of which some were drawn and read by a person, and the six passes
DRAWN, PASSES = "drawn", "passes"
_LONGEST = 100


@dataclass(frozen=True)
class Kept:
    """An answer.

    Attributes:
        made: in which making.
        asked: the pass: strategy and temperature.
        task: that was asked.
        document: key of its row.
        finish: why it ended: `stop`, or `length` where the budget cut it; empty where nobody kept it.
        response: what the model wrote.
    """

    made: str
    asked: str
    task: str
    document: str
    finish: str
    response: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What no other answer has."""
        return self.made, self.asked, self.task, self.document

    @property
    def kind(self) -> str:
        """Of answers."""
        return str(registry().tasks[self.task][0].blocks["answer"]["kind"])

    @property
    def suite(self) -> str:
        """Of the dataset."""
        return registry().tasks[self.task][0].metadata.suite

    @property
    def language(self) -> str:
        """Of the dataset."""
        return registry().tasks[self.task][0].metadata.language

    def reading(self) -> dict[str, Any]:
        """What is read today: `-` for nothing, a hash in place of what is long."""
        documents, reader = reader_of(self.task)
        read = reader.read(documents[self.document], self.response)
        return {"scored": _short(read["answer"]) if read["valid"] else "-"}


def _short(answer: Any) -> Any:
    if answer is None:
        return "-"
    text = json.dumps(answer, ensure_ascii=False, sort_keys=True)
    return json.loads(text) if len(text) <= _LONGEST else f"sha256:{sha256(text.encode()).hexdigest()[:16]}"


@lru_cache(maxsize=64)
def reader_of(task: str) -> tuple[dict[str, Any], Reader]:
    """The bundled rows of a task by key, and what reads answers to it."""
    built = build_task(registry(), task, Settings(data="sample", prompts="own"))
    return {document_key(item): item for item in built.eval_docs}, Reader(built)


@lru_cache(maxsize=1)
def kept() -> tuple[Kept, ...]:
    """All answers, in order of task."""
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as file:
        return tuple(Kept(**json.loads(line)) for line in file)


def readings() -> list[dict[str, Any]]:
    """The reading of each answer as it was kept."""
    return [json.loads(line) for line in READINGS.read_text(encoding="utf-8").splitlines()]


def of_runs(out: Path) -> Iterator[Kept]:
    """The answers of all passes that `tools/real_answers.py` wrote."""
    for run in sorted((out / "runs").iterdir()):
        for row in outcomes(run):
            yield Kept(PASSES, run.name, row["task"], row["document"], row.get("finish", ""), row["text"])


def write_answers(answers: Iterable[Kept]) -> None:
    """Keep answers, the same bytes for the same answers."""
    ordered = sorted(answers, key=lambda item: (item.task, item.document, item.made, item.asked))
    lines = "".join(json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in ordered)
    held = io.BytesIO()
    with gzip.GzipFile(fileobj=held, mode="wb", compresslevel=9, mtime=0, filename="") as file:
        file.write(lines.encode())
    ANSWERS.write_bytes(held.getvalue())
    kept.cache_clear()


def write_readings() -> None:
    """Read all answers, and keep what is found."""
    lines = [
        json.dumps({"task": item.task, "asked": item.asked, **item.reading()}, ensure_ascii=False)
        for item in kept()
    ]
    READINGS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
