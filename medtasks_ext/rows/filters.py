"""Filters of task files besides those of Jinja: objects, masks, entities, options, texts in parts."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import RowError
from medtasks_ext.privacy import RowValueError, excerpt
from medtasks_ext.rows.files import blocks

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow, Row


def json_objects(items: Any, fields: list[str] | Mapping[str, str]) -> str:
    """A JSON array with an object per line, of the named fields in their order, without repeats.

    `fields`: names, or name -> where the value lies, `object.@value`. What is lacking or null is left out.
    """
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RowValueError(f"{excerpt(items)} is no list of objects")
    paths = fields if isinstance(fields, dict) else {name: name for name in fields}
    objects = []
    for item in items:
        values = {name: value for name, path in paths.items() if (value := _at(item, path)) is not None}
        objects.append(json.dumps(values, ensure_ascii=False))
    return "[\n" + ",\n".join(dict.fromkeys(objects)) + "\n]" if objects else "[]"


def _at(item: Any, path: str) -> Any:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, dict) else None
    return item


def renamed(objects: Any, **names: str) -> Any:
    """Objects with keys of other names (new='old'): `rubrics | renamed(text='criterion', weight='points')`.

    What is no list of objects is given back as it is, for whoever checks it.
    """
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        return objects
    return [item | {new: item[old] for new, old in names.items() if old in item} for item in objects]


def masked(text: str, offsets: Iterable[str], name: str) -> str:
    """The text with the mask `@NAME$` in the place of each entity.

    `offsets`: of each entity `first-last`, both included; one in pieces (`10-16;25-28`) is masked as a whole.
    Entities that overlap become one `@NAME-NAME$`, as in BLUE's files.
    """
    spans: list[tuple[int, int, int]] = []  # first, last, number of entities
    for begin, end in sorted(_span(offset) for offset in offsets):
        if not 0 <= begin <= end < len(text):
            raise RowValueError(f"{begin}-{end} lies outside the text of {len(text)} characters")
        if spans and begin <= spans[-1][1]:
            first, last, count = spans.pop()
            spans.append((first, max(last, end), count + 1))
        else:
            spans.append((begin, end, 1))
    for begin, end, count in reversed(spans):
        text = f"{text[:begin]}@{'-'.join([name] * count)}${text[end + 1 :]}"
    return text


def _span(offset: str) -> tuple[int, int]:
    pieces = [tuple(map(int, piece.split("-"))) for piece in offset.split(";")]
    if any(len(piece) != 2 for piece in pieces):
        raise RowValueError(f"{excerpt(offset)} is no offset of the form first-last")
    return min(piece[0] for piece in pieces), max(piece[1] for piece in pieces)


def spans(tokens: Sequence[str], tags: Sequence[str], *, scheme: str = "iob", joint: str = " ") -> list[Row]:
    """The entities that tags mark, in order: `type`, `text`, and `start` and `end`, which count tokens.

    Scheme `iob` reads `B-X` and `S-X` as a beginning, `I-X` and `E-X` as a continuation, if an X goes before;
    `plain` reads a run of one tag as one entity. `O` and an empty tag are outside.
    """
    if len(tokens) != len(tags):
        raise RowValueError(f"{len(tokens)} tokens have {len(tags)} tags")
    found: list[Row] = []
    goes_on: str | None = None  # the kind that the next token may continue
    for index, tag in enumerate(tags):
        if tag in ("O", ""):
            goes_on = None
            continue
        place, _, kind = tag.partition("-") if scheme == "iob" else ("I", "-", tag)
        start = found.pop()["start"] if found and kind == goes_on and place in ("I", "E") else index
        text = joint.join(tokens[start : index + 1])
        found.append({"type": kind, "text": text, "start": start, "end": index + 1})
        goes_on = None if place in ("E", "S") else kind
    return found


_OPTION = re.compile(r"\s*\(?([A-Z])[\s.)、．:：]+(.*)", re.DOTALL)
#: How options are marked in a cell of one line.
_MARKS = ("({ABCDEFGH}) ", "{ABCDEFGH}) ", "{ABCDEFGH}. ", "{ABCDEFGH}: ")


def split_options(value: Any) -> list[str]:
    """The option texts in letter order, from any of the shapes in which sources keep them.

    A list of `{key, value}` objects, a mapping of letters, a list of texts, or one string with an
    option per line (some copies of CMExam hold a literal backslash and n instead of line breaks), or all in
    one line. Such lines are read by their letters: a letter that is missing before others has an empty text.
    """
    if isinstance(value, dict):
        return [str(value[letter]).strip() for letter in sorted(value)]
    if isinstance(value, list):
        if all(isinstance(item, dict) for item in value):
            return [str(item["value"]).strip() for item in sorted(value, key=lambda item: item["key"])]
        return [str(item).strip() for item in value]
    lines = [line for line in str(value).replace("\\n", "\n").splitlines() if line.strip()]
    if len(lines) == 1:
        for mark in _MARKS:
            with suppress(RowValueError):
                options: list[str] = question_and_options(f"? {lines[0].strip()}", mark)["options"]
                return options
    texts: dict[str, str] = {}
    for line in lines:
        match = _OPTION.fullmatch(line)
        if not match or match[1] in texts:
            raise RowValueError(f"option line {excerpt(line)} does not begin with a letter of its own")
        texts[match[1]] = match[2].strip()
    last = max(texts, default="")
    return [texts.get(letter, "") for letter in ascii_uppercase[: ascii_uppercase.find(last) + 1] if last]


def lettered(options: list[str], labels: Sequence[str] = ascii_uppercase, mark: str = ". ") -> str:
    """One line per option: label, mark, text; labels are a text of single letters or a list."""
    if isinstance(options, Mapping):
        raise RowValueError(
            "options are an object, of which only the keys would be shown: write `OPTIONS | split_options`"
        )
    if len(options) > len(labels):
        raise RowValueError(f"{len(options)} options, and {len(labels)} labels: give `lettered` more of them")
    if "" in options:
        raise RowValueError(f"option {labels[options.index('')]} has no text")
    return "\n".join(f"{label}{mark}{option}" for label, option in zip(labels, options, strict=False))


def as_letters(indices: Any) -> str:
    """Indices into the options, counted from 0, as letters: [0, 2] is `AC`."""
    places = range(len(ascii_uppercase))
    if not isinstance(indices, list) or not indices:
        raise RowValueError(f"{excerpt(indices)} is no list of indices into the options")
    if wrong := [item for item in indices if type(item) is not int or item not in places]:
        raise RowValueError(f"{excerpt(wrong[0])} is no index into the options, counted from 0")
    return "".join(sorted({ascii_uppercase[index] for index in indices}))


def mended(row: ReadRow) -> ReadRow:
    """The row of a pinned source with its options as they are meant.

    A letter without text is no option, options of the same text are one, and the answer's letters follow.
    """
    options, answer = row.fields["options"], str(row.fields["answer"])
    kept = list(dict.fromkeys(option for option in options if option))
    texts = dict(zip(ascii_uppercase, options, strict=False))
    if len(kept) == len(options) or not all(texts.get(letter) for letter in answer):
        return row
    letters = sorted({ascii_uppercase[kept.index(texts[letter])] for letter in answer})
    row.fields |= {"options": kept, "answer": "".join(letters)}
    return row


def check_options(row: ReadRow) -> ReadRow:
    """The row, if it has at least two options, all different, the right ones among them; else RowError."""
    options, answer = row.fields["options"], str(row.fields["answer"])
    letters = ascii_uppercase[: len(options)]
    repeated = [option for place, option in enumerate(options) if option in options[:place]]
    column = "options"
    if "" in options:
        problem = f"has no option {ascii_uppercase[options.index('')]}"
        remedy = "write every option from A on, each on a line of its own"
    elif len(options) < 2:
        problem, remedy = f"has {len(options)} options", "give every question at least two options"
    elif repeated:
        problem = f"has the option {excerpt(repeated[0])} more than once"
        remedy = "answers are compared by the options' texts: write different ones, or take the row out"
    elif not answer or any(letter not in letters for letter in answer):
        problem = f"has the answer {excerpt(answer)}, which is none of its {len(options)} options"
        column = "answer"
        remedy = f"write letters from A to {letters[-1]} (or their indices, counted from 0)"
    else:
        return row
    raise RowError(f"{row.named} {problem}", row=row.place, column=column, where=row.where, remedy=remedy)


def permuted(row: Row, trials: int) -> list[Row]:
    """The question asked several times, each time with its options in another seeded order.

    Fields `options` (texts) and `answer` (letters) are rewritten together; `item` and `trial` are added.
    Orders are drawn uniformly from all permutations, seeded by question id, and differ between trials as far
    as the number of options allows (MLB, protocol `dynamic_mc`): they are never all the same.
    """
    options, gold = list(row["options"]), {ascii_uppercase.index(letter) for letter in row["answer"]}
    rng = random.Random(f"option order of {row['id']}")
    orders: list[list[int]] = []
    possible = math.factorial(len(options))
    while len(orders) < trials:
        order = rng.sample(range(len(options)), len(options))
        if order not in orders or len(orders) >= possible:
            orders.append(order)
    return [
        {
            **row,
            "options": [options[index] for index in order],
            "answer": "".join(ascii_uppercase[place] for place, index in enumerate(order) if index in gold),
            "item": str(row["id"]),
            "trial": trial,
        }
        for trial, order in enumerate(orders)
    ]


# ----------------------------------------------------------------------
# Questions whose options stand in their text: both are taken apart by how an option is marked.

#: How a mark is written in a task file: the labels of the options in braces, in order, one character each.
_LABELS = re.compile(r"\{([^\s{}]{2,})\}")
#: What may stand between two options besides blanks, where options have an end.
_BETWEEN = " \t\r\n,;"
#: Other ways to write a label: alef is often written without its hamza.
_WRITTEN = {"أ": "أاإآ"}
#: Lengthens an Arabic letter, and is no letter: `هـ` is `ه`.
_TATWEEL = "\u0640"


def question_and_options(text: str, mark: str, end: str = "") -> Row:
    """The `question` before the first option, and the `options`.

    A text can be read if its marks, in the order of their labels, can be chosen in one way alone.

    `mark`: what stands before each option, with all labels in braces: `{ABCDE}) ` finds `A) `, then `B) `. A
    line break there (`\\n{ABCD}. `) asks for options at the beginnings of lines. Arabic labels may have
    tatweel, and alef any form. `end`: what stands after each option, such as a quotation mark.
    """
    labels, marks = _marks(mark, text)
    chosen = _chosen(labels, marks)
    question = text[: chosen[0][0]].strip()
    if not question:
        raise RowValueError("no question stands before its options")
    options = []
    ends = [*(start for start, _, _ in chosen[1:]), len(text)]
    for (_, begin, label), stop in zip(chosen, ends, strict=True):
        option = text[begin:stop].strip()
        if end:
            option, ended, rest = option.rpartition(end)
            if not ended or rest.strip(_BETWEEN):
                raise RowValueError(f"option {labels[label]} does not end with {end!r}")
        options.append(option.strip())
        if not options[-1]:
            raise RowValueError(f"option {labels[label]} has no text")
    return {"question": question, "options": options}


@lru_cache(maxsize=64)
def _compiled_marks(mark: str) -> tuple[str, re.Pattern[str], bool]:
    parts = _LABELS.split(mark)
    if len(parts) != 3 or len(set(parts[1])) != len(parts[1]):
        raise RowValueError(
            f"the mark {mark!r} does not hold labels of options in braces, as '{{ABCD}}) ' does"
        )
    before, labels, after = parts
    written = "".join(_WRITTEN.get(label, label) for label in labels)
    pattern = f"(?=({re.escape(before)}([{re.escape(written)}]){_TATWEEL}?{re.escape(after)}))"
    return labels, re.compile(pattern), not before


def _marks(mark: str, text: str) -> tuple[str, list[tuple[int, int, int]]]:
    labels, pattern, label_first = _compiled_marks(mark)
    marks = []
    for match in pattern.finditer(text):
        before = text[match.start() - 1] if match.start() else " "
        # a letter or digit there is written without a gap: it ends a word; Chinese texts have none
        if not (label_first and (before.isdigit() or before.lower() != before.upper())):
            label = next(at for at, label in enumerate(labels) if match[2] in _WRITTEN.get(label, label))
            marks.append((match.start(1), match.end(1), label))
    return labels, marks


def _chosen(labels: str, marks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The marks of the one reading: the first label, the second after it, and so on."""
    ways = [0] * len(labels)  # to read the labels up to this one, among the marks so far; 2: several
    readings = []
    for _, _, label in marks:
        readings.append(1 if label == 0 else ways[label - 1])
        ways[label] = min(2, ways[label] + readings[-1])
    last = max((label for label, n in enumerate(ways) if n), default=-1)
    if last < 1:
        raise RowValueError(
            f"{'one option' if last == 0 else 'no option'} found, where a question has two or more"
        )
    if ways[last] > 1:
        raise RowValueError(f"the options {labels[0]} to {labels[last]} can be read in several ways")
    chosen: list[tuple[int, int, int]] = []
    for item, n in zip(reversed(marks), reversed(readings), strict=True):
        if n and item[2] == last - len(chosen):
            chosen.append(item)
    chosen.reverse()
    if beyond := [label for begin, _, label in marks if label > last and begin > chosen[0][0]]:
        raise RowValueError(
            f"option {labels[min(beyond)]} stands there, option {labels[last + 1]} before it does not"
        )
    return chosen


