"""`medtasks run`: what it leaves, the stream of requests, faults, kills; nothing computed is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from medtasks_ext.engines import Answer, Engine, Fault, FaultKind, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.run import lm as chosen
from tests.conftest import ROOT, outcomes, sft_row
from tests.engines.server import Server
from tests.run_files import result_of, results_file, results_of, samples_file

CHIP_CTC = ("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run")
TASK = "bridge_chip_ctc"


def lines(folder: Path | str, task: str = TASK) -> list[dict[str, Any]]:
    return outcomes(folder, task, "answer", "fault")


def result(task: str = TASK) -> dict[str, Any]:
    return result_of("run", task)


def manifest() -> dict[str, Any]:
    return json.loads(Path("run/run.json").read_text())


class Scripted(Engine):
    """Answers with the gold, in an order and with faults that a test sets."""

    window = 4
    seen: ClassVar[list[str]] = []
    wrong: ClassVar[dict[str, Fault]] = {}
    answer: ClassVar[Answer | None] = None
    last_first: ClassVar[bool] = False

    def run(self, feed, done):
        under_way = []
        while not feed.over or under_way:
            while len(under_way) < self.window and (request := feed.take()) is not None:
                under_way.append(request)
            if not under_way:
                feed.wait(0.01)
                continue
            request = under_way.pop(-1 if self.last_first else 0)
            self.seen.append(f"{request.task} {request.document}")
            fault = self.wrong.get(request.document)
            done(
                request,
                fault or self.answer or Answer(request.row["target"], "stop", Usage(7, 2), model="served"),
            )


@pytest.fixture
def engine(monkeypatch, chip_ctc):
    """The scripted engine in place of the real one; attributes are set by name."""
    monkeypatch.setattr(Scripted, "seen", [])
    monkeypatch.setattr(Scripted, "wrong", {})
    monkeypatch.setattr(chosen, "engine_of", lambda model, **_: Scripted())

    def like(**attributes: Any) -> type[Scripted]:
        for name, value in attributes.items():
            monkeypatch.setattr(Scripted, name, value)
        return Scripted

    return like


def test_a_run_leaves_results_samples_responses_and_a_manifest(medtasks, chip_ctc, tmp_path):
    outcome = medtasks(*CHIP_CTC)
    assert outcome.code == 0
    run = tmp_path / "run"
    assert result_of(run, TASK)["metrics"]["score"] == 1
    assert len(outcomes(run)) == 8
    assert len(samples_file(run, TASK).read_text().splitlines()) == 8
    results = results_of(run)
    assert results["results"][TASK]["acc,answer"] == 1
    loaded = results["configs"][TASK]["metadata"]["medtasks"]["loaded"]
    assert (loaded["origin"], loaded["instruction"], loaded["n_test"]) == ("local", "own", 8)
    assert "SAMPLE" not in outcome.text


def test_a_group_is_rolled_up_over_its_tasks_with_what_is_missing_in_sight(medtasks, chip_ctc):
    asked = ("run", "--model", "oracle", "--tasks", "bridge_zh", "--data", "local", "--output_path", "run")
    refused = medtasks(*asked, "--strict")
    assert refused.code == 2 and "data is missing and --strict was given" in refused.err
    outcome = medtasks(*asked)
    assert outcome.code == 1  # data is missing
    line = next(line for line in outcome.out.splitlines() if "bridge_zh" in line)
    n = len(registry().leaves("bridge_zh"))
    assert f"1/{n}" in line and "rows in part" in line
    assert f"no data for {n - 1} of {n} tasks" in outcome.err and outcome.err.count("files go to") == 5
    assert f"and {n - 6} more datasets; `medtasks data status TASK`" in outcome.err
    assert "1 of 1 tasks have a part of their suite's rows: bridge_chip_ctc" in outcome.err
    assert "the suite's own test part" not in outcome.err


def test_sample_rows_are_marked_in_every_table_and_file(medtasks, tmp_path):
    outcome = medtasks(*CHIP_CTC, "--data", "sample")
    assert outcome.out.startswith("SAMPLE DATA") and "done, SAMPLE score" in outcome.err
    assert results_of(tmp_path / "run")["results"][TASK]["SAMPLE_DATA,answer"] == 1


def test_the_number_of_shots_can_be_set_on_the_zero_shot_task(medtasks, chip_ctc, tmp_path):
    medtasks.done(*CHIP_CTC, "--num_fewshot", 3, "--apply_chat_template")
    sample = json.loads(samples_file(tmp_path / "run", TASK).read_text().splitlines()[0])
    assert sample["arguments"]["gen_args_0"]["arg_0"].count("[assistant]") == 3
    medtasks.done(*CHIP_CTC[:-1], "plain")
    table = medtasks("report", "run", "plain", "--published", "none").out
    rows = [line.split()[:2] for line in table.splitlines() if line.strip().startswith(TASK)]
    assert rows == [[f"{TASK},", "3-shot"], [TASK]]
    outcome = medtasks(*CHIP_CTC, "--num_fewshot", 7)
    assert outcome.code == 2 and "7 shots asked for, the few-shot pool has 5 rows" in outcome.err


def test_outcomes_are_stored_as_they_come_and_scored_in_the_order_of_the_documents(medtasks, engine):
    engine(last_first=True)
    assert medtasks(*CHIP_CTC).code == 0
    stored = [line["document"] for line in lines("run")]
    assert sorted(stored) == [f"test-{i}" for i in range(8)] != stored
    assert result()["metrics"]["score"] == 1
    samples = [json.loads(line) for line in samples_file("run", TASK).read_text().splitlines()]
    assert [sample["doc"]["id"] for sample in samples] == [f"test-{i}" for i in range(8)]
    assert [sample["request"] for sample in samples] == [
        next(line["key"] for line in lines("run") if line["document"] == sample["doc"]["id"])
        for sample in samples
    ]


def test_a_rescore_gives_the_same_files_prompts_included(medtasks, engine):
    medtasks(*CHIP_CTC, "--apply_chat_template")
    files = [results_file("run"), samples_file("run", TASK), Path(f"run/tasks/{TASK}.parquet")]
    before = [file.read_bytes() for file in files]
    assert b"[user]" in before[1]
    assert medtasks("rescore", "run").code == 0
    assert [file.read_bytes() for file in files] == before


def test_rows_that_change_and_change_back_get_their_own_answers(medtasks, engine, chip_ctc):
    from medtasks_ext.prompts import load

    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    first = path.read_text()
    rows = json.loads(first)
    medtasks(*CHIP_CTC)
    path.write_text(json.dumps([{**rows[0], "input": "另一条"}, *rows[1:]]))
    load._build.cache_clear()
    engine(answer=Answer("clinical trial criterion: 别的"))
    medtasks(*CHIP_CTC)
    assert len(lines("run")) == 9 and result()["metrics"]["score"] == 7 / 8
    path.write_text(first)
    load._build.cache_clear()
    medtasks(*CHIP_CTC)
    assert len(lines("run")) == 9 and result()["metrics"]["score"] == 1
    assert medtasks("rescore", "run").code == 0 and result()["metrics"]["score"] == 1


# ---------------------------------------------------------------------- faults

BUSY = Fault(FaultKind.BUSY, "HTTP 503", status=503, tries=5)


def test_a_fault_is_no_answer_is_counted_and_asked_again(medtasks, engine):
    engine(wrong={"test-2": BUSY, "test-5": Fault(FaultKind.REFUSED, "HTTP 400")})
    outcome = medtasks(*CHIP_CTC)
    assert outcome.code == 1
    assert "2 requests without an answer" in outcome.err
    assert TASK not in results_of("run")["results"] and "0 of 1 task scored, 1 unfinished" in outcome.out
    entry = manifest()["tasks"][TASK]
    assert entry["state"] == "incomplete" and entry["faults"] == {"busy": 1, "refused": 1}
    faults = outcomes("run", TASK, "fault")
    assert [line["document"] for line in faults] == ["test-2", "test-5"] and "text" not in faults[0]
    engine(wrong={}, seen=[])
    assert medtasks(*CHIP_CTC).code == 0
    assert Scripted.seen == [f"{TASK} test-2", f"{TASK} test-5"]
    assert result()["metrics"]["score"] == 1 and manifest()["tasks"][TASK]["generated"] == 2


@pytest.mark.parametrize("text", ["\ud83d", "\x00", "\u2028\u0085\r\n", "a" * 100_000, "\udc00\ud800 B", ""])
@pytest.mark.parametrize("task", ["bridge_mie", "medhelm_ehrsql"])
def test_any_answer_can_be_stored_and_scored(medtasks, engine, text, task):
    engine(answer=Answer(text))
    outcome = medtasks(
        "run", "--model", "oracle", "--data", "sample", "--tasks", task, "--output_path", "run"
    )
    assert outcome.code == 0, outcome.text
    # halves that meet are one character after reading, as JSON has it
    assert {line["text"] for line in lines("run", task)} == {json.loads(json.dumps(text))}
    assert medtasks("rescore", "run").code == 0


def test_connections_ports_and_batch_sizes_do_not_make_another_run(medtasks, engine):
    assert medtasks(*CHIP_CTC, "--model_args", "num_concurrent=4,timeout=9").code == 0
    again = medtasks(*CHIP_CTC, "--model_args", "num_concurrent=64,max_retries=3", "--batch_size", "8")
    assert again.code == 0 and "1 of 1 tasks are done already" in again.err
    other = medtasks(*CHIP_CTC, "--model_args", "revision=abc")
    assert other.code == 2 and "this folder holds a run with other settings" in other.err
    assert "--output_path" in other.err and len(manifest()["sessions"]) == 2


def test_answers_of_one_model_are_never_another_ones(medtasks, engine):
    assert medtasks(*CHIP_CTC, "--model_args", "pretrained=one").code == 0
    Path("run/run.json").unlink()
    Scripted.seen.clear()
    outcome = medtasks(*CHIP_CTC, "--model_args", "pretrained=other")
    assert outcome.code == 0 and len(Scripted.seen) == 8
    keys = [line["key"] for line in lines("run")]
    assert len(set(keys)) == 16


def test_a_damaged_manifest_is_named(medtasks, engine):
    medtasks(*CHIP_CTC)
    for content in ("[]", "{}", "{", '{"schema": 99}', '{"schema": 6, "identity": 5}'):
        for command in (("rescore", "run"), ("report", "run"), CHIP_CTC):
            Path("run/run.json").write_text(content)
            outcome = medtasks(*command)
            assert outcome.code == 2 and "run.json" in outcome.err and "Traceback" not in outcome.err, content


def test_a_changed_answer_stops_before_anything_is_overwritten(medtasks, engine):
    medtasks(*CHIP_CTC)
    path = Path("run/answers.jsonl")
    path.write_text(path.read_text().replace("年龄", "性别", 1))
    before = result()
    outcome = medtasks("rescore", "run")
    assert outcome.code == 1 and "answers.jsonl, line 1 is damaged" in outcome.err
    assert result() == before


def test_answers_that_are_lost_are_noticed_and_asked_again(medtasks, engine):
    medtasks(*CHIP_CTC)
    path = Path("run/answers.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    Scripted.seen.clear()
    outcome = medtasks(*CHIP_CTC)
    assert outcome.code == 0 and len(Scripted.seen) == 3
    assert "answers.jsonl holds no more 3 answers with which bridge_chip_ctc was finished" in outcome.err
    assert any("holds no more" in note for note in manifest()["notes"])


# ---------------------------------------------------------------------- processes

WORKER = """
import sys, threading
from medtasks_ext.engines import Answer
from medtasks_ext.engines import Engine
from medtasks_ext.run import lm
class Slow(Engine):
    window = 8
    def run(self, feed, done):
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(0.01)
                continue
            with open("asked", "a") as log:
                log.write(request.document + "\\n")
            sys.stdin.readline()
            done(request, Answer(request.row["target"]))
