"""The tables of `docs/sources`: every dataset that is not open, with the place of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.data.spec import dataset_spec

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.registry import Dataset, Registry

#: below the folder that holds `tasks`
FOLDER = "docs/sources"
PAGES = ("physionet", "redivis", "n2c2", "README")


def pages(registry: Registry) -> dict[Path, str]:
    """The pages with the rows of their tables as the tasks have them; none where there is no checkout.

    Returns:
        File -> content. What stands around a table is written by hand.
    """
    folder = registry.root.parent / FOLDER
    if not folder.is_dir():
        return {}
    closed = [item for item in registry.datasets.values() if item.metadata.access != "open"]
    rows: dict[str, list[str]] = {name: [] for name in PAGES}
    for dataset in sorted(closed, key=lambda item: item.id):
        rows[page_of(dataset)].append(_row(dataset))
    files = {name: folder / f"{name}.md" for name in PAGES}
    return {file: _with_table(file.read_text(encoding="utf-8"), rows[name]) for name, file in files.items()}


def page_of(dataset: Dataset) -> str:
    """The page that tells how the dataset is requested; the index tells of private data and the rest."""
    url, licence = dataset.metadata.url, dataset.metadata.licence
    if "physionet" in (url + licence).lower():
        return "physionet"
    if "redivis.com" in url or "medalign.stanford.edu" in url:
        return "redivis"
    if "portal.dbmi.hms.harvard.edu" in url:
        return "n2c2"
    return "README"


def _files(dataset: Dataset) -> str:
    """Where its files go below the folder of its suite."""
    source = dataset_spec(dataset.config["dataset_kwargs"]["medtasks_dataset"], where=dataset.file).source
    folder = dataset.folder.name
    named = [f"`{source.official_name}.SFT.json`"] if source.official_name else []
    layouts = [", ".join(f"`{pattern}`" for pattern in layout.patterns) for layout in source.original]
    return " or ".join(
        [*named, *(f"in `{folder}/original/`: {layout}" for layout in layouts), f"`{folder}/test.jsonl`"]
    )


def _row(dataset: Dataset) -> str:
    cells = [dataset.id, f"<{dataset.metadata.url}>", _files(dataset)]
    if page_of(dataset) == "README":
        cells[1:1] = [dataset.metadata.access, dataset.metadata.licence]
    return f"| {' | '.join(cells)} |"


def _with_table(text: str, rows: list[str]) -> str:
    lines = text.split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("| task |")) + 2
    stop = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    return "\n".join([*lines[:start], *rows, *lines[stop:]])
