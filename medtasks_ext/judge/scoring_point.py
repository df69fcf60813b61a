"""One scoring point of one answer: what the fine-tuned judge of MLB learns and is asked (Section 3.6)."""

from __future__ import annotations

from functools import lru_cache

from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.rows.spec import Judging

PROTOCOL, AXIS, FIELD = "scoring_point", "decision", "met"
ROLE = "一名经验丰富的临床医生，负责裁定有争议的医学回答"


@lru_cache(maxsize=1)
def point_rubric() -> Rubric:
    """How a judge is asked about one point: the prompt of training and of use."""
    return Rubric(Judging(protocol=PROTOCOL, question="-", role=ROLE, axes={AXIS: "-"}, show_gold=False))


def shown_for_point(question: str, point: str, answer: str) -> dict[str, str]:
    """The texts that a judge is shown; `point` is the point's text."""
    return {"question": question.strip(), "point": point.strip(), "response": answer.strip()}
