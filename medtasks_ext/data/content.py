"""Whether rows that can be read are right: gold answers against texts, codes and options.

`data check` and `dev validate` use the same checks. Each is inherited from the answer kind, or declared in a
word under `rows` of the task file (`mentions`, `codes`, `n_options`, `holds`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import meta

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.prompts.documents import Document
from medtasks_ext.registry.functions import function_named
from medtasks_ext.rows.expressions import Expression, parsed
from medtasks_ext.rows.spec import CODE_SYSTEMS, dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import ReadRow

_NOTHING = frozenset({"none", "notmentioned", "无", "null", "na", "n/a", "-", ""})
#: What a program writes where it has no value, and a spreadsheet where a formula failed.
_NO_VALUE = re.compile(r"nan|<na>|null|undefined|#(?:REF|N/A|VALUE|NAME|DIV/0|NULL|NUM)[!?]?", re.IGNORECASE)
_ABSENT = "has gold mentions that do not stand in its text"
#: One row in so many may be odd: the public files have such, which nobody can mend.
_ODD = 0.005
_FEWEST = 5  # rows by which a set is judged


class Fault(NamedTuple):
    cause: str  # in words that hold for all of them
    remedy: str
    rows: list[str]  # their places; none: the set as a whole


class ContentCheck:
    """Looks at the test rows of a dataset, one by one, and then says what is wrong with them."""

    def __init__(self, dataset: Dataset) -> None:
        spec = dataset_spec(dataset)
        self.source, self.judged = spec.rows, spec.judge is not None
        self.form = answer_format(spec.answer, where=dataset.file)
        self.holds = [
            (Expression(text, dataset.file), meta.find_undeclared_variables(parsed(f"{{{{ {text} }}}}")))
            for text in spec.rows.holds
        ]
        self.one_label = len([*spec.answer.get("letters", ()), *spec.answer.get("labels", ())]) == 1
        self.n = self.n_mentions = self.n_found = 0
        self.golds: Counter[str] = Counter()  # up to a thousand different ones
        self.asked: dict[int, int] = {}  # hash of what is asked -> hash of the gold answer
        self.repeated: list[str] = []
        self.contradictory: list[str] = []
        self.rows: dict[str, list[str]] = defaultdict(list)  # what is wrong -> rows
        self.remedies: dict[str, str] = {}
        self.notes: list[str] = []  # what is no fault, but worth knowing
        self.where = ""

    def look(self, row: ReadRow, document: Document) -> None:
        self.n, self.where = self.n + 1, row.where
        place, gold = row.place, document["gold"]
        if not self.judged:
            self._repeat(
                hash((document["system"], document["prompt"], str(document.get("before", "")))), gold, place
            )
        for expression, names in self.holds:
            if names <= row.fields.keys() and expression.of_row_or_none(row.fields) is False:
                self._note(f"does not satisfy: {expression.text}", "gold and its row must fit", place)
        if gold is not None:
            self._gold(document, gold, place)
        if "options" in document:
            self._options(document, place)

    def _note(self, what: str, remedy: str, place: str) -> None:
        self.remedies[what] = remedy
        self.rows[what].append(place)

    def _repeat(self, asked: int, gold: Any, place: str) -> None:
        answer = hash(_written(gold))
        if asked not in self.asked:
            self.asked[asked] = answer
        else:
            (self.repeated if self.asked[asked] == answer else self.contradictory).append(place)

    def _gold(self, document: Document, gold: Any, place: str) -> None:
        target = document["target"]
        if len(self.golds) < 1_000:
            self.golds[_written(gold)] += 1
        if _NO_VALUE.fullmatch(target.strip()) and not self.holds:
            self._note("has a gold answer that stands for no value", "fill in the gold answers", place)
        if mentions := self.form.mentions(gold):
            text = self.form.looked_for(document.input)
            held = [item for item in map(self.form.looked_for, mentions) if item not in _NOTHING]
            absent = sum(item not in text for item in held)
            self.n_mentions += len(held)
            self.n_found += len(held) - absent
            if absent:
                self._note(_ABSENT, "gold answers and texts are not of the same rows, or were changed", place)
        for name, code in self._codes(target):
            if not CODE_SYSTEMS[name].fullmatch(code):
                what = f"has a gold code that is not of the form of {name}"
                self._note(what, "export codes as text, whole and unchanged", place)
                break

    def _codes(self, target: str) -> Iterator[tuple[str, str]]:
        """(system, code) of each code of a gold answer."""
        declared = self.source.codes
        if isinstance(declared, str):
            given = target.rpartition(": ")[2]
            yield from ((declared, code) for code in re.split(r"[,;\s]+", given) if code)
        elif declared:
            for field, system in declared.items():
                found = re.findall(rf"(?:^|, ){re.escape(field)}: ([^;,\n]*)", target, re.MULTILINE)
                yield from ((system, code.strip()) for code in found)

    def _options(self, document: Document, place: str) -> None:
        options = [" ".join(str(option).split()).casefold() for option in document["options"]]
        if len(set(options)) < len(options):
            self._note("has the same option twice", "give each option its own text", place)
        if (wanted := self.source.n_options) and len(options) != wanted:
            self._note(f"has not the {wanted} options of its source", "export all options", place)

    # ------------------------------------------------------------------ the set

    def faults(self) -> list[MedtasksError]:
        found = [
            error for fault in (*self._of_rows(), *self._of_set()) for error in errors_of(fault, self.where)
        ]
        self.asked.clear()  # large files are not in memory twice
        return found

    def _of_rows(self) -> Iterator[Fault]:
        for what, rows in self.rows.items():
            if what == _ABSENT and not self._too_few_mentions():
                continue
            if self.n < 3 or len(rows) / self.n <= _ODD:
                self.notes.append(f"{len(rows):,} row{'s' if len(rows) > 1 else ''} {what}")
            else:
                yield Fault(what, self.remedies[what], rows)

    def _too_few_mentions(self) -> bool:
        """Whether fewer mentions stand in the inputs than the task says, with room for chance."""
        wanted = 1.0 if self.source.mentions is None else self.source.mentions
        chance = 3 * sqrt(wanted * (1 - wanted) / max(self.n_mentions, 1))
        return self.n_found < (wanted - max(0.05, chance)) * self.n_mentions

    def _of_set(self) -> Iterator[Fault]:
        if self.golds.total() >= _FEWEST and len(self.golds) == 1 and not self.one_label:
            what = "all gold answers are the same: any model that says so is right"
            yield Fault(what, "export the gold answers again", [])
        if len(self.contradictory) > 0.01 * self.n:
            what = "asks what an earlier row asks, with another gold answer"
            yield Fault(what, "decide which one is right", self.contradictory)
        if len(self.repeated) > max(2, 0.3 * self.n):
            yield Fault("is an earlier row again", "take the repeated rows out", self.repeated)


def errors_of(fault: Fault, where: str) -> list[MedtasksError]:
    """A fault as an error for each of its rows, or one of the set."""
    cause, remedy, rows = fault
    if not rows:
        return [MedtasksError(cause, where=where, remedy=remedy)]
    return [RowError(f"{row} {cause}", row=row, where=where, remedy=remedy, cause=cause) for row in rows]


def _written(gold: Any) -> str:
    return gold if isinstance(gold, str) else json.dumps(gold, sort_keys=True, default=str)


TOLERANCE = 1e-9


def oracle_of(dataset: Dataset, golds: Sequence[Document]) -> tuple[float, float | None, int] | None:
    """What gold answers score, what they should (None: anything), and how many score less; None: of judges.

    What they should is what the task file says: the suite's own reading may lose some.
    """
    aggregations = {item["metric"]: item["aggregation"] for item in dataset.metric_list}
    if "score" not in aggregations or not golds or "judge" in dataset.blocks:
        return None
    answers, process = ParseAnswer(dataset.blocks["answer"]), _function(dataset.process_results)

    scores = [
        process(document, answers.apply([[document["target"]]], [document])).get("score")
        for document in golds
    ]
    if any(item is None for item in scores):
        return None
    score, highest = _aggregate(aggregations["score"], scores), _highest(dataset, golds)
    if highest is None or math.isclose(score, highest, abs_tol=TOLERANCE):
        return score, highest, 0
    ways = [_highest(dataset, [document]) or 0.0 for document in golds]
    alone = [_aggregate(aggregations["score"], [one]) for one in scores]
    return score, highest, sum(one < most - TOLERANCE for one, most in zip(alone, ways, strict=True))


def highest_possible(dataset: Dataset, documents: Sequence[Document]) -> float | None:
    """What gold scores by the suite's own reading; None where nothing is lost, or without gold."""
    facts = dataset.metadata
    if facts.oracle_max in (1.0, "unbounded") and not facts.gold_loss:
        return None
    oracle = oracle_of(dataset, [item for item in documents if item["gold"] is not None])
    return oracle[0] if oracle and oracle[0] < 1 - TOLERANCE else None


def _aggregate(aggregation: Any, scores: Sequence[Any]) -> float:
    return sum(scores) / len(scores) if aggregation == "mean" else float(_function(aggregation)(scores))


def _highest(dataset: Dataset, golds: Sequence[Document]) -> float | None:
    declared = dataset.metadata.oracle_max
    if declared == "unbounded":
        return None
    if declared == "per_document":
        layout = answer_format(dataset.blocks["answer"], where=dataset.file)
        return float(sum(layout.ceiling(item["gold"]) for item in golds) / len(golds))
    return float(declared)


def _function(value: Any) -> Any:
    return function_named(value) if isinstance(value, str) else value
