"""The class that lm-eval calls: it knows no task, and asks an engine for what its folder does not hold.

`medtasks-NAME` is lm-eval's NAME with this memory, and with `run=FOLDER` among its arguments.
"""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import private_files
from medtasks_ext.egress import addresses
from medtasks_ext.engines import Answer, Engine, Likelihood, Request, likeliest
from medtasks_ext.engines.lm import engine_of
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.models import Baseline
from medtasks_ext.run.asker import ASKED_AGAIN, Asker, is_sampled, prompt_of, request_of, text_of
from medtasks_ext.run.store import Answers, key_of, rows_in
from medtasks_ext.runs.manifest import Identity, identity_of
from medtasks_ext.runs.settings import dropped_secrets

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance

#: Requests that a model gets in one call, where it is asked by its own method.
BLOCK = 256


def _of_model(name: str) -> Any:
    """An attribute that lm-eval's class has as well, and that is the model's."""
    return property(lambda remembering: getattr(remembering.model, name))


class Remembering(LM):
    """An LM around a model of lm-eval, whose answers it keeps and looks up.

    A greedy question has one answer, whoever asks it. A sampled one is drawn anew for each document, and for
    each time that it is asked of one document.

    `model`: of lm-eval. `engine`: that answers with this model. `answers`: the folder. `identity`: digest of
    all that tells the model's answers from those of another one.
    """

    def __init__(self, model: LM, engine: Engine, answers: Answers, identity: str) -> None:
        super().__init__()
        self.model, self.answers = model, answers
        self._identity = identity
        self.asker = Asker(engine, answers)
        self.asker.begin()

    apply_chat_template, chat_template = map(_of_model, ("apply_chat_template", "chat_template"))
    tokenizer_name, rank, world_size = map(_of_model, ("tokenizer_name", "rank", "world_size"))
    all_gather, gather_object, barrier = map(_of_model, ("all_gather", "gather_object", "barrier"))

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        drawn: Counter[str] = Counter()
        asked = [self._generation(instance, drawn) for instance in requests]
        return [answer.text for answer in self.ask(asked, quiet=disable_tqdm)]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Logarithm of the probability of each continuation, and whether greedy decoding writes it.

        The options of one document behind one context are one request.
        """
        if any(not instance.args[0] for instance in requests):  # behind nothing stands what the model says
            return [tuple(item) for item in self._by_its_own("loglikelihood", requests)]  # type: ignore[misc]
        asked = [self._request(list(group)) for _, group in groupby(requests, _same_question)]
        found = self.ask(asked, quiet=disable_tqdm)
        return [tuple(item) for answer in found for item in answer.likelihoods]  # type: ignore[misc]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Logarithm of the probability of each text."""
        return [item.value for item in self._by_its_own("loglikelihood_rolling", requests)]

    def __getattr__(self, name: str) -> Any:
        """All else is the model's."""
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def ask(self, requests: Sequence[Request], *, quiet: bool = True) -> list[Answer]:
        """The answers to requests, from the folder or from the engine; `quiet`: show no progress."""
        found = self.asker.ask(requests, quiet=quiet)
        return [found[request.key] for request in requests]

    def _by_its_own(self, kind: str, requests: Sequence[Instance]) -> list[Likelihood]:
        """Likelihoods by the model's own method, in blocks, each kept as it comes."""
        asked = list[Request]()
        for one in requests:
            key = key_of(self._identity, [kind, *map(str, one.args), *_whose(one)])
            prompt, text = prompt_of(one), text_of(one)
            asked.append(Request(key, *_whose(one), prompt, {}, one.doc, text=text, options=("",)))
        self.asker.check({request.text for request in asked})
        missing = list(zip(asked, requests, strict=True))
        if self.world_size == 1:  # else processes wait for each other in the model's own method
            missing = [pair for pair in missing if pair[0].key not in self.answers]
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            found = getattr(self.model, kind)([instance for _, instance in block])
            for (request, _), item in zip(block, found, strict=True):
                value, greedy = item if isinstance(item, tuple) else (item, False)
                self.asker.came(request, likeliest(request, [Likelihood(float(value), bool(greedy))]))
        self.answers.flush()
        known = self.answers.known(request.key for request in asked)
        if lacking := {request.key for request in asked} - known.keys():
            what = f"the model gave no number for {len(lacking)} of {len(asked)} texts"
            raise MedtasksError(what, where=asked[0].task, remedy=ASKED_AGAIN)
        return [known[request.key].likelihoods[0] for request in asked]

    def close(self) -> None:
        """Ask nothing more, and bring everything to the disk."""
        self.asker.end()
        self.answers.close()

    def _generation(self, instance: Instance, drawn: Counter[str]) -> Request:
        request = self._request([instance])
        draw, drawn[request.key] = drawn[request.key], drawn[request.key] + 1
        return self._request([instance], draw) if draw and is_sampled(request.settings) else request

    def _request(self, instances: Sequence[Instance], draw: int = 0) -> Request:
        reads, document = isinstance(self.model, Baseline), str(instances[0].doc_id)
        seed = getattr(self.model, "_seed", None)
        return request_of(instances, self._identity, document, draw=draw, seed=seed, reads_document=reads)


