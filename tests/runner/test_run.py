"""`medtasks run`: resumable, task by task, nothing computed is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.cli.arguments import say_faults
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from tests.conftest import ROOT, outcomes, sft_row, write_jsonl
from tests.engines.server import Server
from tests.run_files import result_of, results_of, samples_file

CHIP_CTC = ("--tasks", "bridge_chip_ctc", "--output_path", "run")


def result(folder: Path, task: str = "bridge_chip_ctc") -> dict:
    return result_of(folder, task)


def test_a_run_leaves_results_samples_responses_and_a_manifest(medtasks, chip_ctc, tmp_path):
    outcome = medtasks("run", "--model", "oracle", *CHIP_CTC)
    assert outcome.code == 0
    run = tmp_path / "run"
    assert result(run)["metrics"]["score"] == 1
    assert len(outcomes(run)) == 8
    assert len(samples_file(run, "bridge_chip_ctc").read_text().splitlines()) == 8
    results = results_of(run)
    assert results["results"]["bridge_chip_ctc"]["acc,answer"] == 1
    loaded = results["configs"]["bridge_chip_ctc"]["metadata"]["medtasks"]["loaded"]
    assert (loaded["origin"], loaded["instruction"], loaded["n_test"]) == ("local", "own", 8)
    assert "SAMPLE" not in outcome.text


def test_rows_that_lie_elsewhere_by_now_are_the_same_rows(medtasks, chip_ctc, tmp_path, monkeypatch):
    medtasks("run", "--model", "oracle", *CHIP_CTC)
    moved = chip_ctc.rename(tmp_path / "moved")
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(moved))
    outcome = medtasks("run", "--model", "oracle", *CHIP_CTC)
    assert outcome.code == 0 and "1 of 1 tasks are done already" in outcome.err


def test_a_task_one_of_whose_answers_changed_is_scored_again(medtasks, chip_ctc, tmp_path):
    medtasks("run", "--model", "oracle", *CHIP_CTC)
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    rows = json.loads(path.read_text())
    rows[0]["output"] = "clinical trial criterion: 锻炼"
    path.write_text(json.dumps(rows))
    from medtasks_ext.prompts import load

    load._build.cache_clear()
    medtasks("run", "--model", "oracle", *CHIP_CTC)
    assert result(tmp_path / "run")["metrics"]["score"] == 7 / 8
    assert len(outcomes(tmp_path / "run")) == 8


@pytest.mark.parametrize(
    "change",
    [
        ("--model", "random-label"),
        ("--model", "oracle", "--seed", "0,1,2,3"),
        ("--model", "oracle", "--apply_chat_template"),
    ],
)
def test_a_folder_takes_one_model_and_one_set_of_settings(medtasks, chip_ctc, change):
    medtasks("run", "--model", "oracle", *CHIP_CTC)
    outcome = medtasks("run", *change, *CHIP_CTC)
    assert outcome.code == 2
    assert "this folder holds a run with other settings" in outcome.err and "--output_path" in outcome.err


def test_rescore_refuses_a_run_with_missing_responses(medtasks, chip_ctc, tmp_path):
    medtasks("run", "--model", "oracle", *CHIP_CTC)
    path = tmp_path / "run" / "answers.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    outcome = medtasks("rescore", "run")
    assert outcome.code == 1 and "2 of 8 documents have no stored response" in outcome.err


def test_a_group_is_rolled_up_over_its_tasks_with_what_is_missing_in_sight(medtasks, chip_ctc):
    outcome = medtasks(
        "run", "--model", "oracle", "--tasks", "bridge_zh", "--data", "local", "--output_path", "run"
    )
    assert outcome.code == 1  # data is missing
    line = next(line for line in outcome.out.splitlines() if "bridge_zh" in line)
    n = len(registry().leaves("bridge_zh"))
    assert f"1/{n}" in line and "rows in part" in line
    assert f"no data for {n - 1} of {n} tasks" in outcome.err and outcome.err.count("files go to") == 3
    assert f"and {n - 4} more datasets; `medtasks data status TASK`" in outcome.err
    assert "1 of 1 tasks have a part of their suite's rows: bridge_chip_ctc" in outcome.err
    assert "the suite's own test part" not in outcome.err


def test_strict_stops_where_data_is_missing(medtasks, chip_ctc, tmp_path):
    given = ("--model", "oracle", "--tasks", "bridge_zh", "--data", "local", "--output_path", "run")
    outcome = medtasks("run", "--strict", *given)
    assert outcome.code == 2 and not (tmp_path / "run").exists()


def test_sample_rows_are_marked_in_every_table_and_file(medtasks, tmp_path):
    outcome = medtasks("run", "--model", "oracle", "--data", "sample", *CHIP_CTC)
    assert outcome.out.startswith("SAMPLE DATA") and "done, SAMPLE score" in outcome.err
    assert results_of(tmp_path / "run")["results"]["bridge_chip_ctc"]["SAMPLE_DATA,answer"] == 1


@pytest.mark.parametrize("shots", [1, 3, 5])
def test_the_number_of_shots_can_be_set_on_the_zero_shot_task(medtasks, chip_ctc, tmp_path, shots):
    outcome = medtasks("run", "--model", "oracle", "--num_fewshot", shots, "--apply_chat_template", *CHIP_CTC)
    assert outcome.code == 0
    sample = json.loads(samples_file(tmp_path / "run", "bridge_chip_ctc").read_text().splitlines()[0])
    assert sample["arguments"]["gen_args_0"]["arg_0"].count("[assistant]") == shots


def test_more_shots_than_the_pool_has_is_said(medtasks, chip_ctc):
    outcome = medtasks("run", "--model", "oracle", "--num_fewshot", 7, *CHIP_CTC)
    assert outcome.code == 2 and "7 shots asked for, the few-shot pool has 5 rows" in outcome.err


STOPPED = """
import os, sys
from medtasks_ext.models import Oracle
answer, last, how = Oracle.answer, int(sys.argv[1]), int(sys.argv[2])
asked = []
def noted(self, request, requests):
    asked.append(request.doc["id"])
    with open("calls", "a") as log:
        log.write(asked[-1] + "\\n")
    if len(asked) == last:
        os.kill(os.getpid(), how)
    return answer(self, request, requests)
