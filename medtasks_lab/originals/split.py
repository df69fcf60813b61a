"""BRIDGE's rule for sources without a test part."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.overlap import Texts, plain
from medtasks_ext.rows.row import Row
from medtasks_ext.seed import SEED

SHOTS = 5
#: Rows kept out of the test part of a small source.
RESERVED = 20


def n_drawn(n: int) -> int:
    """Test rows out of n: a tenth above 2,000, a fifth from 1,000 on, else all but 20.

    The rule is from BRIDGE's paper (Methods). That fractions are rounded up follows from counts: it has
    428 of the 4,271 documents of ADE-Extraction, 251 of the 2,507 of RuDReC-NER.
    """
    if n > 2000:
        return -(-n // 10)
    if n >= 1000:
        return -(-n // 5)
    return n - RESERVED


def drawn(rows: Sequence[Row], *, where: str) -> tuple[list[Row], list[Row]]:
    """Test rows, in the order of the source, and few-shot pool.

    Which rows BRIDGE drew is not published. The draw here has BRIDGE's seed and goes by the text of
    the inputs, so it does not depend on the order in which files are read.

    Raises:
        MedtasksError: the source has too few rows for the rule.
    """
    size = n_drawn(len(rows))
    if size < 1:
        raise MedtasksError(
            f"{len(rows)} documents are too few: {RESERVED} are reserved",
            where=where,
            remedy="put the complete source there",
        )
    order = sorted(range(len(rows)), key=lambda index: str(rows[index]["input"]))
    test = {order[place] for place in random.Random(SEED).sample(range(len(rows)), size)}
    chosen = [rows[index] for index in sorted(test)]
    rest = [rows[index] for index in order if index not in test]
    return chosen, pool(len(rest), rest.__getitem__, apart_from=chosen)


def pool(
    n: int, row_at: Callable[[int], Row | None], *, apart_from: Sequence[Row], identity: str = "input"
) -> list[Row]:
    """Five random rows of n candidates, or fewer where there are not as many, in their order.

    Args:
        n: the number of candidates.
        row_at: makes the row of a candidate, or None where it gives no document. Called as often as needed.
        apart_from: the test rows; a row of the pool must not say what one of them says, whole or in part.
        identity: the column that says it, or else the whole row.
    """
    tested = Texts(_words(row, identity) for row in apart_from) if n else Texts(())
    said: set[str] = set()
    chosen: dict[int, Row] = {}
    for index in random.Random(SEED).sample(range(n), n):
        row = row_at(index)
        if (
            row is not None
            and _words(row, identity) not in said
            and not tested.overlap(_words(row, identity))
        ):
            said.add(_words(row, identity))
            chosen[index] = row
        if len(chosen) == SHOTS:
            break
    return [chosen[index] for index in sorted(chosen)]


def _words(row: Row, identity: str) -> str:
    return plain(str(row.get(identity, row)))
