"""Files that people write: what `dev validate` says of keys and values, and YAML as lm-eval reads it."""

import copy
import shutil
from pathlib import Path

import pytest
import yaml
from lm_eval.tasks._yaml_loader import load_yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, Registry, registry
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.registry.suites import read_suite
from medtasks_ext.runner.validate import RunFolder
from medtasks_ext.strict import read_mapping, read_yaml
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
        (changed("about.specialties", []), "at least 1 item"),
        (changed("about.document_types", "general_ehr_note"), "should be a list"),
        (changed("about.source_terms", {"access": "publik"}), "did you mean public?"),
        (changed("prompt.instruction"), "prompt.instruction: missing key"),
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
        (task("language"), "task.yaml: language: missing key → of the documents, a code of ISO 639"),
        (task("stage", "triage_and_referral"), "task.yaml: stage: unknown key"),
        (task("official_budget", 0), "task.yaml: official_budget: "),
        (task("gold_loss", 1), "task.yaml: gold_loss: "),
        (card("stage", "triage_referral"), "card.yaml: stage: 'triage_referral' is not in"),
        (card("access", "open"), "access: unknown key: it belongs in task.yaml"),
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


#: What is wrong, its line, and what is said. PyYAML's pure parser reads the first, and libyaml,
#: with which lm-eval reads, refuses it.
UNREADABLE = {
    "a colon before a comma": ("title: {x: [a:, b]}\n", "", "not valid YAML"),
    "a bracket without end": ("title: a\nabout: [\n", ":3", "not valid YAML"),
    "a tab before a key": ("title: a\n\tabout: b\n", ":2", "not valid YAML"),
    "an unknown tag": ("title: !here a\n", ":1", "not valid YAML"),
    "a date that there is not": ("title: 2024-13-45\n", "", "not valid YAML (month must be in 1..12)"),
    "a key twice": ("title: a\nabout: b\ntitle: c\n", ":3", "key 'title' is given twice"),
    "an inner key twice": ("axes:\n  a: {x: 1, x: 2}\n", ":2", "key 'x' is given twice"),
    "no mapping": ("- title\n", "", "expected a mapping of keys"),
    "nothing": ("", "", "expected a mapping of keys"),
}


DOUBLED = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOUBLED, "aliases repeat"),
        ("a: " + "[" * 5000 + "]" * 5000, "too deep|nesting depth"),
        ("a: " + "9" * 5000, "not valid"),
        ("a: 1" + ":59" * 200_000, "a number of more than 300 characters"),
        ("a: 1" + ":59" * 200_000 + ".5", "a number of more than 300 characters"),
        ("#" * (9 << 20), "more than 8 MB"),
    ],
)
def test_a_file_that_is_made_to_keep_the_machine_busy_is_refused(tmp_path, text, message):
    (tmp_path / "task.yaml").write_text(text)
    with pytest.raises(MedtasksError, match=message):
        read_yaml(tmp_path / "task.yaml")
    (tmp_path / "other.yaml").write_text("include: /dev/zero\n")
    with pytest.raises(MedtasksError, match="no file"):
        read_yaml(tmp_path / "other.yaml")


@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_fault_is_one_message_with_the_line(tmp_path, fault):
    text, line, message = UNREADABLE[fault]
    suite = tmp_path / "ward" / "suite.yaml"
    suite.parent.mkdir()
    suite.write_text(text, encoding="utf-8")
    for read in (read_mapping, read_yaml, lambda file: read_suite(file.parent)):
        with pytest.raises(MedtasksError, match="→") as error:
            read(suite)
        assert str(error.value).startswith(f"{suite}{line}: ") or not line
        assert str(suite) in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    "text", ["title:\tWard\n", "base: &one {a: 1}\nother: {<<: *one, b: 2}\n", "a: 012\n"]
)
def test_what_lm_eval_reads_is_read_alike(tmp_path, text):
    file = tmp_path / "task.yaml"
    file.write_text(text, encoding="utf-8")
    assert read_yaml(file) == read_mapping(file) == load_yaml(file)


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("task.yaml", "include: the file includes itself"),
        ("5", "include: 5 is no path"),
        ("[x.yaml]", "no such file"),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)
def test_an_include_that_leads_nowhere_is_named(tmp_path, include, message):
    file = tmp_path / "task.yaml"
    file.write_text(f"include: {include}\ntask: x\n", encoding="utf-8")
    with pytest.raises(MedtasksError, match="→") as error:
        read_yaml(file)
    assert message in str(error.value)
