"""Cases with scoring points, on each of which an expert decides: a queue for a physician."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pydantic import Field

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines
from medtasks_ext.seed import SEED
from medtasks_ext.strict import Strict, validated
from medtasks_lab.human.forms import Export, FormItem, clean, shuffled_forms
from medtasks_lab.human.kinds import Language, page_words


class QueuePoint(Strict):
    """One scoring point of a question."""

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    weight: float = Field(ge=0)


class QueueCase(Strict):
    """One line of a queue."""

    id: str = Field(min_length=1)
    question: str
    answer: str
    points: list[QueuePoint] = Field(min_length=1)


def read_queue(path: Path) -> list[QueueCase]:
    """The cases of a queue, one JSON object per line.

    Raises:
        MedtasksError: a line is no case, or an id occurs twice.
    """
    cases: dict[str, QueueCase] = {}
    for number, line in numbered_lines(path, remedy="name the JSONL file of the queue"):
        case = validated(
            partial(QueueCase.model_validate_json, line),
            "case",
            where=path,
            remedy="a case is {id, question, answer, points: [{id, text, weight}]}",
            before=f"line {number}: ",
            first=True,
        )
        points = [point.id for point in case.points]
        if case.id in cases or len(set(points)) < len(points):
            what = f"case {case.id}" if case.id in cases else f"a point of case {case.id}"
            raise MedtasksError(
                f"line {number}: {what} occurs twice", where=path, remedy="give each an id of its own"
            )
        cases[case.id] = case
    if not cases:
        raise MedtasksError("no cases in it", where=path, remedy="there is nothing to decide")
    return list(cases.values())


def points_export(path: Path, *, experts: int = 1, seed: int = SEED) -> Export:
    """A queue as forms: every expert sees all cases, in an order of their own.

    Raises:
        MedtasksError: the file is no queue.
    """
    cases = read_queue(path)
    language = _language(text for case in cases for text in (case.question, case.answer))
    return Export(
        kind="points",
        language=language,
        forms=shuffled_forms([_items(case, language) for case in cases], experts, seed),
        notices=["gated"],
        record={
            "seed": seed,
            "queue": str(path),
            "cases": [
                {"id": case.id, "points": [{"id": point.id, "weight": point.weight} for point in case.points]}
                for case in cases
            ],
        },
    )


def _items(case: QueueCase, language: Language) -> list[FormItem]:
    answer = clean(case.answer.strip()) or page_words()["no_answer"].of(language)
    return [
        FormItem(
            page=case.id,
            about={"case": case.id, "point": point.id},
            texts={"question": clean(case.question.strip()), "answer": answer, "point": clean(point.text)},
        )
        for point in case.points
    ]


def _language(texts: Iterable[str]) -> Language:
    """Chinese if most letters are Chinese characters."""
    letters = [character for text in texts for character in text if character.isalpha()]
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in letters)
    return "zh" if 2 * chinese > len(letters) else "en"
