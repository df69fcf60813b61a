"""`medtasks run --to-batch` and `--from-batch`: answers that come back in files; and `--layout bridge`."""

import json
import random
import re
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.runner.asking import RunAsker
from tests.conftest import outcomes, read_json, write_jsonl
from tests.judge.server import Reply, Server
from tests.run_files import result_of, samples_of

TASKS = ("bridge_chip_ctc", "bridge_mie")
ASKED = ("--tasks", ",".join(TASKS), "--data", "sample", "--apply_chat_template")
NAMED = ("--model", "local-chat-completions", "--model_args", "model=m")
FLAGS = (*ASKED, *NAMED, "--output_path", "run")


def request_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def conversation(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def answered(line: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A line of OpenAI's output file."""
    response = {"status_code": 200, "request_id": f"req-{line['custom_id'][:8]}", "body": body}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}


def refused(line: dict[str, Any]) -> dict[str, Any]:
    """A line of OpenAI's error file."""
    response = {"status_code": 500, "request_id": "req-0", "body": {"error": {"message": "try later"}}}
    return {"id": "batch_req_2", "custom_id": line["custom_id"], "response": response, "error": None}


def expired(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a batch that took too long."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the end."}
    return {"id": "batch_req_3", "custom_id": line["custom_id"], "response": None, "error": error}


@pytest.fixture
def written(medtasks, tmp_path):
    """The requests of two tasks, in a file."""
    medtasks.done("run", *FLAGS, "--to-batch", "requests.jsonl")
    return request_lines(tmp_path / "requests.jsonl")


@pytest.fixture
def completions(medtasks, written, tmp_path):
    """By what a request says, the body of its reply: two of three documents get the gold."""
    medtasks.done("run", "--model", "oracle", *ASKED, "--output_path", "oracle")
    gold = {(row["task"], row["document"]): row["text"] for row in outcomes(tmp_path / "oracle")}
    bodies = {line["custom_id"]: line["body"] for line in written}
    places, made = Counter[str](), {}
    for asked in outcomes(tmp_path / "run", "", "question"):
        text = gold[asked["task"], asked["document"]] if places[asked["task"]] % 3 else "no idea"
        places[asked["task"]] += 1
        made[conversation(bodies[asked["key"]])] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "m-2026",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    return made


@pytest.fixture
def results(written, completions):
    """A line of results for each request."""
    return [answered(line, completions[conversation(line["body"])]) for line in written]


def states(folder: Path) -> set[str]:
    return {entry["state"] for entry in read_json(folder / "run.json")["tasks"].values()}


def keys(folder: Path, kind: str = "answer") -> list[str]:
    return [row["key"] for row in outcomes(folder, "", kind)]


def scores(folder: Path) -> dict[str, object]:
    """Everything that scoring computes."""
    found: dict[str, object] = {}
    for task in TASKS:
        content = result_of(folder, task)
        found[task] = {name: content[name] for name in ("metrics", "intervals", "n", "cut", "tokens")}
        samples = samples_of(folder, task)
        found[f"samples of {task}"] = [(one["doc"]["id"], one["resps"], one["arguments"]) for one in samples]
    return found


def test_each_document_is_one_line_under_the_key_of_its_request(written, medtasks, tmp_path):
    assert len(written) == 52 == len({line["custom_id"] for line in written})
    assert {(line["method"], line["url"]) for line in written} == {("POST", "/v1/chat/completions")}
    assert all(re.fullmatch(r"[0-9a-f]{32}", line["custom_id"]) for line in written)
    assert {*keys(tmp_path / "run", "question")} == {line["custom_id"] for line in written}
    assert states(tmp_path / "run") == {"waiting"} and not outcomes(tmp_path / "run")
    again = medtasks("run", *FLAGS, "--to-batch", "requests.jsonl")
    assert again.code == 2 and "requests.jsonl: exists already" in again.err
    assert request_lines(tmp_path / "requests.jsonl") == written


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "vllm"), "vllm is not asked in batches"),
        (("--model", "nobody"), "unknown model type 'nobody'"),
        (("--model", "local-chat-completions"), "no model is named"),
        ((*NAMED, "--max-cost", "1"), "is not for --max-cost"),
        ((*NAMED, "--from-batch", "results.jsonl"), "is not for --from-batch"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(medtasks, tmp_path, more, message):
    outcome = medtasks("run", *ASKED, "--to-batch", "out.jsonl", *more, "--output_path", "run")
    assert outcome.code == 2 and message in outcome.err, outcome.text
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_file_keeps_to_the_limits_of_a_batch(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr("medtasks_ext.runner.batch.MOST_REQUESTS", 20)
    outcome = medtasks.done("run", *FLAGS, "--to-batch", "out.jsonl")
    files = [f"out{end}.jsonl" for end in ("", "-2", "-3")]
    assert [len(request_lines(tmp_path / name)) for name in files] == [20, 20, 12]
    assert all(f"{name}: " in outcome.err for name in files)
    monkeypatch.setattr("medtasks_ext.runner.batch.MOST_BYTES", 20_000)
    medtasks.done("run", *FLAGS, "--output_path", "small", "--to-batch", "small.jsonl")
    assert len(list(tmp_path.glob("small*.jsonl"))) > 3
    assert all(path.stat().st_size <= 20_000 for path in tmp_path.glob("small*.jsonl"))


def test_a_task_that_waits_for_its_answers_holds_no_other_up(medtasks, monkeypatch):
    whole = RunAsker._together  # slow, so that each task is in the file before the next one begins
    monkeypatch.setattr(RunAsker, "_together", lambda self: (time.sleep(0.3) or lms for lms in whole(self)))
    monkeypatch.setattr("medtasks_ext.runner.asking.UNSCORED_SIZE", 0)
    assert "out.jsonl: " in medtasks.done("run", *FLAGS, "--to-batch", "out.jsonl").err


def test_results_in_any_order_and_several_files_give_what_an_unbroken_run_gives(
    results, completions, written, medtasks, tmp_path
):
    body = results[0]["response"]["body"]
    body["choices"][0]["finish_reason"] = "length"
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 3}
    first = results[0]["custom_id"]
    random.Random(1).shuffle(results)
    files = [write_jsonl(tmp_path / f"results-{n}.jsonl", results[n::3]) for n in range(3)]
    outcome = medtasks.done("run", *FLAGS, "--from-batch", *files)
    assert "52 of 52 answers are new" in outcome.err
    with Server(lambda asked, seen: Reply(body=json.dumps(completions[conversation(asked.body)]))) as server:
        address = f"model=m,base_url={server.url}/chat/completions"
        unbroken = medtasks.done(
            "run", *ASKED, *NAMED[:-1], address, "--no-preflight", "--output_path", "unbroken"
        )
        sent = sorted(json.dumps(asked.body, sort_keys=True) for asked in server.asked)
    assert sorted(json.dumps(line["body"], sort_keys=True) for line in written) == sent
    assert unbroken.out == outcome.out and scores(tmp_path / "run") == scores(tmp_path / "unbroken")
    assert all(0 < result_of(tmp_path / "run", task)["metrics"]["score"] < 1 for task in TASKS)
    assert states(tmp_path / "run") == {"done"}
    # what the provider says of an answer is kept
    (record,) = (item for item in outcomes(tmp_path / "run") if item["key"] == first)
    assert (record["finish"], record["model"]) == ("length", "m-2026")
    assert record["request_id"] == f"req-{first[:8]}"
    assert record["usage"] == {"prompt": 10, "completion": 5, "reasoning": 3}
    assert result_of(tmp_path / "run", TASKS[0])["conditions"]["served"] == ["m-2026"]
    # hashed, and nothing left to ask
    medtasks.done("rescore", "run")
    again = medtasks.done("run", *FLAGS, "--to-batch", "again.jsonl")
    assert not (tmp_path / "again.jsonl").exists()
    assert "nothing is left to ask" in again.err and again.out == outcome.out


def test_what_is_missing_is_named_and_written_again(results, written, medtasks, tmp_path):
    some = write_jsonl(tmp_path / "some.jsonl", results[:20])
    outcome = medtasks("run", *FLAGS, "--from-batch", some)
    assert outcome.code == 1
    assert "--to-batch FILE in place of --from-batch writes it again" in outcome.err
    for more in (("--to-batch", "again.jsonl"), ("--model_args", "model=m,base_url=http://127.0.0.1:9/v1")):
        refused = medtasks("run", *FLAGS, *more)  # it would be paid for twice
        assert refused.code == 2 and "requests.jsonl: holds 32 requests of this run" in refused.err
    (tmp_path / "requests.jsonl").unlink()
    medtasks.done("run", *FLAGS, "--to-batch", "again.jsonl")
    assert request_lines(tmp_path / "again.jsonl") == written[20:]
    medtasks.done("run", *FLAGS, "--from-batch", write_jsonl(tmp_path / "rest.jsonl", results[20:]))
    assert len(keys(tmp_path / "run")) == 52 == len(set(keys(tmp_path / "run")))
    once_more = medtasks.done("run", *FLAGS, "--from-batch", some, "rest.jsonl")
    assert "0 of 52 answers are new" in once_more.err


def test_lines_of_any_kind_are_named_and_faults_are_asked_again(results, written, medtasks, tmp_path):
    faults = [expired(written[0]), refused(written[1])]
    foreign = {**results[2], "custom_id": "0" * 32}
    twice = {**results[3], "response": {**results[3]["response"], "body": results[4]["response"]["body"]}}
    lines = [*map(json.dumps, [*faults, foreign, *results[2:], twice]), '{"custom_id": "cut', "[]", "{}"]
    (tmp_path / "results.jsonl").write_text("\n".join(lines))
    outcome = medtasks("run", *FLAGS, "--from-batch", "results.jsonl")
    assert outcome.code == 1 and "50 of 51 answers are new" in outcome.err
    for line in (
        "1 results: the batch failed, batch_expired",
        "1 results: HTTP 500",
        "1 results: answers that came twice",
        "1 results: answers to other requests",
        "3 results: lines without a result",
    ):
        assert line in outcome.err
    assert len(keys(tmp_path / "run")) == 50
    medtasks.done("run", *FLAGS, "--to-batch", "again.jsonl")
    assert request_lines(tmp_path / "again.jsonl") == written[:2]
    # a request that failed was asked again: both files may be given
    rest = write_jsonl(tmp_path / "rest.jsonl", results[:2])
    medtasks.done("run", *FLAGS, "--from-batch", write_jsonl(tmp_path / "faults.jsonl", faults), rest)
    assert states(tmp_path / "run") == {"done"}


RUN = ("run", "--model", "oracle", "--output_path", "run", "--tasks")


def test_each_strategy_is_written_where_the_official_code_would_write_it(medtasks, chip_ctc, tmp_path):
    medtasks.done(*RUN, ",".join(f"bridge_chip_ctc{suffix}" for suffix in ("", "_cot", "_5shot")))
    medtasks.done("card", "run", "--layout", "bridge", "-o", "out", "--parts")
    for mode in ("direct", "cot", "direct-5-shot"):
        path = tmp_path / "out/result/CHIP-CTC/oracle" / f"CHIP-CTC-{mode}-greedy-42.result.json"
        rows = json.loads(path.read_text())
        assert len(rows) == 8
        assert " ".join(sorted(rows[0])) == (
            "id input instruction language notes output pred split task task type"
        )
        assert rows[0]["id"] == "test-0" and rows[0]["input"] == "入组标准第0条"
        assert rows[0]["pred"].endswith(rows[0]["output"])


def test_a_dataset_that_is_not_the_papers_is_named(medtasks, data_dir, tmp_path, monkeypatch):
    built_in, root = tasks_folder() / "bridge", tmp_path / "tasks" / "bridge"
    shutil.copytree(built_in / "mednli", root / "later")
    shutil.copy(built_in / "suite.yaml", root)
    file = root / "later" / "task.yaml"
    said = file.read_text().replace("mednli\n", "later\n")
    columns = "rows:\n  schemas:\n    - columns: [id, input, output]\n"
    file.write_text(said.replace("rows:\n", columns, 1))
    rows = data_dir / "bridge" / "later" / "test.jsonl"
    rows.parent.mkdir(parents=True)
    shutil.copy(built_in / "mednli" / "sample.jsonl", rows)
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root.parent))
    medtasks(*RUN, "bridge_later")
    outcome = medtasks("card", "run", "--layout", "bridge", "-o", "out", "--parts")
    assert outcome.code == 2 and "bridge_later is none of the leaderboard's tasks" in outcome.err
