"""Drafts: listed, checked and run by name; said to be drafts everywhere; in no group and no mean."""

import csv
import json

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.groups import groups_of
from tests.report.made import write_run

DRAFTS = {name: item for name, item in registry().datasets.items() if item.metadata.draft}
NAME = "medhelm_live_healthqa_br"


def test_a_draft_is_in_no_group():
    tasks = registry()
    assert NAME in DRAFTS
    held = {tasks.tasks[leaf][0].id for name in tasks.groups for leaf in tasks.leaves(name)}
    assert not held & DRAFTS.keys()
    assert not {name for group in groups_of(tasks) for name in group.datasets} & DRAFTS.keys()
    assert not [name for name, item in DRAFTS.items() if item.joined_later or item.of_paper]


@pytest.mark.parametrize("name", DRAFTS)
def test_every_command_says_that_it_is_a_draft(medtasks, tmp_path, name):
    why = DRAFTS[name].metadata.draft
    for words in (("ls", name), ("dev", "validate", name), ("preview", name, "--data", "sample")):
        outcome = medtasks(*words)
        assert outcome.code == 0 and "draft" in outcome.out.lower() and why in outcome.out, words
    assert json.loads(medtasks("ls", "--json", name).out)[0]["draft"] == why
    done = medtasks("run", "--model", "oracle", "--tasks", name, "--data", "sample", "--output_path", "run")
    assert done.code == 0 and f"{name} is a draft, in no group" in " ".join(done.out.split())


def test_a_report_shows_a_draft_and_counts_it_nowhere(medtasks, tmp_path):
    write_run(tmp_path / "run", "m", {NAME: [1.0, 0.0], "bridge_mednli": [1.0, 1.0]})
    outcome = medtasks("report", "run", "-o", "report")
    assert outcome.code == 0 and f"{NAME} is a draft, in no group" in " ".join(outcome.out.split())
    rows = list(csv.DictReader((tmp_path / "report" / "results.csv").open(encoding="utf-8")))
    drafts = {row["dataset"]: row["draft"] for row in rows}
    assert drafts[NAME] == DRAFTS[NAME].metadata.draft and not drafts["bridge_mednli"]
    groups = list(csv.DictReader((tmp_path / "report" / "groups.csv").open(encoding="utf-8")))
    assert {row["suite"] for row in groups} == {"", "bridge"}
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "HealthQA-BR (draft)" in page
