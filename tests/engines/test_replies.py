"""What replies become: answers with all that servers say of them, or faults by kind."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.models.anthropic_llms import AnthropicChat
from lm_eval.models.openai_completions import LocalCompletionsAPI

from medtasks_ext.egress import NO_TEXT
from medtasks_ext.engines import Answer, Fault, FaultKind, Request, Usage, http
from medtasks_ext.engines.replies import Server, chat_answer, message_answer, status_fault, text_answer
from tests.engines.conftest import SETTINGS, asking, model, outcome_of, run, untokenised
from tests.engines.server import Reply, chat, completion, message


def test_an_answer_has_what_the_server_says_of_it(server, clock):
    body = chat("No.", id="r1", model="m-2026-11")
    body["choices"][0]["message"]["reasoning_content"] = "Let me see."
    details = {
        "completion_tokens_details": {"reasoning_tokens": 4},
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    body["usage"] = {"prompt_tokens": 10, "completion_tokens": 6, **details}
    got = outcome_of(server, body, clock)
    assert got.seconds > 0
    assert got == Answer(
        "No.", "stop", Usage(10, 6, reasoning=4, cached=3), "Let me see.", "m-2026-11", "r1", got.seconds
    )


@pytest.mark.parametrize(
    "usage",
    [
        *(None, 5, {}, {"prompt_tokens": 1}),
        *({"prompt_tokens": n, "completion_tokens": 2} for n in ("1", -1, True, 10**300)),
    ],
)
def test_an_answer_without_a_usable_count_is_an_answer(server, clock, usage):
    got = outcome_of(server, chat(usage=usage), clock)
    assert got.text == "Yes." and got.usage is None


def test_an_answer_of_which_nothing_is_said_is_an_answer(server, clock):
    got = outcome_of(server, {"choices": chat()["choices"]}, clock)
    assert (got.text, got.usage, got.model, got.request_id) == ("Yes.", None, "", "")
    nested = chat(usage={"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": None})
    assert outcome_of(server, nested, clock).usage == Usage(1, 2)


def choice(**parts):
    """A chat completion whose only choice is changed; `message` holds parts of its message."""
    body = chat()
    body["choices"][0]["message"].update(parts.pop("message", {}))
    body["choices"][0].update(parts)
    return body


THINKS = {"content": [{"type": "thinking", "thinking": "so"}]}


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (chat(""), "", "stop"),
        (choice(message={"content": None}, finish_reason="length"), "", "length"),
        (choice(message={"content": "", "reasoning": "so"}, finish_reason="length"), "", "length"),
        (choice(message={"content": None}, finish_reason="content_filter"), "", "content_filter"),
        ({"choices": [{"finish_reason": "content_filter", "index": 0}]}, "", "content_filter"),
        ({"choices": [{"finish_reason": "content_filter", "message": None}]}, "", "content_filter"),
        (choice(message=THINKS, finish_reason="length"), "", "length"),
        (choice(message={"content": None, "refusal": "No."}), "No.", "refusal"),
        (choice(message={"content": "", "refusal": "No."}), "No.", "refusal"),
        (choice(message={"content": "", "refusal": "No."}, finish_reason="length"), "No.", "refusal"),
    ],
)
def test_a_server_that_says_why_there_is_no_text_or_refuses_has_answered(server, clock, body, text, finish):
    got = outcome_of(server, body, clock)
    assert isinstance(got, Answer) and (got.text, got.finish) == (text, finish)


def test_texts_that_are_no_proper_text_are_answers_and_reasoning_is_left_out(server, clock):
    for body, text in (
        (json.dumps(chat("half \ud83d")).encode(), "half \ud83d"),
        (json.dumps(chat("x#y")).encode().replace(b"#", b"\xff"), "x\ufffdy"),
        (b"\xef\xbb\xbf" + json.dumps(chat()).encode(), "Yes."),
    ):
        assert outcome_of(server, Reply(body), clock).text == text
    got = outcome_of(server, chat("I think</think>\n\nYes."), clock, think_end_token="</think>")
    assert got.text == "Yes."


def test_completions_of_a_text(server, clock):
    settings = {"kind": untokenised(LocalCompletionsAPI), "path": "/completions"}
    prompts = [Request("k0", "t", "d", "Is it?", SETTINGS)]
    got = outcome_of(server, completion(" No"), clock, prompts, **settings)
    assert (got.text, got.finish, got.usage, got.model) == (" No", "stop", Usage(7, 2), "m-2026")
    cut = {"choices": [{"text": None, "finish_reason": "length"}]}
    assert outcome_of(server, cut, clock, prompts, **settings).text == ""
    fault = outcome_of(server, chat("a chat"), clock, prompts, **settings)
    assert fault.kind is FaultKind.MALFORMED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            message(
                {"type": "thinking", "thinking": "Let me see.", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "No, "},
                {"type": "text", "text": "not."},
            ),
            ("No, not.", "stop", "Let me see."),
        ),
        (message(stop_reason="max_tokens"), ("Yes.", "length", "")),
        (message(content=[], stop_reason="refusal"), ("", "refusal", "")),
    ],
)
def test_messages_of_anthropic(server, clock, keys, body, expected):
    got = outcome_of(server, body, clock, kind=AnthropicChat, path="/messages")
    assert (got.text, got.finish, got.reasoning) == expected and got.usage == Usage(7, 2)


def test_anthropics_cache_is_part_of_the_prompt(server, clock, keys):
    counted = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 30}
    body = message(usage={**counted, "cache_creation_input_tokens": 400})
    got = outcome_of(server, body, clock, kind=AnthropicChat, path="/messages")
    assert got.usage == Usage(431, 2, cached=30)


@pytest.mark.parametrize(
    "body",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        message(content=None),
        message(content="text"),
        message(content=[5]),
        message({"type": "tool_use", "input": {}}),
        message({"type": "text", "text": None}),
        message({"type": ["text"], "text": "x"}),
    ],
)
def test_messages_without_text(server, clock, keys, body):
    got = outcome_of(server, body, clock, kind=AnthropicChat, path="/messages")
    assert got.kind is FaultKind.MALFORMED


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "upstream failed", "code": 502}},
        chat(error="upstream failed"),
        chat(choices=[]),
        chat(choices={"0": {}}),
        chat(choices=None),
        chat(choices=["Yes."]),
        choice(message={"content": None}),
        choice(message={"content": None, "reasoning_content": "Let me see."}),
        choice(message={"content": [{"type": "thinking", "thinking": "So."}]}),
        choice(message={"content": [{"type": "text", "text": "Yes."}, {"type": "image_url"}]}),
        choice(message={"content": [{"type": "thinking", "thinking": [{"type": "text"}]}]}),
        choice(message={"content": ["Yes."]}),
        choice(message={"content": []}),
        choice(message={"content": {}}, finish_reason="length"),
        choice(message={"content": 5}),
        choice(finish_reason="error"),
        choice(error={"message": "died half way"}),
        chat(choices=[{"index": 0, "message": "Yes.", "finish_reason": "stop"}]),
        [],
        None,
        "Yes.",
        Reply(b"<html><body>gateway</body></html>"),
        Reply(b""),
        Reply(status=204, body=b""),
        Reply(b'{"choices": [{"message": {"content": "Ye'),
        Reply(b'{"usage": {"prompt_tokens": ' + b"9" * 5000 + b"}}"),
        Reply(b'{"a":' * 100_000),
        Reply(b"[" * 100_000 + b"]" * 100_000),
    ],
)
def test_a_reply_without_a_completion_is_a_fault_and_not_an_empty_answer(server, clock, body):
    got = outcome_of(server, body, clock)
    assert isinstance(got, Fault) and got.kind is FaultKind.MALFORMED
    assert got.reason.startswith("the server sent") and got.maybe_paid == got.tries == 1


def test_a_reply_that_does_not_end_is_not_read_to_its_end(server, clock, monkeypatch):
    monkeypatch.setattr(http, "LARGEST_REPLY", 2**20)

    async def endless():
        while True:
            yield b" " * 2**16

    async def script(asked):
        return Reply(endless())

    got = outcome_of(server, script, clock)
    assert got.kind is FaultKind.MALFORMED and "more than 1 MB" in got.reason


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        *((status, {}, FaultKind.REFUSED) for status in (400, 405, 413, 422)),
        *(
            (status, {"message": message}, FaultKind.TOO_LONG)
            for status, message in (
                (400, "This model's maximum context length is 8 tokens."),
                (400, "prompt is too long: 9 tokens > 8 maximum"),
                (400, "The input (9 tokens) is longer than the model's context length (8)."),
                (413, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
                (422, "`inputs` tokens + `max_new_tokens` must be <= 8"),
            )
        ),
        (400, {"code": "context_length_exceeded"}, FaultKind.TOO_LONG),
        (400, {"message": "too large", "type": "exceed_context_size_error"}, FaultKind.TOO_LONG),
        (401, {"message": "bad key"}, FaultKind.KEY),
        (403, {"message": "not allowed"}, FaultKind.KEY),
        (400, {"message": "cannot parse: " + "x " * 200 + "content management policy"}, FaultKind.REFUSED),
        (402, {}, FaultKind.MONEY),
        (429, {"code": "insufficient_quota"}, FaultKind.MONEY),
        (400, {"message": "Your credit balance is too low to access the API"}, FaultKind.MONEY),
        (500, {"message": "failed on: patient has insufficient funds for insulin"}, FaultKind.BUSY),
        (400, {"message": "cannot parse: " + "x " * 200 + "insufficient funds"}, FaultKind.REFUSED),
        (404, {"message": "The model m does not exist"}, FaultKind.MODEL),
        (302, {}, FaultKind.MODEL),
        *((status, {}, FaultKind.BUSY) for status in (408, 409, 425, 429, 500, 503, 504)),
    ],
)
def test_faults_are_told_apart(server, clock, status, error, kind):
    reply = Reply({"error": error}, status, {"Location": "http://127.0.0.1:9/"} if status == 302 else {})
    got = outcome_of(server, reply, clock)
    assert (got.kind, got.status, got.tries) == (kind, status, 1)
    assert got.maybe_paid == (status in (408, 500, 504))  # the model may have worked


def test_bodies_of_errors_may_be_anything(server, clock):
    for body in (b"", b"<html>", b"[" * 100_000, b'"x"', b"[]", b'{"error": 5}', b'{"detail": [{"loc": 1}]}'):
        got = outcome_of(server, Reply(body, 400), clock)
        assert (got.kind, got.reason) == (FaultKind.REFUSED, "HTTP 400")
    for body in ({"error": "said"}, {"message": "said"}, {"detail": "said"}, {"error": {"message": "said"}}):
        assert outcome_of(server, Reply(body, 400), clock).reason == "HTTP 400: said"


def test_a_servers_own_words_are_quoted_only_where_that_is_allowed(server, clock, monkeypatch):
    error = {
        "message": f"bad: \x1b[31mMrs\nSecret{'!' * 500}",
        "type": "invalid_request_error",
        "code": "x y",
    }
    loud = outcome_of(server, Reply({"error": error}, 400), clock).reason
    assert loud.startswith("HTTP 400: bad: [31mMrs Secret!!") and len(loud) < 180
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    bad = [Reply({"error": error}, status) for status in (302, 400, 401, 402, 403, 404, 429, 500)]
    for reply in (*bad, Reply({"error": error}), Reply({"detail": "Mrs Secret"}, 422)):
        assert "Secret" not in outcome_of(server, reply, clock).reason
    assert outcome_of(server, bad[1], clock).reason == "HTTP 400, invalid_request_error"
    asked = [asking()[0], replace(asking(2)[1], text=NO_TEXT)]
    outcomes, _ = run(model(server), asked, clock)
    assert ["Secret" in outcomes[key].reason for key in ("k0", "k1")] == [False, True]


def test_faults_name_server_model_and_key_but_show_no_secret(server, clock, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    url = f"{server.url}/chat/completions?key=secret"
    for status, words in ((401, "the key in OPENAI_API_KEY"), (404, "has no model 'm'")):
        got = outcome_of(server, Reply({}, status), clock, base_url=url)
        assert words in got.reason and "127.0.0.1" in got.reason and "secret" not in repr(got)
    monkeypatch.delenv("OPENAI_API_KEY")
    fault = outcome_of(server, Reply({}, 401), clock)
    assert "a request without a key" in fault.reason and "OPENAI_API_KEY" in fault.remedy


# ---------------------------------------------------------------------- anything at all

KEYS = st.sampled_from(
    [
        *("choices", "message", "content", "text", "type", "thinking", "usage", "prompt_tokens"),
        *("error", "code", "detail", "finish_reason", "refusal"),
    ]
)
WORDS = st.sampled_from(["text", "thinking", "length", "content_filter"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(ANYTHING, st.booleans())
def test_no_body_is_an_exception(body, quote):
    for read in (chat_answer, text_answer, message_answer):
        assert isinstance(read(body, quote), Answer | Fault)
    for status in (302, 400, 403, 404, 429, 500):
        fault = status_fault(status, body, Server("http://x"), quote=quote)
        assert isinstance(fault, Fault) and fault.reason.isprintable()
