"""Every key of a task file and a card, with values of wrong types: one message, and no traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from medtasks_ext.registry import forget
from medtasks_ext.registry.tasks import TASK_KEYS
from medtasks_ext.rows.json_schema import card_schema
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


def base() -> dict[str, Config]:
    """A small dataset of one's own: file -> what it says."""
    folder = ROOT / "tasks" / "commons" / "crade"
    found = {name: yaml.load((folder / name).read_text("utf-8"), _Reader) for name in FILES}
    found["task.yaml"] |= {"task": NAME, "dataset": "own/mine"}
    del found["task.yaml"]["rows"]["download"]
    return found


def places() -> Iterator[Place]:
    """All keys that the files have, at any depth, and those at the top that they might have."""

    def within(said: Config, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for key, value in said.items():
            yield (*above, key)
            if isinstance(value, dict):
                yield from within(value, (*above, key))

    known = {"task.yaml": TASK_KEYS, "card.yaml": card_schema()["properties"]}
    for name, said in base().items():
        yield from ((name, place) for place in within(said))
        yield from ((name, (key,)) for key in known[name] if key not in said)


def cases() -> list[tuple[Place, Any]]:
    """Each key twice, the values in turn."""
    values = cycle(VALUES)
    return [(place, next(values)) for place in places() for _ in range(2)]


CASES = cases()


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the dataset with one other value."""
    folder = tmp_path / "mine" / "mine"
    folder.mkdir(parents=True)
    source = ROOT / "tasks" / "commons" / "crade"
    for name in ("sample.jsonl", "citation.bib"):
        (folder / name).write_text((source / name).read_text("utf-8"), "utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT", raising=False)  # a defect is one line with a place
    said = base()

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

    yield written
    forget()


def fault(outcome: Any, place: Place) -> str:
    """What is wrong with how a command answers; nothing where it does as it should."""
    said = outcome.out + outcome.err
    if "Traceback" in said or "MEDTASKS_SHOW_TEXT" in said or outcome.code not in (0, 1, 2):
        return f"code {outcome.code}: {said[-300:]}"
    if outcome.code == 2 and not any(name in said for name in (*FILES, "sample.jsonl", "own/mine")):
        return f"no file is named: {said[-300:]}"
    if f"no task, group or tag named '{NAME}'" in said:
        return f"not named: {said[-300:]}"
    return ""


def test_the_dataset_itself_is_right(write, medtasks):
    write()
    assert medtasks("dev", "validate", NAME).code == 0
    assert {key for (_, (key, *_)), _ in CASES} >= {*TASK_KEYS}
    assert len(CASES) > 170


@pytest.mark.parametrize("turn", range(6))
def test_a_wrong_value_is_one_message(write, medtasks, turn):
    found = {}
    for place, value in CASES[turn::6]:
        write(place, value)
        if said := fault(medtasks("dev", "validate", NAME), place):
            found[(place, json.dumps(value))] = said
    assert not found


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "preview --data sample",
        "data where",
        "run --model oracle --data sample --output_path out --tasks",
    ],
)
def test_other_commands_say_it_in_one_message_too(write, medtasks, command):
    found = {}
    for place, value in CASES[3::11]:
        write(place, value)
        if said := fault(medtasks(*command.split(), NAME), place):
            found[(place, json.dumps(value))] = said
    assert not found
