"""A new dataset folder: what has to be known of it, and the files that follow."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

#: What stands where a person must write something. `medtasks dev validate` asks for it to be replaced.
PLACEHOLDER = "TODO:"
_ID = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_OWN = (
    "work in a clone of the repository, or in a folder of your own: mkdir my_tasks; "
    f"export MEDTASKS_TASKS=my_tasks; and add --suite {NO_SUITE}"
)
_SEVERAL = ("document_types", "specialties")


@dataclass(frozen=True)
class DatasetTemplate:
    """A file of `templates`: what a task file begins with, for answers of one kind."""

    kind: str  # of the answers. Answers that may be scored in several ways have a template for each
    about: str  # what an answer looks like
    block: str  # the task file between the facts and the version
    rows: tuple[Mapping[str, Any], ...]  # patterns of sample rows
    files: Mapping[str, str]  # what stands beside the task file: name -> content
    oracle_max: str | None  # what a perfect answer gets, where it is not 1

    def of_columns(self, named: Mapping[str, Sequence[str]], labels: Sequence[str]) -> DatasetTemplate:
        """For a file whose columns have other names, and for other labels; none: the template's.

        `named`: the template's column -> the file's; several hold the parts of a list, such as options.
        """
        head, rest = self.block.split("\nprompt:", 1)
        block, answer = yaml_text(head)["rows"], yaml_text(self.block)["answer"]
        columns, types = block["columns"], block.pop("types", {})
        if unknown := sorted(named.keys() - columns.keys()):
            raise MedtasksError(
                f"answers of kind {self.kind} have no column {unknown[0]}", where="--map",
                remedy=f"name one of: {', '.join(columns)}",
            )  # fmt: skip
        if labels:
            flow = r"(?m)^(  (?:labels|letters): )\[.*\]"
            rest, n = re.subn(flow, lambda found: found[1] + _scalar([*labels]), rest)
            lines = "".join(f'    {_scalar(x)}: "{PLACEHOLDER} when this label is right"\n' for x in labels)
            if not n:
                rest, n = re.subn(r"(?m)^(  labels:\n)(?:    .*\n?)+", lambda found: found[1] + lines, rest)
            if not n:
                what = f"answers of kind {self.kind} have no closed labels"
                raise MedtasksError(what, where="--labels", remedy="leave it out")
            rest = rest.replace("yes or no", " or ".join(labels))
            rest = rest.replace('lettered("ABCDE")', f"lettered({[*labels]})")
        theirs = {ours: [*named.get(ours, [ours])] for ours in columns}
        block["columns"] = {name: columns[ours] for ours, names in theirs.items() for name in names}
        if kept := {names[0]: types[x] for x, names in theirs.items() if x in types and len(names) == 1}:
            block["types"] = kept
        if fields := {ours: _read(names) for ours, names in theirs.items() if names != [ours]}:
            block["fields"] = fields
        old = [str(label) for label in answer.get("labels") or answer.get("letters") or ()]
        patterns = []
        for number in range(max(len(self.rows), len(labels))):
            pattern, shift = self.rows[number % len(self.rows)], number // len(self.rows) * len(self.rows)
            row: dict[str, Any] = {}
            for ours, cell in pattern.items():
                cell, names = _labelled(cell, old, labels, shift), theirs.get(ours, [ours])
                if labels and types.get(ours) == "options":
                    cell = [f"option {place + 1}" for place in range(len(labels))]
                row |= {names[0]: cell} if len(names) == 1 else dict(zip(names, cell, strict=False))
            patterns.append(row)
        written = yaml.safe_dump({"rows": block}, sort_keys=False, allow_unicode=True, width=1_000)
        return replace(self, block=f"{written}\nprompt:{rest}", rows=tuple(patterns))


def _read(names: Sequence[str]) -> str:
    cells = [name if name.isidentifier() else f"row[{name!r}]" for name in names]
    return cells[0] if len(cells) == 1 else f"[{', '.join(cells)}]"


def _labelled(cell: Any, old: Sequence[str], new: Sequence[str], shift: int) -> Any:
    if isinstance(cell, list):
        return [_labelled(part, old, new, shift) for part in cell]
    head, mark, label = cell.rpartition(": ") if isinstance(cell, str) else ("", "", cell)
    return head + mark + new[(old.index(label) + shift) % len(new)] if new and label in old else cell


@lru_cache(maxsize=1)
def templates() -> dict[str, DatasetTemplate]:
    found = {}
    for path in sorted(Path(__file__).with_name("templates").glob("*.yaml")):
        said = read_mapping(path)
        kind, more = (
            yaml_text(said["block"])["answer"]["kind"],
            (said.get("files", {}), said.get("oracle_max")),
        )
        found[path.stem] = DatasetTemplate(kind, said["about"], said["block"], tuple(said["rows"]), *more)
    return found


def kinds(suite: Suite) -> dict[str, str]:
    """Name of a template -> what an answer looks like, for the kinds that the suite names, or all."""
    given = suite.answers
    return {name: item.about for name, item in templates().items() if not given or item.kind in given}


# ---------------------------------------------------------------------- what is said of a dataset


def suite_of(tasks: Registry, said: Mapping[str, Any]) -> Suite:
    """The suite that the name of a dataset begins with, else the one that is named."""
    name, named = said.get("id", ""), said.get("suite")
    if NO_SUITE in (named, name.partition("_")[0]):
        _home(tasks)
    begun = max((suite for suite in tasks.suites if name.startswith(f"{suite}_")), key=len, default=None)
    if begun and named and begun != named:
        raise MedtasksError(
            f"{name!r} begins with {begun}_", where=f"--suite {named}", remedy="leave one out"
        )
    if not name or not (begun or named):
        raise MedtasksError("a dataset needs a name and a suite", where="--id, --suite", remedy="name both")
    return tasks.suites[begun or _value("--suite", str(named), tasks.suites)]


def questions(suite: Suite, said: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What has to be said of a new dataset beside its name, and the values that there are."""
    yield "kind", kinds(suite)
    yield "language", {**suite.terms(TERMS["language"]), **three_letter_names()}
    for key in ("task_type", "document_types", "specialties", "stage", "access"):
        yield key, suite.terms(TERMS[key])
    for key, axis in suite.axes.items():
        if not axis.within or axis.within in said:
            yield key, axis.known(said[axis.within] if axis.within else None)


