"""What `validate` finds in a dataset whose files can be read: by changing rows and answers."""

from __future__ import annotations

import json

import pytest

from medtasks_ext.data.review import Review
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.runner.validate import validate_dataset
from tests.data.mistakes import MISTAKES

TASKS = registry()
#: Mistakes that no check names.
NOT_NAMED = {
    ("medhelm/medhallu", "five test rows"),  # each is asked twice, with a true and a false answer
    ("medhelm/aci_bench", "dialogue and note swapped"),  # both are long texts
}


def test_the_list_is_sixty_mistakes_of_which_all_but_three_are_named():
    assert len(MISTAKES) == len({(item.dataset, item.name) for item in MISTAKES}) == 60
    assert {(item.dataset, item.name) for item in MISTAKES} >= NOT_NAMED
    assert len(NOT_NAMED) <= 3


@pytest.mark.parametrize("item", MISTAKES, ids=lambda item: f"{item.dataset}: {item.name}")
def test_a_mistake_is_named(tasks_of, item):
    folder = tasks_of(item.dataset) / item.dataset
    item.make(folder)
    found = validate_dataset(registry(), Dataset(folder))
    assert bool(found) == ((item.dataset, item.name) not in NOT_NAMED), found


@pytest.mark.parametrize("name", TASKS.datasets)
def test_a_bundled_dataset_has_none(name):
    assert list(Review(TASKS.datasets[name]).problems()) == []


def test_a_column_that_follows_from_the_gold_answer_is_named(tasks_of):
    folder = tasks_of("clinicbench/hoc") / "clinicbench" / "hoc"
    task, sample = folder / "task.yaml", folder / "sample.jsonl"
    text = task.read_text("utf-8").replace("[pmid, text, labels]", "[pmid, text, labels, n]", 1)
    task.write_text(text.replace("Document: {{ text }}", "{{ n }} hallmarks: {{ text }}"), "utf-8")
    rows = [json.loads(line) for line in sample.read_text("utf-8").splitlines()]
    for row in rows:
        row["n"] = str(len((row["labels"] or "").split(";")) if row["labels"] else 0)
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (problem,) = Review(Dataset(folder)).problems()
    assert problem.startswith("column n is in the prompt and is the number of right answers in every row")


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ('["ja", "nein", unklar]', True),
        ('{"ja": belegt, "nein": widerlegt, unklar: offen}', False),
        ('["nein", unklar, "ja"]', False),
    ],
)
def test_levels_in_alphabetical_order_are_named_where_no_meaning_says_that_it_is_meant(
    tasks_of, labels, named
):
    folder = tasks_of("commons/healthfc") / "commons" / "healthfc"
    task = folder / "task.yaml"
    text = task.read_text("utf-8")
    task.write_text(text.replace('labels: ["nein", unklar, "ja"]', f"labels: {labels}"), "utf-8")
    found = [problem for problem in Review(Dataset(folder)).problems() if "alphabetical order" in problem]
    assert bool(found) == named


def test_a_prompt_that_depends_on_other_rows_is_named(tasks_of):
    folder = tasks_of("clinicbench/gad") / "clinicbench" / "gad"
    task = folder / "task.yaml"
    text = task.read_text("utf-8")
    task.write_text(text.replace("Sentence: {{ text }}", "{{ row_number }}. {{ text }}"), "utf-8")
    assert any("change without the first row" in problem for problem in Review(Dataset(folder)).problems())


@pytest.mark.parametrize("shown", ["options | lettered", "options | join(', ')"])
def test_options_that_are_an_object_are_named(tasks_of, shown):
    """Of an object only the keys would stand in the prompt."""
    folder = tasks_of("commons/frenchmedmcqa") / "commons" / "frenchmedmcqa"
    task = folder / "task.yaml"
    text = task.read_text("utf-8").replace("options: answers | split_options", "options: answers")
    task.write_text(text.replace("options | lettered", shown), "utf-8")
    found = validate_dataset(registry(), Dataset(folder))
    assert any("split_options" in problem for problem in found), found
