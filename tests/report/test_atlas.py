"""`medtasks reproduce`: what papers print comes out of their published data; own runs stand beside."""

from __future__ import annotations

import csv
import functools
import json
import re
import shutil
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.registry import registry
from medtasks_ext.results import published as reference
from medtasks_ext.stats.agreement import rank_correlation
from medtasks_lab.atlas.cells import Data
from medtasks_lab.atlas.models import published_models
from medtasks_lab.atlas.picture import drawn, figure
from medtasks_lab.atlas.spec import atlases
from medtasks_lab.atlas.statistics import cells_of, checked, largest_deviation
from medtasks_lab.atlas.write import decimals, text
from tests.conftest import PARTS, part_of, write_jsonl
from tests.report.made import write_run

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
REFERRALS = "medhelm_hospice_referral,medhelm_clinic_referral"
TASK, OTHER = "bridge_mednli", "bridge_rumednli"
BLOCKS = [(suite, name) for suite, atlas in atlases().items() for name in atlas.items]


def read(name):
    with (REFERENCE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def data_of(suite):
    tasks = registry()
    return Data(tasks, tasks.suites[suite], published_models(tasks, tasks.suites[suite]))


def recomputed(suite, name):
    """(row, column) -> recomputed figure."""
    cells = cells_of(atlases()[suite].items[name], data_of(suite))
    return {(cell.row, cell.column): cell.recomputed for cell in cells}


@pytest.mark.parametrize(("suite", "name"), BLOCKS, ids=lambda part: part)
def test_every_block_has_figures_and_those_that_are_printed_come_out(suite, name):
    item = atlases()[suite].items[name]
    cells = cells_of(item, data_of(suite))
    assert checked(item, cells).sound, largest_deviation(cells)
    assert bool(cells) == (item.statistic not in ("departments", "levels"))  # which own runs alone have
    if item.printed and item.statistic in ("group_scores", "win_rates"):
        printed = [cell for cell in cells if cell.printed is not None]
        with_row = {row[item.printed.row] for row in read(item.printed.file)}
        assert printed and all(cell.recomputed is not None for cell in printed)
        assert {cell.row for cell in printed} <= with_row


def test_tables_have_all_printed_figures():
    """Three strategies of 95 models; their kinds, languages, specialties, stages, and means of these."""
    sizes = {"tables3": 285, "tables4": 855, "tables5": 950, "tables6": 1235, "tables7": 665}
    for name, size in sizes.items():
        cells = cells_of(atlases()["bridge"].items[name], data_of("bridge"))
        assert sum(cell.deviation is not None for cell in cells) == size, name
    cells = cells_of(atlases()["medhelm"].items["table1"], data_of("medhelm"))
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


def test_trends_are_scipys_correlations_of_the_files():
    found, scores = recomputed("bridge", "fig3b"), overall()
    facts = {row["model"]: row for row in read("bridge_models.csv")}
    numbers = {
        "date": lambda row: date.fromisoformat(row["release_date"]).toordinal(),
        "size": lambda row: float(row["parameters_b"]) if row["parameters_b"] != "Unknown" else None,
        "open": lambda row: row["access"] == "open",
        "medical": lambda row: row["domain"] == "medical",
        "reasoning": lambda row: row["reasoning"] == "yes",
    }
    for name, number in numbers.items():
        pairs = [(x, y) for model, y in scores.items() if (x := number(facts[model])) is not None]
        expected = stats.spearmanr(*zip(*pairs, strict=True))
        assert found[name, "Spearman"] == pytest.approx(expected.statistic), name
        assert found[name, "p"] == pytest.approx(expected.pvalue) and found[name, "models"] == len(pairs)
        assert found[name, "interval_low"] < found[name, "Spearman"] < found[name, "interval_high"]
    assert found["size", "models"] == 90  # five sizes are not published
    assert found["output_length", "Spearman"] is None


def test_families_are_differences_task_by_task():
    found = recomputed("bridge", "families")
    rows = {
        (row["model"], row["task"]): float(row["score"])
        for row in read("bridge_leaderboard.csv")
        if row["strategy"] == "zero_shot"
    }
    tasks = sorted({task for _, task in rows})
    steps = np.array([rows["medgemma-27b-it", task] - rows["gemma-3-27b-it", task] for task in tasks])
    row = "medgemma-27b-it − gemma-3-27b-it"
    assert found[row, "difference"] == pytest.approx(steps.mean())
    assert found[row, "better on tasks"] == (steps > 0).sum()
    flipped = np.random.default_rng(0).choice([-1, 1], (20_000, len(steps))) @ steps
    assert found[row, "p over tasks"] == pytest.approx(np.mean(abs(flipped) >= abs(steps.sum())), abs=0.01)
    # eleven reasoning variants, all better: the two most extreme of 2^11 patterns of signs
    assert found["reasoning, 11 pairs", "better"] == 11
    assert found["reasoning, 11 pairs", "p over pairs"] == pytest.approx(2 / 2**11)


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
    outcome = medtasks("reproduce")
    assert outcome.code == 0
    assert "bridge:tables3  Overall score by strategy (Table S3, Fig. 4a)" in outcome.out
    assert "medhelm:fig1  a drawing" in outcome.out.partition("without data:")[2]


def test_all_blocks_are_written_and_the_deviation_is_said(medtasks, tmp_path, monkeypatch):
    for room in ("medtasks_lab.atlas.write", "medtasks_lab.cli.reproduce"):
        monkeypatch.setattr(f"{room}.is_possible", lambda: False)  # pictures have tests of their own
    outcome = medtasks("reproduce", "all", "-o", "atlas")
    assert outcome.code == 0 and outcome.out.count("✗") == 1
    assert outcome.out.count("\n") == len(BLOCKS) + 2  # the contradiction, and the sum
    sums = re.search(
        r"([\d,]+) printed figures: ([\d,]+) come out, 1 does not, ([\d,]+) are rest", outcome.out
    )
    printed, right, restated = (int(word.replace(",", "")) for word in sums.groups())
    assert printed == right + 1 + restated and right > 4000 and restated > 3000
    assert "384 printed figures restated; no data to recompute them from" in outcome.out
    assert "CSV and LaTeX, and atlas.parquet; pictures need" in outcome.err
    assert not [*(tmp_path / "atlas").glob("*.svg")]
    assert (
        "bridge:tables3  Overall score by strategy: ✓ 285 of 285 printed figures come out, at most 0.0499"
        in outcome.out
    )
    assert (
        "bridge:claims  Sentences of the text: ✗ 40 of 41 printed figures come out, at most 0.0376 off; "
        "1 contradicts the paper's own data\n"
        "  models that five examples help by more than 20 %: 64 printed, 63 by the published task scores\n"
        in outcome.out
    )
    folder = tmp_path / "atlas"
    assert {path.stem for path in folder.glob("*.csv")} == {f"{suite}_{name}" for suite, name in BLOCKS}
    table = pl.read_csv(folder / "bridge_tables4.csv")
    assert (table["printed"] - table["recomputed"]).abs().max() < 0.051
    everything = pl.read_parquet(folder / "atlas.parquet")
    assert set(everything["item"]) == {f"{suite}:{name}" for suite, name in BLOCKS} - {
        *("mlb:table2", "mlb:difficulty"),  # of own runs alone
    }
    claim = everything.filter((pl.col("item") == "bridge:claims") & (pl.col("row") == "best in French"))
    assert claim["printed_words"].item() == claim["recomputed_words"].item() == "Qwen2.5-72B-Instruct"
    tex = (folder / "medhelm_table1.tex").read_text()
    assert "win\\_rate & win\\_sd" in tex and "DeepSeek R1 & 0.66 & 0.11 & 0.75 & 0.21" in tex


@pytest.mark.parametrize(
    ("name", "words", "marks"),
    [
        ("bridge:map", ["English", "Text classification"], 32),  # heat: cells with a number each
        ("medhelm:table1", ["DeepSeek R1", "win rate and its standard deviation"], 9),  # dots
        ("bridge:fig3c", ["DeepSeek-R1-Distill-Qwen-1.5B", "parameters in billions"], 7),  # scatter
        ("mlb:table2b", ["Internal Medicine", "722"], 9),  # bars
    ],
)
def test_a_block_is_drawn_as_svg_and_png_with_its_figures(medtasks, tmp_path, name, words, marks):
    pytest.importorskip("vl_convert")
    outcome = medtasks("reproduce", name, "-o", "out")
    assert outcome.code == 0 and "CSV, LaTeX, SVG and PNG" in outcome.err
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
    """(suite, item, how it is drawn, its cells, its specs) of every picture of published figures."""
    found = []
    for suite, name in BLOCKS:
        item = atlases()[suite].items[name]
        cells = cells_of(item, data_of(suite))
        for how in item.pictures:
            specs = [drawing.spec for _, drawing in drawn(item, how, cells)]
            found.append((suite, item, how, cells, specs))
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
    for suite, item, how, cells, specs in pictures():
        for spec in specs if how.kind != "scatter" and how.descending else ():
            lines = next(one["value"] for one in spec["params"] if one["name"] == "line_names")
            values = {}
            for row in spec["datasets"]["rows"]:
                values.setdefault(row["y" if how.kind == "heat" else "line"], []).append(row["value"])
            means = [np.mean(values[place]) for place in range(len(lines))]
            assert means == sorted(means, reverse=True), (suite, item.title)
            drawn_of = {cell.row for cell in cells if not cell.point and isinstance(figure(cell), float)
                        and (not how.columns or cell.column in how.columns)}  # fmt: skip
            said = re.search(r"the best (\d+) of (\d+)", json.dumps(spec))
            if len(specs) == 1:
                assert (len(lines) < len(drawn_of)) == bool(said), (suite, item.title)
                assert not said or said.groups() == (str(len(lines)), str(len(drawn_of)))
            looked_at += 1
    assert looked_at > 25


def test_a_scale_of_colours_is_one_of_shares_or_one_of_ratings():
    scales = [(low, high) for _, _, how, _, specs in pictures() for spec in specs if how.kind == "heat"
              for low, high in [spec["layer"][0]["encoding"]["color"]["scale"]["domain"]]]  # fmt: skip
    assert len(scales) > 12
    assert not [scale for scale in scales if scale[0] < 1 < scale[1] <= 5]


def test_colours_mean_the_same_in_every_picture():
    known: dict[str, set[str]] = {}
    for *_, specs in pictures():
        for names, colours in scales_of(specs):
            for name, colour in zip(names, colours, strict=False):
                known.setdefault(name, set()).add(colour)
    assert {"zero-shot", "chain of thought", "5-shot", "medical", "general", "open weights"} <= known.keys()
    assert {name: colours for name, colours in known.items() if len(colours) > 1} == {}
    assert known["proprietary"] == known["closed"]


@pytest.mark.parametrize("part", PARTS)
def test_no_picture_cuts_a_label(part):
    converter = pytest.importorskip("vl_convert")
    n = 0
    for suite, item, _, _, specs in pictures():
        for place, spec in enumerate(specs):
            if part_of(f"{suite} {item.title} {place}") == part:
                n += 1
                assert "…" not in converter.vegalite_to_svg(spec), (suite, item.title)
    assert n > 10


def test_the_heat_map_s_numbers_are_the_table_s(medtasks, tmp_path):
    pytest.importorskip("vl_convert")
    medtasks("reproduce", "mlb:table4", "-o", "out")
    image = ElementTree.parse(tmp_path / "out" / "mlb_table4.svg").getroot()
    shown = [text.text for text in image.iter("{http://www.w3.org/2000/svg}text")]
    figures = pl.read_csv(tmp_path / "out" / "mlb_table4.csv")["recomputed"]
    assert len(figures) == 60 and {f"{value:.1f}" for value in figures} <= set(shown)


def test_own_runs_stand_beside_with_how_many_tasks_they_have(medtasks, tmp_path):
    scores = {TASK: [1.0, 0.0, 1.0, 1.0], OTHER: [1.0, 0.0, 0.0, 0.0], f"{TASK}_cot": [1.0] * 4}
    tokens = {"tokens": {"input": 100, "output": 40}}
    write_run(tmp_path / "run", "Qwen/Qwen2.5-7B-Instruct", scores, record=tokens)
    outcome = medtasks("reproduce", "bridge:tables3", "run", "-o", "out")
    assert outcome.code == 0 and "3 of 3 tasks were asked under other conditions" in outcome.err
    row = next(line for line in outcome.out.splitlines() if "(yours)" in line)
    assert "Qwen/Qwen2.5-7B-Instruct (yours)" in row and "50.0 (2/87 tasks, other conditions)" in row
    own = pl.read_csv(tmp_path / "out" / "bridge_tables3.csv", infer_schema_length=None).filter(
        pl.col("yours").is_not_null()
    )
    assert own["yours"].to_list() == pytest.approx([50, 100]) and own["note"].to_list() == [
        "2/87 tasks, other conditions",
        "1/87 tasks, other conditions",
    ]
    medtasks("reproduce", "bridge:fig3b", "run", "-o", "out")
    points = pl.read_csv(tmp_path / "out" / "bridge_fig3b.csv", infer_schema_length=None).filter(
        pl.col("yours").is_not_null()
    )
    found = dict(zip(points["column"], points["yours"], strict=True))
    assert (
        found["size"] == pytest.approx(np.log10(7)) and found["output_length"] == 10
    )  # 40 tokens of 4 answers
    assert found["score"] == pytest.approx(50)
    # a part of the tasks has no place in the correlation
    assert "0.358" in medtasks("reproduce", "bridge:fig3b", "run").out


def test_a_run_joins_the_win_rates_on_the_benchmarks_that_it_was_asked_alike(medtasks, tmp_path):
    tasks = ("medhelm_medqa", "medhelm_head_qa", "medhelm_medmcqa")
    scores = {name: [1.0] * registry().datasets[name].n_documents for name in tasks}
    write_run(tmp_path / "run", "ORG/best", scores, loaded={"instruction": "official"})
    file = tmp_path / "run" / "tasks" / "medhelm_medqa.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "loaded": {**record["loaded"], "instruction": "own"}}))
    outcome = medtasks("reproduce", "medhelm:table1", "run")
    row = next(line for line in outcome.out.splitlines() if "(yours)" in line)
    assert row.split()[2:5] == ["1.00", "(2/37", "tasks)"] and " 0.66 " in outcome.out
    assert "1 of 3 tasks were asked under other conditions" in outcome.err and "wording in 1" in outcome.err


@pytest.fixture
def two_runs(medtasks, data_dir):
    """The oracle and a guessing model on the same local rows."""
    for name, question in (("hospice_referral", "prompt"), ("clinic_referral", "question")):
        rows = [{question: "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(12)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)
    for model in ("oracle", "random-label"):
        command = ("run", "--model", model, "--tasks", REFERRALS, "--output_path", model)
        assert medtasks(*command).code == 0


SVG = "{http://www.w3.org/2000/svg}"
OWN = "Qwen/Qwen2.5-7B-Instruct"


def texts_of(picture):
    """The texts of an SVG, each once, in their order."""
    nodes = ElementTree.parse(picture).getroot().iter(f"{SVG}text")
    return dict.fromkeys("".join(node.itertext()) for node in nodes)


def marks_of(picture, kind):
    """The paths of an SVG's marks of a kind, those of the legend left out."""
    return [
        path
        for group in ElementTree.parse(picture).getroot().iter(f"{SVG}g")
        if group.get("class", "").startswith(f"mark-{kind} role-mark")
        for path in group.findall(f"{SVG}path")
    ]


def own_figures(folder, block):
    """(row, column) -> (figure of own runs, note)."""
    table = pl.read_csv(folder / f"{block}.csv", infer_schema_length=None)
    own = table.filter(pl.col("yours").is_not_null())
    return {(row["row"], row["column"]): (row["yours"], row["note"]) for row in own.to_dicts()}


def test_detectable_effects_are_of_pairs_of_own_runs(medtasks, two_runs, tmp_path):
    assert medtasks("reproduce", "medhelm:mde", "oracle", "random-label", "-o", "out").code == 0
    found = own_figures(tmp_path / "out", "medhelm_mde")
    documents = [
        [json.loads(line)["score"] for line in (tmp_path / name / file).read_text().splitlines()]
        for file in ("samples_medhelm_hospice_referral.jsonl",)
        for name in ("oracle", "random-label")
    ]
    expected = 2.8 * np.std(np.subtract(*documents)) / np.sqrt(12)
    assert found["HospiceReferral", "of own runs"] == (pytest.approx(expected), "2 runs, n = 12")


def test_costs_are_of_counted_tokens_with_the_bound_beside_them(medtasks, two_runs, tmp_path):
    file = tmp_path / "oracle" / "tasks" / "medhelm_hospice_referral.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "tokens": {"input": 2_000_000, "output": 10_000}}))
    assert medtasks("reproduce", "medhelm:edtable7", "oracle", "--price", "3,15", "-o", "out").code == 0
    found, note = own_figures(tmp_path / "out", "medhelm_edtable7"), "tokens counted in 1 of 2 tasks"
    # 12 answers of at most 4,000 tokens
    assert found["oracle", "benchmarks"] == (pytest.approx(6.72), note)
    assert found["oracle", "used"] == (pytest.approx(6.15), note)
    assert "no price" in medtasks("reproduce", "medhelm:edtable7", "oracle").out


def test_jury_costs_follow_from_published_tokens_and_prices(medtasks, tmp_path):
    assert medtasks("reproduce", "medhelm:edtable7", "-o", "out").code == 0
    table = pl.read_csv(tmp_path / "out" / "medhelm_edtable7.csv", infer_schema_length=None)
    jury = table.filter(pl.col("column") == "jury")
    assert jury["recomputed"].len() == 9 and (jury["recomputed"] - jury["printed"]).abs().max() < 0.065
    totals = dict(table.filter(pl.col("column") == "total")["row", "recomputed"].rows())
    assert totals["Claude 3.5 Sonnet (20241022)"] == pytest.approx(1572.03)
    assert totals["DeepSeek R1"] == pytest.approx(1849.85)
    assert sum(totals.values()) == pytest.approx(11_825.97)  # as the text says; the printed lines sum to .95


def test_own_experts_stand_beside_the_published_ones(medtasks, tmp_path):
    """What `medtasks human ingest` writes of two runs on discharge summaries."""
    rate = {"task": "clinicbench_hospitalization_summarization", "criterion": "factuality", "documents": 100}
    content = {
        "experts": ["a", "b", "c"],
        "runs": [
            {"folder": "x", "model": {"model": "vllm", "model_args": {"pretrained": "ORG/mine"}}},
            {"folder": "y", "model": {"model": "openai-chat-completions", "model_args": {"model": "gpt-4"}}},
        ],
        "tasks": {rate["task"]: {"dataset": rate["task"]}},
        "rates": [{**rate, "by": "mean", "win_tie": 0.62}, {**rate, "by": "majority", "win_tie": 0.7}],
    }
    folder = tmp_path / "experts"
    folder.mkdir()
    (folder / "rates.csv").write_text("task\n")
    (folder / "results.json").write_text(json.dumps(content))
    outcome = medtasks("reproduce", "clinicbench:table4", "experts", "-o", "out")
    assert outcome.code == 0, outcome.err
    found = own_figures(tmp_path / "out", "clinicbench_table4")
    assert found == {
        ("ORG/mine against gpt-4", "factuality"): (pytest.approx(62), "100 documents, 3 experts")
    }
    assert "Meditron-7B" in outcome.out and "64 printed figures" in outcome.out
    assert own_figures_or_none(medtasks, tmp_path, "clinicbench:table4b") == {}
    (folder / "results.json").write_text(json.dumps({**content, "SAMPLE_DATA": True}))
    refused = medtasks("reproduce", "clinicbench:table4", "experts")
    assert refused.code == 2 and "synthetic sample rows" in refused.err and not refused.out
    (folder / "results.json").write_text("{}")
    assert "is no result of a pairwise comparison" in medtasks("reproduce", "all", "experts").err


def own_figures_or_none(medtasks, tmp_path, name):
    assert medtasks("reproduce", name, "experts", "-o", "more").code == 0
    return own_figures(tmp_path / "more", name.replace(":", "_"))


def test_own_runs_stand_beside_instruction_tuning(medtasks, tmp_path):
    # the paper's prompts ask to reason first
    scores = {"clinicbench_medqa_cot": [1.0, 0.0], "clinicbench_pharmacology_qa_cot": [1.0, 1.0]}
    write_run(tmp_path / "run", "ORG/tuned", scores)
    assert medtasks("reproduce", "clinicbench:table5", "run", "-o", "out").code == 0
    found = own_figures(tmp_path / "out", "clinicbench_table5")
    assert found["ORG/tuned", "reasoning"][0] == 50 and found["ORG/tuned", "understanding"][0] == 100
    assert ("ORG/tuned", "generation") not in found
    assert all("tasks" in note for _, note in found.values())  # a part of each scenario


def test_win_rates_stand_beside_the_cost_of_benchmarks_and_jury(medtasks, two_runs, tmp_path):
    file = tmp_path / "oracle" / "tasks" / "medhelm_hospice_referral.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "tokens": {"input": 2_000_000, "output": 10_000}}))
    assert medtasks("reproduce", "medhelm:fig5", "oracle", "--price", "3,15", "-o", "out").code == 0
    table = pl.read_csv(tmp_path / "out" / "medhelm_fig5.csv", infer_schema_length=None)
    of = {(row["row"], row["column"]): row for row in table.to_dicts()}
    assert of["o3-mini (2025-01-31)", "total"]["printed"] == 1761.18
    assert of["o3-mini (2025-01-31)", "win_rate"]["recomputed"] == pytest.approx(0.66, abs=0.005)
    assert of["oracle", "total"]["yours"] == pytest.approx(6.72)
    assert "nothing judged" in of["oracle", "total"]["note"]
    assert (of["oracle", "win_rate"]["yours"], of["oracle", "win_rate"]["note"]) == (None, "other conditions")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("cheap",), "'cheap' is no price"),
        (("-1,2",), "'-1,2' is no price"),
        (("nan,1",), "'nan,1' is no price"),
        (("1,2", "1,2"), "2 prices for 1 run"),
    ],
)
def test_a_wrong_price_is_said_before_anything_is_printed(medtasks, two_runs, given, message):
    prices = [part for price in given for part in ("--price", price)]
    outcome = medtasks("reproduce", "medhelm:edtable7", "oracle", *prices)
    assert outcome.code == 2 and message in outcome.err and not outcome.out


