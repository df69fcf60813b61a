"""Whether rows that can be read are right: gold against its text, codes, options, characters, language.

`data check` and `dev validate` use the same checks. Each is inherited from the answer kind, or declared in a
word under `rows` of the task file (`mentions`, `codes`, `n_options`, `holds`). A check that one row cannot
decide judges the set.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any

from jinja2 import meta

from medtasks_ext.answers import answer_format
from medtasks_ext.data.texts import Columns, Fault
from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.registry.lengths import count_words, published_lengths
from medtasks_ext.registry.new import PLACEHOLDER
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.codes import CODE_SYSTEMS, begins_as_none
from medtasks_ext.rows.expressions import Expression, parsed
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.spec import dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import ReadRow, Row

_FEWEST = 5  # rows by which a set is judged
_NOTHING = frozenset({"none", "notmentioned", "无", "null", "na", "n/a", "-", ""})
#: A line that says the gold answer.
_SAID = re.compile(r"^\W*(?:label|gold|target|answer|output|solution)\s*[:=]\s*", re.IGNORECASE)


class ContentCheck:
    """Looks at the test rows of a dataset, one by one, and then says what is wrong with them.

    Args:
        dataset: whose rows they are.
        right: rows with which the characters of columns are compared; by default the bundled ones, with
            which lengths are, too.
    """

    def __init__(self, dataset: Dataset, right: list[Row] | None = None) -> None:
        self.dataset = dataset
        spec = dataset_spec(dataset)
        self.source, self.judged = spec.rows, spec.judge is not None
        self.form = answer_format(spec.answer, where=dataset.file)
        authors = authors_of(dataset, spec.rows)
        schemas = [*spec.rows.schemas, *([authors.schema] if authors else [])]
        self.names = {name for item in schemas for name in (*item.columns, *item.optional)} - {"id"}
        known = _bundled(dataset) if right is None else right
        self.columns = Columns(dataset.metadata.language, known, lengths=right is None)
        self.holds = [
            (Expression(text, dataset.file), meta.find_undeclared_variables(parsed(f"{{{{ {text} }}}}")))
            for text in spec.rows.holds
        ]
        listed = [*spec.answer.get("letters", ()), *spec.answer.get("labels", ())]
        self.labels = [str(label) for label in listed]
        self.closed = bool(listed)
        self.n = 0
        self.n_words = 0
        self.golds: Counter[str] = Counter()
        self.inputs: Counter[int] = Counter()
        self.asked: dict[int, int] = {}  # hash of what is asked -> hash of the gold answer
        self.repeated: list[str] = []
        self.contradictory: list[str] = []
        self.n_mentions = self.n_found = 0
        self.rows: dict[str, list[str]] = defaultdict(list)  # what is wrong -> rows
        self.remedies: dict[str, str] = {}
        self.n_options: Counter[str] = Counter()
        self.notes: list[str] = []  # what is no fault, but worth knowing
        self.where = ""

    # ------------------------------------------------------------------ row by row

    def look(self, row: ReadRow, document: Document) -> None:
        """See one test row and what is asked about it."""
        place, self.where = row.place, row.where
        self.n += 1
        fields = row.fields
        cells = [(name, fields[name]) for name in self.names if name in fields]
        self.columns.look(cells, place, document["prompt"])
        if self.n <= 2_000:
            self.n_words += count_words(document.input)
            self.inputs[hash(document.input)] += 1
        asked = hash((document["system"], document["prompt"], str(document.get("before", ""))))
        gold = document["gold"]
        if not self.judged:
            self._repeat(asked, hash(gold) if isinstance(gold, str) else hash(_written(gold)), place)
        for expression, names in self.holds:
            if names <= fields.keys() and expression.of_row_or_none(fields) is False:
                self._note(f"does not satisfy: {expression.text}", "gold and its row must fit", place)
        if gold is not None:
            self._gold(document, gold, place)
        if "options" in document:
            self._options(document, place)

    def _repeat(self, asked: int, gold: int, place: str) -> None:
        if asked not in self.asked:
            self.asked[asked] = gold
        elif self.asked[asked] == gold:
            self.repeated.append(place)
        else:
            self.contradictory.append(place)

    def _note(self, what: str, remedy: str, place: str) -> None:
        self.remedies[what] = remedy
        self.rows[what].append(place)

    def _gold(self, document: Document, gold: Any, place: str) -> None:
        target = document["target"]
        if len(self.golds) < 1_000:
            self.golds[gold if isinstance(gold, str) else _written(gold)] += 1
        if gold in ([], {}, "") and not self.judged:
            self._note("has an empty gold answer", "fill in the gold answers", place)
        mentions = self.form.mentions(gold)
        if mentions:
            text = _plain(document.input)
            held = [item for item in map(_plain, mentions) if item not in _NOTHING]
            absent = sum(item not in text for item in held)
            self.n_mentions += len(held)
            self.n_found += len(held) - absent
            if absent:
                self._note(_ABSENT, "gold answers and texts are not of the same rows, or were changed", place)
        for name, code in self._codes(target):
            if not CODE_SYSTEMS[name].fullmatch(code):
                self._note(
                    f"has a gold code that is not of the form of {name}",
                    "export codes as text, whole and unchanged",
                    place,
                )
                break
            if begins_as_none(name, code):
                self._note(
                    _UNKNOWN_CODE.format(name), "export the codes again, each beside its own row", place
                )
                break
        if self.closed and _says(document.input, target):
            self._note("says the gold answer in its input", "take the line out of the text", place)

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
        options = [" ".join(str(option).split()) for option in document["options"]]
        if len({option.casefold() for option in options}) < len(options):
            self._note("has the same option twice", "give each option its own text", place)
        self.n_options[str(len(options))] += 1
        if (wanted := self.source.n_options) and len(options) != wanted:
            self._note(f"has not the {wanted} options of its source", "export all options", place)
        text = " ".join(document.input.split())
        if len(options) > 2 and all(
            option[:2].casefold() in (f"{letter}.", f"{letter})", f"{letter}:", f"({letter}")
            for letter, option in zip("abcdefghij", options, strict=False)
        ):
            self._note("has options that begin with their letters", "leave the letters out", place)
        elif len(options) > 2 and all(text.count(option) > 1 and len(option) > 3 for option in options):
            self._note("has its options in the question already", "leave them out of the question", place)

    # ------------------------------------------------------------------ the set

    def faults(self, *, large: bool = False) -> list[MedtasksError]:
        """What is wrong with the rows that were seen; `large`: they fill the memory."""
        found: list[MedtasksError] = []
        for fault in (*self.columns.faults(large=large), *self._of_rows(), *self._of_set()):
            found += errors_of(fault, self.where)
        self.asked.clear()  # large files are not in memory twice
        return found

    def _of_rows(self) -> Iterator[Fault]:
        for what, rows in self.rows.items():
            share = len(rows) / self.n
            if what == _ABSENT and not self._too_few_mentions():
                continue
            if self.n < 3 or share <= _SHARES.get(what, _ODD):
                self.notes.append(f"{len(rows):,} row{'s' if len(rows) > 1 else ''} {what}")
            else:
                yield Fault(what, self.remedies[what], rows)

    def _too_few_mentions(self) -> bool:
        """Whether fewer mentions stand in the inputs than the task says, with room for chance."""
        wanted = 1.0 if self.source.mentions is None else self.source.mentions
        chance = 3 * sqrt(wanted * (1 - wanted) / max(self.n_mentions, 1))
        return self.n_found < (wanted - max(0.05, chance)) * self.n_mentions

    def _of_set(self) -> Iterator[Fault]:
        n = sum(self.golds.values())
        if n >= _FEWEST and len(self.golds) == 1 and self._may_differ():
            yield Fault(
                "all gold answers are the same: any model that says so is right",
                "export the gold answers again",
                [],
            )
        most = max(self.inputs.values(), default=0)
        seen = self.inputs.total()
        if seen >= _FEWEST and most > 0.5 * seen and not self.source.runs:
            yield Fault(f"{most:,} of {seen:,} inputs are the same text", "export each row's own text", [])
        yield from self._repeats()
        yield from self._lengths()

    def _may_differ(self) -> bool:
        return len(self.labels) != 1

    def _repeats(self) -> Iterator[Fault]:
        if len(self.contradictory) > 0.01 * self.n:
            yield Fault(
                "asks what an earlier row asks, with another gold answer",
                "decide which one is right",
                self.contradictory,
            )
        if len(self.repeated) > max(2, 0.3 * self.n):
            yield Fault("is an earlier row again", "take the repeated rows out", self.repeated)

    def _lengths(self) -> Iterator[Fault]:
        """Inputs that are much shorter than the published ones."""
        published = published_lengths().get(self.dataset.id)
        if published is None or published.unit != "words" or self.n < _FEWEST:
            return
        mean = self.n_words / min(self.n, 2_000)
        if mean < 0.1 * published.input:
            yield Fault(
                f"inputs have {mean:,.0f} words on average, the suite's own {published.input:,.0f}",
                "export the whole texts",
                [],
            )


def errors_of(fault: Fault, where: str) -> list[MedtasksError]:
    """A fault as an error for each of its rows, or one of the set.

    Args:
        fault: what is wrong.
        where: the file.
    """
    cause, remedy, rows, column = fault
    if not rows:
        return [MedtasksError(cause, where=where, remedy=remedy)]
    return [
        RowError(
            f"{row}, {cause}" if cause.startswith("column ") else f"{row} {cause}",
            row=row,
            column=column,
            where=where,
            remedy=remedy,
            cause=cause,
        )
        for row in rows
    ]


_ABSENT = "has gold mentions that do not stand in its text"
_UNKNOWN_CODE = "has a gold code that begins as no code of {} does"
#: One row in so many may be odd: the public files have such, which nobody can mend.
_ODD = 0.005
#: What is a fault where more rows have it.
_SHARES = {
    # nations have categories of their own
    **{_UNKNOWN_CODE.format(name): 0.05 for name in CODE_SYSTEMS},
    "has an empty gold answer": 0.9,
    "says the gold answer in its input": 0.3,
    "has options that begin with their letters": 0.5,
    "has its options in the question already": 0.5,
}


#: Marks that answer formats fold.
_MARKS = str.maketrans("‘’“”–—", "''\"\"--")


def _plain(text: str) -> str:
    """A text without blanks, in small letters, in one width."""
    return "".join(unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold().split())


def _written(gold: Any) -> str:
    return json.dumps(gold, sort_keys=True, default=str)


def _says(text: str, target: str) -> bool:
    """Whether a line of a text is the gold answer behind a word such as `label`."""
    gold = target.strip().casefold()
    if gold not in text.casefold():
        return False
    for line in text.splitlines():
        if (match := _SAID.match(line)) and line[match.end() :].strip().rstrip(".;").casefold() == gold:
            return True
    return False


def _bundled(dataset: Dataset) -> list[Row]:
    """The sample rows that somebody has written: placeholders say nothing of what is right."""
    rows = read_rows(dataset.sample_file) if dataset.sample_file.is_file() else []
    return [row for row in rows if PLACEHOLDER not in _written(row)]
