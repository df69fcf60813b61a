"""`medtasks study reproduce`: what papers print comes out of their published data."""

from __future__ import annotations

import csv
import functools
import json
import re
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.cli.reproduce import decimals, text
from medtasks_ext.cli.tables import spread, texts
from medtasks_ext.registry import registry
from medtasks_ext.results import published as reference
from medtasks_ext.stats.agreement import rank_correlation
from medtasks_ext.studies.figures import Data, cells_of, check, figures_of_suites
from medtasks_ext.studies.pictures import drawn
from tests.conftest import PARTS, part_of

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
BLOCKS = [(suite, name) for suite, found in figures_of_suites().items() for name in found.items]


def read(name):
    with (REFERENCE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def data_of(suite):
    tasks = registry()
    return Data.of(tasks, tasks.suites[suite])


def recomputed(suite, name):
    """(row, column) -> recomputed figure."""
    cells = cells_of(figures_of_suites()[suite].items[name], data_of(suite))
    return {(cell.row, cell.column): cell.recomputed for cell in cells}


@pytest.mark.parametrize(("suite", "name"), BLOCKS, ids=lambda part: part)
def test_every_block_has_figures_and_those_that_are_printed_come_out(suite, name):
    item = figures_of_suites()[suite].items[name]
    cells = cells_of(item, data_of(suite))
    assert cells and check(item, cells).off == 0, check(item, cells).words
    if item.printed and item.statistic in ("group_scores", "win_rates"):
        printed = [cell for cell in cells if cell.printed is not None]
        with_row = {row[item.printed.row] for row in read(item.printed.file)}
        assert printed and all(cell.recomputed is not None for cell in printed)
        assert {cell.row for cell in printed} <= with_row


def test_tables_have_all_printed_figures():
    """Three strategies of 95 models; their kinds, languages, specialties, stages, and means of these."""
    sizes = {"tables3": 285, "tables4": 855, "tables5": 950, "tables6": 1235, "tables7": 665}
    for name, size in sizes.items():
        cells = cells_of(figures_of_suites()["bridge"].items[name], data_of("bridge"))
        assert sum(cell.deviation is not None for cell in cells) == size, name
    cells = cells_of(figures_of_suites()["medhelm"].items["table1"], data_of("medhelm"))
    assert sum(cell.deviation is not None for cell in cells) == 36


# ---------------------------------------------------------------- trends and families


def overall():
    """Model of the paper -> mean over its 87 zero-shot scores, from the file."""
    scores: dict[str, list[float]] = {}
    for row in read("bridge_leaderboard.csv"):
        if row["strategy"] == "zero_shot":
            scores.setdefault(row["model"], []).append(float(row["score"]))
    assert {len(values) for values in scores.values()} == {87}
    in_paper = {row["model"] for row in read("bridge_models.csv") if row["in_paper"] == "yes"}
    return {model: float(np.mean(values)) for model, values in scores.items() if model in in_paper}


def test_the_points_of_a_trend_are_the_facts_and_means_of_the_files():
    found, scores = recomputed("bridge", "fig3b"), overall()
    facts = {row["model"]: row for row in read("bridge_models.csv")}
    numbers = {
        "date": lambda row: date.fromisoformat(row["release_date"]).toordinal(),
        "size": lambda row: (
            np.log10(float(row["parameters_b"])) if row["parameters_b"] != "Unknown" else None
        ),
        "score": lambda row: scores[row["model"]],
        "open": lambda row: float(row["access"] == "open"),
        "medical": lambda row: float(row["domain"] == "medical"),
        "reasoning": lambda row: float(row["reasoning"] == "yes"),
    }
    for name, number in numbers.items():
        expected = {model: number(facts[model]) for model in scores}
        shown = {model: value for (model, column), value in found.items() if column == name}
        assert shown == pytest.approx(expected), name
    assert sum(found[model, "size"] is None for model in scores) == 5  # five sizes are not published


points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=30)


