"""Frames: the tables that everything reads which shows results. `frames.yaml` has the schema of each.

A frame is an Arrow table. Terminal, CSV, Parquet, the page and docs/columns.md take their columns from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import suites
from medtasks_ext.strict import read_yaml

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Suite

#: Axes that all suites share.
SHARED_AXES = ("language", "task_type", "stage", "specialties", "document_types", "access")

#: frame -> its `row` and `columns`, as the file has them
DECLARED = read_yaml(Path(__file__).with_suffix(".yaml"))
#: frame -> names of columns that stand together in the documentation, and what they mean
FRAMES: Mapping[str, list[tuple[str, str]]] = {
    frame: [(names, meaning) for item in said["columns"] for names, meaning in item.items()]
    for frame, said in DECLARED.items()
}


def axes() -> list[str]:
    """The axes that have a column: those of all suites, then those of single ones."""
    for suite in suites().values():
        for fault in axis_faults(suite):
            raise fault
    own = (axis for suite in suites().values() for axis in suite.axes)
    return list(dict.fromkeys((*SHARED_AXES, *own)))


def axis_faults(suite: Suite) -> Iterator[MedtasksError]:
    """Axes of a suite that are called as another column of a table with axes is."""
    with_axes = [[names for names, _ in frame] for frame in FRAMES.values() if "AXES" in dict(frame)]
    others = (name for frame in with_axes for names in frame if names != "AXES" for name in names_of(names))
    taken = {name.partition(":")[0] for name in others}
    for axis in suite.axes:
        if axis in taken:
            yield MedtasksError(
                f"axes.{axis}: tables of results have a column of that name",
                where=suite.file,
                remedy="give the axis another name",
            )


def names_of(said: str) -> list[str]:
    return axes() if said == "AXES" else said.split()


def names(frame: str) -> list[str]:
    return [name.partition(":")[0] for said, _ in FRAMES[frame] for name in names_of(said)]


def schema(frame: str) -> pa.Schema:
    """The types of its columns."""
    return _schema(frame, tuple(axes()))


@lru_cache(maxsize=64)
def _schema(frame: str, _axes: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    said = (name.partition(":") for together, _ in FRAMES[frame] for name in names_of(together))
    return pa.schema([pa.field(name, _type(kind)) for name, _, kind in said])


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    own = {
        "texts": pa.list_(pa.string()),
        "int64s": pa.list_(pa.int64()),
        "scores": pa.list_(pa.struct([("entry", pa.string()), ("score", pa.float64())])),
        "counts": pa.map_(pa.string(), pa.int64()),
    }
    return own[name] if name in own else pa.type_for_alias(name or "string")


def table(frame: str, columns: Mapping[str, Any]) -> pa.Table:
    """A frame of columns: arrays, or values."""
    import pyarrow as pa

    found = {}
    for field in schema(frame):
        values = columns[field.name]
        made = isinstance(values, pa.Array | pa.ChunkedArray)
        found[field.name] = values if made else pa.array(values, field.type)
    return pa.table(found)


def table_of(frame: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    found = list(rows)
    return table(frame, {name: [row[name] for row in found] for name in names(frame)})


def records(frame: pa.Table) -> list[Json]:
    """The rows of a frame as JSON holds them: what is a record inside a list becomes a list of its values."""

    import pyarrow as pa

    def plain(name: str, value: Any) -> Any:
        if pa.types.is_map(frame.schema.field(name).type):
            return dict(value)
        if not isinstance(value, list):
            return value
        return [[*item.values()] if isinstance(item, dict) else item for item in value]

    return [{name: plain(name, value) for name, value in row.items()} for row in frame.to_pylist()]
