"""Questions about one note, patient or consultation are drawn together."""

import numpy as np
import pytest
from lm_eval.api.metrics import mean

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import judged_tasks
from medtasks_ext.judge.scores import DocumentScore, figures
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.stats.bootstrap import resampling_weights, task_intervals
from tests.conftest import write_jsonl
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


def test_judged_answers_on_one_record_are_drawn_together(tmp_path):
    samples = [
        {"doc_id": place, "doc": dict(document), "resps": [["x"]], "filtered_resps": [{"answer": "x"}]}
        for place, document in enumerate(load("medhelm_medalign", origin="sample")[:6])
    ]
    (tmp_path / "run.json").write_text('{"started": "2026-01-02T03:04:05"}')
    write_jsonl(samples_file(tmp_path, "medhelm_medalign"), samples)
    [task] = judged_tasks(tmp_path, registry(), ["medhelm_medalign"])
    scores = []
    for case, rating in zip(task.cases, [1, 2, 5, 4, 5, 2], strict=True):
        judged = {("judge", None): dict.fromkeys(task.rubric.axes, rating)}
        scores.append(DocumentScore(case, judged, rating, {}))
    metrics, intervals, _ = figures(scores, task.rubric, "medhelm_medalign")
    assert intervals["score"]["clusters"] == intervals["jury_judge"]["clusters"] == 2
    # two records alone: the interval is as wide as two documents can make it
    low, high = intervals["score"]["interval_low"], intervals["score"]["interval_high"]
    assert low < metrics["score"] < high and high - low > 0.8


def write(data_dir, *labels):
    rows = [
        {"id": str(i), "question": f"题{i}", "options": [*"甲乙丙丁戊"], "answer": [0], **label}
        for i, label in enumerate({"department": label} if label else {} for label in labels)
    ]
    return write_jsonl(data_dir / "mlb" / "maguidance" / "test.jsonl", rows)


def test_documents_carry_the_departments_of_their_rows(data_dir):
    write(data_dir, "Cardiology", None, ["眼科", "Oncology"], "No Department")
    found = [document.get("department") for document in load("mlb_maguidance")][::3]
    assert found == [["Cardiology"], None, ["Ophthalmology", "Oncology"], ["No Department"]]


def test_an_unknown_department_names_file_row_and_remedy(data_dir):
    path = write(data_dir, "Cardiology", "Astrology")
    with pytest.raises(MedtasksError, match=r"test row 2 \(id 1\): department: 'Astrology'") as error:
        load("mlb_maguidance")
    assert str(path) in str(error.value) and "row_labels.department of mlb/suite.yaml" in error.value.remedy
