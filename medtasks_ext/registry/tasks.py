"""The tasks on disk: where they are, and what each YAML file says.

Reads YAML without importing lm-eval, so that listing tasks takes a fraction of a second.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.families import Family, check_kind, family_of
from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.registry.metadata import Facts, Metadata
from medtasks_ext.registry.suites import TERMS, Suite, near, read_suite, suites_below, vocabulary
from medtasks_ext.registry.yamlfile import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

STRATEGIES = ("zero_shot", "cot", "five_shot")
#: suffix of task, tag and group names, by strategy
SUFFIX = {"zero_shot": "", "cot": "_cot", "five_shot": "_5shot"}
STRATEGY_TITLES = {"zero_shot": "zero-shot", "cot": "chain of thought", "five_shot": "5-shot"}

#: What the key `class` of a task file names.
TASK_CLASS = "medtasks_ext.task.MedicalTask"
#: The hand-written file of a dataset folder.
TASK_FILE = "task.yaml"
#: What a task file says of the dataset, besides keys of lm-eval.
BLOCKS = ("rows", "prompt", "answer", "judge")


@dataclass(frozen=True)
class Dataset:
    """One dataset folder: its hand-written `task.yaml` and what stands beside it.

    Attributes:
        folder: the folder.
        given: what is said in place of the folder's own file, by a task that includes it and changes a part.
        source: the file of that task.
    """

    folder: Path
    given: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    source: Path | None = field(default=None, compare=False)

    @property
    def file(self) -> Path:
        """The hand-written task file."""
        return self.source or self.folder / TASK_FILE

    @property
    def sample_file(self) -> Path:
        """The bundled synthetic rows."""
        return self.folder / "sample.jsonl"

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """What the task file says, includes resolved."""
        return read_yaml(self.file) if self.given is None else self.given

    @cached_property
    def id(self) -> str:
        """The dataset's id, which is the name of its zero-shot task."""
        name = self.config.get("task")
        if not isinstance(name, str):
            raise MedtasksError(
                "key `task` is missing", where=self.file, remedy="name the task: SUITE_DATASET"
            )
        return name

    @property
    def blocks(self) -> dict[str, Any]:
        """Where rows come from, how they become prompts, how answers look and are judged."""
        said = {name: self.config[name] for name in BLOCKS if name in self.config}
        rows, about = said.get("rows", {}), self.config.get("about")
        if self.suite.official_files and self.of_paper and isinstance(rows, dict) and isinstance(about, dict):
            # the authors' file of rows has the dataset's name, unless the task file says another one
            said["rows"] = {"official_name": about.get("name"), **rows}
        return said

    @cached_property
    def family(self) -> Family:
        """How its answers are scored."""
        return family_of(self.config, where=self.file)

    @property
    def metric_list(self) -> Sequence[Mapping[str, Any]]:
        """Its metrics as lm-eval takes them; functions are `!function NAME`."""
        return self.config.get("metric_list") or self.family.metric_list

    @property
    def process_results(self) -> str:
        """Dotted name of the function that scores a document, after `!function`."""
        return self.config.get("process_results") or self.family.process_results

    @cached_property
    def suite(self) -> Suite:
        """The suite whose folder it lies in.

        Raises:
            MedtasksError: the suite's file is missing, or not as it should be.
        """
        return read_suite(self.folder.absolute().parent)

    @property
    def of_paper(self) -> bool:
        """Whether the suite's paper has it; any other was added to the suite later."""
        return self.folder.name in self.suite.datasets

    @property
    def facts(self) -> Facts:
        """What its metadata are read with."""
        return facts_of(self.suite, self.config.get("rows"), self.config.get("answer"))

    @cached_property
    def metadata(self) -> Metadata:
        """The strict metadata record.

        Raises:
            MedtasksError: an unknown key, a missing one, a value outside the vocabulary, or an unknown kind
                of answers, from which the metric follows.
        """
        record = self.config.get("about")
        if not isinstance(record, dict):
            raise MedtasksError(
                "about: should be a mapping of keys",
                where=self.file,
                remedy="docs/metadata.md lists the keys and their values",
            )
        facts = self.facts
        check_kind(facts.kind, where=self.file)
        try:
            return Metadata.read(record, facts)
        except ValidationError as error:
            raise MedtasksError(
                "; ".join(describe(item, "about", Metadata.model_fields) for item in error.errors()),
                where=self.file,
                remedy="docs/metadata.md lists the keys and their values",
            ) from None

    @property
    def version(self) -> str:
        """Comparability version `N-X`: scores of different N are not comparable."""
        return str((self.config.get("metadata") or {}).get("version", ""))

    def task(self, strategy: str) -> str:
        """The task name of one strategy."""
        return self.id + SUFFIX[strategy]


def facts_of(suite: Suite, rows: Any, answer: Any) -> Facts:
    """What a record is read with, from the blocks that say where rows come from and how answers look."""
    return Facts(
        suite,
        kind=answer.get("kind") if isinstance(answer, dict) else None,
        download=isinstance(rows, dict) and bool(rows.get("download")),
    )


