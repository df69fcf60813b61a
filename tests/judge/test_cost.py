"""What judging costs: what nobody counted or prices is never 0.00."""

import json

import pytest
import yaml

from tests.judge.server import Reply, fair, verdict
from tests.run_files import result_of

TASK = "medhelm_qa"
PRICE = {"input": 10, "output": 100}


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


@pytest.mark.parametrize(
    "price", [{"input": value, "output": 1} for value in (-1, ".inf", ".nan", "dear")] + [{"input": 1}]
)
def test_a_price_that_is_none_is_said_before_anybody_is_asked(run, jury, medtasks, server, price):
    run("qa")
    path = jury("one")
    content = yaml.safe_load(path.read_text())
    content["judges"][0]["price"] = {name: yaml.safe_load(str(value)) for name, value in price.items()}
    path.write_text(yaml.safe_dump(content))
    outcome = medtasks("judge", "--jury", path)
    assert outcome.code == 2 and outcome.err.count("medtasks: ") == 1 and "price" in outcome.err
    assert not outcome.out and not server.asked
