"""What a submission says of single documents: `documents.parquet`, without ids and without texts.

Rows of open data stand in the order of the test file; the hash of the rows, in the conditions, says which
order that is. Rows of other data are sorted by their values, so that none can be told apart, and their counts
are public where these are a mean's, a score each. Other counts name labels: their sums alone are public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.document_scores import DocumentScores, as_table, from_table
from medtasks_ext.stats.bootstrap import percentile_interval
from medtasks_ext.stats.intervals import Interval, width_as_sd
from medtasks_ext.stats.statistic import Statistic, mean
from medtasks_lab.submissions.record import DOCUMENTS, RECORD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from medtasks_ext.stats.statistic import Array

#: Bytes of the file at most, and of what it unpacks to.
MOST_BYTES, MOST_UNPACKED = 64_000_000, 1_000_000_000
_MADE = "write it with `medtasks submit`"


@dataclass(frozen=True)
class PublicScores:
    """The documents of one task, as far as they are public."""

    scores: DocumentScores  # without counts where `sums` are given
    sums: tuple[float, ...] | None = None  # of the counts, where those of documents are not public

    @property
    def value(self) -> float | None:
        """The score; None where no document takes part in it."""
        if not self.scores.scored.any():
            return None
        if self.sums is None:
            return self.scores.value
        return float(self.scores.statistic.value(np.array(self.sums)))

    @property
    def valid(self) -> float | None:
        """Share of readable answers, where it is reported."""
        return _mean(self.scores.valid)

    @property
    def unclosed(self) -> float | None:
        """Share of answers whose reasoning never ended, where it is reported."""
        return _mean(self.scores.unclosed)

    def interval(self, dataset: str) -> Interval | None:
        """The 95 % interval of the score; None where documents' counts are not public, or there are too few.

        Args:
            dataset: its id.
        """
        return self.scores.interval(dataset) if self._resampled else None

    def draws(self, dataset: str) -> Array | None:
        """The score on each resample; None where documents' counts are not public, or there are too few.

        Args:
            dataset: its id.
        """
        return self.scores.draws(dataset) if self._resampled else None

    @property
    def _resampled(self) -> bool:
        return self.sums is None and bool(self.scores.scored.any())


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def spread_of(interval: Interval) -> tuple[float, float, float]:
    """Ends of the 95 % interval, and the standard deviation that it stands for."""
    return interval.low, interval.high, width_as_sd(interval)


def earlier_spread(draws: Array) -> tuple[float, float, float]:
    """The same as submissions of earlier versions have it: percentiles of the score on its resamples."""
    interval = percentile_interval(draws)
    return interval.low, interval.high, float(draws.std())


def public_scores(scores: DocumentScores, *, is_open: bool) -> PublicScores:
    """What may be public of the documents of a task.

    Args:
        scores: as the run keeps them.
        is_open: anyone can have the rows.
    """
    n = len(scores.documents)
    bare = replace(scores, documents=[str(place) for place in range(n)], contents=[""] * n)
    if is_open:
        return PublicScores(bare)
    mixed = _sorted(bare)
    if scores.statistic is mean:
        return PublicScores(mixed)
    return PublicScores(replace(mixed, counts=np.zeros((n, 1))), tuple(scores.counts.sum(axis=0).tolist()))


def _sorted(scores: DocumentScores) -> DocumentScores:
    """The same documents in the order of their values, those that are resampled together side by side."""
    columns = (scores.scored, scores.scores, scores.valid, scores.unclosed)
    rows = list(
        zip(*(np.nan_to_num(column.astype(float), nan=-1).tolist() for column in columns), strict=True)
    )
    units: dict[int, list[int]] = {}
    for place, unit in enumerate(scores.units.tolist()):
        units.setdefault(unit, []).append(place)
    inside = [sorted(places, key=lambda place: rows[place]) for places in units.values()]
    ordered = sorted(inside, key=lambda places: (len(places), [rows[place] for place in places]))
    order = [place for places in ordered for place in places]
    renumbered = [number for number, places in enumerate(ordered) for _ in places]
    return replace(scores.at(order), documents=scores.documents, units=np.array(renumbered, dtype=np.int32))


# ---------------------------------------------------------------------- the file


def write_documents(path: Path, found: Sequence[PublicScores]) -> None:
    """Write the documents of all tasks, one task after the other."""
    import pyarrow as pa
    from pyarrow import parquet

    with atomic_file(path) as file:
        parquet.write_table(
            pa.concat_tables([_table(item) for item in found]),
            file,
            compression="zstd",
            use_dictionary=[name for name in _columns().names if name != "unit"],
            column_encoding={"unit": "DELTA_BINARY_PACKED"},  # numbers that count up: a third of the file
        )


def _table(item: PublicScores) -> pa.Table:
    import pyarrow as pa

    own = ["document", "content", "confidence"]
    table = as_table(item.scores).drop_columns(own).replace_schema_metadata(None)
    if item.sums is None:
        return table
    n = table.num_rows
    empty = pa.ListArray.from_arrays(np.zeros(n + 1, dtype=np.int32), np.zeros(0))
    return table.set_column(table.column_names.index("counts"), "counts", empty)


def read_documents(path: Path) -> pa.Table:
    """The documents of all tasks.

    Raises:
        MedtasksError: the file is missing, too large, damaged, or has other columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    check_regular(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MedtasksError(f"is larger than {MOST_BYTES:,} bytes", where=path, remedy=_MADE)
        file = parquet.ParquetFile(path)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MOST_UNPACKED:
            raise MedtasksError(f"unpacks to more than {MOST_UNPACKED:,} bytes", where=path, remedy=_MADE)
        wanted = _columns()
        if file.schema_arrow.names != wanted.names or file.schema_arrow.types != wanted.types:
            other = [name for name in file.schema_arrow.names if name not in wanted.names]
            what = f"has the column {other[0][:40]!r}" if other else "has other columns than the format"
            raise MedtasksError(what, where=path, remedy=_MADE)
        return file.read(use_threads=False)
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy=_MADE) from None
    except (pa.ArrowException, OSError) as error:
        raise MedtasksError(f"is no table ({type(error).__name__})", where=path, remedy=_MADE) from None


