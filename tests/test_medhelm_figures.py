"""MedHELM's published tables follow from its published scores, prices and token counts."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from medtasks_ext.judge.jury import jury_cost_bound
from medtasks_ext.registry import registry
from medtasks_ext.results.prices import JudgePrice, Price
from medtasks_ext.suites.medhelm_figures import suite_figures
from medtasks_ext.suites.scores import normalised

REFERENCE = Path(__file__).resolve().parents[1] / "results" / "reference"


def read(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_jury(row: dict[str, str]) -> bool:
    return row["metric"] == "Jury Score"


def scores() -> dict[str, dict[str, float]]:
    """Model -> benchmark -> normalised score."""
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for row in read("medhelm_scores.csv"):
        value = float(row["score"])
        table[row["model"]][row["benchmark"]] = normalised(value) if is_jury(row) else value
    return table


PUBLISHED = [row for row in read("medhelm_leaderboard.csv") if row["paper_version"] == "nature_medicine_2026"]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["model"])
def test_table_1(row):
    table = scores()
    benchmarks = sorted(table[row["model"]])
    assert len(benchmarks) == 37
    figures = suite_figures({model: [values[name] for name in benchmarks] for model, values in table.items()})
    for name, value in vars(figures[row["model"]]).items():
        assert value == pytest.approx(float(row[name]), abs=0.0051), name


def test_category_ranges_are_those_of_the_text():
    categories = {row["benchmark"]: row["category"] for row in read("medhelm_benchmarks.csv")}
    means = {
        name: [np.mean([own[b] for b, of in categories.items() if of == name]) for own in scores().values()]
        for name in set(categories.values())
    }
    ranges = sorted((round(float(min(item)), 2), round(float(max(item)), 2)) for item in means.values())
    assert ranges == [(0.53, 0.63), (0.63, 0.77), (0.65, 0.75), (0.74, 0.85), (0.76, 0.89)]


#: Documents that the published cost file lists where they differ from the paper's table, and two
#: models' own counts on two benchmarks.
RUN_SIZES = {
    "EHRSHOT": 3000, "MedDialog": 2000, "N2C2-CT": 258, "MIMIC-BHC": 100, "ClinicReferral": 327,
    "MTSamples": 78,
}  # fmt: skip
#: HELM's answer budgets in tokens.
BUDGETS = {
    "MedCalc-Bench": 10, "MTSamples": 512, "Medec": 256, "MedAlign": 256, "DischargeMe": 300,
    "ACI-Bench": 768, "MTSamples Procedures": 512, "MIMIC-RRS": 128, "MIMIC-BHC": 1024, "NoteExtract": 768,
    "MedicationQA": 512, "PatientInstruct": 256, "MedDialog": 80, "MEDIQA": 1024, "MentalHealth": 512,
    "EHRSQL": 1024, "MedHallu": 5, "MIMIC-IV Billing Code": 256,
}  # fmt: skip
JUDGES = [JudgePrice(Price(*prices)) for prices in ((2.5, 10.0), (3.0, 15.0), (0.71, 0.71))]
REASONING = {"DeepSeek R1", "o3-mini (2025-01-31)"}
#: Rounding of the printed costs to a cent in each of 37 or 13 benchmarks.
CENTS = 0.005


def sizes(model: str) -> dict[str, int]:
    documents = {
        row["benchmark"]: int(row["n_instances"]) for row in read("medhelm_benchmarks.csv")
    } | RUN_SIZES
    if model in REASONING:
        documents["MTSamples"] = 427
    if model == "Claude 3.5 Sonnet (20241022)":
        documents["MedAlign"] = 172
    return documents


@pytest.mark.parametrize(
    "row",
    [row for row in read("medhelm_costs.csv") if row["paper_version"] == "nature_medicine_2026"],
    ids=lambda row: row["model"],
)
def test_published_costs_follow_from_tokens_and_prices(row):
    """The table prints input and output tokens together; the output part is documents x budget."""
    model = next(item for item in read("medhelm_models.csv") if item["model"] == row["model"])
    # the printed price of DeepSeek R1 is another model's; its costs fit the implied one alone
    kind = "implied" if row["model"] == "DeepSeek R1" else "printed"
    price = Price(*(float(model[f"price_{side}_usd_per_mtok_{kind}"]) for side in ("in", "out")))
    documents = sizes(row["model"])
    budget = {name: 4000 if row["model"] in REASONING else BUDGETS.get(name, 1) for name in documents}
    written = sum(documents[name] * budget[name] for name in documents)
    total = price.of(int(row["benchmark_tokens"]) - written, written)
    assert total == pytest.approx(float(row["benchmark_cost_usd"]), abs=37 * CENTS)

    judged = [item["benchmark"] for item in read("medhelm_benchmarks.csv") if item["metric"] == "Jury Score"]
    assert len(judged) == 13
    n = sum(documents[name] for name in judged)
    assert n == int(row["judged_documents"])
    read_by_judges = int(row["jury_tokens"]) - n * 4096
    assert jury_cost_bound(JUDGES, read_by_judges, n, 0) == pytest.approx(
        float(row["jury_cost_usd"]), abs=13 * CENTS
    )


def test_every_published_benchmark_is_a_dataset_of_the_registry():
    names = {
        item.metadata.name
        for item in registry().datasets.values()
        if item.metadata.suite == "medhelm" and item.of_paper
    }
    assert names == {row["benchmark"] for row in read("medhelm_benchmarks.csv")}
