"""The engine for API models, against servers whose every reply is scripted."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import shutil
import socket
import ssl
import subprocess
import threading
from dataclasses import replace

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.anthropic_llms import AnthropicChat
from lm_eval.models.litellm_llms import LiteLLMChatCompletion
from lm_eval.models.openai_completions import (
    AzureOpenaiChatCompletionsLM,
    LocalChatCompletion,
    LocalCompletionsAPI,
    OpenAIChatCompletion,
    OpenAICompletionsAPI,
)
from lm_eval.models.sglang_generate_API import SGLANGGENERATEAPI

from medtasks_ext.engines import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.api import ApiEngine, reader_of
from medtasks_ext.errors import MedtasksError
from tests.engines.conftest import (
    SETTINGS,
    ListFeed,
    QuickClock,
    Tokenizer,
    asking,
    failing_first,
    model,
    outcome_of,
    run,
    tokenised,
    untokenised,
)
from tests.engines.server import HANG_UP, Reply, Server, chat


def azure(**settings):
    """Azure's model takes its place in the environment, and neither connections nor limits."""
    lm = AzureOpenaiChatCompletionsLM(model="m", base_url=settings["base_url"].rpartition("/chat")[0])
    lm._concurrent = 2
    return lm


CHATS = {
    "local-chat": (LocalChatCompletion, "/chat/completions", {}),
    "local-chat with a header": (LocalChatCompletion, "/chat/completions", {"header": {"X-Key": "k"}}),
    "openai-chat": (OpenAIChatCompletion, "/chat/completions", {}),
    "openai-chat o3": (OpenAIChatCompletion, "/chat/completions", {"model": "o3-mini"}),
    "azure": (azure, "/chat/completions", {}),
    "anthropic": (AnthropicChat, "/messages", {}),
}
TEXTS = {
    "local-completions": (untokenised(LocalCompletionsAPI), "/completions", {}),
    "local-completions, batches": (untokenised(LocalCompletionsAPI), "/completions", {"batch_size": 8}),
    "local-completions, tokens": (tokenised, "/completions", {}),
    "openai-completions": (untokenised(OpenAICompletionsAPI), "/completions", {}),
}
TALK = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
TURNS = [
    [{"role": "system", "content": "Du bist Ärztin."}, {"role": "user", "content": "Fieber? 熱"}],
    [{"role": "user", "content": "half an emoji \ud83d"}],
    [*TALK, {"role": "user", "content": "c " * 50}],
]
PLAIN = ["Fieber? 熱", "half an emoji \ud83d", "c " * 30]


def sent(server):
    """What is asked and headers, sorted; the lists that the requests before left are cleared."""
    asked = [
        (one.target, json.dumps(one.body), {**one.headers, "content-length": ""}) for one in server.asked
    ]
    server.asked.clear()
    return sorted(asked, key=str)