def test_own_questions_have_dimensions_and_departments(medtasks, data_dir, tmp_path):
    rows = [
        {
            "question": f"第{n}题：首选哪一项？",
            "options": ["甲", "乙", "丙", "丁", "戊"],
            "answer": [2],
            "department": "Cardiology" if n < 5 else "Neonatology",
        }
        for n in range(8)
    ]
    write_jsonl(data_dir / "mlb" / "maguidance" / "test.jsonl", rows)
    assert medtasks("run", "--model", "oracle", "--tasks", "mlb_maguidance", "--output_path", "run").code == 0
    assert medtasks("reproduce", "mlb", "run", "-o", "out").code == 0
    found = own_figures(tmp_path / "out", "mlb_table4")
    assert (
        found["oracle", "SmartServ"] == (100, "1/4 tasks, other conditions")
        and found["oracle", "average"][0] == 100
    )
    found = own_figures(tmp_path / "out", "mlb_table2")
    # each question is asked in three orders of its options
    assert found["Internal Medicine, Cardiology", "oracle"] == (1, "1 tasks, 15 documents")
    assert found["Pediatrics", "oracle"] == (1, "1 tasks, 9 documents")


def test_own_runs_are_scored_and_drawn_by_level_of_difficulty(medtasks, data_dir, tmp_path):
    pytest.importorskip("vl_convert")
    levels = ["easy"] * 6 + ["hard"] * 2
    rows = [
        {
            "question": f"第{n}题：首选哪一项？",
            "options": ["甲", "乙", "丙", "丁", "戊"],
            "answer": [n % 5],
            "difficulty": level,
        }
        for n, level in enumerate(levels)
    ]
    write_jsonl(data_dir / "mlb" / "maguidance" / "test.jsonl", rows)
    for model in ("oracle", "random-label"):
        run = ("run", "--model", model, "--tasks", "mlb_maguidance", "--output_path", model)
        assert medtasks(*run).code == 0
    assert medtasks("reproduce", "mlb:difficulty", "oracle", "random-label", "-o", "out").code == 0
    found = own_figures(tmp_path / "out", "mlb_difficulty")
    # each question is asked in three orders of its options
    assert found["oracle", "easy"] == (100, "1 tasks, 18 documents") and found["oracle", "hard"][0] == 100
    shown = texts_of(tmp_path / "out" / "mlb_difficulty.svg")
    assert {"oracle", "random-label", "easy", "hard"} <= shown.keys()
    assert {f"{value:.1f}" for value, _ in found.values()} <= shown.keys()
    # as the report has it
    medtasks("report", "oracle", "random-label", "--published", "none", "-o", "page")
    table = pl.read_csv(tmp_path / "page" / "labels.csv").filter(pl.col("axis") == "difficulty")
    assert {(row["entry"], row["value"]): pytest.approx(100 * row["score"]) for row in table.to_dicts()} == {
        place: value for place, (value, _) in found.items()
    }


