"""What `medtasks dev validate` says of keys and values of task files and cards."""

import copy
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import Dataset, Registry, registry
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.runner.validate import RunFolder
from medtasks_ext.strict import read_mapping
from tests.conftest import declare_suites

TASKS = registry()


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


def test_the_unchanged_file_is_accepted(place):
    config = changed("task", "medhelm_hospice_referral")
    assert refused(place, config) == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (changed("answer", rename="answr"), "did you mean answer?"),
        (changed("metadata.version", rename="versoin"), "did you mean version?"),
        (changed("about.language", "english"), "'english' is no code of ISO 639"),
        (changed("about.stage", "triage_referral"), "did you mean triage_and_referral?"),
        (changed("about.specialties", []), "at least 1 item"),
        (changed("about.document_types", "general_ehr_note"), "should be a list"),
        (changed("about.n_test", "many"), "whole number"),
        (changed("about.url"), "url: missing key → where the data is"),
        (changed("about.axes.category", "administation"), "did you mean administration?"),
        (changed("about.axes.subcategory"), "subcategory: missing key (an axis of medhelm/suite.yaml)"),
        (changed("about.source_terms", {"access": "publik"}), "did you mean public?"),
        (changed("rows.max_test", "a few"), "whole number"),
        (changed("prompt.instruction"), "prompt.instruction: missing key"),
        (changed("prompt.instruction_role", "sytem"), "should be 'system' or 'user'"),
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
def test_a_wrong_key_or_value_is_refused_in_words(place, config, said):
    assert said in refused(place, config)


SPLIT = dict(TASKS.datasets["medhelm_hospice_referral"].config)
FACTS = read_mapping(TASKS.datasets["medhelm_hospice_referral"].folder / "card.yaml")


def task(*arguments: object, **more: object) -> tuple[dict, dict]:
    return changed(*arguments, config=SPLIT, **more), FACTS


def card(*arguments: object, **more: object) -> tuple[dict, dict]:
    return SPLIT, changed(*arguments, config=FACTS, **more)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (task("language", "english"), "task.yaml: language: 'english' is no code of ISO 639"),
        (task("language"), "task.yaml: language: missing key → of the documents, a code of ISO 639"),
        (task("stage", "triage_and_referral"), "task.yaml: stage: unknown key"),
        (task("official_budget", 0), "task.yaml: official_budget: "),
        (task("gold_loss", 1), "task.yaml: gold_loss: "),
        (card("stage", "triage_referral"), "card.yaml: stage: 'triage_referral' is not in"),
        (card("access", "open"), "access: unknown key: it belongs in task.yaml"),
        (card("url"), "card.yaml: url: missing key → where the data is"),
        (card("axes.category", "administation"), "did you mean administration?"),
        (card("axes"), "card.yaml: axes: category: missing key"),
    ],
)
def test_each_file_is_refused_in_words_with_its_name_and_key(place, files, said):
    config, facts = files
    assert said in refused(place, config, facts)


def test_who_does_not_say_that_data_is_open_keeps_it_private(place):
    folder = place / "medhelm" / "hospice_referral"
    assert refused(place, task("access")[0], FACTS) == ""
    assert Dataset(folder).metadata.access == "private" and not Dataset(folder).metadata.scoreable
