"""Answers of a real model, drawn by a seed, and what the author took each to be: `drawn.yaml`.

SmolLM2-135M-Instruct, from Q4_1 weights, answered two bundled rows of each dataset of the four suites, in
three passes of `tools/real_answers.py`; 200 of these 786 answers were drawn with seed 1:
five of each kind in each suite, the rest at random. One author of the readers, and no second reader, wrote
down what each says before looking at what a reader makes of it; the commits are in that order. 154 of the
200 say nothing that answers the question, or several things.

First reading: 27 wrong, 15 unread of 200, 21 % (95 % interval 16 to 27 %, Wilson). By kind, answers wrong +
unread: `code_list` 5 of 5, `drug_list` 4 of 5, `entity_list` 4 of 6, `exact_letter` 10 of 23, `label` 3 of
27, `label_list` 2 of 8, `marked_letters` 5 of 11, `medcalc` 2 of 5, `medec` 2 of 5, `option_letter` 1 of
10, `relation_label` 1 of 6, `tuples` 3 of 15, others 0 of 74. 22 of the 27 found an answer in a reply that
has none. That is the estimate for a model that hardly follows its prompts, and none for others. Now 14 stay
misread; since the readers were mended on them, that is no estimate.

`answers.jsonl.gz` holds these 200 (of another making, whose ends were not kept), and one row of each dataset
of the four suites in six passes: three strategies, greedy and sampled, with 96, 160 and 64 tokens for an
answer. The rows are invented and the model's licence is Apache-2.0, so that its answers may stand here. No
score of them is a result. `readings.jsonl` has a line for each, in their order: its diff shows what a reader
changes. After a change that is meant, `python -m tests.answers.real` keeps the readings anew.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import yaml

from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Reader, Settings, build_task
from tests.conftest import outcomes

FOLDER = Path(__file__).parent
ANSWERS, READINGS = FOLDER / "answers.jsonl.gz", FOLDER / "readings.jsonl"
#: makings of answers: those of which some were drawn and read by a person, and the six passes
DRAWN, PASSES = "drawn", "passes"
#: of an answer that is not there, or not clear
NONE = "none"
_LONGEST = 100


class Kept(NamedTuple):
    """An answer."""

    made: str
    asked: str  # the pass: strategy and temperature
    task: str
    document: str  # key of its row
    finish: str  # `stop`, or `length` where the budget cut it; empty where nobody kept it
    response: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What no other answer has."""
        return self.made, self.asked, self.task, self.document

    @property
    def kind(self) -> str:
        """Of answers."""
        return str(registry().tasks[self.task][0].blocks["answer"]["kind"])

    def read(self) -> dict[str, Any]:
        """What is read today."""
        documents, reader = reader_of(self.task)
        return reader.read(documents[self.document], self.response)

    def reading(self) -> dict[str, Any]:
        """What is read today as it is kept: `-` for nothing, a hash in place of what is long."""
        read = self.read()
        return {"scored": _short(read["answer"]) if read["valid"] else "-"}

    def found(self) -> Any:
        """What the reader finds, as the author wrote such answers down."""
        answer, document = self.read()["answer"], reader_of(self.task)[0][self.document]
        if answer is None:
            return NONE
        if self.kind == "marked_letters":
            return "".join(sorted(ascii_uppercase[document["options"].index(text)] for text in answer))
        if self.kind == "medec":
            return f"{answer['sentence']} {answer['correction']}" if answer["flag"] else "CORRECT"
        if self.kind == "drug_list":
            return sorted({", ".join(pieces) for pieces in answer})
        return answer


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


def read_by_the_author() -> Iterator[tuple[Kept, Any]]:
    """The drawn answers, in their order, and what each says."""
    answers = {item.key: item for item in kept()}
    for item in yaml.safe_load((FOLDER / "drawn.yaml").read_text(encoding="utf-8")):
        yield answers[DRAWN, item["asked"], item["task"], item["document"]], item["said"]


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
    lines = "".join(json.dumps(item._asdict(), ensure_ascii=False) + "\n" for item in ordered)
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
