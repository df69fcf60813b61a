"""A new dataset folder: what has to be known of it, and the files that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader
from pydantic import ValidationError

from medtasks_ext.atomic import replaced_folder
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.folders import PACKAGE, writable
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.registry.groups import Registry
from medtasks_ext.registry.metadata import Metadata, TaskFacts
from medtasks_ext.registry.strategies import OPEN_KINDS, SUFFIX
from medtasks_ext.registry.suites import NO_SUITE, SUITE_FILE, Suite
from medtasks_ext.registry.tasks import CARD_FILE, TASK_FILE, facts_of
from medtasks_ext.strict import faults_of, read_mapping, yaml_text

#: What stands where a person must write something. `medtasks dev validate` asks for it to be replaced.
PLACEHOLDER = "TODO:"
_ID = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_OWN = (
    "work in a clone of the repository, or in a folder of your own: mkdir my_tasks; "
    f"export MEDTASKS_TASKS=my_tasks; and --id {NO_SUITE}_NAME"
)
_TEMPLATES = Path(__file__).with_name("templates")
#: What a task file begins with, for answers of one kind: `kind`; `about`, what an answer looks like; `block`,
#: the text of rows, prompt and answer; `rows`, patterns of sample rows; `files` beside it; `oracle_max`.
Template = Mapping[str, Any]


def templates() -> dict[str, Template]:
    read = ((path.stem, read_mapping(path)) for path in sorted(_TEMPLATES.glob("*.yaml")))
    return {name: {**it, "kind": yaml_text(it["block"])["answer"]["kind"]} for name, it in read}


def template_of(suite: Suite, kind: str | None) -> Template:
    """The template of a kind of answers that the suite has."""
    of_suite = {name: it for name, it in templates().items() if it["kind"] in (suite.answers or [it["kind"]])}
    if kind in of_suite:
        return of_suite[kind]
    lines = "".join(f"\n      {name}: {it['about']}" for name, it in of_suite.items())
    what = f"no kind {kind!r}{near(kind, of_suite)}" if kind else "a dataset needs a kind of answers"
    raise MedtasksError(what, where="--kind", remedy=f"name one of:{lines}")


def of_columns(template: Template, named: Mapping[str, Sequence[str]]) -> Template:
    """For a file whose columns have other names: the template's -> the file's, several for a list."""
    head, rest = template["block"].split("\nprompt:", 1)
    block = yaml_text(head)["rows"]
    columns, types = block["columns"], block.pop("types", {})
    if unknown := sorted(named.keys() - columns.keys()):
        what, known = f"answers of kind {template['kind']} have no column {unknown[0]}", ", ".join(columns)
        raise MedtasksError(what, where="--map", remedy=f"name one of: {known}")
    theirs = {ours: [*named.get(ours, [ours])] for ours in columns}
    block["columns"] = {name: columns[ours] for ours, names in theirs.items() for name in names}
    if kept := {names[0]: types[x] for x, names in theirs.items() if x in types and len(names) == 1}:
        block["types"] = kept
    fields = {}
    for ours, names in ((ours, names) for ours, names in theirs.items() if names != [ours]):
        cells = [name if name.isidentifier() else f"row[{name!r}]" for name in names]
        fields[ours] = cells[0] if len(cells) == 1 else f"[{', '.join(cells)}]"
    rows = list[dict[str, Any]]()
    for pattern in template["rows"]:
        rows.append({})
        for ours, names in ((ours, theirs.get(ours, [ours])) for ours in pattern):
            cells = pattern[ours] if len(names) > 1 else [pattern[ours]]
            if not isinstance(cells, list):
                what, remedy = f"column {ours} is no list", f"name one: {ours}={names[0]}"
                raise MedtasksError(what, where="--map", remedy=remedy)
            rows[-1] |= dict(zip(names, cells, strict=False))
    block |= {"fields": fields} if fields else {}
    written = yaml.safe_dump({"rows": block}, sort_keys=False, allow_unicode=True, width=1_000)
    return {**template, "block": f"{written}\nprompt:{rest}", "rows": rows}


def suite_of(tasks: Registry, name: str) -> Suite:
    """The suite that the name of a dataset begins with."""
    if name.startswith(f"{NO_SUITE}_"):
        _home(tasks)
    suite = max((suite for suite in tasks.suites if name.startswith(f"{suite}_")), key=len, default=None)
    if suite:
        return tasks.suites[suite]
    what = f"{name!r} begins with no suite{near(name.partition('_')[0], tasks.suites)}"
    raise MedtasksError(what, where="--id", remedy=f"SUITE_NAME, of one of: {', '.join(tasks.suites)}")


def write(tasks: Registry, suite: Suite, said: Mapping[str, Any], template: Template) -> Path:
    """Write the folder of a new dataset, with `TODO:` where a person must write; wrong facts are named."""
    name = said["id"].removeprefix(f"{suite.id}_")
    folder: Path = (_home(tasks) if suite.id == NO_SUITE else suite.file.parent) / name
    if PACKAGE in folder.parents:
        raise MedtasksError("the installed tasks are replaced by updates", where=folder.parent, remedy=_OWN)
    _check_name(tasks, f"{suite.id}_{name}", name, folder)
    files = {**_files(suite, name, template, said), **template.get("files", {})}
    task = yaml_text(files[TASK_FILE])
    top = {key: task[key] for key in TaskFacts.model_fields if key in task}
    record, remedy = {**top, **yaml_text(files[CARD_FILE])}, "say them: medtasks data new --help"
    try:
        Metadata.read(record, facts_of(suite, task))  # as it will be read
    except ValidationError as error:
        what = "".join(f"\n  {fault}" for fault in faults_of(error))
        raise MedtasksError(what, where="medtasks data new", remedy=remedy) from None
    with replaced_folder(folder, remedy=_OWN) as made:
        for file, content in files.items():
            (made / file).write_text(content, encoding="utf-8")
    return folder


def _home(tasks: Registry) -> Path:
    for folder in writable(tasks.own):
        if not (folder / SUITE_FILE).is_file() and not (folder / TASK_FILE).is_file():
            return folder
    what = "no folder of your own is named, or only those of suites and single datasets"
    raise MedtasksError(what, where=f"--id {NO_SUITE}_NAME", remedy=_OWN)


def _check_name(tasks: Registry, task: str, name: str, folder: Path) -> None:
    if not _ID.fullmatch(name) or name.endswith(("_cot", "_5shot")):
        remedy = "use lower-case letters, digits and single underscores, not _cot, _5shot or _tasks last"
        raise MedtasksError(f"{name!r} is no name of a dataset", where="--id", remedy=remedy)
    if folder.exists():
        raise MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")
    taken = [whole for suffix in SUFFIX.values() if (whole := task + suffix) in {*tasks.tasks, *tasks.groups}]
    if taken:
        what = f"{taken[0]!r} is the name of a task or group"
        raise MedtasksError(what, where="--id", remedy="choose another name")


def _files(suite: Suite, name: str, template: Template, said: Mapping[str, Any]) -> dict[str, str]:
    made = Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True)
    language = said["language"]
    facts = {
        **template,
        **{"suite": suite, "name": name, "said": said, "task_class": TASK_CLASS},
        # places for strategy lines where those of the suite would be in English
        "has_lines": language == "en" or bool({language, "en"} & suite.strategy_lines.keys()),
        "is_open": template["kind"] in OPEN_KINDS,
    }
    files = {
        file: made.get_template(f"{Path(file).stem}.jinja").render(facts) for file in (TASK_FILE, CARD_FILE)
    }
    lines = []
    for number, row in zip(range(1, 12), cycle(template["rows"]), strict=False):
        split = "fewshot" if number < 6 else "test"  # five examples, six rows to ask
        line = json.dumps({"_split": split, "id": f"{split[0]}{number}", **row}, ensure_ascii=False)
        lines.append(line.replace("{n}", str(number)) + "\n")
    return {**files, "sample.jsonl": "".join(lines)}
