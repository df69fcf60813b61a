"""`medtasks data fetch`: open datasets once, and those whose terms the user accepts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import Official
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.data.punkt import CARRIED, fetch_punkt, needs_punkt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.select import select


def chosen(words: Sequence[str] | None) -> list[Dataset]:
    return list(dict.fromkeys(select(registry(), words or []).values()))


def has_terms(dataset: Dataset) -> bool:
    from medtasks_ext.rows.missing import source_of

    download = source_of(dataset).download
    return download is not None and download.terms is not None


def data_fetch(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER...]", help="Tasks, groups; KEY=VALUE; by default all."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Folder to carry to a machine without internet, as its MEDTASKS_DATA_DIR."),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="NAME", help="Show the terms of a dataset, ask once, and fetch the dataset."
        ),
    ] = None,
    official: Official = False,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="DIR", help="With --official: take the files from this folder."),
    ] = None,
) -> int:
    """Download open datasets once, for use without internet.

    Resumable; a second call checks what is there against the hashes that are pinned or were recorded. With
    --official: the released files that hold official prompts, from the package index and the addresses in
    suite.yaml; none of them is installed or imported.

    Example: medtasks data fetch medtasks_scoreable --to /media/stick

    Exit code 1: a dataset could not be had, or terms were not accepted.
    """
    quiet()
    if official:
        from medtasks_ext.cli.official import fetch_official

        return fetch_official(source)
    from medtasks_ext.data.fetch import Store
    from medtasks_ext.rows.missing import source_of
    from medtasks_ext.rows.sources import is_allowed

    asked = chosen(accept) if accept else []
    refused = _ask(asked)
    datasets = list(dict.fromkeys([*asked, *(chosen(words) if words or not accept else [])]))
    sources = {dataset: source_of(dataset) for dataset in datasets}
    wanted = [dataset for dataset, source in sources.items() if source.download and is_allowed(source)]
    if not wanted and not refused:
        first = datasets[0]
        way = "fetch --accept" if has_terms(first) else "status"
        raise MedtasksError(
            f"{first.id} is {first.metadata.access}: it cannot be downloaded"
            + (" before its terms are accepted" if has_terms(first) else ""),
            remedy=f"medtasks data {way} {first.id}",
        )
    store = Store(Path(to).expanduser() if to else None)
    failed, n_bytes, n_new = 0, 0, 0
    for dataset in wanted:
        try:
            done = store.fetch(dataset)
        except MedtasksError as error:
            failed += 1
            say(f"✗ {dataset.id}: {error}")
            continue
        n_bytes, n_new = n_bytes + done.n_bytes, n_new + done.n_new
        what = f"{done.n_new} of {done.n_files} files fetched" if done.n_new else "as recorded"
        rows = f"{done.n_test:,} rows"
        unpinned = (
            f"; {counted(done.n_unpinned, 'file')} unpinned: recorded now, other content is refused later"
            if done.n_unpinned
            else ""
        )
        typer.echo(f"✓ {dataset.id}  {what}, {_size(done.n_bytes)}, {done.exclusions or rows}{unpinned}")
    here = len(wanted) - failed
    typer.echo(
        f"{here} of {len(wanted)} datasets here ({_size(n_bytes)}), {n_new} files fetched"
        + (f"; recorded in {store.manifest_file}" if here else "")
    )
    failed += not _punkt(wanted, Path(to).expanduser() if to else None)
    waiting = [dataset for dataset in datasets if dataset not in wanted and has_terms(dataset)]
    if waiting:
        typer.echo(f"to download after you accept their terms (--accept NAME): {len(waiting)}")
    if others := len(datasets) - len(wanted) - len(waiting):
        typer.echo(f"not open, to be requested (`medtasks data status TASK`): {others}")
    if to and here:
        punkt = f" NLTK_DATA={to}/{CARRIED}" if any(map(needs_punkt, wanted)) else ""
        typer.echo(f"elsewhere: MEDTASKS_DATA_DIR={to}{punkt} HF_HUB_OFFLINE=1 medtasks run …")
    if failed or refused:
        say_next("the same command, which fetches what is missing")
    elif not to:
        say_next("medtasks data status")
    return 1 if failed or refused else 0


def _punkt(datasets: list[Dataset], to: Path | None) -> bool:
    """Fetch NLTK's Punkt data status a metric needs it; returns whether all is there."""
    if not any(map(needs_punkt, datasets)):
        return True
    try:
        typer.echo(f"✓ NLTK's Punkt data, for English BLEU and French ROUGE: {fetch_punkt(to)}")
    except MedtasksError as error:
        say(f"✗ {error}")
        return False
    return True


def _ask(datasets: list[Dataset]) -> bool:
    """Show the terms that are not accepted yet, and ask for each once; returns whether some were refused."""
    from medtasks_ext.rows.missing import source_of
    from medtasks_ext.rows.terms import accept, are_accepted, shown

    refused = False
    for dataset in datasets:
        download = source_of(dataset).download
        if download is None:
            raise MedtasksError(
                f"{dataset.id} has no terms to accept here: its owner gives access",
                where="--accept",
                remedy=f"medtasks data status {dataset.id}",
            )
        if download.terms is None or are_accepted(download.terms):
            continue
        typer.echo(f"{dataset.id}  {dataset.metadata.name}\n{shown(download.terms)}")
        if typer.confirm("Do you accept these terms?"):
            accept(download.terms)
        else:
            refused = True
    return refused


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"
