"""References: every dataset's source has a sound BibTeX entry, and a card has those of what was used."""

import re
import shutil
import unicodedata
from datetime import date

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.columns import (
    CITATIONS_FILE,
    HARNESS,
    PACKAGE,
    entries_of,
    read_bibtex,
    references,
)
from tests.conftest import declare_suites

TASKS = registry()
ENTRIES = entries_of(TASKS.datasets.values(), TASKS.suites.values())
REQUIRED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title", "year"},
}


def test_every_key_of_the_metadata_has_an_entry_and_no_entry_is_unused():
    used = {key: item.id for item in TASKS.datasets.values() for key in item.metadata.axis("citation")}
    missing = {
        f"{key} ({task}): add it to {CITATIONS_FILE.name}" for key, task in used.items() if key not in ENTRIES
    }
    assert not missing
    assert set(ENTRIES) - set(used) <= {
        PACKAGE, HARNESS, *(suite.citation for suite in TASKS.suites.values()),
    }  # fmt: skip


def test_entries_are_complete_and_their_addresses_are_well_formed():
    for key, entry in ENTRIES.items():
        fields = entry.fields
        assert set(fields) >= REQUIRED[entry.kind], key
        assert 1990 <= int(fields["year"]) <= date.today().year + 1, key
        # a key begins with the first author and the year, so that it can be guessed
        if entry.key != PACKAGE:
            letters = unicodedata.normalize("NFKD", fields["author"].split(",")[0].lower())
            surname = re.sub(r"[^a-z]", "", letters)
            plain = re.match(r"([a-z]+)(\d{4})", entry.key)
            assert plain and plain[1][:3] in surname, key
            assert abs(int(plain[2]) - int(fields["year"])) <= 1, key
        assert re.fullmatch(r"10\.\d{4,5}/\S+", fields.get("doi", "10.1000/x")), key
        assert re.fullmatch(r"https://\S+", fields.get("url", "https://x")), key
        assert re.fullmatch(r"\d{4}\.\d{4,5}", fields.get("eprint", "2001.00001")), key
        assert ("eprint" in fields) == ("archiveprefix" in fields), key
        pages = r"[A-Z]?e?\d+(--[A-Z]?e?\d+)?|btac817|ooab025|AIdbp2500120"
        assert re.fullmatch(pages, fields.get("pages", "1")), key
        assert "others" not in fields["author"].split(), f"{key}: name all authors"
        assert entry.link or entry.key == PACKAGE, f"{key}: a reader cannot find it"


@pytest.mark.parametrize("field", ["doi", "eprint", "title"])
def test_a_work_has_one_entry(field):
    values = [entry.fields[field].lower() for entry in ENTRIES.values() if field in entry.fields]
    assert len(values) == len(set(values))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("@misc{a,\n  year {2020},\n}", "line 2: '=' expected"),
        ("@misc{a,\n  title = {open {brace},\n}", "line 3: premature end of file"),
        ("@misc{a,\n}\n\n@misc{a,\n}", "repeated bibliography entry: a"),
        ("@misc{a,\n  year = {1},\n  year = {2},\n}", "key a has a duplicate year field"),
        ("@misc{a,\n  year = {1},", "line 2: premature end of file"),
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


def test_references_are_each_source_once_with_suites_harness_and_package(tmp_path):
    names = ("bridge_cas_label", "bridge_cas_evidence", "medhelm_clear")
    text = references([TASKS.datasets[name] for name in names])
    assert cited(text) == [
        "medtasks", "gao2024harness", "wu2026bridge", "bedi2026medhelm",
        "grabar2018cas", "grabar2020cas", "lopez2025clear",
    ]  # fmt: skip
    assert "% bridge_cas_label, bridge_cas_evidence\n@inproceedings{grabar2018cas," in text
    (tmp_path / "used.bib").write_text(text)
    assert read_bibtex(tmp_path / "used.bib") == {key: ENTRIES[key] for key in cited(text)}


def test_references_say_which_entries_rest_on_memory():
    text = references(TASKS.datasets_of(TASKS.suites["bridge"]))
    assert re.search(r"^% .* \(check before use\)\n@\w+\{intxaurrondo2018barr2,", text, re.MULTILINE)


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
