"""`medtasks study reproduce`: what papers print comes out of their published data."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results import published as reference
from medtasks_ext.studies.figures import figures_of_suites

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
BLOCKS = [(suite, name) for suite, found in figures_of_suites().items() for name in found.items]


def test_the_list_names_what_there_is_and_what_data_cannot_support(medtasks):
    outcome = medtasks("study", "reproduce")
    assert outcome.code == 0
    assert "bridge:tables3  Overall score by strategy (Table S3, Fig. 4a)" in outcome.out
    assert "medhelm:fig1  a drawing" in outcome.out.partition("without data:")[2]
    for name, message in (
        ("helm", "no table or figure is called so"),
        ("medhelm:fig1", "cannot be reproduced"),
    ):
        outcome = medtasks("study", "reproduce", name)
        assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1


def test_all_blocks_are_written_and_the_deviation_is_said(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr("medtasks_ext.cli.reproduce.is_possible", lambda: False)  # pictures are tested below
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


def test_every_benchmark_that_medhelm_published_is_a_dataset_of_the_registry():
    datasets = [item for item in registry().datasets.values() if item.metadata.suite == "medhelm"]
    names = {item.metadata.name for item in datasets if item.of_paper}
    assert names == set(pl.read_csv(REFERENCE / "medhelm_benchmarks.csv")["benchmark"])
