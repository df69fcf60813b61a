"""`medtasks run --to-batch` and `--from-batch`: a run whose answers come back in files."""

import json
import random
import re
from pathlib import Path

import pytest

from medtasks_ext.run.store import Answers
from tests.conftest import outcomes
from tests.judge.server import Server
from tests.run_files import result_of, samples_file
from tests.runner.batch_provider import (
    Model,
    answered,
    conversation,
    expired,
    refused,
    request_lines,
    write_lines,
)

TASKS = ("bridge_chip_ctc", "bridge_mie")
ASKED = ("--tasks", ",".join(TASKS), "--data", "sample", "--apply_chat_template")
NAMED = ("--model", "local-chat-completions", "--model_args", "model=m")
FLAGS = (*ASKED, *NAMED, "--output_path", "run")


def asks(server: Server, *more: str) -> tuple[str, ...]:
    """The same model, asked over HTTP."""
    arguments = ("model=m", f"base_url={server.url}/chat/completions", *more)
    return ("--model", "local-chat-completions", "--model_args", ",".join(arguments), "--no-preflight")


@pytest.fixture
def written(medtasks, tmp_path):
    """The requests of two tasks, in a file."""
    outcome = medtasks("run", *FLAGS, "--to-batch", "requests.jsonl")
    assert outcome.code == 0, outcome.text
    return request_lines(tmp_path / "requests.jsonl")


@pytest.fixture
def model(medtasks, written, tmp_path):
    """What answers them."""
    assert medtasks("run", "--model", "oracle", *ASKED, "--output_path", "oracle").code == 0
    return Model(tmp_path / "oracle", tmp_path / "run", tmp_path / "requests.jsonl")


@pytest.fixture
def results(written, model):
    """A line of results for each request."""
    return [answered(line, model.completion(line["body"])) for line in written]


def state(folder: Path) -> dict[str, dict]:
    return json.loads((folder / "run.json").read_text())["tasks"]


def keys(folder: Path, kind: str = "answer") -> list[str]:
    return [row["key"] for row in outcomes(folder, "", kind)]


def scores(folder: Path) -> dict[str, object]:
    """Everything that scoring computes."""
    found = {}
    for task in TASKS:
        content = result_of(folder, task)
        found[task] = {name: content[name] for name in ("metrics", "intervals", "n", "cut", "tokens")}
        found[task, "samples"] = [
            (sample["doc"]["id"], sample["resps"], sample["arguments"])
            for sample in map(json.loads, samples_file(folder, task).read_bytes().splitlines())
        ]
    return found


# ---------------------------------------------------------------------- requests


def test_each_document_is_one_line_under_the_key_of_its_request(written, tmp_path):
    assert len(written) == 52 == len({line["custom_id"] for line in written})
    assert {(line["method"], line["url"]) for line in written} == {("POST", "/v1/chat/completions")}
    assert all(re.fullmatch(r"[0-9a-f]{32}", line["custom_id"]) for line in written)
    asked = outcomes(tmp_path / "run", "", "question")
    assert {row["key"] for row in asked} == {line["custom_id"] for line in written}
    assert len({(row["task"], row["document"]) for row in asked}) == 52
    assert {entry["state"] for entry in state(tmp_path / "run").values()} == {"waiting"}
    assert not outcomes(tmp_path / "run")


def test_the_bodies_are_those_that_a_run_sends(written, model, medtasks):
    with Server(model.script) as server:
        arguments = ("--model_args", f"model=m,base_url={server.url}/chat/completions,num_concurrent=4")
        assert (
            medtasks("run", *ASKED, *NAMED, *arguments, "--no-preflight", "--output_path", "asked").code == 0
        )
        sent = sorted(json.dumps(asked.body, sort_keys=True) for asked in server.asked)
    assert sorted(json.dumps(line["body"], sort_keys=True) for line in written) == sent


