"""Pictures of a block: Vega-Lite specs of its cells."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.atomic import atomic_file, write_text
from medtasks_ext.report.pictures import Kind, Value, looks_of, picture, png, svg, themes

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.studies.figures import Cell, Chart, Item

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

_Table = dict[str, dict[str, float]]  # row -> column -> what is drawn: recomputed, else printed
_Drawn = tuple[Kind, list[dict[str, Value]], dict[str, Any]]  # kind, rows and words of a picture


def drawn(item: Item, how: Chart, cells: Sequence[Cell]) -> tuple[Json, str]:
    """The spec of a picture, and its alternative text."""
    figures: _Table = {}
    for cell in cells:
        value = cell.printed if cell.recomputed is None else cell.recomputed
        if isinstance(value, float):
            figures.setdefault(cell.row, {})[cell.column] = value
    kind, rows, words = (_scatter if how.kind == "scatter" else _of_table)(how, figures)
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


def table_of(cells: Sequence[Cell]) -> dict[str, dict[str, Cell]]:
    """Row -> column -> cell."""
    table: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        table.setdefault(cell.row, {})[cell.column] = cell
    return table


def _of_table(how: Chart, table: _Table) -> _Drawn:
    """The lines with figures, by the mean of these or as they stand."""
    means: dict[str, float] = {}
    for name, line in table.items():
        ends = how.columns or [column for column in line if not column.endswith(_ENDS)]
        values = [value for column, value in line.items() if column in ends]
        if values or (line and not how.columns):
            means[name] = float(np.mean(values)) if values else float("-inf")
    order = sorted(means, key=lambda name: -means[name]) if how.descending else list(means)
    rows = {name: table[name] for name in order}
    known = dict.fromkeys(column for line in rows.values() for column in line)
    named = how.columns or [column for column in known if column != how.spread and not column.endswith(_ENDS)]
    return (_heat if how.kind == "heat" else _marks)(how, rows, [name for name in named if name in known])


def _drawn(rows: _Table, columns: Sequence[str]) -> Iterator[tuple[int, str, str, float]]:
    for place, (name, line) in enumerate(rows.items()):
        yield from ((place, name, column, line[column]) for column in columns if column in line)


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
    values: list[dict[str, Value]] = []
    ends: list[float] = []
    for place, name, column, value in _drawn(rows, columns):
        low, high = (rows[name].get(f"{column}, {end}") for end in ("low", "high"))
        if (spread := rows[name].get(how.spread)) is not None:
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
    more = {
        "height": 13 * len(columns) + 8,
        "size": 65,
        "domain": [min(ends) - room, max(ends) + room],
        "format": f".{max(how.digits - 1, 0) if max(ends) > 10 else how.digits}f",
        "zero": min(ends) < 0,
        "origin": 0,
    }
    return "dots", values, shared | more


def _scatter(how: Chart, table: _Table) -> _Drawn:
    """Sizes are logarithms in a table, and dates numbers of days: people read neither."""
    dated, logarithmic, rows = how.x == "date", how.x == "size", list[dict[str, Any]]()
    points: dict[str, tuple[float, float]] = {}  # model -> its place along the picture, its score
    for name, line in table.items():
        x, y = line.get(how.x), line.get(how.y)
        if x is None or y is None:
            continue
        group = line.get(how.group)
        kind = _REST if group is None else how.groups[0 if group else 1]
        said = date.fromordinal(int(x)).isoformat() if dated else round(10**x, 3) if logarithmic else x
        points[name] = x, y
        tip = f"{name}\n{said}: {y:.{how.digits}f}"
        rows.append({"x": said, "value": y, "group": kind, "label": name, "tip": tip})
    front: list[str] = []  # the models that nothing with as little beats, from the least on
    for name, (_, y) in sorted(points.items(), key=lambda point: (point[1][0], -point[1][1])):
        if how.cheap and (not front or y > points[front[-1]][1]):
            front.append(name)
    spelled = _legible(points, list(points) if len(points) <= _FEW else front)
    line_of_best = [{part: row[part] for part in ("x", "value")} for name in front
                    for row in rows if row["label"] == name]  # fmt: skip
    for row in rows:
        row["label"] = row["label"] if row["label"] in spelled else None
    groups = [kind for kind in (*how.groups, _REST) if any(row["group"] == kind for row in rows)]
    words = {
        "width": _WIDTH,
        "tall": _TALL,
        "x_type": "temporal" if dated else "quantitative",
        "x_scale": "time" if dated else "log" if logarithmic else "linear",
        "x_title": how.x_title or how.x,
        "x_format": "%b %Y" if dated else "~g" if logarithmic else ",.0f",
        "x_ticks": 7,
        "measure": how.measure,
        "format": f".{how.digits}f",
        "groups": groups,
        **looks_of(groups),
        "legend": {"title": None} if len(groups) > 1 else None,
        "front": line_of_best,
    }
    return "scatter", rows, words


def _legible(points: Mapping[str, tuple[float, float]], wanted: Sequence[str]) -> list[str]:
    """The names that do not lie on each other, from the best on."""
    [wide, high] = [max(side) - min(side) for side in zip(*points.values(), strict=True)]
    kept: list[str] = []
    for name in sorted(wanted, key=lambda name: -points[name][1]):
        x, y = points[name]
        if all(
            abs(points[one][1] - y) >= _APART * high or abs(points[one][0] - x) > _WIDE * wide for one in kept
        ):
            kept.append(name)
    return kept
