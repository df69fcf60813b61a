"""Which questions are asked of the test rows: how many, in how many trials, each under its own id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import RowError
from medtasks_ext.privacy import excerpt, shows_text
from medtasks_ext.rows.fields import ReadRow
from medtasks_ext.rows.options import check_options, mended, permuted

if TYPE_CHECKING:
    from medtasks_ext.rows.faults import Faults
    from medtasks_ext.rows.spec import Source


def sampled(test: list[ReadRow], source: Source) -> list[ReadRow]:
    """At most `max_test` rows, or as many of each run."""
    if not source.max_test:
        return test
    runs: dict[str, list[ReadRow]] = {}
    for row in test:
        runs.setdefault(str(row.fields[source.runs]) if source.runs else "", []).append(row)
    return [row for rows in runs.values() for row in _drawn(rows, source.max_test)]


def _drawn(rows: list[ReadRow], limit: int) -> list[ReadRow]:
    """At most `limit` rows, in the order in which HELM draws them (`downsample_eval_instances`)."""
    if len(rows) <= limit:
        return rows
    import numpy as np

    return [rows[index] for index in np.random.RandomState(0).choice(len(rows), limit, replace=False)]


def trials(
    test: list[ReadRow], pool: list[ReadRow], n: int | None, faults: Faults, *, pinned: bool
) -> tuple[list[ReadRow], list[ReadRow]]:
    """The questions n times, each time with their options in another order; those of the pool once.

    Args:
        test: the test rows.
        pool: the few-shot pool.
        n: how often each is asked; None: once, with its options as the source has them.
        faults: keeps questions whose options cannot tell answers apart.
        pinned: the rows are a pinned download, which nobody can mend.
    """
    if not n:
        return test, pool
    if pinned:
        test, pool = [mended(row) for row in test], [mended(row) for row in pool]
    if n > 1:  # answers are compared by content
        test, pool = _with_options(test, faults), _with_options(pool, faults)
    return _trials_of(test, n, faults), _trials_of(pool, 1, faults)


def _trials_of(rows: list[ReadRow], n: int, faults: Faults) -> list[ReadRow]:
    found = (faults.tried(row.place, row.where, _asked, row, n) for row in rows)
    return [trial for trials in found if trials for trial in trials]


def _asked(row: ReadRow, n: int) -> list[ReadRow]:
    return [ReadRow(fields, row.place, row.where, row.instruction) for fields in permuted(row.fields, n)]


def _with_options(rows: list[ReadRow], faults: Faults) -> list[ReadRow]:
    checked = (faults.tried(row.place, row.where, check_options, row) for row in rows)
    return [row for row in checked if row is not None]


def with_own_ids(rows: list[ReadRow], faults: Faults) -> list[ReadRow]:
    """The rows, no two of which have the same id."""
    seen: dict[tuple[str, Any], str] = {}
    kept = []
    for row in rows:
        key = (str(row.fields["id"]), row.fields.get("trial"))
        if key not in seen:
            seen[key] = row.place
            kept.append(row)
            continue
        named = f"id {excerpt(key[0])}" if shows_text() else "the same id"
        faults.add(
            RowError(
                f"{named} occurs twice: {seen[key]} and {row.place}",
                row=row.place,
                column="id",
                where=row.where,
                remedy="give each row its own id",
            )
        )
    return kept
