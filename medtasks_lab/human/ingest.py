"""Filled forms: read, checked against the key, and taken in only if every row is as it was exported."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_lab.human.forms import cell_text, text_digest
from medtasks_lab.human.kinds import Kind, load_kind

_SHOWN = 5  # faults that a message spells out
_UNDO = "take the row from the file as it was exported and fill in the answers alone"


@dataclass(frozen=True)
class Filled:
    """A row with all its answers."""

    form: str  # the expert
    row: str  # its id
    about: Mapping[str, Any]  # what the key says that it is about
    answers: Mapping[str, str]  # question -> value


@dataclass
class Ingested:
    """What forms held."""

    rows: list[Filled] = field(default_factory=list)  # complete rows, by expert and in the order of the key
    absent: dict[str, list[str]] = field(default_factory=dict)  # expert -> rows without any answer
    #: expert -> rows of which some questions are open
    incomplete: dict[str, list[str]] = field(default_factory=dict)
    empty: list[Path] = field(default_factory=list)  # files without any answer, which were left aside

    @property
    def n_missing(self) -> int:
        """Rows that were exported and cannot be used."""
        return sum(len(rows) for part in (self.absent, self.incomplete) for rows in part.values())


class _Fault(NamedTuple):
    place: str
    what: str
    remedy: str
    #: faults that are alike: faults with the same key are told once
    alike: str = ""


class _Line(NamedTuple):
    path: Path
    place: str
    export: str
    form: str
    row: str
    cells: dict[str, str]
    answers: dict[str, str]


def ingest(paths: Sequence[Path], key: Mapping[str, Any], *, partial: bool = False) -> Ingested:
    """Read filled forms.

    Args:
        paths: CSV files, as filled in a spreadsheet or exported by the page. Files without any answer
            are left aside.
        partial: take complete rows where others are missing.

    Raises:
        MedtasksError: a file is no form; a row of another export, unknown, changed or given twice; a
            value that is no option; without `partial`, an answer that is missing. All faults come in
            one message, by file and row.
    """
    kind = load_kind(key["kind"])
    ingested = Ingested()
    given: dict[tuple[str, str], _Line] = {}
    faults: list[_Fault] = []
    for path in {path.resolve(): path for path in paths}.values():
        lines = list(_lines(path, kind))
        if not any(value for line in lines for value in line.answers.values()):
            ingested.empty.append(path)
            continue
        for line in lines:
            if fault := _fault(line, key, kind):
                faults.append(fault)
            elif before := given.get((line.form, line.row)):
                what = f"the row is also in {before.place}"
                alike = f"{line.form} in {line.path} and {before.path}" if line.path != before.path else ""
                faults.append(_Fault(line.place, what, "keep one of the two and delete the other", alike))
            else:
                given[line.form, line.row] = line
    _refuse(faults)
    for form, rows in key["forms"].items():
        for row, record in rows.items():
            answers = given[form, row].answers if (form, row) in given else {}
            values = _values(record, kind)
            read = {name: _option(value, values) for name, value in answers.items()}
            if not values and not any(read.values()):
                continue  # words of one's own may stay out
            if not any(read.values()):
                ingested.absent.setdefault(form, []).append(row)
            elif not all(read.values()):
                ingested.incomplete.setdefault(form, []).append(row)
            else:
                complete = {name: value for name, value in read.items() if value}
                ingested.rows.append(Filled(form, row, record["about"], complete))
    if not partial or not ingested.rows:
        _refuse(_missing(ingested, key))
    return ingested


def _missing(ingested: Ingested, key: Mapping[str, Any]) -> list[_Fault]:
    faults = []
    for part, what in ((ingested.absent, "have no answer"), (ingested.incomplete, "are filled in part")):
        for form, rows in part.items():
            of_all = f"{len(rows)} of {len(key['forms'][form])} rows {what}"
            named = ", ".join(rows[:_SHOWN]) + (", …" if len(rows) > _SHOWN else "")
            faults.append(
                _Fault(
                    form, f"{of_all} ({named})", "have them filled, or take the complete rows with --partial"
                )
            )
    if faults and not ingested.rows:
        return [_Fault("forms", "no row has all its answers", "give the filled CSV files")]
    return faults


def _refuse(faults: Sequence[_Fault]) -> None:
    if not faults:
        return
    told: dict[str, list[_Fault]] = {}
    for fault in faults:
        told.setdefault(fault.alike or fault.place, []).append(fault)
    shown = list(told.values())[:_SHOWN]
    lines = [
        f"{first.place}: {first.what}" + (f" (and {len(rest)} more rows alike)" if rest else "")
        for first, *rest in shown
    ]
    if len(told) > _SHOWN:
        lines.append(f"and {len(told) - _SHOWN} more")
    remedies = "; ".join(dict.fromkeys(fault.remedy for fault, *_ in shown))
    raise MedtasksError(
        "\n  ".join(lines), remedy=f"{remedies} (nothing was written; the forms are as they were)"
    )


def _lines(path: Path, kind: Kind) -> Iterator[_Line]:
    """The rows of a file: comma, semicolon or tab, with or without a byte order mark."""
    remedy = "give the CSV files that experts filled or that the page exported"
    check_regular(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise MedtasksError("no such file", where=path, remedy=remedy) from None
    except UnicodeDecodeError:
        raise MedtasksError(
            "not UTF-8 text",
            where=path,
            remedy="in the spreadsheet, save it as “CSV UTF-8”; answers stay as they are",
        ) from None
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    columns = [question.id for question in kind.questions]
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        names = [(name or "").strip() for name in reader.fieldnames or ()]
        reader.fieldnames = [name.partition(" [")[0] for name in names]  # a question names its answers
        absent = [name for name in ("form", "row", "digest", *columns) if name not in reader.fieldnames]
        if absent:
            raise MedtasksError(
                f"no form of this export: it has no column {', '.join(absent)}", where=path, remedy=remedy
            )
        for number, raw in enumerate(reader, start=2):
            cells = {name: (value or "").strip() for name, value in raw.items() if isinstance(name, str)}
            if any(cells.values()):
                export, _, form = cells["form"].partition("/")
                yield _Line(
                    path=path,
                    place=f"{path}, row {number} ({cells['row'] or 'no id'})",
                    export=export,
                    form=form,
                    row=cells["row"],
                    cells=cells,
                    answers={name: cells[name] for name in columns},
                )
    except csv.Error as error:
        raise MedtasksError(f"not a CSV file ({error})", where=path, remedy=remedy) from None


def _values(record: Mapping[str, Any], kind: Kind) -> list[str]:
    """The answers to what a row asks; none where the expert writes."""
    own: list[str] | None = record.get("values")
    return kind.values if own is None else own


def _option(value: str, values: Sequence[str]) -> str | None:
    if not values:
        return cell_text(value)
    return next((option for option in values if option.casefold() == value.casefold()), None)


def _fault(line: _Line, key: Mapping[str, Any], kind: Kind) -> _Fault | None:
    """The first thing that is wrong with a row."""
    if line.export != key["export"]:
        what = f"belongs to another export ({line.export or 'none'}, not {key['export']})"
        return _Fault(line.place, what, "ingest it with the key of its own export", f"{line.path} {what}")
    record = key["forms"].get(line.form, {}).get(line.row)
    if record is None:
        return _Fault(line.place, f"{line.form or 'the form'} has no such row", _UNDO)
    if line.cells["digest"] != record["digest"]:
        return _Fault(line.place, "its digest was changed", _UNDO)
    for name, digest in record["cells"].items():
        if name in line.cells and text_digest(line.cells[name]) != digest:
            return _Fault(line.place, f"its text {name} was changed", _UNDO)
    for name, value in line.answers.items():
        values = _values(record, kind)
        if value and _option(value, values) is None:
            return _Fault(line.place, f"{name} is {value!r}", f"write one of: {', '.join(values)}")
    return None
