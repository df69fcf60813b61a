"""Forms as files: a page for each expert, the key that stays behind, and the CSV that a page exports."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
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
    """Write EXPERT.html for each expert, and `key.json`, the last of the files.

    Raises:
        MedtasksError: the folder holds an export already, whose key would be lost.
    """
    if (folder / KEY_FILE).exists():
        raise MedtasksError("holds the key of an export", where=folder, remedy="name another folder")
    key = {"kind": kind, "export": f"mt{secrets.token_hex(5)}", **export, "forms": {}}
    for number, (form, items) in enumerate(export["forms"].items(), start=1):
        rows = {f"E{number}R{place:03d}": item for place, item in enumerate(items, start=1)}
        key["forms"][form] = {
            row: {"about": item["about"], "values": list(_options(kind, export["language"], item))}
            for row, item in rows.items()
        }
        write_text(folder / f"{form}.html", _page(key, form, rows))
    write_json(folder / KEY_FILE, key)
    return [*(folder / f"{form}.html" for form in export["forms"]), folder / KEY_FILE]


def _options(kind: str, language: str, item: Mapping[str, Any]) -> dict[str, str]:
    """Value -> label of the answers to a row; none where the expert writes."""
    of_kind = {option["value"]: option["label"][language] for option in kind_of(kind).get("options", ())}
    own: dict[str, str] | None = item.get("options")
    return of_kind if own is None else own


def _page(key: Mapping[str, Any], form: str, rows: Mapping[str, Any]) -> str:
    """The page of one form; `page/page.js` says what its data is."""
    language, kind, words = key["language"], kind_of(key["kind"]), page_words(key["language"])
    options = {row: tuple(_options(key["kind"], language, item).items()) for row, item in rows.items()}
    distinct, questions = list(dict.fromkeys(options.values())), kind["questions"]
    places: dict[str, list[Any]] = {}
    for text in kind["texts"]:
        places.setdefault(text["place"], []).append(text)

    def texts(item: Mapping[str, Any], place: str) -> list[dict[str, str]]:
        shown = ((text["label"][language], item["texts"].get(text["id"])) for text in places.get(place, ()))
        return [{"label": label, "text": text} for label, text in shown if text]

    def prompts(row: str, item: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        label, below = ("".join(text["text"] for text in texts(item, place)) for place in ("prompt", "help"))
        for asked in questions:
            own = {} if label else {"label": asked["label"][language], "help": asked["help"][language]}
            place = {"row": row, "question": asked["id"], "options": distinct.index(options[row])}
            yield {"label": label, "help": below, **own, **place}

    pages = []
    for _, group in groupby(rows.items(), key=lambda row: row[1]["page"]):
        members = list(group)
        asked = [prompt for row, item in members for prompt in prompts(row, item)]
        pages.append(
            {**{place: texts(members[0][1], place) for place in ("above", "answer")}, "prompts": asked}
        )
    data = {
        **{name: kind[name][language] for name in ("title", "introduction")},
        "notices": [words[notice] for notice in key["notices"]],
        "export": key["export"],
        "form": form,
        "words": words,
        "options": [[{"value": value, "label": label} for value, label in own] for own in distinct],
        "columns": [question["id"] for question in questions],
        "rows": list(rows),
        "pages": pages,
    }
    return offline_page(
        HERE / "page" / "page.html",
        style=HERE / "page" / "page.css",
        scripts=[HERE / "page" / "page.js"],
        data=data,
        language="zh-Hans" if language == "zh" else "en",
        title=data["title"],
    )


def read_key(path: Path) -> dict[str, Any]:
    """The key of an export.

    Raises:
        MedtasksError: it is missing, or something else.
    """
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
            `partial`, an answer that is missing. All faults come in one message; nothing is written.
    """
    questions = [item["id"] for item in kind_of(key["kind"])["questions"]]
    given: dict[tuple[str, str], dict[str, str]] = {}
    faults: list[str] = []
    columns = ["form", "row", *questions]
    for path in dict.fromkeys(paths):
        for number, line in read_sheet(path, columns, remedy="give the CSV files that the pages exported"):
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
        faults = [
            f"{form}: {len(open_rows)} of {len(key['forms'][form])} rows have no answer ({some(open_rows)})"
            for form, open_rows in missing.items()
        ]
    if faults:
        raise MedtasksError(
            some(list(dict.fromkeys(faults)), 5, "\n  "),
            remedy="have the forms filled, or take the complete rows with --partial (nothing was written)",
        )
    return rows, missing
