"""Data of one's own: `medtasks data template`, `import`, `check` and `new`."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from medtasks_ext.cli.commands import AsJson, out_option
from medtasks_ext.cli.words import counted, names_in, pairs, say_next
from medtasks_ext.data.bring import Brought, ImportOptions, bring, rows_of
from medtasks_ext.data.template import write_template
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.privacy import shows_text
from medtasks_ext.prompts.documents import shown
from medtasks_ext.prompts.load import check_loaded_rows
from medtasks_ext.registry import Dataset, forget, registry
from medtasks_ext.registry.build import check_names
from medtasks_ext.registry.new import of_columns, suite_of, template_of, with_words, write
from medtasks_ext.rows.places import DATA_FOLDER, data_dir
from medtasks_ext.rows.row import Rows
from medtasks_ext.rows.sources import source_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.rows.row import Row


_SHOWN = 5  # causes of faults of a dataset, rows of a cause, and names in a list


Encoding = Annotated[str | None, Option(help="Of a text file that is not UTF-8, such as cp1252.")]


def data_template(
    names: Annotated[
        list[str], Argument(metavar="NAME...", help="Datasets or groups, for example medhelm_clear.")
    ],
    out: Annotated[
        str | None, out_option("Data folder; by default MEDTASKS_DATA_DIR, else ./medtasks_data.")
    ] = None,
) -> int:
    """Write the columns of a dataset and two example rows.

    Types and allowed values of columns stand in a README. Nothing is written where rows are looked for.

    Example: medtasks data template medhelm_clear -o /data/medtasks
    """
    tasks, root = registry(), _root(out)
    leaves = [leaf for members in tasks.resolve(names).values() for leaf in members]
    for dataset in dict.fromkeys(tasks.tasks[leaf][0] for leaf in leaves):
        for path in write_template(dataset, root):
            typer.echo(f"wrote {path}")
        more = ": these rows are downloaded; yours would replace them" if source_of(dataset).download else ""
        typer.echo(f"rows go to {path.with_name('test.jsonl')}{more}")
    say_next(
        f"medtasks data check {root}", f"MEDTASKS_DATA_DIR={root} medtasks run {' '.join(names)} --model …"
    )
    return 0


def _root(out: str | None) -> Path:
    return Path(out or os.environ.get("MEDTASKS_DATA_DIR") or DATA_FOLDER).expanduser()


def data_import(
    file: Annotated[str, Argument(metavar="FILE", help="CSV, Excel, JSON, Parquet, …")],
    task: Annotated[str, Option(help="The dataset whose rows it holds.")],
    columns: Annotated[
        list[str] | None,
        Option("--map", metavar="OURS=THEIRS", help="A column of the dataset and the file's name for it."),
    ] = None,
    values: Annotated[
        list[str] | None,
        Option(
            "--map-value", metavar="COLUMN:THEIRS=OURS", help="A value of the file and the dataset's for it."
        ),
    ] = None,
    sheets: Annotated[
        list[str] | None, Option("--sheet", help="A sheet of a workbook; by default all that fit.")
    ] = None,
    encoding: Encoding = None,
    skip_ragged: Annotated[
        bool, Option("--skip-ragged", help="Leave out records with more cells than the header.")
    ] = False,
    split: Annotated[str, Option(help="test or fewshot.")] = "test",
    replace: Annotated[bool, Option("--replace", help="Overwrite rows that are there.")] = False,
    out: Annotated[
        str | None, out_option("Data folder; by default MEDTASKS_DATA_DIR, else ./medtasks_data.")
    ] = None,
) -> int:
    """Make the row file of a dataset from a file that you have, and check it.

    Columns are found by their names, whatever their case, below titles and in several sheets; --map and
    --map-value say which is which where names and values differ. What is left out is said.

    Example: medtasks data import notes.xlsx --task medhelm_clear --map text=Befund --map-value label:Ja=A

    Exit code 1: the rows have faults.
    """
    from medtasks_ext.data.check import check_dataset

    if split not in ("test", "fewshot"):
        raise MedtasksError(f"no split {split!r}", where="--split", remedy="use test or fewshot")
    named = pairs(columns, "--map", "OURS=THEIRS")
    wanted = ImportOptions(split, named, _values(values), sheets or (), encoding, replace, skip_ragged)
    leaf = next(leaf for members in registry().resolve([task]).values() for leaf in members)
    dataset, root = registry().tasks[leaf][0], _root(out)
    done = bring(Path(file).expanduser(), dataset, root, wanted)
    typer.echo("\n".join(_brought_lines(done)))
    checked = check_dataset(dataset, root)
    typer.echo("\n".join(_checked_lines(checked.record, root)))
    return 1 if checked.faults else 0


def _values(given: list[str] | None) -> dict[str, dict[str, str]]:
    by_column: dict[str, dict[str, str]] = {}
    for item in given or []:
        column, _, pair = item.partition(":")
        theirs, _, ours = pair.rpartition("=")
        if not (column and theirs and ours):
            what, remedy = f"{item!r} maps no value", "write COLUMN:THEIRS=OURS"
            raise MedtasksError(what, where="--map-value", remedy=remedy)
        by_column.setdefault(column, {})[theirs] = ours
    return by_column


def _brought_lines(done: Brought) -> list[str]:
    lines = [f"column {name} is {theirs}" for name, theirs in done.columns.items() if name != theirs]
    lines += [f"sheet {name}: {counted(n, 'row')}" for name, n in done.sheets.items()]
    lines += [f"sheet {name} is not read: {why}" for name, why in done.not_read.items()]
    lines += [
        f"left out: {counted(len(places), 'record')}, each of which {why} (record {some(places)})"
        for why, places in done.left_out.items()
    ]
    return [*lines, f"wrote {done.path}: {counted(done.n, 'row')}"]


def data_check(
    folder: Annotated[
        str | None, Argument(metavar="[DIR]", help="Data folder; by default MEDTASKS_DATA_DIR.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check local files against the schemas of their datasets.

    Every row is read as a run would read it. Names that nobody looks for are listed.

    Example: medtasks data check /data/medtasks

    Exit code 1: something is not valid, a name looks mistyped, or nothing was found.
    """
    from rich.console import Console

    from medtasks_ext.data.check import check_folder

    root = Path(folder).expanduser() if folder else data_dir()
    if root is None:
        remedy = "name it, or set MEDTASKS_DATA_DIR"
        raise MedtasksError("no folder to check", where="medtasks data check", remedy=remedy)
    with Console(stderr=True).status("looking for files") as line:
        report = check_folder(root, registry(), line.update)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        _print_check(report, root)
    return 0 if report["valid"] else 1


