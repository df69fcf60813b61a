"""`docs/sources`: its tables say of every dataset that is not open what the tasks' YAML says.

`python -m tests.data.test_source_pages` writes the tables anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks_ext.data.originals.cl100k import SHA256, URL
from medtasks_ext.data.spec import dataset_spec
from medtasks_ext.registry import registry

PAGES = Path(__file__).resolve().parents[2] / "docs" / "sources"
NAMES = ("physionet", "redivis", "n2c2", "README")
CLOSED = sorted(
    (item for item in registry().datasets.values() if item.metadata.access.value != "open"),
    key=lambda item: item.id,
)


def page_of(dataset) -> str:
    """The page that tells how the dataset is requested; the index tells of private data and the rest."""
    url, licence = dataset.metadata.url, dataset.metadata.licence
    if "physionet" in (url + licence).lower():
        return "physionet"
    if "redivis.com" in url or "medalign.stanford.edu" in url:
        return "redivis"
    if "portal.dbmi.hms.harvard.edu" in url:
        return "n2c2"
    return "README"


def files_of(dataset) -> str:
    """Where its files go below the folder of its suite."""
    source = dataset_spec(dataset.config["dataset_kwargs"]["medtasks_dataset"], where=dataset.file).source
    folder = dataset.folder.name
    named = [f"`{source.official_name}.SFT.json`"] if source.official_name else []
    layouts = [", ".join(f"`{pattern}`" for pattern in layout.patterns) for layout in source.original]
    return " or ".join(
        [*named, *(f"in `{folder}/original/`: {layout}" for layout in layouts), f"`{folder}/test.jsonl`"]
    )


def row_of(dataset) -> str:
    cells = [dataset.id, f"<{dataset.metadata.url}>", files_of(dataset)]
    if page_of(dataset) == "README":
        cells[1:1] = [dataset.metadata.access.value, dataset.metadata.licence]
    return f"| {' | '.join(cells)} |"


def with_table(text: str, page: str) -> str:
    """The page with the rows of its table of tasks as the YAML has them."""
    lines = text.split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("| task |")) + 2
    stop = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    rows = [row_of(dataset) for dataset in CLOSED if page_of(dataset) == page]
    return "\n".join([*lines[:start], *rows, *lines[stop:]])


@pytest.mark.parametrize("page", NAMES)
def test_the_table_of_a_page_is_that_of_the_tasks(page):
    text = (PAGES / f"{page}.md").read_text()
    assert text == with_table(text, page), "python -m tests.data.test_source_pages writes the tables anew"


def test_the_index_names_every_page():
    text = (PAGES / "README.md").read_text()
    assert all(f"({path.name})" in text for path in PAGES.glob("*.md") if path.stem != "README")


def test_the_vocabulary_that_counts_tokens_can_be_found_and_checked():
    text = (PAGES / "redivis.md").read_text()
    assert URL in text and SHA256 in text


if __name__ == "__main__":
    for name in NAMES:
        path = PAGES / f"{name}.md"
        path.write_text(with_table(path.read_text(), name))
