"""References: every dataset's source has a sound BibTeX entry, and a card has those of what was used."""

import json
import re
import shutil

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.columns import (
    CITATIONS_FILE,
    HARNESS,
    PACKAGE,
    entries_of,
    read_bibtex,
)
from medtasks_ext.registry.metadata import use_of
from tests.conftest import declare_suites

TASKS = registry()
ENTRIES = entries_of(TASKS.datasets.values(), TASKS.suites.values())


def test_every_key_of_the_metadata_has_an_entry_and_no_entry_is_unused():
    used = {key: item.id for item in TASKS.datasets.values() for key in item.metadata.axis("citation")}
    missing = {
        f"{key} ({task}): add it to {CITATIONS_FILE.name}" for key, task in used.items() if key not in ENTRIES
    }
    assert not missing
    assert set(ENTRIES) - set(used) <= {
        PACKAGE, HARNESS, *(suite.citation for suite in TASKS.suites.values()),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("@misc{a,\n}\n\n@misc{a,\n}", "repeated bibliography entry: a"),
        ("@misc{a,\n  year = {1},\n  year = {2},\n}", "key a has a duplicate year field"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault(tmp_path, text, fault):
    path = tmp_path / "x.bib"
    path.write_text(text)
    with pytest.raises(MedtasksError, match=fault) as caught:
        read_bibtex(path)
    assert caught.value.where == path and caught.value.remedy


def cited(text: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", text, flags=re.MULTILINE)


def test_a_card_has_the_references_of_what_the_run_used(medtasks, tmp_path):
    arguments = [
        "--tasks", "mlb_cmexam,clinicbench_gad", "--model", "oracle", "--data", "sample", "--limit", "1",
    ]  # fmt: skip
    assert medtasks("run", *arguments, "--output_path", "run").code == 0
    assert medtasks("card", "run", "-o", "card").code == 0
    assert set(cited((tmp_path / "card" / "references.bib").read_text())) == {
        "medtasks", "gao2024harness", "he2026mlb", "liu2024clinicbench",
        "liu2023cmexam", "bravo2015gad", "becker2004gad",
    }  # fmt: skip


def test_validate_asks_for_the_entry_of_a_citation_here_or_beside_it(medtasks, tmp_path, monkeypatch):
    root = tmp_path / "tasks"
    folder = root / "bridge" / "mie"
    shutil.copytree(TASKS.root / "bridge" / "mie", folder)
    file = folder / "card.yaml"
    file.write_text(file.read_text().replace("zhang2020mie", "nobody2020"))
    declare_suites(root)
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    outcome = medtasks("dev", "validate", "bridge_mie")
    assert outcome.code == 1 and "card.yaml: citation: nobody2020 has no entry → write it into" in outcome.out
    run = ("--tasks", "bridge_mie", "--model", "oracle", "--data", "sample", "--output_path", "run")
    assert medtasks("run", *run).code == 0
    card = medtasks("card", "run", "-o", "card")  # results are no worse without their literature
    assert card.code == 0 and "no BibTeX entry 'nobody2020'" in card.err
    (folder / "citation.bib").write_text("@misc{nobody2020, author = {A}, title = {T}, year = {2020}}\n")
    assert medtasks("dev", "validate", "bridge_mie").code == 0


OPEN = {item.id: item.metadata for item in TASKS.datasets.values() if item.metadata.scoreable}


def test_what_anyone_may_use_has_an_address_and_no_restricting_licence():
    for name, record in OPEN.items():
        licence = record.licence
        assert licence.place.startswith("https://"), name
        if record.use == "any":
            assert use_of(licence.spdx) == "any", name
        if licence.spdx in ("NONE", "NOASSERTION"):
            assert record.use == "unclear" and record.third_party_api == "unclear", name


def test_the_group_holds_what_the_filter_finds(medtasks):
    chosen = {name for name in TASKS.datasets if TASKS.datasets[name].metadata.use == "any"}
    shown = json.loads(medtasks("ls", "use=any", "--json").out)
    assert {record["id"] for record in shown} == chosen
    grouped = {name for name in chosen if TASKS.datasets[name].metadata.grouped}
    apart = {name for name in grouped if not TASKS.datasets[name].suite.in_totals}
    assert {*TASKS.leaves("medtasks_use_any")} == grouped - apart


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("{spdx: Apache 2, use: any}", "is no licence of SPDX"),
        ("{spdx: CC-BY-NC-4.0, use: any}", "CC-BY-NC-4.0 does not allow any use"),
        ("{spdx: MIT, use: commercial}", "licence.use"),
        ("{spdx: MIT}", "licence.use: missing key"),
        ("{spdx: MIT, use: any, evidence: {address: here}}", "licence.evidence.address"),
    ],
)
def test_a_wrong_record_is_one_error(tmp_path, monkeypatch, licence, said):
    source = TASKS.datasets["medhelm_medec"].folder
    folder = tmp_path / "mine"
    folder.mkdir()
    config = (source / "task.yaml").read_text("utf-8").replace("medhelm_medec", "own_mine")
    (folder / "task.yaml").write_text(config.replace("medhelm/medec", "own/mine"), "utf-8")
    card = (source / "card.yaml").read_text("utf-8").replace("licence: medec", f"licence: {licence}")
    (folder / "card.yaml").write_text(card, "utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path))
    forget()
    try:
        (reason,) = registry().broken.values()
    finally:
        monkeypatch.delenv("MEDTASKS_TASKS")
        forget()
    assert said in reason and "card.yaml" in reason
