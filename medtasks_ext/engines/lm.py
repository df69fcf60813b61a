"""Any model of lm-eval: transformers in particular, the built-in ones, and one that has its answers."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import SERVICES, Egress, hold
from medtasks_ext.engines import (
    WAIT_SECONDS,
    Answer,
    Done,
    Engine,
    Fault,
    FaultKind,
    Feed,
    Likelihood,
    Prompt,
    Request,
    Usage,
    likeliest,
)
from medtasks_ext.engines.replies import withheld
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import Instance
from medtasks_ext.models import Baseline
from medtasks_ext.privacy import what_happened
from medtasks_ext.prompts.documents import document_key, repeat_key
from medtasks_ext.prompts.fit import tokenizer_of

if TYPE_CHECKING:
    from medtasks_ext.harness import LM

#: Requests that the model gets in one call: it sorts them by length and forms its own batches.
GROUP = 4096
#: Rows that `auto` takes on a CPU at most: more gain little, and a system without memory kills the process.
CPU_ROWS = 8
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory")


def lm_eval_prompt(prompt: Prompt) -> Any:
    """A prompt as lm-eval hands it to a model: text, or turns as JSON."""
    if isinstance(prompt, str):
        return prompt
    from medtasks_ext.harness import JsonChatStr

    return JsonChatStr(json.dumps(prompt, ensure_ascii=False))


def engine_of(
    model: LM,
    *,
    say: Callable[[str], None] = lambda line: None,
    egress: Egress | None = None,
    replicas: Sequence[str] = (),
) -> Engine:
    """`replicas`: addresses of further servers of the same model."""
    kinds = {kind.__name__ for kind in type(model).__mro__}  # their modules need packages of their own
    if "TemplateAPI" in kinds:
        from medtasks_ext.engines.api import ApiEngine, reader_of

        if reader_of(type(model)):
            return ApiEngine(model, say=say, egress=egress, replicas=replicas)
    if replicas:
        what = f"models of type {type(model).__name__} are asked at one address"
        raise MedtasksError(what, where="--model_args base_url", remedy="name one")
    return LmEngine(model, say, egress)


class LmEngine(Engine):
    """Hands a model of lm-eval the requests of one task after the other, and each answer on when it comes.

    Models call lm-eval's cache hook after each of their batches; those that do not hand on all answers of a
    call at its end. lm-eval's own search for the size of a batch (`auto`) runs the whole context through the
    model, anew in each call. Here the first batch of a model that has a size has the largest that is allowed.
    Where the memory does not hold it, the size is halved for the rest of the run, and what has no answer is
    asked again.
    """

    window = GROUP

    def __init__(
        self, model: LM, say: Callable[[str], None] = lambda line: None, egress: Egress | None = None
    ) -> None:
        self._model: Any = model
        self._say = say
        self.addresses, self.egress = addresses_of(model), egress or Egress.of()
        self._rows = 0  # of a batch at most; 0 of a model that is not asked for its size
        if vars(model).keys() >= {"batch_size_per_gpu", "max_batch_size"}:
            size, most = self._model.batch_size_per_gpu, self._model.max_batch_size
            on_cpu = getattr(getattr(model, "device", None), "type", "") == "cpu"
            self._rows = int(size if size != "auto" else min(most, CPU_ROWS) if on_cpu else most)
        #: prompt, or prompt and option -> requests, each with the place of that option
        self._waiting: dict[tuple[str, str], deque[tuple[Request, int]]] = {}
        self._found: dict[str, dict[int, Likelihood]] = {}  # key of a request -> of its options
        takes = inspect.signature(model.generate_until).parameters
        self._quiet = {"disable_tqdm": True} if "disable_tqdm" in takes else {}
        self._count = token_counter(model)
        model.set_cache_hook(self)
        keep_tokenizers_apart(model)

    def run(self, feed: Feed, done: Done) -> None:
        self._done = done
        for _, of_task in groupby(_taken(feed), lambda request: request and request.task):
            while group := list(filter(None, islice(of_task, GROUP))):
                self._answer(group)

    def _answer(self, group: list[Request]) -> None:
        group = self._permitted(group) if self.addresses else group
        while group and not self._try(group):
            gc.collect()  # once the error of the failed batch is gone
            with suppress(ImportError):  # of a model without torch there is nothing to give back
                from medtasks_ext.harness import clear_torch_cache

                clear_torch_cache()
            group = self._left()

    def _permitted(self, group: list[Request]) -> list[Request]:
        assert self.egress is not None
        place = self.egress.place(self.addresses[0])
        hold(place, self.egress)  # lm-eval's own clients ask
        for request in group:
            if not place.permits(request.text):
                self._done(request, withheld(place, request.text))
        left = [request for request in group if place.permits(request.text)]
        for text in dict.fromkeys(request.text for request in left):
            self.egress.record(place, text)
        return left

    def _try(self, group: Sequence[Request]) -> bool:
        """Ask; False if the memory did not suffice, and the rest may fit in smaller batches."""
        if self._rows:
            self._model.batch_size_per_gpu = self._rows
        self._waiting, self._found = defaultdict(deque), {}
        kind = "loglikelihood" if group[0].options else "generate_until"
        instances = [instance for request in group for instance in self._instances(request, kind)]
        try:
            answers = getattr(self._model, kind)(instances, **self._quiet)
        except Exception as error:  # models fail in their own ways
            lacks = isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)
            if self._rows > 1 and (lacks or isinstance(error, MemoryError)):
                before, self._rows = self._rows, self._rows // 2
                self._say(f"note: the memory does not hold a batch of {before}; going on with {self._rows}")
                return False
            for request in self._left():
                self._done(request, Fault(FaultKind.ENGINE, what_happened(error)))
            return True
        for instance, answer in zip(instances, answers, strict=True):
            self.add_partial(kind, instance.args, answer)
        return True

    def _instances(self, request: Request, kind: str) -> Iterator[Instance]:
        prompt = lm_eval_prompt(request.prompt)
        for place, asked in enumerate(request.options or (dict(request.settings),)):
            self._waiting[_asked((prompt, asked))].append((request, place))
            row = request.row if request.row is not None else {}
            about = {"task_name": request.task, "doc_id": 0}
            yield Instance(kind, row, (prompt, asked), idx=place, metadata=(*about.values(), 1), **about)

    def _left(self) -> list[Request]:
        left = {item.key: item for waiting in self._waiting.values() for item, _ in waiting}
        self._waiting = {}
        return list(left.values())

    def add_partial(self, attribute: str, request: tuple[Any, ...], response: Any) -> None:
        """lm-eval's cache hook: models call it for each response as it arrives."""
        waiting = self._waiting.get(_asked(request))
        if not waiting:
            return
        first, place = waiting.popleft()
        if not first.options:
            usage = self._usage(first, response)
            # the text of n tokens may be one token shorter when it is tokenised again
            budget = int(first.settings.get("max_gen_toks") or 0)
            cut = usage is not None and budget and usage.completion >= budget - 1
            self._done(first, Answer(response, "length" if cut else "", usage))
            return
        of_options = self._found.setdefault(first.key, {})
        of_options[place] = Likelihood(float(response[0]), bool(response[1]))
        if len(of_options) == len(first.options):
            del self._found[first.key]
            likelihoods = [of_options[i] for i in range(len(of_options))]
            self._done(first, likeliest(first, likelihoods, self._usage(first, *first.options)))

    def _usage(self, request: Request, *written: str) -> Usage | None:
        if self._count is None or not isinstance(request.prompt, str):
            return None
        return Usage(self._count(request.prompt), sum(map(self._count, written)))


