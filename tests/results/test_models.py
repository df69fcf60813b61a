"""The registry of models: which rows of published tables are of one model, and what is known of it."""

import re
from itertools import pairwise

import polars as pl
import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.results import models
from medtasks_ext.results.models import (
    facts_of,
    identity_of,
    known_models,
    maker_of,
    published_rows,
    version_of,
)
from medtasks_ext.results.published import published_entries
from tests.report.made import write_run


@pytest.fixture(scope="module")
def rows():
    return published_entries(registry())


def of(rows, paper, name):
    return next(entry for entry in rows if (entry.paper, entry.model) == (paper, name))


def test_every_published_row_is_of_one_model_and_every_name_stands_in_a_table(rows):
    printed = {(entry.paper, entry.model) for entry in rows}
    claimed = [(row.suite, row.name) for model in known_models().values() for row in model.rows]
    assert sorted(claimed) == sorted(printed)
    assert all(identity_of(entry) is not None for entry in rows)


def test_models_of_several_papers_are_joined(rows):
    papers = {}
    for entry in rows:
        papers.setdefault(identity_of(entry).id, set()).add(entry.paper)
    assert sum(len(found) > 1 for found in papers.values()) == 21
    assert papers["meta-llama/Llama-3.3-70B-Instruct"] == {"bridge", "medhelm", "mlb"}
    assert papers["deepseek-ai/DeepSeek-R1-0528"] == {"mlb"}  # other weights than those of January


def test_ids_of_the_hub_are_those_of_the_tables(rows):
    for entry in rows:
        said = entry.details.get("hub_id")
        assert not said or identity_of(entry).hub_id == said, entry.model


def test_a_maker_has_one_name_in_all_tables(rows):
    called = {}
    for entry in rows:
        known, maker = identity_of(entry), facts_of(entry, rows).get("maker")
        if known and known.hub_id and maker:
            called.setdefault(known.id.partition("/")[0], set()).add(maker)
    assert {owner: names for owner, names in called.items() if len(names) > 1} == {}
    every = {name for names in called.values() for name in names}
    # neither in other case, nor with a tail such as "-ai", "inc" or "Cloud"
    folded = sorted(re.sub(r"\W", "", name.casefold()) for name in every)
    assert [two for two in pairwise(folded) if two[1].startswith(two[0])] == []


def test_a_model_that_nobody_knows_is_of_the_maker_of_its_owner():
    assert maker_of("deepseek-ai") == "DeepSeek" and maker_of("Qwen") == "Alibaba"
    assert maker_of("somebody-new") == "somebody-new"


@pytest.mark.parametrize("name", ["gpt-4o", "GPT-4o", "openai/gpt-4o", "gpt 4o"])
def test_a_model_is_called_by_its_id_title_or_short_name(rows, name):
    found = published_rows(name, rows)
    assert {entry.paper: entry.model for entry in found} == {
        "bridge": "gpt-4o-0806", "medhelm": "GPT-4o (2024-05-13)", "mlb": "GPT-4o", "healthbench": "GPT-4o",
    }  # fmt: skip


def test_a_name_of_a_table_alone_means_its_version(rows):
    [found] = published_rows("gpt-4o-0806", rows)
    assert (found.paper, version_of(found)) == ("bridge", "2024-08-06")
    assert len(published_rows("llama 3.3 instruct (70b)", rows)) == 3  # the same weights everywhere


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


def test_what_one_table_says_is_known_of_the_rows_of_others(rows):
    assert facts_of(of(rows, "medhelm", "DeepSeek R1"), rows)["parameters_b"] == "671"
    assert facts_of(of(rows, "bridge", "DeepSeek-R1"), rows)["price_in"] == "1.2"
    versions = of(rows, "bridge", "gpt-4o-0806"), of(rows, "medhelm", "GPT-4o (2024-05-13)")
    assert facts_of(versions[1], rows)["released"] == "2024-05-13" != facts_of(versions[0], rows)["released"]
    # a table that does not say whether a model thought does not learn it from another's row
    assert "reasoning" not in facts_of(of(rows, "mlb", "Qwen3-235B-A22B"), rows)


def test_a_row_of_an_unknown_model_is_joined_with_nothing(rows):
    entry = of(rows, "medhelm", "DeepSeek R1").part({})
    entry.model = "DeepSeek R1 (lite)"
    assert identity_of(entry) is None and version_of(entry) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/b: {rows: {bridge: X}}\nc/d: {rows: {bridge: X}}\n", "both claim the row 'X' of bridge"),
        ("a/b: {relased: '2024'}\n", "a/b.relased: unknown key (did you mean released?)"),
        ("a/b: {released: May}\n", "should be a date"),
    ],
)
def test_a_registry_that_cannot_be_is_refused(tmp_path, monkeypatch, text, message):
    (tmp_path / "models.yaml").write_text(text)
    monkeypatch.setattr(models, "reference_folder", lambda: tmp_path)
    with pytest.raises(MedtasksError) as error:
        known_models.__wrapped__()
    assert message in str(error.value)


def test_a_run_is_known_by_its_id_on_the_hub(rows):
    entry = of(rows, "medhelm", "DeepSeek R1").part({})
    entry.paper, entry.model, entry.details = "", "deepseek-ai/deepseek-r1", {}
    assert identity_of(entry).id == "deepseek-ai/DeepSeek-R1"
    entry.model = "deepseek-r1"  # a folder of somebody's: no id of the hub
    assert identity_of(entry) is None


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


def test_a_run_of_a_model_that_nobody_knows_is_joined_with_nothing(medtasks, tmp_path):
    write_run(tmp_path / "run", "ORG/unknown", {"bridge_brainmri_ais": [1.0] * 267})
    outcome = medtasks("report", "run", "-o", "out")
    found = pl.read_parquet(tmp_path / "out" / "results.parquet").filter(kind="medtasks")
    assert set(found["model_id"]) == {None} == set(found["model_version"])
    assert "prints this model itself" not in outcome.out
