"""A jury is asked: each judge by an engine of its own, in rounds, until no case needs anything more.

A round asks all that is open: first the judges; then what could not be read, as the next draw of the same
question; then the adjudicator, where assessors differ.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import NO_TEXT, AskedServer, Egress, Text
from medtasks_ext.engines import Answer, Fault, FaultKind, Outcome, Request, Usage
from medtasks_ext.engines.http import Client
from medtasks_ext.engines.replies import NO_KEY, Server, chat_answer
from medtasks_ext.engines.servers import ServerEngine, may_quote
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import Ask, RunToJudge, requests_of
from medtasks_ext.judge.jury import BYTES_PER_TOKEN, HUMAN, Judge, Jury
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.process import collector_sparing
from medtasks_ext.run.asker import LOOK, WAITING, Asker, Job, signals_call
from medtasks_ext.run.charge import Budget, counts_fit, most_tokens, n_bytes
from medtasks_ext.run.store import Answers

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

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
            f"the key in {judge.api_key_env}" if judge.api_key_env else NO_KEY,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            connections=judge.max_concurrent,
            timeout=judge.timeout,
        )
        super().__init__([server], MAX_TRIES - 1, chat_answer, say=say, egress=egress)
        self.local = False  # verdicts under way are waited for, also those of a model on this machine

    def prepare(self, request: Request) -> Request:
        return self._render(request)

    def body(self, request: Request) -> Json:
        """Under the schema of a verdict where the server takes one."""
        return chat_body(self.judge, messages_of(request), request.settings["schema"])

    async def send(self, client: Client, request: Request, body: Json) -> Outcome:
        """A server that refuses the schema is asked without from then on."""
        quote, text = may_quote(request), request.text
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
        """Why the judge cannot work, by a request for one token, if the budget allows it; empty if it can."""
        cost = self.judge.cost(most_tokens(_PROBE), 1)
        if not budget.reserve(self.judge.name, cost):
            return ""
        body, [server] = chat_body(self.judge, _PROBE, None, limit=1), self._servers
        server = replace(server, timeout=min(server.timeout, PROBE_SECONDS))
        async with self.client(server) as client:
            reply = await client.ask(body, _any_answer, path=_CHATS, quote=True, text=NO_TEXT)
        budget.settle(self.judge.name, cost)
        if not isinstance(reply, Fault):
            return ""
        # a busy server will answer later, and one may refuse so short a reply
        broken = reply.kind.ends_all or (reply.kind.is_transient and reply.status != 429)
        return reply.reason if broken else ""


def _any_answer(body: Any, quote: bool) -> Answer:
    """One that was made for a probe, which nobody reads."""
    return Answer("")


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


#: Draws of a question in one call, where they cannot be read.
MAX_REPLIES = 3
#: Requests in a row that use up their tries before the judge is given up for this call.
MAX_GIVEN_UP = 3


@dataclass
class End:
    stopped: dict[str, str] = field(default_factory=dict)  # judge -> why it was given up
    interrupted: bool = False  # a signal ended it
    out_of_money: bool = False  # the limit ended it


class Judging:
    """Asks the judges of a jury about runs; one reply serves all runs that have the same answer."""

    def __init__(
        self, jury: Jury, runs: list[RunToJudge], say: Callable[[str], None], egress: Egress
    ) -> None:
        self.jury, self.runs, self.say = jury, runs, say
        #: takes the end of each question, as that of a request of a task with the name of its judge
        self.show: Callable[[Request, Outcome], None] = lambda request, outcome: None
        self.egress = egress.recording(self._note_sent)
        self._lock = threading.RLock()
        self._asks: dict[str, list[Ask]] = {}  # key of each request of this round -> one ask for each run
        self._over = set[str]()  # questions that are not asked again in this call
        self._unread = Counter[str]()  # question -> its draws of this call without a verdict
        self._given_up = Counter[str]()  # judge -> requests in a row that used up their tries
        self._end, self._signals_seen = End(), 0

    def pending(self) -> list[Ask]:
        cases = ((task, case, run.store) for run in self.runs for task in run.tasks for case in task.cases)
        asks = (ask for task, case, store in cases for ask in requests_of(task, case, self.jury, store)[1])
        return [ask for ask in asks if ask.judge != HUMAN]

    def possible(self, asks: Iterable[Ask]) -> list[Ask]:
        """Requests to the adjudicator that the answers to others may lead to, at most."""
        further = (
            Ask.of(ask.task, ask.case, question, self.jury, ask.store)
            for ask in asks
            if self.jury.adjudicator
            and ask.task.rubric.protocol.dispute_above is not None
            and ask.judge != self.jury.adjudicator_name
            for question in ask.case.adjudication(self.jury)
        )
        return list({(id(ask.store), ask.key): ask for ask, said in further if said is None}.values())

    def check(self, asks: Iterable[Ask]) -> None:
        """Refuse requests with text that a judge's server may not receive, before any is sent."""
        asks = list(asks)
        for judge in self.jury.models:
            texts = dict.fromkeys(ask.text for ask in asks if ask.judge == judge.name)
            self.egress.check(judge.base_url, texts)

    def _note_sent(self, place: AskedServer, text: Text) -> None:
        for run in self.runs:
            if any(task.name == text.dataset for task in run.tasks):
                run.store.sent(place, text)

    def estimates(self, asks: Sequence[Ask]) -> list[Json]:
        """What each judge may cost, by the sizes of its prompts; `cost` in USD, None without a price."""
        estimates = []
        for judge in self.jury.models:
            sizes = [n_bytes(ask.rubric.messages(ask.texts)) for ask in asks if ask.judge == judge.name]
            prompt, reply = round(sum(sizes) / BYTES_PER_TOKEN), len(sizes) * judge.max_tokens
            cost = judge.cost(prompt, reply) if judge.price is not None else None
            row = {"judge": judge.name, "requests": len(sizes), "prompt tokens": prompt}
            estimates.append({**row, "reply tokens": reply, "cost": cost})
        return estimates

    def needed(self) -> Counter[str]:
        """Judge -> requests to it, before any is sent; 0 where some may follow from the answers to others."""
        asks = self.pending()
        possible = self.possible(asks)
        self.check([*asks, *possible])
        needed = Counter(dict.fromkeys((ask.judge for ask in possible), 0))
        needed.update(ask.judge for ask in asks)
        return needed

    def go(self, budget: Budget, needed: Collection[str]) -> End:
        """Judge until nothing is left, the money is spent, every judge is given up, or a signal comes.

        That a judge cannot work at all is known before a request is paid for.
        """
        answers = self.runs[0].store
        askers = {judge.name: _Asker(judge, self, answers, budget) for judge in self.jury.models}
        asyncio.run(_check_servers([askers[name].judge_engine for name in needed], budget))

        def wake() -> None:
            for asker in askers.values():
                asker.wake()

        budget.freed = wake
        try:
            with collector_sparing(), signals_call(lambda: self._interrupt(list(askers.values()))):
                while self._round(askers):
                    for run in self.runs:
                        run.store.flush()
        except KeyboardInterrupt:
            if self._signals_seen > 1:
                raise
        finally:
            for asker in askers.values():
                asker.end()
        self._end.interrupted, self._end.out_of_money = self._signals_seen > 0, budget.exhausted
        return self._end

    def _round(self, askers: Mapping[str, _Asker]) -> bool:
        """Ask all that is open now, and wait for it; False where that is nothing."""
        self._asks, shared = {}, False
        for ask in self.pending():
            if ask.question in self._over or askers[ask.judge].over:
                continue
            others = (run.store for run in self.runs if run.store is not ask.store)
            if given := next((store.said[ask.key] for store in others if ask.key in store.said), None):
                ask.store.copy(given)
                shared = True
            else:
                self._asks.setdefault(ask.key, []).append(ask)
        requests: dict[str, list[Request]] = {}
        for key, (ask, *_) in self._asks.items():
            request = Request(key, ask.task.name, ask.case.document, [], {}, text=ask.text)
            requests.setdefault(ask.judge, []).append(request)
        jobs = {name: Job() for name in requests}
        for name, job in jobs.items():
            askers[name].begin()
            askers[name].add(job, requests[name])
        for name, job in jobs.items():
            while not job.over.wait(LOOK):
                for run in self.runs:
                    run.store.check()
            if isinstance(error := askers[name].ended, BaseException):
                raise error
        return bool(jobs) or shared

    def _interrupt(self, askers: Sequence[_Asker]) -> None:
        """The first signal lets requests that may be charged come home; the second does not."""
        self._signals_seen += 1
        if self._signals_seen > 1 or not any(asker.under_way for asker in askers):
            raise KeyboardInterrupt
        for asker in askers:
            threading.Thread(target=asker.stop).start()  # this one may hold the locks
            asker.engine.stop()
        self.say(WAITING)

    def rendered(self, request: Request) -> Request:
        """With the conversation that the judge gets, which is not made before its turn."""
        ask = self._asks[request.key][0]
        return replace(request, prompt=ask.rubric.messages(ask.texts), settings={"schema": ask.rubric.schema})

    def sending(self, request: Request, intent: float) -> None:
        """On the disk before the request leaves: it may be paid for, whatever becomes of this process."""
        ask = self._asks[request.key][0]
        with self._lock:
            ask.store.note(ask.key, "intent", ask.task.name, ask.case.document, {"cost": intent})
        ask.store.flush()

    def came(self, request: Request, outcome: Outcome, asker: _Asker, settles: float | None) -> float | None:
        """Keep what a judge said; US dollars that it cost, None where nobody knows."""
        judge, same = asker.judge, self._asks[request.key]
        settled = {} if judge.price is None or settles is None else {"settles": settles}
        with self._lock:
            if isinstance(outcome, Fault):
                self._see_fault(outcome, asker)
                for ask in same:
                    ask.keep(outcome, settled if ask is same[0] else {})
                self._ended(request, judge, outcome)
                return 0.0
            self._given_up[judge.name] = 0
            usage, cost = usage_of(outcome, messages_of(request)), None
            if judge.price is not None:
                cost = judge.spent(usage) if usage.counted else asker.most(request)
            read = _read(same[0], outcome)
            served = outcome.model if outcome.model != judge.model else ""
            reply = replace(outcome, usage=usage, cost=cost, model=served)
            first, *others = same
            first.keep(reply, {**read, **settled})
            for ask in others:
                ask.store.copy(first.store.said[request.key])
            if "ratings" in read:
                self._ended(request, judge, reply)
            else:
                self._unread[first.question] += 1
                # what fills its budget without chance in it would fill it again
                cut = outcome.finish == "length" and judge.temperature == 0
                if cut or self._unread[first.question] == MAX_REPLIES:
                    self._ended(request, judge, Fault(FaultKind.UNREADABLE, "no verdict"))
            return judge.spent(usage) if cost is None else cost

    def _ended(self, request: Request, judge: Judge, outcome: Outcome) -> None:
        self._over.add(self._asks[request.key][0].question)
        self.show(replace(request, task=judge.name), outcome)

    def _see_fault(self, fault: Fault, asker: _Asker) -> None:
        name, why = asker.judge.name, fault.reason if fault.kind.ends_all else ""
        if fault.kind.is_transient and not asker.judge_engine.may_pass(fault):
            self._given_up[name] += 1
            if self._given_up[name] >= MAX_GIVEN_UP:
                why = f"{self._given_up[name]} requests in a row failed ({fault.reason})"
                asker.judge_engine.give_up(fault)
        if why and name not in self._end.stopped:
            self._end.stopped[name] = why
            self.say(f"judge {name} is given up for now: {why}")


