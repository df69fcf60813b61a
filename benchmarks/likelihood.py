"""Time of likelihoods: the engines of `medtasks run` beside lm-eval's `loglikelihood` on one loaded model.

`python -m benchmarks.likelihood hf|vllm MODEL [DOCUMENTS]` asks bundled rows of tasks with letters and with
labels of several tokens, repeated up to so many documents a task with another beginning each. It prints the
seconds of the processor that both take, those of an engine's own processes included, which other work on the
machine moves little, and the largest difference of two log-likelihoods.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

import psutil

os.environ["MEDTASKS_DATA"] = "sample"

#: Letters behind the prompt, letters behind a lead, and labels of several tokens.
TASKS = ("medhelm_medmcqa_ll", "mlb_maexam_ll", "bridge_mednli_ll")


def requests_of(lm: Any, name: str, most: int) -> list[Any]:
    """The requests of a task; rows are repeated with another beginning, so that no cache knows them."""
    from medtasks_ext.prompts.documents import document_key
    from medtasks_ext.registry import registry
    from medtasks_ext.run.asker import request_of
    from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt

    settings = Settings(prompts="own")
    task = build_task(registry(), name, settings)
    found = []
    for number in range(most):
        place = number % len(task.eval_docs)
        row = task.eval_docs[place]
        prompt, about = rendered_prompt(task, row, settings, None), (task.task_name, place, 1)
        instances = task.construct_requests(row, prompt, metadata=about, apply_chat_template=False)
        request = request_of(instances, "benchmark", document_key(row))
        found.append(replace(request, key=f"{name}-{number}", prompt=f"Case {number}.\n{request.prompt}"))
    return found


class Ready:
    """A feed of requests that are all there."""

    dry = False

    def __init__(self, requests: list[Any]) -> None:
        self.left = requests[::-1]

    @property
    def over(self) -> bool:
        return not self.left

    def take(self) -> Any:
        return self.left.pop() if self.left else None

    def wait(self, seconds: float) -> None:
        return None


def spent() -> float:
    """Seconds of the processor that this process and its children have taken."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def main(kind: str, model: str, documents: int = 40) -> None:
    """Ask with both, lm-eval first."""
    from lm_eval.api.instance import Instance

    arguments: dict[str, Any] = {"pretrained": model, "dtype": "float32"}
    if kind == "vllm":
        from medtasks_ext.engines.vllm import load

        more = {"enforce_eager": True, "max_model_len": 4096}
        engine: Any = load({**arguments, **more}, {"batch_size": "auto"})
        lm = engine.lm
    else:
        from lm_eval.models.huggingface import HFLM

        from medtasks_ext.engines.lm import LmEngine

        lm = HFLM(**arguments, device="cpu", batch_size=1)
        engine = LmEngine(lm)
    requests = [request for name in TASKS for request in requests_of(lm, name, documents)]
    asked = [
        Instance("loglikelihood", {}, (request.prompt, option), place)
        for request in requests
        for place, option in enumerate(request.options)
    ]
    lm.loglikelihood(asked[:4], disable_tqdm=True)
    began = spent()
    theirs = lm.loglikelihood(asked, disable_tqdm=True)
    lm_eval = spent() - began
    if kind == "vllm":
        lm.model.call(lm.model.llm_engine.reset_prefix_cache())
    outcomes: dict[str, Any] = {}
    began = spent()
    feed = Ready([engine.prepare(request) for request in requests])
    engine.run(feed, lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    ours = spent() - began
    found = [item.value for request in requests for item in outcomes[request.key].likelihoods]
    worst = max(abs(one - two[0]) for one, two in zip(found, theirs, strict=True))
    print(
        f"{kind}: {len(requests)} questions, {len(asked)} options: medtasks {ours:.1f} s, "
        f"lm-eval {lm_eval:.1f} s of the processor ({ours / lm_eval:.2f}), largest difference {worst:.1e}",
        flush=True,
    )
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