def _taken(feed: Feed) -> Iterator[Request | None]:
    """What a feed gives; None where nothing comes before what was taken is answered."""
    while not feed.over:
        request = feed.take()
        if request or feed.dry:
            yield request
        if not request:
            feed.wait(WAIT_SECONDS)


def addresses_of(model: LM) -> list[str]:
    """Of the service that a model asks, where it asks one."""
    given = getattr(model, "base_url", None) or getattr(model, "api_base", None)
    if isinstance(given, str) and given:
        return [given if "//" in given else f"//{given}"]
    modules = {kind.__module__ for kind in type(model).__mro__}
    return [address for module, address in SERVICES.items() if module in modules][:1]


def keep_tokenizers_apart(model: LM) -> None:
    """Give single texts a copy of a model's fast tokenizer; batches keep the model's own.

    The next prompts are fitted in another thread while a batch is encoded, and a fast tokenizer keeps padding
    as a state: a text without padding in between takes the batch's away, or fails as "Already borrowed".
    """
    if hasattr(model, "tok_batch_encode") and getattr(model.tokenizer, "is_fast", False):
        apart: Any = copy.copy(model)
        apart.tokenizer = copy.deepcopy(model.tokenizer)
        apart.tok_encode("")  # its state is that of single texts from now on, and no thread changes it
        vars(model)["tok_encode"] = apart.tok_encode