#: what pydantic calls a fault -> what is wrong, in plain words
_FAULTS = {
    "missing": "missing key",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "bool_parsing": "should be true or false",
    "string_type": "should be a text (put it in quotes: YAML reads a bare no, a number or a date as such)",
    "list_type": "should be a list",
    "dict_type": "should be a mapping of keys",
    "model_type": "should be a mapping of keys",
}


def describe(error: Any, root: str, known: Iterable[str] = ()) -> str:
    """One pydantic error as `root.path: message`, in plain words.

    Args:
        error: one of `ValidationError.errors()`.
        root: where the validated block is.
        known: keys among which those that resemble an unknown one are named.
    """
    path = ".".join(str(part) for part in (root, *error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{path}: unknown key{near(str(error['loc'][-1]), known)}"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{path}: {_FAULTS.get(error['type'], message)}"


@dataclass(frozen=True)
class Registry:
    """All datasets below one folder, and the names that stand for them."""

    root: Path

    @cached_property
    def datasets(self) -> dict[str, Dataset]:
        """Dataset id -> dataset, for every folder whose YAML can be read."""
        return {item.id: item for item in self._readable}

    @cached_property
    def broken(self) -> dict[Path, str]:
        """Task files that cannot be read, with the reason. lm-eval drops such files silently."""
        return {item.folder: reason for item, reason in self._scan if reason}

    @cached_property
    def _scan(self) -> list[tuple[Dataset, str]]:
        found = []
        for file in sorted(self.root.glob(f"*/*/{TASK_FILE}")):
            dataset = Dataset(file.parent)
            try:
                _ = dataset.id, dataset.metadata
                found.append((dataset, ""))
            except MedtasksError as error:
                found.append((dataset, str(error)))
        return found

    @cached_property
    def suites(self) -> dict[str, Suite]:
        """The suites that are declared, by name, in their order; those that cannot be read are left out."""
        return suites_below(self.root.absolute())

    @cached_property
    def titles(self) -> dict[str, dict[str, str]]:
        """Axis -> value -> title, in the order of display, over all suites; `suite` is an axis, too."""
        suites = list(self.suites.values())
        found = {axis: dict(vocabulary()[kind]) for axis, kind in TERMS.items()}
        for suite in suites:
            for axis in (*TERMS, *suite.axes):
                found[axis] = {**suite.titles(axis), **found.get(axis, {})}
        found["suite"] = {suite.id: suite.title for suite in suites}
        return found

    @property
    def _readable(self) -> Iterator[Dataset]:
        return (item for item, reason in self._scan if not reason)

    @cached_property
    def tasks(self) -> dict[str, tuple[Dataset, str]]:
        """Task name -> (dataset, strategy)."""
        return {
            item.task(strategy): (item, strategy)
            for item in self.datasets.values()
            for strategy in STRATEGIES
        }

    @cached_property
    def tags(self) -> dict[str, list[str]]:
        """Tag -> the tasks that carry it."""
        from medtasks_ext.registry.groups import tags_of

        tagged: dict[str, list[str]] = {}
        for name, (dataset, strategy) in self.tasks.items():
            for tag in tags_of(dataset.metadata, strategy):
                tagged.setdefault(tag, []).append(name)
        return tagged

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """Group -> its members (tags or groups)."""
        from medtasks_ext.registry.groups import groups_of

        return groups_of(self)

    def leaves(self, name: str) -> list[str]:
        """The tasks that a task, tag or group name stands for, in order, each once."""
        if name in self.tasks:
            return [name]
        if name in self.tags:
            return self.tags[name]
        return list(dict.fromkeys(leaf for member in self.groups[name] for leaf in self.leaves(member)))

    def parts(self, name: str) -> list[list[str]]:
        """The tasks behind a group's score: a mean over parts, each the mean of its tasks."""
        from medtasks_ext.registry.groups import parts_of

        return parts_of(self, name) or [self.leaves(name)]

    def resolve(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Requested name -> its tasks. Globs are allowed.

        Raises:
            MedtasksError: a name that is neither task, tag nor group, with the nearest names.
        """
        import fnmatch

        known = [*self.groups, *self.tags, *self.tasks]
        resolved: dict[str, list[str]] = {}
        for name in names:
            matches = fnmatch.filter(known, name) if any(mark in name for mark in "*?[") else []
            for match in matches or [name]:
                if match not in known:
                    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
                    raise MedtasksError(
                        f"no task, group or tag named {name!r}",
                        remedy=(f"did you mean: {', '.join(near)}? " if near else "")
                        + "`medtasks ls` lists all names",
                    )
                resolved[match] = self.leaves(match)
        return resolved


def registry(root: Path | None = None) -> Registry:
    """The registry below a folder (by default the one that `tasks_folder` finds), read once per process."""
    return _registry(root or tasks_folder())


@lru_cache(maxsize=8)
def _registry(root: Path) -> Registry:
    return Registry(root)


def suites() -> dict[str, Suite]:
    """The suites of the registry."""
    return registry().suites


def forget() -> None:
    """Read folders anew from now on, since files were written."""
    _registry.cache_clear()
