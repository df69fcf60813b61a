"""The catalogue pages say of every dataset what its metadata says."""

import re
import shutil
from collections import Counter

import pytest

from medtasks_ext.registry import Registry, registry, vocabulary
from medtasks_ext.registry.catalogue import pages
from tests.conftest import ROOT

TASKS = registry()
PAGES = {path.stem: text for path, text in pages(TASKS).items()}
SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
SECTION = re.compile(
    r'<a id="([a-z0-9_]+)"></a>\n\n### (.*?)(?=\n<a id="[a-z0-9_]+"></a>\n\n###|\n## |\Z)', re.DOTALL
)
SECTIONS = {task: text for suite in SUITES for task, text in SECTION.findall(PAGES[suite])}


def test_the_pages_on_disk_are_up_to_date():
    assert {path.name: path.read_text() for path in (ROOT / "docs" / "catalogue").iterdir()} == {
        path.name: text for path, text in pages(Registry(TASKS.root)).items()
    }, "run `medtasks sync`"


@pytest.mark.parametrize("dataset", TASKS.datasets.values(), ids=list(TASKS.datasets))
def test_a_section_has_every_fact_of_the_metadata(dataset):
    record, text = dataset.metadata, SECTIONS[dataset.id]
    facts = [
        record.name, record.summary, f"`{dataset.id}`, version {dataset.version}", record.licence,
        f"<{record.url}>", f"score: `{record.primary_metric}`", f"test rows: {record.n_test:,}",
        f"access: {record.access}", *record.verify,
        vocabulary()["languages"][record.language], vocabulary()["task_types"][record.task_type],
        vocabulary()["stages"][record.stage],
        *(vocabulary()["specialties"][value] for value in record.specialties),
        *(vocabulary()["documents"][value] for value in record.documents),
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


def test_the_index_counts_the_datasets_that_are_no_twins():
    records = [item.metadata for item in TASKS.datasets.values() if not item.metadata.twin_of]
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
            assert len(widths) == 1 and widths.pop() <= 8, (name, block[:200])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one dataset."""
    folder = tmp_path / "checkout"
    tasks = folder / "tasks"
    shutil.copytree(ROOT / "tasks" / "bridge" / "mie", tasks / "bridge" / "mie")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(tasks))
    return folder


def test_sync_writes_the_pages_of_a_checkout_and_names_a_stale_one(medtasks, checkout, monkeypatch):
    (checkout / "docs" / "catalogue").mkdir(parents=True)
    assert medtasks("sync").code == 0
    page = checkout / "docs" / "catalogue" / "bridge.md"
    assert "### MIE" in page.read_text() and (checkout / "docs" / "commands.md").is_file()
    assert medtasks("sync", "--check").code == 0
    path = checkout / "tasks" / "bridge" / "mie" / "task.yaml"
    path.write_text(
        path.read_text().replace("n_test: 2084", "n_test: 2085").replace("zhang2020mie", "new2030")
    )
    # a process reads the tasks of one place once
    page = page.relative_to(checkout)
    checkout = checkout.rename(checkout.with_name("moved"))
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(checkout / "tasks"))
    monkeypatch.chdir(checkout)
    outcome = medtasks("sync", "--check")
    assert outcome.code == 1 and "stale: write ../docs/catalogue/bridge.md" in outcome.out
    assert medtasks("sync").code == 0
    text = (checkout / page).read_text()
    assert "test rows: 2,085" in text and "`new2030`: no entry yet in `citations.bib`" in text


def test_tasks_outside_a_checkout_have_no_pages(medtasks, checkout):
    assert medtasks("sync").code == 0
    assert not (checkout / "docs").exists()