@given(points)
def test_a_rank_correlation_is_that_of_ranks_and_knows_no_scale(pairs):
    one, other = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    found = rank_correlation(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
        return
    ranks = [stats.rankdata(side) for side in (one, other)]
    assert found.value == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert rank_correlation(np.exp(one), 3 * other + 1).value == pytest.approx(found.value)
    assert rank_correlation(other, one).interval.low == pytest.approx(found.interval.low)
    back = rank_correlation(-one, other)
    assert back.value == pytest.approx(-found.value)
    assert back.interval.low == pytest.approx(-found.interval.high)


def test_the_interval_of_a_correlation_covers_the_true_one():
    """Bivariate normal: Spearman's is 6 / pi asin(r / 2)."""
    rng, true, inside = np.random.default_rng(1), 6 / np.pi * np.arcsin(0.6 / 2), 0
    for _ in range(500):
        pairs = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 40)
        interval = rank_correlation(*pairs.T).interval
        inside += interval.low <= true <= interval.high
    assert 0.92 < inside / 500 < 0.98


@pytest.mark.parametrize("pair", [([1.0, 2.0], [1.0]), ([1.0, float("nan"), 2.0], [1.0, 2.0, 3.0])])
def test_what_does_not_pair_is_refused(pair):
    with pytest.raises(ValueError):
        rank_correlation(*pair)


# ---------------------------------------------------------------- the command


def test_the_list_names_what_there_is_and_what_data_cannot_support(medtasks):
    outcome = medtasks("study", "reproduce")
    assert outcome.code == 0
    assert "bridge:tables3  Overall score by strategy (Table S3, Fig. 4a)" in outcome.out
    assert "medhelm:fig1  a drawing" in outcome.out.partition("without data:")[2]


def test_all_blocks_are_written_and_the_deviation_is_said(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "medtasks_ext.cli.reproduce.is_possible", lambda: False
    )  # pictures have tests of their own
    outcome = medtasks("study", "reproduce", "all", "-o", "out")
    assert outcome.code == 0 and outcome.out.count("✗") == 0
    assert outcome.out.count("\n") == len(BLOCKS) + 1
    sums = re.search(r"([\d,]+) printed figures: ([\d,]+) come out, 0 do not, ([\d,]+) are rest", outcome.out)
    printed, right, restated = (int(word.replace(",", "")) for word in sums.groups())
    assert printed == right + restated and right > 4000 and restated > 3000
    assert "384 printed figures restated; no data to recompute them from" in outcome.out
    assert "CSV; pictures need" in outcome.err
    folder = tmp_path / "out"
    assert not [*folder.glob("*.svg")]
    assert (
        "bridge:tables3  Overall score by strategy: ✓ 285 of 285 printed figures come out, at most 0.0499"
        in outcome.out
    )
    assert {path.stem for path in folder.glob("*.csv")} == {f"{suite}_{name}" for suite, name in BLOCKS}
    table = pl.read_csv(folder / "bridge_tables4.csv")
    assert (table["printed"] - table["recomputed"]).abs().max() < 0.051


@pytest.mark.parametrize(
    ("name", "words", "marks"),
    [
        ("mlb:table4", ["MedKQA", "Kimi-K2-Instruct"], 60),  # heat: cells with a number each
        ("medhelm:table1", ["DeepSeek R1", "win rate and its standard deviation"], 9),  # dots
        ("bridge:fig3c", ["DeepSeek-R1-Distill-Qwen-1.5B", "parameters in billions"], 7),  # scatter
        ("mlb:table2b", ["Internal Medicine", "722"], 9),  # bars
    ],
)
def test_a_block_is_drawn_as_svg_and_png_with_its_figures(medtasks, tmp_path, name, words, marks):
    pytest.importorskip("vl_convert")
    outcome = medtasks("study", "reproduce", name, "-o", "out")
    assert outcome.code == 0 and "CSV, SVG and PNG" in outcome.err
    stem = tmp_path / "out" / name.replace(":", "_")
    image = ElementTree.parse(stem.with_suffix(".svg")).getroot()
    said = [text.text for text in image.iter("{http://www.w3.org/2000/svg}text")]
    joined = " ".join(filter(None, ("".join(node.itertext()) for node in image.iter())))
    assert all(word in joined for word in words) and said
    drawn = [
        group.findall("{http://www.w3.org/2000/svg}path")
        for group in image.iter("{http://www.w3.org/2000/svg}g")
        if group.get("class", "").startswith(("mark-rect", "mark-symbol"))
    ]
    assert max(map(len, drawn)) == marks
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


