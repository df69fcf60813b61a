"""`medtasks judge --requests` and `--responses`: a jury whose replies come back in files."""

import json
import random
import re

import pytest
import yaml

from tests.judge.conftest import judgements
from tests.judge.server import CODE, Asked, Reply, coded, verdict

TASK = "medhelm_qa"


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def asked(line):
    """A line of requests as the scripted server gets a request."""
    system, user = (turn["content"] for turn in line["body"]["messages"])
    return Asked(line["body"]["model"], system, user, line["body"], {})


def answered(line, content, finish="stop", number=0):
    """A line of OpenAI's output file."""
    content = content.replace(CODE, asked(line).code)
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    body = {"id": "chatcmpl-1", "model": line["body"]["model"], "choices": [choice], "usage": usage}
    response = {"status_code": 200, "request_id": f"req-{line['custom_id']}-{number}", "body": body}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}


def refused(line, status, **error):
    response = {"status_code": status, "request_id": "r", "body": {"error": error}}
    return {"custom_id": line["custom_id"], "response": response, "error": None}


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def rated(line):
    """A verdict that depends on judge and texts."""
    who = asked(line)
    return verdict(who.axes, 1 + (len(who.model) + int(re.search(r"\d+", who.texts["question"])[0])) % 5)


def stored(folder):
    own = {"at": 0, "usage": "", "chain": "", "of": ""}  # `of` in the first line, whichever that is
    return sorted(({**item, **own} for item in judgements(folder, TASK)), key=lambda item: item["key"])


@pytest.fixture
def away(tmp_path, monkeypatch):
    """A jury file of judges elsewhere, whose addresses nobody opens."""
    monkeypatch.setenv("MEDTASKS_KEYS", "JUDGE_KEY@judges.example")

    def make(*names, **settings):
        judges = [
            {"name": name, "model": f"model-{name}", "base_url": "https://judges.example/v1",
             "api_key_env": "JUDGE_KEY", "price": {"input": 10, "output": 100, "batch": 0.5}, **settings}
            for name in names
        ]  # fmt: skip
        path = tmp_path / "away.yaml"
        path.write_text(yaml.safe_dump({"judges": judges}))
        return path

    return make


def test_requests_are_those_that_the_judge_would_get_and_nobody_is_asked(
    run, jury, medtasks, server, tmp_path, monkeypatch
):
    run("qa")
    outcome = medtasks("judge", "run", "--jury", jury("one", "two", max_tokens=500), "--requests", "j.jsonl")
    assert outcome.code == 0, outcome.text
    assert not server.asked and not server.listed
    written = {name: lines(tmp_path / f"j-{name}.jsonl") for name in ("one", "two")}
    assert [len(items) for items in written.values()] == [6, 6]
    for name, items in written.items():
        assert {item["body"]["model"] for item in items} == {name}
        assert {item["url"] for item in items} == {"/v1/chat/completions"}
        assert all(len(item["custom_id"]) <= 64 for item in items)
        assert all(item["body"]["response_format"]["type"] == "json_schema" for item in items)
    assert "  vllm run-batch -i j-one.jsonl -o j-one.results.jsonl --model one\n" in outcome.out
    assert "medtasks judge run run --jury " in outcome.out
    assert "--responses j-one.results.jsonl j-two.results.jsonl\n" in outcome.out
    medtasks("judge", "run", "--jury", jury("one", "two", max_tokens=500))
    sent = sorted(json.dumps(item.body, sort_keys=True) for item in server.asked)
    bodies = sorted(json.dumps(item["body"], sort_keys=True) for items in written.values() for item in items)
    assert bodies == sent


def test_replies_in_files_give_what_asking_gives(run, jury, medtasks, metrics, server, tmp_path):
    folder, other = run("qa"), run("qa", folder="asked")
    server.script = lambda who, seen: Reply(
        rated({"body": who.body}), usage={"prompt_tokens": 1000, "completion_tokens": 100}
    )
    assert medtasks("judge", "asked", "--jury", jury("one", "three")).code == 0
    medtasks("judge", "run", "--jury", jury("one", "three"), "--requests", "j.jsonl")
    found = [
        answered(line, rated(line))
        for name in ("one", "three")
        for line in lines(tmp_path / f"j-{name}.jsonl")
    ]
    random.Random(1).shuffle(found)
    files = [write(tmp_path / f"results-{n}.jsonl", found[n::2]) for n in range(2)]
    outcome = medtasks("judge", "run", "--jury", jury("one", "three"), "--responses", *files)
    assert outcome.code == 0, outcome.text
    assert metrics(folder) == metrics(other) and metrics(folder)["judged"] == 1
    assert stored(folder) == stored(other)
    again = medtasks("judge", "run", "--jury", jury("one", "three"), "--requests", "again.jsonl")
    assert again.code == 0 and "nothing is left to ask" in again.out and not list(tmp_path.glob("again*"))


