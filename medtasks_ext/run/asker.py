"""Asks an engine for what a store does not hold: threads hand requests over, and wait for their answers.

A request is made of what lm-eval builds of a document; its key is of all that is sent, and of nothing else.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from medtasks_ext.egress import Text
from medtasks_ext.engines import Answer, Engine, Fault, FaultKind, Outcome, Prompt, Request
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import public_rows, shows_text, what_happened
from medtasks_ext.prompts.documents import repeat_key
from medtasks_ext.run.charge import Budget, Charge
from medtasks_ext.run.store import Answers, key_of

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance


def request_of(
    instances: Sequence[Instance],
    identity: str,
    document: str,
    *,
    draw: int = 0,
    seed: int | None = None,
    reads_document: bool = False,
    apart: bool = False,
    cut: str = "",
) -> Request:
    """The request of instances that share document and prompt: one, or one for each possible answer.

    A greedy question has one answer, whoever asks it. A sampled one is drawn anew for each document, and for
    each time that it is asked of one document (`draw`), with `seed`, or that of the settings, + draw.

    `identity`: digest of the model and of what can change its responses. `document`: its key within the task.
    `reads_document`: the model looks at the document, not at the prompt. `apart`: text that is not open is
    asked for each dataset by itself, so that who got it is on record.
    """
    first = instances[0]
    task, text, prompt = str(first.task_name), text_of(first), prompt_of(first)
    options = tuple(str(one.args[1]) for one in instances) if isinstance(first.args[1], str) else ()
    given = {} if options else first.args[1]
    normal = normalised(given)
    parts: list[Any] = (
        ["loglikelihood", prompt, list(options)] if options else ["generate_until", prompt, normal]
    )
    if apart and not text.is_open:
        parts.append(text.dataset)
    if reads_document:
        parts += [task, document]
    elif normal.get("temperature") or normal.get("do_sample"):
        parts += [task, document, draw]
        if draw and (begin := given.get("seed", seed)) is not None:
            given = {**given, "seed": int(begin) + draw}
    key, name = key_of(identity, parts), repeat_key(document, draw)
    return Request(key, task, name, prompt, given, first.doc, text=text, options=options, cut=cut)


def text_of(instance: Instance) -> Text:
    """Whose text a request holds; nobody knows it of a document of another class, so it is not open."""
    text: Text | None = getattr(getattr(instance.doc, "loaded", None), "text", None)
    return text or Text(str(instance.task_name), is_open=False)


class Chat:
    """A conversation as lm-eval's `JsonChatStr`, without its JSON, which holds all texts once more."""

    def __init__(self, turns: list[dict[str, str]]) -> None:
        self.turns = turns

    @property
    def prompt(self) -> str:
        return json.dumps(self.turns, ensure_ascii=False)

    def encode(self, encoding: str) -> bytes:
        return self.prompt.encode(encoding)


def prompt_of(instance: Instance) -> Prompt:
    """A text, or the turns that lm-eval wraps for a chat interface."""
    given: Any = instance.args[0]
    if isinstance(given, Chat):
        return given.turns
    return json.loads(given.prompt) if hasattr(given, "prompt") else given  # type: ignore[no-any-return]


