"""`docs/sources`: its tables say of every dataset that is not open what the tasks' YAML says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from medtasks_ext.data.originals.cl100k import SHA256, URL
from medtasks_ext.data.source_pages import pages
from medtasks_ext.registry import registry

PAGES = Path(__file__).resolve().parents[2] / "docs" / "sources"
TASKS = registry()
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}


def test_the_tables_are_up_to_date():
    assert [path.name for path, text in pages(TASKS).items() if path.read_text() != text] == []


def test_every_dataset_that_is_not_open_stands_in_one_table_with_its_address():
    listed = [task for text in TEXTS.values() for task in re.findall(r"^\| (\w+_\w+) \|", text, re.MULTILINE)]
    closed = {name for name, item in TASKS.datasets.items() if item.metadata.access != "open"}
    assert sorted(listed) == sorted(closed)
    lines = {line.split(" | ")[0].strip("| "): line for text in TEXTS.values() for line in text.splitlines()}
    assert all(f"<{TASKS.datasets[name].metadata.url}>" in lines[name] for name in closed)


@pytest.mark.parametrize(
    ("task", "page"),
    [
        ("bridge_mimic_iv_bhc", "physionet"),
        ("medhelm_ehrshot", "redivis"),
        ("bridge_n2c2_2010_relation", "n2c2"),
        ("medhelm_clear", "README"),
    ],
)
def test_a_dataset_stands_on_the_page_of_its_holder(task, page):
    assert f"\n| {task} |" in TEXTS[page]


def test_the_index_names_every_page():
    assert all(f"({name}.md)" in TEXTS["README"] for name in TEXTS if name != "README")


def test_the_vocabulary_that_counts_tokens_can_be_found_and_checked():
    assert URL in TEXTS["redivis"] and SHA256 in TEXTS["redivis"]
