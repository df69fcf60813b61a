"""The tasks on disk: where they are, and what each YAML file says.

Reads YAML without importing lm-eval, so that listing tasks takes a fraction of a second.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.blocks import AnswerBudget
from medtasks_ext.registry.datalock import DataLock, are_pinned, read_lock, with_lock
from medtasks_ext.registry.folders import own_folders, tasks_folder
from medtasks_ext.registry.functions import (
    Family,
    check_kind,
    check_metrics,
    family_of,
    kinds_of_any_language,
)
from medtasks_ext.registry.metadata import Card, Facts, Metadata, TaskFacts
from medtasks_ext.registry.strategies import (
    STRATEGIES,
    SUFFIX,
    by_likelihood,
    dataset_and_strategy,
    suffix_of,
)
from medtasks_ext.registry.suites import (
    NO_SUITE,
    SUITE_FILE,
    TERMS,
    Suite,
    check_suite_name,
    language_name,
    no_suite,
    suite_of,
    suites_below,
    vocabulary,
)
from medtasks_ext.strict import Config, fault_of, read_mapping, read_yaml

log = logging.getLogger(__name__)

#: Tokens of an answer where no file says otherwise: room for models that reason before they answer.
ANSWER_BUDGET = 4000

#: What a task file says of the dataset, besides keys of lm-eval and single facts (`TaskFacts`).
BLOCKS = ("rows", "prompt", "answer", "judge", "official")
#: Keys of what lm-eval can and no task here does -> the one value that they may have, and why.
_FIXED: dict[str, tuple[Any, str]] = {
    "doc_to_image": (None, "No task has pictures."),
    "doc_to_audio": (None, "No task has sound."),
    "unsafe_code": (False, "No dataset's answers are run outside the sandbox."),
    "output_type": ("generate_until", "The strategy says how a task is asked."),
}
#: Keys with a least value; a document that is asked more than once needs a temperature above 0.
_LEAST = {"num_fewshot": 0, "repeats": 1}
_TEXTS = (
    "task", "task_alias", "class", "dataset", "training_split", "validation_split", "test_split",
    "fewshot_split", "process_docs", "doc_to_text", "doc_to_target", "process_results", "use_prompt",
    "description",
    "target_delimiter", "fewshot_delimiter", "doc_to_decontamination_query", "gen_prefix",
)  # fmt: skip
#: What a task file may say at its top level: `include`, and keys of lm-eval's `TaskConfig` and of the class.
#: Each has the types that it takes, or none where another reader looks at the value.
TASK_KEYS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(("include", "tag"), (str, list)),
    **dict.fromkeys(("metric_list", "filter_list"), (list,)),
    **dict.fromkeys(("fewshot_config", "generation_kwargs", "metadata", *BLOCKS, "about"), (dict,)),
    "doc_to_choice": (str, dict, list),
    **dict.fromkeys(_LEAST, (int,)),
    "should_decontaminate": (bool,),
    **dict.fromkeys(("strategy", *_FIXED, *TaskFacts.model_fields), ()),
}
_WORDS = {
    str: "a text",
    list: "a list",
    dict: "keys and values",
    int: "a whole number",
    bool: "true or false",
}


def check_types(config: Mapping[str, Any], *, where: Path) -> None:
    """Refuse what lm-eval's keys and blocks cannot hold. A function may stand where a text is expected."""
    for key, value in config.items():
        types = TASK_KEYS.get(key, ())
        expected = " or ".join(_WORDS[kind] for kind in types)
        right = not types or (str in types and callable(value)) or (value is None and bool not in types)
        for kind in types:
            right |= isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if isinstance(value, int) and value < _LEAST.get(key, value):
            right, expected = False, f"{expected}, at least {_LEAST[key]}"
        if value == [] or (key == "process_results" and value == ""):
            right, expected = False, f"{'a list' if value == [] else 'a text'} that holds something"
        if key in _FIXED and value != _FIXED[key][0]:
            right, expected = False, f"left out: {_FIXED[key][1]}"
        if not right:
            raise MedtasksError(f"{key}: should be {expected}", where=where, remedy=_KEYS)


#: The hand-written files of a dataset folder: what is asked and how answers are read; the other facts.
TASK_FILE, CARD_FILE = "task.yaml", "card.yaml"
_KEYS = "docs/keys.md lists the keys and their values"


