"""Groups, derived from metadata and from what the suites declare; the registry of all names.

A dataset joins its groups by its metadata alone. Names carry the strategy's suffix.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.registry.folders import own_folders, tasks_folder
from medtasks_ext.registry.metadata import Metadata
from medtasks_ext.registry.strategies import LIKELIHOOD, LIKELIHOOD_SUFFIX, SUFFIX
from medtasks_ext.registry.suites import Suite, read_suite
from medtasks_ext.registry.tasks import Dataset, Datasets

#: What stands where a person must write something. `medtasks dev validate` asks for it to be replaced.
PLACEHOLDER = "TODO:"


def check_suite(known: Datasets, file: Path) -> None:
    """What the file of a suite lists is there, in its folder or of other suites, and is one thing."""
    suite = read_suite(file.parent)
    by_name = {item.folder.name: item for item in known.datasets_of(suite)}

    def refused(what: str, remedy: str) -> MedtasksError:
        return MedtasksError(what, where=file, remedy=remedy)

    if not by_name:
        raise refused("the suite has no dataset", "add one (`medtasks data new`), or delete the folder")
    for key, names in suite.listings.items():
        if absent := [name for name in names if name not in by_name]:
            what = f"{key}: no dataset {absent[0]!r} in the folder{near(absent[0], by_name)}"
            raise refused(what, "correct the name, or bring the folder back")
        for name in names:
            metadata = by_name[name].metadata
            if metadata.draft:
                raise refused(
                    f"{key}: {name!r} is a draft, and counts in no suite",
                    "leave it out until `draft` is gone from its card",
                )
            if control := metadata.control_of:
                what = f"asks the rows of {control} in another form, and counts in no suite"
                raise refused(f"{key}: {name!r} {what}", "leave it out")


#: Whose groups join the suites.
SHARED = "medtasks"
#: Axes that join the suites: axis -> what the names of its groups begin with.
SHARED_AXES = {"language": "", "specialties": "spec_", "stage": "stage_"}


def suite_of_group(known: Datasets, name: str) -> Suite | None:
    """The suite whose task or group a name is, of several the longest; None across suites."""
    named = [item for item in known.suites.values() if name == item.id or name.startswith(f"{item.id}_")]
    return max(named, key=lambda suite: len(suite.id), default=None)


def _own_names(dataset: Dataset, axes: Iterable[str]) -> list[str]:
    suite, values = dataset.suite, dataset.metadata.axis
    return [suite.named(suite.groups[axis], value) for axis in axes for value in values(axis)]


def _memberships(dataset: Dataset) -> list[str]:
    """The groups of a dataset, coarse axes first; none of a control or a draft, which count in no suite."""
    metadata, suite = dataset.metadata, dataset.suite
    if not metadata.grouped:
        return []
    names = [suite.id, *_own_names(dataset, suite.groups)]
    for axis, sets in suite.sets.items():
        values = set(metadata.axis(axis))
        names += [f"{suite.id}_{name}" for name, some in sets.items() if values & set(some)]
    across = [SHARED] if suite.in_totals else []
    for owner in across:
        for axis, prefix in SHARED_AXES.items():
            names += [f"{owner}_{prefix}{value}" for value in metadata.axis(axis)]
    owners = [suite.id, *across]
    if metadata.scoreable:
        names += [f"{owner}_scoreable" for owner in owners]
        names += [f"{owner}_pinned" for owner in owners if dataset.is_pinned]
    names += [f"{owner}_{metadata.access}" for owner in owners]
    if metadata.use == "any":
        names += [f"{owner}_use_any" for owner in across]
    return names


class Registry(Datasets):
    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """Group -> its tasks; of a suite's own group, the groups of its partition."""
        groups: dict[str, list[str]] = {}
        for name, (dataset, strategy) in self.tasks.items():
            for group in dict.fromkeys(_memberships(dataset)):
                groups.setdefault(group + SUFFIX[strategy], []).append(name)
        for suite in self.suites.values():
            for suffix in SUFFIX.values():
                datasets = [self.tasks[name][0] for name in groups.get(suite.id + suffix, [])]
                if parts := [
                    name + suffix
                    for axis in suite.partition
                    for dataset in datasets
                    for name in _own_names(dataset, [axis])
                ]:
                    groups[suite.id + suffix] = list(dict.fromkeys(parts))
        return dict(sorted(groups.items()))

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """Group -> its tasks, of the groups that lists show and lm-eval gets.

        These are the suites' own groups, and each other of several tasks that no other has. Of the other ways
        to ask, suites, the groups that divide a suite, languages, and all that can be scored have a group.
        """
        asked = dict.fromkeys(self.suites)
        others: list[str] = []
        for dataset in self.datasets.values():
            if names := _memberships(dataset):
                asked |= dict.fromkeys(_own_names(dataset, dataset.suite.partition))
                asked[f"{SHARED}_{dataset.metadata.language}"] = None
                others += names
        asked[f"{SHARED}_scoreable"] = None
        listed: dict[str, list[str]] = {}
        known = set[frozenset[str]]()
        suffixed = [name + suffix for suffix in (*SUFFIX.values(), LIKELIHOOD_SUFFIX) for name in asked]
        for name in filter(self.knows, dict.fromkeys([*suffixed, *others])):
            leaves = self.leaves(name)
            if name in self.suites or (len(leaves) > 1 and frozenset(leaves) not in known):
                listed[name] = leaves
                known.add(frozenset(leaves))
        return dict(sorted(listed.items()))

    def leaves(self, name: str) -> list[str]:
        """The tasks that a name of a task or group stands for, in order, each once."""
        if self.asked(name):
            return [name]
        if name.endswith(LIKELIHOOD_SUFFIX) and name not in self.groups:
            return self._closed(self.leaves(name.removesuffix(LIKELIHOOD_SUFFIX)))
        return list(dict.fromkeys(leaf for member in self.groups[name] for leaf in self.leaves(member)))

    def _closed(self, leaves: Iterable[str]) -> list[str]:
        """The tasks by which the datasets of zero-shot tasks are asked by likelihood, where they can be."""
        datasets = [self.known(leaf)[0] for leaf in leaves]
        return [item.task(LIKELIHOOD) for item in datasets if item.is_closed]

    def asked_for(self, names: Iterable[str], *, likelihood: bool = False) -> dict[str, list[str]]:
        """Requested name -> its tasks, also names that say by their suffix that likelihood is asked."""
        given = list(names)
        chosen = [
            name
            for name in given
            if likelihood
            or (name.endswith(LIKELIHOOD_SUFFIX) and self.knows(name) and name not in self.tasks)
        ]
        asked = self.resolve(name for name in given if name not in chosen)
        for name, leaves in self.resolve(name.removesuffix(LIKELIHOOD_SUFFIX) for name in chosen).items():
            if any(self.known(leaf)[1] != "zero_shot" for leaf in leaves):
                what = f"{name}: likelihood is asked of the zero-shot prompts"
                remedy = "leave the suffix out; --num_fewshot K gives the prompts examples"
                raise MedtasksError(what, where="--ask likelihood", remedy=remedy)
            if not (closed := self._closed(leaves)):
                kinds = sorted({str(self.known(leaf)[0].config["answer"]["kind"]) for leaf in leaves})
                raise MedtasksError(
                    f"{name}: its answers ({', '.join(kinds)}) cannot be listed, and likelihood chooses "
                    "among possible answers",
                    where="--ask likelihood",
                    remedy=f"leave --ask out: the model writes its answers to {name}",
                )
            asked[name + LIKELIHOOD_SUFFIX] = closed
        return asked

    def knows(self, name: str) -> bool:
        bare = name.removesuffix(LIKELIHOOD_SUFFIX)
        return self.asked(name) is not None or bare in self.groups

    def parts(self, name: str) -> list[list[str]]:
        """The tasks behind a group's score: a mean over parts, each the mean of its tasks. None: no score."""
        parts = self.parts_of(name)
        return [self.leaves(name)] if parts is None else parts

    def parts_of(self, name: str) -> list[list[str]] | None:
        """The tasks of a group whose score is not the plain mean over its tasks, part by part.

        A suite may take its own figure as the mean over the values of an axis, and may leave datasets out of
        the means of an axis (`averaged_over` and `left_out` of `suite.yaml`). A suite's groups are means over
        its paper's datasets; those that joined later count where a group holds nothing else. None for any
        other name.
        No part: several tasks of a suite that says that they have no mean (`averaged: false`).
        """
        if name.endswith(LIKELIHOOD_SUFFIX) and name not in self.groups and self.asked(name) is None:
            parts_asked = self.parts_of(name.removesuffix(LIKELIHOOD_SUFFIX))
            return None if parts_asked is None else list(filter(None, map(self._closed, parts_asked)))
        suite = suite_of_group(self, name) if name in self.groups else None
        if suite is None:
            return None
        leaves = self.leaves(name)
        if not suite.averaged and len(leaves) > 1:
            return []
        bare = name.removesuffix(SUFFIX[self.tasks[leaves[0]][1]])
        datasets = {leaf: self.tasks[leaf][0] for leaf in leaves}
        of_paper = [leaf for leaf in leaves if suite.lists(datasets[leaf].key)] or leaves
        left_out = {
            leaf
            for axis in suite.left_out
            for leaf in of_paper
            if suite.leaves_out(axis, datasets[leaf].key)
            and bare in {suite.group_name(axis, value) for value in datasets[leaf].metadata.axis(axis)}
        }
        counted = [leaf for leaf in of_paper if leaf not in left_out] or of_paper
        if bare == suite.id and suite.averaged_over:
            parts: dict[str, list[str]] = {}
            for leaf in counted:
                parts.setdefault(datasets[leaf].metadata.axis(suite.averaged_over)[0], []).append(leaf)
            return list(parts.values())
        return [counted] if len(counted) < len(leaves) else None

    def leaves_of(self, names: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(leaf for leaves in self.resolve(names).values() for leaf in leaves))

    def resolve(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Requested name -> its tasks. Globs are allowed; of an unknown name the nearest are named."""
        known: list[str] = []
        resolved: dict[str, list[str]] = {}
        for name in names:
            if name in self.tasks:  # tasks stand without the groups
                resolved[name] = [name]
                continue
            known = known or [*self.groups, *self.tasks]
            matches = fnmatch.filter(known, name) if any(mark in name for mark in "*?[") else []
            if matches and (meant := suite_of_group(self, name)):
                # names of a suite may begin as those of another: `SUITE_*` means this suite
                matches = [match for match in matches if suite_of_group(self, match) is meant] or matches
            for match in matches or [name]:
                if match not in known:
                    for folder in (file.parent for file in self.suite_files):
                        if match == folder.name or match.startswith(f"{folder.name}_"):
                            read_suite(folder)  # raises where its names are not known for that
                    self.check_readable(match)
                    meant_by = ", ".join(difflib.get_close_matches(name, known, n=4, cutoff=0.5))
                    remedy = f"did you mean: {meant_by}? " if meant_by else ""
                    own = "" if self.own else ", and MEDTASKS_TASKS=FOLDER adds tasks of your own"
                    what = f"no task or group named {name!r}"
                    raise MedtasksError(what, remedy=f"{remedy}`medtasks ls` lists all names{own}")
                resolved[match] = self.leaves(match)
        return resolved

    @cached_property
    def suite_faults(self) -> dict[Path, str]:
        """Files of suites that cannot be read, or that list what is not there, with the reason."""
        faults = {}
        for file in self.suite_files:
            try:
                check_suite(self, file)
            except MedtasksError as error:
                faults[file] = str(error)
        return faults


def registry(*, empty: bool = False) -> Registry:
    """The built-in tasks and those of one's own, read once per process; own folders may be `empty`."""
    tasks = _registry(tasks_folder(), own_folders())
    if not empty:
        tasks.check_folders()
    return tasks


@lru_cache(maxsize=8)
def _registry(root: Path, own: tuple[Path, ...]) -> Registry:
    return Registry(root, own)


def suites() -> dict[str, Suite]:
    return registry().suites


def forget() -> None:
    _registry.cache_clear()


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
        if all(value in item.metadata.axis(key) for key, value in filters)
    }
    if not left:
        every = tasks.datasets.values()
        found = ((f"{k}={v}", sum(v in item.metadata.axis(k) for item in every)) for k, v in filters)
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
    used = {item: None for dataset in tasks.datasets.values() for item in dataset.metadata.axis(key)}
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


def left_to_write(dataset: Dataset, strategy: str) -> list[str]:
    """Keys of prompts and answers of a task file in which a person must write."""
    unused = f"prompt.strategy_lines.{'answer' if strategy == 'cot' else 'reason'}"
    blocks = (_left(dataset.blocks.get(name), name) for name in ("prompt", "answer", "judge"))
    return list(dict.fromkeys(key for keys in blocks for key in keys if key != unused))


def _left(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else [("", item) for item in value]
        for name, item in items:
            yield from _left(item, f"{key}.{name}" if name else key)
    elif PLACEHOLDER in str(value):
        yield key


def check_written(tasks: Registry, names: Iterable[str]) -> None:
    """Refuse tasks that would ask what a person has not written yet."""
    for name in names:
        if left := left_to_write(*tasks.known(name)):
            what = f"{name} would ask what is not written yet: {PLACEHOLDER[:-1]} stands in {some(left)}"
            remedy = "write it there; `medtasks data new --prompt TEXT --labels A,B` writes it at once"
            raise MedtasksError(what, where=tasks.known(name)[0].file, remedy=remedy)
