"""How likely options are: by a completions server, and by the passes that vLLM is asked for."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from types import SimpleNamespace
from types import SimpleNamespace as One
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

from medtasks_ext.engines import Answer, Fault, FaultKind, Likelihood, Request, likeliest
from medtasks_ext.engines.api import prepared
from medtasks_ext.engines.vllm import option_likelihoods
from tests.engines.conftest import run, tokenised
from tests.engines.server import Reply

PROMPT, OPTIONS = "Does it rain? ", ("yes", "no", "may be")


class Letters:
    """A tokenizer with a token for each character."""

    eos_token = "."

    def __call__(self, texts, **_):
        one = isinstance(texts, str)
        found = [[ord(letter) for letter in text] for text in ([texts] if one else texts)]
        return SimpleNamespace(input_ids=found[0] if one else found)


def letters(server) -> LocalCompletionsAPI:
    lm = tokenised(model="m", base_url=f"{server.url}/completions", max_retries=1)
    lm.tokenizer = Letters()
    return lm


async def echoing(asked):
    """The log-probabilities of all tokens, and of one that is written."""
    body = json.loads(asked.content)
    assert body["echo"] and body["max_tokens"] == 1
    choices = []
    for index, tokens in enumerate(body["prompt"]):
        said = [-0.01 * (token % 17) - 0.001 * place for place, token in enumerate(tokens)]
        values = [None, *said[1:], -0.5]
        top = [None if one is None else {"x": one if place % 2 else 0.0} for place, one in enumerate(values)]
        logprobs = {"token_logprobs": values, "top_logprobs": top}
        choices.append({"index": index, "text": "…", "finish_reason": "length", "logprobs": logprobs})
    usage = {"prompt_tokens": sum(map(len, body["prompt"])), "completion_tokens": len(choices)}
    return Reply({"choices": choices[::-1], "usage": usage, "model": "m"})


ASKED = Request("k", "task", "d", PROMPT, {}, options=OPTIONS)


def test_a_completions_server_gives_what_lm_eval_gets_from_it_in_one_request(server):
    server.script = echoing
    lm = letters(server)
    outcome = run(lm, [prepared(lm, ASKED)])[0]["k"]
    assert len(server.asked) == 1 and isinstance(outcome, Answer)
    asked = [Instance("loglikelihood", {}, (PROMPT, option), i) for i, option in enumerate(OPTIONS)]
    expected = lm.loglikelihood(asked, disable_tqdm=True)
    assert [tuple(item) for item in outcome.likelihoods] == [tuple(item) for item in expected]
    assert outcome.text == OPTIONS[max(range(3), key=lambda place: expected[place][0])]
    assert outcome.usage.completion == 3


@pytest.mark.parametrize("logprobs", [None, {"token_logprobs": [-0.5], "top_logprobs": [{"x": -0.5}]}])
def test_a_server_without_log_probabilities_of_the_prompt_ends_the_run_at_once(server, logprobs):
    async def silent(asked):
        choice = {"index": 0, "text": "yes", "finish_reason": "stop", "logprobs": logprobs}
        return Reply({"choices": [{**choice, "index": index} for index in range(3)]})

    server.script = silent
    lm = letters(server)
    outcomes, engine = run(lm, [prepared(lm, ASKED)])
    assert outcomes["k"].kind is FaultKind.MODEL and "no log-probabilities" in outcomes["k"].reason
    assert engine.ended is not None and len(server.asked) == 1


def test_a_likelihood_that_is_no_number_is_a_fault():
    found = likeliest(ASKED, [Likelihood(math.nan, False)] * 3)
    assert isinstance(found, Fault) and "no number" in found.reason


class Engine:
    """Answers passes by a function of the text before a token, those that come together in one step."""

    def __init__(self) -> None:
        self.read, self.steps, self.open = 0, list[int](), False

    def value(self, before: tuple[int, ...], token: int) -> float:
        return -0.1 - (hash((before, token)) % 1000) / 100

    async def output(self, tokens, parameters):
        self.steps += [0] * (not self.open)
        self.steps[-1] += 1
        self.open, self.read = True, self.read + len(tokens)
        await asyncio.sleep(0)
        self.open, tokens = False, tuple(tokens)
        if ids := getattr(parameters, "logprob_token_ids", None):
            found = {token: One(logprob=self.value(tokens, token)) for token in ids}
            best = max(found, key=lambda token: found[token].logprob)
            return One(outputs=[One(logprobs=[found], token_ids=[best])])
        said = [{t: One(logprob=self.value(tokens[:place], t))} for place, t in enumerate(tokens)]
        return One(outputs=[], prompt_logprobs=said)


def read(prompt, options, *, cached: bool):
    """The outcome, and the engine, which knows how many passes each step made."""
    asked = Request(
        "k", "t", "d", "", {}, tokens=list(prompt), options=tuple(map(str, options)), option_tokens=options
    )
    engine = Engine()
    return asyncio.run(option_likelihoods(asked, engine.output, cached=cached)), engine


def _parameters(*, logprob_token_ids=None, **given):
    ids = {"logprob_token_ids": logprob_token_ids} if logprob_token_ids else {}
    return SimpleNamespace(**ids, **given)


@pytest.fixture(autouse=True)
def parameters(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=_parameters))


options_of_tokens = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), min_size=2, max_size=6, unique=True
).map(tuple)


@given(options_of_tokens, st.booleans(), st.booleans())
def test_every_way_gives_the_sum_over_the_tokens_of_an_option(options, cached, ids):
    """`ids`: whether vLLM gives log-probabilities of chosen tokens, which older ones do not."""
    prompt = tuple(range(100, 300))
    known = _parameters if ids else lambda **given: SimpleNamespace(**given)
    with patch.object(sys.modules["vllm"], "SamplingParams", known):
        outcome, engine = read(prompt, options, cached=cached)
    for option, found in zip(options, outcome.likelihoods, strict=True):
        steps = (engine.value((*prompt, *option[:place]), token) for place, token in enumerate(option))
        assert found.value == pytest.approx(sum(steps))
