"""`medtasks report`: terminal, tables, and the data of the page."""

import csv
import json
import re
from itertools import product
from statistics import mean

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from medtasks_ext.metrics import meanings, rule
from medtasks_ext.registry import registry
from medtasks_ext.results.document_scores import load_resampled
from medtasks_ext.stats.comparison import compare_resamples
from tests.conftest import ROOT, edited_json
from tests.report.made import answers_of, data_of, unpacked, write_run
from tests.run_files import edited, result_of, write_stored

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
    outcome = medtasks("report", "a", "--strategy", "zero_shot")
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
    plain = compare_resamples((0.9, (0.75 + 0.25) / 2), (draws[0], draws[1]), units=40)
    assert (pair["entry"], pair["minus"], pair["tasks"]) == ("ORG/a", "ORG/b", 2)
    assert pair["difference"] == pytest.approx(plain.difference) and pair["wins"] == 1.0
    assert (pair["low"], pair["high"]) == pytest.approx((plain.interval.low, plain.interval.high))
    one, other = np.array([*GOOD, *GOOD]), np.array([*FAIR, *POOR])  # 40 documents of two tasks of one size
    won, lost = int((one > other).sum()), int((one < other).sum())
    flips = binomtest(won, won + lost).pvalue
    assert pair["p_value"] == pytest.approx(flips, rel=0.3) and flips < 0.05
    assert pair["p_holm"] == 2 * pair["p_value"]  # two suites are one family


def test_two_models_on_few_documents_of_one_task_are_tested_on_these(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {OPEN: [1.0] * 8})
    write_run(tmp_path / "b", "ORG/b", {OPEN: [1.0] * 4 + [0.0] * 4})
    write_run(tmp_path / "c", "ORG/c", {OPEN: [0.5] * 3 + [0.25] * 5})
    found = json.loads(medtasks("report", "a", "b", "c", "--published", "none", "--json").out)
    p_values = {(pair["entry"], pair["minus"]): pair["p_value"] for pair in found["pairs"]}
    assert p_values["ORG/a", "ORG/b"] == binomtest(4, 4).pvalue / 2 == 0.0625  # mid-p
    assert p_values["ORG/a", "ORG/c"] == 2 / 2**8
    flipped = [abs(sum(signs)) for signs in product((2, -2), (2, -2), (2, -2), (3, -3), *[(1, -1)] * 4)]
    assert p_values["ORG/b", "ORG/c"] == mean(total >= 5 for total in flipped)
    [said] = [text for text in found["differences"] if "fewer than 30 documents" in text]
    assert OPEN in said and "p-values by bootstrap that rest on them are too small" in said


def test_entries_on_other_documents_are_not_compared_and_that_is_said(medtasks, runs):
    write_run(runs / "c", "ORG/c", {OPEN: POOR[:10], GATED: POOR}, loaded={"rows_hash": "others"})
    found = json.loads(medtasks("report", "a", "b", "c", "--published", "none", "--json").out)
    pairs = {(pair["suite"], pair["entry"], pair["minus"]) for pair in found["pairs"]}
    assert pairs == {("bridge", "ORG/a", "ORG/b"), ("medhelm", "ORG/a", "ORG/b")}
    assert any("share too few tasks asked alike with others: ORG/c" in text for text in found["differences"])
    assert any("differ in the rows of 2 tasks" in text for text in found["differences"])


def test_the_control_of_a_dataset_decides_nothing_about_which_entries_are_compared(medtasks, tmp_path):
    control = next(item for item in registry().datasets.values() if item.metadata.control_of)
    shared = control.metadata.control_of
    for name, tasks in (("a", [shared, control.id]), ("b", [control.id]), ("c", [shared])):
        write_run(tmp_path / name, f"ORG/{name}", dict.fromkeys(tasks, GOOD))
    found = json.loads(medtasks("report", "a", "b", "c", "--published", "none", "--json").out)
    [pair] = found["pairs"]
    assert (pair["entry"], pair["minus"], pair["tasks"]) == ("ORG/a", "ORG/c", 1)
    assert not any("share too few tasks" in text for text in found["differences"])


def test_documents_that_were_chosen_by_hand_are_compared_by_their_names(medtasks, runs):
    chosen = {"samples": {OPEN: [0, 1]}}
    for name, text in (("c", "text"), ("d", "text"), ("e", "other")):
        write_run(runs / name, f"ORG/{name}", {OPEN: GOOD}, settings=chosen, text=text, loaded={"n_test": 99})
    found = json.loads(medtasks("report", "c", "d", "e", "--published", "none", "--json").out)
    assert [(pair["entry"], pair["minus"]) for pair in found["pairs"]] == [("ORG/c", "ORG/d")]


