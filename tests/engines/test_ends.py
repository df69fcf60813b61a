"""Answers of servers that end at the next question: only where the server names the text that stopped it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from medtasks_ext.engines.api import ApiEngine
from medtasks_ext.engines.records import NEXT_QUESTION
from tests.engines.made import ListFeed, Tokenizer, asking, model, tokenised
from tests.engines.server import Reply, completion

STOP = "\nQuestion:"


class Base(Tokenizer):
    """Of a model that knows no mark of reasoning."""

    def get_added_vocab(self) -> dict[str, int]:
        return {"<|endoftext|>": 0}


class Reasons(Tokenizer):
    """Of a model that knows one."""

    def get_added_vocab(self) -> dict[str, int]:
        return {"</think>": 0}


def babbler(says: str = "B", **named):
    """A script: a model that goes on after its answer, stopped where it is asked to be."""

    async def script(asked):
        stops = asked.body.get("stop") or []
        ends = STOP in stops
        choice = {"index": 0, "text": says if ends else f"{says}{STOP} What?", "finish_reason": "stop"}
        choice |= {name: STOP if ends else value for name, value in named.items()}
        return Reply(completion(choices=[choice]))

    return script


def asked_for(server, tokenizer, n=3, prompt="Is it?"):
    """Outcomes of requests one after another, and the stop texts that each was sent with."""
    lm = model(server, tokenised, "/completions", max_length=4096, num_concurrent=1)
    lm.tokenizer = tokenizer
    requests = [replace(item, prompt=prompt, ends=True, settings={"until": ["\n\n"], "max_gen_toks": 50})
                for item in asking(n)]  # fmt: skip
    engine, outcomes = ApiEngine(lm), {}
    ready = ListFeed([engine.prepare(item) for item in requests])
    engine.run(ready, lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    return outcomes, [item.body.get("stop") for item in server.asked]


def test_a_server_that_names_stop_texts_ends_answers_from_its_second_on(server):
    server.script = babbler(stop_reason=None)
    outcomes, stops = asked_for(server, Base())
    assert [outcome.text for outcome in outcomes.values()] == [f"B{STOP} What?", f"B{STOP}", f"B{STOP}"]
    assert [outcome.ended for outcome in outcomes.values()] == ["", NEXT_QUESTION, NEXT_QUESTION]
    assert stops[0] == ["\n\n"] and all(stop[0] == "\n\n" and STOP in stop for stop in stops[1:])


@pytest.mark.parametrize(("prompt", "begins"), [("Is it?", STOP), ("A\n问题：B\n问题：", "\n问题：")])
def test_a_server_gets_no_more_stop_texts_than_it_takes_and_first_those_of_the_prompt(server, prompt, begins):
    """OpenAI's servers and vLLM's refuse a request with more than four."""

    async def script(asked):
        if len(asked.body["stop"]) > 4:
            return Reply(status=400, body="too many")
        return Reply(
            completion(choices=[{"index": 0, "text": "B", "finish_reason": "stop", "stop_reason": None}])
        )

    server.script = script
    outcomes, stops = asked_for(server, Base(), n=2, prompt=prompt)
    assert [outcome.text for outcome in outcomes.values()] == ["B", "B"]
    assert stops[0] == ["\n\n"] and len(stops[1]) == 4 and stops[1][:2] == ["\n\n", begins]


def test_what_readers_would_not_stop_at_is_asked_whole_and_both_are_counted(server):
    server.script = babbler("", stop_reason=None)
    outcomes, stops = asked_for(server, Base(), n=2)
    assert [outcome.text for outcome in outcomes.values()] == [f"{STOP} What?"] * 2
    assert not any(outcome.ended for outcome in outcomes.values())
    assert [STOP in stop for stop in stops] == [False, True, False]
    assert [outcome.usage.prompt for outcome in outcomes.values()] == [7, 14]


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [(Base(), {}), (Reasons(), {"stop_reason": None}), (Tokenizer(), {"stop_reason": None})],
)
def test_no_stop_text_goes_to_others(server, tokenizer, named):
    """Servers that name none, models that may reason, and those of which nobody knows."""
    server.script = babbler(**named)
    outcomes, stops = asked_for(server, tokenizer)
    assert stops == [["\n\n"]] * 3
    assert {outcome.text for outcome in outcomes.values()} == {f"B{STOP} What?"}
