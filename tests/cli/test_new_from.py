"""`medtasks new --from` and `new suite`: from a file of rows to a dataset that runs, without Python."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from medtasks_ext.registry import Dataset, forget
from medtasks_ext.rows import remote
from medtasks_ext.rows.missing import source_of
from tests.conftest import write_jsonl

FLAGS = (
    "--task-type", "text_classification", "--document-types", "general_ehr_note", "--specialties", "general",
    "--stage", "initial_assessment",
)  # fmt: skip
SECRET = "Patient seen by Dr Unlikely on 31 February"
NOTES = [{"id": i, "note": f"{SECRET}, visit {i}", "outcome": ("refer", "stay")[i % 2]} for i in range(8)]
QUESTIONS = [
    {
        "question": f"¿Cuál es el tratamiento del paciente {i}?",
        "options": ["uno", "dos", "tres"],
        "answer": "ABC"[i % 3],
    }
    for i in range(9)
]
CODED = [
    {"text": f"Der Patient klagt über Schmerzen, Fall {i}", "codes": [["pain"], ["pain", "fever"], []][i % 3]}
    for i in range(9)
]
FREE = [{"letter": f"Le patient a été vu le jour {i}", "summary": f"Résumé numéro {i}"} for i in range(9)]


FILES = ("README.md", "data/train.jsonl", "data/test.jsonl")


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    monkeypatch.chdir(tmp_path)
    forget()
    yield folder
    forget()


@pytest.mark.parametrize(
    ("rows", "kind", "language", "labels"),
    [
        (NOTES, "label_word", "en", ["refer", "stay"]),
        (QUESTIONS, "exact_letter", "es", ["A", "B", "C"]),
        (CODED, "label_set", "de", ["fever", "pain"]),
        (FREE, "free_text", "fr", []),
        (
            [{"note": row["note"], "falls": row["id"] % 2 == 0} for row in NOTES],
            "label_word",
            "en",
            ["yes", "no"],
        ),
    ],
)
def test_a_file_of_rows_becomes_a_dataset_that_an_oracle_solves(medtasks, own, rows, kind, language, labels):
    write_jsonl(Path("rows.jsonl"), rows)
    made = medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    )
    assert made.code == 0, made.text
    forget()
    (listed,) = json.loads(medtasks("ls", "--json", "own_mine").out)
    assert (listed["language"], listed["n_test"]) == (language, len(rows))
    text = (own / "mine" / "task.yaml").read_text()
    assert f"kind: {kind}\n" in text and all(label in text for label in labels)
    run = medtasks(
        "run", "--model", "oracle", "--tasks", "own_mine", "--data", "sample", "--output_path", "run"
    )
    assert run.code == 0, run.text
    results = json.loads((own.parent / "run" / "results.json").read_text())["results"]["own_mine"]
    assert results["score,answer"] == 1.0


def test_nothing_that_a_row_says_is_printed_or_written_but_labels(medtasks, own):
    write_jsonl(Path("rows.jsonl"), NOTES)
    made = medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    )
    written = "".join(file.read_text() for file in own.rglob("*") if file.is_file())
    assert "Unlikely" not in made.text + written and "refer (4), stay (4)" in made.text


def test_the_rows_themselves_are_then_read_with_the_file_as_it_is(medtasks, own, monkeypatch):
    write_jsonl(Path("rows.jsonl"), NOTES)
    assert medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    ).code == 0  # fmt: skip
    data = own.parent / "data"
    (data / "own" / "mine").mkdir(parents=True)
    (own.parent / "rows.jsonl").rename(data / "own" / "mine" / "test.jsonl")
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data))
    forget()
    run = medtasks("run", "--model", "oracle", "--tasks", "own_mine", "--output_path", "run")
    results = json.loads((own.parent / "run" / "results.json").read_text())["results"]["own_mine"]
    assert run.code == 0 and results["score,answer"] == 1.0 and "SAMPLE_DATA,answer" not in results


def test_another_column_can_be_the_answer(medtasks, own):
    write_jsonl(Path("rows.jsonl"), [{**row, "ward": ("a1", "b2")[row["id"] // 4]} for row in NOTES])
    made = medtasks(
        "new", "--from", "rows.jsonl", "--answer", "ward", "--suite", "own", "--id", "mine",
        "--access", "private", *FLAGS,
    )  # fmt: skip
    assert made.code == 0 and "labels: a1 (4), b2 (4)" in made.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "nowhere.csv"), "no such file"),
        (("--from", "rows.jsonl", "--answer", "colour"), "there is no column 'colour'"),
        (("--from", "one.jsonl"), "a column for the input and one for the gold answer"),
        (("--from", "blanks.jsonl"), "blanks or signs"),
        (("--answer", "outcome"), "add --from FILE"),
    ],
)
def test_what_cannot_be_read_is_said(medtasks, own, arguments, said):
    write_jsonl(Path("rows.jsonl"), NOTES)
    write_jsonl(Path("one.jsonl"), [{"note": "x"}])
    write_jsonl(Path("blanks.jsonl"), [{"the note": "x", "label": "y"}])
    outcome = medtasks("new", *arguments, "--suite", "own", "--id", "mine")
    assert outcome.code == 2 and said in outcome.text and not any(own.iterdir())


def test_a_dataset_of_the_hub_brings_its_revision_licence_and_files(medtasks, own, monkeypatch):
    from huggingface_hub.hf_api import DatasetInfo

    class Hub:
        def dataset_info(self, repo):
            return DatasetInfo(
                id=repo, sha="1" * 40, gated=False, cardData={"license": "mit"},
                siblings=[{"rfilename": name} for name in FILES],
                private=False, downloads=0, likes=0, tags=[],
            )  # fmt: skip

    asked = []

    def file(remote_file):
        asked.append((remote_file.repo, remote_file.revision, remote_file.name))
        write_jsonl(Path("rows.jsonl"), NOTES)
        return own.parent / "rows.jsonl"

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr(remote.RemoteFile, "get", file)
    made = medtasks("new", "--from", "org/notes", "--suite", "own", "--id", "mine", *FLAGS)
    assert made.code == 0, made.text
    text = "".join((own / "mine" / name).read_text() for name in ("task.yaml", "card.yaml"))
    assert json.loads((own / "mine" / "data.lock").read_text()) == {"revision": "1" * 40}
    assert source_of(Dataset(own / "mine")).download.revision == "1" * 40
    assert asked == [("org/notes", "1" * 40, "data/test.jsonl")]
    assert all(
        line in text
        for line in (
            "repo: org/notes", "test: [data/test.jsonl]", "fewshot: [data/train.jsonl]", "licence: mit",
            "access: open", "url: https://huggingface.co/datasets/org/notes",
        )
    )  # fmt: skip


# ---------------------------------------------------------------------- a suite

SUITE = ("new", "suite", "--id", "wards", "--title", "WardBench", "--about", "texts of two wards")


def test_a_suite_and_its_dataset_run_without_python(medtasks, own):
    write_jsonl(Path("rows.jsonl"), NOTES)
    suite = medtasks(
        *SUITE, "--axis", "unit=emergency,clinic", "--dataset", "triage", "--dataset", "bridge/mednli"
    )
    assert suite.code == 0, suite.text
    assert "medtasks new --id wards_triage --axis unit=emergency" in suite.out
    forget()
    made = medtasks(
        "new", "--from", "rows.jsonl", "--id", "wards_triage", "--axis", "unit=clinic", "--access", "private",
        *FLAGS,
    )  # fmt: skip
    assert made.code == 0, made.text
    forget()
    run = medtasks("run", "--model", "oracle", "--tasks", "wards", "--data", "sample", "--output_path", "run")
    assert run.code == 0, run.text
    assert "2/2" in run.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_suite_is_asked_for(medtasks, own, monkeypatch):
    replies = ["mlb_two", "<", "ward", "?", "<", "wards", "WardBench", "", "Two wards", "unit", "?"]
    replies += [
        "unit=emergency,clinic; setting=home,ward",
        "<",
        "unit=emergency,clinic",
        "?",
        "triage, bridge/mednli",
    ]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(replies) + "\n"))
    made = medtasks("new", "--suite")
    assert made.code == 0, made.text
    assert "'mlb_two' is the name of a suite, or begins with one: use another one" in made.err
    assert "this is the first question" in made.err and "this cannot wait" in made.err
    assert "'unit' is no axis with its values: write --axis NAME=VALUE,VALUE" in made.err
    for key in ("title", "axis", "dataset"):
        assert re.search(rf"^  {key}: .* As a flag: --{key} VALUE$", made.err, re.M), made.err
    asked = (own / "wards" / "suite.yaml").read_text()
    (own / "wards" / "suite.yaml").unlink()
    again = medtasks(
        "new", "--suite", "--id", "wards", "--title", "WardBench", "--about", "Two wards",
        "--axis", "unit=emergency,clinic", "--dataset", "triage", "--dataset", "bridge/mednli",
    )  # fmt: skip
    assert again.code == 0 and (own / "wards" / "suite.yaml").read_text() == asked


def test_what_is_missing_of_a_suite_is_said_at_once(medtasks, own):
    outcome = medtasks("new", "suite", "--id", "wards", "--about", "two wards")
    assert outcome.code == 2 and "2 answers are missing" in outcome.err and "--axis" not in outcome.err
    assert "--title: " in outcome.err and "--dataset: " in outcome.err and not any(own.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--id", "bridge_two"), "begins with one"),
        (("--id", "Wards"), "is no name of a suite"),
        (("--axis", "unit"), "is no axis with its values"),
        (("--axis", "language=en"), "is no axis with its values"),
    ],
)
def test_a_suite_that_cannot_be_is_refused(medtasks, own, change, said):
    outcome = medtasks(*SUITE, "--dataset", "triage", *change)
    assert outcome.code == 2 and said in outcome.text and not any(own.iterdir())


def test_a_suite_needs_a_folder_of_ones_own(medtasks, monkeypatch):
    monkeypatch.delenv("MEDTASKS_TASKS", raising=False)
    outcome = medtasks(*SUITE, "--dataset", "triage")
    assert outcome.code == 2 and "export MEDTASKS_TASKS=my_tasks" in outcome.text
