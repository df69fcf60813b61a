"""What the benchmarks share: rows of the table, synthetic text, measuring in a fresh process."""

from __future__ import annotations

import importlib
import json
import os
import random
import string
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TASKS = ROOT / "tasks"
CHILD = (sys.executable, str(Path(__file__).resolve()))


class Row(NamedTuple):
    """One line of the table; `met` is None where there is no target."""

    name: str
    measured: str
    target: str = ""
    met: bool | None = None


_rng = random.Random(0)
WORDS = ["".join(_rng.choices(string.ascii_lowercase, k=_rng.randint(2, 9))) for _ in range(10_000)]
CHARACTERS = [chr(code) for code in range(0x4E00, 0x9FA5)] + ["。"] * 500


def words(rng: random.Random, n: int) -> str:
    """Random lower-case words, `n` of them."""
    return " ".join(rng.choices(WORDS, k=n))


def characters(rng: random.Random, n: int) -> str:
    """Random Chinese characters, `n` of them, with a full stop now and then."""
    return "".join(rng.choices(CHARACTERS, k=n))


def text(rng: random.Random, language: str, n_words: int) -> str:
    """Random words, or twice as many random Chinese characters."""
    return characters(rng, 2 * n_words) if language == "zh" else words(rng, n_words)


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without anything that would change what is measured."""
    changes = ("MEDTASKS_", "PYTHONDONTWRITEBYTECODE")  # an installed package has its bytecode
    own = {name: value for name, value in os.environ.items() if not name.startswith(changes)}
    quiet = {"TQDM_DISABLE": "1", "LMEVAL_LOG_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    return {**own, **quiet, **extra, "BENCH_STARTED": repr(time.time())}


def fresh(
    module: str, function: str, *, env: dict[str, str] | None = None, timeout: int = 600, **kwargs: Any
) -> Any:
    """Call a benchmark's function in a new process: its import times, caches and memory are its own."""
    done = subprocess.run(
        [*CHILD, module, function, json.dumps(kwargs)],
        env=environment(**(env or {})),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"{module}.{function}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_gigabytes() -> float:
    """Peak resident memory of this process."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux: getrusage would count the parent's memory at the moment of the fork
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e9
    import resource

    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    )


def since_start() -> float:
    """Seconds since the parent started this process, interpreter start included."""
    return time.time() - float(os.environ["BENCH_STARTED"])


if __name__ == "__main__":
    module, function, arguments = sys.argv[1:]
    answer = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print("\n" + json.dumps(answer))
