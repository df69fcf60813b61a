"""Which tasks words on a command line stand for: names, groups, `KEY=VALUE`, parts of names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.groups import Registry
from medtasks_ext.registry.metadata import Metadata
from medtasks_ext.registry.tasks import Dataset

#: what people call a field -> its name
_ALSO_CALLED = {"specialty": "specialties", "document": "document_types"}
#: fields that hold others
_NESTED = ("axes", "source_terms")
#: values that a message lists
_LISTED = 40


def select(tasks: Registry, words: Sequence[str]) -> dict[str, Dataset]:
    """Task -> its dataset, of what words stand for; without any name all datasets' zero-shot tasks.

    Each is a task, tag, group, glob or part of a name, which are joined; or `KEY=VALUE` on a metadata field:
    what matches none of these is left out.
    """
    names = [word for word in words if "=" not in word]
    selected = {task: item for name in names for task, item in _named(tasks, name).items()}
    if not names:
        selected = {item.id: item for item in tasks.datasets.values()}
    filters = [_filter(tasks, word) for word in words if "=" in word]
    left = {
        task: item
        for task, item in selected.items()
        if all(value in tasks.values(item, key) for key, value in filters)
    }
    if not left:
        every = tasks.datasets.values()
        found = ((f"{k}={v}", sum(v in tasks.values(item, k) for item in every)) for k, v in filters)
        counts = [f"{word} has {n}" for word, n in found]
        what = "no dataset matches all of this"
        remedy = f"leave one out: {', '.join(counts)}" if counts else "`medtasks ls` lists all"
        raise MedtasksError(what, where=" ".join(words), remedy=remedy)
    return left


def _named(tasks: Registry, name: str) -> dict[str, Dataset]:
    if not any(name in known for known in (tasks.tasks, tasks.groups)):
        part = {
            item.id: item
            for item in tasks.datasets.values()
            if name.lower() in item.id or name.lower() in item.metadata.name.lower()
        }
        if part:
            return part
        meant = [
            f"{key}={value}"
            for key, titles in tasks.titles.items()
            for value, title in titles.items()
            if name.lower() in (value.lower(), title.lower())
        ]
        if meant:
            remedy = f"did you mean {' or '.join(meant)}?"
            raise MedtasksError(f"no task or group named {name!r}", remedy=remedy)
    # says which names are near
    leaves = (leaf for members in tasks.resolve([name]).values() for leaf in members)
    return {leaf: tasks.tasks[leaf][0] for leaf in leaves}


def _filter(tasks: Registry, word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    key = _ALSO_CALLED.get(key, key)
    own = (axis for suite in tasks.suites.values() for axis in suite.axes)
    facts = (name for name in Metadata.model_fields if name not in _NESTED)
    fields = list(dict.fromkeys(["suite", "scoreable", "use", "third_party_api", *facts, *own]))
    if key not in fields:
        close = get_close_matches(key, fields, n=2)
        what = f"no metadata field {key!r}"
        remedy = (f"did you mean {' or '.join(close)}? " if close else "") + f"fields: {', '.join(fields)}"
        raise MedtasksError(what, where=word, remedy=remedy)
    used = {item: None for dataset in tasks.datasets.values() for item in tasks.values(dataset, key)}
    if value in used:
        return key, value
    titles = tasks.titles.get(key, {})
    called: dict[str, str] = {}
    for item in used:
        called |= {item.lower(): item, titles.get(item, item).lower(): item}
    near = dict.fromkeys(called[name] for name in get_close_matches(value.lower(), called, n=3, cutoff=0.7))
    meant = f"did you mean {' or '.join(f'{key}={item}' for item in near)}? " if near else ""
    known = [item for item in titles if item in used] or list(used)
    shown = f"values: {', '.join(known[:_LISTED])}" + (" …" if len(known) > _LISTED else "")
    raise MedtasksError(f"no dataset has {key}={value}", where=word, remedy=meant + shown)
