"""What the core asks for: the rows of a dataset, or the records of one file, from a source's own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.originals.build import read_original, recovered
from medtasks_ext.rows.originals.readers import records
from medtasks_ext.rows.originals.tree import files_below, missing_files
from medtasks_ext.rows.row import Origin, Row, Rows

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Reader, Source


def original_rows(
    origin: Origin,
    dataset: Dataset,
    source: Source,
    places: Sequence[Path],
    where: str,
    *,
    names: Sequence[str] = (),
    revision: str | None = None,
) -> Rows:
    """Rows of a dataset, made from folders or downloaded files, which its source calls `names`."""
    files = files_below(places, names=names)
    absent = [missing_files(files, layout.patterns) for layout in source.original]
    if all(absent):
        what = f"the source's files are not all there: {' | '.join(map(', '.join, absent))}"
        remedy = "put them there as distributed (docs/sources); archives need not be unpacked"
        raise MedtasksError(what, where=where, remedy=remedy)
    layout = source.original[absent.index([])]
    authors = authors_of(dataset, source) if layout.rebuilt else None
    official = authors.released_inputs() if authors else []
    test, fewshot = read_original(
        layout,
        files,
        task=str(source.official_name),
        identity=source.identity,
        where=where,
        official=official,
    )
    n_recovered = len(recovered(test, official))
    return Rows(
        origin,
        test,
        fewshot,
        where,
        revision=revision,
        rebuilt=layout.rebuilt and not n_recovered,
        recovered=(n_recovered, len(official)) if n_recovered else None,
    )


def records_of(reader: Reader, place: Path, member: str) -> list[Row]:
    """The records of one file, or of the members of an archive that a pattern names."""
    return [dict(record.fields) for record in records(reader, files_below([place]), [member])]
