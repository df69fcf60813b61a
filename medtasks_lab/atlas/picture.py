"""Pictures of a block of the atlas: their kinds, rows and words, and Vega-Lite specs of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.report.pictures.spec import Kind, Value, looks_of, picture, themes
from medtasks_lab.atlas.sentences import Group, Series, of_matrix, of_points, of_series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_lab.atlas.cells import Cell
    from medtasks_lab.atlas.spec import AtlasItem, Chart

_WIDTH, _TALL = 760, 420
#: of the range of scores: names on the line of the best stand so far below each other
_APART = 0.045
#: of the width: what a name takes
_WIDE = 0.3
#: so few models of a scatter are all named
_FEW = 12
_OWN, _REST = "own run", "published"
#: columns that hold the ends of another one's intervals
_ENDS = (", low", ", high")

Table = dict[str, dict[str, "Cell"]]


@dataclass(frozen=True)
class Drawing:
    """One picture."""

    kind: Kind
    rows: list[dict[str, Value]]
    words: dict[str, Any]
    says: str  # what one sees, in words: its alternative text

    @property
    def spec(self) -> Json:
        """As Vega-Lite takes it."""
        return picture(self.kind, self.rows, **self.words)


def _drawing(item: AtlasItem, kind: Kind, rows: list[dict[str, Value]], says: str, **words: Any) -> Drawing:
    """A picture with its title inside: it may be taken out of its page."""
    room = max(40, int(words.get("width", _WIDTH)) // 7)
    return Drawing(kind, rows, {"caption": _wrapped(f"{item.title} ({item.source})", room), **words}, says)


def drawn(item: AtlasItem, how: Chart, cells: Sequence[Cell]) -> list[tuple[str, Drawing]]:
    """The drawings of a picture, with what their names add to the block's.

    Empty where there is nothing to draw, such as a block of own runs without one. A matrix with columns on
    unlike scales, shares of 1 and ratings of 1 to 5, is several pictures: one scale of colours would say that
    0.9 is less than 2.
    """
    if how.kind == "scatter":
        spec = _scatter(item, how, cells)
        return [] if spec is None else [(how.name, spec)]
    table = [cell for cell in cells if not cell.point]
    scales = _scales(table) if how.kind == "heat" else {}
    if len(scales) < 2:
        spec = _of_table(item, how, table)
        return [] if spec is None else [(how.name, spec)]
    specs = []
    for name, columns in scales.items():
        part = how.model_copy(update={"measure": f"{how.measure}, {name}"})
        spec = _of_table(item, part, [cell for cell in table if cell.column in columns])
        if spec is not None:
            specs.append(("_".join(filter(None, (how.name, name.replace(" ", "_")))), spec))
    return specs


def _of_table(item: AtlasItem, how: Chart, cells: Sequence[Cell]) -> Drawing | None:
    every = len(
        {
            cell.row
            for cell in cells
            if figure(cell) is not None and not cell.own and (not how.columns or cell.column in how.columns)
        }
    )
    rows = _lines(how, cells)
    columns = _columns(how, rows)
    if not rows or not columns:
        return None
    shown = sum(not _is_own(line) for line in rows.values())
    if shown < every:  # lines that are left out are counted
        how = how.model_copy(update={"measure": f"{how.measure}; the best {shown} of {every}"})
    make = {"heat": _heat, "dots": _dots, "bars": _bars}[how.kind]
    return make(item, how, rows, columns)


def _scales(cells: Sequence[Cell]) -> dict[str, set[str]]:
    """Scale -> columns on it, where a table of small figures has columns on several."""
    most: dict[str, float] = {}
    for cell in cells:
        if (value := figure(cell)) is not None:
            most[cell.column] = max(most.get(cell.column, 0.0), value)
    if not most or max(most.values()) > 5:
        return {}
    shares = {column for column, value in most.items() if value <= 1}
    by_scale = {"0 to 1": shares, "1 to 5": most.keys() - shares}
    return {name: columns for name, columns in by_scale.items() if columns}


def figure(cell: Cell | None) -> float | None:
    """What is drawn of a cell: the recomputed figure, else the printed one."""
    value = None if cell is None else cell.printed if cell.recomputed is None else cell.recomputed
    return value if isinstance(value, float) else None


def _table(cells: Sequence[Cell]) -> Table:
    table: Table = {}
    for cell in cells:
        table.setdefault(cell.row, {})[cell.column] = cell
    return table


def _is_own(line: Mapping[str, Cell]) -> bool:
    return any(cell.own for cell in line.values())


def _note(line: Mapping[str, Cell]) -> str:
    """What keeps an own line from standing beside published ones as if alike; empty where nothing does."""
    return next((cell.note for cell in line.values() if cell.own and cell.note), "")


def _marked(how: Chart, rows: Table) -> tuple[list[str], str]:
    """Names of lines and the measure; own lines with a note are marked, where published ones stand beside."""
    noted = {name for name, line in rows.items() if _note(line)}
    if not noted or len(_own_places(rows)) == len(rows):
        return list(rows), how.measure
    return [f"{name} *" if name in noted else name for name in rows], f"{how.measure}; * see the table's note"


def _lines(how: Chart, cells: Sequence[Cell]) -> Table:
    """Own lines first, then the others, by the mean of their figures that are drawn or as they stand."""
    table = _table(cells)

    def place(name: str) -> tuple[bool, float]:
        line = table[name]
        values = [
            value
            for column, cell in line.items()
            if (value := figure(cell)) is not None
            and (column in how.columns if how.columns else not column.endswith(_ENDS))
        ]
        mean = float(np.mean(values)) if values else float("-inf")
        return not _is_own(line), -mean if how.descending else 0.0

    names = [
        name
        for name in sorted(table, key=place)
        if any(
            figure(cell) is not None and (not how.columns or column in how.columns)
            for column, cell in table[name].items()
        )
    ]
    own = [name for name in names if _is_own(table[name])]
    return {name: table[name] for name in dict.fromkeys([*own, *names[: how.most]])}


def _columns(how: Chart, rows: Table) -> list[str]:
    known = dict.fromkeys(
        column
        for line in sorted(rows.values(), key=_is_own)  # own lines last: a run may lack columns
        for column, cell in line.items()
        if figure(cell) is not None
    )
    named = how.columns or [column for column in known if column != how.spread and not column.endswith(_ENDS)]
    return [column for column in named if column in known]


def _own_places(rows: Table) -> list[int]:
    return [place for place, line in enumerate(rows.values()) if _is_own(line)]


def _drawn(rows: Table, columns: Sequence[str]) -> Iterator[tuple[int, str, str, float]]:
    """The figures of a table line by line: place and name of the line, column, figure."""
    for place, (name, line) in enumerate(rows.items()):
        for column in columns:
            if (value := figure(line.get(column))) is not None:
                yield place, name, column, value


def _heat(item: AtlasItem, how: Chart, rows: Table, columns: Sequence[str]) -> Drawing:
    found: list[dict[str, Value]] = []
    for y, name, column, value in _drawn(rows, columns):
        words, x = f"{value:.{how.digits}f}", columns.index(column)
        found.append({"x": x, "y": y, "value": value, "words": words, "tip": f"{name}\n{column}: {words}"})
    values = [value for *_, value in _drawn(rows, columns)]
    step = max(42, min(96, 900 // len(columns)))
    letters = (step - 6) // 6
    level = max(len(word) for column in columns for word in column.split()) <= letters
    names: list[Any] = [_wrapped(column, letters) for column in columns] if level else list(columns)
    lines, measure = _marked(how, rows)
    return _drawing(
        item,
        "heat",
        found,
        _seen(
            how,
            rows,
            of_matrix(_figures(rows, columns), columns, _average(item, columns), _noun(item), how.digits),
        ),
        columns=names,
        lines=lines,
        own=_own_places(rows),
        step=step,
        height=18 if len(rows) > 30 else 24,
        angle=0 if level else -40,
        above=14 * max(map(len, names)) - 8 if level else 6,
        gap=1,
        numbers=True,
        domain=[min(values), max(values)],
        colours=themes()["light"]["sequential"],
        measure=measure,
        format=f".{how.digits}f",
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


def _dots(item: AtlasItem, how: Chart, rows: Table, columns: Sequence[str]) -> Drawing:
    values: list[dict[str, Value]] = []
    ends: list[float] = []
    for place, name, column, value in _drawn(rows, columns):
        low, high = (figure(rows[name].get(f"{column}, {end}")) for end in ("low", "high"))
        if how.spread and (spread := figure(rows[name].get(how.spread))) is not None:
            low, high = value - spread, value + spread
        tip = f"{name}\n{column}: {value:.{how.digits}f}"
        ends += [end for end in (value, low, high) if end is not None]
        values.append({"line": place, "series": column, "value": value, "low": low, "high": high, "tip": tip})
    room = 0.03 * (max(ends) - min(ends) or 1)
    lines, measure = _marked(how, rows)
    return _drawing(
        item,
        "dots",
        values,
        _seen(how, rows, of_series(_series(how, rows, columns), _noun(item), how.digits)),
        lines=lines,
        own=_own_places(rows),
        series=list(columns),
        **looks_of(columns),
        width=_WIDTH,
        height=(11 if len(rows) > 40 else 13) * len(columns) + 8,
        size=45 if len(rows) > 40 else 65,
        domain=[min(ends) - room, max(ends) + room],
        measure=measure,
        format=f".{max(how.digits - 1, 0)}f" if max(ends) > 10 else f".{how.digits}f",
        legend={"title": None} if len(columns) > 1 else None,
        zero=min(ends) < 0,
        origin=0,
    )


def _bars(item: AtlasItem, how: Chart, rows: Table, columns: Sequence[str]) -> Drawing:
    values: list[dict[str, Value]] = []
    for place, name, column, value in _drawn(rows, columns):
        words, tip = f"{value:,.{how.digits}f}", f"{name}\n{value:,.{how.digits}f}"
        values.append({"line": place, "series": column, "value": value, "words": words, "tip": tip})
    return _drawing(
        item,
        "bars",
        values,
        _seen(how, rows, of_series(_series(how, rows, columns), _noun(item), how.digits)),
        lines=list(rows),
        series=list(columns),
        **looks_of(columns),
        width=_WIDTH,
        height=14 * len(columns) + 10,
        measure=how.measure,
        format="~s",
        legend={"title": None} if len(columns) > 1 else None,
    )


# ---------------------------------------------------------------------- what one sees, in words

#: what makes figures of models, whatever the paper's table is of
_OF_MODELS = ("group_scores", "win_rates", "trends", "costs", "gains", "joined", "file_means")


def _noun(item: AtlasItem) -> str:
    rows = item.printed.row if item.printed else ""
    return "models" if item.statistic in _OF_MODELS or rows == "model" else "rows"


def _average(item: AtlasItem, columns: Sequence[str]) -> str:
    return next((name for name in columns if name == item.average or name.lower() == "average"), "")


def _others(rows: Table) -> Table:
    """Published lines; where there are none, the own ones."""
    return {name: line for name, line in rows.items() if not _is_own(line)} or rows


def _figures(rows: Table, columns: Sequence[str]) -> dict[str, dict[str, float]]:
    others = _others(rows)
    found: dict[str, dict[str, float]] = {name: {} for name in others}
    for _, name, column, value in _drawn(others, columns):
        found[name][column] = value
    return found


def _series(how: Chart, rows: Table, columns: Sequence[str]) -> list[Series]:
    some, found = _others(rows), []
    for column in columns:
        values, ends, spreads = {}, {}, {}
        for name, line in some.items():
            if (value := figure(line.get(column))) is None:
                continue
            values[name] = value
            low, high = (figure(line.get(f"{column}, {end}")) for end in ("low", "high"))
            if low is not None and high is not None:
                ends[name] = (low, high)
            if how.spread and (spread := figure(line.get(how.spread))) is not None:
                spreads[name] = spread
        found += [Series(column, values, ends, spreads)] if values else []
    return found


def _seen(how: Chart, rows: Table, words: str) -> str:
    own = {name: _note(line) for name, line in rows.items() if _is_own(line)}
    beside = own if len(own) < len(rows) else {}
    return _with_own(how.measure, words, beside)


def _with_own(measure: str, words: str, own: Mapping[str, str]) -> str:
    """The words, what they measure before them, own lines behind; no own line is compared."""
    named = [f"{name} ({note})" if note else name for name, note in own.items()]
    return f"{measure[:1].upper()}{measure[1:]}. {words}" + (
        f" Own runs beside: {', '.join(named)}." if named else ""
    )


def _seen_of_points(
    item: AtlasItem, how: Chart, cells: Sequence[Cell], points: Sequence[_Point], front: Sequence[str]
) -> str:
    own = {point.name: point.note for point in points if point.kind == _OWN}
    some = [point for point in points if point.kind != _OWN] or points
    kinds = [kind for kind in (_OWN, *how.groups, _REST) if any(point.kind == kind for point in some)]
    groups = [
        Group(
            kind,
            {
                point.name: (_along(point.x), _place(how, point), point.y)
                for point in some
                if point.kind == kind
            },
        )
        for kind in kinds
    ]
    table = _table([cell for cell in cells if cell.point] or list(cells))
    without = sum(
        figure(line.get(how.y)) is not None and figure(line.get(how.x)) is None for line in table.values()
    )
    x = (how.x_title or how.x).removesuffix(", logarithmic")
    words = of_points(groups, front, x, _noun(item), how.digits, n_without=without)
    return _with_own(how.measure, words, own if len(some) < len(points) else {})


def _along(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:,.0f}" if x >= 1000 else f"{x:g}"


# ---------------------------------------------------------------------- scatters


@dataclass(frozen=True)
class _Point:
    name: str
    x: float | str  # an ISO date, or a figure
    y: float
    kind: str
    note: str  # what keeps it from standing beside the others as if alike

    @property
    def label(self) -> str:
        """Its name, with its note."""
        return f"{self.name} ({self.note})" if self.note else self.name


def _scatter(item: AtlasItem, how: Chart, cells: Sequence[Cell]) -> Drawing | None:
    points = _points(how, [cell for cell in cells if cell.point] or list(cells))
    if not points:
        return None
    front = _front([point for point in points if not point.note]) if how.cheap else []
    wanted = points if len(points) <= _FEW else _apart(front, points)
    spelled = {point.name for point in _legible(how, wanted)}
    rows: list[dict[str, Value]] = [
        {
            "x": point.x,
            "value": point.y,
            "group": point.kind,
            "label": point.label if point.kind == _OWN or point.name in spelled else None,
            "tip": f"{point.label}\n{point.x}: {point.y:.{how.digits}f}",
        }
        for point in points
    ]
    groups = [kind for kind in (_OWN, *how.groups, _REST) if any(point.kind == kind for point in points)]
    return _drawing(
        item,
        "scatter",
        rows,
        _seen_of_points(item, how, cells, points, [point.name for point in front]),
        width=_WIDTH,
        tall=_TALL,
        x_type="temporal" if how.x == "date" else "quantitative",
        x_scale="time" if how.x == "date" else "log" if how.logarithmic else "linear",
        x_title=how.x_title or how.x,
        x_format="%b %Y" if how.x == "date" else ",.0f" if not how.logarithmic else "~g",
        x_ticks=7,
        measure=how.measure,
        format=f".{how.digits}f",
        groups=groups,
        **looks_of(groups),
        legend={"title": None} if len(groups) > 1 else None,
        front=[{"x": point.x, "value": point.y} for point in front],
    )


def _points(how: Chart, cells: Sequence[Cell]) -> list[_Point]:
    points = []
    for name, line in _table(cells).items():
        x, y = figure(line.get(how.x)), figure(line.get(how.y))
        if x is None or y is None:
            continue
        group = figure(line.get(how.group)) if how.group else None
        kind = _REST if group is None else how.groups[0 if group else 1]
        own = _is_own(line)
        points.append(_Point(name, _readable(how.x, x), y, _OWN if own else kind, _note(line)))
    return points


def _readable(name: str, value: float) -> float | str:
    """A covariate as people read it: sizes are logarithms there, and dates numbers of days."""
    if name == "size":
        return round(10**value, 3)
    return date.fromordinal(int(value)).isoformat() if name == "date" else value


def _front(points: Sequence[_Point]) -> list[_Point]:
    """The models that nothing with as little beats, from the least on."""
    front: list[_Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not front or point.y > front[-1].y:
            front.append(point)
    return front


def _apart(front: Sequence[_Point], points: Sequence[_Point]) -> list[_Point]:
    """Of the line, those whose names have room, from the best on."""
    scores = [point.y for point in points]
    gap, kept = _APART * (max(scores) - min(scores)), list[_Point]()
    for point in reversed(front):
        if not kept or kept[-1].y - point.y >= gap:
            kept.append(point)
    return kept


def _legible(how: Chart, points: Sequence[_Point]) -> list[_Point]:
    """Those whose names do not lie on each other's, from the best on."""
    places = [_place(how, point) for point in points]
    width = max(places, default=1.0) - min(places, default=0.0) or 1.0
    scores = [point.y for point in points]
    gap, kept = _APART * (max(scores, default=1.0) - min(scores, default=0.0)), list[_Point]()
    for point in sorted(points, key=lambda point: -point.y):
        if all(
            abs(other.y - point.y) >= gap or abs(_place(how, other) - _place(how, point)) > _WIDE * width
            for other in kept
        ):
            kept.append(point)
    return kept


def _place(how: Chart, point: _Point) -> float:
    """Where a point stands along the picture."""
    if isinstance(point.x, str):
        return float(date.fromisoformat(point.x).toordinal())
    return float(np.log10(point.x)) if how.logarithmic else point.x
