"""What the engine tests share: a clean environment, a random model, and a server on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from medtasks_ext.models.demo import NAME
from tests.engine.server import serving
from tests.engine.tiny_model import make

ROOT = Path(__file__).resolve().parents[2]
#: set for the tests that run in this process; users do not set them
OF_TESTS = ("TQDM_DISABLE", "TOKENIZERS_PARALLELISM")

#: under which the shared server knows its model, besides the model's folder
NAMES = ("tiny", "tiny-a", "tiny-b")

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
        # threads that wait for each other are slow on a busy machine, and the models are tiny; left alone,
        # vLLM would bind two engines to the same core
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
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


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """The model of all tests that need no other: random, greedy answers of any length."""
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def server(tiny, served) -> Iterator[str]:
    """The address of the server of all tests that need no settings of their own."""
    with served(tiny, *NAMES, str(tiny)) as address:
        yield address


@pytest.fixture(scope="session")
def real_model(tmp_path_factory) -> Path:
    """The model of tests in which a real answer matters: SmolLM2-135M-Instruct, from Q4_1 weights."""
    pytest.importorskip("gguf")
    folder = tmp_path_factory.mktemp("models") / NAME
    cache = os.environ.get("MEDTASKS_CACHE") or str(Path.home() / ".cache" / "medtasks")
    online = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "0", "MEDTASKS_CACHE": cache}
    make = "import pathlib, sys; from medtasks_ext.models.demo import make_checkpoint as make; "
    command = [sys.executable, "-c", f"{make}make(pathlib.Path(sys.argv[1]))", str(folder)]
    done = subprocess.run(command, env=online, capture_output=True, text=True, check=False)
    if done.returncode and ("cannot be reached" in done.stderr or "no connection" in done.stderr):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return folder
