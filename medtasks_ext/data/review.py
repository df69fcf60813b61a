"""A task under review: its sample rows are changed, and what follows in prompts and gold is looked at.

A column's cells are handed on from row to row. What changes then, says what the column is: the input, the
gold answer, both or nothing. No model is asked.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinja2 import meta

from medtasks_ext.prompts.load import check_loaded_rows
from medtasks_ext.rows.expressions import parsed
from medtasks_ext.rows.sources import load_rows
from medtasks_ext.rows.spec import dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Row, Rows

#: What is put at the end of a text, to see whether the prompt has all of it.
_MARK = "qzxjv"
_PROSE = 6  # words of a text that is read as a whole
_FEWEST = 3  # rows by which a column is judged, and levels by which a scale is
#: a scale that is sorted as its words are
_SORTED_SCALE = {"absent", "mild", "moderate", "severe"}
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class _Seen:
    """What a document asks and holds for right."""

    asked: str
    gold: str
    target: str
    document: Document


@dataclass(frozen=True)
class _Effect:
    """What a column does, by rows in which it was changed."""

    n: int  # rows whose cell became another and that could still be read
    prompts: int  # of these, rows whose prompt changed
    golds: int  # rows whose gold answer changed


class Review:
    """Looks at the sample rows of a dataset.

    Args:
        dataset: whose files can be read and whose sample rows have no fault.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.spec = dataset_spec(dataset)
        self.rows: Rows = load_rows(dataset, self.spec.rows, "sample")

    def problems(self) -> Iterator[str]:
        """What is wrong, each with what to do."""
        yield from self._rows_count()
        yield from self._labels_differ()
        yield from self._levels_are_ordered()
        yield from self._gold_is_hidden()
        yield from self._columns_are_shown()
        yield from self._options_are_shown()
        yield from self._numbers_follow()
        yield from self._rows_stand_alone()
        yield from self._rows_are_different()
        yield from self._shots_are_other_rows()

    # ------------------------------------------------------------------ changing rows

    def _seen(self, test: Sequence[Row]) -> dict[str, _Seen]:
        """Row -> what is asked of it first; rows that cannot be read are left out."""
        by_row: dict[str, _Seen] = {}
        for document in check_loaded_rows(self.dataset, replace(self.rows, test=list(test))).test:
            asked = "\n".join((document["system"], str(document.get("before", "")), document["prompt"]))
            gold = json.dumps([document["gold"], document["target"]], sort_keys=True, default=str)
            by_row.setdefault(document.row, _Seen(asked, gold, document["target"], document))
        return by_row

    @cached_property
    def _as_given(self) -> dict[str, _Seen]:
        return self._seen(self.rows.test)

    @cached_property
    def _columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows.test for name in row))

    @cached_property
    def _effects(self) -> dict[str, _Effect]:
        """Column -> what follows where its cells are those of other rows."""
        return {name: self._effect(name) for name in self._columns}

    def _effect(self, column: str) -> _Effect:
        test = self.rows.test
        n = prompts = golds = 0
        for step in range(1, min(len(test), 4)):
            moved = [test[(place + step) % len(test)].get(column) for place in range(len(test))]
            changed = [
                {**row, column: copy.deepcopy(cell)} if column in row and cell is not None else row
                for row, cell in zip(test, moved, strict=True)
            ]
            others = {
                f"test row {place}"
                for place, (row, new) in enumerate(zip(test, changed, strict=True), start=1)
                if row.get(column) != new.get(column)
            }
            for place, now in self._seen(changed).items() if others else ():
                before = self._as_given.get(place)
                if before is None or place.partition(",")[0] not in others:
                    continue
                n += 1
                prompts += now.asked != before.asked
                golds += now.gold != before.gold
            if n >= _FEWEST and golds:
                break
        return _Effect(n, prompts, golds)

    # ------------------------------------------------------------------ the gold answer

    def _labels_differ(self) -> Iterator[str]:
        """Labels are told apart by more than small and capital letters, marks and blanks."""
        for key in ("labels", "letters"):
            known: dict[str, str] = {}
            for label in map(str, self.spec.answer.get(key) or ()):
                first = known.setdefault(_plain(label) or label, label)
                if first is not label:
                    yield f"answer.{key}: {label!r} reads as {first!r} → give each its own word"

    def _levels_are_ordered(self) -> Iterator[str]:
        """Levels of a scale stand from the lowest to the highest, and not as a column's values are sorted."""
        labels = self.spec.answer.get("labels")
        if self.spec.answer.get("kind") != "ordinal" or not isinstance(labels, list):
            return
        levels = [_plain(str(label)) for label in labels]
        is_sorted = len(levels) >= _FEWEST and levels == sorted(levels)
        are_words = all(len(level) > 1 and level.isalpha() for level in levels)
        if is_sorted and are_words and not set(levels) <= _SORTED_SCALE:
            yield (
                f"answer.labels: {', '.join(map(str, labels))} stand in alphabetical order, which is seldom"
                " that of a scale → write them from the lowest to the highest; where they stand so already,"
                f" give each its meaning: labels: {{{labels[0]}: ..., ...}}"
            )

    def _gold_is_hidden(self) -> Iterator[str]:
        """Some column changes the gold answer and no prompt, and none that is shown says what it is."""
        gold = {name: effect for name, effect in self._effects.items() if effect.golds}
        if gold and all(effect.prompts for effect in gold.values()) and self._says_it():
            named = ", ".join(sorted(gold))
            yield (
                f"another gold answer makes another prompt: what changes the one ({named}) changes the other"
                " → take the gold answer, and what follows from it, out of instruction, input and cue"
            )
        shown = [name for name, effect in self._effects.items() if effect.prompts]
        for name in shown:
            if why := self._tells(name):
                yield f"column {name} is in the prompt and {why} → leave it out"

    def _says_it(self) -> bool:
        """Whether prompts may say the gold answers; of texts, such as a part of the note, this is seen."""
        if self.spec.judge is None:
            return True
        told = [_plain(seen.target) in _plain(seen.asked) for seen in self._as_given.values() if seen.target]
        return sum(told) * 2 > len(told)

    def _tells(self, column: str) -> str:
        """What a column gives away, if it does in every row."""
        pairs = [
            (self.rows.test[_number(place) - 1].get(column), seen) for place, seen in self._as_given.items()
        ]
        pairs = [(cell, seen) for cell, seen in pairs if cell not in (None, "")]
        if len(pairs) < _FEWEST or len({seen.gold for _, seen in pairs}) < 2:
            return ""
        if all(_plain(str(cell)) == _plain(seen.target) for cell, seen in pairs):
            return "is the gold answer in every row"
        counts = [(str(cell), _count(seen.document["gold"])) for cell, seen in pairs]
        if len({n for _, n in counts}) > 1 and all(cell == str(n) for cell, n in counts):
            return "is the number of right answers in every row"
        return ""

    # ------------------------------------------------------------------ what is shown

    def _columns_are_shown(self) -> Iterator[str]:
        """A text that the task names stands in the prompt, from its beginning to its end."""
        for name in self._columns:
            texts = [row[name] for row in self.rows.test if _last(row.get(name))]
            words = sum(len(_last(text).split()) for text in texts) / max(len(texts), 1)
            effect = self._effects[name]
            if not texts or words < _PROSE or name not in self._named:
                continue
            if effect.n >= _FEWEST and not effect.prompts and not effect.golds:
                yield f"column {name} is in no prompt → show it in prompt.input, or leave it out of rows"
            elif effect.prompts and not effect.golds and self._is_cut(name):
                yield f"the end of column {name} is not in the prompt → show the whole text"

    def _is_cut(self, column: str) -> bool:
        marked = [
            {**row, column: _marked(row[column])} if _last(row.get(column)) else row for row in self.rows.test
        ]
        seen = list(self._seen(marked).values())
        return len(seen) >= _FEWEST and not any(_MARK in item.asked for item in seen)

    @cached_property
    def _named(self) -> set[str]:
        """Columns of the form that the sample rows have, but for those that serve something else."""
        source = self.spec.rows
        held = set(self._columns)
        form = next((form for form in source.schemas if held.issuperset(form.columns)), None)
        if form is None:
            return held & {source.identity}  # rows in the authors' own form
        other = [source.cluster, form.where, form.each, *source.holds]
        other += [form.fields.get(name) for name in ("id", source.runs or "")]
        if self.spec.judge:
            other += [self.spec.judge.points, self.spec.judge.row_tags, self.spec.judge.total]
        used = {name for text in other if text for name in _names(text)}
        return {name for name in form.columns if name not in used}

    def _options_are_shown(self) -> Iterator[str]:
        """Each option stands in the prompt behind its letter."""
        letters = [str(letter) for letter in self.spec.answer.get("letters") or ()]
        hidden, other, more = [], [], []
        for place, seen in self._as_given.items():
            options = [_flat(str(option)) for option in seen.document.get("options") or ()]
            if not options or set(options) <= set(letters):
                continue
            asked = _flat(seen.asked)
            if not all(option in asked for option in options):
                hidden.append(place)
            elif letters and len(options) > len(letters):
                more.append(place)
            else:
                marks = letters or [chr(ord("A") + number) for number in range(len(options))]
                shown = [[mark for mark in marks if _stands(mark, option, asked)] for option in options]
                if any(text and mark not in text for mark, text in zip(marks, shown, strict=False)):
                    other.append(place)
        if hidden:
            yield f"options are not in the prompt ({_places(hidden)}) → show {{{{ options | lettered }}}}"
        if more:
            yield f"there are more options than letters ({_places(more)}) → name all in answer.letters"
        if other:
            yield (
                f"options stand under other letters than in the row ({_places(other)})"
                " → show them in the row's order: {{ options | lettered }}"
            )

    def _numbers_follow(self) -> Iterator[str]:
        """Where the gold answer is a number in the row and a letter in the answer, the order is the same."""
        for name, effect in self._effects.items():
            if not effect.golds or effect.prompts:
                continue
            letters: dict[int, str] = {}
            for place, seen in self._as_given.items():
                cell = self.rows.test[_number(place) - 1].get(name)
                gold = seen.document["gold"]
                if isinstance(cell, int) and not isinstance(cell, bool) and re.fullmatch("[A-Z]", str(gold)):
                    letters[cell] = str(gold)
            steps = {ord(letter) - number for number, letter in letters.items()}
            if len(letters) > 1 and len(steps) > 1:
                yield (
                    f"column {name} counts the options, and the letters of the gold answers do not follow it"
                    " → count from 0 or from 1: 'ABCD'[number], 'ABCD'[number - 1]"
                )

    # ------------------------------------------------------------------ rows

    def _rows_count(self) -> Iterator[str]:
        """Each row is asked and has a gold answer."""
        asked = {_number(place) for place in self._as_given}
        left = [f"test row {n}" for n in range(1, len(self.rows.test) + 1) if n not in asked]
        source = self.spec.rows
        if left and not source.skip_blank and not any(form.where for form in source.schemas):
            yield f"{_places(left)}: left out by the task's own rules → write rows that count"
        without = [place for place, seen in self._as_given.items() if seen.document["gold"] is None]
        if without:
            yield f"{_places(without)}: no gold answer → write one"

    def _rows_stand_alone(self) -> Iterator[str]:
        """Without the first row, the others are asked as before."""
        if len(self.rows.test) < 2:
            return
        before = [(seen.asked, seen.gold) for place, seen in self._as_given.items() if _number(place) > 1]
        after = {(seen.asked, seen.gold) for seen in self._seen(self.rows.test[1:]).values()}
        lost = [item for item in before if item not in after]
        if after and lost:
            yield f"{len(lost)} prompts or gold answers change without the first row → make each of its row"

    def _rows_are_different(self) -> Iterator[str]:
        places: dict[tuple[str, str], str] = {}
        for place, seen in self._as_given.items():
            first = places.setdefault((_plain(seen.asked), seen.gold), place)
            if first != place:
                yield f"{place} asks what {first} asks → write another row"

    def _shots_are_other_rows(self) -> Iterator[str]:
        """No example is a test row but for small and capital letters, marks and blanks."""
        row_check = check_loaded_rows(self.dataset, self.rows)
        test = {_plain(document.input): document.row for document in row_check.test}
        for shot in row_check.fewshot:
            if (same := test.get(_plain(shot.input))) and len(_plain(shot.input)) > 1:
                yield f"{shot.row} is also {same}: an example must not be a test row → take one of them out"


