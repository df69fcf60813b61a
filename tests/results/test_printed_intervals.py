"""What a run prints and writes about intervals."""

import json

import numpy as np
import pytest

from medtasks_ext.results.rollup import Finished, Members, roll_up_one
from medtasks_ext.stats.intervals import Interval
from tests.conftest import read_json
from tests.run_files import result_of, results_of

GROUP = ("--tasks", "bridge_de,bridge_mie,mlb_cmexam", "--data", "sample", "--output_path", "run")


def interval_of_group(metrics, sizes, intervals):
    finished = {}
    for task, item in metrics.items():
        known = {"score": intervals[task]} if task in intervals else {}
        finished[task] = Finished(metrics=item, intervals=known, n=sizes.get(task, 0))
    return roll_up_one(Members("g", tuple(metrics), (tuple(metrics),)), finished).interval


def printed(outcome, name: str) -> str:
    return next(line for line in outcome.out.splitlines() if line.split()[:1] == [name])


def test_every_score_is_printed_with_its_interval(medtasks, tmp_path):
    outcome = medtasks("run", "--model", "random-label", *GROUP)
    assert outcome.code == 0 and "score [95 % interval]" in outcome.out
    results = results_of(tmp_path / "run")
    tasks, groups = results["medtasks"]["tasks"], results["medtasks"]["groups"]
    for name, record in (
        ("bridge_de", groups["bridge_de"]),
        ("bridge_mie", tasks["bridge_mie"]["intervals"]["score"]),
        ("mlb_cmexam", tasks["mlb_cmexam"]["intervals"]["score"]),
    ):
        score = results["results"][name]["score,answer"]
        assert record["interval_low"] <= score <= record["interval_high"]
        assert record["interval_method"].startswith("Wilson")
        assert f"{score:.4f} [{record['interval_low']:.3f}, {record['interval_high']:.3f}]" in printed(
            outcome, name
        )


def test_all_metrics_have_intervals_and_bridge_has_its_official_one_beside(medtasks, tmp_path):
    medtasks("run", "--model", "random-label", *GROUP)
    bridge, mlb = (result_of(tmp_path / "run", name) for name in ("bridge_mie", "mlb_cmexam"))
    assert bridge["intervals"].keys() == bridge["metrics"].keys() - {"scored", "SAMPLE_DATA"}
    for name, record in bridge["intervals"].items():
        assert record["interval_low"] <= bridge["metrics"][name] <= record["interval_high"], name
        official = record["t_interval_of_bootstrap_mean"]
        assert official["low"] <= official["mean"] <= official["high"]
        assert official["high"] - official["low"] < 0.1 * (record["interval_high"] - record["interval_low"])
    assert all("t_interval_of_bootstrap_mean" not in record for record in mlb["intervals"].values())


def test_one_document_has_no_interval_and_the_table_says_so(medtasks, tmp_path):
    outcome = medtasks("run", "--model", "oracle", "--limit", 1, *GROUP)
    assert "1.0000 [–]" in printed(outcome, "bridge_de")
    assert "[–]: no interval, since a task has fewer than two documents" in outcome.out
    record = result_of(tmp_path / "run", "bridge_mie")["intervals"]["score"]
    assert record["interval_low"] is record["interval_high"] is None
    assert not (tmp_path / "run" / "tasks" / "bridge_mie.npy").exists()


def test_without_gold_there_is_neither_score_nor_interval(medtasks, chip_ctc, tmp_path):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(json.dumps([{**row, "output": ""} for row in read_json(path)]))
    outcome = medtasks("run", "--model", "nearest-shot", "--tasks", "bridge_chip_ctc", "--output_path", "run")
    assert printed(outcome, "bridge_chip_ctc").split()[1] == "–" and "[–]" not in outcome.out
    intervals = result_of(tmp_path / "run", "bridge_chip_ctc")["intervals"]
    assert 0 < intervals["valid"]["interval_low"] < intervals["valid"]["interval_high"] == 1
    assert "score" not in intervals


def test_rescoring_gives_the_same_intervals(medtasks, tmp_path):
    medtasks("run", "--model", "random-label", *GROUP)
    before = results_of(tmp_path / "run")["medtasks"]
    for file in (tmp_path / "run" / "tasks").glob("*.npy"):
        file.unlink()
    outcome = medtasks("rescore", "run")
    assert results_of(tmp_path / "run")["medtasks"] == before and "[–]" not in outcome.out


def test_the_interval_of_a_group_is_that_of_the_mean_of_its_tasks():
    metrics = {"a": {"score": 0.2}, "b": {"score": 0.6}, "c": {"valid": 1.0}}
    halves = (0.02, 0.06)
    intervals = {
        name: Interval(metrics[name]["score"] - half, metrics[name]["score"] + half)
        for name, half in zip("ab", halves, strict=True)
    }
    interval = interval_of_group(metrics, {"a": 900, "b": 300}, intervals)
    half = np.hypot(*halves) / 2
    assert (interval.low, interval.high) == pytest.approx((0.4 - half, 0.4 + half), abs=0.003)


def test_a_group_with_a_task_without_an_interval_has_none():
    metrics = {"a": {"score": 0.2}, "b": {"score": 0.6}}
    assert interval_of_group(metrics, {}, {"a": Interval(0.1, 0.3)}) is None
    assert interval_of_group(metrics, {}, {}) is None
