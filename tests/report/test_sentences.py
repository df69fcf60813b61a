"""What the papers' pictures say in words follows from their figures, each recomputed from the CSV."""

from __future__ import annotations

import csv
import io
import re
from statistics import median
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import spearmanr

from medtasks_ext.registry import registry
from medtasks_lab.atlas.cells import Cell
from medtasks_lab.atlas.picture import drawn
from medtasks_lab.atlas.spec import AtlasItem, Chart
from medtasks_lab.atlas.write import write_item
from medtasks_lab.site.pictures import Block, blocks

DRAWN = [(block, place) for block in blocks(registry()) for place in range(len(block.drawings))]
of_kinds = {
    kind: pytest.mark.parametrize(
        ("block", "place"),
        [(block, place) for block, place in DRAWN if block.drawings[place].kind in kind.split()],
        ids=lambda item: item.key if isinstance(item, Block) else str(item),
    )
    for kind in ("dots bars", "heat", "scatter")
}


def figures(block: Block, *, point: bool) -> dict[str, dict[str, float]]:
    """Row -> column -> figure, as the CSV has it; the recomputed one where there are two."""
    found: dict[str, dict[str, float]] = {}
    for line in csv.DictReader(io.StringIO(block.csv)):
        try:
            value = float(line["recomputed"] or line["printed"])
        except ValueError:
            continue
        if (line["point"] == "True") == point:
            found.setdefault(line["row"], {})[line["column"]] = value
    return found


def number(text: str) -> float:
    return float(text.replace(",", ""))


def digits_of(text: str) -> int:
    return len(text.partition(".")[2])


def check_ends(said: str, values: dict[str, float], noun: str = r"\w+") -> None:
    """Highest, lowest, median and middle half, as far as they are said, and who has them."""
    high, names = re.search(r"[Hh]ighest ([-\d.,]+), (.+?)(?:; |\. |\.$|$)", said).groups()
    top = max(values.values())
    assert number(high) == pytest.approx(round(top, digits_of(high)))
    first = [name for name, value in values.items() if round(value, digits_of(high)) == number(high)]
    assert all(name in names for name in first) or names.startswith(f"{len(first)} ")
    if low := re.search(r"lowest ([-\d.,]+), (.+?)(?:; |\. |\.$|$)", said):
        assert number(low[1]) == pytest.approx(round(min(values.values()), digits_of(high)))
        assert min(values, key=lambda name: values[name]) in low[2] or re.match(r"\d+ ", low[2])
    else:
        assert len({round(value, digits_of(high)) for value in values.values()}) == 1
    if ahead := re.search(r"; ([\d.,]+) above (.+?); ", said):
        others = sorted({round(value, digits_of(high)) for value in values.values()})
        assert number(ahead[1]) == pytest.approx(others[-1] - others[-2])
    if middle := re.search(rf"median of (\d+) {noun} ([-\d.,]*\d)", said):
        assert int(middle[1]) == len(values) >= 8
        assert number(middle[2]) == pytest.approx(median(values.values()), abs=0.51 * 10 ** -digits_of(high))
    if half := re.search(r"middle half ([-\d.,]*\d) to ([-\d.,]*\d)", said):
        ends = np.percentile([*values.values()], [25, 75])
        assert [number(half[1]), number(half[2])] == pytest.approx(ends, abs=0.51 * 10 ** -digits_of(high))


def most_often(lines: dict[str, dict[str, float]], over: list[str], digits: int) -> tuple[int, list[str]]:
    wins = dict.fromkeys(lines, 0)
    for place in over:
        top = max(round(line[place], digits) for line in lines.values() if place in line)
        for name, line in lines.items():
            wins[name] += place in line and round(line[place], digits) == top
    most = max(wins.values())
    return most, [name for name, n in wins.items() if n == most]


def check_most_often(said: str, lines: dict[str, dict[str, float]], over: list[str], digits: int) -> None:
    names, most, of = re.search(
        r"Most often highest: (.+), (?:each )?(?:for|in) (\d+) of (\d+) ", said
    ).groups()
    n, first = most_often(lines, over, digits)
    assert (int(most), int(of)) == (n, len(over))
    assert names == (" and ".join(first) if len(first) <= 3 else f"{len(first)} {names.split()[1]}")


