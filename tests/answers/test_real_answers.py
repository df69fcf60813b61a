"""Answers of a real model are read as before, and 200 of them as an author read them, or not at all.

SmolLM2-135M-Instruct, from Q4_1 weights, answered bundled rows of each dataset of the four suites. One author
of the readers wrote down what each of 200 answers says (`drawn.yaml`, drawn by a seed) before looking at what
a reader makes of it; 154 of them answer nothing, or several things. The others (`passes`) are one row of each
dataset in six passes: three strategies, greedy and sampled. The rows are invented and the model's licence is
Apache-2.0, so that its answers may stand here.

`readings.jsonl` has a line for each: its diff shows what a reader changes. After a change that is meant,
`python -m tests.answers.test_real_answers` keeps the readings anew.
"""

import gzip
import json
from collections import Counter
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import pytest
import yaml

from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, reader_of

FOLDER = Path(__file__).parent / "real"
READINGS = FOLDER / "readings.jsonl"
#: of an answer that is not there, or not clear
NONE = "none"
#: place -> what the shared reader finds where the author read another thing, or nothing
STAY = {186: "it is announced in the form that is asked for, with the words of that form in its fields"}


class Kept(NamedTuple):
    """An answer."""

    made: str  # `drawn`, or `passes`
    asked: str  # strategy and temperature
    task: str
    document: str  # key of its row
    finish: str
    response: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.made, self.asked, self.task, self.document

    @property
    def block(self) -> Any:
        return registry().tasks[self.task][0].blocks["answer"]

    def read(self) -> dict[str, Any]:
        documents, read = documents_of(self.task)
        return read(documents[self.document], self.response)

    def scored(self) -> Any:
        """What is read today as it is kept: `-` for nothing, a hash in place of what is long."""
        read = self.read()
        if not read["valid"] or read["answer"] is None:
            return "-"
        text = json.dumps(read["answer"], ensure_ascii=False, sort_keys=True)
        return json.loads(text) if len(text) <= 100 else f"sha256:{sha256(text.encode()).hexdigest()[:16]}"

    def found(self) -> Any:
        """What the reader finds, as the author wrote such answers down."""
        answer, document = self.read()["answer"], documents_of(self.task)[0][self.document]
        if answer is None:
            return NONE
        if self.block["kind"] == "marked_letters":
            return "".join(sorted(ascii_uppercase[document["options"].index(text)] for text in answer))
        if self.block["kind"] == "medec":
            return f"{answer['sentence']} {answer['correction']}" if answer["flag"] else "CORRECT"
        if self.block["kind"] == "drug_list":
            return sorted({", ".join(pieces) for pieces in answer})
        return answer


@lru_cache(maxsize=64)
def documents_of(task: str) -> tuple[dict[str, Any], Any]:
    """The bundled rows of a task by key, and what reads answers to it."""
    built = build_task(registry(), task, Settings(data="sample", prompts="own"))
    return {document_key(item): item for item in built.eval_docs}, reader_of(built)


with gzip.open(FOLDER / "answers.jsonl.gz", "rt", encoding="utf-8") as file:
    ANSWERS = {item.key: item for item in (Kept(**json.loads(line)) for line in file)}
SAID = [
    (ANSWERS["drawn", item["asked"], item["task"], item["document"]], item["said"])
    for item in yaml.safe_load((FOLDER / "drawn.yaml").read_text(encoding="utf-8"))
]


def plain(said):
    return [item.casefold() for item in said] if isinstance(said, list) else str(said).casefold()


def test_each_is_read_as_the_author_read_it_or_not_at_all():
    n, faults = 0, []
    for place, (item, said) in enumerate(SAID):
        if item.read()["reader"] == "shared":  # its suite has released no other
            n, found = n + 1, item.found()
            if (found == NONE or plain(found) == plain(said)) != (place not in STAY):
                faults.append((place, item.task, found, said, item.response))
    assert n > 50 and not faults


def test_a_reader_that_changes_says_of_which_answers():
    before = [json.loads(line)["scored"] for line in READINGS.read_text(encoding="utf-8").splitlines()]
    pairs = [(item, then, item.scored()) for item, then in zip(ANSWERS.values(), before, strict=True)]
    changed = [(item, then, now) for item, then, now in pairs if then != now]
    first = [(item.key, then, now, item.response[:200]) for item, then, now in changed[:5]]
    assert not changed, (dict(Counter(item.block["kind"] for item, _, _ in changed)), first)


@pytest.mark.parametrize("item", yaml.safe_load((FOLDER / "changed.yaml").read_text(encoding="utf-8")))
def test_each_score_that_the_shared_reader_changed_has_its_reason(item):
    assert item["reason"] and ANSWERS[tuple(item["key"])].scored() != item["before"], item


if __name__ == "__main__":
    rows = [{"task": item.task, "asked": item.asked, "scored": item.scored()} for item in ANSWERS.values()]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    READINGS.write_text("".join(lines), encoding="utf-8")