def test_no_server_is_asked_and_no_key_is_needed(medtasks, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    closed = "model=m,base_url=http://127.0.0.1:9/v1/chat/completions"
    for name, named in {"a": (*NAMED, "--model_args", closed), "b": ("--config", "openai")}.items():
        outcome = medtasks("run", *ASKED, *named, "--output_path", name, "--to-batch", f"{name}.jsonl")
        assert outcome.code == 0, outcome.text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "oracle"), "oracle is not asked in batches"),
        (("--model", "vllm"), "vllm is not asked in batches"),
        (("--model", "nobody"), "unknown model type 'nobody'"),
        (("--model", "local-chat-completions"), "no model is named"),
        ((*NAMED, "--max-cost", "1"), "is not for --max-cost"),
        ((*NAMED, "--ask", "likelihood"), "is not for --ask likelihood"),
        ((*NAMED, "--from-batch", "results.jsonl"), "is not for --from-batch"),
        ((*NAMED, "--to-batch", "."), "exists already"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(medtasks, tmp_path, more, message):
    outcome = medtasks("run", *ASKED, "--to-batch", "out.jsonl", *more, "--output_path", "run")
    assert outcome.code == 2 and message in outcome.err, outcome.text
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_model_of_conversations_needs_some(medtasks):
    outcome = medtasks("run", "--tasks", TASKS[0], "--data", "sample", *NAMED, "--to-batch", "out.jsonl")
    assert outcome.code == 2 and "add --apply_chat_template" in outcome.err


def test_a_folder_that_waits_for_results_takes_no_other_settings(written, medtasks, tmp_path):
    for more in (("--to-batch", "other.jsonl"), ()):
        outcome = medtasks("run", *FLAGS, "--gen_kwargs", "temperature=1", *more)
        assert outcome.code == 2 and "this folder holds a run with other settings" in outcome.err
    assert len(request_lines(tmp_path / "requests.jsonl")) == 52


def test_a_file_is_never_overwritten(written, medtasks, tmp_path):
    before = (tmp_path / "requests.jsonl").read_bytes()
    outcome = medtasks("run", *FLAGS, "--to-batch", "requests.jsonl")
    assert outcome.code == 2 and "requests.jsonl: exists already" in outcome.err
    assert (tmp_path / "requests.jsonl").read_bytes() == before


def test_a_file_keeps_to_the_limits_of_a_batch(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr("medtasks_ext.runner.batch.MOST_REQUESTS", 20)
    outcome = medtasks("run", *FLAGS, "--to-batch", "out.jsonl")
    assert outcome.code == 0, outcome.text
    files = [f"out{end}.jsonl" for end in ("", "-2", "-3")]
    assert [len(request_lines(tmp_path / name)) for name in files] == [20, 20, 12]
    assert all(f"{name}: " in outcome.err for name in files)
    monkeypatch.setattr("medtasks_ext.runner.batch.MOST_BYTES", 20_000)
    outcome = medtasks("run", *FLAGS, "--output_path", "small", "--to-batch", "small.jsonl")
    assert outcome.code == 0 and len(list(tmp_path.glob("small*.jsonl"))) > 3
    assert all(path.stat().st_size <= 20_000 for path in tmp_path.glob("small*.jsonl"))


# ---------------------------------------------------------------------- there and back


def test_results_in_any_order_and_several_files_give_what_an_unbroken_run_gives(
    results, model, medtasks, tmp_path
):
    random.Random(1).shuffle(results)
    files = [write_lines(tmp_path / f"results-{n}.jsonl", results[n::3]) for n in range(3)]
    outcome = medtasks("run", *FLAGS, "--from-batch", *files)
    assert outcome.code == 0, outcome.text
    assert "52 of 52 answers are new" in outcome.err
    with Server(model.script) as server:
        unbroken = medtasks("run", *ASKED, *asks(server), "--output_path", "unbroken")
    assert unbroken.code == 0 and unbroken.out == outcome.out
    assert scores(tmp_path / "run") == scores(tmp_path / "unbroken")
    assert all(0 < scores(tmp_path / "run")[task]["metrics"]["score"] < 1 for task in TASKS)
    entry = state(tmp_path / "run")["bridge_chip_ctc"]
    assert (entry["state"], entry["generated"]) == (
        "done",
        len(outcomes(tmp_path / "run", "bridge_chip_ctc")),
    )
    # hashed, and nothing left to ask
    assert medtasks("rescore", "run").code == 0
    again = medtasks("run", *FLAGS, "--to-batch", "again.jsonl")
    assert not (tmp_path / "again.jsonl").exists()
    assert again.code == 0 and "nothing is left to ask" in again.err and again.out == outcome.out


def test_an_answer_is_kept_with_what_the_provider_says_of_it(results, medtasks, tmp_path):
    body = results[0]["response"]["body"]
    body["choices"][0]["finish_reason"] = "length"
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 3}
    medtasks("run", *FLAGS, "--from-batch", write_lines(tmp_path / "results.jsonl", results))
    record = next(
        item for item in outcomes(tmp_path / "run") if item["key"] == results[0]["custom_id"]
    )  # fmt: skip
    assert (record["finish"], record["model"]) == ("length", "m-2026")
    assert record["request_id"] == results[0]["response"]["request_id"]
    assert record["usage"] == {"prompt": 10, "completion": 5, "reasoning": 3}
    task = result_of(tmp_path / "run", TASKS[0])
    assert task["conditions"]["served"] == ["m-2026"] and task["tokens"] is not None


def test_what_is_missing_is_named_and_written_again(results, written, medtasks, tmp_path):
    some = write_lines(tmp_path / "some.jsonl", results[:20])
    outcome = medtasks("run", *FLAGS, "--from-batch", some)
    assert outcome.code == 1
    assert "--to-batch FILE in place of --from-batch writes it again" in outcome.err
    for more in (("--to-batch", "again.jsonl"), ("--model_args", "model=m,base_url=http://127.0.0.1:9/v1")):
        refused = medtasks("run", *FLAGS, *more)  # it would be paid for twice
        assert refused.code == 2 and "requests.jsonl: holds 32 requests of this run" in refused.err
    (tmp_path / "requests.jsonl").unlink()
    again = medtasks("run", *FLAGS, "--to-batch", "again.jsonl")
    assert again.code == 0
    rest = request_lines(tmp_path / "again.jsonl")
    assert rest == written[20:]
    write_lines(tmp_path / "rest.jsonl", results[20:])
    assert medtasks("run", *FLAGS, "--from-batch", "rest.jsonl").code == 0
    assert len(keys(tmp_path / "run")) == 52 == len(set(keys(tmp_path / "run")))
    once_more = medtasks("run", *FLAGS, "--from-batch", some, "rest.jsonl")
    assert once_more.code == 0 and "0 of 52 answers are new" in once_more.err


def test_taking_results_can_be_broken_off_anywhere(results, medtasks, tmp_path, monkeypatch):
    write_lines(tmp_path / "results.jsonl", results)
    put, left = Answers.put, iter(range(30))

    def until_interrupted(self, *arguments, **named):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return put(self, *arguments, **named)

    monkeypatch.setattr(Answers, "put", until_interrupted)
    assert medtasks("run", *FLAGS, "--from-batch", "results.jsonl").code == 130
    assert len(keys(tmp_path / "run")) == 30
    monkeypatch.setattr(Answers, "put", put)
    outcome = medtasks("run", *FLAGS, "--from-batch", "results.jsonl")
    assert outcome.code == 0 and "22 of 52 answers are new" in outcome.err
    assert len(keys(tmp_path / "run")) == 52


def test_a_run_and_files_share_a_folder(results, model, written, medtasks, tmp_path):
    """Some answers come from files, some from a server that goes away, the rest from files again."""
    assert (
        medtasks("run", *FLAGS, "--from-batch", write_lines(tmp_path / "first.jsonl", results[:10])).code == 1
    )
    known = {conversation(line["body"]) for line in written[:10]}
    served = []

    def fails_half_way(asked, seen):
        served.append(conversation(asked.body))
        reply = model.script(asked, seen)
        return reply if len(served) <= 10 else type(reply)(status=400)

    (tmp_path / "requests.jsonl").unlink()
    with Server(fails_half_way) as server:
        outcome = medtasks("run", *ASKED, *asks(server, "max_retries=1"), "--output_path", "run")
    assert outcome.code == 1 and not known & set(served)
    answered_now = len(keys(tmp_path / "run"))
    assert answered_now >= 10
    medtasks("run", *FLAGS, "--to-batch", "rest.jsonl")
    rest = {line["custom_id"] for line in request_lines(tmp_path / "rest.jsonl")}
    assert rest == {line["custom_id"] for line in written} - set(keys(tmp_path / "run"))
    last = [line for line in results if line["custom_id"] in rest]
    assert medtasks("run", *FLAGS, "--from-batch", write_lines(tmp_path / "last.jsonl", last)).code == 0
    assert len(keys(tmp_path / "run")) == 52 == len(set(keys(tmp_path / "run")))


# ---------------------------------------------------------------------- what comes back may be anything


def test_lines_of_any_kind_are_named_and_faults_are_asked_again(results, written, medtasks, tmp_path):
    faults = [expired(written[0]), refused(written[1], 500, message="try later")]
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
    assert medtasks("run", *FLAGS, "--to-batch", "again.jsonl").code == 0
    assert request_lines(tmp_path / "again.jsonl") == written[:2]
    # a request that failed was asked again: both files may be given
    rest = write_lines(tmp_path / "rest.jsonl", results[:2])
    both = medtasks("run", *FLAGS, "--from-batch", write_lines(tmp_path / "faults.jsonl", faults), rest)
    assert both.code == 0, both.text
    assert {entry["state"] for entry in state(tmp_path / "run").values()} == {"done"}


def test_faults_that_come_first_keep_no_answer_away(results, written, medtasks, tmp_path):
    faults = [refused(line, 500, message="try later") for line in written[:40]]
    outcome = medtasks(
        "run", *FLAGS, "--from-batch", write_lines(tmp_path / "r.jsonl", faults + results[40:])
    )
    assert outcome.code == 1 and "12 of 12 answers are new" in outcome.err
    assert "stopped" not in outcome.err and len(keys(tmp_path / "run")) == 12


def test_a_file_of_requests_is_no_file_of_results(written, medtasks):
    outcome = medtasks("run", *FLAGS, "--from-batch", "requests.jsonl")
    assert outcome.code == 1 and "52 results: lines without a result" in outcome.err
    assert "not asked to the end" in outcome.err
    gone = medtasks("run", *FLAGS, "--from-batch", "nowhere.jsonl")
    assert gone.code == 2 and "nowhere.jsonl: no such file" in gone.err
