"""The schema of task files: editors complete and refuse what `medtasks dev validate` accepts and refuses."""

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

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.jury import Judge
from medtasks_ext.registry import Dataset, Registry, Suite, registry, vocabulary
from medtasks_ext.registry.datalock import DataLock, read_lock
from medtasks_ext.registry.metadata import Card, Metadata, TaskFacts
from medtasks_ext.registry.tasks import TASK_KEYS
from medtasks_ext.rows.json_schema import card_schema, schema_text, task_schema
from medtasks_ext.runner.validate import RunFolder
from medtasks_ext.strict import read_mapping
from medtasks_ext.task import OTHER_ROWS, OWN_KEYS
from tests.conftest import declare_suites

TASKS = registry()
SCHEMA = task_schema()
CARD = card_schema()
RECORD = SCHEMA["$defs"]["About"]["properties"]
ROOT = Path(__file__).resolve().parents[2]


def faults(config: object, schema: dict = SCHEMA) -> list[str]:
    return [error.message for error in Draft7Validator(schema).iter_errors(config)]


def test_it_is_a_valid_schema_and_its_text_says_the_same():
    for schema in (SCHEMA, CARD):
        Draft7Validator.check_schema(schema)
        assert json.loads(schema_text(schema)) == schema


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_every_task_file_and_every_card_satisfies_it(dataset):
    folder = TASKS.datasets[dataset].folder
    assert faults(read_mapping(folder / "task.yaml")) == []
    if (folder / "card.yaml").is_file():  # a task file may hold all facts itself
        assert faults(read_mapping(folder / "card.yaml"), CARD) == []


def test_a_file_that_includes_another_says_only_what_differs():
    variant = {"include": "../task.yaml", "task": "my_mednli", "prompt": {"instruction": "{{ strategy }}"}}
    assert faults(variant) == []
    assert faults({**variant, "promt": {}}) and faults({**variant, "metadata": {"version": 1}})
    del variant["include"]
    assert any("'class' is a required property" in fault for fault in faults(variant))


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
    assert RECORD["document_types"]["items"]["enum"] == list(known["document_types"])
    assert RECORD["specialties"]["items"]["enum"] == list(known["specialties"])
    offered = {part["description"]: set(part["properties"]) for part in RECORD["axes"]["anyOf"]}
    assert offered == {suite.title: set(suite.axes) for suite in TASKS.suites.values()}
    assert set(RECORD) == set(Metadata.model_fields)
    assert set(CARD["properties"]) == set(Card.model_fields)
    assert all("description" in part or "$ref" in part for part in RECORD.values())
    assert {name: SCHEMA["properties"][name] for name in TaskFacts.model_fields} == {
        name: RECORD[name] for name in TaskFacts.model_fields
    }
    explained = SCHEMA["$defs"]["Source"]["properties"]
    assert explained["max_test"]["description"].startswith("evaluate at most this many test rows")


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Facts at the top of a task file", TaskFacts), ("`card.yaml`", Card), ("`data.lock`", DataLock),
        ("`suite.yaml`", Suite), ("A jury file", Judge),
    ],
)  # fmt: skip
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


def refused(root: Path, config: dict, card: dict | None = None) -> str:
    """What `validate` says of the task file and its card alone."""
    folder = root / "medhelm" / "hospice_referral"
    (folder / "task.yaml").write_text(yaml.dump(config, Dumper=_Dumper), encoding="utf-8")
    (folder / "card.yaml").unlink(missing_ok=True)
    if card is not None:
        (folder / "card.yaml").write_text(yaml.safe_dump(card), encoding="utf-8")
    task_file, *_ = RunFolder(Registry(root), Dataset(folder)).checks()
    return "\n".join(task_file.problems)


def whole() -> dict:
    """A task file that says all facts itself, under `about`."""
    dataset = TASKS.datasets["medhelm_hospice_referral"]
    config = {key: value for key, value in dataset.config.items() if key not in TaskFacts.model_fields}
    return copy.deepcopy({**config, "about": dict(dataset.record)})


