"""Which rows are asked and which are shown: the few-shot pool, trials of the options."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import excerpt, shows_text
from medtasks_ext.process import SEED
from medtasks_ext.prompts.documents import Documents, words
from medtasks_ext.registry import Dataset
from medtasks_ext.rows.filters import check_options, mended, permuted
from medtasks_ext.rows.originals.build import NormalisedTexts
from medtasks_ext.rows.row import Faults, ReadRow, Row, Rows
from medtasks_ext.rows.spec import DatasetSpec, Source

log = logging.getLogger(__name__)

#: Test rows that serve as shots where a source has no pool.
HELD_OUT = 5
#: Rows of a pool that are kept: prompts carry the first few, in their order.
POOL_ROWS = 100


class Parts(NamedTuple):
    test: list[ReadRow]
    pool: list[ReadRow]
    n_held_out: int  # test rows that serve as shots
    n_overlap: int = 0  # rows of the pool that share text with test rows


def pool_rows(rows: list[Row], *, draw: bool) -> list[Row]:
    """The rows of a pool that are read: the first ones, or some that are drawn."""
    return random.Random(SEED).sample(rows, min(len(rows), POOL_ROWS)) if draw else rows[:POOL_ROWS]


def parts(
    test: list[ReadRow],
    pool: list[ReadRow],
    dataset: Dataset,
    source: Source,
    rows: Rows,
    faults: Faults,
    *,
    shots: int,
    theirs: bool | None = False,
) -> Parts:
    """Test rows and pool, test rows held out where shots are wanted and the source has no pool.

    A row of a pinned download's pool that is a test row leaves the pool, and of any pool one that holds a
    test row's text or stands in it, unless the pool is the suite's own. `theirs`: it is, and stands as it is:
    where its examples are shown, a test row that is one of them is not asked. None: as far as anybody knows.
    """
    if not test:
        raise MedtasksError(
            "no test row is left", where=rows.where, remedy="rows need split `test` and a gold answer"
        )
    identity = _identity(source, dataset)
    if rows.origin == "hub":  # nobody can mend a pinned download
        texts = set(map(identity, pool))
        asked = texts.intersection(map(identity, test))
        pool = [row for row in pool if identity(row) not in asked]
    apart, n_read = _apart(pool, test, identity), len(pool)
    overlap = n_read - len(apart)
    if theirs is False:
        pool = apart
    if overlap and shots:
        log.warning(
            "%s: %d of %d rows of the few-shot pool %s", dataset.id, overlap, n_read, _OVERLAP[theirs]
        )
    if pool and len(pool) < shots:
        what = f"{shots} shots asked for, the few-shot pool has {len(pool)} rows"
        remedy = "complete the file, or ask for fewer shots (--num_fewshot)"
        raise MedtasksError(what, where=rows.fewshot_where or rows.where, remedy=remedy)
    divided = Parts(test, pool, 0)
    if theirs is not False and shots:
        shown = {identity(row) for row in pool}
        kept = [row for row in test if identity(row) not in shown]
        divided = Parts(kept, pool, len(test) - len(kept))
    if not pool and (shots or source.held_out == "always"):
        why = "no row of the few-shot pool can be shown" if n_read else "no few-shot pool"
        divided = _held_out(test, identity, shots, rows.where)
        if divided.n_held_out:
            n = len(test)
            log.warning("%s: %s; %d of %d test rows serve as shots", dataset.id, why, HELD_OUT, n)
    if theirs is False:
        seen = {identity(row): row.place for row in divided.pool}
        for row in divided.test if seen else ():
            if (text := identity(row)) in seen:
                rule = "an example must not be a test row"
                faults.add(
                    RowError(
                        f"{seen[text]} is also {row.place}: {rule}",
                        row=row.place,
                        column=source.identity,
                        where=row.where,
                        remedy="take one of the two out",
                        cause=f"is also an example: {rule}",
                    )
                )
    return divided._replace(n_overlap=overlap)


#: Whether a pool is the suite's own -> what is said of its rows that share text with test rows.
_OVERLAP = {
    False: "are not shown, since they hold the text of test rows, or stand in one",
    True: "hold the text of test rows, or stand in one; the authors' examples are shown as they are",
    None: "hold the text of test rows, or stand in one; they are shown as they are, since the file has the "
    "name of the authors' examples (their release is not here to compare it with)",
}
#: What tells a row from others, as far as words count.
Identity: TypeAlias = "Callable[[ReadRow], str]"


def _identity(source: Source, dataset: Dataset) -> Identity:
    name = source.identity

    def identity(row: ReadRow) -> str:
        if name not in row.fields:
            what = f"rows.identity names the unknown field {name!r}"
            remedy = "name the field that holds the question or text"
            raise MedtasksError(what, where=dataset.file, remedy=remedy)
        return words(row.fields[name])

    return identity


def _apart(pool: list[ReadRow], test: list[ReadRow], identity: Identity) -> list[ReadRow]:
    """The rows of a pool that neither hold a test row's text nor stand in one; equal ones stay, as faults."""
    if not pool:
        return pool
    texts, equal = list(map(identity, pool)), set[str]()
    apart, left = NormalisedTexts(texts), texts
    for asked in map(identity, test):  # one at a time: large files have room in memory once
        if asked in texts:
            equal.add(asked)
        if apart.overlap(asked):
            left = [text for text in left if not NormalisedTexts([text]).overlap(asked)]
            apart = NormalisedTexts(left)
    kept = equal.union(left)
    return [row for row, text in zip(pool, texts, strict=True) if text in kept]


