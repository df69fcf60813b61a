"""Questions about one note, patient or consultation are drawn together."""

import json
import re

import numpy as np
import pytest
from lm_eval.api.metrics import mean

from medtasks_ext.judge.cases import judged_tasks
from medtasks_ext.judge.scores import DocumentScore, figures
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.stats.bootstrap import resampling_weights, task_intervals
from tests.conftest import ROOT, write_jsonl
from tests.rows.original_sources import SOURCES
from tests.run_files import samples_file

TASKS = registry().datasets
CLUSTERED = {name: dataset for name, dataset in TASKS.items() if "cluster" in dataset.blocks["rows"]}


def load(name: str, **options):
    return load_documents(TASKS[name], cot=False, **options)["test"]


def put_original(data_dir, name: str) -> None:
    files = SOURCES[name.removeprefix("bridge_")][0]
    for file, content in (files() if callable(files) else files).items():
        path = data_dir / "bridge" / name.removeprefix("bridge_") / "original" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("name", CLUSTERED)
def test_every_declared_cluster_is_found_in_rows_of_its_task(name, data_dir):
    """In its sample rows, or in those of its source where BRIDGE's own rows do not carry it."""
    found = [document.get("cluster") for document in load(name, origin="sample")]
    if not any(found):
        put_original(data_dir, name)
        found = [document.get("cluster") for document in load(name, origin="local")]
    assert all(found)


def test_the_documentation_names_the_tasks_with_clusters():
    page = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    table = page.partition("## Questions that share a text")[2]
    assert sorted(name for name in re.findall(r"`(\w+)`", table) if name in TASKS) == sorted(CLUSTERED)


def test_tasks_without_a_cluster_have_none():
    assert not any("cluster" in document for document in load("bridge_cmedqa", origin="sample"))


@pytest.mark.parametrize(
    ("name", "questions", "clusters"),
    [("medhelm_medalign", 9, 5), ("medhelm_dischargeme", 10, 6), ("medhelm_medhallu", None, None)],
)
def test_questions_on_one_record_share_their_cluster(name, questions, clusters):
    documents = load(name, origin="sample")
    found = [document["cluster"] for document in documents]
    questions, clusters = questions or len(documents), clusters or len(documents) // 2
    assert (len(found), len(set(found))) == (questions, clusters)


def test_turns_of_one_dialogue_are_one_cluster(data_dir):
    """Each of MentalHealth's rows holds its dialogue up to a turn, and no id of it."""
    told = {
        topic: f"Client: I cannot sleep, {topic}.\nCounselor: Since when?\nClient: Since May."
        for topic in ("exams", "work")
    }
    rows = [
        {"context": "\n".join(text.split("\n")[:turns]), "gold_counselor_response": "Tell me more.",
         "topic": topic, "dialogue_type": 1}
        for topic, text in told.items()
        for turns in (1, 3)
    ]  # fmt: skip
    write_jsonl(data_dir / "medhelm" / "mental_health" / "test.jsonl", rows)
    found = [document["cluster"] for document in load("medhelm_mental_health")]
    assert found[0] == found[1] != found[2] == found[3]


def test_a_cluster_is_known_by_a_short_digest_and_blanks_do_not_count(data_dir):
    rows = [
        {"prompt": f"Was {what} present?", "context": note, "label": "A"}
        for what, note in [("sepsis", "Day 0:  fever\n"), ("anaemia", "Day 0: fever"), ("delirium", "Day 1")]
    ]
    write_jsonl(data_dir / "medhelm" / "cdi_qa" / "test.jsonl", rows)
    clusters = [document["cluster"] for document in load("medhelm_cdi_qa")]
    assert clusters[0] == clusters[1] != clusters[2]
    assert all(len(cluster) == 12 and int(cluster, 16) >= 0 for cluster in clusters)


def test_an_optional_patient_makes_clusters_and_rows_without_one_stand_alone(data_dir):
    rows = [
        {"subject": "lab_anemia", "codes": [f"LOINC/{n}"], "boolean_value": True, **patient}
        for n, patient in enumerate([{"patient": 0}, {"patient": 0}, {}, {"patient": None}, {"patient": " "}])
    ]
    write_jsonl(data_dir / "medhelm" / "ehrshot" / "test.jsonl", rows)
    clusters = [document.get("cluster") for document in load("medhelm_ehrshot")]
    assert clusters[0] == clusters[1] is not None and clusters[2:] == [None] * 3