def changed(
    path: str, value: object = None, *, rename: str | None = None, config: dict | None = None
) -> dict:
    config = whole() if config is None else copy.deepcopy(config)
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
        (changed("about.document_types", "general_ehr_note"), "should be a list"),
        (changed("about.n_test", "many"), "whole number"),
        (changed("about.url"), "url: missing key → where the data is"),
        (changed("about.licence", rename="license"), "did you mean licence?"),
        (changed("about.axes.category", "administation"), "did you mean administration?"),
        (changed("about.axes.subcategory", "planning_treatments"), "is no value of subcategory"),
        (changed("about.axes.subcategory"), "subcategory: missing key (an axis of medhelm/suite.yaml)"),
        (changed("about.axes"), "category: missing key"),
        (changed("about.source_terms", {"access": "publik"}), "did you mean public?"),
        (changed("rows.max_test", "a few"), "whole number"),
        (changed("rows.identity", rename="identiy"), "did you mean identity?"),
        (changed("prompt.instruction"), "prompt.instruction: missing key"),
        (changed("prompt.instruction_role", "sytem"), "should be 'system' or 'user'"),
        (changed("answer.letters", rename="leters"), "did you mean letters?"),
        (changed("answer.kind", "exact_leter"), "did you mean exact_letter?"),
        (changed("judge", {"protocol": "likert_jury"}), "judge.role: missing key"),
        *((changed(key), f"task.yaml: {key}: missing key → ") for key in ("class", "dataset", "rows",
         "prompt", "answer", "metadata")),
        (changed("about"), "about: missing key, as there is no card.yaml beside the file → write card.yaml"),
        (changed("class", "!function medtasks_ext.task.Task"),
         "write `!function medtasks_ext.task.MedicalTask`"),
        (changed("strategy", "cot"), "`medtasks dev build` writes"),
    ],
)  # fmt: skip
def test_what_the_schema_refuses_validate_refuses_in_words(place, config, said):
    assert faults(config)
    assert said in refused(place, config)


SPLIT = dict(TASKS.datasets["medhelm_hospice_referral"].config)
FACTS = read_mapping(TASKS.datasets["medhelm_hospice_referral"].folder / "card.yaml")


def task(*arguments: object, **more: object) -> tuple[dict, dict]:
    return changed(*arguments, config=SPLIT, **more), FACTS


def card(*arguments: object, **more: object) -> tuple[dict, dict]:
    return SPLIT, changed(*arguments, config=FACTS, **more)


def test_the_two_files_are_accepted_by_both(place):
    assert faults(SPLIT) == [] and faults(FACTS, CARD) == [] and refused(place, SPLIT, FACTS) == ""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (task("language", "english"), "task.yaml: language: 'english' is no code of ISO 639"),
        (task("language"), "task.yaml: language: missing key → of the documents, a code of ISO 639"),
        (task("access", rename="acess"), "task.yaml: acess: unknown key (did you mean access?)"),
        (task("stage", "triage_and_referral"), "task.yaml: stage: unknown key"),
        (task("official_budget", 0), "task.yaml: official_budget: "),
        (task("gold_loss", 1), "task.yaml: gold_loss: "),
        (card("stage", "triage_referral"), "card.yaml: stage: 'triage_referral' is not in"),
        (card("stage", rename="stages"), "stages: unknown key (did you mean stage?)"),
        (card("access", "open"), "access: unknown key: it belongs in task.yaml"),
        (card("url"), "card.yaml: url: missing key → where the data is"),
        (card("n_test", "many"), "card.yaml: n_test: should be a whole number"),
        (card("axes.category", "administation"), "did you mean administration?"),
        (card("axes"), "card.yaml: axes: category: missing key"),
    ],
)
def test_each_file_is_refused_in_words_with_its_name_and_key(place, files, said):
    config, facts = files
    wrong = faults(config) + faults(facts, CARD)
    assert wrong or said.endswith("axes: category: missing key")  # a card does not say its suite
    assert said in refused(place, config, facts)


def test_a_fact_stands_in_one_place(place):
    twice = {**SPLIT, "about": {**FACTS, "language": "en"}}
    assert "about.language: the key stands at the top level, too" in refused(place, twice)
    config = {key: value for key, value in SPLIT.items() if key not in TaskFacts.model_fields}
    about = {
        **config,
        "about": {**{key: SPLIT[key] for key in ("name", "language")}, "stage": "triage_and_referral"},
    }
    assert "about.stage: the key stands at card.yaml, too" in refused(place, about, FACTS)
    refused(place, *task("stage", "research"))
    with pytest.raises(MedtasksError, match=r"stage: unknown key: it belongs in card\.yaml"):
        Dataset(place / "medhelm" / "hospice_referral").metadata  # noqa: B018


def test_who_does_not_say_that_data_is_open_keeps_it_private(place):
    folder = place / "medhelm" / "hospice_referral"
    assert refused(place, task("access")[0], FACTS) == ""
    assert Dataset(folder).metadata.access == "private" and not Dataset(folder).metadata.scoreable


def test_a_wrong_key_of_a_lock_is_named(tmp_path):
    lock = json.loads((TASKS.datasets["commons_crade"].folder / "data.lock").read_text(encoding="utf-8"))
    (tmp_path / "data.lock").write_text(json.dumps({**lock, "revison": "1"}), encoding="utf-8")
    with pytest.raises(MedtasksError, match=r"data\.lock: revison: unknown key"):
        read_lock(tmp_path)
