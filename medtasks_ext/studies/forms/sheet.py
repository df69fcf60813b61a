"""Forms as files: a page for each expert, the key that stays behind, and the CSV that a page exports."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.offline_page import offline_page
from medtasks_ext.studies.forms.export import KINDS
from medtasks_ext.studies.said import study
from medtasks_ext.tables import read_sheet

KEY_FILE = "key.json"


def write_forms(export: Mapping[str, Any], kind: str, folder: Path) -> list[Path]:
    """Write EXPERT.html for each expert, and `key.json`, the last of the files."""
    if (folder / KEY_FILE).exists():  # which would be lost
        raise MedtasksError("holds the key of an export", where=folder, remedy="name another folder")
    key = {"kind": kind, "export": f"mt{secrets.token_hex(5)}", **export, "forms": {}}
    listed = study(f"forms/kinds/{kind}").get("options", ())
    of_kind = {option["value"]: option["label"][export["language"]] for option in listed}
    for number, (form, items) in enumerate(export["forms"].items(), start=1):
        rows = {f"E{number}R{place:03d}": {"options": of_kind, **item} for place, item in enumerate(items, 1)}
        key["forms"][form] = {
            row: {"about": item["about"], "values": list(item["options"])} for row, item in rows.items()
        }
        write_text(folder / f"{form}.html", _page(key, form, rows))
    write_json(folder / KEY_FILE, key)
    return [*(folder / f"{form}.html" for form in export["forms"]), folder / KEY_FILE]


def _page(key: Mapping[str, Any], form: str, rows: Mapping[str, Any]) -> str:
    """The page of one form; `page/page.js` says what its data is."""
    language, page = key["language"], Path(__file__).with_name("page")
    kind = study(f"forms/kinds/{key['kind']}")
    words = {name: said[language] for name, said in study("forms/page/words").items()}
    pages = []
    for _, group in groupby(rows.items(), key=lambda row: row[1]["page"]):
        members, prompts = list(group), []
        for row, item in members:
            for question in kind["questions"]:
                own = {name: question[name][language] for name in ("label", "help")}
                asked = {name: item.get(name, "") for name in own} if "label" in item else own
                options = [{"value": value, "label": label} for value, label in item["options"].items()]
                prompts.append({**asked, "row": row, "question": question["id"], "options": options})
        texts: dict[str, list[dict[str, str]]] = {"above": [], "answer": []}
        for text in kind["texts"]:
            if shown := members[0][1]["texts"].get(text["id"]):
                texts[text["place"]].append({"label": text["label"][language], "text": shown})
        pages.append({**texts, "prompts": prompts})
    data = {
        **{name: kind[name][language] for name in ("title", "introduction")},
        "notices": [words[notice] for notice in key["notices"]],
        "export": key["export"],
        "form": form,
        "words": words,
        "columns": [question["id"] for question in kind["questions"]],
        "pages": pages,
    }
    tongue = "zh-Hans" if language == "zh" else "en"
    files: dict[str, Any] = {"style": page / "page.css", "scripts": [page / "page.js"]}
    return offline_page(page / "page.html", **files, data=data, language=tongue, title=data["title"])


def read_key(path: Path) -> dict[str, Any]:
    key = read_json(path)
    if not isinstance(key, dict) or key.get("kind") not in KINDS or not {"export", "forms"} <= set(key):
        remedy = "use the key.json that `medtasks study forms` wrote"
        raise MedtasksError("is not the key of an export", where=path, remedy=remedy)
    return key


def read_forms(
    paths: Sequence[Path], key: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Filled forms: rows `{form, about, options, answers}`, and expert -> rows that are open.

    Raises MedtasksError: rows of another export, unknown or given twice, a value that is no option; all
    faults come in one message.
    """
    questions = [item["id"] for item in study(f"forms/kinds/{key['kind']}")["questions"]]
    given, faults = dict[tuple[str, str], dict[str, str]](), list[str]()
    remedy = "give the CSV files that the pages exported"
    for path in dict.fromkeys(paths):
        for number, line in read_sheet(path, ["form", "row", *questions], remedy=remedy):
            export, _, form = line["form"].partition("/")
            record, place = key["forms"].get(form, {}).get(line["row"]), f"{path}, row {number}"
            if export != key["export"]:
                faults.append(f"{path}: belongs to another export ({export or 'none'}, not {key['export']})")
            elif record is None:
                faults.append(f"{place}: {form or 'the form'} has no such row")
            elif (form, line["row"]) in given:
                faults.append(f"{path}: rows of {form} are given twice")
            else:
                given[form, line["row"]] = answers = {name: line[name].strip() for name in questions}
                for name, value in answers.items():
                    if value and record["values"] and value not in record["values"]:
                        faults.append(f"{place}: {name} is {value!r}, not {' or '.join(record['values'])}")
    rows, missing = [], dict[str, list[str]]()
    for form, of_form in key["forms"].items():
        for row, record in of_form.items():
            answers = given.get((form, row), {})
            if answers and all(answers.values()):
                about = {"form": form, "about": record["about"], "options": record["values"]}
                rows.append({**about, "answers": answers})
            elif record["values"]:  # words of one's own may stay out
                missing.setdefault(form, []).append(row)
    if faults or not rows:
        what = some(list(dict.fromkeys(faults)), 5, "\n  ") or "no row is answered"
        raise MedtasksError(what, remedy=f"{remedy}, as they are (nothing was written)")
    return rows, missing
