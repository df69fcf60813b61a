"""A new dataset folder: what has to be known of it, and the files that follow."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader

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
_TEMPLATES = Path(__file__).with_name("templates")
#: What a task file begins with, for answers of one kind, and one way to score them: `kind`; `about`, what an
#: answer looks like; `block`, the text of rows, prompt and answer; `rows`, patterns of sample rows; `files`
#: that stand beside it; `oracle_max`.
Template = Mapping[str, Any]


@lru_cache(maxsize=1)
def templates() -> dict[str, Template]:
    files = {path.stem: read_mapping(path) for path in sorted(_TEMPLATES.glob("*.yaml"))}
    return {
        name: {**said, "kind": yaml_text(said["block"])["answer"]["kind"]} for name, said in files.items()
    }


def of_columns(template: Template, named: Mapping[str, Sequence[str]], labels: Sequence[str]) -> Template:
    """For a file whose columns have other names, and for other labels; none: the template's.

    `named`: the template's column -> the file's; several hold the parts of a list, such as options.
    """
    kind, (head, rest) = template["kind"], template["block"].split("\nprompt:", 1)
    block, answer = yaml_text(head)["rows"], yaml_text(template["block"])["answer"]
    columns, types = block["columns"], block.pop("types", {})
    if unknown := sorted(named.keys() - columns.keys()):
        what, known = f"answers of kind {kind} have no column {unknown[0]}", ", ".join(columns)
        raise MedtasksError(what, where="--map", remedy=f"name one of: {known}")
    if labels:
        lines = [f'    {_scalar(x)}: "{PLACEHOLDER} when this label is right"\n' for x in labels]
        rest, n = re.subn(
            r"(?m)^(  (?:labels|letters):)( \[.*\]|\n(?:    .*\n?)+)",
            lambda found: found[1] + (f" {_scalar(labels)}" if "[" in found[2] else "\n" + "".join(lines)),
            rest,
        )
        if not n:
            what = f"answers of kind {kind} have no closed labels"
            raise MedtasksError(what, where="--labels", remedy="leave it out")
        rest = rest.replace("yes or no", " or ".join(labels)).replace(
            'lettered("ABCDE")', f"lettered({labels})"
        )
    theirs = {ours: [*named.get(ours, [ours])] for ours in columns}
    block["columns"] = {name: columns[ours] for ours, names in theirs.items() for name in names}
    if kept := {names[0]: types[x] for x, names in theirs.items() if x in types and len(names) == 1}:
        block["types"] = kept
    if renamed := {ours: names for ours, names in theirs.items() if names != [ours]}:
        cells = {
            x: [name if name.isidentifier() else f"row[{name!r}]" for name in renamed[x]] for x in renamed
        }
        block["fields"] = {x: of[0] if len(of) == 1 else f"[{', '.join(of)}]" for x, of in cells.items()}
    old = [str(label) for label in answer.get("labels") or answer.get("letters") or ()]
    label = re.compile(rf'("|: )({"|".join(map(re.escape, old))})"(?!:)')
    patterns, n = [], len(template["rows"])

    def relabelled(pattern: str, shift: int) -> str:
        new = dict(zip(old, (labels[(at + shift) % len(labels)] for at in range(len(old))), strict=True))
        return label.sub(lambda it: it[1] + json.dumps(new[it[2]])[1:], pattern)

    for number in range(max(n, len(labels))):
        pattern, row = json.dumps(template["rows"][number % n]), dict[str, Any]()
        pattern = relabelled(pattern, number // n * n) if labels else pattern
        for ours, cell in json.loads(pattern).items():
            if labels and types.get(ours) == "options":
                cell = [f"option {place + 1}" for place in range(len(labels))]
            names = theirs.get(ours, [ours])
            if len(names) > 1 and not isinstance(cell, list):
                what, remedy = f"column {ours} is no list", f"name one: {ours}={names[0]}"
                raise MedtasksError(what, where="--map", remedy=remedy)
            row |= {names[0]: cell} if len(names) == 1 else dict(zip(names, cell, strict=False))
        patterns.append(row)
    written = yaml.safe_dump({"rows": block}, sort_keys=False, allow_unicode=True, width=1_000)
    return {**template, "block": f"{written}\nprompt:{rest}", "rows": patterns}


def kinds(suite: Suite) -> dict[str, str]:
    """Name of a template -> what an answer looks like, for the kinds that the suite names, or all."""
    given = suite.answers
    return {name: it["about"] for name, it in templates().items() if not given or it["kind"] in given}


# ---------------------------------------------------------------------- what is said of a dataset


def suite_of(tasks: Registry, said: Mapping[str, Any]) -> Suite:
    """The suite that the name of a dataset begins with, else the one that is named."""
    name, named = said.get("id", ""), said.get("suite")
    if NO_SUITE in (named, name.partition("_")[0]):
        _home(tasks)
    begun = max((suite for suite in tasks.suites if name.startswith(f"{suite}_")), key=len, default=None)
    if begun and named and begun != named:
        what = f"{name!r} begins with {begun}_"
        raise MedtasksError(what, where=f"--suite {named}", remedy="leave one out")
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
    missing, used = [], {item.metadata.language for item in tasks.datasets.values()}
    for key, known in questions(suite, said):
        flag = f"--axis {key}" if key in suite.axes else f"--{key.replace('_', '-')}"
        shown = [code for code in known if code in used] if key == "language" else [*known]
        if text := said.get(key):
            values = [_value(flag, part.strip(), known, shown) for part in text.split(",")]
            found[key] = list(dict.fromkeys(values)) if key in _SEVERAL else values[0]
        else:
            missing.append(f"\n      {flag}{'=' if key in suite.axes else ''}: {', '.join(shown)}")
    if missing:
        what = f"{len(missing)} answers are missing" if len(missing) > 1 else "an answer is missing"
        raise MedtasksError(what, where="medtasks new", remedy=f"add{''.join(missing)}")
    if foreign := said.keys() - found.keys() - {"suite"}:
        what = f"{suite.id} datasets have no {', '.join(sorted(foreign))}"
        raise MedtasksError(what, where="medtasks new", remedy="leave it out")
    return found


def _value(flag: str, text: str, known: Mapping[str, Any], shown: Sequence[str] = ()) -> str:
    if text not in known:
        meant = (code_of(text) if flag == "--language" else None) or text
        more = ", or another code of ISO 639" if flag == "--language" else ""
        one = "any of" if flag[2:].replace("-", "_") in _SEVERAL else "one of"
        remedy = f"use {one}: {', '.join(shown or known)}{more}"
        raise MedtasksError(f"unknown value {text!r}{near(meant, known)}", where=flag, remedy=remedy)
    return text


# ---------------------------------------------------------------------- the files


def write(tasks: Registry, suite: Suite, said: Mapping[str, Any], template: Template) -> Path:
    """Write the folder of a new dataset, with placeholders where a person must write something."""
    name = said["id"].removeprefix(f"{suite.id}_")
    folder: Path = (_home(tasks) if suite.id == NO_SUITE else suite.file.parent) / name
    if PACKAGE in folder.parents:
        raise MedtasksError("the installed tasks are replaced by updates", where=folder.parent, remedy=_OWN)
    _check_name(tasks, f"{suite.id}_{name}", name, folder)
    files, made = {**_files(suite, name, template, said), **template.get("files", {})}, beside(folder)
    task = yaml_text(files[TASK_FILE])
    top = {key: task[key] for key in TaskFacts.model_fields if key in task}
    Metadata.read({**top, **yaml_text(files[CARD_FILE])}, facts_of(suite, task))  # as it will be read
    try:
        folder.parent.mkdir(exist_ok=True)
        made.mkdir()  # hidden: a reader, or a crash, sees all of the folder or nothing
        for file, content in files.items():
            (made / file).write_text(content, encoding="utf-8")
        made.rename(folder)
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        raise MedtasksError(what, where=folder, remedy=_OWN) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _home(tasks: Registry) -> Path:
    where = f"--suite {NO_SUITE}"
    if not (folders := writable(tasks.own)):
        raise MedtasksError("no folder of your own is named", where=where, remedy=_OWN)
    for folder in folders:
        if not (folder / SUITE_FILE).is_file() and not (folder / TASK_FILE).is_file():
            return folder
    what = "the folders of your own are those of suites or single datasets"
    remedy = "name the suite, or name another folder: medtasks --tasks-dir FOLDER new …"
    raise MedtasksError(what, where=where, remedy=remedy)


def _check_name(tasks: Registry, task: str, name: str, folder: Path) -> None:
    if not _ID.fullmatch(name) or name.endswith(("_cot", "_5shot", "_tasks")):
        remedy = "use lower-case letters, digits and single underscores, not _cot, _5shot or _tasks last"
        raise MedtasksError(f"{name!r} is no name of a dataset", where="--id", remedy=remedy)
    if folder.exists():
        raise MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")
    for whole in (task + suffix for suffix in SUFFIX.values()):
        for what, names in (("task", tasks.tasks), ("group", tasks.groups), ("tag", tasks.tags)):
            if whole in names:
                what = f"{whole!r} is the name of a {what}"
                raise MedtasksError(what, where="--id", remedy="choose another name")


def _files(suite: Suite, name: str, template: Template, said: Mapping[str, Any]) -> dict[str, str]:
    made = Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True)
    made.filters["scalar"] = _scalar
    language, rows = said["language"], template["rows"]
    facts = {
        **{"suite": suite, "name": name, "said": said, "axes": {key: said[key] for key in suite.axes}},
        **{"block": template["block"], "oracle_max": template.get("oracle_max"), "task_class": TASK_CLASS},
        # places for strategy lines where those of the suite would be in English
        "has_lines": language == "en" or bool({language, "en"} & suite.strategy_lines.keys()),
        "is_open": template["kind"] in OPEN_KINDS,
    }
    files = {
        file: made.get_template(f"{Path(file).stem}.jinja").render(facts) for file in (TASK_FILE, CARD_FILE)
    }
    lines = []
    for number in range(11):  # five examples, six rows to ask
        split, place = ("fewshot", number) if number < 5 else ("test", number - 5)
        row = {"_split": split, "id": f"{split[0]}{place + 1}", **rows[number % len(rows)]}
        lines.append(json.dumps(row, ensure_ascii=False).replace("{n}", str(number + 1)) + "\n")
    return {**files, "sample.jsonl": "".join(lines)}


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