def test_unlike_tasks_of_an_entry_and_unlike_entries_of_a_model_are_named(medtasks, runs):
    with edited(runs / "b", GATED) as content:
        content["conditions"]["wording"] = "official"
    write_run(runs / "hot", "ORG/b", {OPEN: GOOD}, settings={"gen_kwargs": {"temperature": 1}}, notes=["odd"])
    found = json.loads(medtasks("report", "b", "hot", "--published", "none", "--json").out)
    labels = [entry["entry"] for entry in found["entries"]]
    assert labels == ["ORG/b (generation settings: none)", "ORG/b (generation settings: temperature=1)"]
    assert found["differences"][:2] == [
        f"{labels[0]}: the tasks of BRIDGE, zero-shot differ in wording of the prompt: "
        "own in 1, official in 1",
        "ORG/b: its entries differ in generation settings: – | temperature=1",
    ]
    assert f"{labels[1]}: odd" in found["differences"]


def test_what_is_so_of_several_entries_is_said_once(medtasks, runs):
    for name in ("few", "less"):
        write_run(runs / name, f"ORG/{name}", {OPEN: GOOD}, settings={"limit": 20})
    found = json.loads(medtasks("report", "few", "less", "--published", "none", "--json").out)
    said = "only the first 20 of each task were asked: no scores of whole test sets"
    assert [line for line in found["differences"] if said in line] == [f"ORG/few; ORG/less: {said}"]


def test_a_run_on_some_documents_or_on_rebuilt_rows_is_called_so(medtasks, runs):
    write_run(runs / "few", "ORG/few", {OPEN: GOOD}, settings={"limit": 20}, loaded={"rebuilt": True})
    outcome = medtasks("report", "few", "--published", "none")
    assert "1/1 limited" in outcome.out
    assert "ORG/few: only the first 20 of each task were asked" in outcome.out
    assert f"BRIDGE, zero-shot: rows rebuilt from the source, not the suite's own: {OPEN}" in outcome.out


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


def test_sample_rows_alone_cannot_stand_beside_published_scores(medtasks, tmp_path):
    write_run(tmp_path / "s", "ORG/s", {OPEN: POOR}, sample=True)
    assert "beside" not in medtasks("report", "s").out
    outcome = medtasks("report", "s", "--published", "bridge")
    assert outcome.code == 2 and "cannot stand beside published scores" in outcome.err


def test_the_terminal_is_readable_at_80_columns_and_says_all_in_a_pipe(medtasks, runs, monkeypatch):
    wide = medtasks("report", "a", "b", "--published", "mlb").out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    narrow = re.sub(r"\x1b\[[0-9;]*m", "", medtasks("report", "a", "b", "--published", "mlb").out)
    assert max(map(len, narrow.splitlines())) <= 80
    for text in (wide, narrow):
        assert "0.900 [" in text and "caveats:" in text


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


def test_a_row_says_where_a_number_comes_from(medtasks, runs):
    medtasks("report", "a", "b", "-o", "out", "--published", "none")
    rows = pl.read_parquet(runs / "out" / "results.parquet")
    [row] = rows.filter(entry="ORG/b", task=GATED, metric="score").to_dicts()
    assert (row["value"], row["n"], row["valid"], row["sample"]) == (0.25, 20, 1.0, False)
    assert row["interval_low"] < 0.25 < row["interval_high"]
    assert (row["suite"], row["language"], row["access"], row["task_version"]) == (
        "bridge", "zh", "gated", "1-A",
    )  # fmt: skip
    assert row["specialties"] == "radiology;endocrinology;pulmonology;cardiology;gastroenterology"
    assert (row["prompt"], row["data"]) == ("own p1", "local") and "chat template: no" in row["settings"]


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


def test_answers_and_what_a_task_asks_stand_on_the_page(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {OPEN: [1, 1, 0, 1, -1, 0]})
    medtasks("report", "a", "-o", "out", "--published", "none")
    head = answers_of(tmp_path / "out", OPEN)
    [column] = head["columns"]
    assert head["documents"] == [f"text-id-{number}" for number in range(6)]
    assert column["scores"] == [1, 1, 0, 1, 0, 0] and head["golds"][0] == "text: gold"
    assert [place for place, answer in enumerate(column["answers"]) if answer is None] == [4]
    page = payload(tmp_path / "out")["tasks"][OPEN]
    assert "drawn from the gold labels" in page["rule"] and page["note"] is None
    assert "{{ strategy }}" not in page["prompts"]["cot"]["instruction"]


