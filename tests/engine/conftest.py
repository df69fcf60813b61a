"""What the engine tests share: a clean environment, and a server on loopback."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.engine.server import serving

ROOT = Path(__file__).resolve().parents[2]
#: set for the tests that run in this process; users do not set them
OF_TESTS = ("TQDM_DISABLE", "TOKENIZERS_PARALLELISM")

#: model folder, names, more flags -> the server's address without path
Served = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Without the user's settings and those of other tests, offline, this environment's commands first."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("MEDTASKS_") and key not in OF_TESTS
    }
    return {
        **clean,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),  # the copy that is installed may be older than this checkout
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture(scope="session")
def served(environment, tmp_path_factory) -> Served:
    """`vllm serve` on a free loopback port, for as long as the context lasts."""

    @contextmanager
    def serve(model: Path, *names: str, context: int = 16384, more: tuple[str, ...] = ()) -> Iterator[str]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        flags = ["--dtype", "float32", "--enforce-eager", "--max-model-len", context]
        flags += ["--served-model-name", *names, *more]
        log = tmp_path_factory.mktemp("server") / "log"
        with serving(["vllm", "serve", model, *flags], port, environment, log) as address:
            yield address

    return serve
