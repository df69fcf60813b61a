"""Forms as files: a page for each expert, the key that stays behind, and the CSV that a page exports."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import read_sheet
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.offline_page import offline_page
from medtasks_ext.studies.forms import HERE, KINDS, kind_of, page_words

KEY_FILE = "key.json"


def write_forms(export: Mapping[str, Any], kind: str, folder: Path) -> list[Path]:
    """Write EXPERT.html for each expert, and `key.json`, the last of the files."""
    if (folder / KEY_FILE).exists():  # which would be lost
        raise MedtasksError("holds the key of an export", where=folder, remedy="name another folder")
    key = {"kind": kind, "export": f"mt{secrets.token_hex(5)}", **export, "forms": {}}
    listed = kind_of(kind).get("options", ())
    of_kind = {option["value"]: option["label"][export["language"]] for option in listed}
    for number, (form, items) in enumerate(export["forms"].items(), start=1):
        rows = {f"E{number}R{place:03d}": item for place, item in enumerate(items, start=1)}
        options = {row: item.get("options", of_kind) for row, item in rows.items()}
        key["forms"][form] = {
            row: {"about": item["about"], "values": list(options[row])} for row, item in rows.items()
        }
        write_text(folder / f"{form}.html", _page(key, form, rows, options))
    write_json(folder / KEY_FILE, key)
    return [*(folder / f"{form}.html" for form in export["forms"]), folder / KEY_FILE]


def _page(key: Mapping[str, Any], form: str, rows: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """The page of one form; `page/page.js` says what its data is."""
    language, kind, words = key["language"], kind_of(key["kind"]), page_words(key["language"])
    distinct, pages = list(dict.fromkeys(tuple(of.items()) for of in options.values())), []

    def texts(item: Mapping[str, Any], place: str) -> list[dict[str, str]]:
        here = [text for text in kind["texts"] if text["place"] == place]
        shown = ((text["label"][language], item["texts"].get(text["id"])) for text in here)
        return [{"label": label, "text": text} for label, text in shown if text]

    for _, group in groupby(rows.items(), key=lambda row: row[1]["page"]):
        members, asked = list(group), []
        for row, item in members:
            of_row = ("".join(text["text"] for text in texts(item, place)) for place in ("prompt", "help"))
            shown = dict(zip(("label", "help"), of_row, strict=True))
            for question in kind["questions"]:
                own = shown if shown["label"] else {name: question[name][language] for name in shown}
                place = distinct.index(tuple(options[row].items()))
                asked.append({**own, "row": row, "question": question["id"], "options": place})
        above = {place: texts(members[0][1], place) for place in ("above", "answer")}
        pages.append({**above, "prompts": asked})
    data = {
        **{name: kind[name][language] for name in ("title", "introduction")},
        "notices": [words[notice] for notice in key["notices"]],
        "export": key["export"],
        "form": form,
        "words": words,
        "options": [[{"value": value, "label": label} for value, label in own] for own in distinct],
        "columns": [question["id"] for question in kind["questions"]],
        "rows": list(rows),
        "pages": pages,
    }
    page, tongue = HERE / "page", "zh-Hans" if language == "zh" else "en"
    files: dict[str, Any] = {"style": page / "page.css", "scripts": [page / "page.js"]}
    return offline_page(page / "page.html", **files, data=data, language=tongue, title=data["title"])


def read_key(path: Path) -> dict[str, Any]:
    remedy = "use the key.json that `medtasks human export` wrote"
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy=remedy)
    key: dict[str, Any] = read_json(path)
    if not isinstance(key, dict) or key.get("kind") not in KINDS or not {"export", "forms"} <= set(key):
        raise MedtasksError("not the key of an export", where=path, remedy=remedy)
    return key


def read_forms(
    paths: Sequence[Path], key: Mapping[str, Any], *, partial: bool = False
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Filled forms: rows `{form, row, about, answers}` in the key's order, and expert -> rows that are open.

    Args:
        paths: CSV files that the pages exported.
        partial: take complete rows where others are missing.

    Raises:
        MedtasksError: a row of another export, unknown or given twice, a value that is no option; without
            `partial`, an answer that is missing. All faults come in one message.
    """
    questions = [item["id"] for item in kind_of(key["kind"])["questions"]]
    given, faults = dict[tuple[str, str], dict[str, str]](), list[str]()
    remedy = "give the CSV files that the pages exported"
    for path in dict.fromkeys(paths):
        for number, line in read_sheet(path, ["form", "row", *questions], remedy=remedy):
            export, _, form = line["form"].partition("/")
            record, place = (
                key["forms"].get(form, {}).get(line["row"]),
                f"{path}, row {number} ({line['row']})",
            )
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
                rows.append({"form": form, "row": row, "about": record["about"], "answers": answers})
            elif record["values"]:  # words of one's own may stay out
                missing.setdefault(form, []).append(row)
    if not faults and (not partial or not rows):
        of = {form: (len(lack), len(key["forms"][form]), some(lack)) for form, lack in missing.items()}
        faults = [
            f"{form}: {n} of {all_n} rows have no answer ({which})" for form, (n, all_n, which) in of.items()
        ]
    if faults:
        remedy = "have the forms filled, or take the complete rows with --partial (nothing was written)"
        raise MedtasksError(some(list(dict.fromkeys(faults)), 5, "\n  "), remedy=remedy)
    return rows, missing
