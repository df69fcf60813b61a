"""Requests in, outcomes out in the order in which they finish: vLLM, APIs, lm-eval's other models."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeAlias

from medtasks_ext.egress import UNKNOWN_TEXT, Egress, Text

#: A text, or the turns of a conversation: `{"role": …, "content": …}`.
Prompt: TypeAlias = str | list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    key: str  # identifies model, task, document, prompt and settings
    task: str
    document: str  # key of the document within the task
    prompt: Prompt  # as the model gets it
    settings: Mapping[str, Any]  # lm-eval's `generation_kwargs`: `until`, `max_gen_toks`, `temperature`, …
    #: the lm-eval document, for models that answer from it (the built-in ones)
    row: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    tokens: list[int] | None = field(default=None, repr=False, compare=False)  # of the prompt
    text: Text = field(default=UNKNOWN_TEXT, compare=False)  # whose text the prompt holds
    options: tuple[str, ...] = ()  # what may follow the prompt, where the model is asked how likely that is
    option_tokens: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)
    cut: str = ""  # what did not fit of the prompt: `shots`, `input`, or nothing


@dataclass(frozen=True, slots=True)
class Usage:
    prompt: int  # of the prompt, those taken from a cache included
    completion: int  # of the response, its reasoning included
    reasoning: int | None = None  # of the reasoning, where the server says so
    cached: int | None = None  # of the prompt that the server took from a cache, where it says so
    counted: bool = True  # False for an estimate
    prompt_bytes: int | None = None  # of the texts that were sent, where it is kept


#: `Answer.finish` where vLLM ended a text that repeats itself, and where a filter took a part away.
LOOP, CONTENT_FILTER = "repetition", "content_filter"


class Likelihood(NamedTuple):
    """How likely a model finds a text behind a prompt, as lm-eval has it."""

    value: float  # natural logarithm of the probability, summed over tokens
    greedy: bool  # whether greedy decoding writes it


@dataclass(slots=True)
class Answer:
    text: str  # empty only if the model ended at once, was cut within its reasoning, or was filtered
    finish: str = ""  # why the response ended: `stop`, `length`, `content_filter`, …; empty where nobody says
    usage: Usage | None = None  # tokens, where they were counted
    reasoning: str = ""  # what the server returns apart from the text
    model: str = ""  # that answered, as the server calls it
    request_id: str = ""  # of the server
    seconds: float | None = None  # from sending to the last token
    cost: float | None = None  # US dollars at the price of the time; None where nobody charges, or knows it
    likelihoods: tuple[Likelihood, ...] = ()  # of the options, in their order


def likeliest(request: Request, likelihoods: Sequence[Likelihood], usage: Usage | None = None) -> Outcome:
    """The answer to a request that has options; a fault where a likelihood is no number."""
    if not all(isfinite(item.value) for item in likelihoods):
        return Fault(FaultKind.ENGINE, "the model gave a log-likelihood that is no number")
    best = max(range(len(likelihoods)), key=lambda place: likelihoods[place].value)
    return Answer(request.options[best].strip(), usage=usage, likelihoods=tuple(likelihoods))


class FaultKind(str, Enum):
    UNREACHABLE = "unreachable"  # no server answers, or the connection broke
    TIMEOUT = "timeout"  # no reply in time
    BUSY = "busy"  # the server asks to come back later, or fails (429, 408, 409, 425, 5xx)
    MALFORMED = "malformed"  # a reply that holds no completion: an error with status 200, no text, HTML
    REFUSED = "refused"  # the server does not take this request (400, 413, 422, …)
    TOO_LONG = "too_long"  # the prompt does not fit the context, even without shots and input
    WITHHELD = "withheld"  # the server may not receive a text that is not open: nothing was sent
    ENGINE = "engine"  # the engine failed on this request
    KEY = "key"  # the key is missing, wrong or not allowed (401, 403)
    MONEY = "money"  # no credit is left (402, or said in words)
    MODEL = "model"  # there is no such model or address (404), or the server redirects elsewhere
    UNREADABLE = "no_verdict"  # a reply came, and its reader finds no verdict in it

    @property
    def ends_all(self) -> bool:
        return self in (FaultKind.KEY, FaultKind.MONEY, FaultKind.MODEL)

    @property
    def is_transient(self) -> bool:
        return self in (FaultKind.UNREACHABLE, FaultKind.TIMEOUT, FaultKind.BUSY, FaultKind.MALFORMED)


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    reason: str  # in words, without text of the row
    remedy: str = ""  # what to do, where that is known
    status: int | None = None  # of HTTP, if a reply came
    tries: int = 1  # how often the request was sent
    maybe_paid: int = 0  # how many of these the server may have worked on and counted
    usage: Usage | None = None  # of a reply that came all the same
    cost: float | None = None  # US dollars of that reply
    request_id: str = ""  # of the server
    after: float = 0.0  # seconds after which the server asks to come back, while it is asked

    @property
    def in_words(self) -> str:
        return f"{self.reason}: {self.remedy}" if self.remedy else self.reason


Outcome: TypeAlias = Answer | Fault

#: Seconds that a thread waits for a feed before it looks whether that is over.
WAIT_SECONDS = 0.2


class Feed(Protocol):
    """Requests that are ready, as `run.asker.Asker` has them."""

    @property
    def over(self) -> bool: ...
    @property
    def dry(self) -> bool: ...
    def take(self) -> Request | None: ...
    def wait(self, seconds: float) -> None: ...


Done: TypeAlias = Callable[[Request, Outcome], None]
Again: TypeAlias = Callable[[Request, Fault], bool | None]


class Engine(ABC):
    window: int = 64  # requests that the engine has under way at most
    local: bool = True  # whether the model runs on this machine: requests that are given up cost nothing
    keeps_prefixes: bool = False  # whether it keeps the beginnings of prompts that it has read
    sends: bool = True  # False for one that only notes what is asked, which costs nothing yet
    file: str = ""  # in which it notes that
    addresses: Sequence[str] = ()  # of the servers that get the prompts
    egress: Egress | None = None  # which servers may receive which text; None for the environment's policy
    ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
    #: asked before a request is sent once more after a fault: whether it may be, None if not now
    again: Again = staticmethod(lambda request, fault: True)
    later: Callable[[Request], None] = staticmethod(lambda request: None)  # its outcome comes another way

    def check(self, texts: Iterable[Text]) -> None:
        held = list(texts)
        for address in self.addresses:
            (self.egress or Egress.of()).check(address, held)

    def prepare(self, request: Request) -> Request | Fault:
        """Make a request ready to be sent, in the thread that builds requests: tokens, for example."""
        return request

    @abstractmethod
    def run(self, feed: Feed, done: Done) -> None:
        """Take requests until the feed is over, and hand on each outcome; what fails is a fault."""

    def wake(self) -> None:  # noqa: B027  most wait for the feed
        """The feed may have something to take; called in any thread."""

    def stop(self) -> None:  # noqa: B027  most try nothing again
        """May be called from a handler of signals; requests under way come home."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Free what the engine holds."""


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all works beside each other; the first error ends them all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
