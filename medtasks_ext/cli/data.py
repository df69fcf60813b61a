"""`medtasks data status` and `fetch`: what is at hand, what is missing, and how to get it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.commands import AsJson
from medtasks_ext.cli.words import aligned, counted, say, say_next, terminal_width
from medtasks_ext.data.fetch import CARRIED, fetch, fetch_punkt, needs_punkt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official import artefacts
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.groups import select
from medtasks_ext.rows.places import authors_of, data_dir, dataset_folder, source_page
from medtasks_ext.rows.remote import accept as accept_terms
from medtasks_ext.rows.remote import are_accepted, remote_files, shown
from medtasks_ext.rows.sources import forced_origin, is_allowed, source_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

#: What stands for official prompts among names of tasks.
_OFFICIAL = "official"
_EXPLAINED = 3  # datasets of which `data status` says how data are got


def data_status(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILTER...]",
            help="Tasks, groups; KEY=VALUE; part of a name.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show where each dataset would be read from now.

    Rows are counted and checked where they are on this machine. Nothing is downloaded. Of up to three
    datasets, how data are got, and where which files go.

    Example: medtasks data status bridge_zh access=gated

    Example: medtasks data status medhelm_ehrshot
    """
    from medtasks_ext.data.check import status_of

    forced = forced_origin()
    datasets = chosen(words)
    rows = [status_of(dataset, forced) for dataset in datasets]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    table = [
        ("dataset", "access", "data", "rows", "few-shot", "checks", "where"),
        *map(_status_row, rows),
    ]
    room = terminal_width()
    for line in aligned(table):
        typer.echo(line if len(line) <= room else f"{line[: room - 1]}…")
    for item in rows:
        if item["exclusions"]:
            typer.echo(f"{item['id']}: {item['exclusions']}")
    for dataset in datasets if len(datasets) <= _EXPLAINED else ():
        typer.echo("\n" + "\n".join(_how(dataset)))
    to_accept = sum(
        item["origin"] is None and has_terms(dataset) for item, dataset in zip(rows, datasets, strict=True)
    )
    _say_summary(rows, to_accept)
    return 0


def _status_row(item: Json) -> tuple[str, ...]:
    origins = {"local": "local", "sample": "SAMPLE", "release": "inputs only", None: "missing"}
    n_paper, counts = item["n_paper"], ("–", "–", "–")
    data = origins.get(item["origin"]) or ("fetched" if item["here"] else "download")
    if item["here"]:
        part = item["origin"] == "local" and item["n_questions"] != n_paper
        rows = f"{item['n_questions']:,}/{n_paper:,}" if part else f"{item['n_test']:,}"
        counts = (rows, f"{item['n_fewshot']:,}", item["checks"])
    where = f"{'' if item['pinned'] else 'unpinned: '}{item['where'] or '–'}"
    return (item["id"], item["access"], data, *counts, where)


def _say_summary(rows: list[Json], to_accept: int) -> None:
    failed = sum(item["checks"] == "failed" for item in rows)
    to_fetch = sum(item["origin"] == "hub" and not item["here"] for item in rows)
    missing = sum(item["origin"] is None for item in rows) - to_accept
    parts, commands = [f"{counted(len(rows), 'dataset')}: {sum(item['here'] for item in rows)} here"], []
    for number, what, command in (
        (failed, "of them not as they should be", "check"),
        (to_fetch, "to download", "fetch"),
        (to_accept, "to download after you accept their terms", "fetch --accept NAME"),
        (missing, "missing", "status TASK" if len(rows) > _EXPLAINED else "check"),
    ):
        if number:
            parts.append(f"{number} {what}")
            commands.append(f"medtasks data {command}")
    if unpinned := sum(not item["pinned"] for item in rows):
        parts.append(f"{unpinned} not pinned, recorded at first use")
    typer.echo("; ".join(parts))
    typer.echo(f"data folder: {data_dir() or 'MEDTASKS_DATA_DIR is not set'}")
    say_next(*(commands or ["medtasks plan MODEL"]))


#: After a file whose content nobody has stated.
_UNPINNED = "  (unpinned: recorded at first use, other content is refused later)"


def _how(dataset: Dataset) -> list[str]:
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
        title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"  how      {title}: {page}")
    if files:
        if source.download and source.download.terms:
            lines += [f"  {line}" for line in shown(source.download.terms).split("\n")]
            how = f"medtasks data fetch --accept {dataset.id}"
            lines.append(f"  download, once these terms are accepted: {how}")
        else:
            lines.append(f"  download by itself, or once for all: medtasks data fetch {dataset.id}")
        lines += [f"    {file.source}{'' if file.is_pinned else _UNPINNED}" for file in files]
    lines.append(f"  {'or files' if files else 'files'}, below {data_dir() or '$MEDTASKS_DATA_DIR'}:")
    lines += _layouts(dataset)
    if metadata.access == "private":
        lines.append(f"  files to fill: medtasks data template {dataset.id}")
    return lines


def _layouts(dataset: Dataset) -> list[str]:
    source, folder = source_of(dataset), dataset_folder(dataset)
    authors = authors_of(dataset, source)
    schemas = [*([authors.schema] if authors else []), *source.schemas]
    columns = " | ".join(", ".join(item.columns) for item in schemas if "_file" not in item.columns)
    pairs = [*(authors.paths[:1] if authors else []), (f"{folder}/test.jsonl", f"{folder}/fewshot.jsonl")]
    lines = [f"    {test}, and {fewshot} for examples" for test, fewshot in pairs]
    lines.append(f"      or .json, .csv, .tsv, .xlsx, .xls, .parquet, .feather; columns: {columns}")
    for layout in source.original:
        needed = ", ".join(layout.patterns)
        lines.append(f"    {folder}/original/ with {needed} (or archives that hold them)")
    if source.database:
        lines.append(f"    {folder}/{source.database.file}, the database")
    return lines


