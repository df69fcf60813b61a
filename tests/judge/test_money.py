"""`--max-cost` of `run` and `judge` over sockets: what a server charges, whatever it says of its tokens."""

import json
import random
import socket

import pytest
import yaml

from medtasks_ext.judge import asking
from tests.conftest import edited_json
from tests.engines.server import Reply as Bytes
from tests.engines.server import Server as ModelServer
from tests.engines.server import chat
from tests.judge.made import make_rows, rows
from tests.judge.server import Reply, fair, verdict
from tests.run_files import result_of, samples_file

PRICE = {"input": 10, "output": 100}
USD = {name: rate / 1e6 for name, rate in PRICE.items()}
#: What a server says of its tokens; each of them is none.
COUNTS = [
    None, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": -9, "completion_tokens": -9},
    {"prompt_tokens": "many", "completion_tokens": 1}, {"prompt_tokens": 1, "completion_tokens": 1},
]  # fmt: skip
#: of what a server does: one every day
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3))]


class Bill:
    """What a server charges: as many tokens as it may, and each time that its model works."""

    def __init__(self, seed: int) -> None:
        self.chance, self.usd = random.Random(seed), 0.0

    def charge(self, n_bytes: int, limit: int) -> None:
        self.usd += n_bytes * USD["input"] + limit * USD["output"]


@pytest.mark.parametrize("seed", SEEDS)
def test_judges_charge_at_most_the_limit(run, jury, medtasks, server, monkeypatch, data_dir, tasks, seed):
    monkeypatch.setattr(asking, "MAX_TRIES", 2)
    make_rows(data_dir, "qa", rows(12))
    bill = Bill(seed)

    def script(asked, seen):
        end = bill.chance.choice(["answer", "answer", "error", "hang up", "busy"])
        if end == "busy":
            return Reply(status=503)
        bill.charge(len(asked.user.encode()) + len(asked.system.encode()), asked.body["max_tokens"])
        if end != "answer":
            return Reply(status=500) if end == "error" else Reply(hang_up=True)
        usage = bill.chance.choice(COUNTS)
        body = {"choices": [{"message": {"content": verdict(asked.axes, 4)}, "finish_reason": "stop"}]}
        return Reply(body=json.dumps({**body, **({"usage": usage} if usage else {})}))

    server.script = script
    run("qa")
    path = jury("one", "two", price=PRICE, max_tokens=300)
    for limit in (0.1, 0.2, 0.4):  # over all calls on the folder
        assert medtasks("judge", "--jury", path, "--max-cost", limit).code == 1
        assert 0 < bill.usd <= limit
    assert medtasks("judge", "--jury", path, "--max-cost", 0.4).code == 1 and bill.usd <= 0.4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_charges_no_more_than_the_limit(medtasks, tmp_path, seed):
    bill = Bill(seed)

    async def script(asked):
        end = bill.chance.choice(["answer", "answer", "error", "busy"])
        if end == "busy":
            return Bytes({"error": "later"}, 503, {"Retry-After": "0"})
        bill.charge(
            sum(len(turn["content"].encode()) for turn in asked.body["messages"]), asked.body["max_tokens"]
        )
        if end == "error":
            return Bytes({"error": "failed"}, 500)
        usage = bill.chance.choice(COUNTS)
        return Bytes(chat("A", **({"usage": usage} if usage else {})))

    with ModelServer(script) as server:
        config = {
            "model": "local-chat-completions", "apply_chat_template": True, "metadata": {"price": PRICE},
            "gen_kwargs": {"max_gen_toks": 200},
            "model_args": {"model": "m", "max_retries": 1, "base_url": f"{server.url}/v1/chat/completions"},
        }  # fmt: skip
        (tmp_path / "model.yaml").write_text(yaml.safe_dump(config))
        command = ("run", "--tasks", "medhelm_medqa", "--config", "model.yaml", "--data", "sample",
                   "--prompts", "own", "--output_path", "run")  # fmt: skip
        for limit in (0.05, 0.1, 0.1):
            done = medtasks(*command, "--max-cost", limit)
            assert done.code == 1 and "--max-cost" in done.err, done.text
            assert 0 < bill.usd <= limit
        asked = len(server.asked)
        assert medtasks(*command, "--max-cost", 0.0).code in (1, 2) and len(server.asked) == asked


