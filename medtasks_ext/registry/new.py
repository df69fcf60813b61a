"""A new dataset folder: what has to be known of it, and the files that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader
from pydantic import ValidationError

from medtasks_ext.atomic import replaced_folder
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.jsonfile import parse_json
from medtasks_ext.registry.folders import PACKAGE, writable
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.registry.groups import Registry
from medtasks_ext.registry.metadata import Metadata, TaskFacts
from medtasks_ext.registry.strategies import OPEN_KINDS, SUFFIX
from medtasks_ext.registry.suites import NO_SUITE, SUITE_FILE, UNSPECIFIED, Suite
from medtasks_ext.registry.tasks import CARD_FILE, TASK_FILE, facts_of
from medtasks_ext.strict import faults_of, read_mapping, yaml_text

_ID = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_OWN = (
    "work in a clone of the repository, or in a folder of your own: mkdir my_tasks; "
    f"export MEDTASKS_TASKS=my_tasks; and --id {NO_SUITE}_NAME"
)
_yaml = partial(yaml.safe_dump, sort_keys=False, allow_unicode=True, width=1_000)
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


def with_words(template: Template, prompt: str | None, labels: Sequence[str]) -> Template:
    """The template with the prompt and the closed labels that a person says."""
    block = template["block"]
    if prompt:  # as it is said: no line of a strategy asks for the answer besides
        said = f"{prompt} {{{{ strategy }}}}".replace("\n", "\n    ")
        written = f"  instruction: |-\n    {said}\n  strategy_lines: {{answer: ''}}\n"
        block = re.sub(r"  instruction: \|-\n(?:    .*\n|\n)+", lambda _: written, block)
    if not labels:
        return {**template, "block": block}
    head, rest = block.split("\nanswer:", 1)
    parts = yaml_text(f"answer:{rest}")  # and perhaps how it is judged
    answer = holder = parts["answer"]
    key = next((key for key in ("labels", "letters") if key in answer), None)
    if key is None and len(answer.get("closed_values", ())) == 1:
        holder, key = answer["closed_values"], next(iter(answer["closed_values"]))
    if key is None:
        what = f"answers of kind {answer['kind']} have no closed labels"
        raise MedtasksError(what, where="--labels", remedy="leave it out")
    ours = dict(zip(holder[key], cycle(labels), strict=False))

    def relabelled(value: Any) -> Any:
        if isinstance(value, list):
            return [relabelled(item) for item in value]
        if isinstance(value, Mapping):
            return {key: relabelled(item) for key, item in value.items()}
        return ours.get(value, value)

    holder[key] = list(labels) if isinstance(holder[key], list) else {label: label for label in labels}
    return {
        **template,
        "block": f"{head}\n{_yaml(parts)}",
        "rows": relabelled(template["rows"]),
    }


def of_columns(
    template: Template, named: Mapping[str, Sequence[str]], row: Mapping[str, Any], first: int | None
) -> Template:
    """For a file whose rows have another form: what each column of the kind is made of.

    `named`: the template's column -> the file's, several for a list, for a text in parts, or for tokens and
    tags; `a.b` for what lies in a cell. `row`: the first of the file. `first`: the number of the first
    option, where answers are numbers.
    """
    head, rest = template["block"].split("\nprompt:", 1)
    block = yaml_text(head)["rows"]
    columns, types = block.pop("columns"), block.pop("types", {})
    if unknown := sorted(named.keys() - columns.keys()):
        what, known = f"answers of kind {template['kind']} have no column {unknown[0]}", ", ".join(columns)
        raise MedtasksError(what, where="--map", remedy=f"name one of: {known}")
    theirs = {ours: [*named.get(ours, [ours])] for ours in columns}
    form: dict[str, Any] = {"columns": {}, "types": {}, "fields": {}}

    def cell(name: str) -> str:
        column, _, path = (name, "", "") if name in row else name.partition(".")
        form["columns"].setdefault(column, columns[ours])
        stated = None if path or ours in ("answers", "mentions", "entities") else types.get(ours)
        if (kind := _type_of(row.get(column), stated)) != "text":
            form["types"][column] = kind
        said = column if column.isidentifier() else f"row[{column!r}]"
        return f"({said} | picked({path!r}))" if path else said

    made: dict[str, str] = {}
    for ours, names in theirs.items():
        cells = [cell(name) for name in names]
        together = cells[0] if len(cells) == 1 else f"[{', '.join(cells)}]"
        kind = types.get(ours)
        if kind == "options":
            made[ours] = f"{together} | split_options" if len(cells) == 1 else together
        elif "options" in made and ours in ("answer", "answers"):
            count = "" if first is None else f", {first}"
            made[ours] = f"{together} | option_letters({made['options']}{count})"
            made[ours] += " | list" if kind == "texts" else ""
        elif ours in ("mentions", "entities"):
            tagged = f"{cells[0]} | spans({cells[-1]})" if len(cells) == 2 else cells[0]
            made[ours] = f"{tagged} | as_entities({made['text']})"
            made[ours] += " | map(attribute='entity') | list" if ours == "mentions" else ""
            if len(cells) == 2 and names[0] == theirs["text"][0]:
                made["text"] = f"{cells[0]} | join(' ')"
        elif kind is None and (len(cells) > 1 or "picked" in together or isinstance(row.get(names[0]), list)):
            made[ours] = f"{together} | as_text"
        else:
            made[ours] = together
    form["fields"] = {ours: text for ours, text in made.items() if text != ours}
    if not form["fields"] and form["columns"].keys() == columns.keys():
        return template
    own = {"columns": columns, "types": types}  # the form of the sample rows
    schemas = [{key: value for key, value in schema.items() if value} for schema in (form, own)]
    return {
        **template,
        "block": f"{_yaml({'rows': {'schemas': schemas, **block}})}\nprompt:{rest}",
    }


def _type_of(value: Any, stated: Any) -> Any:
    """The type of a column by what its first cell holds, unless it is stated."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            value = parse_json(value)
    if isinstance(value, list | dict):
        options = stated == "options" and (isinstance(value, dict) or all(isinstance(x, str) for x in value))
        return "options" if options else "list" if isinstance(value, list) else "object"
    return stated or ("id" if isinstance(value, int | float) else "text")


