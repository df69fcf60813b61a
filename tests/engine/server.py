"""`vllm serve` on loopback, for as long as a context lasts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(
    command: Sequence[object], port: int, environment: dict[str, str], log_file: Path
) -> Iterator[str]:
    """Start the server (a command without address and port), wait until it answers, and stop it at the end.

    Gives the address without a path. Where the server does not start, the end of its log is shown.
    """
    assert not _answers(port), f"port {port} is taken by another program: stop it, this test needs the port"
    address = f"http://127.0.0.1:{port}"
    with log_file.open("w+") as log:
        process = subprocess.Popen(
            [*map(str, command), "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    urllib.request.urlopen(f"{address}/health", timeout=2)
                    break
                except OSError:
                    log.seek(0)
                    assert process.poll() is None, log.read()[-3000:]
                    time.sleep(0.5)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:  # a busy machine: nothing of it may outlive the tests
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=2).close()
    except OSError:
        return False
    return True
