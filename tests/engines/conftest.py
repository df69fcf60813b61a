"""Scripted servers, models, requests and feeds for them, and a clock that does not wait."""

from __future__ import annotations

import asyncio
import sys
import types

import pytest
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

from medtasks_ext.engines import Request
from medtasks_ext.engines.api import ApiEngine
from tests.engines.server import Reply, Server, chat

SETTINGS = {
    "until": ["\n\n", "</s>"],
    "max_gen_toks": 50,
    "temperature": 0.5,
    "do_sample": True,
    "top_p": 0.9,
}


class ListFeed:
    """Requests that are all ready; `interrupted` ends it before its time."""

    def __init__(self, requests) -> None:
        self.left = list(requests)
        self.interrupted = False

    @property
    def over(self) -> bool:
        return self.interrupted or not self.left

    def take(self):
        return self.left.pop(0) if self.left and not self.interrupted else None

    def wait(self, seconds: float) -> None:
        raise AssertionError("there was something to take")


def asking(n: int = 1, text: str = "Is it?") -> list[Request]:
    """Requests of one turn each, numbered."""
    return [
        Request(f"k{i}", "task", f"d{i}", [{"role": "user", "content": f"{text} {i}"}], SETTINGS)
        for i in range(n)
    ]


def model(server, kind=LocalChatCompletion, path="/chat/completions", **settings):
    url = server if isinstance(server, str) else server.url
    return kind(**{"model": "m", "base_url": url + path, "num_concurrent": 2, "timeout": 30, **settings})


def run(lm, requests, clock=None, **settings):
    """key -> outcome, in the order in which they came; and the engine."""
    engine, outcomes = ApiEngine(lm, **settings), {}
    if clock:
        clock.rule(engine)
    engine.run(ListFeed(requests), lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    return outcomes, engine


def outcome_of(server, reply, clock, requests=None, **settings):
    """What one request becomes where the server always does the same; `reply` may be a script."""

    async def script(asked):
        return reply if isinstance(reply, Reply) else Reply(reply)

    server.script = reply if callable(reply) else script
    lm = model(server, **{"max_retries": 0, **settings})
    outcomes, _ = run(lm, requests or asking(), clock)
    return outcomes["k0"]


def failing_first(n, failure):
    """A script: a failure for the first n requests, then answers."""

    async def script(asked):
        return failure if asked.number < n else Reply(chat())

    return script


class Tokenizer:
    """As transformers' are called: a token for each character."""

    def __call__(self, texts, **settings):
        return types.SimpleNamespace(input_ids=[[ord(character) for character in text] for text in texts])


def tokenised(**settings):
    """A model that sends tokens. Its tokenizer is put in place, since loading one needs transformers."""
    lm = LocalCompletionsAPI(tokenizer_backend=None, **settings)
    lm.tokenizer_backend, lm.tokenizer, lm.tokenized_requests = "huggingface", Tokenizer(), True
    return lm


def untokenised(kind):
    return lambda **settings: kind(tokenizer_backend=None, **settings)


class QuickClock:
    """Pauses end at once; the time goes on by what they would have taken."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    def rule(self, engine):
        engine.now, engine.pause = self.now, self.pause
        return engine


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture
def clock():
    return QuickClock()


@pytest.fixture
def keys(monkeypatch):
    """Keys of all services, and as much of the package openai as lm-eval's model for Azure looks for."""
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, f"secret of {name}")
    openai = types.SimpleNamespace(AzureOpenAI=lambda **settings: None)
    monkeypatch.setitem(sys.modules, "openai", openai)