def normalised(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of generation as keys compare them: `128` is `"128"`, `0` is `0.0`, greedy decoding needs no
    word, stop texts have no order, and the seed is that of the draw."""
    found = {name: _value(value) for name, value in settings.items() if name != "seed"}
    if until := settings.get("until"):
        texts = until if isinstance(until, list | tuple) else [until]
        found["until"] = sorted(set(map(str, texts)))
    temperature = found.get("temperature")
    if not temperature:
        sampled = found.pop("do_sample", False) and temperature is None
        found |= {"temperature": None, "do_sample": sampled or None}
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def is_sampled(settings: Mapping[str, Any]) -> bool:
    normal = normalised(settings)
    return bool(normal.get("temperature") or normal.get("do_sample"))


def _value(value: Any) -> Any:
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        try:
            value = float(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


ASKED_AGAIN = "the same command asks only these again; what came is kept"
#: Seconds between two looks at what came.
LOOK = 0.2
#: What the first signal says.
WAITING = "waiting for the answers that are under way (once more: stop at once)"
#: Requests that wait at most before nothing more is built, in places of the engine; characters of their
#: prompts; share of both at which building goes on: waking at every request costs more than making it.
AHEAD, WAITING_SIZE, GOES_ON = 4, 64_000_000, 0.5


class Job:
    """What one caller waits for; `answers`: that came meanwhile."""

    def __init__(self) -> None:
        self.keys, self.left, self.unasked = set[str](), 0, 0
        self.faults, self.answers = list[Fault](), dict[str, Answer]()
        self.over = threading.Event()
        self.over.set()


class Asker:
    """Hands an engine what is new as its feed, keeps each outcome, and tells those who wait for it.

    `charge`: what requests cost; None where they cost nothing, or nobody knows.

    Attributes:
        ended: why the engine answers nothing any more; None while it does, and where nothing went wrong.
        over: whether nothing more is asked.
        more: whether somebody is about to ask more.
    """

    def __init__(
        self,
        engine: Engine,
        answers: Answers,
        budget: Budget | None = None,
        charge: Charge | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.engine, self.answers, self.budget, self.charge = engine, answers, budget or Budget(), charge
        self.say = say
        self.ended: Fault | BaseException | None = None
        self.over = self.more = False
        self._checked: set[Text] = set()
        self._lock = threading.RLock()
        self._changed, self._room = threading.Condition(self._lock), threading.Condition(self._lock)
        self._under_way: dict[str, list[Job]] = {}  # key -> who waits
        self._sent: dict[str, int] = {}  # key -> tries that may have been charged, and count as spent
        self._asked, self._size = deque[Request](), 0
        self._held: Request | None = None  # is next, and waits for money
        self._thread: threading.Thread | None = None
        self._signals = 0
        self.budget.freed = self.wake
        engine.again, engine.later = self._again, lambda request: self._tell(request.key, None)

    def most(self, request: Request) -> float | None:
        """US dollars that a request may cost at most; None where requests cost nothing."""
        return None if self.charge is None else self.charge.most(request)

    def sending(self, request: Request, intent: float | None) -> None:
        """A request is sent, for the first time or once more; so many US dollars were set aside just now."""
        if intent is not None:
            self.answers.note(request.key, "intent", request.task, request.document, {"cost": intent})
        self.answers.check()

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Store an outcome; what it cost, None where nobody knows.

        `settles`: US dollars that were set aside for it; None where none were, or they count as spent.
        """
        about: dict[str, Any] = {} if settles is None else {"settles": settles}
        if request.cut:
            about["cut"] = request.cut
        if self.charge is not None and isinstance(outcome, Answer):
            outcome = replace(outcome, cost=self.charge.of(request, outcome))
        kept = self.answers.put(request.key, outcome, request.task, request.document, about)
        if not isinstance(kept, Answer):
            return 0.0
        for job in self._under_way.get(request.key, ()):
            job.answers[request.key] = kept
        return outcome.cost or 0.0

    def check(self, texts: set[Text]) -> None:
        """Refuse texts that may not go where the engine sends them; each once."""
        if new := texts - self._checked:
            self.engine.check(new)
            self._checked |= new

    def ask(self, requests: Sequence[Request], *, quiet: bool = True) -> Mapping[str, Answer]:
        """Key -> answer; `quiet`: show no progress."""
        job = Job()
        # long answers first: a long one that begins last is waited for alone
        ordered = sorted(requests, key=lambda request: -int(request.settings.get("max_gen_toks") or 0))
        self.add(job, ordered)
        return self.awaited(job, {request.task for request in requests}, quiet=quiet)

    def add(self, job: Job, requests: Sequence[Request], *, waits: bool = False) -> None:
        """Have requests asked that have no answer yet; `waits`: once there is room for them."""
        new = list[Request]()
        self.check({request.text for request in requests})
        with self._lock:
            for request in requests:
                if request.key in job.keys:
                    continue
                job.keys.add(request.key)
                if request.key in self.answers:
                    continue
                if self.over:
                    job.unasked += 1
                    continue
                job.left += 1
                job.over.clear()
                if request.key not in self._under_way:
                    new.append(request)
                self._under_way.setdefault(request.key, []).append(job)
            if waits and not self._has_room(1):
                self._room.wait_for(lambda: self.over or self._has_room(GOES_ON))
            self._asked += new
            self._size += sum(map(size_of, new))
        self.wake()

    def awaited(self, job: Job, tasks: Iterable[str], *, quiet: bool = True) -> Mapping[str, Answer]:
        """Key -> answer, once all requests of a job have their outcome; an error where one has no answer."""
        # an error out of a signal's handler may strike where Python swallows it: in a destructor, say
        stopped = threading.Event()
        with signals_call(stopped.set), tqdm(total=job.left, desc="requests", disable=quiet) as bar:
            while not (job.over.wait(LOOK) or stopped.is_set()):
                self.answers.check()
                bar.update(bar.total - job.left - bar.n)
            bar.update(bar.total - job.left - bar.n)
        if stopped.is_set():
            raise KeyboardInterrupt
        self.answers.flush()
        if not (job.faults or job.unasked):
            return job.answers | self.answers.known(job.keys - job.answers.keys())
        why = Counter(fault.in_words for fault in job.faults)
        if job.unasked:
            ended = self.ended
            if isinstance(ended, MedtasksError):
                raise ended
            words = ended.in_words if isinstance(ended, Fault) else ended and what_happened(ended)
            why[words or "it was not asked"] += job.unasked
        (reason, n), *others = why.most_common()
        more = f", and {why.total() - n} for other reasons" if others else ""
        what = f"{why.total()} of {len(job.keys)} requests have no answer: {reason} ({n}{more})"
        raise MedtasksError(what, where=some(sorted(tasks)), remedy=ASKED_AGAIN)

    def begin(self) -> None:
        """Serve in a thread of its own, unless it does so already."""

        def serve() -> None:
            with suppress(BaseException):  # `ended` says it
                self.serve()

        if self._thread is None:
            self._thread = threading.Thread(target=serve, name="engine", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Ask nothing more, and free what an engine holds that was begun."""
        if self._thread is not None:
            self.stop()
            self.engine.stop()
            self._thread.join(LOOK)
            self.engine.close()

    def serve(self) -> None:
        """Run the engine until nothing more is asked; what has no outcome then is not asked any more."""
        try:
            with signals_call(self._interrupt):
                self.engine.run(self, self.came)
            if self._signals:
                raise KeyboardInterrupt
            if isinstance(self.ended, BaseException):
                raise self.ended
            self.ended = self.engine.ended
        except BaseException as error:
            self.ended = error
            raise
        finally:
            self.stop()
            for key in list(self._under_way):
                self._tell(key, None)

    def stop(self) -> None:
        """Give the engine nothing more; what is under way comes home."""
        with self._lock:
            self.over = True
            self._room.notify_all()
        self.wake()

    def _interrupt(self) -> None:
        """The first signal lets requests that may be charged come home; the second, or the first of a model
        on this machine, does not."""
        self._signals += 1
        if self.engine.local or self._signals > 1 or not self._sent:
            raise KeyboardInterrupt
        threading.Thread(target=self.stop).start()  # this one may hold the locks
        self.engine.stop()
        self.say(WAITING)

    def came(self, request: Request, outcome: Outcome) -> None:
        """Keep an outcome, settle its money, and tell those who wait."""
        key, aside = request.key, self.budget.aside.get(request.key)
        unsure = isinstance(outcome, Fault) and outcome.maybe_paid > self._sent.get(key, outcome.maybe_paid)
        cost = self.keep(request, outcome, None if unsure else aside)
        self.budget.settle(key, cost, unsure=unsure)
        self._tell(key, outcome)

    def _tell(self, key: str, outcome: Outcome | None) -> None:
        with self._lock:
            self._sent.pop(key, None)
            for job in self._under_way.pop(key, ()):
                if outcome is None:
                    job.unasked += 1
                elif isinstance(outcome, Fault):
                    job.faults.append(outcome)
                job.left -= 1
                if not job.left:
                    job.over.set()

    def take(self) -> Request | None:
        """The next request, ready to be sent, if there is one and money for it."""
        while not self.over:
            request, self._held = self._held, None
            if request is None:
                with self._lock:
                    if not self._asked:
                        return None
                    request = self._asked.popleft()
                    self._size -= size_of(request)
                    if self._has_room(GOES_ON):
                        self._room.notify_all()
                ready = self._prepared(request)
                if isinstance(ready, Fault):
                    self.came(request, ready)
                    continue
                request = ready
            if self._may(request):
                return request
            self._held = request
            break
        return None

    @property
    def dry(self) -> bool:
        """Whether an engine that answers in batches should answer what it has before it waits for more."""
        return self._held is not None or not (self._asked or self.more)

    def wait(self, seconds: float) -> None:
        """Wait until there is something to take or nothing more is asked, at most so long."""
        with self._lock:
            if (self._held or not self._asked) and not self.over:
                self._changed.wait(seconds)

    def wake(self) -> None:
        """Let the engine look again."""
        with self._lock:
            self._changed.notify_all()
        self.engine.wake()

    def _has_room(self, share: float) -> bool:
        return len(self._asked) <= share * AHEAD * self.engine.window and self._size < share * WAITING_SIZE

    def _prepared(self, request: Request) -> Request | Fault:
        try:
            return self.engine.prepare(request)
        except Exception as error:  # one prompt must not cost the others
            with public_rows(request.text.is_open or shows_text()):
                return Fault(FaultKind.ENGINE, what_happened(error))

    def _may(self, request: Request) -> bool:
        """Set money aside for the next try of a request, if there is some now; it is sent then."""
        cost = self.most(request) if self.engine.sends and request.key not in self.budget.aside else None
        if cost is not None and not self.budget.reserve(request.key, cost):
            if self.budget.exhausted:
                self.stop()
            return False
        self._sent.setdefault(request.key, 0)
        self.sending(request, cost)
        return True

    def _again(self, request: Request, fault: Fault) -> bool | None:
        """Whether a request may be sent once more; None if there is no money for it now.

        A fault that cost nothing leaves the money to the next try; a try that may have been charged keeps it.
        """
        if self.over:
            return False
        if fault.maybe_paid and request.key in self.budget.aside:
            self._sent[request.key] += 1
            self.budget.settle(request.key, unsure=True)
        return self._may(request) or None


def size_of(request: Request) -> int:
    """Characters of its prompt."""
    prompt = request.prompt
    return len(prompt) if isinstance(prompt, str) else sum(len(turn["content"]) for turn in prompt)


@contextmanager
def signals_call(interrupt: Callable[[], None]) -> Iterator[None]:
    """Within it, a signal that ends the process calls a function instead; in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, lambda *_: interrupt()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
