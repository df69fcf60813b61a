"""Loading: one vLLM in this process, and one in a process of its own for each further replica."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from medtasks_ext.engines import watcher
from medtasks_ext.engines.vllm.engine import VllmEngine
from medtasks_ext.engines.vllm.lanes import create
from medtasks_ext.engines.vllm.replica import Replica
from medtasks_ext.engines.vllm.stepper import Stepper
from medtasks_ext.errors import MedtasksError

# Ctrl-C is for this process: a terminal sends it to every process of the group.


@contextmanager
def ctrl_c_stays_here() -> Iterator[None]:
    """Processes that are started within never get SIGINT, whatever handler they set.

    vLLM's engine process ends at Ctrl-C and takes along what is under way. A new process has the signal mask
    of the thread that started it, and so have its own children. This process goes on to hear the signal
    through another thread; Python then handles it in the main thread as ever.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # it is started once per process, and its start would unblock the signal
    resource_tracker.ensure_running()
    over = threading.Event()
    threading.Thread(target=over.wait, name="hears Ctrl-C", daemon=True).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()


# Which devices each replica sees: equal slices of those that this process sees.

CPU_THREADS = "VLLM_CPU_OMP_THREADS_BIND"


def slices(replicas: int, each: int) -> list[dict[str, str]]:
    """Of each replica, whose workers have a device each; MedtasksError where there are too few."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        bound = cpu_threads(os.environ.get(CPU_THREADS), cores, replicas, each)
        return [{CPU_THREADS: threads} for threads in bound]
    name = current_platform.device_control_env_var
    visible = os.environ.get(name)
    count = current_platform.device_count()
    devices = visible.split(",") if visible else [str(device) for device in range(count)]
    return [{name: ",".join(part)} for part in device_slices(devices, replicas, each)]


def device_slices(devices: Sequence[str], replicas: int, each: int) -> list[Sequence[str]]:
    if len(devices) < replicas * each:
        raise MedtasksError(
            f"{replicas} replicas with {each} device{'s' * (each > 1)} each need {replicas * each} devices;"
            f" {len(devices)} are visible",
            where="--model_args data_parallel_size",
            remedy="lower data_parallel_size, tensor_parallel_size or pipeline_parallel_size",
        )
    return [devices[i * each : (i + 1) * each] for i in range(replicas)]


def cpu_threads(setting: str | None, cores: Sequence[int], replicas: int, each: int) -> list[str]:
    """To which cores vLLM binds each replica's threads. By itself it would give all cores to every
    replica.

    Args:
        setting: what the user has set: `nobind`, `auto`, or a list per worker of all replicas, by `|`.
    """
    workers = replicas * each
    if setting == "nobind":
        return [setting] * replicas
    if setting and setting != "auto":
        lists = setting.split("|")
        if len(lists) != workers:
            raise MedtasksError(
                f"{len(lists)} lists of cores for {workers} workers",
                where=CPU_THREADS,
                remedy="give one list per worker of each replica, divided by |, or unset it",
            )
    elif len(cores) < workers:
        return ["nobind"] * replicas
    else:
        share = len(cores) // workers
        lists = [",".join(map(str, cores[i * share : (i + 1) * share])) for i in range(workers)]
    return ["|".join(lists[i * each : (i + 1) * each]) for i in range(replicas)]


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Other environment variables for a while: processes started within have them for good."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


#: lm-eval's default
SEED = 1234


def load(model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> VllmEngine:
    """Load lm-eval's vLLM model, `data_parallel_size` times.

    lm-eval would load all replicas anew at each call, and needs Ray for that. Here this process is replica 0,
    so that `engine.lm` is a whole lm-eval model; the others take from the same stream of requests. No process
    of an engine outlives this one.

    Raises:
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