def test_windows_of_a_consultation_are_told_apart_from_those_of_another(data_dir):
    def window(n):
        return {"utterances": [f"患者:心慌{n}天"], "label": ["症状:心慌-状态:阳性"]}

    folder = data_dir / "bridge" / "mie" / "original"
    folder.mkdir(parents=True)
    parts = {
        "test.json": [[window(1), window(2)], [window(3)]],
        "dev.json": [[window(n) for n in range(4, 10)]],
    }
    for name, content in parts.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    one, two, three = (document["cluster"] for document in load("bridge_mie"))
    assert one == two != three


def samples_of(values, clusters) -> list[dict]:
    return [
        {"doc_id": place, "doc": {"cluster": cluster} if cluster else {}, "score": value}
        for place, (value, cluster) in enumerate(zip(values, clusters, strict=True))
    ]


def interval_of(values, clusters) -> dict:
    return task_intervals(samples_of(values, clusters), {"score": mean}, "task")[0]["score"]


def test_copies_of_a_question_do_not_narrow_the_interval():
    values = np.random.default_rng(0).random(50)
    alone = interval_of(values, [None] * 50)
    copies = interval_of(np.repeat(values, 4), [f"note {n // 4}" for n in range(200)])
    ends = ("interval_low", "interval_high")
    assert [copies[end] for end in ends] == pytest.approx([alone[end] for end in ends], abs=1e-12)
    assert (alone["interval_method"], alone.get("clusters")) == (
        "Wilson on the effective number of documents, 95 %",
        None,
    )
    assert "in clusters" in copies["interval_method"] and copies["clusters"] == 50


def test_a_resample_is_clusters_written_out_with_all_their_questions():
    values, clusters = [1.0, 0.0, 0.5, 1.0, 0.25, 0.0], ["a", "b", "a", None, "c", "b"]
    members = [[0, 2], [1, 5], [3], [4]]  # in the order of their first document
    means = []
    for row in resampling_weights("task", 4):
        drawn = [members[group] for group, times in enumerate(row) for _ in range(times)]
        means.append(np.mean([values[place] for places in drawn for place in places]))
    _, found = task_intervals(samples_of(values, clusters), {"score": mean}, "task")
    assert found == pytest.approx(means, abs=1e-12)


def test_one_question_per_note_is_the_ordinary_bootstrap():
    values = [0.0, 1.0, 1.0]
    assert interval_of(values, ["a", "b", "c"]) == interval_of(values, [None] * 3)


def test_one_note_alone_has_no_interval():
    record = interval_of([0.0, 1.0, 1.0], ["a"] * 3)
    assert record["interval_low"] is None
    assert record["interval_method"] == "none: fewer than two clusters, or all of them alike"


def test_judged_answers_on_one_record_are_drawn_together(tmp_path):
    samples = [
        {"doc_id": place, "doc": dict(document), "filtered_resps": [{"answer": "an answer"}]}
        for place, document in enumerate(load("medhelm_medalign", origin="sample")[:6])
    ]
    (tmp_path / "run.json").write_text('{"started": "2026-01-02T03:04:05"}')
    write_jsonl(samples_file(tmp_path, "medhelm_medalign"), samples)
    [task] = judged_tasks(tmp_path, registry(), ["medhelm_medalign"])
    scores = []
    for case, rating in zip(task.cases, [1, 2, 5, 4, 5, 2], strict=True):
        judged = {("judge", None): dict.fromkeys(task.rubric.axes, rating)}
        scores.append(DocumentScore(case, judged, rating, {}))
    metrics, intervals, _ = figures(scores, task.rubric, ["judge"], "medhelm_medalign")
    assert intervals["score"]["clusters"] == intervals["jury_judge"]["clusters"] == 2
    # two records alone: the interval is as wide as two documents can make it
    low, high = intervals["score"]["interval_low"], intervals["score"]["interval_high"]
    assert low < metrics["score"] < high and high - low > 0.8