def test_what_gives_no_verdict_is_a_failure_and_is_written_again(run, jury, medtasks, metrics, tmp_path):
    folder = run("qa")
    arguments = ("judge", "run", "--jury", jury("one"))
    medtasks(*arguments, "--requests", "j.jsonl")
    written = lines(tmp_path / "j-one.jsonl")
    found = [answered(line, rated(line)) for line in written]
    found[0] = answered(written[0], "I would give it a 5.")
    found[1] = answered(written[1], '{"accuracy": ', finish="length")
    found[2] = refused(written[2], 500, message="try later")
    found[3] = {"custom_id": written[3]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    results = write(
        tmp_path / "results.jsonl", [*found[:5], {"custom_id": "x", "response": None, "error": {}}]
    )
    results.write_text(results.read_text() + '{"custom_id": "half')
    outcome = medtasks(*arguments, "--responses", results)
    assert outcome.code == 1 and "results.jsonl: 1 new answer, 4 new faults" in outcome.err
    assert "1 results of other requests: x" in outcome.err and "line 7 is cut short" in outcome.err
    reasons = {item["reason"] for item in judgements(folder, TASK, "fault")}
    assert reasons == {
        "no JSON object in the reply", "reply cut at max_tokens", "HTTP 500: try later",
        "the batch expired before this request was worked on",
    }  # fmt: skip
    assert metrics(folder)["judgements_missing"] == 5
    assert "--requests writes them again" in outcome.err
    again = medtasks(*arguments, "--responses", results)
    assert "results.jsonl: 0 new answers, 5 stored before" in again.err
    assert len(judgements(folder, TASK, "fault")) == 4
    medtasks(*arguments, "--requests", "j.jsonl")
    rest = lines(tmp_path / "j-one.jsonl")
    assert rest == [*written[:4], written[5]]
    write(tmp_path / "rest.jsonl", [answered(line, rated(line), number=1) for line in rest])
    assert medtasks(*arguments, "--responses", "rest.jsonl").code == 0
    assert metrics(folder)["judged"] == 1


def test_a_judge_that_does_not_take_the_schema_is_asked_without_the_next_time(run, jury, medtasks, tmp_path):
    run("qa")
    arguments = ("judge", "run", "--jury", jury("one"))
    medtasks(*arguments, "--requests", "j.jsonl")
    written = lines(tmp_path / "j-one.jsonl")
    told = [refused(line, 400, message="response_format is not supported") for line in written]
    assert medtasks(*arguments, "--responses", write(tmp_path / "errors.jsonl", told)).code == 1
    medtasks(*arguments, "--requests", "j.jsonl")
    plain = lines(tmp_path / "j-one.jsonl")
    for line in written:
        del line["body"]["response_format"]
    assert plain == written
    replies = [answered(line, f"Here it is: {rated(line)}") for line in plain]
    assert medtasks(*arguments, "--responses", write(tmp_path / "results.jsonl", replies)).code == 0


def test_an_answer_that_two_runs_have_is_judged_once(run, away, medtasks, metrics, tmp_path):
    first, second = run("qa"), run("qa", folder="second", answers={"d0": "another answer"})
    arguments = ("judge", "run", "run", "second", "--jury", away("one"))
    outcome = medtasks(*arguments, "--requests", "j.jsonl")
    written = lines(tmp_path / "j-one.jsonl")
    assert len(written) == 7 == len({line["custom_id"] for line in written})
    assert "curl https://judges.example/v1/files" in outcome.out and "Bearer $JUDGE_KEY" in outcome.out
    results = write(tmp_path / "results.jsonl", [answered(line, rated(line)) for line in written])
    outcome = medtasks(*arguments, "--responses", results)
    assert outcome.code == 0, outcome.text
    assert metrics(first)["judged"] == metrics(second)["judged"] == 1
    # each reply cost (1000 x 10 + 100 x 100) / 1e6 USD, and half of that as a batch
    assert f"spent on these runs: {7 * 0.02 / 2:.2f} USD" in outcome.err


def test_files_obey_the_rule_for_text_that_is_not_open(run, away, jury, medtasks, tmp_path):
    run("gated")
    arguments = ("judge", "run", "--requests", "j.jsonl", "--jury")
    outcome = medtasks(*arguments, away("one"))
    assert outcome.code == 2 and "--allow-host judges.example" in outcome.err
    assert not list(tmp_path.glob("j-*"))
    assert medtasks(*arguments, away("one"), "--allow-host", "judges.example").code == 0
    assert len(lines(tmp_path / "j-one.jsonl")) == 6
    assert medtasks(*arguments, jury("local")).code == 0  # on this machine


def test_what_files_cost_is_said(run, away, medtasks, tmp_path):
    run("qa")
    outcome = medtasks("judge", "run", "--jury", away("one", max_tokens=1000), "--requests", "j.jsonl")
    said = re.search(r"one, at most ([\d.]+) USD, as a batch ([\d.]+) USD:", outcome.out)
    full, half = map(float, said.groups())
    assert full == pytest.approx(0.6, abs=0.1) and half == pytest.approx(full / 2, abs=0.01)


def test_the_adjudicator_comes_with_the_next_files(medtasks, metrics, tmp_path, data_dir):
    judges = [
        {"name": name, "model": name, "base_url": "http://localhost:9/v1"} for name in ("one", "two", "boss")
    ]
    jury = tmp_path / "jury.yaml"
    jury.write_text(yaml.safe_dump({"judges": judges[:2], "adjudicator": judges[2]}))
    task = "mlb_maethic"
    assert (
        medtasks("run", "--tasks", task, "--data", "sample", "--model", "oracle", "--output_path", "run").code
        == 0
    )
    arguments = ("judge", "run", "--jury", jury)
    medtasks(*arguments, "--requests", "j.jsonl")
    written = [line for name in ("one", "two") for line in lines(tmp_path / f"j-{name}.jsonl")]
    assert not (tmp_path / "j-boss.jsonl").exists()

    def points(line, met):
        shape = line["body"]["response_format"]["json_schema"]["schema"]["properties"]
        return coded({name: {key: met if kind["type"] == "boolean" else "so"
                             for key, kind in part["properties"].items()}
                      for name, part in shape.items() if name != "code"})  # fmt: skip

    found = [answered(line, points(line, line["body"]["model"] == "one")) for line in written]
    assert medtasks(*arguments, "--responses", write(tmp_path / "first.jsonl", found)).code == 1
    outcome = medtasks(*arguments, "--requests", "j.jsonl")
    assert "boss:" in outcome.out
    second = lines(tmp_path / "j-boss.jsonl")
    assert len(second) * 2 == len(written)
    results = write(tmp_path / "second.jsonl", [answered(line, points(line, True)) for line in second])
    assert medtasks(*arguments, "--responses", results).code == 0
    assert metrics(tmp_path / "run", task)["score"] == 1


def test_asking_and_files_may_be_mixed(run, jury, medtasks, metrics, server, tmp_path):
    folder = run("qa")
    arguments = ("judge", "run", "--jury", jury("one", "two"))
    medtasks(*arguments, "--requests", "j.jsonl")
    results = write(
        tmp_path / "r.jsonl", [answered(line, rated(line)) for line in lines(tmp_path / "j-one.jsonl")]
    )
    assert medtasks(*arguments, "--responses", results).code == 1
    assert medtasks(*arguments).code == 0
    assert {item.model for item in server.asked} == {"two"} and len(server.asked) == 6
    assert metrics(folder)["judged"] == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--requests", "j.jsonl", "--responses", "r.jsonl"), "requests are written, or results are taken"),
        (("--requests", "j.jsonl", "--dry-run"), "--dry-run: has no meaning with files"),
        (("--responses", "r.jsonl", "--max-cost", "1"), "--max-cost: has no meaning with files"),
        (("--responses", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("--responses", "foreign.jsonl"), "foreign.jsonl: none of its 1 results is of these runs"),
    ],
)
def test_bad_input(run, jury, medtasks, tmp_path, more, message):
    folder = run("qa")
    write(
        tmp_path / "foreign.jsonl", [{"custom_id": "x", "response": None, "error": {"code": "batch_expired"}}]
    )
    outcome = medtasks("judge", "run", "--jury", jury("one"), *more)
    assert outcome.code == 2 and message in outcome.err, outcome.text
    assert not judgements(folder, TASK) and not judgements(folder, TASK, "fault")


def test_gated_text_is_not_quoted_by_a_server(run, jury, medtasks, tmp_path, monkeypatch):
    folder = run("gated")
    arguments = ("judge", "run", "--jury", jury("one"))
    medtasks(*arguments, "--requests", "j.jsonl")
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    told = [
        refused(line, 400, type="invalid_request_error", message="Mr Doe")
        for line in lines(tmp_path / "j-one.jsonl")
    ]
    outcome = medtasks(*arguments, "--responses", write(tmp_path / "errors.jsonl", told))
    assert outcome.code == 1 and "Doe" not in outcome.text
    assert {item["reason"] for item in judgements(folder, "medhelm_gated", "fault")} == {
        "HTTP 400, invalid_request_error"
    }