def chosen(words: Sequence[str] | None) -> list[Dataset]:
    return list(dict.fromkeys(select(registry(), words or []).values()))


def has_terms(dataset: Dataset) -> bool:
    download = source_of(dataset).download
    return download is not None and download.terms is not None


def data_fetch(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILTER...]",
            help="Tasks, groups; KEY=VALUE; by default all. `official`: prompts, of a folder if it is "
            "named, too.",
        ),
    ] = None,
    to: Annotated[
        str | None, Option(help="Folder to carry to a machine without internet, as its MEDTASKS_DATA_DIR.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Show the terms of a dataset, ask once, and fetch the dataset."),
    ] = None,
) -> int:
    """Download open datasets once, for use without internet.

    Resumable; a second call checks what is there against the hashes that are pinned or were recorded.
    `official`: all released files that hold official prompts, which runs fetch as they need them. None of
    them is installed or imported.

    Example: medtasks data fetch medtasks_scoreable --to /media/stick

    Exit code 1: a dataset could not be had, or terms were not accepted.
    """
    quiet()
    if words and words[0] == _OFFICIAL:
        return _fetch_official(words[1:])
    asked = chosen(accept) if accept else []
    refused = _ask(asked)
    datasets = list(dict.fromkeys([*asked, *(chosen(words) if words or not accept else [])]))
    sources = {dataset: source_of(dataset) for dataset in datasets}
    wanted = [dataset for dataset, source in sources.items() if source.download and is_allowed(source)]
    if not wanted and not refused:
        first, way = datasets[0], "status"
        what = f"{first.id} is {first.metadata.access}: it cannot be downloaded"
        if has_terms(first):
            what, way = f"{what} before its terms are accepted", "fetch --accept"
        raise MedtasksError(what, remedy=f"medtasks data {way} {first.id}")
    folder = Path(to).expanduser() if to else None
    failed, n_bytes, n_new = 0, 0, 0
    for dataset in wanted:
        try:
            done = fetch(dataset, folder)
        except MedtasksError as error:
            failed += 1
            say(f"✗ {dataset.id}: {error}")
            continue
        n_bytes, n_new = n_bytes + done.n_bytes, n_new + done.n_new
        what = f"{done.n_new} of {done.n_files} files fetched" if done.n_new else "as recorded"
        what += f", {_size(done.n_bytes)}, {done.exclusions or f'{done.n_test:,} rows'}"
        if n := done.n_unpinned:
            what += f"; {counted(n, 'file')} unpinned: recorded now, other content is refused later"
        typer.echo(f"✓ {dataset.id}  {what}")
    here = len(wanted) - failed
    typer.echo(f"{here} of {len(wanted)} datasets here ({_size(n_bytes)}), {n_new} files fetched")
    if punkt := any(map(needs_punkt, wanted)):
        try:
            typer.echo(f"✓ NLTK's Punkt data, for English BLEU and French ROUGE: {fetch_punkt(folder)}")
        except MedtasksError as error:
            failed += 1
            say(f"✗ {error}")
    waiting = [dataset for dataset in datasets if dataset not in wanted and has_terms(dataset)]
    if waiting:
        typer.echo(f"to download after you accept their terms (--accept NAME): {len(waiting)}")
    if others := len(datasets) - len(wanted) - len(waiting):
        typer.echo(f"not open, to be requested (`medtasks data status TASK`): {others}")
    if to and here:
        nltk = f" NLTK_DATA={to}/{CARRIED}" if punkt else ""
        typer.echo(f"elsewhere: MEDTASKS_DATA_DIR={to}{nltk} HF_HUB_OFFLINE=1 medtasks run …")
    if failed or refused:
        say_next("the same command, which fetches what is missing")
    elif not to:
        say_next("medtasks data status")
    return 1 if failed or refused else 0


def _ask(datasets: list[Dataset]) -> bool:
    """Show the terms that are not accepted yet, and ask for each once; returns whether some were refused."""
    refused = False
    for dataset in datasets:
        download = source_of(dataset).download
        if download is None:
            what = f"{dataset.id} has no terms to accept here: its owner gives access"
            raise MedtasksError(what, where="--accept", remedy=f"medtasks data status {dataset.id}")
        if download.terms is None or are_accepted(download.terms):
            continue
        typer.echo(f"{dataset.id}  {dataset.metadata.name}\n{shown(download.terms)}")
        if typer.confirm("Do you accept these terms?"):
            accept_terms(download.terms)
        else:
            refused = True
    return refused


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"


def _fetch_official(folders: Sequence[str]) -> int:
    place = Path(folders[0]).expanduser() if folders else None
    if (place is not None and not place.is_dir()) or len(folders) > 1:
        raise MedtasksError("no such folder", where=" ".join(folders), remedy="correct the path")
    failed = False
    for suite in registry().suites.values():
        for artefact in suite.official.artefacts.values() if suite.official else ():
            try:
                path = artefacts.fetched_artefact(artefact, place)
            except MedtasksError as error:
                failed = True
                say(f"✗ {suite.title}: {artefact.file}: {error}")
            else:
                typer.echo(f"✓ {suite.title}: {artefact.file} ({artefact.revision}) at {path}")
    say_next(f"medtasks {'data fetch official' if failed else 'preview TASK --prompts official'}")
    return 1 if failed else 0
