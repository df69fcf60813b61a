"""The stream of requests over vLLM against one call of vLLM's own `LLM.generate` on the same prompts.

The real engine on the CPU with a tiny random model, which samples. Sampled answers would differ in length
from call to call, so every request has a token budget of its own, drawn once from a lognormal distribution,
and cannot end before it: the end of text is ignored and never sampled. Both calls get the same prompts as
tokens, the same budgets and the same parameters; nothing is cached between calls. They alternate in one
process, each over an engine of its own, after one call of each that is not counted, and the median of the
pairs' ratios is what counts: other work on the machine falls on both.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections import deque
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ROOT, Row, fresh, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.engines import Request

REQUESTS, PLACES, LONGEST, PAIRS, RATIO = 640, 256, 1500, 5, 1.05
MEDIAN, SIGMA = 250, 1.0
SETTINGS = {"do_sample": True, "temperature": 1.0, "ignore_eos": True, "until": ["\n\n\n"]}


def run(quick: bool) -> Iterator[Row]:
    requests = REQUESTS // 10 if quick else REQUESTS
    name = f"{requests} sampled answers through the stream, over one LLM.generate"
    if find_spec("vllm") is None:
        yield Row(name, "not run: needs the engine environment", f"at most {RATIO}")
        return
    with tempfile.TemporaryDirectory() as folder:
        done = fresh(
            "stream_vllm",
            "measure",
            env={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"},
            timeout=6 * 3600,
            folder=folder,
            requests=requests,
        )
    ratios = [ours / theirs for ours, theirs in done["pairs"]]
    ratio = statistics.median(ratios)
    ours, theirs = (statistics.median(column) for column in zip(*done["pairs"], strict=True))
    figures = f"{ratio:.3f} (pairs {min(ratios):.3f} to {max(ratios):.3f}; {ours:.1f} s and {theirs:.1f} s,"
    figures += f" {done['tokens']:,} tokens, {PLACES} at a time)"
    yield Row(name, figures, f"at most {RATIO}", ratio <= RATIO)


class Ready:
    """Requests that are all ready."""

    def __init__(self, requests: list[Request]) -> None:
        self._left = deque(requests)

    @property
    def over(self) -> bool:
        return not self._left

    def take(self) -> Request | None:
        return self._left.popleft() if self._left else None

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def measure(folder: str, requests: int) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT))
    from vllm import LLM

    from medtasks_ext.engines.vllm import load
    from tests.engine.tiny_model import make

    arguments = {"pretrained": str(make(Path(folder))), "dtype": "float32", "enforce_eager": True,
                 "max_model_len": 2048, "max_num_seqs": PLACES, "enable_prefix_caching": False}  # fmt: skip
    engine = load(arguments, {"batch_size": "auto"})
    ready, llm = _requests(engine, requests), LLM(**engine.lm.model_args)
    pairs = [(_ours(engine, ready), _theirs(llm, engine, ready)) for _ in range(PAIRS + 1)][1:]
    engine.close()
    return {"pairs": pairs, "tokens": sum(item.settings["max_gen_toks"] for item in ready)}


def _requests(engine: Any, n: int) -> list[Request]:
    from medtasks_ext.engines import Request

    rng = random.Random(0)
    never = {"logit_bias": {engine.lm.eot_token_id: -100}}
    budgets = [min(LONGEST, 1 + int(MEDIAN * rng.lognormvariate(0, SIGMA))) for _ in range(n)]
    ready = [
        engine.prepare(Request(str(i), "", "", words(rng, 40), {**SETTINGS, **never, "max_gen_toks": budget}))
        for i, budget in enumerate(budgets)
    ]
    assert all(isinstance(item, Request) for item in ready), ready
    return ready


def _ours(engine: Any, ready: list[Request]) -> float:
    came: list[float] = []

    def done(request: Request, outcome: Any) -> None:
        assert outcome.usage.completion == request.settings["max_gen_toks"], outcome
        came.append(time.perf_counter())

    started = time.perf_counter()
    engine.run(Ready(ready), done)
    assert len(came) == len(ready)
    return came[-1] - started


def _theirs(llm: Any, engine: Any, ready: list[Request]) -> float:
    from vllm import TokensPrompt

    prompts = [TokensPrompt(prompt_token_ids=item.tokens) for item in ready]
    parameters = [engine.sampling(item.settings)[0] for item in ready]
    started = time.perf_counter()
    outputs = llm.generate(prompts, sampling_params=parameters, use_tqdm=False)
    seconds = time.perf_counter() - started
    for item, output in zip(ready, outputs, strict=True):
        assert len(output.outputs[0].token_ids) == item.settings["max_gen_toks"]
    return seconds
