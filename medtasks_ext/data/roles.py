"""What the columns of a file are to a dataset: input, options, gold answer, or not to be shown.

Columns are told by what they hold, and by their names where that does not decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Literal

from medtasks_ext.answers.languages import languages
from medtasks_ext.rows.expressions import question_and_options

Form = Literal["list", "object", "columns", "text"]

#: Share of rows of which what is found must hold: files have odd rows.
_MOST = 0.9
_MAX_READ = 2_000  # rows that are looked at
#: Words in the names of gold columns, the surest first.
_GOLD = (
    "answer", "correct_answer", "correct_answers", "right_answer", "gold", "label", "labels", "target",
    "output", "reference", "class", "diagnosis", "summary", "correct", "solution", "cop", "key", "response",
)  # fmt: skip
_EXPLAINS = re.compile(
    r"expla|rationale|reasoning|justif|comment|evidence|hint|long_answer|\bexp\b|solution_text", re.IGNORECASE
)
_IDS = re.compile(r"(?:^|_)(?:id|uid|uuid|index|idx|key|url|number|pmid|row)$", re.IGNORECASE)
_SPLITS = ("split", "_split", "set", "fold", "subset")
_LISTS = re.compile(r"option|choice|ending|answer|proposition|candidate|alternative", re.IGNORECASE)
_FAMILY = re.compile(r"(?P<before>.*?)(?P<label>[a-jA-J]|10|[0-9])(?P<after>[a-z_]{0,4})")
_LETTERS = re.compile(r"[A-Za-z](?:(?:\s*[,;/]\s*|\s*)[A-Za-z])*")
#: How options in a text are marked; of two that read as many rows the first.
_MARKS = (
    *("\n{%s}. ", "\n{%s}) ", "\n({%s}) ", "\n{%s}- ", "\n{%s}: ", "\n{%s} ", "\n{%s}.", "\n{%s})"),
    *("{%s}. ", "{%s}) ", "{%s}.", "{%s})"),  # anywhere in a line: where lines begin in several ways
)
#: why a column is not shown that holds one value
SAME = "the same in all rows"
_PROSE = 15  # characters of a text that is read


@dataclass(frozen=True)
class Options:
    """Where the options of a question stand."""

    columns: tuple[str, ...]
    form: Form
    labels: tuple[str, ...]  # as the file has them, else A, B, C …
    mark: str = ""  # what stands before each, where they stand in the question (`question_and_options`)


@dataclass(frozen=True)
class Gold:
    """How the gold answers say which option is right."""

    says: Literal["label", "text", "index", "marked"]
    several: bool  # whether more than one option may be right
    is_list: bool = False  # whether cells are lists
    first: int = 0  # the number of the first option, where they are numbers
    joined: str = ""  # what stands between labels in one text


def options_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str], language: str) -> Options | None:
    """Where the options of the questions stand, if they have some.

    Args:
        rows: of the file.
        names: its columns.
        language: ISO 639 code, whose letters options in a text may have.
    """
    rows = rows[:_MAX_READ]
    for name in names:
        cells = [row.get(name) for row in rows if row.get(name) is not None]
        if cells and isinstance(cells[0], dict):
            written = [tuple(map(str, cell)) for cell in cells if isinstance(cell, dict)]
            keys = next(columns for columns in written if len(columns) == max(map(len, written)))
            if 2 <= len(keys) <= 10 and all(len(key) == 1 for key in keys):
                return Options((name,), "object", keys)
        lists = [cell for cell in cells if isinstance(cell, list) and all(isinstance(x, str) for x in cell)]
        longest = max(map(len, lists), default=0)
        many = sum(len(cell) > 1 for cell in lists) >= _MOST * len(cells)
        alike = _LISTS.search(name) or len({*map(len, lists)}) == 1
        if many and alike and 2 <= longest <= 10 and max(len(x) for cell in lists for x in cell) > 1:
            return Options((name,), "list", tuple(ascii_uppercase[:longest]))
    return _family(rows, names) or _own_family(names, language) or _in_text(rows, names, language)


def _family(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Options | None:
    """Columns of one name that differ in a letter or number."""
    families: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        if match := _FAMILY.fullmatch(name):
            families.setdefault((match["before"].lower(), match["after"]), {})[match["label"].lower()] = name
    for family in families.values():
        labels = sorted(family)
        runs = (ascii_lowercase[: len(labels)], "123456789"[: len(labels)], "0123456789"[: len(labels)])
        cells = [row.get(family[label]) for row in rows for label in labels[:2]]
        if len(labels) > 1 and "".join(labels) in runs and all(isinstance(x, str | None) for x in cells):
            columns = tuple(family[label] for label in labels)
            return Options(columns, "columns", tuple(ascii_uppercase[: len(labels)]))
    return None


def _own_family(names: Sequence[str], language: str) -> Options | None:
    """Columns that are named by the letters of the language, alone or behind one word: `ก`, `ข`, `ค`."""
    own = languages().get(language)
    letters = own.labels if own and not own.labels.isascii() else ""
    families: dict[str, dict[int, str]] = {}
    for name in names:
        before, label = name[:-1], name[-1:]
        if label and label in letters and (not before or not before[-1].isalpha()):
            families.setdefault(before, {})[letters.index(label)] = name
    for found in families.values():
        if len(found) > 1 and sorted(found) == list(range(len(found))):
            return Options(
                tuple(found[place] for place in sorted(found)), "columns", tuple(letters[: len(found)])
            )
    return None


def _in_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str], language: str) -> Options | None:
    """Options in the text of the question, by how they are marked."""
    own = languages().get(language)
    sequences = dict.fromkeys((*([own.labels] if own else []), ascii_uppercase, ascii_lowercase, "123456789"))
    for name in names:
        texts = [row[name] for row in rows[:200] if isinstance(row.get(name), str)]
        if not texts or sum("\n" in text for text in texts) < _MOST * len(texts):
            continue
        marks = [form % letters[:8] for letters in sequences for form in _MARKS]
        counts = {mark: [_count(text, mark) for text in texts] for mark in marks}
        best = max(marks, key=lambda mark: sum(n > 1 for n in counts[mark]))
        if sum(n > 1 for n in counts[best]) >= _MOST * len(texts):
            letters = best.partition("{")[2].partition("}")[0]
            used = letters[: max(counts[best])]
            return Options((name,), "text", tuple(used), best.replace(letters, used))
    return None


def with_letters_of_gold(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], options: Options, language: str
) -> Options:
    """The options with the letters that a column of gold answers has for them.

    Lists and columns of options say no letters: a file in Arabic may have `ب` for the second of them.

    Args:
        names: columns that may hold the gold answers.
        language: ISO 639 code, whose letters are tried where Latin ones fit no column.
    """
    own = languages().get(language)
    if own is None or options.form not in ("list", "columns"):
        return options
    given = replace(options, labels=tuple(own.labels[: len(options.labels)]))
    for tried in (options, given):
        golds = (gold_of(rows, name, tried) for name in names)
        if any(gold is not None and gold.says == "label" for gold in golds):
            return tried
    return options


def _count(text: str, mark: str) -> int:
    try:
        return len(question_and_options(text, mark)["options"])
    except ValueError:
        return 0


def texts_of(row: Mapping[str, Any], options: Options) -> list[str]:
    """The options of a row; none where it cannot be read."""
    cell = row.get(options.columns[0])
    if options.form == "columns":
        return [str(row.get(name) or "") for name in options.columns]
    if options.form == "object":
        return [str(text) for text in cell.values()] if isinstance(cell, dict) else []
    if options.form == "list":
        return [str(text) for text in cell] if isinstance(cell, list) else []
    try:
        return question_and_options(str(cell), options.mark)["options"]
    except ValueError:
        return []


def gold_of(rows: Sequence[Mapping[str, Any]], name: str, options: Options) -> Gold | None:
    """How a column says which options are right; None where it does not."""
    cells = [(row.get(name), texts_of(row, options)) for row in rows[:_MAX_READ]]
    cells = [(cell, texts) for cell, texts in cells if cell not in (None, "", []) and texts]
    if not cells:
        return None
    is_list = all(isinstance(cell, list) for cell, _ in cells)
    parts = [(part, texts) for cell, texts in cells for part in (cell if isinstance(cell, list) else [cell])]
    several = any(isinstance(cell, list) and len(cell) > 1 for cell, _ in cells)

    def fits(test: Any) -> bool:
        return sum(bool(test(part, texts)) for part, texts in parts) >= _MOST * len(parts)

    known = {label.casefold() for label in options.labels}
    if fits(lambda part, texts: isinstance(part, str) and part.strip().casefold() in known):
        return Gold("label", several, is_list)
    numbers = [part for part, _ in parts if isinstance(part, int) and not isinstance(part, bool)]
    digits = [int(part) for part, _ in parts if isinstance(part, str) and part.strip().isdecimal()]
    for places in (numbers, digits):
        if len(places) == len(parts) and max(places) <= max(len(texts) for _, texts in parts):
            return Gold("index", several, is_list, first=min(places[:], default=0) and 1)
    if fits(lambda part, texts: str(part).strip() in {text.strip() for text in texts}):
        return Gold("text", several, is_list)
    marked = options.form == "text"
    if marked and fits(lambda part, texts: isinstance(part, str) and part.strip()[:1] in options.labels):
        return Gold("marked", False)
    if not is_list and fits(
        lambda part, texts: (
            isinstance(part, str)
            and len(part.strip()) <= 3 * len(known)
            and bool(_LETTERS.fullmatch(part.strip()))
            and {letter.casefold() for letter in re.findall(r"[A-Za-z]", part)} <= known
        )
    ):
        between = next((mark for mark in ",;/ " if any(mark in str(part).strip() for part, _ in parts)), "")
        return Gold("label", True, joined=between)
    return None


def gold_column(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], options: Options | None
) -> tuple[str, Gold | None]:
    """The column of the gold answers, and how it says which option is right.

    Args:
        rows: of the file.
        names: columns that may be it: no identifiers, options or explanations.
        options: of the questions, if they have some.
    """
    ranked = sorted(names, key=lambda name: (_rank(name), names.index(name)))
    if options:
        by_column = {name: gold_of(rows, name, options) for name in ranked}
        order = {"label": 0, "index": 1, "text": 2, "marked": 3}
        fitting = [name for name in ranked if by_column[name]]
        named = [name for name in fitting if _rank(name) < len(_GOLD)]
        if named or fitting:
            best = min(named or fitting, key=lambda name: order[by_column[name].says])  # type: ignore[union-attr]
            return best, by_column[best]
    return (ranked[0] if ranked and _rank(ranked[0]) < len(_GOLD) else names[-1]), None


def _rank(name: str) -> int:
    plain = re.sub(r"\W+", "_", name.strip().lower())
    for place, word in enumerate(_GOLD):
        if plain == word:
            return place
    words = set(plain.split("_"))
    if words & {"number", "nbr", "n", "count", "num"}:
        return len(_GOLD) + 1
    for place, word in enumerate(_GOLD):
        if word in words:
            return place
    return len(_GOLD)


def left_out(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Why no prompt shows a column, whatever the gold answer is; else nothing."""
    cells = [row.get(name) for row in rows]
    held = [cell for cell in cells if cell not in (None, "", [])]
    if not held:
        return "empty"
    if name.lower() in _SPLITS:
        return "split"
    if _EXPLAINS.search(name):
        return "explanation"
    written = [str(cell) for cell in held]
    if any(isinstance(cell, list | dict) for cell in held):
        return ""
    if len(set(written)) == 1 and len(written) > 2:
        return SAME
    # a text in Chinese or Japanese has no blanks, either
    short = all(text.isascii() and len(text) < 80 and not re.search(r"\s", text.strip()) for text in written)
    unique = len(set(written)) == len(written)
    answers = _rank(name) < len(_GOLD) and 2 * len(set(written)) <= len(written)  # the key of an examination
    if _IDS.search(name) and (short or unique) and not answers:
        return "identifier"
    if unique and len(written) > 4 and short and all(re.search(r"\d", text) for text in written):
        return "identifier" if all(isinstance(cell, str | int) for cell in held) else ""
    return ""