def _print_check(report: Json, folder: Path) -> None:
    checked, absent, n_fetched = report["datasets"], report["not_there"], report["fetched"]["files"]
    for item in checked:
        typer.echo("\n".join(_checked_lines(item, folder)))
    for path in report["fetched"]["damaged"]:
        typer.echo(f"✗ {path}: not as it was fetched")
    for stray in report["not_read"]:
        meant = f"; did you mean {stray['meant']}?" if stray["meant"] else ""
        typer.echo(f"? {stray['path']}: not read: {stray['why']}{meant}")
    if absent:
        rest = len(absent) - _SHOWN
        more = f" and {rest} others (`medtasks data status` lists them)" if rest > 0 else ""
        typer.echo(f"not available: {', '.join(absent[:_SHOWN])}{more}")
    invalid = sum(not item["valid"] for item in checked)
    mistyped = sum(stray["meant"] is not None for stray in report["not_read"])
    fetched = f", {n_fetched} fetched files" if n_fetched else ""
    typer.echo(
        f"{folder}: {len(checked)} local datasets{fetched}, {invalid} not valid"
        + (f", {mistyped} names that look mistyped" if mistyped else "")
    )
    if not checked and not n_fetched:
        names = "`medtasks data status TASK` names the files"
        typer.echo(f"nothing was found there: a data folder holds bridge/, medhelm/, … ({names})")
    if invalid and not shows_text():
        typer.echo("values are left out, as they may be patients' texts; MEDTASKS_SHOW_TEXT=1 shows them")
    if checked and report["valid"]:
        names = ",".join(item["id"] for item in checked[:_SHOWN])
        say_next(f"medtasks run {names} --data local --model vllm --model_args pretrained=ORG/MODEL")


def _checked_lines(item: Json, folder: Path) -> list[str]:
    counts = f"{item['n_test']:,} test rows, {item['n_fewshot']:,} few-shot rows"
    mark, valid = ("✓", "") if item["valid"] else ("✗", "valid: ")
    lines = [f"{mark} {item['id']}  {valid}{counts}  ({', '.join(item['files'])})"]
    for cause in item["causes"][:_SHOWN]:
        place, column, what = cause["file"].removeprefix(f"{folder}/"), cause["column"], cause["cause"]
        named = f" (column {column})" if column and column not in what else ""
        lines.append(f"    {place}: {what}{named}{_in_rows(cause['rows'])}")
        lines.append(f"    → {cause['remedy']}")
    if rest := item["causes"][_SHOWN:]:
        more = sum(cause["n"] for cause in rest)
        lines.append(f"    and {counted(len(rest), 'other cause')} with {more:,} faults (--json has all)")
    if not item["valid"] and item["n_usable"]:
        usable = f"{item['n_usable']:,} test rows are without a fault"
        lines.append(f"    {usable}: `medtasks run {item['id']} --drop-faulty` takes only these")
    lines += [f"    note: {note}" for note in item["notes"]]
    if item["oracle"] is not None:
        highest = f", the highest score is {item['highest']:.4f}" if item["highest"] is not None else ""
        lines.append(f"    the gold answers themselves score {item['oracle']:.4f}{highest}")
    return lines


def _in_rows(rows: list[str]) -> str:
    if len(rows) < 2:  # its name is said
        return ""
    kind, _, first = rows[0].partition(" row ")
    rest = [row.removeprefix(f"{kind} row ") for row in rows[1:_SHOWN]]
    shown = ", ".join([f"{kind} rows {first}", *rest]) + (", …" if len(rows) > _SHOWN else "")
    return f": {len(rows):,} rows ({shown})"


