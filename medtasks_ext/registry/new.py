"""A new dataset folder: what has to be known of it, and the files that follow."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.atomic import beside
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.folders import PACKAGE, writable
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.registry.groups import Registry
from medtasks_ext.registry.metadata import Metadata, TaskFacts
from medtasks_ext.registry.strategies import OPEN_KINDS, SUFFIX
from medtasks_ext.registry.suites import NO_SUITE, SUITE_FILE, TERMS, Suite, code_of, three_letter_names
from medtasks_ext.registry.tasks import CARD_FILE, TASK_FILE, facts_of
from medtasks_ext.registry.yamlfile import read_mapping, yaml_text

TEMPLATES = Path(__file__).parent / "templates"
#: What stands where a person must write something. `medtasks dev validate` asks for it to be replaced.
PLACEHOLDER = "TODO:"
_ID = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_PINNED = re.compile(r"^  download:", flags=re.MULTILINE)
_N_FEWSHOT, _N_TEST = 5, 6
_OWN_TASKS = (
    "work in a clone of the repository, or in a folder of your own: mkdir my_tasks; "
    f"export MEDTASKS_TASKS=my_tasks; and add --suite {NO_SUITE}"
)
#: What may stay open, and what the file then says in its place.
_OPEN = {
    "name": "the dataset's own name",
    "summary": "one sentence: what goes in, what comes out",
    "url": "where the data is",
    "licence": "under which terms",
    "citation": "BibTeX key, with its entry in citation.bib in this folder",
}


@dataclass(frozen=True)
class Question:
    """One thing that has to be known of a new dataset or suite."""

    key: str  # its name as a flag and in the file
    text: str  # what is asked
    choices: Mapping[str, str] | None = None  # value -> meaning; None where any text will do
    many: bool = False  # whether there may be several values
    required: bool = True  # whether the file cannot be written without it
    offered: tuple[str, ...] | None = None  # values that are shown, where there are too many choices
    axis: bool = False  # whether it is an axis of the suite's own
    help: str = ""  # what else there is to know; else what the key means in the file
    reads: Callable[[str], Any] = str  # makes an answer of any text; raises MedtasksError

    @property
    def flag(self) -> str:
        """How it is answered on the command line, up to the value."""
        return f"--axis {self.key}=" if self.axis else f"--{self.key.replace('_', '-')} "

    @property
    def shown(self) -> list[str]:
        """The values that are listed."""
        return list(self.choices or () if self.offered is None else self.offered)

    def read(self, text: str) -> Any:
        """The answer that a text gives: a value, or a list of values between commas.

        Raises:
            MedtasksError: a value that is none of the choices.
        """
        if self.many:
            parts = [part.strip() for part in text.split(",")]
            return list(dict.fromkeys(self._value(part) for part in parts if part))
        return self._value(text.strip())

    def _value(self, text: str) -> Any:
        if self.choices is not None and text not in self.choices:
            meant = code_of(text) if self.offered is not None else None
            raise MedtasksError(
                f"unknown value {text!r}{near(meant or text, self.choices)}",
                where=self.flag.rstrip(" ="),
                remedy=f"use {'any of' if self.many else 'one of'}: {', '.join(self.shown)}"
                + ("" if self.offered is None else ", or another code of ISO 639"),
            )
        return self.reads(text)


def questions(tasks: Registry, answers: Mapping[str, Any]) -> Iterator[Question]:
    """What has to be known of a new dataset, in order; later questions depend on earlier answers.

    Args:
        answers: key -> answer, filled by the caller before the next question is taken.
    """
    yield Question(
        "id",
        "Name of the dataset in lower case, such as falls_clinic",
        help="names the folder and the tasks; a name that begins with SUITE_ joins this suite.",
    )
    if suite_of(tasks, answers["id"]) is None:
        suites = {name: suite.about for name, suite in tasks.suites.items()}
        yield Question(
            "suite", "Suite that it joins", suites, help="decides the folder, the groups and the axes."
        )
    suite = tasks.suites[suite_of(tasks, answers["id"]) or answers["suite"]]
    yield Question(
        "kind",
        "How an answer is written (docs/keys.md)",
        kinds(suite),
        help="decides how answers are read, and the metrics; docs/keys.md has the keys of each kind.",
    )
    yield _language(tasks, suite)
    for key, text, many in (
        ("task_type", "What is done with a document", False),
        ("document_types", "Kinds of documents", True),
        ("specialties", "Medical specialties", True),
        ("stage", "Clinical stage", False),
        ("access", "Who can get the data", False),
    ):
        yield Question(key, text, suite.terms(TERMS[key]), many=many)
    for key, axis in suite.axes.items():
        known = axis.known(answers[axis.within] if axis.within else None)
        text = f"{key.replace('_', ' ').capitalize()} ({suite.title})"
        yield Question(
            key, text, known, axis=True, help=f"an axis of this suite; {suite.where} has all values."
        )
    yield Question("name", "The dataset's own name", required=False)
    yield Question("summary", "What goes in and what comes out, in one sentence", required=False)


def _language(tasks: Registry, suite: Suite) -> Question:
    """Any language may be given; those that datasets have are shown."""
    known = {**suite.terms(TERMS["language"]), **three_letter_names()}
    used = {item.metadata.language for item in tasks.datasets.values()}
    return Question(
        "language", "Language of the documents", known, offered=tuple(code for code in known if code in used)
    )


def suite_of(tasks: Registry, task: str) -> str | None:
    """The suite that a name begins with, if any."""
    return max((suite for suite in tasks.suites if task.startswith(f"{suite}_")), key=len, default=None)


@dataclass(frozen=True)
class DatasetTemplate:
    """A file of `templates`: what a task file begins with, for answers of one kind."""

    kind: str  # of the answers. Answers that may be scored in several ways have a template for each
    about: str  # what an answer looks like
    block: str  # the task file between the facts and the version
    rows: tuple[Mapping[str, Any], ...]  # patterns of sample rows
    files: Mapping[str, str]  # what stands beside the task file: name -> content
    oracle_max: str | None  # what a perfect answer gets, where it is not 1


@lru_cache(maxsize=1)
def templates() -> dict[str, DatasetTemplate]:
    """All of them, by name."""
    return {path.stem: _read_template(path) for path in sorted(TEMPLATES.glob("*.yaml"))}


def _read_template(path: Path) -> DatasetTemplate:
    said = read_mapping(path)
    kind = yaml_text(said["block"])["answer"]["kind"]
    more = said.get("files", {}), said.get("oracle_max")
    return DatasetTemplate(kind, said["about"], said["block"], tuple(said["rows"]), *more)


def kinds(suite: Suite) -> dict[str, str]:
    """Name of a template -> what an answer looks like, for the kinds that the suite names, or all."""
    return {
        name: item.about
        for name, item in templates().items()
        if not suite.answers or item.kind in suite.answers
    }


@dataclass(frozen=True)
class Draft:
    """A dataset folder that has not been written."""

    task: str  # the dataset's id
    folder: Path  # where it goes
    files: dict[str, str]  # name -> content

    def write(self) -> None:
        """Make the folder at once: a reader, or a crash, sees all of it or nothing.

        Raises:
            MedtasksError: there is such a folder, or it cannot be written.
        """
        if self.folder.exists():
            raise _exists(self.folder)
        made: Path | None = None
        try:
            self.folder.parent.mkdir(exist_ok=True)
            made = beside(self.folder)  # hidden, so that nobody takes it for a dataset
            made.mkdir()
            for name, content in self.files.items():
                (made / name).write_text(content, encoding="utf-8")
            made.rename(self.folder)
        except OSError as error:
            raise MedtasksError(
                f"cannot be written ({error.strerror or error})",
                where=self.folder,
                remedy=_OWN_TASKS,
            ) from None
        finally:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)


def draft(tasks: Registry, answers: Mapping[str, Any], template: DatasetTemplate | None = None) -> Draft:
    """The folder of a new dataset, with placeholders where a person must write something.

    Args:
        answers: key -> answer, to all required `questions`; besides them `_OPEN`'s keys and `n_test`.
        template: in place of the one that the kind of answer has.

    Raises:
        MedtasksError: the name is taken or no name, or the tasks are those of an installed package.
    """
    suite = tasks.suites[suite_of(tasks, answers["id"]) or answers["suite"]]
    name = answers["id"].removeprefix(f"{suite.id}_")
    home = _home(tasks) if suite.id == NO_SUITE else suite.file.parent
    task, folder = f"{suite.id}_{name}", home / name
    if PACKAGE in folder.parents:
        raise MedtasksError("the installed tasks are replaced by updates", where=home, remedy=_OWN_TASKS)
    _check_name(tasks, task, name, folder)
    template = template or templates()[answers["kind"]]
    written, card = _task_file(task, suite, template, answers), _card(suite, answers)
    said = yaml_text(written)
    top = {key: said[key] for key in TaskFacts.model_fields if key in said}
    Metadata.read({**top, **yaml_text(card)}, facts_of(suite, said))  # as it will be read
    files = {
        TASK_FILE: written,
        CARD_FILE: card,
        "sample.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(template)),
        **template.files,
    }
    return Draft(task, folder, files)


def _home(tasks: Registry) -> Path:
    """The folder of one's own into which datasets of no suite go.

    Raises:
        MedtasksError: all folders of one's own are those of suites.
    """
    for folder in writable(tasks.own):
        if not (folder / SUITE_FILE).is_file() and not (folder / TASK_FILE).is_file():
            return folder
    raise MedtasksError(
        "the folders of your own are those of suites or single datasets",
        where=f"--suite {NO_SUITE}",
        remedy="name the suite, or name another folder: medtasks --tasks-dir FOLDER new …",
    )


def _check_name(tasks: Registry, task: str, name: str, folder: Path) -> None:
    if not _ID.fullmatch(name) or name.endswith(("_cot", "_5shot", "_tasks")):
        raise MedtasksError(
            f"{name!r} is no name of a dataset",
            where="--id",
            remedy="use lower-case letters, digits and single underscores, not _cot, _5shot or _tasks last",
        )
    if folder.exists():
        raise _exists(folder)
    for suffix in SUFFIX.values():
        for kind, names in (("task", tasks.tasks), ("group", tasks.groups), ("tag", tasks.tags)):
            if task + suffix in names:
                raise MedtasksError(
                    f"{task + suffix!r} is the name of a {kind}", where="--id", remedy="choose another name"
                )


def _exists(folder: Path) -> MedtasksError:
    return MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")


def _task_file(task: str, suite: Suite, template: DatasetTemplate, answers: Mapping[str, Any]) -> str:
    download = (
        "# TODO: name the public files (docs/data.md), as rows.download with repo (on the Hugging Face hub;\n"
        "# without it `test` lists URLs), test, fewshot; `medtasks data pin` then writes data.lock\n"
    )
    lines = [
        f"class: !function {TASK_CLASS}",
        f"task: {task}",
        f"dataset: {suite.id}/{task.removeprefix(f'{suite.id}_')}",
        f"name: {_scalar(_told(answers, 'name'))}",
        f"language: {_scalar(answers['language'])}",
        f"access: {answers['access']}",
        *([f"oracle_max: {template.oracle_max}"] if template.oracle_max else []),
        "",
        (download if answers["access"] == "open" and not _PINNED.search(template.block) else "")
        + _with_lines(template, suite, answers["language"]),
        "metadata: {version: 1-A}",
        "",
    ]
    return "\n".join(lines)


def _with_lines(template: DatasetTemplate, suite: Suite, language: str) -> str:
    """The template's block, with places for strategy lines where those of the suite would be in English."""
    if language == "en" or {language, "en"} & suite.strategy_lines.keys():
        return template.block
    lines = {
        "answer": "in the language of the rows: reply with nothing but the answer",
        "reason": "in the language of the rows: reason step by step, then write the answer alone after a word"
        " such as Answer, on a last line",
    }
    if template.kind in OPEN_KINDS:  # has no line where it is answered at once
        del lines["answer"]
    written = "".join(f'    {key}: "{PLACEHOLDER} {text}"\n' for key, text in lines.items())
    return template.block.replace("\n  input: ", f"\n  strategy_lines:\n{written}  input: ", 1)