@functools.cache
def pictures():
    """(suite, item, how it is drawn, its cells, its spec) of every picture of published figures."""
    found = []
    for suite, name in BLOCKS:
        item = figures_of_suites()[suite].items[name]
        cells = cells_of(item, data_of(suite))
        found += [(suite, item, how, cells, drawn(item, how, cells)[0]) for how in item.pictures]
    return found


def scales_of(part):
    """Every scale of colours with series, in any depth of a spec: (names, colours)."""
    if isinstance(part, list):
        for item in part:
            yield from scales_of(item)
    elif isinstance(part, dict):
        scale = part.get("color", {}).get("scale") if isinstance(part.get("color"), dict) else None
        if scale and all(isinstance(name, str) for name in scale["domain"]):
            yield scale["domain"], scale["range"]
        for item in part.values():
            yield from scales_of(item)


def test_pictures_are_ordered_by_the_mean_and_say_how_many_lines_they_leave_out():
    looked_at = 0
    for suite, item, how, cells, spec in pictures():
        if how.kind != "scatter" and how.descending:
            lines = next(one["value"] for one in spec["params"] if one["name"] == "line_names")
            values = {}
            for row in spec["datasets"]["rows"]:
                values.setdefault(row["y" if how.kind == "heat" else "line"], []).append(row["value"])
            means = [np.mean(values[place]) for place in range(len(lines))]
            assert means == sorted(means, reverse=True), (suite, item.title)
            drawn_of = {cell.row for cell in cells if isinstance(cell.best, float)
                        and (not how.columns or cell.column in how.columns)}  # fmt: skip
            said = re.search(r"the best (\d+) of (\d+)", json.dumps(spec))
            assert (len(lines) < len(drawn_of)) == bool(said), (suite, item.title)
            assert not said or said.groups() == (str(len(lines)), str(len(drawn_of)))
            looked_at += 1
    assert looked_at > 25


def test_a_scale_of_colours_is_one_of_shares_or_one_of_ratings():
    scales = [(low, high) for _, _, how, _, spec in pictures() if how.kind == "heat"
              for low, high in [spec["layer"][0]["encoding"]["color"]["scale"]["domain"]]]  # fmt: skip
    assert len(scales) > 12
    assert not [scale for scale in scales if scale[0] < 1 < scale[1] <= 5]


def test_colours_mean_the_same_in_every_picture():
    known: dict[str, set[str]] = {}
    for *_, spec in pictures():
        for names, colours in scales_of(spec):
            for name, colour in zip(names, colours, strict=False):
                known.setdefault(name, set()).add(colour)
    assert {"zero-shot", "chain of thought", "5-shot", "medical", "general", "open weights"} <= known.keys()
    assert {name: colours for name, colours in known.items() if len(colours) > 1} == {}


@pytest.mark.parametrize("part", PARTS)
def test_no_picture_cuts_a_label(part):
    converter = pytest.importorskip("vl_convert")
    n = 0
    for suite, item, how, _, spec in pictures():
        if part_of(f"{suite} {item.title} {how.name}") == part:
            n += 1
            assert "…" not in converter.vegalite_to_svg(spec), (suite, item.title)
    assert n > 9


def test_the_heat_map_s_numbers_are_the_table_s(medtasks, tmp_path):
    pytest.importorskip("vl_convert")
    medtasks("study", "reproduce", "mlb:table4", "-o", "out")
    image = ElementTree.parse(tmp_path / "out" / "mlb_table4.svg").getroot()
    shown = [text.text for text in image.iter("{http://www.w3.org/2000/svg}text")]
    figures = pl.read_csv(tmp_path / "out" / "mlb_table4.csv")["recomputed"]
    assert len(figures) == 60 and {f"{value:.1f}" for value in figures} <= set(shown)