lm.engine_of = lambda model, **_: Slow()
from medtasks_ext.cli.main import main
sys.argv = ["medtasks", "run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run"]
main()
"""


@pytest.fixture
def worker(chip_ctc, tmp_path):
    """A run in a process of its own, which answers one request for each line that it is given."""
    started = []

    def start() -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str], n: int) -> None:
    assert process.stdin is not None
    process.stdin.write("\n" * n)
    process.stdin.flush()


def until_asked(process: subprocess.Popen[str], tmp_path, n: int) -> None:
    """Wait until the process has begun so many requests."""
    while len(asked(tmp_path)) < n:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def asked(tmp_path) -> list[str]:
    path = tmp_path / "asked"
    return path.read_text().split() if path.is_file() else []


def test_the_second_process_on_a_folder_asks_nothing(medtasks, worker, tmp_path):
    first = worker()
    until_asked(first, tmp_path, 1)
    outcome = medtasks(*CHIP_CTC)
    assert outcome.code == 2 and f"medtasks run works in this folder (process {first.pid} on" in outcome.err
    assert medtasks("rescore", "run").code == 2
    answer(first, 8)
    _, err = first.communicate()
    assert first.returncode == 0, err
    assert asked(tmp_path) == [f"test-{i}" for i in range(8)]
    assert "1 of 1 tasks are done already" in medtasks(*CHIP_CTC).err


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in (0, 7))])
def test_a_killed_run_loses_only_what_was_under_way(medtasks, worker, tmp_path, n):
    first = worker()
    answer(first, n)
    until_asked(first, tmp_path, n + 1)
    first.kill()
    first.communicate()
    assert len(lines(tmp_path / "run")) == n
    second = worker()
    answer(second, 8)
    _, err = second.communicate()
    assert second.returncode == 0, err
    assert len(asked(tmp_path)) == 8 + 1
    assert result_of(tmp_path / "run", TASK)["metrics"]["score"] == 1


def test_an_engine_that_dies_leaves_what_it_answered(medtasks, engine, monkeypatch):
    def dies(self, feed, done):
        for _ in range(3):
            while (request := feed.take()) is None:
                feed.wait(0.01)
            done(request, Answer(request.row["target"]))
        raise MedtasksError("the engine died", where="--model vllm", remedy="give it more memory")

    monkeypatch.setattr(Scripted, "run", dies)
    outcome = medtasks(*CHIP_CTC)
    assert outcome.code == 2 and "the engine died" in outcome.err and "give it more memory" in outcome.err
    assert len(lines("run")) == 3 and manifest()["tasks"][TASK]["generated"] == 3
    monkeypatch.undo()


def test_several_servers_answer_one_run(medtasks, chip_ctc):
    """Where they are, and how many, is no condition: one alone goes on with the same folder."""
    command = ("run", "--tasks", TASK, "--model", "local-chat-completions",
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
    outcome = medtasks("run", "--model", "oracle", "--tasks", TASK, "--data", "sample")
    assert outcome.code == 2 and "8 processes were started" in outcome.err
    for way in ("data_parallel_size", "servers with +", "other --tasks"):
        assert way in outcome.err
    assert not (tmp_path / "runs").exists()


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


@pytest.mark.long
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
    assert result_of(tmp_path / "run", TASK)["metrics"]["score"] == 1
    assert len({record["key"] for record in outcomes(tmp_path / "run")}) == 150