@dataclass(frozen=True)
class Dataset:
    """One dataset folder: `task.yaml`, and beside it `card.yaml`, `data.lock` and sample rows."""

    folder: Path
    #: what is said in place of the folder's own file, by a task that includes it and changes a part
    given: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    source: Path | None = field(default=None, compare=False)  # the file of that task

    @property
    def file(self) -> Path:
        return self.source or self.folder / TASK_FILE

    @property
    def sample_file(self) -> Path:
        return self.folder / "sample.jsonl"

    @cached_property
    def config(self) -> Mapping[str, Any]:
        if self.given is not None:
            return self.given
        return read_yaml(self.file, (self.file.parents[2], tasks_folder(), *own_folders()))

    @cached_property
    def id(self) -> str:
        """The dataset's id, which is the name of its zero-shot task."""
        name = self.config.get("task")
        if not isinstance(name, str):
            remedy = "name the task: SUITE_DATASET"
            raise MedtasksError("key `task` is missing", where=self.file, remedy=remedy)
        return name

    @property
    def called(self) -> set[str]:
        """The names by which people call it, also where its file cannot be read."""
        folder, suite = self.folder.name, self.folder.parent
        prefix = suite.name if (suite / SUITE_FILE).is_file() else NO_SUITE
        try:
            said = re.findall(r"^task:[ \t]*['\"]?(\w+)", self.file.read_text("utf-8"), flags=re.MULTILINE)
        except (OSError, UnicodeDecodeError):
            said = []
        return {folder, f"{prefix}_{folder}", *said}

    @cached_property
    def blocks(self) -> Config:
        """Where rows come from, how they become prompts, how answers look and are judged."""
        said = {name: self.config[name] for name in BLOCKS if name in self.config}
        # the authors' file of rows has the dataset's name, whatever a task that includes it is called
        own = self if self.file == self.folder / TASK_FILE else Dataset(self.folder)
        if isinstance(rows := said.get("rows", {}), dict):
            about = own.config.get("about")
            name = own.config.get("name") or (about.get("name") if isinstance(about, dict) else None)
            if self.suite.files and self.of_paper and name:
                rows = said["rows"] = {"official_name": name, **rows}
            if self.lock and (own is self or _downloads(rows) == _downloads(own.config.get("rows"))):
                said["rows"] = with_lock(rows, self.lock, self.folder)
        if isinstance(prompt := said.get("prompt"), dict):
            said["prompt"] = {"instruction_role": self.suite.instruction_role, **prompt}
        answer = said.get("answer")
        if isinstance(answer, dict) and answer.get("kind") in kinds_of_any_language():
            said["answer"] = {"language": self.record.get("language", ""), **answer}
        return said

    @cached_property
    def lock(self) -> DataLock | None:
        return read_lock(self.folder)

    @cached_property
    def is_pinned(self) -> bool | None:
        """Whether a SHA-256 of ours says what each of its public files holds; None where it has none."""
        rows = self.blocks.get("rows")
        return are_pinned(rows) if isinstance(rows, dict) else None

    @cached_property
    def family(self) -> Family:
        return family_of(self.config, where=self.file)

    @property
    def metric_list(self) -> Sequence[Mapping[str, Any]]:
        return self.config.get("metric_list") or self.family.metric_list

    @property
    def process_results(self) -> str:
        """Dotted name of the function that scores a document, after `!function`."""
        return self.config.get("process_results") or self.family.process_results

    @cached_property
    def suite(self) -> Suite:
        return suite_of(self.folder)

    @property
    def key(self) -> str:
        """How task files name it: `SUITE/NAME`."""
        return f"{self.suite.id}/{self.folder.name}"

    @property
    def of_paper(self) -> bool:
        """Whether the suite's paper has it; any other was added to the suite later."""
        return self.suite.lists(self.key)

    @property
    def official_budget(self) -> AnswerBudget | None:
        own = self.metadata.official_budget
        return AnswerBudget(at_most=own) if own else self.suite.official_budget

    @property
    def answer_budget(self) -> int:
        return int((self.config.get("generation_kwargs") or {}).get("max_gen_toks") or ANSWER_BUDGET)

    @cached_property
    def n_documents(self) -> int:
        """Documents that the suite states; a question is asked once for each order of its options."""
        return self.metadata.n_test * self.trials

    @property
    def trials(self) -> int:
        return int(self.blocks["rows"].get("option_trials") or 1)

    @property
    def n_part(self) -> int:
        """Rows of the test part: those that the paper states, or from which it drew these."""
        return self.metadata.n_rows or self.metadata.n_test

    @property
    def joined_later(self) -> bool:
        """Whether its suite has a paper's datasets and this is none of them. No control or draft joins."""
        return bool(self.suite.datasets) and not self.of_paper and self.metadata.grouped

    @property
    def is_closed(self) -> bool:
        """Whether the answers to a question can be listed: a model's likelihoods choose among them."""
        if self.config.get("process_results") or self.config.get("judge"):
            return False
        return self.family.closed and not self.config["answer"].get("several")

    @property
    def facts(self) -> Facts:
        return facts_of(self.suite, self.config)

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """All facts as the files say them: the task file, at its top level or under `about`, and the card.

        What a file says under `about` takes the place of what it includes, and of the card of a dataset in
        another folder. Raises MedtasksError: a fact stands in two places, or there is neither a card nor
        `about`.
        """
        about, file = self.config.get("about", {}), self.folder / CARD_FILE
        if not isinstance(about, dict):
            raise MedtasksError("about: should be a mapping of keys", where=self.file, remedy=_KEYS)
        about = dict(about)
        card = read_mapping(file) if file.is_file() else {}
        if about:
            own = self.file.parent == self.folder
            beside = {**(read_mapping(self.file) if self.file.is_file() else {}), **(card if own else {})}
            if twice := [key for key in about if key in beside]:
                place = CARD_FILE if twice[0] in card else "the top level"
                what = f"about.{twice[0]}: the key stands at {place}, too"
                raise MedtasksError(what, where=self.file, remedy="say it in one place")
        elif not card:
            what = f"about: missing key, as there is no {CARD_FILE} beside the file"
            raise MedtasksError(what, where=self.file, remedy=f"write {CARD_FILE}; {_KEYS}")
        _check_keys(card, Card.model_fields, TaskFacts.model_fields, TASK_FILE, file, _KEYS)
        top = {key: self.config[key] for key in TaskFacts.model_fields if key in self.config}
        return {**card, **top, **about}

    def place_of(self, key: str) -> tuple[Path, str]:
        """The file that says a fact, or should, and what stands before its name there."""
        if key in self.config.get("about", {}) or ("about" in self.config and key not in self.record):
            return self.file, "about"
        return (self.folder / CARD_FILE if key in Card.model_fields else self.file), ""

    @cached_property
    def metadata(self) -> Metadata:
        facts, record = self.facts, self.record
        remedy = "tasks/README.md lists the keys of a task file"
        _check_keys(self.config, TASK_KEYS, Card.model_fields, CARD_FILE, self.file, remedy)
        check_types(self.config, where=self.file)
        check_kind(facts.kind, where=self.file)
        check_metrics(self.config, where=self.file)
        try:
            return Metadata.read(record, facts)
        except ValidationError as error:
            faults = [(*self.place_of(str(item["loc"][0])), item) for item in error.errors()]
            files, known = {file for file, *_ in faults}, Metadata.model_fields
            several = len(files) > 1
            said = [
                (f"{file.name}: " if several else "") + fault_of(item, root, known)
                for file, root, item in faults
            ]
            where = self.folder if several else files.pop()
            raise MedtasksError("; ".join(said), where=where, remedy=_KEYS) from None

    @property
    def version(self) -> str:
        """Comparability version `N-X`: scores of different N are not comparable."""
        said = self.config.get("metadata")
        return str(said.get("version", "")) if isinstance(said, Mapping) else ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies that its tasks are built for; all, where the file says none."""
        said = self.config.get("strategies")
        return tuple(item for item in STRATEGIES if item in said) if isinstance(said, list) else STRATEGIES

    def has(self, strategy: str) -> bool:
        """Whether it can be asked so: strategies that no task file builds, such as other shots, always."""
        return strategy not in STRATEGIES or strategy in self.strategies

    def task(self, strategy: str) -> str:
        return self.id + suffix_of(strategy)


def _check_keys(
    said: Iterable[str], known: Collection[str], others: Collection[str], place: str, where: Path, remedy: str
) -> None:
    """Refuse a key that is not known; `others` belong in another `place`."""
    if wrong := [key for key in said if key not in known]:
        meant = f": it belongs in {place}" if wrong[0] in others else near(str(wrong[0]), known)
        raise MedtasksError(f"{wrong[0]}: unknown key{meant}", where=where, remedy=remedy)


def _downloads(rows: Any) -> Any:
    return (rows.get("download"), rows.get("database")) if isinstance(rows, dict) else None


def facts_of(suite: Suite, config: Mapping[str, Any]) -> Facts:
    rows, answer = config.get("rows"), config.get("answer")
    try:
        primary = family_of(config, where=None).primary
    except MedtasksError:  # said when the answers are read
        primary = ""
    return Facts(
        suite,
        primary=primary,
        kind=answer.get("kind") if isinstance(answer, dict) else None,
        download=isinstance(rows, dict) and bool(rows.get("download")),
    )


#: Other names that people, and editors, give to a task file.
_ALMOST = ("task.yml", "tasks.yaml", "task.yaml.txt", "Task.yaml", "task.YAML")


def _visible(folder: Path, pattern: str) -> list[Path]:
    """Files below a folder that lie in no hidden one, as a new dataset does until all of it is there."""
    return sorted(
        file
        for file in folder.glob(pattern)
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


@dataclass(frozen=True)
class Datasets:
    root: Path  # the folder `SUITE/DATASET/task.yaml` of the built-in ones
    #: folders with datasets and suites of one's own: `task.yaml`, `DATASET/task.yaml` or
    #: `SUITE/DATASET/task.yaml`. A dataset without `suite.yaml` beside its folder belongs to no suite
    own: tuple[Path, ...] = ()

    @cached_property
    def files(self) -> list[Path]:
        all_files = _visible(self.root, f"*/*/{TASK_FILE}")
        for folder in self.own:
            for pattern in (TASK_FILE, f"*/{TASK_FILE}", f"*/*/{TASK_FILE}"):
                all_files += [file for file in _visible(folder, pattern) if file not in all_files]
        return all_files

    @cached_property
    def suite_files(self) -> list[Path]:
        all_files = _visible(self.root.absolute(), f"*/{SUITE_FILE}")
        for folder in self.own:
            for file in (*folder.glob(SUITE_FILE), *_visible(folder, f"*/{SUITE_FILE}")):
                if file not in all_files:
                    check_suite_name(file, all_files)
                    all_files.append(file)
        return all_files

    def check_folders(self) -> None:
        suites = self.suite_files
        for folder in self.own:
            if not any(folder.iterdir()):
                log.warning("note: %s, a folder for tasks of your own, is empty", folder)
            elif not any(folder in (file.parent, *file.parents[1:3]) for file in (*self.files, *suites)):
                what = f"no {TASK_FILE} in this folder, in the folders in it, or in theirs"
                remedy = "name the folder that holds datasets or suites; "
                remedy += f"`medtasks data new --id {NO_SUITE}_NAME` writes a dataset"
                raise MedtasksError(what, where=f"tasks of your own, {folder}", remedy=remedy)
            suite = folder.parent / SUITE_FILE
            if (folder / TASK_FILE).is_file() and suite.is_file() and suite not in suites:
                what = f"this is one dataset of the suite {suite.parent.name}"
                remedy = f"name the suite's folder: {suite.parent}"
                raise MedtasksError(what, where=f"tasks of your own, {folder}", remedy=remedy)

    def dataset(self, key: str) -> Dataset | None:
        return next((item for item in self.datasets.values() if item.key == key), None)

    def is_own(self, item: Dataset | Suite) -> bool:
        folder = item.folder if isinstance(item, Dataset) else item.file.parent
        return self.root.absolute() not in folder.absolute().parents

    @cached_property
    def datasets(self) -> dict[str, Dataset]:
        """Dataset id -> dataset, for every folder whose YAML can be read."""
        return {item.id: item for item, error in self._scan if not error}

    @cached_property
    def broken(self) -> dict[Path, str]:
        """Task files that cannot be read, with the reason. lm-eval drops such files silently."""
        return {item.folder: str(error) for item, error in self._scan if error}

    def check_readable(self, name: str) -> None:
        """Raise the fault of the file of a task that is not known since its file cannot be read."""
        parts = dataset_and_strategy(name)
        asked = {name, name.removesuffix(SUFFIX["cot"]), parts[0] if parts else name}
        for item, error in self._scan:
            if error and asked & item.called:
                raise error
        places = [(self.root, "*/*"), *((folder, part) for folder in self.own for part in (".", "*", "*/*"))]
        patterns = ((root, f"{part}/{name}") for root, part in places for name in _ALMOST)
        for file in (file for root, pattern in patterns for file in _visible(root, pattern)):
            if not (file.parent / TASK_FILE).is_file() and asked & Dataset(file.parent).called:
                what = f"is not read: a task file is called {TASK_FILE}"
                raise MedtasksError(what, where=file, remedy="rename it")

    @cached_property
    def _scan(self) -> list[tuple[Dataset, MedtasksError | None]]:
        scanned: list[tuple[Dataset, MedtasksError | None]] = []
        places: dict[str, Path] = {}
        for file in self.files:
            dataset = Dataset(file.parent)
            try:
                _ = dataset.id, dataset.metadata
                self._check_place(dataset, places)
                scanned.append((dataset, None))
            except MedtasksError as error:
                scanned.append((dataset, error))
        return scanned

    def _check_place(self, dataset: Dataset, places: dict[str, Path]) -> None:
        """Refuse a dataset whose task or folder has a name that another one has; built-in ones come first."""
        for kind, name in (("task", dataset.id), ("dataset", dataset.key)):
            other = places.setdefault(f"{kind} {name}", dataset.file)
            if other != dataset.file:
                what = f"{kind} {name!r} is also in {other}"
                raise MedtasksError(what, where=dataset.file, remedy="rename one of them")
        named = dataset.config.get("dataset", dataset.key)
        if self.is_own(dataset) and named != dataset.key:  # the rows of another folder would be asked
            what = f"dataset: {named!r} is not this folder"
            raise MedtasksError(what, where=dataset.file, remedy=f"write {dataset.key}")

    @cached_property
    def suites(self) -> dict[str, Suite]:
        """The suites that are declared, by name, in their order; those that cannot be read are left out."""
        declared = suites_below(file.parent for file in self.suite_files)
        with suppress(MedtasksError):  # what is wrong with the vocabulary, its datasets say
            return {**declared, **({NO_SUITE: no_suite()} if self.own else {})}
        return declared

    def datasets_of(self, suite: Suite) -> list[Dataset]:
        return [dataset for dataset in self.datasets.values() if dataset.suite.id == suite.id]

    @cached_property
    def titles(self) -> dict[str, dict[str, str]]:
        """Axis -> value -> title, in the order of display, over all suites; `suite` is an axis, too."""
        suites = list(self.suites.values())
        titles = {axis: dict(vocabulary()[kind]) for axis, kind in TERMS.items()}
        for suite in suites:
            for axis in (*TERMS, *suite.axes):
                titles[axis] = {**suite.titles(axis), **titles.get(axis, {})}
        for code in dict.fromkeys(item.metadata.language for item in self.datasets.values()):
            titles["language"].setdefault(code, language_name(code) or code)
        titles["suite"] = {suite.id: suite.title for suite in suites}
        return titles

    @cached_property
    def tasks(self) -> dict[str, tuple[Dataset, str]]:
        """Task name -> (dataset, strategy)."""
        return {
            item.task(strategy): (item, strategy)
            for item in self.datasets.values()
            for strategy in item.strategies
        }

    def asked(self, name: str) -> tuple[Dataset, str] | None:
        """Dataset and strategy behind the name of a result: of a task, or of one with other shots."""
        if name in self.tasks:
            return self.tasks[name]
        parts = dataset_and_strategy(name)
        dataset = self.datasets.get(parts[0]) if parts else None
        if parts is None or dataset is None or (by_likelihood(parts[1]) and not dataset.is_closed):
            return None
        return dataset, parts[1]

    def known(self, name: str) -> tuple[Dataset, str]:
        """Dataset and strategy behind a name as for `asked`; KeyError where there are none."""
        if (pair := self.asked(name)) is None:
            raise KeyError(name)
        return pair


def scored_by_words(dataset: Dataset) -> str:
    """What to know of the score, in brackets: who gives it, and what a perfect answer gets."""
    notes = ["given by judges"] if "judge" in dataset.blocks else []
    highest = dataset.metadata.oracle_max
    if highest == "per_document":
        notes.append("what a perfect answer gets depends on the rows")
    elif highest != 1:
        notes.append(f"a perfect answer gets {highest}")
    return f" ({'; '.join(notes)})" if notes else ""


def rows_words(dataset: Dataset) -> list[str]:
    source = dataset.blocks["rows"]
    facts = []
    if download := source.get("download"):
        name = download.get("repo") or download["test"][0].split("!")[0].rsplit("/", 1)[-1]
        kind = "pinned download" if dataset.is_pinned else "download without a digest"
        facts.append(f"{kind}: {name} at {str(download.get('revision', 'main'))[:12]}")
    layouts, schemas = source.get("original", []), [source, *source.get("schemas", [])]
    if any(item.get("rebuilt", True) for item in layouts) or any(item.get("rebuilt") for item in schemas):
        facts.append("rebuilt where rows come from the original source")
    return ["; ".join(facts)] if facts else []