@pytest.mark.parametrize(
    ("name", "columns"), [("tables5", {"English", "Russian"}), ("tables3", {"zero-shot"})]
)
def test_own_rows_are_drawn_with_the_figures_of_the_table(medtasks, tmp_path, name, columns):
    """A heat map and dots: what was asked of a part of the tasks alone carries a mark."""
    pytest.importorskip("vl_convert")
    write_run(tmp_path / "run", OWN, {TASK: [1.0, 0.0, 1.0, 1.0], OTHER: [1.0, 0.0, 0.0, 0.0]})
    assert medtasks("reproduce", f"bridge:{name}", "run", "-o", "out").code == 0
    found = own_figures(tmp_path / "out", f"bridge_{name}")
    assert {row for row, _ in found} == {OWN} and {column for _, column in found} >= columns
    shown = texts_of(tmp_path / "out" / f"bridge_{name}.svg")
    assert f"{OWN} *" in shown and any("* see the table's note" in text for text in shown)
    if name == "tables5":
        assert {f"{value:.1f}" for value, _ in found.values()} <= shown.keys()
        table = pl.read_csv(tmp_path / "out" / "bridge_tables5.csv", infer_schema_length=None)
        columns = table["column"].unique(maintain_order=True).to_list()
        assert [text for text in shown if text in columns] == columns  # whatever the run lacks


