"""References: every dataset's source has a sound BibTeX entry, and `medtasks cite` prints what was used."""

import re
import shutil
import unicodedata
from datetime import date

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.citations import CITATIONS_FILE, HARNESS, PACKAGE, entries_of, read_bibtex
from tests.conftest import ROOT, declare_suites

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
        PACKAGE,
        HARNESS,
        *(suite.citation for suite in TASKS.suites.values()),
    }


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


def cited(outcome) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", outcome.out, flags=re.MULTILINE)


def test_cite_prints_each_source_once_with_suites_harness_and_package(medtasks, tmp_path):
    outcome = medtasks(
        "cite", "bridge_cas_label_cot", "bridge_cas_evidence", "medhelm_clear", "bridge_cas_label"
    )
    assert outcome.code == 0
    assert cited(outcome) == [
        "medtasks", "gao2024harness", "wu2026bridge", "bedi2026medhelm",
        "grabar2018cas", "grabar2020cas", "lopez2025clear",
    ]  # fmt: skip
    assert "% bridge_cas_label, bridge_cas_evidence\n@inproceedings{grabar2018cas," in outcome.out
    # what is printed is BibTeX, and the remark is not among it
    (tmp_path / "used.bib").write_text(outcome.out)
    assert read_bibtex(tmp_path / "used.bib") == {key: ENTRIES[key] for key in cited(outcome)}
    terms, entries = outcome.err.splitlines()
    assert terms.startswith("terms of 3 datasets: 2 for research alone (bridge_cas_label and 1 more ")
    assert entries == "7 entries"


def test_cite_takes_groups_and_says_which_entries_rest_on_memory(medtasks):
    outcome = medtasks("cite", "bridge_es")
    assert set(cited(outcome)) >= {"marimon2019meddocan", "wu2026bridge"}
    assert "check before use: intxaurrondo2018barr2" in outcome.err


def test_cite_of_a_run_is_what_the_run_used(medtasks):
    arguments = (
        "--tasks",
        "mlb_cmexam,clinicbench_gad",
        "--model",
        "oracle",
        "--data",
        "sample",
        "--limit",
        "1",
    )
    assert medtasks("run", *arguments, "--output_path", "run").code == 0
    assert set(cited(medtasks("cite", "run"))) == {
        "medtasks", "gao2024harness", "he2026mlb", "liu2024clinicbench",
        "liu2023cmexam", "bravo2015gad", "becker2004gad",
    }  # fmt: skip


def test_cite_names_what_it_does_not_know(medtasks, tmp_path, monkeypatch):
    outcome = medtasks("cite", "bridge_mee")
    assert outcome.code == 2 and "did you mean: bridge_mie" in outcome.err
    outcome = medtasks("cite", "runs/nowhere")
    assert outcome.code == 2 and "runs/nowhere/run.json: no such file" in outcome.err
    folder = tmp_path / "tasks" / "bridge"
    shutil.copytree(ROOT / "tasks" / "bridge" / "mie", folder / "mie")
    path = folder / "mie" / "card.yaml"
    path.write_text(path.read_text().replace("zhang2020mie", "nobody2020"))
    declare_suites(tmp_path / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(tmp_path / "tasks"))
    outcome = medtasks("cite", "bridge_mie")
    assert outcome.code == 2 and outcome.out == ""
    assert "no BibTeX entry 'nobody2020', the source of bridge_mie" in outcome.err and "→" in outcome.err


def test_validate_asks_for_the_entry_of_a_citation_which_may_stand_beside_the_dataset(
    medtasks, tmp_path, monkeypatch
):
    root = tmp_path / "tasks"
    folder = root / "bridge" / "mie"
    shutil.copytree(TASKS.root / "bridge" / "mie", folder)
    file = folder / "card.yaml"
    file.write_text(file.read_text().replace("zhang2020mie", "nobody2020"))
    declare_suites(root)
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    outcome = medtasks("dev", "validate", "bridge_mie")
    assert outcome.code == 1 and "card.yaml: citation: nobody2020 has no entry → write it into" in outcome.out
    (folder / "citation.bib").write_text("@misc{nobody2020, author = {A}, title = {T}, year = {2020}}\n")
    assert medtasks("dev", "validate", "bridge_mie").code == 0