def suite_of(tasks: Registry, name: str) -> Suite:
    """The suite that the name of a dataset begins with."""
    if name.startswith(f"{NO_SUITE}_"):
        _home(tasks)
    suite = max((suite for suite in tasks.suites if name.startswith(f"{suite}_")), key=len, default=None)
    if suite:
        return tasks.suites[suite]
    what = f"{name!r} begins with no suite{near(name.partition('_')[0], tasks.suites)}"
    what = what if name else "a dataset needs a name"
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
    record = {**top, **yaml_text(files[CARD_FILE])}
    try:
        Metadata.read(record, facts_of(suite, task))  # as it will be read
    except ValidationError as error:
        what = "".join(f"\n  {fault}" for fault in faults_of(error))
        remedy = "say them: medtasks data new --help"
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
        remedy = "choose another --id, edit it, or remove it"
        raise MedtasksError("there is such a folder", where=folder, remedy=remedy)
    taken = [whole for suffix in SUFFIX.values() if (whole := task + suffix) in {*tasks.tasks, *tasks.groups}]
    if taken:
        what = f"{taken[0]!r} is the name of a task or group"
        raise MedtasksError(what, where="--id", remedy="choose another name")


def _files(suite: Suite, name: str, template: Template, said: Mapping[str, Any]) -> dict[str, str]:
    made = Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True)
    language = said["language"]
    if suite.id == NO_SUITE:  # what such a dataset need not say
        unsaid: dict[str, Any] = {"access": "private", "task_type": UNSPECIFIED, "stage": UNSPECIFIED}
        unsaid |= {key: [UNSPECIFIED] for key in ("document_types", "specialties")}
        said = {**said, **{key: value for key, value in unsaid.items() if not any(said[key])}}
    facts = {
        **template,
        **{"suite": suite, "name": name, "said": said, "task_class": TASK_CLASS},
        # places for strategy lines where those of the suite would be in English
        "has_lines": language == "en"
        or "strategy_lines:" in template["block"]
        or bool({language, "en"} & suite.strategy_lines.keys()),
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