@pytest.mark.parametrize(
    "field",
    ["n", "model", "messages", "stream", "max_tokens", "maxOutputTokens", "max_completion_tokens", "best_of"],
)
def test_a_field_that_changes_the_request_is_refused_anywhere(run, jury, medtasks, server, tmp_path, field):
    run("qa")
    path = jury("one", price=PRICE, extra_body={field: 8})
    for more in ((), ("--max-cost", 1), ("--dry-run",)):
        done = medtasks("judge", "--jury", path, *more)
        assert done.code == 2 and field in done.err and not server.asked and not server.listed
    flags = ("run", "--tasks", "medhelm_medqa", "--data", "sample", "--model", "local-chat-completions",
             "--apply_chat_template", "--output_path", "other")  # fmt: skip
    url = f"base_url={server.url}/chat/completions"
    given = [("--model_args", f"model=m,{url}", "--gen_kwargs", f"{field}=8")]
    if field != "model":  # of the arguments it names the model
        given.append(("--model_args", f"model=m,{url},{field}=8"))
    for more in given:
        done = medtasks(*flags, *more)
        assert done.code == 2 and field in done.err and not server.asked


def test_an_unknown_field_is_refused_under_a_limit_and_is_a_condition(run, jury, medtasks, server):
    folder = run("qa")
    path = jury("one", price=PRICE, extra_body={"service_tier": "priority", "top_p": 0.5})
    done = medtasks("judge", "--jury", path, "--max-cost", 5)
    assert done.code == 2 and "service_tier" in done.err and "top_p" not in done.err
    assert "without --max-cost" in done.err
    assert not server.asked
    server.script = fair
    medtasks.done("judge", "--jury", path)
    assert {asked.body["service_tier"] for asked in server.asked} == {"priority"}
    record = result_of(folder, "medhelm_qa")
    (judge,) = record["conditions"]["jury"]["judges"]
    assert {"service_tier": "priority", "top_p": 0.5}.items() <= json.loads(judge["request"]).items()


@pytest.mark.parametrize(
    ("given", "message"), [("nan", "no limit"), ("inf", "no limit"), ("-1", "no limit"), ("5", "the price")]
)
def test_a_limit_that_nobody_can_keep_is_refused(medtasks, given, message):
    done = medtasks("run", "--tasks", "medhelm_medqa", "--model", "oracle", "--max-cost", given)
    assert done.code == 2 and message in done.err and "→" in done.err


@pytest.mark.parametrize("kept", [True, False], ids=["prompts are kept", "nothing is kept"])
@pytest.mark.parametrize("scored", [True, False])
def test_answers_of_a_call_that_knew_no_price_count_under_a_limit(medtasks, server, tmp_path, kept, scored):
    server.script = lambda asked, seen: Reply("A", usage={"prompt_tokens": 300, "completion_tokens": 2})
    model = {"model": "local-chat-completions", "model_args": {
        "model": "m", "base_url": f"{server.url}/chat/completions", "num_concurrent": 1}}  # fmt: skip
    priced = tmp_path / "priced.yaml"
    priced.write_text(yaml.safe_dump({**model, "metadata": {"price": {"input": 1e4, "output": 0}}}))
    plain = tmp_path / "plain.yaml"
    plain.write_text(yaml.safe_dump(model))
    flags = ("run", "--tasks", "medhelm_medqa", "--data", "sample", "--apply_chat_template",
             "--no-preflight", "--output_path", "run")  # fmt: skip
    assert medtasks(*flags, "--config", plain, "--limit", 2).code == 0
    if not scored:  # as a call leaves it that was killed
        with edited_json(tmp_path / "run/run.json") as manifest:
            manifest["tasks"]["medhelm_medqa"]["state"] = "waiting"
    if not kept:
        samples_file(tmp_path / "run", "medhelm_medqa").unlink()
    server.asked.clear()
    # two answers cost 3 USD each, also where their prompts are built anew; one request more may cost more
    # than the 1 USD that is left
    done = medtasks(*flags, "--config", priced, "--limit", 4, "--max-cost", 7)
    assert done.code == 1 and "--max-cost is reached" in done.err and not server.asked, done.text
    assert "no recorded cost" not in done.err


def test_what_nobody_can_price_any_more_is_said(medtasks, server, tmp_path):
    uncounted = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}
    server.script = lambda asked, seen: Reply(body=json.dumps(uncounted))
    model = {"model": "local-chat-completions", "model_args": {
        "model": "m", "base_url": f"{server.url}/chat/completions", "num_concurrent": 1}}  # fmt: skip
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(model))
    model["metadata"] = {"price": {"input": 1e-6, "output": 0}}
    (tmp_path / "priced.yaml").write_text(yaml.safe_dump(model))
    flags = ("--data", "sample", "--apply_chat_template", "--no-preflight", "--output_path", "run")
    assert (
        medtasks("run", "--tasks", "medhelm_medqa", *flags, "--config", "plain.yaml", "--limit", 2).code == 0
    )
    priced = ("--config", "priced.yaml", "--limit", 1, "--max-cost", 7)
    done = medtasks("run", "--tasks", "medhelm_pubmedqa", *flags, *priced)
    assert done.code == 0 and "2 answers of earlier calls have no recorded cost" in done.err, done.text


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--model", "local-chat-completions", "--apply_chat_template"),
        ("study", "contamination", "--model", "local-completions"),
    ],
    ids=["run", "contamination"],
)
def test_a_host_that_may_not_have_the_text_is_not_even_looked_up(tasks, medtasks, monkeypatch, command):
    def nobody(*_, **__):
        raise AssertionError("the network was touched")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, nobody)
    url = "http://models.example/v1" + ("/chat/completions" if command[0] == "run" else "/completions")
    done = medtasks(*command, "--tasks", "medhelm_gated", "--model_args", f"model=m,base_url={url}")
    assert done.code == 2 and "would be sent to models.example" in done.err, done.text


