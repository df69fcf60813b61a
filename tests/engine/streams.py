"""Requests for the vLLM engine, and a process that answers them, to be killed.

`python -m tests.engine.streams MODEL REPLICAS` loads the engine, then reads one JSON list of `[key, prompt,
settings]` per line and writes one JSON line per event: `loaded`, `key` with its outcome, `ran` or `failed`.
SIGINT ends the feed and nothing else. At the end of its input it closes the engine and ends.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines import Answer, Fault, Outcome, Request

if TYPE_CHECKING:
    from medtasks_ext.engines.vllm import VllmEngine

PLACES = 16


class ListFeed:
    """Requests that are all ready."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self.left, self.taken = deque(requests), 0

    @property
    def over(self) -> bool:
        return not self.left

    def take(self) -> Request | None:
        if not self.left:
            return None
        self.taken += 1
        return self.left.popleft()

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.01))


def arguments(model: Path, **more: Any) -> dict[str, Any]:
    """Arguments of lm-eval's model for the tiny one."""
    return {"pretrained": str(model), "dtype": "float32", "max_model_len": 2048, "enforce_eager": True,
            "max_num_seqs": PLACES, **more}  # fmt: skip


def request(key: str, prompt: str, **settings: Any) -> Request:
    return Request(key, "task", key, prompt, {"until": ["\n\n"], "do_sample": False, **settings})


def answered(engine: VllmEngine, requests: Iterable[Request]) -> dict[str, Outcome]:
    """Outcomes by key, in the order in which they came; each once."""
    outcomes: dict[str, Outcome] = {}

    def done(of: Request, outcome: Outcome) -> None:
        assert of.key not in outcomes
        outcomes[of.key] = outcome

    ready = []
    for item in requests:
        prepared = engine.prepare(item)
        if isinstance(prepared, Fault):
            done(item, prepared)
        else:
            ready.append(prepared)
    engine.run(ListFeed(ready), done)
    return outcomes


def main(model: str, replicas: int) -> None:
    from medtasks_ext.engines.vllm import load
    from medtasks_ext.errors import MedtasksError

    engine = load(arguments(Path(model), data_parallel_size=replicas), {"batch_size": "auto"})
    say(loaded=engine.window)
    for line in sys.stdin:
        feed = ListFeed(
            engine.prepare(request(key, prompt, **more)) for key, prompt, more in json.loads(line)
        )
        signal.signal(signal.SIGINT, lambda *_, feed=feed: feed.left.clear())
        try:
            engine.run(feed, report)
        except MedtasksError as error:
            say(failed=str(error))
        else:
            say(ran=feed.taken)
    engine.close()


def report(of: Request, outcome: Outcome) -> None:
    if isinstance(outcome, Answer):
        say(key=of.key, text=outcome.text, finish=outcome.finish)
    else:
        say(key=of.key, fault=outcome.reason)


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
