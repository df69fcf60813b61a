"""Frames: the tables that everything reads which shows results. `frames.yaml` has the schema of each.

A frame is an Arrow table. Terminal, CSV, Parquet and the page take their columns from it, and
docs/columns.md lists them as `documented` does.
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

#: Of the frames: it changes when a column goes, or means something else.
SCHEMA = 2
#: Axes that all suites share.
SHARED_AXES = ("language", "task_type", "stage", "specialties", "document_types", "access")


#: Conditions of a result that have a column of their own.
CONDITIONS = (
    "wording source documents_asked decoding generation stop arguments variant brought rounding template "
    "own_template local_template system system_text turns delimiter examples budget:int64 context:int64 "
    "seed:int64 repeats:int64"
)
_DECLARED = read_yaml(Path(__file__).with_suffix(".yaml"))
#: frame -> what a row of it is
ROW_OF: Mapping[str, str] = {frame: said["row"] for frame, said in _DECLARED.items()}
#: frame -> names of columns that stand together in the documentation, and what they mean
FRAMES: Mapping[str, list[tuple[str, str]]] = {
    frame: [(names, meaning) for item in said["columns"] for names, meaning in item.items()]
    for frame, said in _DECLARED.items()
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
    others = (name for frame in with_axes for names in frame if names != "AXES" for name in _names(names))
    taken = {name.partition(":")[0] for name in others}
    for axis in suite.axes:
        if axis in taken:
            yield MedtasksError(
                f"axes.{axis}: tables of results have a column of that name",
                where=suite.file,
                remedy="give the axis another name",
            )


def _names(said: str) -> list[str]:
    return axes() if said == "AXES" else (CONDITIONS if said == "CONDITIONS" else said).split()


def names(frame: str) -> list[str]:
    return [name.partition(":")[0] for said, _ in FRAMES[frame] for name in _names(said)]


def documented(frame: str) -> list[str]:
    found = []
    for said, meaning in FRAMES[frame]:
        listed = ", ".join(f"`{name.partition(':')[0]}`" for name in _names(said))
        found.append(f"| {listed} | {meaning} |")
    return found


def schema(frame: str) -> pa.Schema:
    """The metadata of a column say what it means."""
    return _schema(frame, tuple(axes()))


@lru_cache(maxsize=64)
def _schema(frame: str, _axes: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    fields = []
    for together, meaning in FRAMES[frame]:
        for said in _names(together):
            name, _, kind = said.partition(":")
            fields.append(pa.field(name, _type(kind), metadata={"meaning": meaning}))
    return pa.schema(fields, metadata={"medtasks_schema": str(SCHEMA)})


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    lists = {
        "texts": pa.string(),
        "numbers": pa.float64(),
        "int64s": pa.int64(),
        "scores": pa.struct([("entry", pa.string()), ("score", pa.float64())]),
    }
    if name == "counts":
        return pa.map_(pa.string(), pa.int64())
    if name == "jury":
        spent = {"usd": pa.float64(), "unsure": pa.float64()}
        spent |= dict.fromkeys(("replies", "unpriced", "estimated"), pa.int64())
        return pa.struct(list(spent.items()))
    return pa.list_(lists[name]) if name in lists else pa.type_for_alias(name or "string")


def table(frame: str, columns: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    found = schema(frame)
    arrays = {
        field.name: values
        if isinstance(values := columns[field.name], pa.Array | pa.ChunkedArray)
        else pa.array(values, field.type)
        for field in found
    }
    fields = [field.with_type(arrays[field.name].type) for field in found]
    return pa.table(arrays, schema=pa.schema(fields, metadata=found.metadata))


def table_of(frame: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    found = list(rows)
    return table(frame, {name: [row[name] for row in found] for name in names(frame)})


def records(frame: pa.Table) -> list[Json]:
    """The rows of a frame as JSON holds them: what is a record inside a list becomes a list of its values."""
    import pyarrow as pa

    maps = {field.name for field in frame.schema if pa.types.is_map(field.type)}
    lists = {field.name for field in frame.schema if pa.types.is_list(field.type)}
    rows: list[Json] = frame.to_pylist()
    for row in rows if maps or lists else ():
        row.update({name: dict(row[name]) for name in maps})
        row.update({name: [*map(_values, row[name])] for name in lists if row[name] is not None})
    return rows


def _values(item: Any) -> Any:
    return [*item.values()] if isinstance(item, dict) else item
