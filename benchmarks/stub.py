"""What queue, record and fsync cost by themselves: requests to an engine that answers at once.

Half a million requests of 20 tasks through the queue, the record and fsync to an engine that answers at
once; rendering and scoring left out. Outcomes a second, memory at half and at the end.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from common import Row, fresh

TASKS, N = 20, 500_000
PER_SECOND, GIGABYTES = 5000, 1.5
TEXT = "The patient has had a cough for three days. " * 8  # 350 characters
ANSWER = "entity: cough, type: symptom, status: present;\n" * 3


def run(quick: bool) -> Iterator[Row]:
    n = N // 10 if quick else N
    found = fresh("stub", "asked", n=n, timeout=3600)
    rate = n / found["seconds"]
    yield Row(
        f"stub: {n:,} requests of {TASKS} tasks through queue, record and fsync",
        f"{rate:,.0f} a second",
        f"at least {PER_SECOND:,}",
        rate >= PER_SECOND,
    )
    yield Row(
        "stub: memory at half and at the end",
        f"{found['half']:.2f} and {found['gigabytes']:.2f} GB",
        f"flat, under {GIGABYTES} GB",
        found["gigabytes"] < GIGABYTES and found["gigabytes"] - found["half"] < 0.15,
    )
    yield Row("stub: outcomes in the files", f"{found['stored']:,}", f"{n:,}", found["stored"] == n)


class _Documents(Sequence[Any]):
    """Documents that are made when they are looked at."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, place: Any) -> Any:
        from medtasks_ext.egress import Text
        from medtasks_ext.prompts.documents import Document, Loaded

        if place >= self._n:
            raise IndexError
        document = Document(id=f"document-{place}")
        document.loaded = Loaded({}, text=Text("stub", is_open=True))
        return document


class _Task:
    """As much of a task as a stream needs; prompts cost nothing."""

    cuts: Mapping[str, str] = MappingProxyType({})
    repeats = 1

    def __init__(self, name: str, n: int) -> None:
        self.task_name, self.eval_docs = name, _Documents(n)
        loaded = {"medtasks": {"loaded": {"origin": "sample"}}}
        kwargs = {"until": [], "max_gen_toks": 64}
        self.config = SimpleNamespace(generation_kwargs=kwargs, num_fewshot=0, metadata=loaded)

    def fewshot_context(self, document: Any, **_: Any) -> str:
        return TEXT + document["id"]


def asked(n: int) -> dict[str, float]:
    """Seconds and memory of a stream whose engine answers at once; nothing is scored."""
    from common import peak_gigabytes
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM

    from medtasks_ext.engines import Answer, Engine, Usage
    from medtasks_ext.registry import registry
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner import asking
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run

    class AtOnce(Engine):
        window = 512

        def run(self, feed: Any, done: Any) -> None:
            answer = Answer(ANSWER, "stop", Usage(90, 30), "", "stub", "id", 0.1)
            while not feed.over:
                if (request := feed.take()) is None:
                    feed.wait(0.01)
                else:
                    done(request, answer)

    class Count:
        n = half = 0.0

        def ended(self, *_: Any) -> None:
            self.n += 1
            if self.n == n // 2:
                self.half = peak_gigabytes()

        def ignored(self, *_: Any) -> None:
            pass

        stored = finished = ignored

    class Unscored(Run):
        def places(self, task: Any, choice: Any = None) -> range:
            return range(len(task.eval_docs))

        def keep_scores(self, task: Any, *_: Any) -> None:
            """Nothing is scored."""

    def evaluated(lm: Any, task: Any, *_: Any) -> Any:
        settings = task.config.generation_kwargs
        asked = [
            Instance("generate_until", row, (task.fewshot_context(row), settings), 0, (task.task_name, n, 1))
            for n, row in enumerate(task.eval_docs)
        ]
        for instance in asked:
            lm.hand_over([instance])
        return SimpleNamespace(samples=lm.generate_until(asked))

    class Model(LM):
        loglikelihood = loglikelihood_rolling = generate_until = None  # type: ignore[assignment]

    Model.__abstractmethods__ = frozenset()
    names = list(registry().tasks)[:TASKS]
    with tempfile.TemporaryDirectory() as folder:
        made = Unscored(Path(folder), registry())
        with working_in(made.folder, "stub") as made.answers:
            made.open("stub", {}, Settings(), names, names)
            tasks: Any = {name: _Task(name, n // TASKS) for name in names}
            count = Count()
            began = time.perf_counter()
            asking.evaluate_task = evaluated
            asking.RunAsker(made, Model(), AtOnce(), tasks, Settings(), count).go()
            seconds = time.perf_counter() - began
        stored = made.files.answers.read_bytes().count(b"\n")
    return {"seconds": seconds, "gigabytes": peak_gigabytes(), "half": count.half, "stored": stored}
