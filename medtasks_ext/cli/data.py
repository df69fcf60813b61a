"""`medtasks data`: what is at hand, what is missing and how to get it, and data of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from medtasks_ext.cli.app import AsJson, Official, out_option
from medtasks_ext.cli.data_fetch import chosen, has_terms
from medtasks_ext.cli.words import aligned, counted, pairs, say_next, terminal_width
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.rows.folders import data_dir
from medtasks_ext.rows.sources import forced_origin

if TYPE_CHECKING:
    from medtasks_ext.data.bring import Brought
    from medtasks_ext.data.check import Cause, Checked, FolderReport
    from medtasks_ext.data.status import Status
    from medtasks_ext.registry import Dataset

_EXPLAINED = 3  # datasets of which `data status` says how data are got
_SHOWN = 5  # causes of faults of a dataset, rows of a cause, and names in a list


def data_template(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Datasets or groups, for example medhelm_clear."),
    ],
    out: Annotated[
        str | None,
        out_option("Data folder; by default MEDTASKS_DATA_DIR, else ./medtasks_data."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="csv, xlsx or jsonl.")] = "jsonl",
) -> int:
    """Write the columns of a dataset and two example rows.

    Types and allowed values of columns stand in a README. Nothing is written where rows are looked for.

    Example: medtasks data template medhelm_clear -o /data/medtasks --format xlsx
    """
    from medtasks_ext.data.template import Form, write_template

    if form not in get_args(Form):
        raise MedtasksError(f"no format {form!r}", where="--format", remedy="use csv, xlsx or jsonl")
    tasks, root = registry(), _root(out)
    leaves = [leaf for members in tasks.resolve(names).values() for leaf in members]
    for dataset in dict.fromkeys(tasks.tasks[leaf][0] for leaf in leaves):
        template = write_template(dataset, root, cast("Form", form))
        for path in template.written:
            typer.echo(f"wrote {path}")
        rows = template.folder / f"test.{form}"
        more = ": these rows are downloaded; yours would replace them" if template.downloaded else ""
        typer.echo(f"rows go to {rows}{more}")
    say_next(
        f"medtasks data check {root}", f"MEDTASKS_DATA_DIR={root} medtasks run {' '.join(names)} --model …"
    )
    return 0


def _root(out: str | None) -> Path:
    return Path(out or os.environ.get("MEDTASKS_DATA_DIR") or "medtasks_data").expanduser()


# ---------------------------------------------------------------------- import


def data_import(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, Excel, JSON, Parquet, …")],
    task: Annotated[str, typer.Option("--task", help="The dataset whose rows it holds.")],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="OURS=THEIRS", help="A column of the dataset and the file's name for it."
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--map-value", metavar="COLUMN:THEIRS=OURS", help="A value of the file and the dataset's for it."
        ),
    ] = None,
    sheets: Annotated[
        list[str] | None, typer.Option("--sheet", help="A sheet of a workbook; by default all that fit.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Of a text file that is not UTF-8, such as cp1252.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="test or fewshot.")] = "test",
    out: Annotated[
        str | None,
        out_option("Data folder; by default MEDTASKS_DATA_DIR, else ./medtasks_data."),
    ] = None,
) -> int:
    """Make the row file of a dataset from a file that you have, and check it.

    Columns are found by their names, whatever their case, below titles and in several sheets; --map and
    --map-value say which is which where names and values differ. What is left out is said.

    Example: medtasks data import notes.xlsx --task medhelm_clear --map text=Befund --map-value label:Ja=A

    Exit code 1: the rows have faults.
    """
    from medtasks_ext.data.bring import ImportOptions, bring
    from medtasks_ext.data.check import check_dataset

    if split not in ("test", "fewshot"):
        raise MedtasksError(f"no split {split!r}", where="--split", remedy="use test or fewshot")
    wanted = ImportOptions(
        split,
        pairs(columns, "--map", "OURS=THEIRS"),
        _values(values),
        sheets or (),
        encoding,
    )
    leaf = next(leaf for members in registry().resolve([task]).values() for leaf in members)
    dataset, root = registry().tasks[leaf][0], _root(out)
    done = bring(Path(file).expanduser(), dataset, root, wanted)
    typer.echo("\n".join(_brought_lines(done)))
    checked = check_dataset(dataset, root)
    typer.echo("\n".join(_checked_lines(checked, root)))
    return 1 if checked.faults else 0


def _values(given: list[str] | None) -> dict[str, dict[str, str]]:
    by_column: dict[str, dict[str, str]] = {}
    for item in given or []:
        column, _, pair = item.partition(":")
        theirs, _, ours = pair.rpartition("=")
        if not (column and theirs and ours):
            raise MedtasksError(
                f"{item!r} maps no value", where="--map-value", remedy="write COLUMN:THEIRS=OURS"
            )
        by_column.setdefault(column, {})[theirs] = ours
    return by_column


def _brought_lines(done: Brought) -> list[str]:
    from medtasks_ext.data.export import ranges

    lines = [f"column {name} is {theirs}" for name, theirs in done.columns.items() if name != theirs]
    lines += [f"sheet {name}: {counted(n, 'row')}" for name, n in done.sheets.items()]
    lines += [f"sheet {name} is not read: {why}" for name, why in done.not_read.items()]
    if done.n_mended:
        lines.append(
            f"{counted(done.n_mended, 'cell')} had text that was encoded twice: read as it was meant"
        )
    for why, places in done.left_out.items():
        lines.append(
            f"left out: {counted(len(places), 'record')}, each of which {why} (record {ranges(places)})"
        )
    return [*lines, f"wrote {done.path}: {counted(done.n, 'row')}"]


# ---------------------------------------------------------------------- status


def data_status(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER...]", help="Tasks, groups; KEY=VALUE; part of a name."),
    ] = None,
    official: Official = False,
    as_json: AsJson = False,
) -> int:
    """Show where each dataset would be read from now.

    Rows are counted and checked where they are on this machine. Nothing is downloaded. Of up to three
    datasets, how data are got, and where which files go. With --official: which official prompts can be asked
    here.

    Example: medtasks data status bridge_zh access=gated

    Example: medtasks data status medhelm_ehrshot

    Exit code 1: with --official, a file is another one than the suite pins.
    """
    if official:
        from medtasks_ext.cli.official import print_official

        return print_official()
    from medtasks_ext.data.status import status_of

    forced = forced_origin()
    statuses = [status_of(dataset, forced) for dataset in chosen(words)]
    if as_json:
        typer.echo(json.dumps([item.record() for item in statuses], ensure_ascii=False, indent=1))
        return 0
    table = [
        ("dataset", "access", "data", "rows", "few-shot", "checks", "where"),
        *(_status_row(item) for item in statuses),
    ]
    room = terminal_width()
    for line in aligned(table):
        typer.echo(line if len(line) <= room else f"{line[: room - 1]}…")
    for item in statuses:
        if item.look and item.look.exclusions:
            typer.echo(f"{item.dataset.id}: {item.look.exclusions}")
    for item in statuses if len(statuses) <= _EXPLAINED else ():
        typer.echo("\n" + "\n".join(_how(item.dataset)))
    _say_summary(statuses)
    return 0


def _status_row(item: Status) -> tuple[str, ...]:
    origins = {"local": "local", "sample": "SAMPLE", "release": "inputs only", None: "missing"}
    look = item.look
    data = origins.get(item.origin) or ("fetched" if look else "download")
    checks = "–" if look is None else "failed" if look.faults else "passed"
    return (
        item.dataset.id,
        item.dataset.metadata.access,
        data,
        _rows_of_paper(item),
        "–" if look is None else f"{look.n_fewshot:,}",
        checks,
        f"{'' if item.pinned else 'unpinned: '}{item.where or '–'}",
    )


def _rows_of_paper(item: Status) -> str:
    n_paper, look = item.dataset.n_part, item.look
    if look is None:
        return "–"
    part = item.origin == "local" and look.n_questions != n_paper
    return f"{look.n_questions:,}/{n_paper:,}" if part else f"{look.n_test:,}"


def _say_summary(statuses: list[Status]) -> None:
    here = [item.look for item in statuses if item.look]
    failed = sum(bool(look.faults) for look in here)
    to_fetch = sum(item.origin == "hub" and not item.look for item in statuses)
    to_accept = sum(item.origin is None and has_terms(item.dataset) for item in statuses)
    missing = sum(item.origin is None for item in statuses) - to_accept
    parts, commands = [f"{counted(len(statuses), 'dataset')}: {len(here)} here"], []
    for number, what, command in (
        (failed, "of them not as they should be", "medtasks data check"),
        (to_fetch, "to download", "medtasks data fetch"),
        (to_accept, "to download after you accept their terms", "medtasks data fetch --accept NAME"),
        (missing, "missing", f"medtasks data {'status TASK' if len(statuses) > _EXPLAINED else 'check'}"),
    ):
        if number:
            parts.append(f"{number} {what}")
            commands.append(command)
    if unpinned := sum(not item.pinned for item in statuses):
        parts.append(f"{unpinned} not pinned, recorded at first use")
    typer.echo("; ".join(parts))
    typer.echo(f"data folder: {data_dir() or 'MEDTASKS_DATA_DIR is not set'}")
    say_next(*(commands or ["medtasks plan MODEL"]))


# ---------------------------------------------------------------------- how data are got


#: After a file whose content nobody has stated.
_UNPINNED = "  (unpinned: recorded at first use, other content is refused later)"


def _how(dataset: Dataset) -> list[str]:
    from medtasks_ext.rows.missing import source_of
    from medtasks_ext.rows.places import source_page
    from medtasks_ext.rows.remote import remote_files
    from medtasks_ext.rows.terms import shown

    metadata, source = dataset.metadata, source_of(dataset)
    files, page = remote_files(source), source_page(dataset)
    lines = [
        f"{dataset.id}  {metadata.name}",
        f"  access   {metadata.access}",
        f"  licence  {metadata.licence.title}",
        f"  use      {metadata.use}; text to a third party: {metadata.third_party_api}"
        + (f" ({metadata.licence.place})" if metadata.licence.place else ""),
        f"  page     {metadata.url}",
    ]
    if page:
        lines.append(f"  how      {_title(page)}: {page}")
    if files:
        if source.download and source.download.terms:
            lines += [f"  {line}" for line in shown(source.download.terms).split("\n")]
            lines.append(
                f"  download, once these terms are accepted: medtasks data fetch --accept {dataset.id}"
            )
        else:
            lines.append(f"  download by itself, or once for all: medtasks data fetch {dataset.id}")
        lines += [f"    {file.source}{'' if file.is_pinned else _UNPINNED}" for file in files]
    lines.append(f"  {'or files' if files else 'files'}, below {data_dir() or '$MEDTASKS_DATA_DIR'}:")
    lines += _layouts(dataset)
    if metadata.access == "private":
        lines.append(f"  files to fill: medtasks data template {dataset.id}")
    return lines


def _layouts(dataset: Dataset) -> list[str]:
    from medtasks_ext.rows.authors import authors_of
    from medtasks_ext.rows.missing import source_of
    from medtasks_ext.rows.places import dataset_folder, places

    source, lines = source_of(dataset), []
    for place in places(dataset, source):
        if place.kind == "original":
            lines.append(f"    {place.folder}/ with {', '.join(place.needed)} (or archives that hold them)")
            continue
        lines.append(f"    {place.needed[0]}, and {place.optional[0]} for examples")
        if place.kind == "rows":
            columns = [
                ", ".join(schema.columns) for schema in source.schemas if "_file" not in schema.columns
            ]
            if authors := authors_of(dataset, source):
                columns.insert(0, ", ".join(authors.schema.columns))
            lines.append(
                "      or .json, .csv, .tsv, .xlsx, .xls, .parquet, .feather; columns: " + " | ".join(columns)
            )
    if source.database:
        lines.append(f"    {dataset_folder(dataset)}/{source.database.file}, the database")
    return lines


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


# ---------------------------------------------------------------------- check


def data_check(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Data folder; by default MEDTASKS_DATA_DIR.")
    ] = None,
    as_json: AsJson = False,
    show_text: Annotated[
        bool, typer.Option("--show-text", help="Quote values that are wrong: they may be patients' texts.")
    ] = False,
) -> int:
    """Check local files against the schemas of their datasets.

    Every row is read as a run would read it. Names that nobody looks for are listed.

    Example: medtasks data check /data/medtasks

    Exit code 1: something is not valid, a name looks mistyped, or nothing was found.
    """
    from rich.console import Console

    from medtasks_ext.data.check import check_folder

    if show_text:
        os.environ["MEDTASKS_SHOW_TEXT"] = "1"
    root = Path(folder).expanduser() if folder else data_dir()
    if root is None:
        raise MedtasksError(
            "no folder to check", where="medtasks data check", remedy="name it, or set MEDTASKS_DATA_DIR"
        )
    with Console(stderr=True).status("looking for files") as line:
        report = check_folder(root, registry(), lambda name, place: line.update(f"{name}: {place}"))
    if as_json:
        typer.echo(json.dumps(report.record(), ensure_ascii=False, indent=1))
    else:
        _print_check(report)
    return 0 if report.valid else 1


def _print_check(report: FolderReport) -> None:
    from medtasks_ext.data.check import data_folder_above

    for item in report.checked:
        typer.echo("\n".join(_checked_lines(item, report.folder)))
    for path in report.damaged:
        typer.echo(f"✗ {path}: missing, or not as it was fetched")
    for stray in report.strays:
        meant = f"; did you mean {stray.meant}?" if stray.meant else ""
        typer.echo(f"? {stray.path}: not read: {stray.why}{meant}")
    if report.absent:
        rest = len(report.absent) - _SHOWN
        more = f" and {rest} others (`medtasks data status` lists them)" if rest > 0 else ""
        typer.echo(f"not there: {', '.join(report.absent[:_SHOWN])}{more}")
    invalid = sum(bool(item.faults) for item in report.checked)
    mistyped = sum(stray.meant is not None for stray in report.strays)
    n_fetched = f", {report.n_fetched} fetched files" if report.n_fetched else ""
    typer.echo(
        f"{report.folder}: {len(report.checked)} local datasets{n_fetched}, {invalid} not valid"
        + (f", {mistyped} names that look mistyped" if mistyped else "")
    )
    if not report.checked and not report.n_fetched:
        above = data_folder_above(report.folder, registry())
        where = f"check {above}" if above else "it holds bridge/, medhelm/, …"
        typer.echo(f"nothing was found there: {where} (`medtasks data status TASK` names the files)")
    if invalid and os.environ.get("MEDTASKS_SHOW_TEXT", "0") in ("", "0"):
        typer.echo("values are left out, since rows may hold patients' texts; --show-text shows them")
    if report.checked and report.valid:
        names = ",".join(item.dataset for item in report.checked[:_SHOWN])
        say_next(f"medtasks run {names} --data local --model vllm --model_args pretrained=ORG/MODEL")


def _checked_lines(item: Checked, folder: Path) -> list[str]:
    counts = f"{item.n_test:,} test rows, {item.n_fewshot:,} few-shot rows"
    mark, valid = ("✗", "valid: ") if item.faults else ("✓", "")
    lines = [f"{mark} {item.dataset}  {valid}{counts}  ({', '.join(item.files)})"]
    causes = item.causes
    for cause in causes[:_SHOWN]:
        first = cause.faults[0]
        place, column = cause.where.removeprefix(f"{folder}/"), getattr(first, "column", None)
        what = first.what if len(cause.faults) == 1 else cause.what
        named = f" (column {column})" if column and column not in what else ""
        lines.append(f"    {place}: {what}{named}" + ("" if len(cause.faults) == 1 else _in_rows(cause)))
        lines.append(f"    → {first.remedy}")
    if (rest := len(causes) - _SHOWN) > 0:
        more = sum(len(cause.faults) for cause in causes[_SHOWN:])
        lines.append(f"    and {counted(rest, 'other cause')} with {more:,} faults (--json has all)")
    if item.faults and item.n_usable:
        lines.append(
            f"    {item.n_usable:,} test rows are without a fault:"
            f" `medtasks run {item.dataset} --drop-faulty` takes these alone"
        )
    lines += [f"    note: {note}" for note in item.notes]
    if oracle := item.oracle:
        highest = f", the highest score is {oracle.highest:.4f}" if oracle.highest is not None else ""
        lines.append(f"    the gold answers themselves score {oracle.score:.4f}{highest}")
    return lines


def _in_rows(cause: Cause) -> str:
    kind, _, first = cause.rows[0].partition(" row ")
    rest = [row.removeprefix(f"{kind} row ") for row in cause.rows[1:_SHOWN]]
    shown = ", ".join([f"{kind} rows {first}", *rest]) + (", …" if len(cause.rows) > _SHOWN else "")
    return f": {len(cause.rows):,} rows ({shown})"