def _columns() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("unit", pa.int32()),
            ("scored", pa.bool_()),
            *((name, pa.float64()) for name in ("score", "valid", "unclosed")),
            ("counts", pa.list_(pa.float64())),
        ]
    )


def documents_of(
    table: pa.Table,
    lengths: Mapping[str, int],
    statistics: Mapping[str, Statistic],
    sums: Mapping[str, Sequence[float]],
) -> dict[str, PublicScores]:
    """Task -> its documents.

    Args:
        table: of `read_documents`.
        lengths: task -> number of its rows, in their order.
        statistics: task -> how its score follows from counts.
        sums: task -> sums of its counts, where those of documents are not public.

    Raises:
        MedtasksError: there are more or fewer rows, or rows without counts, named by their task.
    """
    if sum(lengths.values()) != table.num_rows:
        raise MedtasksError(
            f"{table.num_rows:,} documents, and {RECORD} says {sum(lengths.values()):,}",
            where=DOCUMENTS,
            remedy=_MADE,
        )
    found, first = {}, 0
    for task, n in lengths.items():
        part, statistic = table.slice(first, n), statistics[task]
        first += n
        if any(part[name].null_count for name in part.column_names):
            raise MedtasksError("a document lacks a value", where=task, remedy=_MADE)
        try:
            found[task] = _documents(part, statistic, sums.get(task))
        except (ValueError, IndexError):
            raise MedtasksError("documents have no or unlike counts", where=task, remedy=_MADE) from None
    return found


def _documents(part: pa.Table, statistic: Statistic, sums: Sequence[float] | None) -> PublicScores:
    import pyarrow as pa

    n = part.num_rows
    names = pa.array([str(place) for place in range(n)])
    table = part.add_column(0, "document", names).add_column(1, "content", pa.array([""] * n))
    widths = set(part["counts"].combine_chunks().value_lengths().to_pylist())
    if len(widths) != 1 or (widths == {0}) != (statistic is mean or sums is not None):
        raise ValueError("counts")
    if sums is None:
        return PublicScores(from_table(table, statistic))
    without = from_table(table, mean)
    return PublicScores(replace(without, counts=np.zeros((n, 1)), statistic=statistic), tuple(sums))