@pytest.mark.parametrize("name", [*CHATS, *TEXTS])
def test_requests_are_lm_evals_own(server, keys, name):
    kind, path, more = {**CHATS, **TEXTS}[name]
    lm = model(server, kind, path, **more)
    if name in CHATS:
        contexts, prompts = [lm.apply_chat_template(turns) for turns in TURNS], TURNS
    else:
        contexts = prompts = PLAIN
    if name == "local-completions, batches":  # lm-eval would put several prompts into one request
        contexts = prompts = PLAIN[:1]
    # settings without the list of stops: that the list is not changed for the next request is seen here
    settings = [SETTINGS, {"max_gen_toks": 9}, SETTINGS]
    instances = [
        Instance("generate_until", {}, (context, copy.deepcopy(given)), i)
        for i, (context, given) in enumerate(zip(contexts, settings, strict=False))
    ]
    texts = lm.generate_until(instances)
    plain = sent(server)
    engine = ApiEngine(model(server, kind, path, **more))
    before = copy.deepcopy(settings)
    requests = [
        engine.prepare(Request(f"k{i}", "t", f"d{i}", prompt, given))
        for i, (prompt, given) in enumerate(zip(prompts, settings, strict=False))
    ]
    outcomes = {}
    engine.run(ListFeed(requests), lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    assert sent(server) == plain and len(plain) == len(prompts)
    assert settings == before
    assert [outcomes[f"k{i}"].text for i in range(len(prompts))] == texts


def test_a_prompt_that_leaves_no_room_for_the_answer_is_not_cut(server):
    engine = ApiEngine(model(server, tokenised, "/completions", max_length=60))  # lm-eval takes one off
    fits, beyond = (Request("k", "t", "d", "x" * n, {"max_gen_toks": 50}) for n in (9, 10))
    assert engine.prepare(fits).tokens == [ord("x")] * 9
    fault = engine.prepare(beyond)
    assert fault.kind is FaultKind.TOO_LONG and "10 tokens" in fault.reason
    assert (fault.tries, fault.maybe_paid) == (0, 0)
    sent = Request("k", "t", "d", "x" * 9, {"max_gen_toks": 5, "max_tokens": 51})  # what the payload takes
    assert engine.prepare(sent).kind is FaultKind.TOO_LONG


def test_what_no_model_takes_is_a_fault_of_its_request_without_text_of_the_row(server, clock, monkeypatch):
    def fails(self, texts, **settings):
        raise ValueError(f"bad text: {texts}")

    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    monkeypatch.setattr(Tokenizer, "__call__", fails)
    text = Request("k", "t", "d", "Mrs Secret", {})
    fault = ApiEngine(model(server, tokenised, "/completions")).prepare(text)
    assert fault.kind is FaultKind.ENGINE and "Secret" not in fault.reason
    fault = ApiEngine(model(server)).prepare(text)
    assert fault.kind is FaultKind.ENGINE and "--apply_chat_template" in fault.remedy
    requests = asking(2)
    requests[0] = Request("k0", "t", "d", requests[0].prompt, {"until": 5})
    outcomes, _ = run(model(server), requests, clock)
    assert outcomes["k0"].kind is FaultKind.ENGINE and outcomes["k0"].tries == 0
    assert isinstance(outcomes["k1"], Answer) and len(server.asked) == 1


def dead_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}/v1"


def test_an_endpoint_that_is_dead_from_the_start(clock):
    outcomes, engine = run(model(dead_address(), max_retries=2), asking(5), clock)
    assert [(got.kind, got.tries, got.maybe_paid) for got in outcomes.values()] == [
        (FaultKind.UNREACHABLE, 3, 0)
    ] * 5
    assert "no server answers at http://127.0.0.1" in outcomes["k0"].reason and engine.ended is None


def test_an_endpoint_that_dies_in_the_middle_keeps_what_was_answered(server, clock):
    async def script(asked):
        if asked.number == 5:
            server.die()
        return Reply(chat(asked.prompt))

    server.script = script
    outcomes, _ = run(model(server, max_retries=1, num_concurrent=1), asking(12), clock)
    assert [outcomes[f"k{i}"].text for i in range(5)] == [f"Is it? {i}" for i in range(5)]
    lost = [outcomes[f"k{i}"] for i in range(5, 12)]
    assert {got.kind for got in lost} == {FaultKind.UNREACHABLE}
    assert [got.maybe_paid for got in lost] == [1] + [0] * 6  # only the first had reached the server


