"""Options of multiple-choice questions: reading them from a row, permuting them for repeated trials."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import RowError
from medtasks_ext.privacy import RowValueError, excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.rows.row import ReadRow, Row

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
    for line in str(value).replace("\\n", "\n").splitlines():
        if not line.strip():
            continue
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

    Raises:
        ValueError: an option has no text or no label, or they are an object of letters and texts.
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
    """Indices into the options, counted from 0, as letters: [0, 2] is `AC`.

    Raises:
        ValueError: it is no list of such indices, or an empty one.
    """
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
    problem = remedy = ""
    repeated = [option for place, option in enumerate(options) if option in options[:place]]
    outside = [letter for letter in answer if letter not in ascii_uppercase[: len(options)]]
    if "" in options:
        problem = f"has no option {ascii_uppercase[options.index('')]}"
        remedy = "write every option from A on, each on a line of its own"
    elif len(options) < 2:
        problem, remedy = f"has {len(options)} options", "give every question at least two options"
    elif repeated:
        problem = f"has the option {excerpt(repeated[0])} more than once"
        remedy = "answers are compared by the options' texts: write different ones, or take the row out"
    elif outside or not answer:
        problem = f"has the answer {excerpt(answer)}, which is none of its {len(options)} options"
        remedy = (
            f"write letters from A to {ascii_uppercase[len(options) - 1]} (or their indices, counted from 0)"
        )
    if problem:
        column = "answer" if "answer" in problem else "options"
        raise RowError(f"{row.named} {problem}", row=row.place, column=column, where=row.where, remedy=remedy)
    return row


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
