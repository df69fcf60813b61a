"""`medtasks card`: what the author of a model publishes."""

import base64
import json
import re
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

from medtasks_ext.registry import registry
from tests.conftest import hashed_anew, read_json, write_jsonl
from tests.report.made import write_run
from tests.run_files import edited, result_of

TASK = "medhelm_hospice_referral"
OTHER = "medhelm_clinic_referral"


@pytest.fixture
def run(medtasks, data_dir, tmp_path):
    for name, question in (("hospice_referral", "prompt"), ("clinic_referral", "question")):
        rows = [{question: "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(12)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)
    call = ("run", "--model", "random-label", "--tasks", f"{TASK},{OTHER}", "--output_path", "run")
    assert medtasks(*call).code == 0
    return tmp_path / "run"


def from_the_hub(run, task):
    """As if the task's rows had been downloaded."""
    with edited(run, task) as record:
        record["loaded"] |= {"origin": "hub", "revision": "abc123", "where": "org/name@abc123"}
    hashed_anew(run)


def test_the_section_shows_suites_tasks_settings_and_the_command(medtasks, run, tmp_path):
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    card, text = ((tmp_path / "card" / name).read_text() for name in ("README.md", "medical-evaluation.md"))
    scores = {task: result_of(run, task)["metrics"]["score"] for task in (TASK, OTHER)}
    mean = sum(scores.values()) / 2
    for written in (card, text):
        assert f"| MedHELM (partial) | zero-shot | {mean:.4f} [" in written and "| 2/37 | 24 |" in written
    assert f"**{mean:.2f} on 2 of MedHELM's 37 tasks.**" in card and f"`{TASK}`" not in card
    assert "**2 tasks" not in card and "(medical-evaluation.md)" in card
    assert all(
        f"| `{task}` | zero-shot | exact_match | {score:.4f} [" in text for task, score in scores.items()
    )
    assert f"medtasks run --tasks {TASK},{OTHER} --model random-label" in text
    assert "0 of 2 tasks had official prompts" in text
    assert "SAMPLE" not in text


def test_the_hub_reads_suites_from_the_front_matter(medtasks, run, tmp_path):
    medtasks("card", "run", "-o", "card", "--parts")
    stored = {task: result_of(run, task)["metrics"]["score"] for task in (TASK, OTHER)}
    card = ModelCard((tmp_path / "card" / "README.md").read_text())
    name, [found] = model_index_to_eval_results(card.data.to_dict()["model-index"])
    assert name == "random-label" and "model-index" not in card.text and card.text.startswith("\n## Medical")
    mean = round(sum(stored.values()) / 2, 4)
    # the hub shows name and value alone: a part of the tasks is in the name
    assert (found.metric_name, found.metric_value) == ("mean score (zero-shot, 2 of 37 tasks)", mean)
    assert (found.dataset_name, found.metric_args["tasks"]) == ("MedHELM", "2 of 37")
    details = (tmp_path / "card" / "medical-evaluation.md").read_text()
    assert f"| MedHELM (partial): Administration and workflow | zero-shot | {mean:.4f} [" in details


@pytest.fixture
def downloaded(medtasks, tmp_path, data_dir):
    """A run of MedQA. The rows are local; the record says hub, as it would after a download."""
    known = {"options": {"A": "C", "B": "D", "C": "K", "D": "A"}, "answer_idx": "A"}
    rows = [{"question": f"Which vitamin, case {n}?", **known} for n in range(9)]
    write_jsonl(data_dir / "medhelm" / "medqa" / "test.jsonl", rows)
    medtasks.done("run", "--model", "oracle", "--tasks", "medhelm_medqa", "--output_path", "run")
    from_the_hub(tmp_path / "run", "medhelm_medqa")
    return registry().datasets["medhelm_medqa"].blocks["rows"]["download"]["repo"]


def test_entries_for_the_hub_name_dataset_and_revision(medtasks, tmp_path, downloaded):
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    content = yaml.safe_load((tmp_path / "card" / ".eval_results" / "medhelm_medqa.yaml").read_text())
    [entry] = parse_eval_result_entries(content)
    assert (entry.dataset_id, entry.task_id, entry.value) == (downloaded, "medhelm_medqa", 1.0)
    assert len(entry.dataset_revision) == 40 and entry.notes == "no-tools, 0-shot, own prompts"
    benchmark = yaml.safe_load((tmp_path / "card" / "benchmarks" / downloaded / "eval.yaml").read_text())
    assert entry.task_id in [task["id"] for task in benchmark["tasks"]]


CARD = """---
license: mit
model-index:
- name: theirs
  results:
  - task: {type: text-generation}
    dataset: {name: Other, type: other}
    metrics: [{type: accuracy, value: 0.5}]
---
# Ours

Kept.

## Medical evaluation (old)

Not kept.

## Licence

MIT
"""


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine: files by path; what is committed is in `hub["commits"]`."""
    pages: dict[str, Any] = {"commits": []}

    class Handler(BaseHTTPRequestHandler):
        def answer(self, body: bytes | None, **headers: str) -> None:
            self.send_response(404 if body is None else 200)
            missing = {"X-Error-Code": "EntryNotFound"} if body is None else {}
            for name, value in {"Content-Length": str(len(body or b"")), **headers, **missing}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body or b"")

        def do_GET(self):
            name = self.path.replace("/resolve/main/", " ").strip("/")
            self.answer(pages.get(name), ETag='"1"', X_Repo_Commit="0" * 40)

        do_HEAD = do_GET  # noqa: N815  as http.server calls it

        def do_POST(self):
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            if "/preupload/" in self.path:
                files = [
                    {**item, "uploadMode": "regular", "shouldIgnore": False}
                    for item in json.loads(sent)["files"]
                ]
                return self.answer(json.dumps({"files": files}).encode())
            if "/validate-yaml" in self.path:
                return self.answer(b'{"errors": [], "warnings": []}')
            pages["commits"].append((self.path, [json.loads(line) for line in sent.splitlines()]))
            made = {"commitUrl": f"{address}/o/m/commit/1", "commitOid": "1"}
            return self.answer(json.dumps(made | {"pullRequestUrl": f"{address}/o/m/discussions/7"}).encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for place in ("constants.ENDPOINT", "constants.HUGGINGFACE_CO_URL_TEMPLATE"):
        given = address if "ENDPOINT" in place else address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(f"huggingface_hub.{place}", given)
    yield pages
    server.shutdown()
    server.server_close()


def test_a_pull_request_keeps_the_card_and_names_tasks_as_the_dataset_does(
    medtasks, tmp_path, downloaded, hub, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    hub["o/m README.md"] = CARD.encode()
    hub[f"datasets/{downloaded} eval.yaml"] = b"name: MedQA\ntasks:\n- {id: usmle, split: test}\n"
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0 and hub["commits"] == []  # dry
    outcome = medtasks.done("card", "run", "-o", "card", "--parts", "--push", "o/m")
    assert "/o/m/discussions/7" in outcome.out
    [(path, sent)] = hub["commits"]
    files = {
        item["value"]["path"]: base64.b64decode(item["value"]["content"]).decode()
        for item in sent
        if item["key"] == "file"
    }
    assert "create_pr=1" in path and "medical-evaluation.md" in files
    card = ModelCard(files["README.md"])
    assert [card.text.count(words) for words in ("Kept.", "Not kept.", "## Licence")] == [1, 0, 1]
    assert card.text.count("## Medical evaluation (oracle)") == 1 and card.data.license == "mit"
    assert {item.dataset_name for item in card.data.eval_results} == {"Other", "MedHELM"}
    assert yaml.safe_load(files[".eval_results/medhelm_medqa.yaml"])[0]["dataset"]["task_id"] == "usmle"
    del hub[f"datasets/{downloaded} eval.yaml"]  # no benchmark of the hub
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "other"))
    medtasks.done("card", "run", "-o", "card", "--parts", "--push", "o/m")
    assert not [item for item in hub["commits"][1][1] if ".eval_results" in str(item["value"].get("path"))]


def test_a_pull_request_that_is_not_taken_is_one_error(medtasks, run):
    outcome = medtasks("card", "run", "-o", "card", "--parts", "--push", "o/m")
    assert (
        outcome.code == 2 and "no pull request was opened" in outcome.err and "hf auth login" in outcome.err
    )


def test_the_record_of_every_eval_ever_lies_at_its_path_with_answers_to_open_data(
    medtasks, tmp_path, downloaded
):
    medtasks.done("card", "run", "-o", "card", "--parts")
    [path] = (tmp_path / "card/every_eval_ever/data/medtasks/unknown/oracle").glob("*.json")
    record = read_json(path)
    required = {
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata"),
        *("model_info", "eval_library", "evaluation_results"),
    }
    assert required <= set(record) and record["retrieved_timestamp"].isdigit()
    assert {"deployment_type", "model_availability"} <= set(record["model_info"]["additional_details"])
    [result] = record["evaluation_results"]
    ends = result["score_details"]["uncertainty"]["confidence_interval"]
    assert ends["lower"] <= result["score_details"]["score"] <= ends["upper"]
    assert result["metric_config"]["metric_id"] == "exact_match"
    named = record["detailed_evaluation_results"]
    text = (path.parent / named["file_path"]).read_bytes()
    rows = [json.loads(line) for line in text.splitlines()]
    assert named["file_path"] == f"{path.stem}_samples.jsonl" and len(rows) == named["total_rows"] == 9
    assert sha256(text).hexdigest() == named["checksum"] and b"vitamin" not in text
    assert {row["evaluation_result_id"] for row in rows} == {result["evaluation_result_id"]}
    assert all(row["evaluation"] == {"score": 1.0, "is_correct": True} for row in rows)


def test_the_card_begins_with_what_the_model_does_best_and_worst(medtasks, tmp_path):
    right = {"administration": 18, "medical_research": 12, "patient_communication": 15}
    right |= {"clinical_decision_support": 4}
    scores = {
        name: [1.0] * n + [0.0] * (20 - n)
        for name, item in registry().datasets.items()
        if item.suite.id == "medhelm" and item.metadata.primary_metric == "exact_match"
        if not item.blocks["rows"].get("runs")
        for category, n in right.items()
        if list(item.metadata.axis("category")) == [category]
    }
    write_run(tmp_path / "run", "model", scores)
    medtasks.done("card", "run", "-o", "card", "--parts")
    text = (tmp_path / "card" / "README.md").read_text().partition("## Medical evaluation (model)")[2].strip()
    group = r"([A-Z][^:]+?) (0\.\d\d) \[0\.\d\d, [01]\.\d\d\] \((\d+) tasks[,)]"
    said = re.findall(group, text.partition("\n")[0])
    assert [(float(score), int(n)) for _, score, n in said] == [(0.9, 4), (0.75, 3), (0.2, 6)]
    assert text.startswith("Best: Administration") and ". Worst: Clinical decision support" in text
    assert len(text.partition("\n| ")[0].split()) <= 400 and text.index("Conditions: ") < text.index("\n| ")


def test_synthetic_rows_make_a_marked_section_and_nothing_that_machines_read(medtasks, tmp_path):
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--data", "sample", "--output_path", "run")
    outcome = medtasks("card", "run", "-o", "card", "--parts")
    assert outcome.code == 0 and "SAMPLE DATA" in outcome.err
    files = {path.name for path in (tmp_path / "card").rglob("*") if path.is_file()}
    assert files == {"medical-evaluation.md", "medtasks-manifest.json", "references.bib"}
    assert "SAMPLE DATA" in (tmp_path / "card" / "medical-evaluation.md").read_text()


def test_what_cannot_make_a_card_is_refused_in_words(medtasks, run, tmp_path):
    assert "no such folder" in medtasks("card", "nowhere", "-o", "card").err
    (tmp_path / "file").write_text("")
    assert "is a file" in medtasks("card", "run", "-o", "file").err
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "oracle")
    outcome = medtasks("card", "run", "oracle", "-o", "card", "--parts")
    assert outcome.code == 2 and "one model" in outcome.err and "oracle" in outcome.err