class _Asker(Asker):
    def __init__(self, judge: Judge, judging: Judging, answers: Answers, budget: Budget) -> None:
        self.judge, self._judging = judge, judging
        self.judge_engine = JudgeEngine(judge, judging.rendered, judging.say, judging.egress)
        super().__init__(self.judge_engine, answers, budget)

    @property
    def under_way(self) -> bool:
        return bool(self._sent)

    def most(self, request: Request) -> float:
        """The schema of the verdict is counted, too."""
        schema = len(json.dumps(request.settings["schema"]))
        return self.judge.cost(most_tokens(messages_of(request)) + schema, self.judge.max_tokens)

    def sending(self, request: Request, intent: float | None) -> None:
        if intent is not None and self.judge.price is not None:
            self._judging.sending(request, intent)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        return self._judging.came(request, outcome, self, settles)


async def _check_servers(engines: Sequence[JudgeEngine], budget: Budget) -> None:
    faults = await asyncio.gather(*(engine.fault(budget) for engine in engines))
    if broken := [
        f"{engine.judge.name}: {fault}" for engine, fault in zip(engines, faults, strict=True) if fault
    ]:
        remedy = "start the server, or correct base_url, model or key of that judge in the jury file"
        raise MedtasksError("; ".join(broken), where="--jury", remedy=f"{remedy}; nothing was asked yet")


def _read(ask: Ask, reply: Answer) -> dict[str, Any]:
    try:
        verdict = ask.rubric.read(reply.text, ask.texts)
    except Exception as error:  # whatever a reply brings about is the fault of its request alone
        own = str(error) if isinstance(error, UnreadableError) else f"unreadable ({type(error).__name__})"
        return {"unreadable": SHORTFALLS.get(reply.finish, own)}
    return {"ratings": ask.case.ratings(ask.point, verdict), "verdict": verdict}