# ----------------------------------------------------------------------
# Forms in which makers of datasets write the same: texts in parts, right options, entities.


def picked(value: Any, path: str) -> Any:
    """What lies at `a.b` below a value; of a list, what lies there in each of its items."""
    if isinstance(value, list):
        return [picked(item, path) for item in value]
    name, _, rest = path.partition(".")
    if not isinstance(value, dict) or name not in value:
        raise RowValueError(f"{excerpt(value)} has no {name}")
    return picked(value[name], rest) if rest else value[name]


def as_text(value: Any, joint: str = "\n\n") -> str:
    """One text of a text, a number, or a list of those: its parts, with a blank line between them."""
    if isinstance(value, list):
        return joint.join(as_text(item, joint) for item in value if item not in (None, ""))
    if not isinstance(value, str | int | float) or value != value:
        raise RowValueError(f"{excerpt(value)} stands where text belongs")
    return str(value)


#: Several letters in one cell: `AC`, `a, c`.
_SEVERAL = re.compile(r"[A-Z]{2,}|[A-Za-z](?:\s*[,;|/]\s*[A-Za-z])+")


def option_letters(answer: Any, options: list[str], first: int | None = None) -> str:
    """The letters of right options: of letters, of the options' texts, or of numbers counted from `first`."""
    letters = ascii_uppercase[: len(options)]
    if isinstance(answer, str) and answer not in options and _SEVERAL.fullmatch(answer.strip()):
        answer = re.findall("[A-Za-z]", answer)
    right = set[int]()
    for item in answer if isinstance(answer, list) else [answer]:
        said = str(item).strip()
        places = {place for place, option in enumerate(options) if option == said}
        if len(said) == 1 and said.upper() in letters:
            places.add(letters.index(said.upper()))
        if first is not None and re.fullmatch(r"\d+(?:\.0)?", said):
            places = {int(float(said)) - first} & {*range(len(options))}
        if len(places) != 1:
            why = "is the letter of one option and the text of another" if places else "names no option"
            more = " (data new --count-from says from which number)" * (said.isdigit() and first is None)
            raise RowValueError(f"the answer {excerpt(item)} {why} of {len(options)}{more}")
        right |= places
    return "".join(letters[place] for place in sorted(right))