def follows(rows: Sequence[Mapping[str, Any]], name: str, gold: str, options: Options | None) -> bool:
    """Whether a column says what the gold answer is, or how many are right."""
    pairs = [(row.get(name), row.get(gold), row) for row in rows[:_MAX_READ]]
    pairs = [(cell, right, row) for cell, right, row in pairs if cell is not None and right is not None]
    if len(pairs) < 3:
        return False
    if all(_said(cell) == _said(right) for cell, right, _ in pairs):
        return True
    if all(str(cell) == str(len(right)) for cell, right, _ in pairs if isinstance(right, list | str)):
        return any(isinstance(right, list) for _, right, _ in pairs)
    if options and (found := gold_of(rows, name, options)):
        return found is not None
    told: dict[str, set[str]] = {}
    for cell, right, _ in pairs:
        told.setdefault(_said(right), set()).add(_said(cell))
    values = {_said(cell) for cell, _, _ in pairs}
    short = all(len(value) < 60 for value in values)
    return (
        short and len(values) > 1 and len(pairs) >= 2 * len(told) and all(len(x) == 1 for x in told.values())
    )


def is_prose(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a column holds texts that are read: sentences, notes, questions."""
    texts = [row[name] for row in rows[:_MAX_READ] if isinstance(row.get(name), str) and row[name].strip()]
    return bool(texts) and sum(map(len, texts)) >= _PROSE * len(texts) and len(set(texts)) * 2 > len(texts)


def _said(cell: Any) -> str:
    return str(cell).strip().casefold()
