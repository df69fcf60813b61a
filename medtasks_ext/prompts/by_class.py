"""Few-shot rows drawn by class: as many of each class as of any other, with a fixed seed."""

from __future__ import annotations

from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING

import jinja2

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import excerpt, what_happened
from medtasks_ext.prompts.record import words
from medtasks_ext.rows.expressions import UNFIT, Expression
from medtasks_ext.rows.fields import ReadRow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from medtasks_ext.rows.spec import DrawByClass


class ClassDraw:
    """Draws rows by class, as `rows.draw_fewshot` of a task file says."""

    def __init__(self, draw: DrawByClass, file: Path, text_of: Callable[[ReadRow], str]) -> None:
        """Compile the expression.

        Args:
            draw: the expression for the class, and the seed.
            file: the task file, for messages.
            text_of: the text by which a row is told from others; rows of one text count once.
        """
        self._by, self._seed, self._text_of = Expression(draw.by, file), draw.seed, text_of

    def drawn(self, rows: list[ReadRow], shots: int, where: str) -> list[ReadRow]:
        """All rows in the order in which they are drawn: one of each class in turn, as long as there are any.

        Classes take turns by their number of rows, the largest first, as in HELM (`sample_examples`); the
        seed orders classes of one size, and the rows of a class. The order of `rows` plays no part.

        Args:
            rows: the pool.
            shots: how many of the first ones a prompt will carry.
            where: their file, for messages.

        Raises:
            RowError: a row has no class.
            MedtasksError: a class has too few rows for its share of the shots.
        """
        classes: dict[str, dict[str, ReadRow]] = {}
        for row in rows:
            classes.setdefault(self._class_of(row), {}).setdefault(self._text_of(row), row)
        turns = sorted(classes, key=lambda name: (-len(classes[name]), self._rank(name)))
        for place, name in enumerate(turns):
            wanted = shots // len(turns) + (place < shots % len(turns))
            if len(classes[name]) < wanted:
                raise MedtasksError(
                    f"{shots} shots of {len(turns)} classes need {wanted} of class {excerpt(name)}, "
                    f"the few-shot pool has {len(classes[name])}",
                    where=where,
                    remedy="add rows of this class to the pool, or ask for fewer shots (--num_fewshot)",
                )
        ordered = ([classes[name][text] for text in sorted(classes[name], key=self._rank)] for name in turns)
        return [row for turn in zip_longest(*ordered) for row in turn if row is not None]

    def _rank(self, text: str) -> bytes:
        """A place drawn by the seed, which depends on nothing else but the text."""
        return sha256(f"{self._seed}\x1f{text}".encode(errors="surrogatepass")).digest()

    def _class_of(self, row: ReadRow) -> str:
        try:
            value = self._by.of_row(row.fields)
        except UNFIT as error:
            problem = what_happened(error, self._by.text)
        else:
            if isinstance(value, str | int | float) and (name := words(value)):
                return name
            missing = isinstance(value, jinja2.Undefined) or value is None or value == ""
            problem = "nothing" if missing else f"{excerpt(value)}, which names no class"
        raise RowError(
            f"{row.named}: rows.draw_fewshot.by gives {problem}",
            row=row.place,
            where=row.where,
            remedy="write an expression that gives each row a text or a number, such as the label's column",
        )
