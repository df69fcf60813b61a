"""One judge's engine: how it is looked up, and how it is asked for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import NO_TEXT, Egress
from medtasks_ext.engines.http import Client
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request, Usage
from medtasks_ext.engines.replies import Server, chat_answer, shortened
from medtasks_ext.engines.servers import Pace, ServerEngine
from medtasks_ext.judge.cost import BYTES_PER_TOKEN
from medtasks_ext.privacy import shows_text
from medtasks_ext.run.charge import Budget, counts_fit, most_tokens, n_bytes

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.judge.jury import Judge

#: Tries of a request that fails on the way.
MAX_TRIES = 8
PROBE_SECONDS = 60.0
_CHATS = "/chat/completions"
_PROBE = [{"role": "user", "content": "1"}]
CUT_REPLY = "reply cut at max_tokens"
#: Why a reply holds no verdict, where the server says it: finish -> words.
SHORTFALLS = {
    "length": CUT_REPLY,
    "refusal": "the judge declined",
    "content_filter": "the judge's server filtered the reply",
}


class JudgeEngine(ServerEngine):
    def __init__(
        self, judge: Judge, render: Callable[[Request], Request], say: Callable[[str], None], egress: Egress
    ) -> None:
        self.judge, self._render = judge, render
        self.takes_schema = True  # False once the server has refused a schema
        key = judge.api_key
        server = Server(
            judge.base_url,
            judge.model,
            judge.key_words,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            connections=judge.max_concurrent,
            timeout=judge.timeout,
        )
        super().__init__(
            [server],
            MAX_TRIES - 1,
            chat_answer,
            pace=Pace(judge.requests_per_minute),
            quotes=lambda request: request.text.is_open or shows_text(),
            say=say,
            egress=egress,
        )
        self.local = False  # verdicts under way are waited for, also those of a model on this machine

    def prepare(self, request: Request) -> Request:
        return self._render(request)

    def body(self, request: Request) -> Json:
        """Under the schema of a verdict where the server takes one."""
        return chat_body(self.judge, messages_of(request), request.settings["schema"])

    async def send(self, client: Client, request: Request, body: Json) -> Outcome:
        """A server that refuses the schema is asked without from then on."""
        quote, text = self._quotes(request), request.text
        if self.takes_schema:
            outcome = await client.ask(body, chat_answer, path=_CHATS, quote=quote, text=text)
            if isinstance(outcome, Answer) or outcome.kind is not FaultKind.REFUSED:
                return outcome
        plain_body = chat_body(self.judge, messages_of(request), None)
        plain = await client.ask(plain_body, chat_answer, path=_CHATS, quote=quote, text=text)
        if isinstance(plain, Answer):  # refused again, it would not have been the schema
            self.takes_schema = False
        return plain

    async def fault(self, budget: Budget) -> str:
        """Why the judge cannot work, found out before it is asked about answers; empty if it can.

        Asks for the list of models. Where the model is not on it, or a key is to be tried (lists are
        often open to anyone), a request for one token decides, if the budget allows it.
        """
        async with self.client(self._servers[0]) as client:
            reply = await client.exchange("GET", "/models", seconds=PROBE_SECONDS, quote=True)
            if isinstance(reply, Fault):  # a server may take the key for chats and not for the list
                if reply.status is None or reply.kind is FaultKind.MONEY:
                    return reply.reason
                listed = []
            else:
                listed = _names(reply.body)
            is_listed = self.judge.model in listed
            if is_listed and not self.judge.api_key_env:
                return ""
            cost = self.judge.cost(most_tokens(_PROBE), 1)
            if not budget.reserve(cost):
                return ""
            found_out = await self._refusal(client, listed, is_listed)
            budget.settle(cost, spent=cost)
            return found_out

    async def _refusal(self, client: Client, listed: list[str], is_listed: bool) -> str:
        """Why a request for one token gets no answer; empty if it gets one, or may get one later."""
        body = chat_body(self.judge, _PROBE, None, limit=1)
        seconds = min(self.judge.timeout, PROBE_SECONDS)
        reply = await client.exchange("POST", _CHATS, body, seconds=seconds, quote=True, text=NO_TEXT)
        if not isinstance(reply, Fault):
            if isinstance(reply.body, dict) and reply.body.get("choices"):
                return ""  # one token need not hold text
            answer = chat_answer(reply.body, quote=True)
            return "" if isinstance(answer, Answer) else answer.reason
        if reply.kind.ends_all:
            return f"{reply.reason}; it has: {shortened(', '.join(listed))}" if listed else reply.reason
        if reply.status == 429:  # a busy server will answer later
            return ""
        if reply.kind.is_transient:
            return reply.reason
        # a model that is there may refuse so short a reply
        return "" if is_listed else f"a request for one token is refused: {reply.reason}"


def messages_of(request: Request) -> list[dict[str, str]]:
    assert not isinstance(request.prompt, str)
    return request.prompt


def chat_body(
    judge: Judge,
    messages: list[dict[str, str]],
    schema: Mapping[str, Any] | None,
    limit: int | None = None,
) -> Json:
    """Without a schema the server is asked for no verdict's form; the limit is the jury file's by default."""
    tokens = limit or judge.max_tokens
    body: Json = {"model": judge.model, "messages": messages, judge.max_tokens_key: tokens}
    if judge.temperature is not None:
        body["temperature"] = judge.temperature
    if schema is not None:
        wanted = {"name": "verdict", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return {**body, **judge.extra_body}


def usage_of(answer: Answer, messages: list[dict[str, str]]) -> Usage:
    """What a reply took, estimated where no count of the server can be that of the texts."""
    prompt = n_bytes(messages)
    if answer.usage is not None and counts_fit(messages, answer):
        return Usage(answer.usage.prompt, answer.usage.completion, prompt_bytes=prompt)
    reply = len(answer.text.encode(errors="surrogatepass"))
    return Usage(prompt // BYTES_PER_TOKEN, reply // BYTES_PER_TOKEN, prompt_bytes=prompt, counted=False)


def _names(body: Any) -> list[str]:
    try:
        return [str(item["id"]) for item in body["data"]]
    except (KeyError, TypeError):
        return []