def _card(suite: Suite, answers: Mapping[str, Any]) -> str:
    axes = "".join(f"\n  {key}: {answers[key]}" for key in suite.axes)
    private = not suite.citation and answers["access"] == "private"  # needs no source, but may have one
    cited = [] if private and not answers.get("citation") else ["citation"]
    record = {
        "summary": _scalar(_told(answers, "summary")),
        **{key: _scalar(answers[key]) for key in ("task_type", "document_types", "specialties", "stage")},
        **({"axes": axes} if axes else {}),
        **{key: _scalar(_told(answers, key)) for key in ("url", "licence", *cited)},
        "n_test": answers.get("n_test") or f"0  # {PLACEHOLDER} number of test documents",
    }
    return "".join(f"{key}: {value}\n".replace(": \n", ":\n") for key, value in record.items())


def _told(answers: Mapping[str, Any], key: str) -> Any:
    return answers.get(key) or f"{PLACEHOLDER} {_OPEN[key]}"


def _scalar(value: Any) -> str:
    """A text or list of texts on one line of YAML, quoted where it must be."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")


def _rows(template: DatasetTemplate) -> Iterator[dict[str, Any]]:
    patterns = template.rows
    for number in range(_N_FEWSHOT + _N_TEST):
        split, place = ("fewshot", number) if number < _N_FEWSHOT else ("test", number - _N_FEWSHOT)
        pattern = patterns[number % len(patterns)]
        filled = {key: _filled(value, number + 1) for key, value in pattern.items()}
        yield {"_split": split, "id": f"{split[0]}{place + 1}", **filled}


def _filled(value: Any, number: int) -> Any:
    """A pattern with the number of its row, in texts of any depth."""
    if isinstance(value, list):
        return [_filled(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, number) for key, item in value.items()}
    return value.replace("{n}", str(number)) if isinstance(value, str) else value
