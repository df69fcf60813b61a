"""The registry of models: which rows of published tables are of one model, and what is known of it."""

import polars as pl
import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.results.models import (
    identity_of,
    known_models,
    published_rows,
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
