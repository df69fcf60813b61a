"""`medtasks report`: terminal, tables, and the data of the page."""

import csv
import json
import re
from base64 import b64encode
from hashlib import sha256
from statistics import mean

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from medtasks_ext.registry import registry
from medtasks_ext.report.payload import render
from medtasks_ext.results.document_scores import load_resampled
from medtasks_ext.stats.comparison import compare
from tests.conftest import ROOT
from tests.report.made import data_of, unpacked, write_run

OPEN, GATED, PRIVATE = "bridge_ade_identification", "bridge_c_emrs", "medhelm_hospice_referral"
LETTERS = "medhelm_medqa"
GOOD, FAIR, POOR = [1.0] * 18 + [0.0] * 2, [1.0, 0.0, 1.0, 1.0] * 5, [0.0] * 15 + [1.0] * 5


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path / "a", "ORG/a", {OPEN: GOOD, GATED: GOOD, LETTERS: FAIR, f"{OPEN}_cot": FAIR})
    write_run(tmp_path / "b", "ORG/b", {OPEN: FAIR, GATED: POOR, LETTERS: FAIR})
    return tmp_path


def payload(folder):
    found = data_of(folder / "report.html")
    del found["pictures"]  # specs, the same on every page
    return found


def line(text, *words):
    return next(item for item in text.splitlines() if all(word in item for word in words)).split()


def test_a_run_is_summed_up_by_suite_and_strategy(medtasks, runs):
    outcome = medtasks.done("report", "a", "--published", "none")
    assert line(outcome.out, "BRIDGE, zero-shot")[2:3] == ["0.9000"]
    assert line(outcome.out, "BRIDGE, zero-shot")[-1:] == ["2/87"]
    assert line(outcome.out, f"{OPEN}_cot")[1] == "0.7500"
    assert line(outcome.out, LETTERS)[-1:] == ["1/1"] and "SAMPLE" not in outcome.text


