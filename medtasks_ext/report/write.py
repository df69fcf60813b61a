"""The files of a report: tables for programs, a page for people, and what installed packages add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from medtasks_ext.atomic import atomic_file, replaced_folder, write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import REPORT_VIEWS, leave_out, results
from medtasks_ext.jsonfile import Json, write_json
from medtasks_ext.report.answers.column import columns_of, sources_of
from medtasks_ext.report.answers.dataset import FOLDER, DatasetAnswers, script
from medtasks_ext.report.payload import payload, render
from medtasks_ext.results.experiments import is_open
from medtasks_ext.tables import csv_lines
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.report.gather import Report

MARK = "medtasks-report.json"
FILES = ("results.csv", "results.parquet", "groups.csv", "groups.parquet", "asked.csv", "report.html")
#: Written where documents have labels.
LABEL_FILES = ("labels.csv", "labels.parquet")
#: Answers that a report holds, spread evenly over its runs and tasks; of one run of one task at least.
MOST, LEAST = 10_000, 20


def check_folder(folder: Path) -> None:
    remedy = "give another folder to -o"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "is a file" if folder.is_file() else f"cannot be made ({error.strerror})"
        raise MedtasksError(what, where=folder, remedy=remedy) from None
    foreign = [name for name in (*FILES, *LABEL_FILES, FOLDER) if (folder / name).exists()]
    if foreign and not (folder / MARK).is_file():
        raise MedtasksError(f"holds {foreign[0]}, which no report wrote", where=folder, remedy=remedy)


def write_report(folder: Path, report: Report, *, closed: bool = False) -> list[Path]:
    """Files of an earlier report stay until all new ones are complete.

    Answers that cannot be read are added to the report's faults. `closed`: also answers to data that are not
    open.
    """
    every, groups, labels = report.results, report.groups, report.labels
    made: dict[str, Callable[[BinaryIO], object]] = {
        "results.csv": lambda file: _lines(every.lines(), file),
        "results.parquet": lambda file: _parquet(every.tables(), file),
        "groups.csv": lambda file: _lines(csv_lines(groups), file),
        "groups.parquet": lambda file: _parquet([groups], file),
        "asked.csv": lambda file: _lines(csv_lines(report.asked), file),
        "labels.csv": lambda file: _lines(csv_lines(labels), file),
        "labels.parquet": lambda file: _parquet([labels], file),
        "report.html": lambda file: file.write(render(data).encode(errors="replace")),
    }
    names = FILES + (LABEL_FILES if labels.num_rows else ())
    with ExitStack() as files:  # they take their places when the last one is complete
        answers = write_answers(files.enter_context(replaced_folder(folder / FOLDER)), report, closed=closed)
        data = {**payload(report), "answers": answers}
        for name in names:
            made[name](files.enter_context(atomic_file(folder / name)))
        write_json(folder / MARK, {"medtasks": __version__, "files": names})
    for name in {*LABEL_FILES} - {*names}:
        (folder / name).unlink(missing_ok=True)  # of an earlier report
    return [folder / name for name in names]


def write_answers(folder: Path, report: Report, *, closed: bool) -> Json:
    """Write the files, and return what the page says of them.

    What cannot be read is added to the report's faults. `closed`: also of data that are not open.
    """
    every = sources_of(report.own, report.tasks)
    found = {
        name: [item for item in sources if closed or is_open(item.dataset, sample=item.sample)]
        for name, sources in every.items()
    }
    withheld = [name for name, sources in found.items() if not sources]
    each = max(LEAST, MOST // max(1, sum(map(len, found.values()))))
    most = max(1, MOST // (each * max(1, len(found) - len(withheld))))
    held = []
    for name, sources in found.items():
        if columns := columns_of(sources[:most], report.faults, each):
            held.append(name)
            named = all(is_open(item.dataset, sample=item.sample) for item in sources)
            answers = DatasetAnswers(columns, named=named)
            parts = ((f"{name}-{number}", answers.part(number)) for number in range(answers.parts))
            for stem, content in chain([(name, answers.head())], parts):
                (folder / f"{stem}.js").write_text(script(stem, content), encoding="ascii")
    return {"held": held, "withheld": withheld}


def _parquet(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    """A table, of one part at least."""
    from pyarrow import parquet

    parts = iter(tables)
    first = next(parts)
    # without Arrow's schema: a text is a text to every reader, also where it is written once
    with parquet.ParquetWriter(file, first.schema, compression="zstd", store_schema=False) as writer:
        for part in chain([first], parts):
            writer.write_table(part)
        writer.add_key_value_metadata(first.schema.metadata)


def _lines(lines: Iterable[str], file: BinaryIO) -> None:
    file.writelines(map(str.encode, lines))


def write_views(folder: Path, report: Report, taken: list[Path]) -> list[Path]:
    """A view that fails is named, and left out; none replaces one of the `taken` files."""
    written: list[Path] = []
    for hook, files in results(REPORT_VIEWS, lambda hook: hook.load()(report)):
        made: dict[str, str] = files if isinstance(files, dict) else {"": ""}
        for name, text in made.items():
            path = folder / name
            if path.parent != folder or path in (*taken, *written):
                leave_out(hook.fault(f"names no file of its own: {name!r}"))
                continue
            write_text(path, text)
            written.append(path)
    return written
