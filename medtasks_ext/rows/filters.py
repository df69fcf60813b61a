"""Filters of task files besides those of Jinja: objects, masks, entities, options of questions."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import RowError
from medtasks_ext.privacy import RowValueError, excerpt

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow, Row


def json_objects(items: Any, fields: list[str] | Mapping[str, str]) -> str:
    """A JSON array with an object per line, of the named fields in their order, without repeats.

    Args:
        fields: names; or name -> where the value lies, `object.@value` for a field of a field. Fields that
            an object lacks, and nulls, are left out.
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
    """Objects with keys of other names: `rubrics | renamed(text='criterion', weight='points')`.

    Args:
        objects: a list of objects; anything else is given back as it is, for whoever checks it.
        names: new key -> old key. Other keys stay.
    """
    if not isinstance(objects, list):
        return objects
    return [
        {**item, **{new: item[old] for new, old in names.items() if old in item}}
        if isinstance(item, dict)
        else item
        for item in objects
    ]


def masked(text: str, offsets: Iterable[str], name: str) -> str:
    """The text with the mask `@NAME$` in the place of each entity.

    Args:
        text: the sentence.
        offsets: of each entity, `first-last` with both characters included; an entity in several pieces
            (`10-16;25-28`) is masked from its first to its last character.
        name: of the mask. Entities that overlap become one `@NAME-NAME$`, as in BLUE's files.
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

    Args:
        tokens: words or characters.
        tags: one per token. Scheme `iob` reads `B-X` and `S-X` as a beginning, `I-X` and `E-X` as a
            continuation (or a beginning, where no X goes before); scheme `plain` reads a run of one
            tag as one entity. `O` and an empty tag are outside.
        joint: what stands between tokens.
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


_OPTION = re.compile(r"\s*([A-Z])[\s.、．:：]+(.*)", re.DOTALL)


def split_options(value: Any) -> list[str]:
    """The option texts in letter order, from any of the shapes in which sources keep them.

    A list of `{key, value}` objects, a mapping of letters, a list of texts, or one string with an
    option per line (some copies of CMExam hold a literal backslash and n instead of line breaks). Such
    lines are read by their letters: a letter that is missing before others has an empty text.
    """
    if isinstance(value, dict):
        return [str(value[letter]).strip() for letter in sorted(value)]
    if isinstance(value, list):
        if all(isinstance(item, dict) for item in value):
            return [str(item["value"]).strip() for item in sorted(value, key=lambda item: item["key"])]
        return [str(item).strip() for item in value]
    texts: dict[str, str] = {}
    for line in filter(str.strip, str(value).replace("\\n", "\n").splitlines()):
        match = _OPTION.fullmatch(line)
        if not match or match[1] in texts:
            raise RowValueError(f"option line {excerpt(line)} does not begin with a letter of its own")
        texts[match[1]] = match[2].strip()
    last = max(texts, default="")
    return [texts.get(letter, "") for letter in ascii_uppercase[: ascii_uppercase.find(last) + 1] if last]


def lettered(options: list[str], labels: Sequence[str] = ascii_uppercase, mark: str = ". ") -> str:
    """One line per option: label, mark, text.

    Args:
        options: their texts.
        labels: in their order, as a text of single letters or as a list.
        mark: between a label and its text.
    """
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
    if not isinstance(indices, list) or not indices:
        raise RowValueError(f"{excerpt(indices)} is no list of indices into the options")
    for index in indices:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(ascii_uppercase):
            raise RowValueError(f"{excerpt(index)} is no index into the options, counted from 0")
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
