"""Facts and suites in files of earlier versions, whose keys have other names now."""

from __future__ import annotations

import shutil

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.select import select
from medtasks_ext.registry.suites import read_suite
from medtasks_ext.registry.tasks import Dataset
from tests.conftest import ROOT

FORMER = {
    "document_types": "documents",
    "source_terms": "suite_words",
    "open_questions": "verify",
    "control_of": "twin_of",
}


@pytest.mark.parametrize("name", ["bridge/ifmir_ner", "clinicbench/pharmacology_qa_shuffled", "mlb/cmexam"])
def test_cards_with_former_keys_say_the_same(tmp_path, name):
    suite, _, folder = name.partition("/")
    shutil.copytree(ROOT / "tasks" / suite, tmp_path / suite, ignore=shutil.ignore_patterns("*.jsonl"))
    own = tmp_path / suite / folder
    before = Dataset(own).metadata.model_dump()
    card = yaml.safe_load((own / "card.yaml").read_text(encoding="utf-8"))
    renamed = {FORMER.get(key, key): value for key, value in card.items()}
    assert renamed.keys() != card.keys()
    (own / "card.yaml").write_text(yaml.safe_dump(renamed, allow_unicode=True), encoding="utf-8")
    assert Dataset(own).metadata.model_dump() == before
    (own / "card.yaml").write_text(yaml.safe_dump({**renamed, **card}, allow_unicode=True), encoding="utf-8")
    with pytest.raises(MedtasksError, match="unknown key"):  # the fact stands twice
        _ = Dataset(own).metadata


def test_suites_with_former_keys_say_the_same(tmp_path):
    for name, change in {
        "healthbench": lambda said: {"apart": True, **{k: v for k, v in said.items() if k != "in_totals"}},
        "bridge": lambda said: {**said, "tags": {"application": "app_", "documents": "doc_"}},
    }.items():
        said = yaml.safe_load((ROOT / "tasks" / name / "suite.yaml").read_text(encoding="utf-8"))
        folder = tmp_path / name
        folder.mkdir()
        (folder / "suite.yaml").write_text(yaml.safe_dump(change(said), allow_unicode=True), encoding="utf-8")
        assert read_suite(folder).model_dump() == read_suite(ROOT / "tasks" / name).model_dump()


def test_a_suite_with_the_former_key_of_axis_values_says_the_same(tmp_path):
    said = {
        **{"title": "Wards", "about": "a ward", "citation": "bedi2026medhelm", "assigned_by": "medtasks"},
        **{"axes": {"ward": {"values": {"icu": "Intensive care"}}}, "groups": {"ward": ""}},
        **{"partition": ["ward"], "sections": "ward", "datasets": ["bridge/mednli"]},
    }
    values = {"bridge/mednli": {"ward": "icu"}}

    def read(name, **keys):
        folder = tmp_path / name / "wards"
        folder.mkdir(parents=True)
        content = yaml.safe_dump({**said, **keys}, allow_unicode=True)
        (folder / "suite.yaml").write_text(content, encoding="utf-8")
        return read_suite(folder)

    former, present = read("former", placed=values), read("present", axis_values=values)
    assert former.model_dump() == present.model_dump() and present.axis_values == values
    with pytest.raises(MedtasksError, match="placed"):  # the fact stands twice
        read("both", placed=values, axis_values=values)


def test_datasets_are_found_by_former_names():
    tasks = registry()
    found = select(tasks, ["documents=discharge_summary"])
    assert found and found == select(tasks, ["document_types=discharge_summary"])
