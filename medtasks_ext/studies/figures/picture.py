"""Pictures of a block: Vega-Lite specs of its cells."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medtasks_ext.atomic import atomic_file, write_text
from medtasks_ext.report.pictures import Kind, Value, looks_of, picture, png, svg, themes

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.studies.figures.spec import Chart, Item
    from medtasks_ext.studies.figures.statistics import Cell

_WIDTH, _TALL = 760, 420
#: of the range of scores: names on the line of the best stand so far below each other
_APART = 0.045
#: of the width: what a name takes
_WIDE = 0.3
#: so few models of a scatter are all named
_FEW = 12
_REST = "published"
#: columns that hold the ends of another one's intervals
_ENDS = (", low", ", high")

_Table = dict[str, dict[str, "Cell"]]
_Drawn = tuple[Kind, list[dict[str, Value]], dict[str, Any]]  # kind, rows and words of a picture


def drawn(item: Item, how: Chart, cells: Sequence[Cell]) -> tuple[Json, str]:
    """The spec of a picture, and its alternative text."""
    kind, rows, words = _scatter(how, cells) if how.kind == "scatter" else _of_table(how, cells)
    # the title stands inside: a picture may be taken out of its page
    caption = _wrapped(f"{item.title} ({item.source})", max(40, int(words.get("width", _WIDTH)) // 7))
    says = f"{item.title}: {words['measure']}. The figures stand in the table beside it."
    return picture(kind, rows, caption=caption, **words), says


def write_pictures(folder: Path, stem: str, item: Item, cells: Sequence[Cell]) -> None:
    """As SVG and PNG."""
    for how in item.pictures:
        content, name = svg(*drawn(item, how, cells)), f"{stem}_{how.name}" if how.name else stem
        write_text(folder / f"{name}.svg", content)
        with atomic_file(folder / f"{name}.png") as image:
            image.write(png(content))


def _of_table(how: Chart, cells: Sequence[Cell]) -> _Drawn:
    names = _lines(how, cells)
    rows = dict(list(names.items())[: how.most])
    if len(rows) < len(names):  # lines that are left out are counted
        how = how.model_copy(update={"measure": f"{how.measure}; the best {len(rows)} of {len(names)}"})
    return (_heat if how.kind == "heat" else _marks)(how, rows, _columns(how, rows))


def _figure(cell: Cell | None) -> float | None:
    """What is drawn of a cell: the recomputed figure, else the printed one."""
    value = None if cell is None else cell.printed if cell.recomputed is None else cell.recomputed
    return value if isinstance(value, float) else None


def table_of(cells: Sequence[Cell]) -> _Table:
    """Row -> column -> cell."""
    table: _Table = {}
    for cell in cells:
        table.setdefault(cell.row, {})[cell.column] = cell
    return table


def _lines(how: Chart, cells: Sequence[Cell]) -> _Table:
    """The lines with figures that are drawn, by the mean of these or as they stand."""
    found: dict[str, tuple[float, dict[str, Cell]]] = {}
    for name, line in table_of(cells).items():
        known = {column: value for column, cell in line.items() if (value := _figure(cell)) is not None}
        if how.columns:
            known = {column: value for column, value in known.items() if column in how.columns}
        values = [value for column, value in known.items() if how.columns or not column.endswith(_ENDS)]
        if known:
            mean = float(np.mean(values)) if values else float("-inf")
            found[name] = (-mean if how.descending else 0.0), line
    return {name: found[name][1] for name in sorted(found, key=lambda name: found[name][0])}


def _columns(how: Chart, rows: _Table) -> list[str]:
    known = dict.fromkeys(
        column for line in rows.values() for column, cell in line.items() if _figure(cell) is not None
    )
    named = how.columns or [column for column in known if column != how.spread and not column.endswith(_ENDS)]
    return [column for column in named if column in known]


def _drawn(rows: _Table, columns: Sequence[str]) -> Iterator[tuple[int, str, str, float]]:
    """Place and name of the line, column, figure."""
    for place, (name, line) in enumerate(rows.items()):
        for column in columns:
            if (value := _figure(line.get(column))) is not None:
                yield place, name, column, value


def _heat(how: Chart, rows: _Table, columns: Sequence[str]) -> _Drawn:
    found: list[dict[str, Value]] = []
    for y, name, column, value in _drawn(rows, columns):
        words, x = f"{value:.{how.digits}f}", columns.index(column)
        found.append({"x": x, "y": y, "value": value, "words": words, "tip": f"{name}\n{column}: {words}"})
    values = [value for *_, value in _drawn(rows, columns)]
    step = max(42, min(96, 900 // len(columns)))
    letters = (step - 6) // 6
    level = max(len(word) for column in columns for word in column.split()) <= letters
    names: list[Any] = [_wrapped(column, letters) for column in columns] if level else list(columns)
    return (
        "heat",
        found,
        {
            "columns": names,
            "lines": list(rows),
            "own": [],
            "step": step,
            "height": 18 if len(rows) > 30 else 24,
            "angle": 0 if level else -40,
            "above": 14 * max(map(len, names)) - 8 if level else 6,
            "gap": 1,
            "numbers": True,
            "domain": [min(values), max(values)],
            "colours": themes()["light"]["sequential"],
            "measure": how.measure,
            "format": f".{how.digits}f",
        },
    )


def _wrapped(name: str, letters: int) -> list[str]:
    return textwrap.wrap(name, letters, break_long_words=False, break_on_hyphens=False)


def _marks(how: Chart, rows: _Table, columns: Sequence[str]) -> _Drawn:
    """Dots, or bars."""
    values: list[dict[str, Value]] = []
    ends: list[float] = []
    for place, name, column, value in _drawn(rows, columns):
        low, high = (_figure(rows[name].get(f"{column}, {end}")) for end in ("low", "high"))
        if how.spread and (spread := _figure(rows[name].get(how.spread))) is not None:
            low, high = value - spread, value + spread
        ends += [end for end in (value, low, high) if end is not None]
        words = f"{value:,.{how.digits}f}"
        tip = f"{name}\n{column}: {words}"
        places = {"line": place, "value": value, "low": low, "high": high}
        values.append({**places, "series": column, "words": words, "tip": tip})
    room = 0.03 * (max(ends) - min(ends) or 1)
    shared = {
        "lines": list(rows),
        "series": list(columns),
        **looks_of(columns),
        "width": _WIDTH,
        "measure": how.measure,
        "legend": {"title": None} if len(columns) > 1 else None,
    }
    if how.kind == "bars":
        return "bars", values, {**shared, "height": 14 * len(columns) + 10, "format": "~s"}
    many, digits = len(rows) > 40, max(how.digits - 1, 0) if max(ends) > 10 else how.digits
    more = {
        "height": (11 if many else 13) * len(columns) + 8,
        "size": 45 if many else 65,
        "domain": [min(ends) - room, max(ends) + room],
        "format": f".{digits}f",
        "zero": min(ends) < 0,
        "origin": 0,
    }
    return "dots", values, shared | more


class _Point(NamedTuple):
    name: str
    x: float | str  # an ISO date, or a figure
    y: float
    kind: str
    place: float  # along the picture


def _scatter(how: Chart, cells: Sequence[Cell]) -> _Drawn:
    points = list(_points(how, table_of(cells)))
    front = _front(points) if how.cheap else []
    spelled = _legible(points, points if len(points) <= _FEW else front)
    rows: list[dict[str, Value]] = [
        {
            "x": point.x,
            "value": point.y,
            "group": point.kind,
            "label": point.name if point.name in spelled else None,
            "tip": f"{point.name}\n{point.x}: {point.y:.{how.digits}f}",
        }
        for point in points
    ]
    groups = [kind for kind in (*how.groups, _REST) if any(point.kind == kind for point in points)]
    words = {
        "width": _WIDTH,
        "tall": _TALL,
        "x_type": "temporal" if how.x == "date" else "quantitative",
        "x_scale": "time" if how.x == "date" else "log" if how.logarithmic else "linear",
        "x_title": how.x_title or how.x,
        "x_format": "%b %Y" if how.x == "date" else ",.0f" if not how.logarithmic else "~g",
        "x_ticks": 7,
        "measure": how.measure,
        "format": f".{how.digits}f",
        "groups": groups,
        **looks_of(groups),
        "legend": {"title": None} if len(groups) > 1 else None,
        "front": [{"x": point.x, "value": point.y} for point in front],
    }
    return "scatter", rows, words


def _points(how: Chart, table: _Table) -> Iterator[_Point]:
    """Sizes are logarithms in a table, and dates numbers of days: people read neither."""
    for name, line in table.items():
        x, y = _figure(line.get(how.x)), _figure(line.get(how.y))
        if x is None or y is None:
            continue
        group = _figure(line.get(how.group)) if how.group else None
        kind = _REST if group is None else how.groups[0 if group else 1]
        said = (
            date.fromordinal(int(x)).isoformat()
            if how.x == "date"
            else round(10**x, 3)
            if how.x == "size"
            else x
        )
        place = float(np.log10(said)) if how.logarithmic and not isinstance(said, str) else x
        yield _Point(name, said, y, kind, place)


def _front(points: Sequence[_Point]) -> list[_Point]:
    """The models that nothing with as little beats, from the least on."""
    front: list[_Point] = []
    for point in sorted(points, key=lambda point: (point.place, -point.y)):
        if not front or point.y > front[-1].y:
            front.append(point)
    return front


def _legible(points: Sequence[_Point], wanted: Sequence[_Point]) -> set[str]:
    """The names that do not lie on each other, from the best on."""
    [high, wide] = [
        max(side) - min(side) for side in zip(*((one.y, one.place) for one in points), strict=True)
    ]
    kept: list[_Point] = []
    for point in sorted(wanted, key=lambda point: -point.y):
        if all(
            abs(one.y - point.y) >= _APART * high or abs(one.place - point.place) > _WIDE * wide
            for one in kept
        ):
            kept.append(point)
    return {point.name for point in kept}
