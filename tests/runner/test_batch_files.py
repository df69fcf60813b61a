"""`medtasks batch out` and `medtasks batch in`: a run whose answers come back in files."""

import json
import random
import re
from pathlib import Path

import pytest

from medtasks_ext.engines import batch as batch_lines
from tests.judge.server import Server
from tests.runner.batch_provider import (
    BatchServer,
    Model,
    answered,
    conversation,
    expired,
    refused,
    request_lines,
    through_the_interface,
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
    outcome = medtasks("batch", "out", *FLAGS, "-o", "requests.jsonl")
    assert outcome.code == 0, outcome.text
    return request_lines(tmp_path / "requests.jsonl")


@pytest.fixture
def model(medtasks, written, tmp_path):
    """What answers them."""
    assert medtasks("run", "--model", "oracle", *ASKED, "--output_path", "oracle").code == 0
    return Model(tmp_path / "oracle", tmp_path / "run" / "prompts")


@pytest.fixture
def results(written, model):
    """A line of results for each request."""
    return [answered(line, model.completion(line["body"])) for line in written]


def state(folder: Path) -> dict[str, dict]:
    return json.loads((folder / "run.json").read_text())["tasks"]


def stored(folder: Path) -> dict[str, list[dict]]:
    return {
        task: [json.loads(line) for line in path.read_bytes().splitlines()]
        for task in TASKS
        if (path := folder / "responses" / f"{task}.jsonl").is_file()
    }


def keys(folder: Path, kind: str = "response") -> list[str]:
    return [record["key"] for records in stored(folder).values() for record in records if kind in record]


def scores(folder: Path) -> dict[str, object]:
    """Everything that scoring computes."""
    found = {}
    for task in TASKS:
        content = json.loads((folder / "tasks" / f"{task}.json").read_text())
        found[task] = {name: content[name] for name in ("metrics", "intervals", "n", "cut", "tokens")}
        found[task, "samples"] = [
            (sample["doc"]["id"], sample["resps"], sample["arguments"])
            for sample in map(json.loads, (folder / f"samples_{task}.jsonl").read_bytes().splitlines())
        ]
    return found


# ---------------------------------------------------------------------- requests


def test_each_document_is_one_line_under_the_key_of_its_request(written, tmp_path):
    assert len(written) == 52 == len({line["custom_id"] for line in written})
    assert {(line["method"], line["url"]) for line in written} == {("POST", "/v1/chat/completions")}
    assert all(re.fullmatch(r"[0-9a-f]{32}", line["custom_id"]) for line in written)
    prompts = {
        record["key"]: record["prompt"]
        for task in TASKS
        for record in map(
            json.loads, (tmp_path / "run" / "prompts" / f"{task}.jsonl").read_bytes().splitlines()
        )
    }
    assert {line["custom_id"]: line["body"]["messages"] for line in written} == prompts
    assert {entry["state"] for entry in state(tmp_path / "run").values()} == {"waiting"}
    assert not (tmp_path / "run" / "responses").exists()


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
    outcome = medtasks("batch", "out", *ASKED, *NAMED, "--model_args", closed, "--output_path", "a")
    assert outcome.code == 0, outcome.text
    assert medtasks("batch", "out", *ASKED, "--config", "openai", "--output_path", "b").code == 0


def test_what_follows_is_printed_to_be_copied(medtasks):
    own = medtasks("batch", "out", *FLAGS, "-o", "to ask.jsonl").out
    assert "52 requests of 2 tasks in 1 file:" in own and "  to ask.jsonl: 52 requests, " in own
    assert "  vllm run-batch -i 'to ask.jsonl' -o 'to ask.results.jsonl' --model m\n" in own
    assert "  medtasks batch in run 'to ask.results.jsonl'\n" in own
    theirs = medtasks("batch", "out", *ASKED, "--config", "openai", "--output_path", "theirs").out
    assert "curl https://api.openai.com/v1/files" in theirs and "-F file=@requests.jsonl" in theirs
    assert '"endpoint": "/v1/chat/completions"' in theirs and "vllm" not in theirs


def test_the_price_is_said_as_it_is_and_as_a_batch(medtasks):
    outcome = medtasks("batch", "out", *ASKED, "--config", "openai", "--output_path", "run")
    said = re.search(
        r"about ([\d.]+) USD for the prompts, at most ([\d.]+) USD with the answers; "
        r"as a batch ([\d.]+) and ([\d.]+) USD", outcome.out
    )  # fmt: skip
    full, most, half, half_of_most = map(float, said.groups())
    assert half == pytest.approx(full / 2, abs=0.01) and half_of_most == pytest.approx(most / 2, abs=0.01)
    assert most == pytest.approx(full + 52 * 3072 * 10 / 1e6, abs=0.01)


def test_files_keep_the_limits_of_providers_and_make_way_for_the_next(medtasks, monkeypatch, tmp_path):
    monkeypatch.setattr(batch_lines, "MOST_REQUESTS", 20)
    outcome = medtasks("batch", "out", *FLAGS)
    names = [f"requests-0000{n}-of-00003.jsonl" for n in (1, 2, 3)]
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == names
    assert [len(request_lines(tmp_path / name)) for name in names] == [20, 20, 12]
    assert all(name in outcome.out for name in names)
    loop = 'do vllm run-batch -i "$part" -o "${part%.jsonl}.results.jsonl" --model m; done'
    assert f"  for part in requests-*-of-00003.jsonl; {loop}\n" in outcome.out
    assert "medtasks batch in run requests-*-of-00003.results.jsonl\n" in outcome.out
    monkeypatch.setattr(batch_lines, "MOST_REQUESTS", 50_000)
    (tmp_path / "requests-mine.jsonl").write_text("mine")
    size = sum((tmp_path / name).stat().st_size for name in names)
    monkeypatch.setattr(batch_lines, "MOST_BYTES", size // 2 + 5000)
    medtasks("batch", "out", *FLAGS)
    found = sorted(tmp_path.glob("*.jsonl"))
    assert [path.name for path in found] == [*(f"requests-0000{n}-of-00002.jsonl" for n in (1, 2)),
                                             "requests-mine.jsonl"]  # fmt: skip
    assert all(path.stat().st_size <= size // 2 + 5000 for path in found)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "oracle"), "oracle is not asked in batches"),
        (("--model", "vllm"), "vllm is not asked in batches"),
        (("--model", "nobody"), "nobody is not asked in batches"),
        (("--model", "local-chat-completions"), "no model is named"),
        ((*NAMED, "--use_cache", "x"), "--use_cache is not for `medtasks batch out`"),
        ((*NAMED, "-o", "."), "is a folder"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(medtasks, tmp_path, more, message):
    outcome = medtasks("batch", "out", *ASKED, *more, "--output_path", "run")
    assert outcome.code == 2 and message in outcome.err, outcome.text
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_model_of_conversations_needs_some(medtasks):
    outcome = medtasks("batch", "out", "--tasks", TASKS[0], "--data", "sample", *NAMED)
    assert outcome.code == 2 and "add --apply_chat_template" in outcome.err


def test_a_folder_that_waits_for_results_takes_no_other_settings(written, medtasks, tmp_path):
    for command in ("batch out", "run"):
        outcome = medtasks(*command.split(), *FLAGS, "--gen_kwargs", "temperature=1")
        assert outcome.code == 2 and "this folder holds a run with other settings" in outcome.err
    assert len(request_lines(tmp_path / "requests.jsonl")) == 52


# ---------------------------------------------------------------------- there and back


def test_results_in_any_order_and_several_files_give_what_an_unbroken_run_gives(
    results, model, medtasks, tmp_path
):
    random.Random(1).shuffle(results)
    files = [write_lines(tmp_path / f"results-{n}.jsonl", results[n::3]) for n in range(3)]
    outcome = medtasks("batch", "in", "run", *files)
    assert outcome.code == 0, outcome.text
    assert "results-0.jsonl: 18 new answers" in outcome.err
    with Server(model.script) as server:
        unbroken = medtasks("run", *ASKED, *asks(server), "--output_path", "unbroken")
    assert unbroken.code == 0 and unbroken.out == outcome.out
    assert scores(tmp_path / "run") == scores(tmp_path / "unbroken")
    assert all(0 < scores(tmp_path / "run")[task]["metrics"]["score"] < 1 for task in TASKS)
    entry = state(tmp_path / "run")["bridge_chip_ctc"]
    assert (entry["state"], entry["generated"]) == ("done", len(stored(tmp_path / "run")["bridge_chip_ctc"]))
    # sealed, chained, and nothing left to ask
    assert medtasks("rescore", "run").code == 0
    again = medtasks("batch", "out", *FLAGS)
    assert again.code == 0 and "nothing is left to ask" in again.err and again.out == outcome.out


def test_an_answer_is_kept_with_what_the_provider_says_of_it(results, medtasks, tmp_path):
    body = results[0]["response"]["body"]
    body["choices"][0]["finish_reason"] = "length"
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 3}
    medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", results))
    record = next(
        item for items in stored(tmp_path / "run").values() for item in items
        if item["key"] == results[0]["custom_id"]
    )  # fmt: skip
    assert (record["finish"], record["model"]) == ("length", "m-2026")
    assert record["request_id"] == results[0]["response"]["request_id"]
    assert record["usage"] == {"prompt": 10, "completion": 5, "reasoning": 3}
    task = json.loads((tmp_path / "run" / "tasks" / f"{TASKS[0]}.json").read_text())
    assert task["conditions"]["observed"]["served"] == ["m-2026"] and task["tokens"] is not None


def test_what_is_missing_is_named_and_written_again(results, written, medtasks, tmp_path):
    some = write_lines(tmp_path / "some.jsonl", results[:20])
    outcome = medtasks("batch", "in", "run", some)
    assert outcome.code == 1
    assert "missing: 32 requests without a result" in outcome.err
    assert "the same `medtasks batch out` command writes them again" in outcome.err
    again = medtasks("batch", "out", *FLAGS, "-o", "again.jsonl")
    assert again.code == 0
    rest = request_lines(tmp_path / "again.jsonl")
    assert rest == written[20:]
    write_lines(tmp_path / "rest.jsonl", results[20:])
    assert medtasks("batch", "in", "run", "rest.jsonl").code == 0
    assert len(keys(tmp_path / "run")) == 52 == len(set(keys(tmp_path / "run")))


def test_taking_results_can_be_broken_off_anywhere(results, medtasks, tmp_path, monkeypatch):
    from medtasks_ext.runs.outcomes import OutcomeLog

    write_lines(tmp_path / "results.jsonl", results)
    add, left = OutcomeLog.add, iter(range(30))

    def until_interrupted(self, *arguments, **named):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return add(self, *arguments, **named)

    monkeypatch.setattr(OutcomeLog, "add", until_interrupted)
    assert medtasks("batch", "in", "run", "results.jsonl").code == 130
    assert len(keys(tmp_path / "run")) == 30
    monkeypatch.setattr(OutcomeLog, "add", add)
    outcome = medtasks("batch", "in", "run", "results.jsonl")
    assert outcome.code == 0 and "22 new answers, 30 stored before" in outcome.err
    assert len(keys(tmp_path / "run")) == 52


def test_writing_requests_can_be_broken_off_and_leaves_no_part_of_a_file(medtasks, tmp_path, monkeypatch):
    from medtasks_ext.engines.batch import BatchFiles

    add, left = BatchFiles.add, iter(range(30))

    def until_interrupted(self, line):
        if next(left, None) is None:
            raise KeyboardInterrupt
        add(self, line)

    monkeypatch.setattr(BatchFiles, "add", until_interrupted)
    assert medtasks("batch", "out", *FLAGS).code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    monkeypatch.setattr(BatchFiles, "add", add)
    assert medtasks("batch", "out", *FLAGS).code == 0
    assert len(request_lines(tmp_path / "requests.jsonl")) == 52


def test_a_run_and_files_share_a_folder(results, model, written, medtasks, tmp_path):
    """Some answers come from files, some from a server that goes away, the rest from files again."""
    assert medtasks("batch", "in", "run", write_lines(tmp_path / "first.jsonl", results[:10])).code == 1
    known = {conversation(line["body"]) for line in written[:10]}
    served = []

    def fails_half_way(asked, seen):
        served.append(conversation(asked.body))
        reply = model.script(asked, seen)
        return reply if len(served) <= 10 else type(reply)(status=400)

    with Server(fails_half_way) as server:
        outcome = medtasks("run", *ASKED, *asks(server, "max_retries=1"), "--output_path", "run")
    assert outcome.code == 1 and not known & set(served)
    answered_now = len(keys(tmp_path / "run"))
    assert answered_now >= 10
    medtasks("batch", "out", *FLAGS, "-o", "rest.jsonl")
    rest = {line["custom_id"] for line in request_lines(tmp_path / "rest.jsonl")}
    assert rest == {line["custom_id"] for line in written} - set(keys(tmp_path / "run"))
    last = [line for line in results if line["custom_id"] in rest]
    assert medtasks("batch", "in", "run", write_lines(tmp_path / "last.jsonl", last)).code == 0
    assert len(keys(tmp_path / "run")) == 52 == len(set(keys(tmp_path / "run")))


def test_openais_protocol_from_the_upload_to_the_error_file(written, model, medtasks, tmp_path):
    with BatchServer(model.completion) as server:
        files = through_the_interface(server.url, tmp_path / "requests.jsonl", tmp_path)
        outcome = medtasks("batch", "in", "run", *files)
        assert outcome.code == 1 and "missing: 18 requests failed: HTTP 500: try later" in outcome.err
        for _ in range(5):
            medtasks("batch", "out", *FLAGS)
            files = through_the_interface(server.url, tmp_path / "requests.jsonl", tmp_path)
            server.complete, former = model.completion, server.complete
            if (outcome := medtasks("batch", "in", "run", *files)).code == 0:
                break
    assert len(keys(tmp_path / "run")) >= 50
    assert former == model.completion


# ---------------------------------------------------------------------- what comes back may be anything


def test_faults_are_stored_by_kind_and_asked_again(results, written, medtasks, tmp_path):
    results[0] = expired(written[0])
    results[1] = refused(written[1], 400, code="context_length_exceeded", message="too long")
    results[2] = refused(written[2], 429, message="Rate limit reached")
    results[3] = refused(written[3], 401, message="Incorrect API key")
    results[4]["response"] = {"status_code": 400, "request_id": "x", "body": None}  # as vLLM writes it
    results[4]["error"] = {"error": {"message": "not so", "type": "BadRequestError", "code": 400}}
    results[5]["response"]["body"] = {"error": {"message": "upstream died"}}
    results[6]["response"]["body"]["choices"][0]["message"]["content"] = None
    results[7] = {**results[7], "response": None, "error": {"code": "server_error", "message": "oops"}}
    outcome = medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", results))
    assert outcome.code == 1 and "44 new answers, 8 new faults" in outcome.err
    faults = {
        record["key"]: record["fault"]
        for records in stored(tmp_path / "run").values() for record in records if "fault" in record
    }  # fmt: skip
    assert [faults[line["custom_id"]] for line in written[:8]] == [
        "timeout", "too_long", "busy", "key", "refused", "malformed", "malformed", "engine"
    ]  # fmt: skip
    assert "missing: 1 request failed: the batch expired before this request was worked on" in outcome.err
    assert "HTTP 400: not so" in outcome.err
    first = {name for name, entry in state(tmp_path / "run").items() if entry["state"] == "incomplete"}
    assert first and sum(sum(state(tmp_path / "run")[name]["faults"].values()) for name in first) == 8
    medtasks("batch", "out", *FLAGS, "-o", "again.jsonl")
    assert request_lines(tmp_path / "again.jsonl") == written[:8]


def test_an_error_file_that_comes_again_is_stored_once_and_an_answer_stands_in_for_a_fault(
    results, written, medtasks, tmp_path
):
    errors = write_lines(tmp_path / "errors.jsonl", [expired(line) for line in written[:5]])
    output = write_lines(tmp_path / "output.jsonl", results[5:])
    assert medtasks("batch", "in", "run", errors, output).code == 1
    again = medtasks("batch", "in", "run", errors)
    assert "errors.jsonl: 0 new answers, 5 stored before" in again.err
    assert len(keys(tmp_path / "run", "fault")) == 5
    late = write_lines(tmp_path / "late.jsonl", results[:5])
    assert medtasks("batch", "in", "run", errors, late).code == 0
    assert len(keys(tmp_path / "run")) == 52


def test_a_result_that_comes_twice_counts_once(results, medtasks, tmp_path):
    other = json.loads(json.dumps(results[1]))
    other["response"]["body"]["choices"][0]["message"]["content"] = "something else"
    write_lines(tmp_path / "results.jsonl", [*results, results[0], other])
    outcome = medtasks("batch", "in", "run", "results.jsonl", "results.jsonl")
    assert outcome.code == 0
    assert "results.jsonl: 52 new answers, 1 repeated" in outcome.err
    assert "1 results with another content than before in this call; the first counts" in outcome.err
    assert other["custom_id"] in outcome.err
    assert len(keys(tmp_path / "run")) == 52
    kept = [record for records in stored(tmp_path / "run").values() for record in records]
    assert all(record["response"] != "something else" for record in kept)
    again = medtasks("batch", "in", "run", "results.jsonl")
    assert again.code == 0 and "0 new answers, 54 stored before" in again.err


def test_a_file_of_another_run_is_refused_before_anything_is_stored(results, medtasks, tmp_path):
    foreign = [{**line, "custom_id": f"request-{n}"} for n, line in enumerate(results)]
    good = write_lines(tmp_path / "good.jsonl", results[:5])
    outcome = medtasks("batch", "in", "run", good, write_lines(tmp_path / "foreign.jsonl", foreign))
    assert outcome.code == 2 and "foreign.jsonl: none of its 52 results is of the run in run" in outcome.err
    assert not (tmp_path / "run" / "responses").exists()
    mixed = write_lines(tmp_path / "mixed.jsonl", [*foreign[:7], *results])
    outcome = medtasks("batch", "in", "run", mixed)
    assert outcome.code == 1 and len(keys(tmp_path / "run")) == 52
    assert "7 results of other requests: request-0, request-1" in outcome.err and "2 more" in outcome.err


def test_broken_lines_are_named_and_the_others_taken(results, medtasks, tmp_path):
    lines = [json.dumps(line) for line in results]
    lines[3] = lines[3][:50]
    lines[4] = "<html>Bad gateway</html>"
    lines[5] = json.dumps({"custom_id": results[5]["custom_id"], "response": None, "error": None})
    lines[6] = json.dumps({"response": results[6]["response"]})
    lines[7] = '["a list"]'
    content = "\ufeff" + "\r\n".join([*lines[:-1], "", lines[-1][:40]])
    (tmp_path / "results.jsonl").write_bytes(content.encode())
    outcome = medtasks("batch", "in", "run", "results.jsonl")
    assert outcome.code == 1 and "46 new answers" in outcome.err
    assert "results.jsonl: 6 lines that hold no result: line 4 is cut short, line 5 is no JSON" in outcome.err
    assert "line 6 has neither a response nor an error, line 7 has no custom_id" in outcome.err
    assert "missing: 6 requests without a result" in outcome.err and "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        ("requests", "holds requests"),
        ("folder", "is no plain file"),
    ],
)
def test_a_file_that_is_none_of_results_is_refused(written, medtasks, tmp_path, content, message):
    path = tmp_path / "given.jsonl"
    if content == "requests":
        write_lines(path, written)
    elif content == "folder":
        path.mkdir()
    outcome = medtasks("batch", "in", "run", path)
    assert outcome.code == 2 and message in outcome.err and "given.jsonl" in outcome.err


def test_an_empty_file_says_that_it_is(written, medtasks, tmp_path):
    (tmp_path / "errors.jsonl").write_text("")
    outcome = medtasks("batch", "in", "run", "errors.jsonl")
    assert outcome.code == 1 and "errors.jsonl: 0 new answers" in outcome.err


@pytest.mark.parametrize("folder", ["nothing", "oracle"])
def test_results_go_to_a_run_that_was_written_to_files(medtasks, tmp_path, folder):
    if folder == "oracle":
        medtasks("run", "--model", "oracle", *ASKED, "--output_path", folder)
    write_lines(tmp_path / "results.jsonl", [answered({"custom_id": "x"}, {})])
    outcome = medtasks("batch", "in", folder, "results.jsonl")
    assert outcome.code == 2
    assert ("no such file" if folder == "nothing" else "oracle is not asked in batches") in outcome.err


def test_rows_that_are_not_public_are_not_quoted_by_the_provider(chip_ctc, medtasks, tmp_path, monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    flags = ("--tasks", "bridge_chip_ctc", "--apply_chat_template", *NAMED, "--output_path", "run")
    assert medtasks("batch", "out", *flags).code == 0
    lines = request_lines(tmp_path / "requests.jsonl")
    told = [refused(line, 400, type="invalid_request_error", message="Mr Doe has HIV") for line in lines]
    outcome = medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", told))
    assert "HTTP 400, invalid_request_error" in outcome.err and "Doe" not in outcome.text
    everything = "".join(path.read_text() for path in (tmp_path / "run").rglob("*.json*"))
    assert "Doe" not in everything


# ---------------------------------------------------------------------- other interfaces


def test_text_completions(medtasks, tmp_path):
    flags = ("--tasks", TASKS[0], "--data", "sample", "--output_path", "run", "--model", "local-completions",
             "--model_args", "model=m,tokenizer_backend=None,tokenized_requests=False")  # fmt: skip
    outcome = medtasks("batch", "out", *flags)
    assert outcome.code == 0, outcome.text
    assert "`vllm run-batch` takes conversations alone" in outcome.out
    lines = request_lines(tmp_path / "requests.jsonl")
    assert {line["url"] for line in lines} == {"/v1/completions"}
    assert all(isinstance(line["body"]["prompt"], str) for line in lines)
    choice = {"index": 0, "text": "clinical trial criterion: 年龄", "finish_reason": "stop"}
    found = [answered(line, {"choices": [choice]}) for line in lines]
    assert medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", found)).code == 0
    assert stored(tmp_path / "run")[TASKS[0]][0]["response"] == "clinical trial criterion: 年龄"


def test_anthropics_batches(medtasks, tmp_path):
    flags = ("--tasks", TASKS[0], "--data", "sample", "--config", "anthropic", "--output_path", "run")
    outcome = medtasks("batch", "out", *flags)
    assert outcome.code == 0, outcome.text
    assert "  jq -cs '{requests: .}' requests.jsonl | curl https://api.anthropic.com/v1/messages/batches" in (
        outcome.out
    )
    lines = request_lines(tmp_path / "requests.jsonl")
    assert all(set(line) == {"custom_id", "params"} and line["params"]["max_tokens"] for line in lines)
    message = {"id": "msg_1", "type": "message", "model": "claude", "stop_reason": "end_turn",
               "content": [{"type": "text", "text": "clinical trial criterion: 年龄"}],
               "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip
    kinds = [{"type": "succeeded", "message": message}] * len(lines)
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "too many words"}}
    kinds[:3] = [{"type": "expired"}, {"type": "canceled"}, {"type": "errored", "error": error}]
    ids = [line["custom_id"] for line in lines]
    found = [{"custom_id": name, "result": kind} for name, kind in zip(ids, kinds, strict=True)]
    outcome = medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", found))
    assert outcome.code == 1 and f"{len(lines) - 3} new answers, 3 new faults" in outcome.err
    assert "the batch failed: too many words" in outcome.err and "the batch was cancelled" in outcome.err
    medtasks("batch", "out", *flags)
    assert request_lines(tmp_path / "requests.jsonl") == lines[:3]
    rest = [{"custom_id": name, "result": {"type": "succeeded", "message": message}} for name in ids[:3]]
    assert medtasks("batch", "in", "run", write_lines(tmp_path / "rest.jsonl", rest)).code == 0
    record = stored(tmp_path / "run")[TASKS[0]][-1]
    assert (record["finish"], record["usage"]) == ("stop", {"prompt": 10, "completion": 5})


def test_reasoning_before_the_mark_is_left_out_as_in_a_run(medtasks, tmp_path):
    flags = ("--tasks", TASKS[0], "--data", "sample", "--apply_chat_template", "--output_path", "run")
    flags += ("--model", "local-chat-completions", "--model_args", "model=m,think_end_token=</think>")
    medtasks("batch", "out", *flags)
    lines = request_lines(tmp_path / "requests.jsonl")
    choice = {"index": 0, "message": {"content": "hm</think>clinical trial criterion: 年龄"}}
    found = [answered(line, {"choices": [choice]}) for line in lines]
    assert medtasks("batch", "in", "run", write_lines(tmp_path / "results.jsonl", found)).code == 0
    assert {item["response"] for item in stored(tmp_path / "run")[TASKS[0]]} == {
        "clinical trial criterion: 年龄"
    }


def test_half_of_a_surrogate_pair_makes_no_line_that_a_provider_refuses(data_dir, medtasks, tmp_path):
    row = {"task": "CHIP-CTC", "language": "zh", "id": "test-1", "split": "test", "input": "标准 \ud83d 一",
           "output": "clinical trial criterion: 年龄"}  # fmt: skip
    (data_dir / "bridge" / "chip_ctc").mkdir(parents=True)
    (data_dir / "bridge" / "chip_ctc" / "test.jsonl").write_text(json.dumps(row) + "\n")
    flags = ("--tasks", TASKS[0], "--apply_chat_template", *NAMED, "--output_path", "run")
    outcome = medtasks("batch", "out", *flags)
    assert outcome.code == 0, outcome.text
    (line,) = request_lines(tmp_path / "requests.jsonl")
    assert "标准 ? 一" in line["body"]["messages"][-1]["content"]