def _held_out(test: list[ReadRow], identity: Identity, shots: int, where: str) -> Parts:
    if len(test) <= HELD_OUT and not shots:
        return Parts(test, [], 0)  # nothing would be left to score
    if len(test) <= HELD_OUT:
        what = f"{len(test)} test rows are too few to hold {HELD_OUT} out as shots"
        raise MedtasksError(what, where=where, remedy="put few-shot rows beside them (fewshot.jsonl)")
    candidates = test
    while True:  # drawn again without those that overlap with a row that stays
        places = sorted(random.Random(SEED).sample(range(len(candidates)), HELD_OUT))
        held = [candidates[place] for place in places]
        shown = set(map(identity, held))
        # rows with the same text as a shot cannot be scored, either
        others = [row for row in test if identity(row) not in shown]
        apart = {id(row) for row in _apart(held, others, identity)}
        left = [row for row in candidates if id(row) in apart or all(row is not one for one in held)]
        if len(left) == len(candidates) or len(left) < HELD_OUT:
            return Parts(others, held, HELD_OUT)
        candidates = left


def check_answers(documents: Documents, shots: int, spec: DatasetSpec, rows: Rows) -> None:
    """Check that shots of a judged task have answers to show; elsewhere nothing may be the answer."""
    for row, shot in enumerate(documents[:shots], start=1):
        if spec.judge and not shot["target"].strip():
            what = f"few-shot row {row} has no answer to show"
            remedy = "put few-shot rows with answers there"
            raise MedtasksError(what, where=rows.fewshot_where or rows.where, remedy=remedy)


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

    `n` None: once, with options as the source has them. `faults` keeps questions whose options cannot tell
    answers apart; those of a pinned download nobody can mend.
    """
    if not n:
        return test, pool
    if pinned:
        test, pool = [mended(row) for row in test], [mended(row) for row in pool]
    if n > 1:  # answers are compared by content
        test, pool = _with_options(test, faults), _with_options(pool, faults)
    return _trials_of(test, n, faults), _trials_of(pool, 1, faults)


def _trials_of(rows: list[ReadRow], n: int, faults: Faults) -> list[ReadRow]:
    def asked(row: ReadRow) -> list[ReadRow]:
        return [ReadRow(fields, row.place, row.where, row.instruction) for fields in permuted(row.fields, n)]

    trials_of_rows = (faults.tried(row.place, row.where, asked, row) for row in rows)
    return [trial for trials in trials_of_rows if trials for trial in trials]


def _with_options(rows: list[ReadRow], faults: Faults) -> list[ReadRow]:
    checked = (faults.tried(row.place, row.where, check_options, row) for row in rows)
    return [row for row in checked if row is not None]


def with_own_ids(rows: list[ReadRow], faults: Faults) -> list[ReadRow]:
    seen: dict[tuple[str, Any], str] = {}
    kept = []
    for row in rows:
        key = (str(row.fields["id"]), row.fields.get("trial"))
        if key not in seen:
            seen[key] = row.place
            kept.append(row)
            continue
        named = f"id {excerpt(key[0])}" if shows_text() else "the same id"
        what, remedy = f"{named} occurs twice: {seen[key]} and {row.place}", "give each row its own id"
        faults.add(RowError(what, row=row.place, column="id", where=row.where, remedy=remedy))
    return kept
