"""Every key of a task file and a card, with values of wrong types: one message, and no traceback."""

import copy
import json
import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget
from medtasks_ext.registry.metadata import Card
from medtasks_ext.registry.tasks import TASK_KEYS
from tests.conftest import ROOT

Config = dict[str, Any]
Place = tuple[str, tuple[str, ...]]  # file, and key within it
NAME = "own_mine"
FILES = ("task.yaml", "card.yaml")
#: what people write by mistake, and what they hardly ever do
VALUES: list[Any] = [
    None, 3, -1.5, True, "", "x", "{{ x", "{{ y.z }}", [], {}, [1], [None], {"a": 1}, {1: 2}, [["a"]], "a\nb",
    {"a": {"b": ["c"]}}, "A" * 3_000, [{"a": 1}],
]  # fmt: skip


class _Function(str):
    """`!function NAME`."""


class _Reader(yaml.SafeLoader):
    pass


class _Writer(yaml.SafeDumper):
    pass


_Reader.add_constructor("!function", lambda loader, node: _Function(node.value))
_Writer.add_representer(_Function, lambda writer, text: writer.represent_scalar("!function", str(text)))


#: one with an ordinal answer, and one with options, in rows of another form
ORDINAL, CHOICE = "commons/crade", "mlb/maexam"


def base(dataset: str = ORDINAL) -> dict[str, Config]:
    """A small dataset of one's own: file -> what it says, but for what only its suite knows."""
    folder = ROOT / "tasks" / dataset
    found = {name: yaml.load((folder / name).read_text("utf-8"), _Reader) for name in FILES}
    found["task.yaml"] |= {"task": NAME, "dataset": "own/mine"}
    found["task.yaml"].pop("official", None)
    found["task.yaml"]["rows"].pop("download", None)
    for key in ("axes", "source_terms"):
        found["card.yaml"].pop(key, None)
    return found


def places(dataset: str = ORDINAL) -> Iterator[Place]:
    """All keys that the files have, at any depth, and those at the top that they might have."""

    def within(said: Config, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for key, value in said.items():
            yield (*above, key)
            if isinstance(value, dict):
                yield from within(value, (*above, key))

    known = {"task.yaml": TASK_KEYS, "card.yaml": Card.model_fields}
    for name, said in base(dataset).items():
        yield from ((name, place) for place in within(said))
        yield from ((name, (key,)) for key in known[name] if key not in said)


def cases(dataset: str = ORDINAL, times: int = 2) -> list[tuple[Place, Any]]:
    """Each key twice, the values in turn."""
    values = cycle(VALUES)
    return [(place, next(values)) for place in places(dataset) for _ in range(times)]


CASES = cases()
#: keys of the second dataset that the first does not have
OTHERS = [case for case in cases(CHOICE, 3) if case[0] not in set(places())]


@pytest.fixture
def dataset() -> str:
    return ORDINAL


@pytest.fixture
def write(tmp_path, monkeypatch, tasks_of, dataset):
    """Writes the dataset of one's own with one wrong value; beside it there is one built-in dataset."""
    tasks_of("commons/medarabiq_mcq")
    folder = tmp_path / "mine" / "mine"
    shutil.copytree(ROOT / "tasks" / dataset, folder, ignore=shutil.ignore_patterns("*.lock", "*.yaml"))
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT", raising=False)  # a defect is one line with a place
    said = base(dataset)

    def written(place: Place | None = None, value: Any = None) -> Path:
        changed = copy.deepcopy(said)
        if place:
            inner = changed[place[0]]
            for key in place[1][:-1]:
                inner = inner[key]
            inner[place[1][-1]] = value
        for name, content in changed.items():
            text = yaml.dump(content, Dumper=_Writer, allow_unicode=True, sort_keys=False)
            (folder / name).write_text(text, "utf-8")
        forget()
        return folder

    return written


def fault(outcome: Any) -> str:
    """What is wrong with how a command answers; nothing where it does as it should."""
    said = outcome.out + outcome.err
    if "Traceback" in said or "MEDTASKS_SHOW_TEXT" in said or outcome.code not in (0, 1, 2):
        return f"code {outcome.code}: {said[-300:]}"
    if outcome.code == 2 and not any(name in said for name in (*FILES, "sample.jsonl", "own/mine")):
        return f"no file is named: {said[-300:]}"
    if f"no task or group named '{NAME}'" in said:
        return f"not named: {said[-300:]}"
    return ""


@pytest.mark.parametrize(
    ("dataset", "command", "cases"),
    [
        (ORDINAL, "dev validate", CASES[::2]),
        pytest.param(ORDINAL, "dev validate", CASES[1::2], marks=pytest.mark.nightly),
        (CHOICE, "dev validate", OTHERS[::2]),
        (ORDINAL, "preview --data sample", CASES[3::11]),
        (ORDINAL, "run --model oracle --data sample --output_path out --tasks", CASES[3::11]),
    ],
    ids=["every key", "every key again", "of options", "preview", "run"],
)
def test_a_wrong_value_is_one_message(write, medtasks, command, cases):
    write()
    assert medtasks("dev", "validate", NAME).code == 0
    found = {}
    for place, value in cases:
        write(place, value)
        if said := fault(medtasks(*command.split(), NAME)):
            found[(place, json.dumps(value))] = said
    assert not found and len(cases) > 10


def test_plain_lm_eval_gets_one_message_and_no_error_of_another_kind(write):
    """As `lm_eval --tasks own_mine --include_path FOLDER` loads it."""
    found = {}
    for place, value in [case for case in CASES if case[0][0] == "task.yaml"][1::6]:
        if place[1] in {("task",), ("class",)}:  # lm-eval finds no task of ours there
            continue
        folder = write(place, value)
        try:
            manager = TaskManager(
                include_path=str(folder.parent), include_defaults=False, metadata={"data": "sample"}
            )
            manager.load([NAME])
        except MedtasksError as error:
            if "task.yaml" not in str(error) and "own/mine" not in str(error):
                found[(place, json.dumps(value))] = f"no file is named: {error}"
        except Exception as error:
            found[(place, json.dumps(value))] = f"{type(error).__name__}: {error}"
    assert not found
