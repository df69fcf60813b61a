"""References: every dataset's source has a sound BibTeX entry, and `medtasks cite` prints what was used."""

import re
import shutil
import unicodedata
from datetime import date

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.citations import CITATIONS_FILE, HARNESS, PACKAGE, read_bibtex
from tests.conftest import ROOT, declare_suites

TASKS = registry()
ENTRIES = read_bibtex(CITATIONS_FILE)
REQUIRED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title", "year"},
}


def plain_bibtex(text: str) -> dict[str, dict[str, str]]:
    """Entries by counting braces, whatever the line breaks: as BibTeX itself reads them."""
    entries, place = {}, 0
    while (start := text.find("@", place)) >= 0:
        opened = text.index("{", start)
        depth, place = 1, opened + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            place += 1
        key, _, body = text[opened + 1 : place - 1].partition(",")
        fields, depth, part = {}, 0, ""
        for sign in body:
            depth += {"{": 1, "}": -1}.get(sign, 0)
            if sign == "," and depth == 0:
                name, _, value = part.partition("=")
                fields[name.strip()] = value.strip()[1:-1]
                part = ""
            else:
                part += sign
        assert not part.strip(), key
        entries[key.strip()] = fields
    return entries


def test_another_reader_finds_the_same_entries():
    text = "\n".join(line for line in CITATIONS_FILE.read_text().splitlines() if not line.startswith("%"))
    assert plain_bibtex(text) == {key: entry.fields for key, entry in ENTRIES.items()}


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


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_is_complete_and_its_addresses_are_well_formed(entry):
    fields = entry.fields
    assert set(fields) >= REQUIRED[entry.kind]
    assert 1990 <= int(fields["year"]) <= date.today().year + 1
    # a key begins with the first author and the year, so that it can be guessed
    if entry.key != PACKAGE:
        letters = unicodedata.normalize("NFKD", fields["author"].split(",")[0].lower())
        surname = re.sub(r"[^a-z]", "", letters)
        plain = re.match(r"([a-z]+)(\d{4})", entry.key)
        assert plain and plain[1][:3] in surname
        assert abs(int(plain[2]) - int(fields["year"])) <= 1
    assert re.fullmatch(r"10\.\d{4,5}/\S+", fields.get("doi", "10.1000/x"))
    assert re.fullmatch(r"https://\S+", fields.get("url", "https://x"))
    assert re.fullmatch(r"\d{4}\.\d{4,5}", fields.get("eprint", "2001.00001"))
    assert ("eprint" in fields) == ("archiveprefix" in fields)
    assert re.fullmatch(r"[A-Z]?e?\d+(--[A-Z]?e?\d+)?|btac817|ooab025", fields.get("pages", "1"))
    if entry.kind == "misc" and entry.key != PACKAGE:
        assert entry.link, "a reader cannot find it"


@pytest.mark.parametrize("field", ["doi", "eprint", "title"])
def test_a_work_has_one_entry(field):
    values = [entry.fields[field].lower() for entry in ENTRIES.values() if field in entry.fields]
    assert len(values) == len(set(values))


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("@misc{a,\n  year = 2020,\n}", 2, "not a field"),
        ("@misc{a,\n  title = {open {brace},\n}", 2, "not a field"),
        ("@misc{a,\n}\n\n@misc{a,\n}", 4, "key a is there already"),
        ("@misc{a,\n  year = {1},\n  year = {2},\n}", 3, "field year is there already"),
        ("stray", 1, "not the beginning"),
        ("@misc{a,\n  year = {1},", "", "no end"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, text, line, fault):
    path = tmp_path / "x.bib"
    path.write_text(text)
    with pytest.raises(MedtasksError, match=fault) as caught:
        read_bibtex(path)
    assert str(caught.value.where) == (f"{path}:{line}" if line else str(path))


def cited(outcome) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", outcome.out, flags=re.MULTILINE)


def test_cite_prints_each_source_once_with_suites_harness_and_package(medtasks):
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
    assert list(plain_bibtex(outcome.out)) == cited(outcome) and outcome.err == "7 entries\n"


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
    shutil.copy(ROOT / "tasks" / "bridge" / "_events.yaml", folder)
    shutil.copy(ROOT / "tasks" / "_medtasks.yaml", tmp_path / "tasks")
    declare_suites(tmp_path / "tasks")
    path = folder / "mie" / "zero_shot.yaml"
    path.write_text(path.read_text().replace("zhang2020mie", "nobody2020"))
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(tmp_path / "tasks"))
    outcome = medtasks("cite", "bridge_mie")
    assert outcome.code == 2 and outcome.out == ""
    assert "no BibTeX entry 'nobody2020', the source of bridge_mie" in outcome.err and "→" in outcome.err


def test_validate_asks_for_the_entry_of_a_citation_in_a_checkout_but_not_in_a_copy(
    medtasks, tmp_path, monkeypatch
):
    monkeypatch.setattr("medtasks_ext.runner.validate.citations", dict)
    outcome = medtasks("validate", "bridge_mie")
    assert (
        outcome.code == 1
        and "zhang2020mie has no entry → append it to medtasks_ext/registry/citations.bib" in outcome.out
    )
    shutil.copytree(TASKS.root, tmp_path / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(tmp_path / "tasks"))
    assert medtasks("validate", "bridge_mie").code == 0
