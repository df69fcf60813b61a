"""One scoring point of one answer: what the fine-tuned judge of MLB learns and is asked (Section 3.6)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from medtasks_ext.judge.protocol import AXIS, Rubric
from medtasks_ext.rows.spec import Judging

if TYPE_CHECKING:
    from medtasks_ext.rows.row import Point

PROTOCOL, FIELD = "scoring_point", "met"
ROLE = "一名经验丰富的临床医生，负责裁定有争议的医学回答"


@lru_cache(maxsize=1)
def point_rubric() -> Rubric:
    """How a judge is asked about one point: the prompt of training and of use."""
    return Rubric(Judging(protocol=PROTOCOL, question="-", role=ROLE, axes={AXIS: "-"}, show_gold=False))


def shown_for_point(question: str, point: str, answer: str) -> dict[str, str]:
    """The texts that a judge is shown; `point` is the point's text."""
    return {"question": question.strip(), "point": point.strip(), "response": answer.strip()}


def shown_for_item(question: str, point: Point, answer: str) -> dict[str, str]:
    """The texts that a judge of weighted criteria is shown; the criterion has its weight before it."""
    item = f"[{point['weight']}] {point['text'].strip()}"
    return {"question": question.strip(), "item": item, "response": answer.strip()}