def answers(tasks: Registry, suite: Suite, said: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of a new dataset, in the values of its suite; several of them between commas."""
    found: dict[str, Any] = {"id": said["id"]}
    missing = []
    used = {item.metadata.language for item in tasks.datasets.values()}
    for key, known in questions(suite, said):
        flag = f"--axis {key}" if key in suite.axes else f"--{key.replace('_', '-')}"
        shown = [code for code in known if code in used] if key == "language" else [*known]
        if not (text := said.get(key)):
            missing.append(f"\n      {flag}{'=' if key in suite.axes else ''}: {', '.join(shown)}")
            continue
        values = [_value(flag, part.strip(), known, shown) for part in text.split(",")]
        found[key] = list(dict.fromkeys(values)) if key in _SEVERAL else values[0]
    if missing:
        n = len(missing)
        what = f"{n} answers are missing" if n > 1 else "an answer is missing"
        raise MedtasksError(what, where="medtasks new", remedy=f"add{''.join(missing)}")
    if foreign := said.keys() - found.keys() - {"suite"}:
        what = f"{suite.id} datasets have no {', '.join(sorted(foreign))}"
        raise MedtasksError(what, where="medtasks new", remedy="leave it out")
    return found


def _value(flag: str, text: str, known: Mapping[str, Any], shown: Sequence[str] | None = None) -> str:
    if text not in known:
        meant = (code_of(text) if flag == "--language" else None) or text
        more = ", or another code of ISO 639" if flag == "--language" else ""
        one = "any of" if flag[2:].replace("-", "_") in _SEVERAL else "one of"
        raise MedtasksError(
            f"unknown value {text!r}{near(meant, known)}",
            where=flag,
            remedy=f"use {one}: {', '.join(shown or known)}{more}",
        )
    return text


# ---------------------------------------------------------------------- the files


def write(tasks: Registry, suite: Suite, said: Mapping[str, Any], template: DatasetTemplate) -> Path:
    """Write the folder of a new dataset, with placeholders where a person must write something."""
    name = said["id"].removeprefix(f"{suite.id}_")
    folder: Path = (_home(tasks) if suite.id == NO_SUITE else suite.file.parent) / name
    if PACKAGE in folder.parents:
        raise MedtasksError("the installed tasks are replaced by updates", where=folder.parent, remedy=_OWN)
    _check_name(tasks, f"{suite.id}_{name}", name, folder)
    task, card = _task_file(f"{suite.id}_{name}", suite, template, said), _card(suite, said)
    read = yaml_text(task)
    top = {key: read[key] for key in TaskFacts.model_fields if key in read}
    Metadata.read({**top, **yaml_text(card)}, facts_of(suite, read))  # as it will be read
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(template.rows))
    made: Path | None = None
    try:
        folder.parent.mkdir(exist_ok=True)
        made = beside(folder)  # hidden: a reader, or a crash, sees all of the folder or nothing
        made.mkdir()
        for file, content in {
            TASK_FILE: task,
            CARD_FILE: card,
            "sample.jsonl": rows,
            **template.files,
        }.items():
            (made / file).write_text(content, encoding="utf-8")
        made.rename(folder)
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        raise MedtasksError(what, where=folder, remedy=_OWN) from None
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def _home(tasks: Registry) -> Path:
    if not (folders := writable(tasks.own)):
        raise MedtasksError("no folder of your own is named", where=f"--suite {NO_SUITE}", remedy=_OWN)
    for folder in folders:
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
        raise MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")
    for whole in (task + suffix for suffix in SUFFIX.values()):
        for what, names in (("task", tasks.tasks), ("group", tasks.groups), ("tag", tasks.tags)):
            if whole in names:
                raise MedtasksError(
                    f"{whole!r} is the name of a {what}", where="--id", remedy="choose another name"
                )


def _task_file(task: str, suite: Suite, template: DatasetTemplate, said: Mapping[str, Any]) -> str:
    lines = [
        f"class: !function {TASK_CLASS}",
        f"task: {task}",
        f"dataset: {suite.id}/{task.removeprefix(f'{suite.id}_')}",
        f"name: '{PLACEHOLDER} the own name of the dataset'",
        f"language: {_scalar(said['language'])}",
        f"access: {said['access']}",
        *([f"oracle_max: {template.oracle_max}"] if template.oracle_max else []),
        *(
            [f"# {PLACEHOLDER} name the public files below rows.download (docs/data.md)"]
            * (said["access"] == "open")
        ),
        "",
        _with_lines(template, suite, said["language"]),
        "metadata: {version: 1-A}",
        "",
    ]
    return "\n".join(lines)


def _with_lines(template: DatasetTemplate, suite: Suite, language: str) -> str:
    """The template's block, with places for strategy lines where those of the suite would be in English."""
    if language == "en" or {language, "en"} & suite.strategy_lines.keys():
        return template.block
    lines = {
        "answer": "reply with nothing but the answer",
        "reason": "reason step by step, then write the answer alone after a word such as Answer, last",
    }
    if template.kind in OPEN_KINDS:  # has no line where it is answered at once
        del lines["answer"]
    said = "".join(
        f'    {key}: "{PLACEHOLDER} in the language of the rows: {x}"\n' for key, x in lines.items()
    )
    return template.block.replace("\n  input: ", f"\n  strategy_lines:\n{said}  input: ", 1)


def _card(suite: Suite, said: Mapping[str, Any]) -> str:
    todo = {
        "url": "where the data is",
        "licence": "under which terms",
        "citation": "BibTeX key, with its entry in citation.bib in this folder",
    }
    if not suite.citation and said["access"] == "private":  # needs no source, but may have one
        del todo["citation"]
    record = {
        "summary": f"{PLACEHOLDER} one sentence: what goes in, what comes out",
        **{key: said[key] for key in ("task_type", "document_types", "specialties", "stage")},
        **({"axes": {key: said[key] for key in suite.axes}} if suite.axes else {}),
        **{key: f"{PLACEHOLDER} {text}" for key, text in todo.items()},
    }
    text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=1_000, default_flow_style=None)
    return f"{text}n_test: 0  # {PLACEHOLDER} number of test documents\n"


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _rows(patterns: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for number in range(11):  # five examples, six rows to ask
        split = "fewshot" if number < 5 else "test"
        pattern = json.dumps(patterns[number % len(patterns)]).replace("{n}", str(number + 1))
        yield {"_split": split, "id": f"{split[0]}{(number if number < 5 else number - 5) + 1}"} | json.loads(
            pattern
        )
