"""Medmarks' sets from copies of their sources: at their places, in the columns that their pages show."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import _build, load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.remote import git_blob
from medtasks_ext.rows.sources import source_of
from tests.conftest import declare_suites, edited_json, sample_rows
from tests.rows.hub_server import Hub
from tests.rows.original_sources import as_csv, jsonl, parquet

pytestmark = pytest.mark.usefixtures("few_rows")
RAW = "https://raw.githubusercontent.com"
Row = dict[str, Any]


def listed(rows: list[Row]) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


def patients(rows: list[Row]) -> bytes:
    """Letters and questions by patient; beside a question stands where its answer is."""
    found: dict[str, Row] = {}
    for number, row in enumerate(rows):
        texts = row.pop("texts")
        name = f"patient_{number:02}"
        where = {next(iter(texts)): {"start": [0.0], "end": [0.1]}}
        found[name] = {
            "name": row.pop("name"), "birthday": "1961-02-03", "diagnosis": "invented", "texts": texts,
            "questions": [{**row, "answer_location": where}],
        }  # fmt: skip
    return json.dumps(found, ensure_ascii=False).encode()


def of_mmlu_pro(rows: list[Row]) -> bytes:
    """Options are a list, and other fields stand in the same file."""
    shown = [
        {
            "question_id": row["question_id"], "question": row["question"],
            "options": [*row["options"].values()],
            "answer": row["answer"], "answer_index": "ABCDEFGHIJ".index(row["answer"]), "cot_content": "",
            "category": "health", "src": "invented",
        }
        for row in rows
    ]  # fmt: skip
    return parquet([{**shown[0], "question": "Who may be sued?", "category": "law"}, *shown])


def of_supergpqa(rows: list[Row]) -> bytes:
    return jsonl([*rows, {**rows[0], "question": "Which alloy?", "discipline": "Engineering"}]).encode()


def with_columns(**more: Any) -> Callable[[list[Row]], bytes]:
    return lambda rows: parquet([{**row, **more} for row in rows])


CASE = {
    "Unnamed: 0": 1, "pmcid": "PMC0", "title": "t", "journal": "j", "article_link": "l", "text": "whole",
    "publication_date": "2016-05-11", "diagnostic_reasoning": "1. It was considered.",
}  # fmt: skip
#: The rows of a file, in the columns of the source.
MADE: dict[str, Callable[[list[Row]], bytes]] = {
    "careqa": listed, "careqa_open": listed, "longhealth": patients, "med_halt": as_csv,
    "medcasereasoning": with_columns(**CASE), "medconceptsqa": parquet,
    "metamedqa": with_columns(metamap_phrases="['rash']", kind="invented"), "mmlu_pro_health": of_mmlu_pro,
    "pubhealthbench": with_columns(source_chunk_text="Guidance."),
    "pubhealthbench_open": with_columns(source_chunk_text="Guidance."), "supergpqa_medicine": of_supergpqa,
}  # fmt: skip
PINNED = ("longhealth", "med_halt", "supergpqa_medicine")  # by the ids of their blobs


def sample_of(name: str, split: str) -> list[Row]:
    return [{key: row[key] for key in row if key != "id"} for row in sample_rows(f"medmarks_{name}", split)]


@pytest.fixture
def served(request, tmp_path: Path, monkeypatch) -> Iterator[tuple[str, Hub]]:
    """A dataset whose files lie on a server on loopback, and the server."""
    name, server, root = request.param, Hub(), tmp_path / "tasks"
    folder = root / "medmarks" / name
    shutil.copytree(registry().root / "medmarks" / name, folder)
    declare_suites(root)
    file = folder / "task.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(RAW, server.url), encoding="utf-8")
    if name in PINNED:
        with edited_json(folder / "data.lock") as lock:
            copy = tmp_path / "copy"
            copy.write_bytes(MADE[name](sample_of(name, "test")))
            (locked,) = lock["files"].values()
            assert locked["digest"].startswith("git:") and locked["digest"] != f"git:{git_blob(copy)}"
            locked["digest"] = f"git:{git_blob(copy)}"
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    server.take_place(monkeypatch, tmp_path)
    download = source_of(registry().datasets[f"medmarks_{name}"]).download
    for split, files in (("test", download.test), ("fewshot", download.fewshot)):
        rows = sample_of(name, split)
        for number, place in enumerate(files):
            content = MADE[name](rows[number :: len(files)])
            if download.repo:
                server.put(download.repo, download.revision.replace("/", "%2F"), place, content)
            else:
                server.files[place.format(revision=download.revision).removeprefix(server.url)] = content
    _build.cache_clear()
    yield name, server
    server.close()
    _build.cache_clear()


@pytest.mark.parametrize("served", sorted(MADE), indirect=True)
def test_rows_of_the_source_are_asked_as_the_sample_rows_are(served) -> None:
    name, server = served
    dataset = registry().datasets[f"medmarks_{name}"]
    found = load_documents(dataset, cot=False, origin="hub", prompts="own")
    known = load_documents(dataset, cot=False, origin="sample", prompts="own")
    for split in ("test", "fewshot") if source_of(dataset).download.fewshot else ("test",):
        asked, wanted = (
            sorted((item["prompt"], item["target"]) for item in documents[split])
            for documents in (found, known)
        )
        assert asked == wanted and asked
    assert found["test"][0].loaded.record["origin"] == "hub"
    assert sum(server.asked.values()) >= len(source_of(dataset).download.test)


@pytest.mark.parametrize("served", PINNED, indirect=True)
def test_other_content_than_the_blob_that_is_named_is_refused(served) -> None:
    name, server = served
    server.files = {path: content + b" " for path, content in server.files.items()}
    with pytest.raises(MedtasksError, match="other content than is pinned"):
        load_documents(registry().datasets[f"medmarks_{name}"], cot=False, origin="hub", prompts="own")
