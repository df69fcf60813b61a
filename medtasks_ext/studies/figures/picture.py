"""Pictures of a block: Vega-Lite specs of its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.report.pictures.spec import Kind, Value, looks_of, picture, themes

if TYPE_CHECKING:
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


def drawn(item: Item, how: Chart, cells: Sequence[Cell]) -> Iterator[tuple[str, Json, str]]:
    """The drawings of a picture: what their names add to the block's, the spec, the alternative text.

    A matrix with columns on unlike scales, shares of 1 and ratings of 1 to 5, is several pictures: one scale
    of colours would say that 0.9 is less than 2.
    """
    table = [cell for cell in cells if not cell.point]
    scales = _scales(table) if how.kind == "heat" else {}
    parts = [(how.name, how, table)]
    if len(scales) > 1:
        parts = [
            (
                "_".join(filter(None, (how.name, name.replace(" ", "_")))),
                how.model_copy(update={"measure": f"{how.measure}, {name}"}),
                [cell for cell in table if cell.column in columns],
            )
            for name, columns in scales.items()
        ]
    for name, part, some in parts:
        found = _scatter(part, cells) if how.kind == "scatter" else _of_table(part, some)
        if found is not None:
            kind, rows, words = found
            # the title stands inside: a picture may be taken out of its page
            caption = _wrapped(f"{item.title} ({item.source})", max(40, int(words.get("width", _WIDTH)) // 7))
            says = f"{item.title}: {words['measure']}. The figures stand in the table beside it."
            yield name, picture(kind, rows, caption=caption, **words), says


def _of_table(how: Chart, cells: Sequence[Cell]) -> _Drawn | None:
    names = _lines(how, cells)
    rows = dict(list(names.items())[: how.most])
    columns = _columns(how, rows)
    if not rows or not columns:
        return None
    if len(rows) < len(names):  # lines that are left out are counted
        how = how.model_copy(update={"measure": f"{how.measure}; the best {len(rows)} of {len(names)}"})
    return {"heat": _heat, "dots": _dots, "bars": _bars}[how.kind](how, rows, columns)


def _scales(cells: Sequence[Cell]) -> dict[str, set[str]]:
    """Scale -> columns on it, where a table of small figures has columns on several."""
    most: dict[str, float] = {}
    for cell in cells:
        if (value := _figure(cell)) is not None:
            most[cell.column] = max(most.get(cell.column, 0.0), value)
    if not most or max(most.values()) > 5:
        return {}
    shares = {column for column, value in most.items() if value <= 1}
    by_scale = {"0 to 1": shares, "1 to 5": most.keys() - shares}
    return {name: columns for name, columns in by_scale.items() if columns}


def _figure(cell: Cell | None) -> float | None:
    """What is drawn of a cell: the recomputed figure, else the printed one."""
    value = None if cell is None else cell.printed if cell.recomputed is None else cell.recomputed
    return value if isinstance(value, float) else None


def _table(cells: Sequence[Cell]) -> _Table:
    table: _Table = {}
    for cell in cells:
        table.setdefault(cell.row, {})[cell.column] = cell
    return table


def _lines(how: Chart, cells: Sequence[Cell]) -> _Table:
    """The lines with figures that are drawn, by the mean of these or as they stand."""
    found: dict[str, tuple[float, dict[str, Cell]]] = {}
    for name, line in _table(cells).items():
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
    """The figures of a table line by line: place and name of the line, column, figure."""
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
    lines = [""]
    for word in name.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= letters:
            lines[-1] = longer
        else:
            lines.append(word)
    return [line for line in lines if line]


def _dots(how: Chart, rows: _Table, columns: Sequence[str]) -> _Drawn:
    values: list[dict[str, Value]] = []
    ends: list[float] = []
    for place, name, column, value in _drawn(rows, columns):
        low, high = (_figure(rows[name].get(f"{column}, {end}")) for end in ("low", "high"))
        if how.spread and (spread := _figure(rows[name].get(how.spread))) is not None:
            low, high = value - spread, value + spread
        tip = f"{name}\n{column}: {value:.{how.digits}f}"
        ends += [end for end in (value, low, high) if end is not None]
        values.append({"line": place, "series": column, "value": value, "low": low, "high": high, "tip": tip})
    room = 0.03 * (max(ends) - min(ends) or 1)
    return (
        "dots",
        values,
        {
            "lines": list(rows),
            "own": [],
            "series": list(columns),
            **looks_of(columns),
            "width": _WIDTH,
            "height": (11 if len(rows) > 40 else 13) * len(columns) + 8,
            "size": 45 if len(rows) > 40 else 65,
            "domain": [min(ends) - room, max(ends) + room],
            "measure": how.measure,
            "format": f".{max(how.digits - 1, 0)}f" if max(ends) > 10 else f".{how.digits}f",
            "legend": {"title": None} if len(columns) > 1 else None,
            "zero": min(ends) < 0,
            "origin": 0,
        },
    )


def _bars(how: Chart, rows: _Table, columns: Sequence[str]) -> _Drawn:
    values: list[dict[str, Value]] = []
    for place, name, column, value in _drawn(rows, columns):
        words = f"{value:,.{how.digits}f}"
        values.append(
            {"line": place, "series": column, "value": value, "words": words, "tip": f"{name}\n{words}"}
        )
    return (
        "bars",
        values,
        {
            "lines": list(rows),
            "series": list(columns),
            **looks_of(columns),
            "width": _WIDTH,
            "height": 14 * len(columns) + 10,
            "measure": how.measure,
            "format": "~s",
            "legend": {"title": None} if len(columns) > 1 else None,
        },
    )


# ---------------------------------------------------------------------- scatters


@dataclass(frozen=True)
class _Point:
    name: str
    x: float | str  # an ISO date, or a figure
    y: float
    kind: str
    place: float  # along the picture


def _scatter(how: Chart, cells: Sequence[Cell]) -> _Drawn | None:
    points = list(_points(how, _table([cell for cell in cells if cell.point] or cells)))
    if not points:
        return None
    front = _front(points) if how.cheap else []
    spelled = {point.name for point in _legible(points if len(points) <= _FEW else _apart(front, points))}
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
    return (
        "scatter",
        rows,
        {
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
        },
    )


def _points(how: Chart, table: _Table) -> Iterator[_Point]:
    """Sizes are logarithms in a table, and dates numbers of days: people read neither."""
    for name, line in table.items():
        x, y = _figure(line.get(how.x)), _figure(line.get(how.y))
        if x is None or y is None:
            continue
        group = _figure(line.get(how.group)) if how.group else None
        kind = _REST if group is None else how.groups[0 if group else 1]
        if how.x == "date":
            yield _Point(name, date.fromordinal(int(x)).isoformat(), y, kind, x)
        else:
            said = round(10**x, 3) if how.x == "size" else x
            yield _Point(name, said, y, kind, float(np.log10(said)) if how.logarithmic else said)


def _front(points: Sequence[_Point]) -> list[_Point]:
    """The models that nothing with as little beats, from the least on."""
    front: list[_Point] = []
    for point in sorted(points, key=lambda point: (point.place, -point.y)):
        if not front or point.y > front[-1].y:
            front.append(point)
    return front


def _apart(front: Sequence[_Point], points: Sequence[_Point]) -> list[_Point]:
    """Of the line, those whose names have room, from the best on."""
    gap, kept = _gap(points), list[_Point]()
    for point in reversed(front):
        if not kept or kept[-1].y - point.y >= gap:
            kept.append(point)
    return kept


def _legible(points: Sequence[_Point]) -> list[_Point]:
    """Those whose names do not lie on each other's, from the best on."""
    places = [point.place for point in points]
    width = max(places, default=1.0) - min(places, default=0.0) or 1.0
    gap, kept = _gap(points), list[_Point]()
    for point in sorted(points, key=lambda point: -point.y):
        if all(abs(one.y - point.y) >= gap or abs(one.place - point.place) > _WIDE * width for one in kept):
            kept.append(point)
    return kept


def _gap(points: Sequence[_Point]) -> float:
    scores = [point.y for point in points]
    return _APART * (max(scores, default=1.0) - min(scores, default=0.0))