def test_published_models_of_the_suites_stand_beside_it_on_the_same_tasks(medtasks, runs):
    outcome = medtasks("report", "a")
    assert "beside 110 published models" in outcome.out
    with (ROOT / "results/reference/bridge_leaderboard.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["strategy"] == "zero_shot"]
    ours = {registry().datasets[name].metadata.name for name in (OPEN, GATED)}
    models = {row["model"] for row in rows}
    means = [
        mean(float(row["score"]) / 100 for row in rows if row["model"] == model and row["task"] in ours)
        for model in models
    ]
    assert f"{max(means):.4f}" in line(outcome.out, "best published:", "on 2 tasks")


def test_two_models_are_compared_on_shared_resamples(medtasks, runs):
    outcome = medtasks("report", "a", "b", "--published", "none", "--json")
    found = json.loads(outcome.out)
    [pair] = [pair for pair in found["pairs"] if pair["suite"] == "bridge"]
    draws = [
        np.mean([load_resampled(runs / model / "tasks" / f"{task}.npy") for task in (OPEN, GATED)], axis=0)
        for model in "ab"
    ]
    plain = compare((0.9, (0.75 + 0.25) / 2), (draws[0], draws[1]), units=40)
    assert (pair["entry"], pair["minus"], pair["tasks"]) == ("ORG/a", "ORG/b", 2)
    assert pair["difference"] == pytest.approx(plain.difference) and pair["wins"] == 1.0
    assert (pair["low"], pair["high"]) == pytest.approx((plain.interval.low, plain.interval.high))
    one, other = np.array([*GOOD, *GOOD]), np.array([*FAIR, *POOR])  # 40 documents of two tasks of one size
    won, lost = int((one > other).sum()), int((one < other).sum())
    flips = binomtest(won, won + lost).pvalue
    assert pair["p_value"] == pytest.approx(flips, rel=0.3) and flips < 0.05
    assert pair["p_holm"] == 2 * pair["p_value"]  # two suites are one family


def test_entries_on_other_documents_are_not_compared_and_that_is_said(medtasks, runs):
    write_run(runs / "c", "ORG/c", {OPEN: POOR[:10], GATED: POOR}, loaded={"rows_hash": "others"})
    found = json.loads(medtasks("report", "a", "b", "c", "--published", "none", "--json").out)
    pairs = {(pair["suite"], pair["entry"], pair["minus"]) for pair in found["pairs"]}
    assert pairs == {("bridge", "ORG/a", "ORG/b"), ("medhelm", "ORG/a", "ORG/b")}
    assert any("share too few tasks asked alike with others: ORG/c" in text for text in found["differences"])
    assert any("differ in the rows of 2 tasks" in text for text in found["differences"])


def test_synthetic_rows_are_marked_everywhere_and_never_ranked_with_real_ones(medtasks, runs):
    write_run(runs / "s", "ORG/s", {OPEN: POOR, GATED: POOR}, sample=True)
    outcome = medtasks("report", "a", "s", "--published", "none", "-o", "out")
    assert "SAMPLE DATA: some rows are synthetic" in outcome.out
    assert line(outcome.out, "ORG/a", "ORG/s SAMPLE")
    groups = pl.read_csv(runs / "out" / "groups.csv")
    assert set(groups.filter(pl.col("entry") == "ORG/s")["sample"]) == {True}
    assert set(groups.filter(pl.col("entry") == "ORG/a")["sample"]) == {False}
    data = payload(runs / "out")
    assert data["sample"] and [item["sample"] for item in data["entries"]] == [False, True]
    assert data["comparisons"] == []


def test_tables_are_tidy_and_the_same_in_csv_and_parquet(medtasks, runs):
    assert medtasks("report", "a", "b", "-o", "out").code == 0
    results = pl.read_parquet(runs / "out" / "results.parquet")
    own = results.filter(pl.col("kind") != "published")
    assert own.height == 7 * 4 and own.n_unique(["entry", "task", "metric"]) == own.height
    assert results.filter(pl.col("kind") == "published").height == 98 * 87 * 3 + 9 * 37 + 3 * 21
    for name in ("results", "groups"):
        table = pl.read_parquet(runs / "out" / f"{name}.parquet")
        again = pl.read_csv(runs / "out" / f"{name}.csv", schema_overrides=table.schema)
        assert again.equals(table)
        guessed = pl.read_csv(runs / "out" / f"{name}.csv", infer_schema_length=10_000)
        assert guessed.columns == table.columns
        lines = re.findall(r"^\| (`[^|]+`) \|", section(f"`{name}`"), re.M)
        documented = [column for line in lines for column in re.findall(r"`(\w+)`", line)]
        assert documented == table.columns


def section(heading):
    text = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
    return text.partition(f"## {heading}")[2].partition("\n##")[0]


def test_the_page_says_what_the_tables_say(medtasks, runs):
    medtasks("report", "a", "b", "-o", "out")
    data, groups = payload(runs / "out"), pl.read_parquet(runs / "out" / "groups.parquet")
    # of published models, and of means over groups, the page works out the rest
    groups = groups.filter(
        ((pl.col("kind") != "published") | (pl.col("axis") == "suite") | pl.col("tasks_scored").is_null())
        & ~pl.col("value").is_in(["average", "other_specialties", "clinical", "ml"])
    )
    columns, results = unpacked(data["groups"]), unpacked(data["results"])
    filled = {name: values + [None] * (groups.height - len(values)) for name, values in columns.items()}
    assert len(filled["score"]) == groups.height
    for place, row in enumerate(groups.to_dicts()):
        axis = data["axes"][filled["axis"][place]]
        assert (axis["key"], axis["values"][filled["value"][place]][0]) == (row["axis"], row["value"])
        assert filled["suite"][place] == row["suite"]
        assert data["entries"][filled["entry"][place]]["label"] == row["entry"]
        assert filled["score"][place] == pytest.approx(row["score"], abs=1e-5)
    scores = {
        (data["entries"][e]["label"], data["datasets"][d]["id"], data["strategies"][s][0]): score
        for e, d, s, score in zip(
            *(results[name] for name in ("entry", "dataset", "strategy", "score")), strict=True
        )
    }
    assert scores["ORG/b", GATED, "zero_shot"] == 0.25 and len(scores) > 25_000


def test_a_task_without_a_score_says_why(medtasks, tmp_path):
    states = {
        LETTERS: {"state": "missing", "error": f"{LETTERS} (open): from x; files go to y"},
        PRIVATE: {"state": "failed", "error": "KeyError: 'John Doe'"},
        "bridge_meddg": {"state": "failed", "error": "KeyError: 'column'\nmore"},
        "bridge_mts": {"state": "waiting"},
        "bridge_imcs_v2_sr": {"state": "incomplete"},
        "bridge_imcs_v2_mrg": {"state": "waiting"},
    }
    write_run(tmp_path / "a", "ORG/a", {OPEN: GOOD}, states=states)
    outcome = medtasks("report", "a", "--json", "--published", "none")
    found = {gap["task"]: (gap["state"], gap["reason"]) for gap in json.loads(outcome.out)["gaps"]}
    assert found[LETTERS] == ("missing", states[LETTERS]["error"])
    assert found["bridge_meddg"] == ("failed", "KeyError: 'column'")
    assert {found[name][0] for name in ("bridge_mts", "bridge_imcs_v2_sr", "bridge_imcs_v2_mrg")} == {
        "waiting"
    }
    assert found[PRIVATE][0] == "failed"
    assert "John" not in outcome.text
    assert "BRIDGE, zero-shot: 3 waiting, 1 failed" in medtasks("report", "a", "--published", "none").out


def test_tokens_cost_what_the_bundled_configuration_says(medtasks, tmp_path):
    tokens = {"tokens": {"input": 2_000_000, "output": 100_000}}
    write_run(tmp_path / "known", "gpt-4o-2024-08-06", {OPEN: GOOD, GATED: GOOD}, record=tokens)
    write_run(tmp_path / "unknown", "ORG/unknown", {OPEN: GOOD}, record=tokens)
    write_run(tmp_path / "uncounted", "ORG/uncounted", {OPEN: GOOD})
    names = ("known", "unknown", "uncounted")
    found = json.loads(medtasks("report", *names, "--json", "--published", "none").out)["costs"]
    by_model = {item["model"]: item for item in found if item["kind"] != "published"}
    assert by_model["gpt-4o-2024-08-06"]["usd"] == pytest.approx(2 * (2 * 2.5 + 0.1 * 10))
    assert "2 of 2 tasks × 2.5 USD" in by_model["gpt-4o-2024-08-06"]["price"]
    assert by_model["ORG/unknown"]["usd"] is None and "no price" in by_model["ORG/unknown"]["price"]
    assert (by_model["ORG/uncounted"]["usd"], by_model["ORG/uncounted"]["counted"]) == (None, 0)
    helm = json.loads(medtasks("report", "uncounted", "--published", "medhelm", "--json").out)["costs"]
    assert {item["usd"] for item in helm if item["model"] == "Gemini 2.0 Flash"} == {43.1}


@pytest.mark.parametrize(
    "text",
    ["</script><script>window.hit=1</script>", "<!-- <script>", "$title ${script}", "\u2028 \u0000 \\"],
)
def test_the_data_are_inside_as_they_are_and_end_where_they_should(text, tmp_path):
    page = render({"title": text, "entries": [{"label": text}], "response": "cut off: \ud83d"})
    (tmp_path / "report.html").write_text(page, encoding="utf-8")  # half a character stops no file
    found = data_of(tmp_path / "report.html")
    assert (found["entries"], found["response"]) == ([{"label": text}], "cut off: \ud83d")
    assert page.lower().count("</script>") == page.lower().count("<script") == 2
    with pytest.raises(ValueError, match="JSON"):
        render({"title": "A report", "entries": [], "score": float("nan")})


def test_only_the_page_s_own_script_and_style_may_run_and_nothing_is_fetched():
    page = render({"title": "A report", "entries": []})
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[-1]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    without_scripts = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#)|@import|url\(', without_scripts)