@pytest.mark.parametrize(
    "reply",
    [
        HANG_UP,
        Reply(chat(), length=10_000, close=True),
        Reply(b"garbage", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_a_connection_that_breaks_may_have_been_paid_for(server, clock, reply):
    got = outcome_of(server, reply, clock, max_retries=1)
    assert (got.kind, got.tries, got.maybe_paid) == (FaultKind.UNREACHABLE, 2, 2)


@pytest.mark.parametrize("sends", [False, True], ids=["nothing comes", "spaces without end"])
def test_a_server_that_never_ends_ends_by_the_timeout(server, clock, sends):
    async def drops():
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    async def script(asked):
        return Reply(drops()) if sends else await asyncio.Event().wait()

    got = outcome_of(server, script, clock, timeout=1)
    assert got.kind is FaultKind.TIMEOUT and got.maybe_paid == 1 and "within 1 s" in got.reason


@pytest.mark.parametrize("address", ["http://[::1", "localhost:8000/v1", "ftp://x/y", "/v1", ""])
def test_an_address_that_is_none_is_said_before_anything_is_built(address):
    lm = model("http://127.0.0.1:1")
    lm.base_url = address
    with pytest.raises(MedtasksError, match=r"no (address|host)"):
        ApiEngine(lm)


def test_an_address_that_nothing_can_be_sent_to_ends_the_run(clock):
    lm = model("http://me:secret@127.0.0.1:1/v1", num_concurrent=1)  # beside the header of the key
    outcomes, engine = run(lm, asking(3), clock)
    assert len(outcomes) == 1 and engine.ended.kind is FaultKind.MODEL and "secret" not in repr(engine.ended)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


def test_certificates_are_checked_as_the_model_says(certificate, clock):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with Server(ssl=context) as server:
        url = server.url.replace("http:", "https:")
        strict, _ = run(model(url, max_retries=0), asking(), clock)
        assert strict["k0"].kind is FaultKind.UNREACHABLE and "ca_cert_path" in strict["k0"].remedy
        known, _ = run(model(url, ca_cert_path=str(certificate / "cert.pem")), asking(), clock)
        blind, _ = run(model(url, verify_certificate=False), asking(), clock)
        assert known["k0"].text == blind["k0"].text == "Yes."


@pytest.mark.parametrize(
    "failure", [Reply({}, 503), Reply({}, 429), HANG_UP, Reply({"error": "x"}), Reply(b"<html>")]
)
def test_what_may_pass_is_tried_again_up_to_the_limit(server, clock, failure):
    assert outcome_of(server, failing_first(3, failure), clock, max_retries=3).text == "Yes."
    assert len(server.asked) == 4
    server.asked.clear()
    got = outcome_of(server, failing_first(3, failure), clock, max_retries=2)
    assert isinstance(got, Fault) and got.tries == len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 402, 404, 422])
def test_what_cannot_pass_is_not_tried_again(server, clock, status):
    assert outcome_of(server, Reply({}, status), clock, max_retries=5).tries == 1
    assert len(server.asked) == 1 and not clock.pauses


def test_one_refusal_holds_its_own_request_alone(server):
    """The others go on, over the connection that it leaves as well."""
    order = []

    async def script(asked):
        order.append(asked.prompt)
        first = asked.prompt == "Is it? 0" and order.count(asked.prompt) == 1
        return Reply({}, 429, {"Retry-After": "2"}) if first else Reply(chat(asked.prompt))

    class Late(QuickClock):
        async def pause(self, seconds):
            while len(order) < 40:
                await asyncio.sleep(0.001)

    server.script = script
    outcomes, _ = run(model(server, num_concurrent=1), asking(40), Late())
    assert all(isinstance(got, Answer) for got in outcomes.values())
    assert order == [*(f"Is it? {i}" for i in range(40)), "Is it? 0"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_of_a_server_that_answers_others_costs_no_try(server, clock, status):
    """One request is refused nine times, and may be tried twice."""
    refused, others = [], []

    async def script(asked):
        if asked.prompt != "Is it? 0" or len(refused) == 9:
            others.append(asked.prompt)
            return Reply(chat(asked.prompt))
        before = len(others)
        while len(others) < before + 2:  # who sends the second has the answer to the first
            await asyncio.sleep(0.001)
        refused.append(status)
        return Reply({}, status)

    server.script = script
    outcomes, _ = run(model(server, num_concurrent=2, max_retries=1), asking(400), clock)
    assert all(isinstance(got, Answer) for got in outcomes.values()) and len(refused) == 9


@pytest.mark.parametrize(
    ("places", "every", "most"), [(8, 0, 64), (10**6, 20, 32)], ids=["a full server", "one of twenty"]
)
def test_connections_follow_what_the_server_takes(server, clock, places, every, most):
    """A server that refuses what it has no place for, and each n-th request."""
    under_way = asked_until_now = 0

    async def script(asked):
        nonlocal under_way, asked_until_now
        asked_until_now += 1
        if under_way >= places or (every and asked_until_now % every == 0):
            return Reply({}, 429)
        under_way += 1
        await asyncio.sleep(0.005)
        under_way -= 1
        return Reply(chat(asked.prompt))

    server.script = script
    outcomes, engine = run(model(server, num_concurrent=most, max_retries=20), asking(1500), clock)
    assert all(isinstance(got, Answer) for got in outcomes.values())
    assert len(server.asked) < 1.5 * 1500  # without halving, most tries are refused
    [endpoint] = engine.endpoints
    assert (endpoint.allowed == most) is bool(every)  # single refusals cost no connection


@pytest.mark.parametrize("wish", ["100000", "inf"])
def test_a_wish_to_wait_for_long_is_capped(server, clock, wish):
    server.script = failing_first(1, Reply({}, 503, {"Retry-After": wish}))
    lines = []
    outcomes, _ = run(model(server), asking(), clock, say=lines.append)
    assert isinstance(outcomes["k0"], Answer)
    assert 60 <= sum(clock.pauses) <= 62
    assert lines == [f"{server.url}/chat/completions asks to wait (HTTP 503): 60 s"]


@pytest.mark.parametrize("status", [401, 402, 404])
def test_a_fault_that_no_request_escapes_ends_the_run(server, clock, status):
    async def script(asked):
        return Reply(chat()) if asked.number < 5 else Reply({}, status)

    server.script = script
    feed, outcomes = ListFeed(asking(500)), []
    engine = clock.rule(ApiEngine(model(server, num_concurrent=3)))
    engine.run(feed, lambda request, outcome: outcomes.append(outcome))
    assert engine.ended.kind.ends_all and engine.ended in outcomes
    assert len(outcomes) == len(server.asked) == 500 - len(feed.left) <= 8
    assert sum(isinstance(got, Answer) for got in outcomes) == 5
    server.script = failing_first(0, Reply())
    engine.run(ListFeed(asking()), lambda request, outcome: None)
    assert engine.ended is None  # of the last run


def test_such_a_fault_ends_pauses_of_others(server):
    """One request waits for its next try for minutes; the other is told that the key is wrong."""
    refused = asyncio.Event()

    class Slow:
        def rule(self, engine):
            self.pause, engine.pause = engine.pause, self.slow

        async def slow(self, seconds):
            server.call(refused.set)
            await self.pause(60)  # for ever, if the test is to end where nothing ends it

    async def script(asked):
        if asked.prompt == "Is it? 0":
            return Reply({}, 503)
        await refused.wait()
        return Reply({}, 401)

    server.script = script
    outcomes, engine = run(model(server), asking(2), Slow())
    assert outcomes["k0"].kind is FaultKind.BUSY and outcomes["k0"].tries == 1
    assert engine.ended is outcomes["k1"]


def test_an_interrupted_feed_lets_requests_under_way_come_home(server, clock):
    feed, outcomes = ListFeed(asking(50)), []
    arrived = asyncio.Event()

    async def script(asked):
        if len(server.asked) == 4:
            feed.interrupted = True
            arrived.set()
        await arrived.wait()
        return Reply(chat())

    server.script = script
    clock.rule(ApiEngine(model(server, num_concurrent=4))).run(feed, lambda *done: outcomes.append(done))
    assert len(outcomes) == len(server.asked) == 4


def test_an_interrupted_feed_does_not_wait_for_a_server_that_wants_to_be_left_alone(server):
    """The server asks for a minute; the user interrupts, and ends pauses between tries."""
    server.script = failing_first(50, Reply({}, 429, {"Retry-After": "60"}))
    feed, outcomes = ListFeed(asking(50)), []

    async def interrupt(seconds):
        feed.interrupted = True
        engine.stop()
        await pause(seconds)

    engine = ApiEngine(model(server, num_concurrent=1, max_retries=5))
    pause, engine.pause = engine.pause, interrupt
    engine.run(feed, lambda request, outcome: outcomes.append(outcome))
    assert {(got.kind, got.tries) for got in outcomes} == {(FaultKind.BUSY, 1)}
    assert len(outcomes) == len(server.asked) < 10


def test_tokens_of_one_request_hold_up_no_answer_to_another(server):
    came = threading.Event()

    class Slow(ListFeed):
        def take(self):
            assert len(self.left) != 1 or came.wait(20)
            return super().take()

    texts = Slow(replace(one, prompt="Is it?") for one in asking(2))
    ApiEngine(model(server, tokenised, "/completions")).run(texts, lambda *done: came.set())


def test_an_error_of_the_caller_ends_the_run(server, clock):
    def full(request, outcome):
        raise MedtasksError("the disk is full")

    with pytest.raises(MedtasksError, match="disk is full"):
        clock.rule(ApiEngine(model(server))).run(ListFeed(asking(20)), full)


def test_all_places_are_taken_at_all_times_and_outcomes_come_as_they_finish(server, clock):
    """The server holds every reply until all places are taken, or all that are left are there, and lets one
    go, chosen at random, once that before it was handed on: a place that stays empty is waited for."""
    n, places, chance = 300, 16, random.Random(0)
    waiting, released, order, most = {}, [], [], []

    def go_on():
        if waiting and len(released) == len(order) and len(waiting) >= min(places, n - len(released)):
            released.append(chance.choice(sorted(waiting)))
            waiting.pop(released[-1]).set()

    async def script(asked):
        waiting[asked.prompt] = gone = asyncio.Event()
        most.append(len(waiting))
        go_on()
        await gone.wait()
        return Reply(chat(asked.prompt))

    def done(request, outcome):
        order.append(outcome.text)
        server.call(go_on)

    server.script = script
    engine = clock.rule(ApiEngine(model(server, num_concurrent=places, max_retries=0, timeout=60)))
    assert engine.window == places
    engine.run(ListFeed(asking(n)), done)
    assert order == released and sorted(order) == sorted(f"Is it? {i}" for i in range(n))
    assert order != sorted(order, key=lambda text: int(text.rpartition(" ")[2]))
    assert max(most) == server.most_connections == places


def test_many_connections_and_every_kind_of_fault_give_each_request_one_outcome(server, clock):
    n, tried = 1000, {}
    faults = [
        Reply({}, 503),
        Reply({}, 429, {"Retry-After": "1"}),
        HANG_UP,
        Reply(chat(), length=9999, close=True),
        Reply({"error": "upstream"}),
        Reply(b"<html>"),
        Reply(chat(choices=[])),
    ]

    async def script(asked):
        number = int(asked.prompt.rpartition(" ")[2])
        tried[number] = tried.get(number, 0) + 1
        if number % 100 == 99:
            return Reply({}, 400)
        return faults[number % len(faults)] if tried[number] <= number % 3 else Reply(chat(asked.prompt))

    server.script = script
    counted = {}
    lm = model(server, num_concurrent=256, max_retries=3, timeout=120)
    clock.rule(ApiEngine(lm)).run(
        ListFeed(asking(n)), lambda request, outcome: counted.setdefault(request.key, []).append(outcome)
    )
    assert len(counted) == n and {len(outcomes) for outcomes in counted.values()} == {1}
    for i in range(n):
        got = counted[f"k{i}"][0]
        if i % 100 == 99:
            assert got.kind is FaultKind.REFUSED
        else:
            assert got.text == f"Is it? {i}"
    assert server.most_connections <= 256


def test_models_that_send_or_read_in_their_own_way_are_left_to_others():
    class Own(LocalChatCompletion):
        def _create_payload(self, messages, **settings):
            return {**super()._create_payload(messages, **settings), "thinking": True}

    assert reader_of(LocalChatCompletion) and reader_of(Own)
    assert not reader_of(SGLANGGENERATEAPI) and not reader_of(LiteLLMChatCompletion)


def test_a_key_that_is_not_set_or_broken_is_said_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MedtasksError, match="export OPENAI_API_KEY"):
        ApiEngine(model(server, OpenAIChatCompletion))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    outcomes, engine = run(model(server, OpenAIChatCompletion), asking())
    assert engine.ended is outcomes["k0"] and "line break" in engine.ended.remedy
    assert "secret" not in repr(engine.ended) and not server.asked
