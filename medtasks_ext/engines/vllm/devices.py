"""Which devices each replica sees: equal slices of those that this process sees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from medtasks_ext.errors import MedtasksError

CPU_THREADS = "VLLM_CPU_OMP_THREADS_BIND"


def slices(replicas: int, each: int) -> list[dict[str, str]]:
    """The environment variables of each replica.

    Args:
        each: workers of one, each on a device of its own.

    Raises:
        MedtasksError: there are too few devices.
    """
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
    """The devices of each replica.

    Raises:
        MedtasksError: there are too few.
    """
    if len(devices) < replicas * each:
        raise MedtasksError(
            f"{replicas} replicas with {each} device{'s' * (each > 1)} each need {replicas * each} devices;"
            f" {len(devices)} are visible",
            where="--model_args data_parallel_size",
            remedy="lower data_parallel_size, tensor_parallel_size or pipeline_parallel_size",
        )
    return [devices[i * each : (i + 1) * each] for i in range(replicas)]


def cpu_threads(wish: str | None, cores: Sequence[int], replicas: int, each: int) -> list[str]:
    """To which cores vLLM binds each replica's threads. By itself it would give all cores to every replica.

    Args:
        wish: what the user has set: `nobind`, `auto`, or one list per worker of all replicas, divided by `|`.
        cores: those that this process may use.
        each: workers of one.

    Raises:
        MedtasksError: the user has set another number of lists.
    """
    workers = replicas * each
    if wish == "nobind":
        return [wish] * replicas
    if wish and wish != "auto":
        lists = wish.split("|")
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