def test_jury_costs_follow_from_published_tokens_and_prices(medtasks, tmp_path):
    assert medtasks("study", "reproduce", "medhelm:edtable7", "-o", "out").code == 0
    table = pl.read_csv(tmp_path / "out" / "medhelm_edtable7.csv", infer_schema_length=None)
    jury = table.filter(pl.col("column") == "jury")
    assert jury["recomputed"].len() == 9 and (jury["recomputed"] - jury["printed"]).abs().max() < 0.065
    totals = dict(table.filter(pl.col("column") == "total")["row", "recomputed"].rows())
    assert totals["Claude 3.5 Sonnet (20241022)"] == pytest.approx(1572.03)
    assert totals["DeepSeek R1"] == pytest.approx(1849.85)
    assert sum(totals.values()) == pytest.approx(11_825.97)  # as the text says; the printed lines sum to .95


def test_printed_limits_follow_from_the_value_and_the_number_of_answers():
    printed = [row for row in read("medhelm_jury.csv") if row["source_table"] == "ED Table 4" and row["n"]]
    found = recomputed("medhelm", "edtable4")
    assert len(printed) == 9
    for row in printed:
        for limit in ("low", "high"):
            again = found[row["dataset"], f"{row['rater']}, {limit}"]
            assert again == pytest.approx(float(row[f"ci_{limit}"]), abs=0.0056)
    assert found["Combined", "clinician, low"] is None  # of a bootstrap over pairs


def test_a_figure_that_does_not_come_out_is_an_error(medtasks, tmp_path, monkeypatch):
    folder = tmp_path / "reference"
    shutil.copytree(REFERENCE, folder)
    file = folder / "mlb_overall.csv"
    file.write_text(file.read_text().replace("77.288", "78.288"))
    monkeypatch.setattr(reference, "reference_folder", lambda: folder)
    reference.published.cache_clear()
    try:
        outcome = medtasks("study", "reproduce", "mlb:table4")
        assert outcome.code == 1 and "✗ 59 of 60 printed figures come out, at most 1.0000 off" in outcome.out
    finally:
        reference.published.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bridge:table99",), "no table or figure is called so"),
        (("helm",), "no table or figure is called so"),
        (("medhelm:fig1",), "cannot be reproduced: a drawing of the taxonomy"),
    ],
)
def test_a_wrong_argument_gets_one_message(medtasks, arguments, message):
    outcome = medtasks("study", "reproduce", *arguments)
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1


def test_figures_of_a_column_share_their_decimals():
    assert decimals([18.6, 41.0, None, "–"]) == 1 and decimals([163.0, 87.0]) == 0
    assert decimals([0.9, 0.125]) == 3 and decimals([0.12345, 0.5]) == 3 and decimals([12.345]) == 2
    assert decimals([]) == 0 and decimals([None]) == 0
    assert [text(value, 1) for value in (18.6, 41.0, None, "a name")] == ["18.6", "41.0", "–", "a name"]


# Tables of studies: how a cell is written, and how figures stand side by side.


@dataclass
class Row:
    name: str = "a"
    value: float | None = 0.25
    low: float | None = None


@pytest.mark.parametrize(
    ("columns", "row", "cells"),
    [
        ({"a": "{name}"}, Row(), ("a",)),
        ({"a": "{value:.1f}"}, Row(), ("0.2",)),
        ({"a": "{value:.1f}"}, Row(value=None), ("–",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(low=0.1), ("0.25 [0.10]",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(), ("0.25",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(value=None), ("–",)),
    ],
)
def test_a_cell_is_the_first_format_whose_fields_are_all_there(columns, row, cells):
    assert tuple(texts(heading, form).cell(row) for heading, form in columns.items()) == cells


def test_figures_stand_side_by_side_by_what_they_are_of():
    rows = [
        {"of": of, "by": by, "value": value}
        for of, by, value in (("a", "x", 1), ("b", "y", None), ("a", "y", 2))
    ]
    cells, columns = spread(rows, [texts("of")], "by", "{value}")
    assert [column.heading for column in columns] == ["of", "x", "y"]
    assert cells == [("a", "1", "2"), ("b", "–", "–")]
    cells, columns = spread(rows, [texts("of")], "by", "{value}", {"y": "Y", "z": "Z"}, blank="")
    assert [column.heading for column in columns] == ["of", "Y", "Z"]
    assert cells == [("a", "2", ""), ("b", "–", "")]