def test_an_own_point_stands_at_its_score_and_beats_nobody_that_was_asked_more(medtasks, tmp_path):
    pytest.importorskip("vl_convert")
    write_run(tmp_path / "run", OWN, {TASK: [1.0, 1.0, 1.0, 0.0], OTHER: [1.0, 0.0, 1.0, 1.0]})
    assert medtasks("reproduce", "bridge:fig3b", "run", "-o", "out").code == 0
    assert medtasks("reproduce", "bridge:fig3b", "-o", "without").code == 0
    score, note = own_figures(tmp_path / "out", "bridge_fig3b")[OWN, "score"]
    assert (score, note) == (75, "2/87 tasks, other conditions")
    picture = tmp_path / "out" / "bridge_fig3b_size.svg"
    assert f"{OWN} ({note})" in texts_of(picture)
    points = [
        (float(path.get("transform").removesuffix(")").partition(",")[2]), path.get("fill"))
        for path in marks_of(picture, "symbol")
    ]
    table = pl.read_csv(tmp_path / "out" / "bridge_fig3b.csv", infer_schema_length=None).filter("point")
    sized = set(table.filter((pl.col("column") == "size") & pl.col("recomputed").is_not_null())["row"])
    known = table.filter((pl.col("column") == "score") & pl.col("row").is_in(sized) & (pl.col("row") != OWN))
    fills = [fill for _, fill in points]
    [own] = [height for height, fill in points if fills.count(fill) == 1]
    heights = sorted((height for height, fill in points if fills.count(fill) > 1), reverse=True)
    scores = sorted(known["recomputed"].to_list())
    assert len(heights) == len(scores)
    step, start = np.polyfit(scores, heights, 1)  # the height on the page is linear in the score
    assert start + step * 75 == pytest.approx(own, abs=0.01)
    assert np.polyval([step, start], scores) == pytest.approx(heights, abs=0.01)
    # the line of those that nothing smaller beats is that of the published models
    corners = [
        path.get("d").count("L")
        for folder in ("out", "without")
        for path in marks_of(tmp_path / folder / picture.name, "line")
    ]
    assert len(corners) == 2 and corners[0] == corners[1] > 4