def _whose(instance: Instance) -> tuple[str, str]:
    """Task and number of the document."""
    return str(instance.task_name), str(instance.doc_id)


def _same_question(instance: Instance) -> tuple[Any, ...]:
    return (*_whose(instance), str(getattr(instance.args[0], "prompt", instance.args[0])))


PREFIX = "medtasks-"
#: The name that finds out by its address which interface a server has.
API = f"{PREFIX}api"
_CHAT, _TEXT = "local-chat-completions", "local-completions"
#: File of a folder that says whose answers it holds.
IDENTITY = "model.json"


def register() -> None:
    """Add a model with a memory for each of lm-eval's, and the built-in ones."""
    import medtasks_ext.models  # noqa: F401  registers the built-in ones
    from medtasks_ext.harness import model_registry

    for name in [API.removeprefix(PREFIX), *model_registry.keys()]:
        if not name.startswith(PREFIX) and PREFIX + name not in model_registry:
            kind = type("RememberingModel", (_Remembered,), {"of": name})
            model_registry.register(PREFIX + name)(kind)


class _Remembered(Remembering):
    """What lm-eval makes of `--model medtasks-NAME --model_args run=FOLDER,…`."""

    of: str

    def __init__(self, run: str = "", **arguments: Any) -> None:
        from medtasks_ext.harness import get_model

        if not run:
            what = "the folder is missing that keeps the answers"
            raise MedtasksError(what, where="--model_args", remedy="add run=FOLDER")
        names = ("batch_size", "max_batch_size", "device")
        extra = {name: arguments.pop(name) for name in names if arguments.get(name) is not None}
        folder, of = Path(run), self.of
        if of == "api":
            of = _CHAT if "/chat/" in str(arguments.get("base_url")) else _TEXT
        dropped_secrets(arguments)
        started = int(os.environ.get("WORLD_SIZE", "1"))
        may = started == 1 or "HFLM" in {kind.__name__ for kind in get_model(of).__mro__}
        loaded = load_model(of, arguments, extra, say=print) if may else None
        if loaded is None or loaded[0].world_size != started:
            what = f"{started} processes were started that do not share the documents among them"
            remedy = "`accelerate launch` shares them with medtasks-hf on several GPUs; else start one "
            remedy += "process: several addresses (base_url=URL+URL) or vLLM's data_parallel_size use several"
            raise MedtasksError(what, where=f"--model {PREFIX}{self.of}", remedy=f"{remedy} GPUs")
        model, engine = loaded
        identity = _identity(folder, of, arguments, model)
        answers = Answers(folder, rank=model.rank)
        for line in answers.damaged:
            print(f"medtasks: {folder}: {line} is damaged; its request is asked again")
        super().__init__(model, engine, answers, identity)
        atexit.register(self.close)


def load_model(
    of: str, given: Mapping[str, Any], extra: dict[str, Any], in_place: Any = None, **how: Any
) -> tuple[LM, Engine]:
    """A model of lm-eval, and its engine; `in_place` makes one without a server. `how`: as `engine_of`."""
    from medtasks_ext.harness import get_model

    arguments = dict(given)
    if of == "vllm":
        from medtasks_ext.engines.vllm import load

        loaded = load(arguments, extra)
        return loaded.lm, loaded
    urls = addresses(arguments.pop("base_url", None))
    if urls and not in_place:
        arguments["base_url"] = urls[0]  # lm-eval asks it for its tokenizer
    model = get_model(of).create_from_arg_obj(arguments, extra)
    return model, in_place(model) if in_place else engine_of(model, replicas=urls[1:], **how)


def _identity(folder: Path, of: str, arguments: dict[str, Any], model: LM) -> str:
    """Digest of what tells a model's answers from those of another; a folder with answers holds one."""
    info: dict[str, Any] = getattr(model, "get_model_info", dict)() or {}
    weights = {name: info[name] for name in ("model_sha", "peft_sha", "delta_sha") if info.get(name)}
    mine, path = identity_of(of, {**arguments, **weights}, {}), folder / IDENTITY
    if not (path.is_file() and any(rows_in(folder, "answer"))):
        with private_files(True):
            write_json(path, mine.model_dump())
    elif different := Identity(**read_json(path)).differs_from(mine):
        what = f"{'; '.join(different)}: the folder holds other answers"
        raise MedtasksError(what, where=path, remedy="name another folder, or ask as before")
    return mine.digest
