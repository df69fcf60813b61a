"""`--max-cost` of `run` and `judge` over sockets: what a server charges, whatever it says of its tokens."""

import json
import random
import socket

import pytest
import yaml

from medtasks_ext.judge import asking
from tests.judge.conftest import make_rows, rows
from tests.judge.server import Reply, fair, verdict
from tests.run_files import result_of

PRICE = {"input": 10, "output": 100}
#: What a server says of its tokens; each of them is none.
COUNTS = [
    None, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": -9, "completion_tokens": -9},
    {"prompt_tokens": "many", "completion_tokens": 1}, {"prompt_tokens": 1, "completion_tokens": 1},
]  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2, 3))])
def test_judges_charge_at_most_the_limit(run, jury, medtasks, server, monkeypatch, data_dir, tasks, seed):
    """A server charges as many tokens as it may, and each time that its model works."""
    monkeypatch.setattr(asking, "MAX_TRIES", 2)
    make_rows(data_dir, "qa", rows(12))
    chance, charges = random.Random(seed), []

    def script(asked, seen):
        end = chance.choice(["answer", "answer", "error", "hang up", "busy"])
        if end == "busy":
            return Reply(status=503)
        n_bytes = len(asked.user.encode()) + len(asked.system.encode())
        charges.append((n_bytes * PRICE["input"] + asked.body["max_tokens"] * PRICE["output"]) / 1e6)
        if end != "answer":
            return Reply(status=500) if end == "error" else Reply(hang_up=True)
        usage = chance.choice(COUNTS)
        body = {"choices": [{"message": {"content": verdict(asked.axes, 4)}, "finish_reason": "stop"}]}
        return Reply(body=json.dumps({**body, **({"usage": usage} if usage else {})}))

    server.script = script
    run("qa")
    path = jury("one", "two", price=PRICE, max_tokens=300)
    for limit in (0.1, 0.2, 0.4):  # over all calls on the folder
        assert medtasks("judge", "--jury", path, "--max-cost", limit).code == 1
        assert 0 < sum(charges) <= limit
    assert medtasks("judge", "--jury", path, "--max-cost", 0.4).code == 1 and sum(charges) <= 0.4


@pytest.mark.parametrize("field", ["n", "model", "max_tokens"])
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
    assert "without --max-cost" in done.err and not server.asked
    server.script = fair
    medtasks.done("judge", "--jury", path)
    assert {asked.body["service_tier"] for asked in server.asked} == {"priority"}
    record = result_of(folder, "medhelm_qa")
    (judge,) = record["conditions"]["jury"]["judges"]
    assert {"service_tier": "priority", "top_p": 0.5}.items() <= json.loads(judge["request"]).items()


@pytest.mark.parametrize("given", ["nan", "inf", "-1", "5"])
def test_a_limit_that_nobody_can_keep_is_refused(medtasks, given):
    done = medtasks("run", "--tasks", "medhelm_medqa", "--model", "oracle", "--max-cost", given)
    what = "without the price of the model" if given == "5" else f"{float(given)} is no amount of money"
    assert done.code == 2 and what in done.err and "→" in done.err


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


def test_the_cost_of_judging_is_in_its_file_and_in_the_report(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(
        verdict(asked.axes, 4), usage={"prompt_tokens": 1000, "completion_tokens": 100}
    )
    folder, path = run("qa"), jury("one", "two", price=PRICE, max_tokens=1000)
    assert medtasks("judge", "--jury", path).code == 0
    used = 2 * 6 * (1000 * 10 + 100 * 100) / 1e6
    cost = {"usd": pytest.approx(used), "unsure": 0, "replies": 12, "unpriced": 0, "estimated": 0}

    def judged():
        return json.loads((folder / "judgements" / f"{TASK}.json").read_text())["cost"]

    assert judged() == cost
    assert medtasks("rescore", "run").code == 0 and judged() == cost
    assert medtasks("judge", "--jury", path).code == 0 and judged() == cost and len(server.asked) == 12
    record = json.loads(medtasks("report", "run", "--json", "--published", "none").out)["costs"][0]
    assert record["jury_usd"] == pytest.approx(used)
    printed = medtasks("report", "run", "--published", "none").out
    assert f"jury: {used:,.2f} USD for 12 judgements" in " ".join(printed.split())


def uncounted(asked, seen):
    message = {"role": "assistant", "content": fair(asked, seen).content}
    return Reply(body=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))


@pytest.mark.parametrize(
    ("priced", "script", "said"),
    [
        ((), fair, "cost not known, without 6 by judges without a price"),
        (("one",), fair, "for 6 judgements, without 6 by judges without a price"),
        (("one", "two"), uncounted, "tokens of 12 not counted"),
    ],
)
def test_what_nobody_counted_or_prices_is_said(run, jury, medtasks, server, priced, script, said):
    run("qa")
    path = jury("one", "two") if priced else jury("one")
    content = yaml.safe_load(path.read_text())
    content["judges"] = [{**judge, **({"price": PRICE} if judge["name"] in priced else {})}
                         for judge in content["judges"]]  # fmt: skip
    path.write_text(yaml.safe_dump(content))
    server.script = script
    dry, judged = medtasks("judge", "--jury", path, "--dry-run"), medtasks("judge", "--jury", path)
    printed = medtasks("report", "run", "--published", "none").out
    assert said in " ".join(printed.split())
    assert priced or ("0.00" not in dry.out + printed and "0.00 USD" not in judged.text)