def test_every_task_and_metric_is_put_into_words():
    datasets = registry().datasets.values()
    assert all(rule(dataset) for dataset in datasets)
    names = {item["metric"] for dataset in datasets for item in dataset.metric_list}
    assert [name for name in sorted(names) if not meanings().get(name)] == []


def test_a_task_without_a_score_says_why(medtasks, tmp_path):
    states = {
        LETTERS: {"state": "missing", "error": f"{LETTERS} (open): from x; files go to y"},
        PRIVATE: {"state": "failed", "error": "KeyError: 'John Doe'"},
        "bridge_meddg": {"state": "failed", "error": "KeyError: 'column'\nmore"},
        "bridge_mts": {"state": "waiting"},
        "bridge_imcs_v2_sr": {"state": "incomplete"},
        "bridge_imcs_v2_mrg": {"state": "answered"},
    }
    write_run(tmp_path / "a", "ORG/a", {OPEN: GOOD}, states=states)
    outcome = medtasks("report", "a", "--json", "--published", "none")
    found = {gap["task"]: (gap["state"], gap["reason"]) for gap in json.loads(outcome.out)["without_score"]}
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
    found = json.loads(medtasks("report", *names, "--json", "--published", "none").out)["entries"]
    by_model = {item["model"]: item for item in found if item["kind"] != "published"}
    assert by_model["gpt-4o-2024-08-06"]["usd"] == pytest.approx(2 * (2 * 2.5 + 0.1 * 10))
    assert "2 of 2 tasks × 2.5 USD" in by_model["gpt-4o-2024-08-06"]["price"]
    assert by_model["ORG/unknown"]["usd"] is None and "no price" in by_model["ORG/unknown"]["price"]
    assert (by_model["ORG/uncounted"]["usd"], by_model["ORG/uncounted"]["tokens"]) == (None, None)
    helm = json.loads(medtasks("report", "uncounted", "--published", "medhelm", "--json").out)["entries"]
    assert {item["usd"] for item in helm if item["model"] == "Gemini 2.0 Flash"} == {43.1}


def test_agreement_of_judges_is_passed_on(medtasks, tmp_path):
    judged = "mlb_generalsafety"
    metrics = {"score": 0.5, "judged": 0.9, "judgements_missing": 3.0, "assessor_kappa": 0.61}
    write_run(tmp_path / "a", "ORG/a", {OPEN: GOOD})
    (tmp_path / "a" / "judgements").mkdir()
    stored = result_of(tmp_path / "a", OPEN)
    other = {**stored, "task": judged, "metrics": {**stored["metrics"], **metrics}, "intervals": {}}
    write_stored(tmp_path / "a", {OPEN: stored, judged: other})
    with edited_json(tmp_path / "a" / "run.json") as manifest:
        manifest["tasks"][judged] = {"state": "done"}
    snapshot = {"judges": [{"name": "one"}, {"name": "two"}], "documents": []}
    (tmp_path / "a" / "judgements" / f"{judged}.json").write_text(json.dumps(snapshot))
    figure = {
        "table": "judges", "task": judged, "between": "one + two", "item": "all axes",
        "measure": "Cohen's kappa", "value": 0.6, "low": None, "high": None, "n": 40,
    }  # fmt: skip
    (tmp_path / "a" / "judgements" / "agreement.json").write_text(json.dumps([figure]))
    assert medtasks("report", "a", "-o", "out", "--published", "none").code == 0
    found = {item["measure"]: item for item in payload(tmp_path / "out")["judges"]}
    assert {name: item["value"] for name, item in found.items()} == {
        "judged": 0.9, "assessor_kappa": 0.61, "Cohen's kappa": 0.6,
    }  # fmt: skip
    assert found["judged"]["judges"] == ["one", "two"] and found["judged"]["missing"] == 3


def test_a_real_run_on_sample_rows_is_reported(medtasks, tmp_path):
    names = f"{OPEN},{GATED},mlb_cmexam,medhelm_aci_bench"
    medtasks("run", "--model", "oracle", "--data", "sample", "--tasks", names, "--output_path", "run")
    outcome = medtasks.done("report", "run", "-o", "out", "--strategy", "zero_shot")
    assert "SAMPLE DATA: synthetic rows, not a result" in outcome.out
    data = payload(tmp_path / "out")
    states = {row["dataset"]: row["state"] for row in data["missing"]}
    by_id = {item["id"]: number for number, item in enumerate(data["datasets"])}
    assert states[by_id["medhelm_aci_bench"]] == "not judged" and by_id[OPEN] not in states
    assert "mlb_cmexam" in data["answers"]["held"]
