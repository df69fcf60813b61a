"""Stored responses: an append-only file per task, and a model that asks only for what is not there."""

from __future__ import annotations

import inspect
import json
import os
import time
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval.api.model import LM

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from lm_eval.api.instance import Instance

    from medtasks_ext.runner.fit import PromptFitter

#: A chunk is what a crash can cost. It grows while chunks are faster than this many seconds.
CHUNK_SECONDS = 20.0
FIRST_CHUNK, LARGEST_CHUNK = 32, 4096
TOKENIZED_AT_ONCE = 1024


def document_key(document: dict[str, Any]) -> str:
    """Identifies a document within its task."""
    return f"{document['id']}#{document['trial']}" if "trial" in document else str(document["id"])


def request_key(request: Instance) -> str:
    """Identifies a request: task, document, prompt and generation settings."""
    prompt, settings = request.args
    parts = (
        request.task_name,
        document_key(request.doc),
        getattr(prompt, "prompt", prompt),  # API models wrap a chat in a named tuple
        json.dumps(settings, sort_keys=True, default=str),
    )
    return sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:32]


class Response(NamedTuple):
    """One stored response: the key of its request, the key of its document, and the text."""

    key: str
    document: str
    response: str

    def line(self) -> bytes:
        """As it is stored."""
        return json.dumps(self._asdict(), ensure_ascii=False).encode() + b"\n"


def stored_responses(folder: Path, task: str) -> Iterator[Response]:
    """The stored responses of one task, of all ranks; a last line that a crash cut short is left out.

    Args:
        folder: `RUN/responses`.
        task: its name.

    Raises:
        MedtasksError: a line is damaged.
    """
    for path in sorted({*folder.glob(f"{task}.jsonl"), *folder.glob(f"{task}.rank*.jsonl")}):
        content = path.read_bytes()
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
            try:
                record = json.loads(line)
                response = Response(record["key"], record["document"], record["response"])
            except (ValueError, KeyError, TypeError):
                raise MedtasksError(
                    f"line {number} is damaged",
                    where=path,
                    remedy="delete that line; only its response is asked for again",
                ) from None
            yield response


def write_responses(folder: Path, task: str, responses: Iterable[Response]) -> None:
    """Write the responses of one task as a run stores them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{task}.jsonl").open("wb") as file:
        file.writelines(response.line() for response in responses)
        file.flush()
        os.fsync(file.fileno())


class ResponseStore:
    """The responses of one task, `RUN/responses/TASK.jsonl`.

    Lines are flushed to disk as they are added. A line that a crash cut short is dropped when the
    file is opened again.
    """

    def __init__(self, folder: Path, task: str, rank: int = 0, world_size: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        suffix = f".rank{rank}" if world_size > 1 else ""
        self.path = folder / f"{task}{suffix}.jsonl"
        self.by_key: dict[str, str] = {}
        self.by_document: dict[str, str] = {}
        for stored in stored_responses(folder, task):
            self._remember(stored)
        self._file = self.path.open("ab")
        whole = self.path.read_bytes().rfind(b"\n") + 1
        if whole < self._file.tell():
            self._file.truncate(whole)

    def _remember(self, stored: Response) -> None:
        self.by_key[stored.key] = stored.response
        self.by_document[stored.document] = stored.response

    def add(self, request: Instance, key: str, response: str) -> None:
        """Append one response."""
        stored = Response(key, document_key(request.doc), response)
        self._remember(stored)
        self._file.write(stored.line())

    def flush(self) -> None:
        """Make everything added so far survive a crash."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        self._file.close()