def _asked(arguments: tuple[Any, ...]) -> tuple[str, str]:
    """Prompt and option."""
    prompt, asked = arguments[0], arguments[1]
    return str(getattr(prompt, "prompt", prompt)), asked if isinstance(asked, str) else ""


def token_counter(model: LM) -> Callable[[str], int] | None:
    tokenizer = tokenizer_of(model)
    if callable(tokenizer):
        return lambda text: len(tokenizer([text], add_special_tokens=False, verbose=False)["input_ids"][0])
    encode = getattr(model, "tok_encode", None)
    return (lambda text: len(encode(text))) if tokenizer is not None and encode is not None else None


#: Half of a surrogate pair: no reader of texts takes it.
_HALF = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with the replacement character for halves of surrogate pairs."""
    return _HALF.sub("\ufffd", text)


class StoredLM(Baseline):
    """Gives the answer to each document.

    `answers`: document key -> answer. `prompts`: document key -> prompt as it was sent, where that is known;
    it stands in lm-eval's records. `where`: for the message if an answer is missing.
    """

    def __init__(self, answers: Mapping[str, Answer], prompts: Mapping[str, Prompt], where: Path) -> None:
        super().__init__()
        self._answers, self._prompts, self._where = answers, prompts, where

    def answers_to(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests, which get their prompts as they were sent."""
        keys, drawn = list[str](), Counter[str]()
        for request in requests:
            key, again = document_key(request.doc), (request.repeats or 1) > 1
            keys.append(repeat_key(key, drawn[key] if again else 0))
            drawn[key] += 1
        if absent := list(dict.fromkeys(key for key in keys if key not in self._answers)):
            what = f"{len(absent)} of {len(set(keys))} documents have no stored response (first: {absent[0]})"
            remedy = "finish the run first: the same `medtasks run` command continues it"
            raise MedtasksError(what, where=self._where, remedy=remedy)
        for key, request in zip(keys, requests, strict=True):
            if key in self._prompts:
                request.arguments = (lm_eval_prompt(self._prompts[key]), request.args[1])
        return [self._answers[key] for key in keys]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [readable(answer.text) for answer in self.answers_to(requests)]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        found, asked = self.answers_to(requests), Counter(document_key(request.doc) for request in requests)
        for answer, request in zip(found, requests, strict=True):
            document, n = document_key(request.doc), len(answer.likelihoods)
            if asked[document] != n:
                what = f"document {document} has {asked[document]} possible answers, and {n} are stored"
                remedy = "bring the former rows back, or use another --output_path"
                raise MedtasksError(what, where=self._where, remedy=remedy)
        return [tuple(answer.likelihoods[one.idx]) for answer, one in zip(found, requests, strict=True)]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """The turns, as a prompt is recorded that nobody knows any more as it was laid out."""
        return lm_eval_prompt(chat_history)
