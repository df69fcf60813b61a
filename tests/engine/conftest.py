"""What the engine tests share: a clean environment, models, commands, and a server on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.models.demo import NAME
from tests.conftest import ROOT, outcomes
from tests.engine.tiny_model import make

#: set for the tests that run in this process; users do not set them
OF_TESTS = ("TQDM_DISABLE", "TOKENIZERS_PARALLELISM")
MEDTASKS = (sys.executable, "-m", "medtasks_ext")

#: under which the shared server knows its model, besides the model's folder
NAMES = ("tiny", "tiny-a", "tiny-b")

#: model folder, names, more flags -> the server's address without path
Served = Callable[..., AbstractContextManager[str]]


def called(
    command: tuple[object, ...], folder: Path, environment: dict[str, str], codes: tuple[int, ...] = (0,)
) -> str:
    """What a command said in a folder, where it ended as it should."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, errors="replace"
    )
    said = done.stdout + done.stderr
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-6000:]
    return said


def answers(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Task and document -> its answer; each is there once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in outcomes(run):
        assert (row["task"], row["document"]) not in found
        found[row["task"], row["document"]] = row
    return found


@contextmanager
def serving(
    command: tuple[object, ...], port: int, environment: dict[str, str], log_file: Path
) -> Iterator[str]:
    """A server, from its first answer on; its address without path. The end of its log says why it failed."""
    with socket.socket() as probe:
        assert probe.connect_ex(("localhost", port)), (
            f"another program has port {port}, which this test needs"
        )
    command = (*command, "--host", "127.0.0.1", "--port", port)
    with log_file.open("w+") as log:
        process = subprocess.Popen(
            [*map(str, command)], env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                    break
                except OSError:
                    log.seek(0)
                    assert process.poll() is None, log.read()[-3000:]
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:  # a busy machine: nothing of it may outlive the tests
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Sample rows, no settings of the user or of other tests, and the commands beside this Python first."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("MEDTASKS_") and key not in OF_TESTS
    }
    return {
        **clean,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),  # the copy that is installed may be older than this checkout
        "MEDTASKS_DATA": "sample",
        "ACCELERATE_USE_CPU": "true",
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
        flags = ("--dtype", "float32", "--enforce-eager", "--max-model-len", context)
        command = ("vllm", "serve", model, *flags, "--served-model-name", *names, *more)
        with serving(command, port, environment, tmp_path_factory.mktemp("server") / "log") as address:
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
