"""Forms: rows of texts with an id and a digest, as CSV, as a page, and the key that stays behind."""

from __future__ import annotations

import csv
import hmac
import io
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, get_args

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json, write_json
from medtasks_ext.judge.protocol import CONTROL
from medtasks_ext.runner.run import Run
from medtasks_ext.version import __version__
from medtasks_lab.human.kinds import Kind, KindName, Language, Option, load_kind, page_words
from medtasks_lab.human.page import render_page

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

SCHEMA = 1
KEY_FILE = "key.json"
#: Column of a form whose rows have answers of their own.
OPTIONS = "options"
#: Excel's limit for a cell is 32,767 characters; it spreads longer ones over the sheet.
LONGEST_CELL = 32_000


@dataclass(frozen=True)
class FormItem:
    """What one row asks about."""

    page: str  # rows with the same value stand on one page
    about: Mapping[str, Any]  # what the row is about; it stays in the key
    texts: Mapping[str, str]  # text of the kind -> what is shown
    #: the answers to it, where the kind has none; without any, words of the expert's own, which may stay out
    options: Sequence[Option] | None = None


@dataclass(frozen=True)
class Export:
    """What is to be written."""

    kind: KindName
    language: Language  # of everything but the texts
    forms: Mapping[str, Sequence[FormItem]]  # expert -> items, in the order of that expert
    notices: Sequence[str] = ()  # names of `page/words.yaml` that every form shows
    #: what the key says about where the texts are from
    record: Mapping[str, Any] = field(default_factory=dict)


def shuffled_forms(pages: Sequence[Sequence[FormItem]], experts: int, seed: int) -> dict[str, list[FormItem]]:
    """A form for each expert, who sees all pages in an order of that expert alone."""
    forms = {}
    for number in range(1, experts + 1):
        order = list(pages)
        Random(f"{seed} expert {number}").shuffle(order)
        forms[f"expert_{number}"] = [item for page in order for item in page]
    return forms


def language_of(tasks: Iterable[str], registry: Registry) -> Language:
    """Chinese, if all tasks are."""
    return "zh" if all(registry.tasks[task][0].metadata.language == "zh" for task in tasks) else "en"


def notices_of(*, synthetic: bool, gated: bool) -> list[str]:
    """What a form says of the rows that it shows."""
    return ["sample"] if synthetic else ["gated"] if gated else []


def opened_runs(folders: Iterable[Path], registry: Registry) -> list[Run]:
    """Runs whose answers forms show."""
    runs = [Run(folder, registry) for folder in folders]
    for run in runs:
        run.load()
    return runs


def check_finished(run: Run, task: str) -> None:
    """Refuse a task that a run has not finished.

    Raises:
        MedtasksError: it has not.
    """
    if task not in run.manifest.tasks or not run.is_done(task):
        finished = [name for name in run.manifest.tasks if run.is_done(name)]
        raise MedtasksError(
            f"{task} is not among the finished tasks",
            where=run.folder,
            remedy=f"`medtasks run` it there first; finished: {', '.join(finished) or 'none'}",
        )


def record_of(
    seed: int, runs: Iterable[Run], tasks: Mapping[str, Any], *, synthetic: bool, **more: Any
) -> dict[str, Any]:
    """What a key says of the runs whose answers forms show."""
    of_runs = [{"folder": str(run.folder), "model": run.manifest.identity.model} for run in runs]
    return {"seed": seed, "runs": of_runs, "tasks": tasks, **more, "SAMPLE_DATA": synthetic}


