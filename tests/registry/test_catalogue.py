"""The catalogue pages say of every dataset what its metadata says."""

import re
from collections import Counter

import pytest

from medtasks_ext.registry import registry, vocabulary
from tools.catalogue import pages

TASKS = registry()
PAGES = {name.removesuffix(".md"): text for name, text in pages(TASKS).items()}
SUITES = tuple(TASKS.suites)
SECTION = re.compile(
    r'<a id="([a-z0-9_]+)"></a>\n\n### (.*?)(?=\n<a id="[a-z0-9_]+"></a>\n\n###|\n## |\Z)', re.DOTALL
)
SECTIONS = {task: text for suite in SUITES for task, text in SECTION.findall(PAGES[suite])}


@pytest.mark.parametrize("dataset", TASKS.datasets.values(), ids=list(TASKS.datasets))
def test_a_section_has_every_fact_of_the_metadata(dataset):
    record, text = dataset.metadata, SECTIONS[dataset.id]
    facts = [
        record.name, record.summary, f"`{dataset.id}`, version {dataset.version}", record.licence.title,
        f"use: {record.use}", f"text to a third party: {record.third_party_api}",
        *([f"<{record.licence.place}>"] if record.licence.evidence else []),
        f"<{record.url}>", f"score: `{record.primary_metric}`", f"test rows: {record.n_test:,}",
        f"access: {record.access}", *record.open_questions,
        vocabulary()["languages"][record.language], vocabulary()["task_types"][record.task_type],
        vocabulary()["stages"][record.stage],
        *(vocabulary()["specialties"][value] for value in record.specialties),
        *(vocabulary()["document_types"][value] for value in record.document_types),
        *(f"[{key}](#ref-{key})" for key in record.axis("citation")),
    ]  # fmt: skip
    assert [fact for fact in facts if fact not in text] == []
    assert ("scoreable" in text) == record.scoreable
    page = PAGES[record.suite]
    assert f"](#{dataset.id})" in page
    assert all(f'<a id="ref-{key}"></a>`{key}`: ' in page for key in record.axis("citation"))


@pytest.mark.parametrize("axis", ["access", "stage", "specialties"])
def test_a_value_is_marked_where_medtasks_assigned_it_and_only_there(axis):
    for dataset in TASKS.datasets.values():
        (stated,) = re.findall(rf"\b{axis}: ([^;\n]*)", SECTIONS[dataset.id])
        assert ("†" in stated) == (dataset.metadata.assigned_by(axis) == "medtasks"), dataset.id


def test_the_index_counts_the_datasets_that_are_in_groups():
    records = [item.metadata for item in TASKS.datasets.values() if item.metadata.grouped]
    for suite in SUITES:
        access = Counter(record.access for record in records if record.suite == suite)
        line = next(line for line in PAGES["README"].splitlines() if f"({suite}.md)" in line)
        total, n_open, _, gated, private = (int(cell) for cell in line.strip("| ").split(" | ")[1:])
        assert (total, n_open, gated, private) == (
            sum(access.values()), access["open"], access["gated"], access["private"]
        )  # fmt: skip
    languages = Counter(vocabulary()["languages"][record.language] for record in records)
    part = PAGES["README"].split("## Languages")[1].split("## ")[0]
    counted = {
        cells[0]: sum(int(cell or 0) for cell in cells[1:])
        for cells in (
            [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line
        )
        if cells[0] in languages
    }
    assert counted == languages


def test_tables_are_narrow_and_whole():
    for name, text in PAGES.items():
        for block in re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE):
            widths = {len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1 and widths.pop() <= len(SUITES) + 4, (name, block[:200])


def test_a_page_refers_to_no_entry_without_a_name():
    assert [name for name, text in PAGES.items() if "](#ref-)" in text] == []