@of_kinds["dots bars"]
def test_of_dots_and_bars_each_figure_is_that_of_the_csv(block, place):
    drawing, table = block.drawings[place], figures(block, point=False)
    series, digits = drawing.words["series"], next(how.digits for how in block.item.pictures)
    shown = {name: table[name] for name in drawing.words["lines"]}
    columns = {
        column: {name: line[column] for name, line in shown.items() if column in line} for column in series
    }
    for column, values in columns.items():
        said = drawing.says
        if len(series) > 1:
            name = column[:1].upper() + column[1:]
            said = said.partition(f" {name}: ")[2].partition(". ")[0]
        check_ends(said, values)
        if over := re.search(r"interval of the highest overlaps with (\d+) of (\d+)", said):
            best = max(values, key=lambda name: values[name])
            low, high = (table[best][f"{column}, {end}"] for end in ("low", "high"))
            with_ends = [line for name, line in shown.items() if name != best and f"{column}, low" in line]
            n = sum(line[f"{column}, low"] <= high and low <= line[f"{column}, high"] for line in with_ends)
            assert (int(over[1]), int(over[2])) == (n, len(with_ends))
        else:
            assert not any(f"{column}, low" in line for line in shown.values())
        if within := re.search(r"standard deviation below the highest: (\d+) of (\d+)", said):
            best = max(values, key=lambda name: values[name])
            least = values[best] - table[best][block.item.pictures[0].spread]
            n = sum(value >= least for name, value in values.items() if name != best)
            assert (int(within[1]), int(within[2])) == (n, len(values) - 1)
        else:
            assert not block.item.pictures[0].spread
    if len(series) > 1:
        whole = [name for name, line in shown.items() if all(column in line for column in series)]
        check_most_often(drawing.says, columns, whole, digits)
        gaps = re.findall(r"(\d+) in ", drawing.says.partition("without a figure: ")[2])
        assert sum(map(int, gaps)) == sum(len(shown) - len(values) for values in columns.values())
    below = any(value < 0 for values in columns.values() for value in values.values())
    assert ("Above zero" in drawing.says) == below
    if below:
        counts = re.findall(r"(\d+) of (\d+)", drawing.says.partition("Above zero: ")[2])
        assert [(int(n), int(of)) for n, of in counts] == [
            (sum(value > 0 for value in values.values()), len(values)) for values in columns.values()
        ]


@of_kinds["heat"]
def test_of_a_heat_map_each_figure_is_that_of_the_csv(block, place):
    drawing, table = block.drawings[place], figures(block, point=False)
    digits = block.item.pictures[0].digits
    columns = [name if isinstance(name, str) else " ".join(name) for name in drawing.words["columns"]]
    lines = {
        name: {column: table[name][column] for column in columns if column in table[name]}
        for name in drawing.words["lines"]
    }
    means = [name for name in columns if name.lower() == "average"]
    parts = [name for name in columns if name not in means]
    first, _, rest = drawing.says.partition("Most often highest")
    if means:
        check_ends(first.partition("Average: ")[2], {name: line[means[0]] for name, line in lines.items()})
    else:
        assert "highest" not in first
    of_parts = {name: {c: line[c] for c in parts if c in line} for name, line in lines.items()}
    check_most_often(drawing.says, of_parts, parts, digits)
    medians = {name: median(line[name] for line in lines.values() if name in line) for name in parts}
    low, lowest, high, highest = re.search(
        r"Medians of the columns: from ([-\d.,]+) \((.+)\) to ([-\d.,]+) \((.+?)\)\. Single", rest
    ).groups()
    room = 0.51 * 10**-digits
    assert (
        number(low)
        == pytest.approx(min(medians.values()), abs=room)
        == pytest.approx(medians[lowest], abs=room)
    )
    assert (
        number(high)
        == pytest.approx(max(medians.values()), abs=room)
        == pytest.approx(medians[highest], abs=room)
    )
    single = {
        f"{name} in {column}": line[column]
        for name, line in lines.items()
        for column in parts
        if column in line
    }
    check_ends(rest.partition("Single figures: ")[2], single)
    gaps = re.search(r"(\d+) of (\d+) cells have no figure", rest)
    n = len(lines) * len(columns) - sum(map(len, lines.values()))
    assert (n, len(lines) * len(columns)) == (
        tuple(map(int, gaps.groups())) if gaps else (0, len(lines) * len(columns))
    )