class StoringLM(LM):
    """Wraps a model: answers from the store, asks the model for the rest, chunk by chunk."""

    def __init__(
        self,
        inner: LM,
        progress: Callable[[int], None] | None = None,
        skipped: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.store: ResponseStore | None = None
        self.fitter: PromptFitter | None = None
        self.generated = 0
        self.tokens: dict[str, int] | None = None
        self._progress = progress or (lambda n: None)
        self._skipped = skipped or self._progress  # stored responses took no time
        self._pending: dict[str, list[tuple[str, Instance]]] = {}
        takes = inspect.signature(inner.generate_until).parameters
        self._without_bar = {"disable_tqdm": True} if "disable_tqdm" in takes else {}
        inner.set_cache_hook(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def rank(self) -> int:
        """Rank of the wrapped model."""
        return self.inner.rank

    @property
    def world_size(self) -> int:
        """World size of the wrapped model."""
        return self.inner.world_size

    @property
    def device(self) -> Any:
        """Device of the wrapped model."""
        return self.inner.device

    def all_gather(self, tensor: Any) -> Any:
        """The wrapped model's exchange between ranks."""
        return self.inner.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """The wrapped model's exchange between ranks."""
        return self.inner.gather_object(obj, dst=dst)

    def barrier(self) -> None:
        """Wait for the other ranks of the wrapped model."""
        self.inner.barrier()

    @property
    def tokenizer_name(self) -> str:
        """Tokenizer of the wrapped model."""
        return self.inner.tokenizer_name

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Chat template of the wrapped model."""
        return self.inner.apply_chat_template(chat_history, add_generation_prompt=add_generation_prompt)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """Chat template text of the wrapped model."""
        return self.inner.chat_template(chat_template)

    def add_partial(self, attribute: str, request: tuple[Any, ...], response: str) -> None:
        """lm-eval's cache hook: API models call it for each response as it arrives."""
        prompt = request[0]
        waiting = self._pending.get(str(getattr(prompt, "prompt", prompt)))
        if waiting:
            key, instance = waiting.pop(0)
            self._keep(instance, key, response)

    def _keep(self, request: Instance, key: str, response: str) -> None:
        assert self.store is not None
        if key not in self.store.by_key:
            self.store.add(request, key, response)
            self.store.flush()
            self._progress(1)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Responses in the order of the requests."""
        assert self.store is not None
        if self.fitter is not None:
            for request in requests:
                self.fitter.fit(request)
        keys = [request_key(request) for request in requests]
        missing = [pair for pair in zip(keys, requests, strict=True) if pair[0] not in self.store.by_key]
        self._skipped(len(requests) - len(missing))
        size, start = FIRST_CHUNK, 0
        while start < len(missing):
            chunk = missing[start : start + size]
            began = time.monotonic()
            self._generate(chunk)
            start += len(chunk)
            if time.monotonic() - began < CHUNK_SECONDS:
                size = min(size * 2, LARGEST_CHUNK)
        responses = [self.store.by_key[key] for key in keys]
        self.tokens = self._count_tokens([request.args[0] for request in requests], responses)
        return responses

    def _count_tokens(self, prompts: list[Any], responses: list[str]) -> dict[str, int] | None:
        """Tokens of all prompts and responses of the task; None where the model has no tokenizer here."""
        tokenizer = getattr(self.inner, "tokenizer", None)
        if not callable(tokenizer) or not all(isinstance(prompt, str) for prompt in prompts):
            return None
        return {
            name: sum(
                len(ids)
                for start in range(0, len(texts), TOKENIZED_AT_ONCE)
                for ids in tokenizer(
                    texts[start : start + TOKENIZED_AT_ONCE], add_special_tokens=False, verbose=False
                )["input_ids"]
            )
            for name, texts in (("input", prompts), ("output", responses))
        }

    def count_cut_answers(self, budget: int) -> int | None:
        """How many stored responses fill the answer budget; None where tokens cannot be counted."""
        if self.store is None or getattr(self.inner, "tokenizer", None) is None:
            return None
        long = [text for text in self.store.by_document.values() if len(text.encode()) >= budget]
        return sum(len(self.inner.tok_encode(text)) >= budget - 1 for text in long)

    def _generate(self, chunk: list[tuple[str, Instance]]) -> None:
        self._pending = defaultdict(list)
        for key, request in chunk:
            self._pending[str(getattr(request.args[0], "prompt", request.args[0]))].append((key, request))
        self.generated += len(chunk)
        responses = self.inner.generate_until([request for _, request in chunk], **self._without_bar)
        for (key, request), response in zip(chunk, responses, strict=True):
            self._keep(request, key, response)
        self._pending = {}

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        """Not used: all tasks generate."""
        return self.inner.loglikelihood(requests)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        """Not used: all tasks generate."""
        return self.inner.loglikelihood_rolling(requests)


class StoredLM(LM):
    """A model that only remembers: gives the stored response of each document."""

    def __init__(self) -> None:
        super().__init__()
        self.store: ResponseStore | None = None

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The stored responses.

        Raises:
            MedtasksError: a document has none.
        """
        assert self.store is not None
        answers = self.store.by_document
        if absent := [key for request in requests if (key := document_key(request.doc)) not in answers]:
            raise MedtasksError(
                f"{len(absent)} of {len(requests)} documents have no stored response (first: {absent[0]})",
                where=self.store.path,
                remedy="finish the run first: the same `medtasks run` command continues it",
            )
        return [answers[document_key(request.doc)] for request in requests]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        """Not stored."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        """Not stored."""
        raise NotImplementedError

    @property
    def tokenizer_name(self) -> str:
        """There is none."""
        return "none"

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Prompts are not needed to score again."""
        return ""