# What judging costs: what nobody counted or prices is never 0.00.


TASK = "medhelm_qa"


def judged(folder):
    return json.loads((folder / "judgements" / f"{TASK}.json").read_text())


def entry(medtasks):
    outcome = medtasks("report", "run", "--json", "--published", "none")
    return json.loads(outcome.out)["entries"][0], medtasks("report", "run", "--published", "none").out


@pytest.fixture
def two_judges(jury):
    return jury("one", "two", price=PRICE, max_tokens=1000)


def test_the_cost_of_judging_is_in_its_file_and_in_the_report(run, two_judges, medtasks, server):
    server.script = lambda asked, seen: Reply(
        verdict(asked.axes, 4), usage={"prompt_tokens": 1000, "completion_tokens": 100}
    )
    folder = run("qa")
    n = result_of(folder, TASK)["n"]
    assert medtasks("judge", "--jury", two_judges).code == 0
    used = 2 * n * (1000 * 10 + 100 * 100) / 1e6
    assert judged(folder)["cost"] == {
        "usd": pytest.approx(used), "unsure": 0, "replies": 2 * n, "unpriced": 0, "estimated": 0
    }  # fmt: skip
    record, printed = entry(medtasks)
    assert record["jury"]["usd"] == pytest.approx(used)
    assert f"jury: {used:,.2f} USD for {2 * n} judgements" in " ".join(printed.split())


def test_a_second_scoring_and_a_second_call_keep_the_cost(run, two_judges, medtasks, server):
    folder = run("qa")
    medtasks("judge", "--jury", two_judges)
    first, asked = judged(folder)["cost"], len(server.asked)
    assert first["usd"] > 0
    assert medtasks("rescore", "run").code == 0 and judged(folder)["cost"] == first
    assert medtasks("judge", "--jury", two_judges).code == 0
    assert judged(folder)["cost"] == first and len(server.asked) == asked


def test_judges_without_a_price_cost_what_nobody_knows(run, jury, medtasks, server):
    folder = run("qa")
    path = jury("one")
    dry = medtasks("judge", "--jury", path, "--dry-run").out
    assert "no price" in dry and "0.00" not in dry
    outcome = medtasks("judge", "--jury", path)
    assert outcome.code == 0 and "0.00 USD" not in outcome.text
    assert judged(folder)["cost"]["usd"] is None and judged(folder)["cost"]["unpriced"] == 6
    record, printed = entry(medtasks)
    assert record["jury"]["usd"] is None
    assert "cost not known, 6 judgements by judges without a price" in " ".join(printed.split())
    assert "0.00" not in printed


def test_a_price_beside_none_is_a_part_and_says_so(run, jury, medtasks, server):
    run("qa")
    path = jury("one", "two", price=PRICE, max_tokens=1000)
    content = yaml.safe_load(path.read_text())
    del content["judges"][1]["price"]
    path.write_text(yaml.safe_dump(content))
    dry = medtasks("judge", "--jury", path, "--dry-run").out
    together = next(line for line in dry.splitlines() if line.split()[:1] == ["all"])
    assert together.endswith("and more ") or "and more" in together
    medtasks("judge", "--jury", path)
    _, printed = entry(medtasks)
    assert "for 6 judgements, without 6 by judges without a price" in " ".join(printed.split())


def test_what_a_server_does_not_count_is_an_estimate_and_says_so(run, jury, medtasks, server):
    def uncounted(asked, seen):
        body = json.loads(fair(asked, seen).content)
        message = {"role": "assistant", "content": json.dumps(body)}
        return Reply(body=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))

    folder = run("qa")
    server.script = uncounted
    assert medtasks("judge", "--jury", jury("one", price=PRICE)).code == 0
    assert judged(folder)["cost"]["estimated"] == 6
    assert "tokens of 6 not counted" in " ".join(entry(medtasks)[1].split())