def _names(text: str) -> set[str]:
    """The names that an expression, or the name of a field, uses."""
    return set(meta.find_undeclared_variables(parsed(f"{{{{ {text} }}}}")))


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _plain(text: str) -> str:
    """A text without what does not tell it from another."""
    return re.sub(r"[\W_]+", "", text.casefold())


def _number(place: str) -> int:
    """The number of the row that `test row 5, item 2` is of."""
    return int(place.split()[2].rstrip(","))


def _count(gold: Any) -> int:
    return len(gold) if isinstance(gold, list | set | tuple) else 1


def _last(cell: Any) -> str:
    """The text at the end of a cell, which may be a list of texts."""
    if isinstance(cell, list) and cell:
        return _last(cell[-1])
    return cell if isinstance(cell, str) else ""


def _marked(cell: Any) -> Any:
    return [*cell[:-1], _marked(cell[-1])] if isinstance(cell, list) else f"{cell} {_MARK}"


def _stands(mark: str, option: str, asked: str) -> bool:
    """Whether an option stands behind a letter."""
    return re.search(rf"(?<!\w){re.escape(mark)}[^\w\s]\W{{0,2}}{re.escape(option)}(?!\w)", asked) is not None


def _places(places: Sequence[str]) -> str:
    shown = ", ".join(places[:3])
    return shown if len(places) <= 3 else f"{shown} and {len(places) - 3} more"