@of_kinds["scatter"]
def test_of_a_scatter_each_figure_is_that_of_the_csv(block, place):
    drawing, how = block.drawings[place], block.item.pictures[place]
    table = figures(block, point=True) or figures(block, point=False)
    points = {
        name: (line[how.x], line[how.y]) for name, line in table.items() if how.x in line and how.y in line
    }
    assert len(points) == len(drawing.rows)
    heights = {name: y for name, (_, y) in points.items()}
    check_ends(drawing.says, heights)
    rho, n = re.search(r"Rank correlation with .+?: (-?[\d.]+) over (\d+) ", drawing.says).groups()
    assert float(rho) == pytest.approx(spearmanr(*zip(*points.values(), strict=True))[0], abs=0.0051)
    assert int(n) == len(points)
    if how.group:
        said = drawing.says.partition("Medians: ")[2].partition(". ")[0]
        for value, name in zip((1.0, 0.0), how.groups, strict=True):
            some = [heights[one] for one in points if table[one][how.group] == value]
            middle, count = re.search(rf"{name} ([\d.]+) \((\d+)\)", said).groups()
            assert int(count) == len(some)
            assert float(middle) == pytest.approx(median(some), abs=0.51 * 10**-how.digits)
    joined = re.search(r"The line joins the (\d+) ", drawing.says)
    assert bool(joined) == how.cheap
    if joined:
        assert int(joined[1]) == sum(
            all(y > other for name2, (x2, other) in points.items() if name2 != name and x2 <= x)
            for name, (x, y) in points.items()
        )
    without = sum(how.y in line and how.x not in line for line in table.values())
    assert (f"{without} models without" in drawing.says) == bool(without)


def test_every_picture_of_published_figures_says_something_of_its_own():
    assert len(DRAWN) >= 46 and len({block.drawings[place].says for block, place in DRAWN}) == len(DRAWN)
    for block, place in DRAWN:
        says = block.drawings[place].says
        assert 40 < len(says) < 900 and not re.search(r"\bbest\b(?! \d+ of)|\bbetter\b|nan|None", says), says


def test_own_runs_are_named_with_what_keeps_them_apart_and_take_no_part():
    item = AtlasItem(title="T", source="S", statistic="group_scores")
    cells = [Cell(name, "score", recomputed=value) for name, value in (("A", 10.0), ("B", 20.0))]
    cells += [Cell("mine", "score", recomputed=90.0, own=True, note="other conditions: wording")]
    for kind in ("dots", "bars", "heat"):
        [(_, drawing)] = drawn(item, Chart(kind=kind), cells)
        assert "highest 20.0, B" in drawing.says.replace("Highest", "highest")
        assert "90.0" not in drawing.says
        assert drawing.says.endswith("Own runs beside: mine (other conditions: wording).")


def test_a_saved_picture_carries_its_words_for_readers_of_screens(tmp_path):
    pytest.importorskip("vl_convert")
    block = next(block for block in blocks(registry()) if block.key == "bridge:fig2kind")
    files = write_item(tmp_path, block.key, block.item, block.cells)
    [vector] = [file for file in files if file.suffix == ".svg"]
    root = ElementTree.parse(vector).getroot()
    assert root.get("role") == "img"
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == block.drawings[0].says


def test_equal_figures_are_called_equal_and_no_difference_is_said():
    item = AtlasItem(title="T", source="S", statistic="group_scores")
    cells = [Cell(name, "score", recomputed=value) for name, value in (("A", 20.01), ("B", 20.0), ("C", 3.0))]
    [(_, drawing)] = drawn(item, Chart(kind="bars"), cells)
    assert drawing.says == "Score. Highest 20.0, A and B; lowest 3.0, C."