#: What makers call the parts of an entity.
_NAMES = {
    "text": ("text", "entity_text", "entity", "mention", "span", "word"),
    "type": ("type", "label", "entity_type", "category", "tag"),
    "start": ("start", "begin", "start_offset"),
    "end": ("end", "stop", "end_offset"),
    "offsets": ("offsets", "offset", "location"),
}


def as_entities(items: Any, text: str = "") -> list[Row]:
    """Entities as objects of `entity` and `type`: of texts, of objects, or of offsets into the text.

    An offset is `[first, behind the last]`, with a type after it, or so under names that makers use.
    """
    if not isinstance(items, list):
        raise RowValueError(f"{excerpt(items)} is no list of entities")
    return [_entity(item, text) for item in items]


def _entity(item: Any, text: str) -> Row:
    if isinstance(item, str):
        return {"entity": item, "type": ""}
    if isinstance(item, list) and len(item) > 1:  # [start, end], [start, end, type]
        item = {"start": item[0], "end": item[1], "type": item[2] if len(item) > 2 else ""}
    if not isinstance(item, dict):
        raise RowValueError(f"{excerpt(item)} is no entity")
    part = {ours: next((item[x] for x in names if x in item), None) for ours, names in _NAMES.items()}
    said = " ".join(part["text"]) if isinstance(part["text"], list) else part["text"]
    if said is None:
        places = [[part["start"], part["end"]]] if part["offsets"] is None else part["offsets"]
        places = places if places and isinstance(places[0], list) else [places]
        if not all(_lies_within(place, text) for place in places):
            raise RowValueError(f"an entity has neither a text nor offsets within the {len(text)} characters")
        said = " ".join(text[start:end] for start, end in places)
    kind = part["type"]
    return {"entity": " ".join(str(said).split()), "type": as_text(kind, ",") if kind is not None else ""}


def _lies_within(place: list[Any], text: str) -> bool:
    are_numbers = len(place) == 2 and all(isinstance(item, int) for item in place)
    return are_numbers and 0 <= place[0] < place[1] <= len(text)


def _int(value: Any) -> int:
    """An integer; a fault for what is none, where Jinja has a silent 0."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise RowValueError(f"{excerpt(value)} is no integer") from None


_OWN: tuple[Callable[..., Any], ...] = (
    as_entities,
    as_letters,
    as_text,
    blocks,
    json_objects,
    lettered,
    masked,
    option_letters,
    picked,
    question_and_options,
    renamed,
    spans,
    split_options,
)
#: Filters that fields and templates of task files have besides Jinja's own.
FILTERS: Mapping[str, Callable[..., Any]] = {"int": _int, **{made.__name__: made for made in _OWN}}
