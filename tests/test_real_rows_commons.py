"""Whole files of the commons' datasets, at their pinned commits: their digests, numbers and gold answers.

`MEDTASKS_REAL_REPOSITORIES` names a folder with git directories OWNER+NAME/repo; without it these tests skip.
Gold answers are computed here anew from the files, without the task files' templates.
"""

import csv
import io
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.answers.reader.words import plain
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.places import FETCHED
from medtasks_ext.rows.remote import RemoteFile, remote_files
from medtasks_ext.rows.spec import dataset_spec

REPOSITORIES = os.environ.get("MEDTASKS_REAL_REPOSITORIES", "")
pytestmark = pytest.mark.skipif(not REPOSITORIES, reason="MEDTASKS_REAL_REPOSITORIES is not set")
_RAW = re.compile(r"https://raw\.githubusercontent\.com/([^/]+)/([^/]+)/([0-9a-f]{40})/(.+)")

Rows = list[dict[str, Any]]
#: texts by which a row is found in a prompt, and its gold answer
Golds = list[tuple[list[str], Any]]


def content(file: RemoteFile) -> bytes:
    """A file at its pinned commit, from the git objects."""
    owner, name, commit, path = _RAW.fullmatch(file.name).groups()
    folder = Path(REPOSITORIES) / f"{owner}+{name}" / "repo"
    if not folder.is_dir():
        pytest.skip(f"{owner}/{name} is not there")
    done = subprocess.run(["git", "-C", str(folder), "show", f"{commit}:{path}"], capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(data: bytes, encoding: str = "utf-8-sig") -> Rows:
    return list(csv.DictReader(io.StringIO(data.decode(encoding), newline="")))


def lines(data: bytes) -> Rows:
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def french(files: dict[str, bytes]) -> Golds:
    return [
        ([row["question"], *row["answers"].values()], [x.upper() for x in sorted(row["correct_answers"])])
        for row in json.loads(files["test.json"])
    ]


def japanese(files: dict[str, bytes]) -> Golds:
    rows = [row for data in files.values() for row in lines(data)]
    kept = [row for row in rows if row["text_only"] and len(row["choices"]) == 5]
    return [([row["problem_text"], *row["choices"]], sorted(row["answer"])) for row in kept]


def crade(files: dict[str, bytes]) -> Golds:
    rows = table(files["crade.csv"])
    return [([row["question"]], {"level": "ABCD".index(row["answer"]), "of": 4}) for row in rows]


def arabic(files: dict[str, bytes]) -> Golds:
    rows = table(files["multiple-choice-questions.csv"])
    return [([row["Question"]], plain(row["Answer"].strip()[0])) for row in rows]


def swedish(files: dict[str, bytes]) -> Golds:
    rows, listed = json.loads(files["ori_pqal_swe.json"]), json.loads(files["test_ground_truth.json"])
    return [([rows[key]["QUESTION"], *rows[key]["CONTEXTS"]], rows[key]["final_decision"]) for key in listed]


def german(files: dict[str, bytes]) -> Golds:
    # 0: supported, the highest of three levels; 2: refuted
    rows = table(files["Datensatz.csv"])
    return [([row["de_claim"]], {"level": 2 - int(row["label"]), "of": 3}) for row in rows]


def african(files: dict[str, bytes]) -> Golds:
    tests = [data.decode("utf-8") for name, data in files.items() if "_test_" in name]
    rows = [row for text in tests for row in csv.reader(io.StringIO(text, newline=""))]
    return [
        (cells, answer)
        for *cells, answer in rows
        if len({option.strip().lower() for option in cells[1:]}) == len(cells) - 1
    ]


#: rows with two options of the same text, which are left out
LEFT_OUT = {"commons_mmlu_clinical_am": 2, "commons_mmlu_clinical_zu": 13}
#: task -> how its gold answers follow from its files
GOLDS: dict[str, Callable[[dict[str, bytes]], Golds]] = {
    "commons_frenchmedmcqa": french,
    "commons_igakuqa": japanese,
    "commons_crade": crade,
    "commons_medarabiq_mcq": arabic,
    "commons_pubmedqa_sv": swedish,
    "commons_healthfc": german,
    "commons_mmlu_clinical_am": african,
    "commons_mmlu_clinical_zu": african,
}


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", GOLDS)
def test_whole_files_have_the_digests_numbers_and_gold_answers_that_are_said(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    dataset = registry().datasets[name]
    files = {}
    source = dataset_spec(dataset).rows
    for file in remote_files(source):
        data = content(file)
        place = tmp_path / FETCHED / file.carried
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        assert file.is_pinned and file.is_right(place)
        files[Path(file.name).name] = data
    documents = load_documents(dataset, cot=False, origin="hub")["test"]
    expected = [([squeezed(text) for text in texts], gold) for texts, gold in GOLDS[name](files)]
    held_out = 5 if source.held_out == "always" else 0
    assert len(documents) + held_out == len(expected)
    assert len(expected) + LEFT_OUT.get(name, 0) == dataset.metadata.n_test
    for document in documents:
        prompt, gold = squeezed(document["prompt"]), document["gold"]
        if name == "commons_medarabiq_mcq":  # spellings of one letter are told apart by nobody
            gold = plain(gold)
        found = [right for texts, right in expected if all(text in prompt for text in texts)]
        assert gold in found and len({json.dumps(right) for right in found}) == 1, document["id"]
