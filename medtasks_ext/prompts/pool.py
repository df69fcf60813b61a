"""The few-shot pool: its rows, or test rows held out where the source has none."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.prompts.by_class import ClassDraw
from medtasks_ext.prompts.record import words
from medtasks_ext.rows.fields import ReadRow
from medtasks_ext.seed import SEED

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.faults import Faults
    from medtasks_ext.rows.files import Row
    from medtasks_ext.rows.sources import Rows
    from medtasks_ext.rows.spec import DatasetSpec, DrawByClass, Source

log = logging.getLogger(__name__)

#: Test rows that serve as shots where a source has no pool.
HELD_OUT = 5
#: Rows of a pool that are kept: prompts carry the first few, in their order.
POOL_ROWS = 100


class Parts(NamedTuple):
    """Test rows and pool, no row in both."""

    test: list[ReadRow]
    pool: list[ReadRow]
    n_held_out: int  # test rows that serve as shots


def pool_rows(rows: list[Row], draw: DrawByClass | bool) -> list[Row]:
    """The rows of a pool that are read: the first ones, some that are drawn, or all to draw from by class."""
    if isinstance(draw, bool):
        return random.Random(SEED).sample(rows, min(len(rows), POOL_ROWS)) if draw else rows[:POOL_ROWS]
    return rows


def parts(
    test: list[ReadRow],
    pool: list[ReadRow],
    *,
    dataset: Dataset,
    source: Source,
    shots: int,
    rows: Rows,
    faults: Faults,
    give_way: bool = False,
) -> Parts:
    """Test rows and pool, test rows held out where shots are wanted and the source has no pool.

    A row of a pinned download's pool that is a test row leaves the pool. Where shots are drawn by class, the
    pool comes in the order of the draw.

    Args:
        test: the test rows.
        pool: the source's own pool, as read.
        dataset: for messages.
        source: says when rows are held out, and by which field rows are compared.
        shots: how many a prompt will carry.
        rows: where both come from.
        faults: keeps rows of the pool that are test rows, too.
        give_way: such test rows are left out instead, since the pool is the suite's own.

    Raises:
        MedtasksError: no test row is left, or there are too few rows for the shots.
    """
    if not test:
        raise MedtasksError(
            "no test row is left", where=rows.where, remedy="rows need split `test` and a gold answer"
        )
    if rows.origin == "hub":  # nobody can mend a pinned download
        asked = {_identity(row, source.identity, dataset) for row in test}
        pool = [row for row in pool if _identity(row, source.identity, dataset) not in asked]
    draw = _class_draw(dataset, source)
    if draw and pool and not give_way:  # the suite's own examples stand as they are
        pool = draw.drawn(pool, shots, rows.fewshot_where or rows.where)
    pool = pool[:POOL_ROWS]
    if pool and len(pool) < shots:
        raise MedtasksError(
            f"{shots} shots asked for, the few-shot pool has {len(pool)} rows",
            where=rows.fewshot_where or rows.where,
            remedy="complete the file, or ask for fewer shots (--num_fewshot)",
        )
    found = Parts(test, pool, 0)
    if give_way:
        shown = {_identity(row, source.identity, dataset) for row in pool}
        kept = [row for row in test if _identity(row, source.identity, dataset) not in shown]
        found = Parts(kept, pool, len(test) - len(kept))
    if not pool and (shots or source.held_out == "always"):
        found = _held_out(test, dataset, source, shots, rows.where)
    _check_disjoint(found, source.identity, dataset, faults)
    return found


def _held_out(test: list[ReadRow], dataset: Dataset, source: Source, shots: int, where: str) -> Parts:
    if len(test) <= HELD_OUT and not shots:
        return Parts(test, [], 0)  # nothing would be left to score
    if len(test) <= HELD_OUT:
        raise MedtasksError(
            f"{len(test)} test rows are too few to hold {HELD_OUT} out as shots",
            where=where,
            remedy="put few-shot rows beside them (fewshot.jsonl)",
        )
    if draw := _class_draw(dataset, source):
        held = draw.drawn(test, shots, where)[:HELD_OUT]
    else:
        held = [test[index] for index in sorted(random.Random(SEED).sample(range(len(test)), HELD_OUT))]
    alike = {_identity(row, source.identity, dataset) for row in held}
    log.warning("%s: no few-shot pool; %d of %d test rows serve as shots", dataset.id, HELD_OUT, len(test))
    return Parts(
        # rows with the same text as a shot cannot be scored, either
        [row for row in test if _identity(row, source.identity, dataset) not in alike],
        held,
        HELD_OUT,
    )


def _class_draw(dataset: Dataset, source: Source) -> ClassDraw | None:
    """The draw by class, where the task file states one."""
    if isinstance(source.draw_fewshot, bool):
        return None
    return ClassDraw(source.draw_fewshot, dataset.file, lambda row: _identity(row, source.identity, dataset))


def _check_disjoint(found: Parts, name: str, dataset: Dataset, faults: Faults) -> None:
    seen = {_identity(row, name, dataset): row.place for row in found.pool}
    for row in found.test:
        text = _identifying(row, name, dataset)
        if seen and (other := seen.get(words(text))):
            faults.add(
                RowError(
                    f"{other} is also {row.place}: an example must not be a test row",
                    row=row.place,
                    column=name,
                    where=row.where,
                    remedy="take one of the two out",
                )
            )


def _identity(row: ReadRow, name: str, dataset: Dataset) -> str:
    return words(_identifying(row, name, dataset))


def _identifying(row: ReadRow, name: str, dataset: Dataset) -> object:
    if name not in row.fields:
        raise MedtasksError(
            f"rows.identity names the unknown field {name!r}",
            where=dataset.file,
            remedy="name the field that holds the question or text",
        )
    return row.fields[name]


def check_answers(documents: Documents, shots: int, spec: DatasetSpec, rows: Rows) -> None:
    """Check that shots of a judged task have answers to show; elsewhere nothing may be the answer.

    Raises:
        MedtasksError: one has none.
    """
    for row, shot in enumerate(documents[:shots], start=1):
        if spec.judge and not shot["target"].strip():
            raise MedtasksError(
                f"few-shot row {row} has no answer to show",
                where=rows.fewshot_where or rows.where,
                remedy="put few-shot rows with answers there",
            )