def new(
    facts: Annotated[
        list[str] | None,
        Argument(
            metavar="[FACT=VALUE...]",
            help="language, task_type, document_types=A,B, specialties=A,B, stage, access (open, gated or "
            "private), and values on axes of the suite's own. A dataset of no suite (own_NAME) needs only "
            "language.",
        ),
    ] = None,
    id: Annotated[str | None, Option(help="SUITE_DATASET.")] = None,
    kind: Annotated[str | None, Option(help="Answer kind (docs/keys.md).")] = None,
    prompt: Annotated[str | None, Option(help="What is asked, with the form of the answer.")] = None,
    labels: Annotated[str | None, Option(metavar="A,B", help="All labels that an answer may have.")] = None,
    source: Annotated[
        str | None, Option("--from", metavar="FILE", help="File of rows that the task is for.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        Option(
            "--map",
            metavar="OURS=THEIRS",
            help="A column of the kind, and the file's: A,B of a list or a text in parts, A.B in a cell.",
        ),
    ] = None,
    first: Annotated[
        int | None, Option("--count-from", help="0 or 1: the first option, where answers are numbers.")
    ] = None,
    encoding: Encoding = None,
) -> int:
    """Start a dataset folder.

    What is left to write is marked TODO. --from shows three rows as they are asked, and copies none.

    Example: medtasks data new --from exam.csv --id own_exam --kind choice --map question=stem
    --map options=A,B,C,D --prompt "Choose the right option. Reply with its letter." language=en
    """
    named = {ours: names_in(theirs) for ours, theirs in pairs(columns, "--map", "OURS=THEIRS").items()}
    rows = _rows_from(source, named, encoding) if source else []
    tasks = registry(empty=True)
    check_names(tasks)  # a registry that cannot be read is mended first
    axes = pairs(facts, "medtasks data new", "FACT=VALUE")
    said: dict[str, Any] = {"id": id or "", "axes": axes}
    said |= {name: axes.pop(name, "") for name in ("language", "task_type", "stage", "access")}
    said |= {name: names_in(axes.pop(name, "")) or [""] for name in ("document_types", "specialties")}
    joined = suite_of(tasks, said["id"])
    if unknown := sorted(axes.keys() - joined.axes.keys()):
        facts_known = [*(name for name in said if name not in ("id", "axes")), *joined.axes]
        what, known = f"no fact {unknown[0]!r}{near(unknown[0], facts_known)}", ", ".join(facts_known)
        raise MedtasksError(what, where="medtasks data new", remedy=f"name one of: {known}")
    template = with_words(template_of(joined, kind), prompt, names_in(labels or ""))
    if named or rows:
        template = of_columns(template, named, rows[0] if rows else {}, first)
    folder = write(tasks, joined, said, template)
    forget()
    dataset = Dataset(folder)
    typer.echo(f"wrote {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}")
    if rows:
        _preview(dataset, Rows("local", rows, [], str(source)))
    if joined.datasets and tasks.is_own(dataset):
        typer.echo(f"means of {joined.id} leave it out until `datasets` in {joined.file} lists it")
    if not prompt:
        typer.echo("replace all that is marked TODO in its files")
    flags = f" --encoding {shlex.quote(encoding)}" if encoding else ""
    say_next(
        f"medtasks data import {shlex.quote(source)} --task {dataset.id}{flags}" if source else
        f"medtasks preview {dataset.id} --data sample",
        f"medtasks run --tasks {dataset.id} --model …" if source and prompt else
        f"medtasks dev validate {dataset.id}",
    )  # fmt: skip
    return 0


def _rows_from(source: str, named: dict[str, list[str]], encoding: str | None) -> list[Row]:
    wanted = [name for names in named.values() for name in names]
    rows = rows_of(Path(source).expanduser(), wanted, ImportOptions(encoding=encoding, skip_ragged=True))
    if not rows:
        raise MedtasksError("holds no rows", where=source, remedy="name the complete file")
    absent = [name for name in wanted if name not in rows[0] and name.partition(".")[0] not in rows[0]]
    if absent:
        what, known = f"the file has no column {absent[0]}", ", ".join(rows[0])
        raise MedtasksError(what, where="--map", remedy=f"name one of: {known}")
    return rows


def _preview(dataset: Dataset, rows: Rows) -> None:
    """Three rows as they are asked, and what keeps others from it."""
    n, checked = len(rows.test), check_loaded_rows(dataset, rows)
    for document in checked.test[:3]:
        text = "\n\n".join(filter(None, (document["system"], shown(document))))
        typer.echo(f"\n── {document.row} ──\n{text}\n── gold ──\n{document['target']}")
    asked = len({document.row.partition(",")[0] for document in checked.test})
    typer.echo(f"\n{asked:,} of {n:,} rows can be asked as the new task file says")
    if checked.faults:
        remedy = f"correct {dataset.file}, then `medtasks preview`"
        typer.echo(f"note: {checked.faults[0].what} → --map names columns, --labels all labels; {remedy}")
