"""A kind of answers: a number from 0 to 10."""

import re
from typing import Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading
from medtasks_ext.metrics.common import scorer

_NUMBER = re.compile(r"\b(10|\d)\b")


class PainScale(AnswerFormat):
    """A number from 0 to 10, the last of the reply."""

    kind: Literal["pain_scale"]

    def read_gold(self, text, row):
        found = _NUMBER.fullmatch(text.strip())
        if not found:
            raise GoldError("is no number from 0 to 10")
        return int(found[0])

    def _read(self, text, row, *, cot):
        found = _NUMBER.findall(text)
        return Reading(int(found[-1]) if found else None, bool(found))


@scorer
def process_results(document, gold, answer):
    """1 less a tenth of the distance; 0 for no number."""
    near = 0.0 if answer is None else 1 - abs(answer - gold) / 10
    return {"score": near, "nearness": near}
