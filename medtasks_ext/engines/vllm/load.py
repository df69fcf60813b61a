"""Loading: one vLLM in this process, and one in a process of its own for each further replica."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from medtasks_ext.engines import watcher
from medtasks_ext.engines.vllm.create import create
from medtasks_ext.engines.vllm.devices import environment, slices
from medtasks_ext.engines.vllm.engine import VllmEngine
from medtasks_ext.engines.vllm.replica import Replica
from medtasks_ext.engines.vllm.shield import ctrl_c_stays_here
from medtasks_ext.engines.vllm.stepper import Stepper
from medtasks_ext.errors import MedtasksError

#: lm-eval's default
SEED = 1234


def load(model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> VllmEngine:
    """Load lm-eval's vLLM model, `data_parallel_size` times.

    lm-eval would load all replicas anew at each call, and needs Ray for that. Here this process is replica 0,
    so that `engine.lm` is a whole lm-eval model; the others take from the same stream of requests. No process
    of an engine outlives this one.

    Args:
        extra: what lm-eval's command line adds: `batch_size`, `max_batch_size`, `device`.

    Raises:
        MedtasksError: vLLM does not start, there are too few devices, or the arguments do not go together.
        ImportError, OSError, TypeError, ValueError: as lm-eval's class raises them.
    """
    watcher.start()
    replicas = int(model_args.get("data_parallel_size") or 1)
    if replicas > 1:
        return _load_replicas(replicas, model_args, extra)
    with ctrl_c_stays_here():
        lm, processes = create(model_args, extra)
    return VllmEngine(lm, [Stepper(lm, processes)])


def _load_replicas(replicas: int, model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> VllmEngine:
    if model_args.get("enable_expert_parallel"):
        raise MedtasksError(
            "replicas work on their own and cannot share experts",
            where="--model_args enable_expert_parallel",
            remedy="use tensor_parallel_size without data_parallel_size",
        )
    tensor, pipeline = (int(model_args.get(f"{kind}_parallel_size") or 1) for kind in ("tensor", "pipeline"))
    seed = int(model_args.get("seed", SEED))
    with ExitStack() as stack, ctrl_c_stays_here():
        first, *others = slices(replicas, tensor * pipeline)
        started = []
        for number, devices in enumerate(others, start=1):
            with environment(devices):  # before vLLM is imported there
                # with one seed, samples of the same prompt could be the same in two replicas
                replica = Replica(number, {**model_args, "seed": seed + number}, extra)
            stack.callback(replica.kill)
            started.append(replica)
        with environment(first):
            lm, processes = create(model_args, extra)
        for replica in started:
            replica.wait()
        stack.pop_all()
    return VllmEngine(lm, [Stepper(lm, processes), *started])
