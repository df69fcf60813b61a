"""Published figures come out of groups and comparisons, from task scores; which rows are of one model."""

import csv
from dataclasses import replace
from itertools import product
from statistics import mean

import polars as pl
import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry, vocabulary
from medtasks_ext.report.compared import compared
from medtasks_ext.report.groups import group_scores, groups_of, title
from medtasks_ext.results.conditions import of_the_paper
from medtasks_ext.results.models import identity_of, known_models, published_rows
from medtasks_ext.results.published import published_entries, reference_folder
from medtasks_ext.runs.conditions import Conditions
from tests.report.made import write_run

pytestmark = pytest.mark.long

#: what a value printed with one decimal, in percent, can be off by
PERCENT = 0.00051


@pytest.fixture(scope="module")
def tasks():
    return registry()


@pytest.fixture(scope="module")
def entries(tasks):
    found = {}
    for entry in published_entries(tasks):
        found.setdefault(entry.paper, {})[entry.model] = entry
    return found


def read(name):
    with (reference_folder() / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def as_own(entry):
    """The entry as if it had been read from runs on the same rows."""
    own = {
        name: replace(
            item,
            printed=None,
            conditions=Conditions(
                strategy=item.strategy, version="1", rows="the same", wording="own", n=item.n
            ),
        )
        for name, item in entry.experiments.items()
    }
    return replace(entry, kind="lm_eval", paper="", experiments=own)


def scores(tasks, entry, suite, strategy="zero_shot"):
    """(axis, value) -> score inside the suite."""
    groups = tuple(group for group in groups_of(tasks) if group.suite == suite)
    return {(row["axis"], row["value"]): row["score"] for row in group_scores(entry, strategy, groups)}


def test_bridge_overall_with_printed_intervals_and_readable_shares(tasks, entries):
    """Tables S3 and S8."""
    suite = tuple(group for group in groups_of(tasks) if (group.axis, group.value) == ("suite", "bridge"))
    valid = {row["model"]: row for row in read("bridge_valid_rate.csv")}
    rows = read("bridge_overall.csv")
    for row, strategy in product(rows, ("zero_shot", "cot", "five_shot")):
        [found] = group_scores(entries["bridge"][row["model"]], strategy, suite)
        assert (found["tasks_scored"], found["partial"]) == (87, False)
        assert found["score"] == pytest.approx(float(row[strategy]) / 100, abs=PERCENT)
        printed = [float(row[f"{strategy}_ci_{end}"]) / 100 for end in ("low", "high")]
        assert [found[f"paper_interval_{end}"] for end in ("low", "high")] == pytest.approx(printed)
        assert found["interval_low"] is None  # the scores of its documents are not published
        assert found["valid"] == pytest.approx(float(valid[row["model"]][strategy]) / 100)
    assert len(rows) == 95


def test_bridge_sub_groups_other_and_averages_come_out_of_the_groups(tasks, entries):
    """Tables S4 to S7, their columns "Other" and "Average" among them."""
    axes = {"task_type": "task_type", "language": "language", "specialty": "specialties", "stage": "stage"}
    languages = {title: key for key, title in vocabulary()["languages"].items()}
    named = {"Average": "average", "Other": "other_specialties"}
    compared = 0
    known = {model: scores(tasks, entry, "bridge") for model, entry in entries["bridge"].items()}
    for row in read("bridge_subgroups.csv"):
        group = row["group"]
        value = named.get(group) or languages.get(group) or group.lower().replace(" ", "_")
        found = known[row["model"]][axes[row["dimension"]], value]
        assert found == pytest.approx(float(row["score"]) / 100, abs=PERCENT), (row["model"], group)
        compared += 1
    assert compared == 95 * (35 + 4)


def test_medhelm_macro_averages_and_category_means(tasks, entries):
    """Table 1, and the means that the text states for Fig. 4."""
    for row in read("medhelm_leaderboard.csv"):
        if row["paper_version"] == "nature_medicine_2026":
            found = scores(tasks, entries["medhelm"][row["model"]], "medhelm")
            assert found["suite", "medhelm"] == pytest.approx(float(row["macro_average"]), abs=0.0051)
    stated = [row for row in read("medhelm_category_means.csv") if row["value_stated_in_text"]]
    assert len(stated) == 7
    for row in stated:
        found = scores(tasks, entries["medhelm"][row["model"]], "medhelm")
        by_title = {title(*place).lower(): score for place, score in found.items()}
        assert by_title[row["category"].lower()] == pytest.approx(
            float(row["value_stated_in_text"]), abs=0.0051
        )


def test_medhelm_win_rates_are_the_mean_share_of_tasks_won(tasks, entries):
    """Table 1: a tie is half a win. Own entries stand in for the published ones, which are never paired."""
    rows = [row for row in read("medhelm_leaderboard.csv") if row["paper_version"] == "nature_medicine_2026"]
    models = [as_own(entries["medhelm"][row["model"]]) for row in rows]
    [found] = compared(models, {}, tasks, ["zero_shot"])
    assert found["tasks"] == 37 and len(found["p"]) == 0
    for place, row in zip(found["entries"], rows, strict=True):
        against = [share for other, share in enumerate(found["wins"][place]) if other != place]
        assert mean(against) == pytest.approx(float(row["win_rate"]), abs=0.0051)


def test_clinicbench_scenario_averages(tasks, entries):
    """Table 5, base row; generation leaves out the two sets of long documents."""
    entry = entries["clinicbench"]["LLaMA-2-7B"]
    as_printed = {  # whatever the prompt asks for
        item.dataset.id: replace(
            item, task=item.dataset.id, conditions=of_the_paper(item.dataset, "zero_shot")
        )
        for item in entry.experiments.values()
    }
    found = scores(tasks, replace(entry, experiments=as_printed), "clinicbench")
    for scenario, printed in {"reasoning": 41.2, "generation": 10.5, "understanding": 42.2}.items():
        assert found["scenario", scenario] == pytest.approx(printed / 100, abs=PERCENT)


def test_mlb_average_is_the_mean_of_its_dimensions_each_the_mean_of_its_tasks(tasks, entries):
    """Table 4."""
    dimensions = ("medkqa", "medse", "medru", "smartserv", "smartcare")
    for row in read("mlb_overall.csv"):
        found = scores(tasks, entries["mlb"][row["model"]], "mlb")
        assert found["suite", "mlb"] == pytest.approx(float(row["average"]) / 100)
        assert mean(found["dimension", name] for name in dimensions) == pytest.approx(found["suite", "mlb"])
    [suite] = [group for group in groups_of(tasks) if (group.axis, group.value) == ("suite", "mlb")]
    weights = suite.weights(frozenset(suite.datasets))
    shares = dict.fromkeys(dimensions, 0.0)
    for task, weight in weights.items():
        shares[tasks.datasets[task].metadata.axes["dimension"]] += weight
    assert shares == pytest.approx(dict.fromkeys(dimensions, 0.2))


@pytest.fixture(scope="module")
def rows():
    return published_entries(registry())


def test_every_published_row_is_of_one_model_and_every_name_stands_in_a_table(rows):
    printed = {(entry.paper, entry.model) for entry in rows}
    claimed = [row for model in known_models().values() for row in model.versions]
    assert sorted(claimed) == sorted(printed)
    assert all(identity_of(entry) is not None for entry in rows)


@pytest.mark.parametrize("name", ["gpt-4o", "GPT-4o", "openai/gpt-4o", "gpt 4o"])
def test_a_model_is_called_by_its_id_title_or_short_name(rows, name):
    found = published_rows(name, rows)
    assert {entry.paper: entry.model for entry in found} == {
        "bridge": "gpt-4o-0806", "medhelm": "GPT-4o (2024-05-13)", "mlb": "GPT-4o", "healthbench": "GPT-4o",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Qwen/Qwen3-8B", "means more than one: Qwen3-8B-Thinking, Qwen3-8B-Non-Thinking"),
        ("nonesuch", "no run and no published model is called 'nonesuch'"),
    ],
)
def test_a_name_of_nobody_or_of_several_is_asked_about(rows, name, message):
    with pytest.raises(MedtasksError, match=message.replace("(", r"\(")):
        published_rows(name, rows)


def test_tables_join_a_run_with_what_papers_print_of_its_model(medtasks, tmp_path):
    """And the report says what the paper prints of the model itself."""
    task = "bridge_brainmri_ais"
    n = registry().datasets[task].n_documents
    write_run(
        tmp_path / "run", "Qwen/Qwen2.5-7B-Instruct", {task: [1.0] * n}, arguments={"revision": "a09a354"},
        loaded={"instruction": "official"},
    )  # fmt: skip
    outcome = medtasks("report", "run", "-o", "out")
    for name in ("results", "groups"):
        found = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        same = found.filter(pl.col("model_id") == "Qwen/Qwen2.5-7B-Instruct")
        assert set(same["model"]) == {"Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"}
        assert set(same.filter(kind="medtasks")["model_version"]) == {"a09a354"}
    assert "BRIDGE prints this model itself with 0." in " ".join(outcome.out.split())
    medtasks("card", "run", "-o", "card")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "BRIDGE prints this model itself with" in card
