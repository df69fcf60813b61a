"""The schema of task files: editors complete and refuse what `medtasks dev validate` accepts and refuses."""

from __future__ import annotations

import copy
import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator
from lm_eval.config.task import TaskConfig

from medtasks_ext.judge.jury import Judge
from medtasks_ext.registry import Dataset, Registry, Suite, registry, vocabulary
from medtasks_ext.registry.metadata import Metadata
from medtasks_ext.registry.yamlfile import yaml_text
from medtasks_ext.rows.json_schema import TASK_KEYS, schema_text, task_schema
from medtasks_ext.runner.validate import checks_of
from medtasks_ext.task import OTHER_ROWS, OWN_KEYS
from tests.conftest import declare_suites

TASKS = registry()
SCHEMA = task_schema()
RECORD = SCHEMA["$defs"]["Metadata"]["properties"]
ROOT = Path(__file__).resolve().parents[2]


def faults(config: object) -> list[str]:
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(config)]


def test_it_is_a_valid_schema_and_its_text_says_the_same():
    Draft7Validator.check_schema(SCHEMA)
    assert json.loads(schema_text()) == SCHEMA


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_every_task_file_satisfies_it(dataset):
    assert faults(yaml_text(TASKS.datasets[dataset].file.read_text(encoding="utf-8"))) == []


def test_its_keys_are_those_of_lm_eval_and_of_the_class():
    lm_evals = {item.name for item in fields(TaskConfig)} - {*OTHER_ROWS}
    assert set(TASK_KEYS) == lm_evals | {*OWN_KEYS, "class", "include"}
    used = {key for item in TASKS.datasets.values() for key in item.config}
    assert used <= set(TASK_KEYS)


def test_editors_offer_the_vocabulary_and_explain_every_key():
    known = vocabulary()
    offered, of_three_letters = RECORD["language"]["anyOf"]
    assert offered["enum"] == list(known["languages"])
    assert offered["enumDescriptions"] == list(known["languages"].values())
    assert of_three_letters == {"pattern": "^[a-z]{3}$"}
    assert RECORD["documents"]["items"]["enum"] == list(known["documents"])
    assert RECORD["specialties"]["items"]["enum"] == list(known["specialties"])
    offered = {part["description"]: set(part["properties"]) for part in RECORD["axes"]["anyOf"]}
    assert offered == {suite.title: set(suite.axes) for suite in TASKS.suites.values()}
    assert set(RECORD) == set(Metadata.model_fields)
    assert all("description" in part or "$ref" in part for part in RECORD.values())
    explained = SCHEMA["$defs"]["Source"]["properties"]
    assert explained["max_test"]["description"].startswith("evaluate at most this many test rows")


@pytest.mark.parametrize(
    ("heading", "model"),
    [("`about` of a task file", Metadata), ("`suite.yaml`", Suite), ("A jury file", Judge)],
)
def test_the_documentation_explains_every_key(heading, model):
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    part = re.split(r"\n#{2,3} ", text.split(f"\n## {heading}\n")[1].lstrip("\n #"))[0]
    rows = [line.split(" | ") for line in part.splitlines() if re.match(r"\| \**`", line)]
    explained = {row[0].strip("| *`") for row in rows if row[1].strip()}
    assert explained == set(model.model_fields)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tree with one dataset, whose file is rewritten."""
    root = tmp_path_factory.mktemp("schema") / "tasks"
    shutil.copytree(TASKS.root / "medhelm" / "hospice_referral", root / "medhelm" / "hospice_referral")
    declare_suites(root)
    return root


class _Dumper(yaml.SafeDumper):
    """Writes back `!function NAME`, which reading makes a string."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    tag, _, name = value.partition(" ")
    if tag == "!function":
        return dumper.represent_scalar(tag, name)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value)


_Dumper.add_representer(str, _text)


def refused(root: Path, config: dict) -> str:
    """What `dev validate` says of the task file alone."""
    folder = root / "medhelm" / "hospice_referral"
    (folder / "task.yaml").write_text(yaml.dump(config, Dumper=_Dumper), encoding="utf-8")
    task_file, *_ = checks_of(Registry(root), Dataset(folder))
    return "\n".join(task_file.problems)


def changed(path: str, value: object = None, *, rename: str | None = None) -> dict:
    config = copy.deepcopy(yaml_text(TASKS.datasets["medhelm_hospice_referral"].file.read_text()))
    *parents, last = path.split(".")
    place = config
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if rename:
        place[rename] = place.pop(last)
    elif value is None:
        del place[last]
    else:
        place[last] = value
    return config


def test_the_unchanged_file_is_accepted_by_both(place):
    config = changed("task", "medhelm_hospice_referral")
    assert faults(config) == [] and refused(place, config) == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (changed("answer", rename="answr"), "did you mean answer?"),
        (changed("generation_kwarg", {"max_gen_toks": 5}), "did you mean generation_kwargs?"),
        (changed("metadata.version", rename="versoin"), "did you mean version?"),
        (changed("about.language", "english"), "'english' is no code of ISO 639"),
        (changed("about.language", False), "put it in quotes"),
        (changed("about.stage", "triage_referral"), "did you mean triage_and_referral?"),
        (changed("about.specialties", ["paliative_care"]), "did you mean palliative_care?"),
        (changed("about.specialties", []), "at least 1 item"),
        (changed("about.documents", "general_ehr_note"), "should be a list"),
        (changed("about.n_test", "many"), "whole number"),
        (changed("about.url"), "url: missing key → where the data is"),
        (changed("about.licence", rename="license"), "did you mean licence?"),
        (changed("about.axes.category", "administation"), "did you mean administration?"),
        (changed("about.axes.subcategory", "planning_treatments"), "is no value of subcategory"),
        (changed("about.axes.subcategory"), "subcategory: missing key (an axis of medhelm/suite.yaml)"),
        (changed("about.axes"), "category: missing key"),
        (changed("about.suite_words", {"access": "publik"}), "did you mean public?"),
        (changed("rows.max_test", "a few"), "whole number"),
        (changed("rows.identity", rename="identiy"), "did you mean identity?"),
        (changed("prompt.instruction"), "prompt.instruction: missing key"),
        (changed("prompt.instruction_role", "sytem"), "should be 'system' or 'user'"),
        (changed("answer.letters", rename="leters"), "did you mean letters?"),
        (changed("answer.kind", "exact_leter"), "did you mean exact_letter?"),
        (changed("judge", {"protocol": "likert_jury"}), "judge.role: missing key"),
        *(
            (changed(key), f"task.yaml: {key}: missing key → ")
            for key in ("class", "dataset", "rows", "prompt", "answer", "about", "metadata")
        ),
        (
            changed("class", "!function medtasks_ext.task.Task"),
            "write `!function medtasks_ext.task.MedicalTask`",
        ),
        (changed("strategy", "cot"), "`medtasks dev build` writes"),
    ],
)
def test_what_the_schema_refuses_validate_refuses_in_words(place, config, said):
    assert faults(config)
    assert said in refused(place, config)


def test_every_value_of_the_taxonomy_is_accepted(place):
    for name, parts in TASKS.suites["medhelm"].axes["subcategory"].parts.items():
        for part in parts:
            config = changed("about.axes.category", name)
            config["about"]["axes"]["subcategory"] = part
            assert faults(config) == []