def test_a_figure_that_does_not_come_out_is_an_error(medtasks, tmp_path, monkeypatch):
    folder = tmp_path / "reference"
    shutil.copytree(REFERENCE, folder)
    file = folder / "mlb_overall.csv"
    file.write_text(file.read_text().replace("77.288", "78.288"))
    monkeypatch.setattr(reference, "reference_folder", lambda: folder)
    reference.published.cache_clear()
    try:
        outcome = medtasks("reproduce", "mlb:table4")
        assert outcome.code == 1 and "✗ 59 of 60 printed figures come out, at most 1.0000 off" in outcome.out
    finally:
        reference.published.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bridge:table99",), "no table or figure is called so"),
        (("helm",), "no table or figure is called so"),
        (("medhelm:fig1",), "cannot be reproduced: a drawing of the taxonomy"),
        (("all", "nowhere"), "no such folder"),
        (("bridge:tables3", "synthetic"), "synthetic sample rows cannot stand beside published scores"),
    ],
)
def test_a_wrong_argument_gets_one_message(medtasks, tmp_path, arguments, message):
    write_run(tmp_path / "synthetic", "ORG/a", {TASK: [1.0, 0.0]}, sample=True)
    outcome = medtasks("reproduce", *arguments)
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1


def test_figures_of_a_column_share_their_decimals():
    assert decimals([18.6, 41.0, None, "–"]) == 1 and decimals([163.0, 87.0]) == 0
    assert decimals([0.9, 0.125]) == 3 and decimals([0.12345, 0.5]) == 3 and decimals([12.345]) == 2
    assert decimals([]) == 0 and decimals([None]) == 0
    assert [text(value, 1) for value in (18.6, 41.0, None, "a name")] == ["18.6", "41.0", "–", "a name"]