Oracle.answer = noted
from medtasks_ext.cli.main import main
sys.argv = ["medtasks", "run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run"]
main()
"""


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (signal.SIGKILL, -9),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly),
        (signal.SIGTERM, 130),
    ],
)
def test_an_interrupted_run_goes_on_where_it_stopped(chip_ctc, tmp_path, how, code):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    rows = [sft_row(i, f"入组标准第{i}条", "clinical trial criterion: 年龄") for i in range(150)]
    path.write_text(json.dumps(rows))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-c", STOPPED]
    stopped = subprocess.run(
        [*start, "70", str(int(how))], cwd=tmp_path, env=environment, capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored below `nohup … &`
    )  # fmt: skip
    assert stopped.returncode == code, stopped.stderr.decode()
    assert how == signal.SIGKILL or "the same command goes on" in stopped.stderr.decode()
    kept = [record["document"] for record in outcomes(tmp_path / "run")]
    assert 0 < len(kept) < 150
    (tmp_path / "calls").unlink()
    subprocess.run([*start, "0", "0"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    asked_again = (tmp_path / "calls").read_text().split()
    assert not set(asked_again) & set(kept)
    assert len(asked_again) == 150 - len(kept)
    assert result(tmp_path / "run")["metrics"]["score"] == 1
    assert len({record["key"] for record in outcomes(tmp_path / "run")}) == 150


def test_two_rows_with_the_same_prompt_get_their_own_responses(medtasks, data_dir, tmp_path):
    rows = [sft_row(i, "同一条标准", "clinical trial criterion: 年龄") for i in range(6)]
    write_jsonl(data_dir / "bridge" / "chip_ctc" / "test.jsonl", rows)
    assert medtasks("run", "--model", "oracle", *CHIP_CTC).code == 0
    assert len(outcomes(tmp_path / "run")) == 6


def test_lm_evals_dummy_model_runs_where_its_tokenizer_cannot_be_loaded(medtasks, chip_ctc):
    outcome = medtasks(
        *("run", "--tasks", "bridge_chip_ctc", "--model", "dummy", "--data", "sample", "--output_path", "run")
    )
    assert outcome.code == 0 and "1/1" in outcome.out, outcome.err


def test_one_cause_of_many_tasks_is_said_once(capsys):
    faults = {name: MedtasksError("cannot be had", where=name, remedy="go online") for name in "abc"}
    say_faults({**faults, "d": MedtasksError("is broken", where="d")}, stop=False)
    said = capsys.readouterr().err
    assert (
        said.count("cannot be had") == 1 and "the same in 2 more tasks: b, c" in said and "✗ d: d: is" in said
    )


def test_a_part_of_the_rows_is_told_by_rows_and_not_by_their_trials(medtasks, data_dir):
    """100 of 200 questions, each asked three times, are 300 documents and a part."""
    rows = [
        {
            "question": f"第{i}题：编造的问题是什么？",
            "options": [f"第{i}题的选项{n}" for n in range(5)],
            "answer": [i % 5],
        }
        for i in range(100)
    ]
    for name, count in (("test", 100), ("fewshot", 5)):
        write_jsonl(data_dir / "mlb" / "maexam" / f"{name}.jsonl", [
            {**row, "question": f"{name} {row['question']}"} for row in rows[:count]
        ])  # fmt: skip
    outcome = medtasks("run", "--model", "oracle", "--tasks", "mlb_maexam", "--output_path", "run")
    assert "1 of 1 tasks have a part of their suite's rows: mlb_maexam" in outcome.err, outcome.err


def test_several_servers_answer_one_run(medtasks, chip_ctc):
    """Where they are, and how many, is no condition: one alone goes on with the same folder."""
    command = ("run", "--tasks", "bridge_chip_ctc", "--model", "local-chat-completions",
               "--apply_chat_template", "--no-preflight", "--output_path", "run", "--model_args")  # fmt: skip
    with Server() as one, Server() as two:
        urls = [f"{server.url}/chat/completions" for server in (one, two)]
        done = medtasks(*command, f"model=m,num_concurrent=2,base_url={'+'.join(urls)}")
        assert done.code == 0, done.text
        assert one.asked and two.asked and len(one.asked) + len(two.asked) == 8
        again = medtasks(*command, f"model=m,base_url={urls[0]}")
        assert again.code == 0 and "1 of 1 tasks are done already" in again.text
        assert len(one.asked) + len(two.asked) == 8
    dead = medtasks(*command, f"model=m,base_url={'+'.join(urls)}", "--limit", "1", "--output_path", "other")
    assert dead.code == 2 and f"no server answers at {urls[0]}" in dead.err


def test_one_of_several_processes_is_refused_before_anything_is_made(medtasks, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "3")
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--data", "sample")
    assert outcome.code == 2 and "8 processes were started" in outcome.err
    for way in ("data_parallel_size", "servers with +", "other --tasks"):
        assert way in outcome.err
    assert not (tmp_path / "runs").exists()