def clean(text: str) -> str:
    """A text that every program can show: no control characters or half surrogate pairs, one line break."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return CONTROL.sub(" ", text)


def cell(text: str, language: Language) -> str:
    """A text as a cell of the CSV.

    A spreadsheet takes what begins with =, +, - or @ for a formula, and short texts with digits for
    numbers or dates. An apostrophe keeps them as they are.
    """
    if len(text) > LONGEST_CELL:
        return page_words()["too_long"].of(language)
    looks_like_value = len(text) < 30 and any(character.isdigit() for character in text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) or looks_like_value else text


def cell_text(text: str) -> str:
    """What an expert wrote into a cell, without the apostrophe that keeps a text from being a formula."""
    return text[1:] if text.startswith("'") and cell(text[1:], "en") == text else text


def text_digest(text: str) -> str:
    """Identifies the text of a cell, whatever a spreadsheet does to blanks, line breaks and apostrophes."""
    return sha256("".join(text.split()).lstrip("'").casefold().encode()).hexdigest()[:32]


def row_digest(secret: str, export: str, form: str, row: str, record: Mapping[str, Any]) -> str:
    """What proves that a row is the one that was exported.

    HMAC-SHA256 under the key of export, form, row, what the row is about (document and side order
    included), its texts and its own options. It begins with a letter, so that no spreadsheet takes it for
    a number.
    """
    parts = ("about", "texts", "cells", *(["values"] if "values" in record else []))
    content = json.dumps(
        [export, form, row, *(record[part] for part in parts)],
        sort_keys=True,
        ensure_ascii=False,
    )
    return "h" + hmac.new(secret.encode(), content.encode(), sha256).hexdigest()[:32]


def write_forms(export: Export, folder: Path) -> list[Path]:
    """Write FORM.html and FORM.csv for each expert, and `key.json`.

    Returns:
        The files, the key last.

    Raises:
        MedtasksError: the folder holds an export already, whose key would be lost.
    """
    if (folder / KEY_FILE).exists():
        raise MedtasksError(
            "holds an export already; its forms could not be read without its key",
            where=folder,
            remedy="name another folder with -o",
        )
    language = export.language
    export_id, secret = f"mt{secrets.token_hex(5)}", secrets.token_hex(32)
    forms: dict[str, dict[str, Any]] = {}
    key = {
        "schema": SCHEMA,
        "export": export_id,
        "kind": export.kind,
        "language": language,
        "medtasks": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "secret": secret,
        **export.record,
        "forms": forms,
    }
    contents: dict[str, str] = {}
    for number, (form, items) in enumerate(export.forms.items(), start=1):
        rows = forms[form] = {}
        for place, item in enumerate(items, start=1):
            row = f"E{number}R{place:03d}"
            cells = {name: cell(text, language) for name, text in item.texts.items()}
            record: dict[str, Any] = {
                "about": dict(item.about),
                "texts": {name: text_digest(text) for name, text in item.texts.items()},
                "cells": {name: text_digest(text) for name, text in cells.items()},
            }
            if item.options is not None:
                record["values"] = [option.value for option in item.options]
            rows[row] = {**record, "digest": row_digest(secret, export_id, form, row, record)}
        shown = [
            (row, record["digest"], item) for (row, record), item in zip(rows.items(), items, strict=True)
        ]
        contents[f"{form}.csv"] = _csv(export, f"{export_id}/{form}", shown)
        contents[f"{form}.html"] = render_page(_page_data(export, export_id, form, shown))
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        # \r\n is the CSV writer's; the mark tells Excel that the file is UTF-8
        encoding = "utf-8-sig" if file.endswith(".csv") else "utf-8"
        with atomic_file(folder / file) as made:
            made.write(content.encode(encoding))
    write_json(folder / KEY_FILE, key)
    return [*(folder / file for file in contents), folder / KEY_FILE]


def read_key(path: Path) -> dict[str, Any]:
    """The key of an export.

    Raises:
        MedtasksError: it is missing, damaged, or was changed.
    """
    remedy = "use the key.json that `medtasks human export` wrote, unchanged"
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy=remedy)
    try:
        key: dict[str, Any] = read_json(path)
        if key["schema"] != SCHEMA or key["kind"] not in get_args(KindName):
            raise MedtasksError(
                f"was written by another version (schema {key['schema']}, kind {key['kind']})",
                where=path,
                remedy=remedy,
            )
        parts = (*load_kind(key["kind"]).record, "export", "language")
        if absent := [part for part in parts if part not in key]:
            raise MedtasksError(f"has no {', '.join(absent)}", where=path, remedy=remedy)
        for form, rows in key["forms"].items():
            for row, record in rows.items():
                if row_digest(key["secret"], key["export"], form, row, record) != record["digest"]:
                    raise MedtasksError(f"row {row} of {form} was changed", where=path, remedy=remedy)
    except (KeyError, TypeError, AttributeError):
        raise MedtasksError("not the key of an export", where=path, remedy=remedy) from None
    return key


#: Rows of a form: id, digest, what is asked.
_Rows = Sequence[tuple[str, str, FormItem]]


def _csv(export: Export, form: str, rows: _Rows) -> str:
    kind = load_kind(export.kind)
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    texts = [text.id for text in kind.texts]
    options = {_values(item, kind) for _, _, item in rows}
    one = options.pop() if len(options) == 1 else None  # else each row names its own in a column before
    writer.writerow(["form", "row", "digest", *texts, *([] if one else [OPTIONS]), *_headers(kind, one)])
    for row, digest, item in rows:
        shown = [cell(item.texts[name], export.language) for name in texts]
        own = [] if one else [_values(item, kind) or page_words()["free_text"].of(export.language)]
        writer.writerow([form, row, digest, *shown, *own, *("" for _ in kind.questions)])
    return file.getvalue()


def _values(item: FormItem, kind: Kind) -> str:
    """The answers to what a row asks, as a column names them."""
    return "|".join(kind.values if item.options is None else [option.value for option in item.options])


def _labelled(item: FormItem, kind: Kind, language: Language) -> tuple[tuple[str, str], ...]:
    """The answers to what a row asks with their labels; none where the expert writes."""
    options = kind.options if item.options is None else item.options
    return tuple((option.value, option.label.of(language)) for option in options)


def _headers(kind: Kind, values: str | None) -> list[str]:
    """The columns of the questions; they name the answers for those who fill the CSV itself."""
    return [f"{question.id} [{values or OPTIONS}]" for question in kind.questions]


def _page_data(export: Export, export_id: str, form: str, rows: _Rows) -> Json:
    """Everything that the page's script needs."""
    kind, language = load_kind(export.kind), export.language
    words = {name: item.of(language) for name, item in page_words().items()}
    options = list(dict.fromkeys(_labelled(item, kind, language) for _, _, item in rows))
    values = {_values(item, kind) for _, _, item in rows}
    prompt, below = (
        next((text.id for text in kind.texts if text.place == place), None) for place in ("prompt", "help")
    )
    pages = []
    for _, group in groupby(rows, key=lambda row: row[2].page):
        members = list(group)
        first = members[0][2].texts
        texts = {
            place: [
                {"label": text.label.of(language), "text": first[text.id]}
                for text in kind.texts
                if text.place == place and first[text.id]
            ]
            for place in ("above", "answer")
        }
        prompts = [
            {
                "row": row,
                "question": question.id,
                "label": item.texts[prompt] if prompt else question.label.of(language),
                "help": item.texts[below] if below else "" if prompt else question.help.of(language),
                "options": options.index(_labelled(item, kind, language)),
            }
            for row, _, item in members
            for question in kind.questions
        ]
        pages.append({**texts, "prompts": prompts})
    return {
        "export": export_id,
        "form": form,
        "language": language,
        "title": kind.title.of(language),
        "introduction": kind.introduction.of(language),
        "notices": [words[name] for name in export.notices],
        "words": words,
        "options": [[{"value": value, "label": label} for value, label in own] for own in options],
        "columns": [
            {"question": item.id, "header": header}
            for item, header in zip(
                kind.questions, _headers(kind, values.pop() if len(values) == 1 else None), strict=True
            )
        ],
        "digests": {row: digest for row, digest, _ in rows},
        "pages": pages,
    }
