"""A loopback server with 256 places: is it ever idle, what do kills cost, and how do others fare?

Answers take as long as the question says: lognormal seconds (median 2, sigma 1, at most 30) drawn from a hash
of its text, so that every command waits for the same answers. The server notes when each request came, was
begun and was answered; all spans go from the first request to the last answer as the server saw them.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from common import ROOT, Row, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES, TASKS, N = 256, 20, 2000
MEDIAN, SIGMA, CAP = 2.0, 1.0, 30.0
PAIRS, KILLS = 5, 20


def run(quick: bool) -> Iterator[Row]:
    n, pairs, kills = (N // 5, 1, 3) if quick else (N, PAIRS, KILLS)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        many, one = prepare(folder / "many", TASKS, n // TASKS), prepare(folder / "one", 1, n)
        what = f"{n:,} requests of {TASKS} tasks, {PLACES} places"
        ratios, over_ideal = [], []
        for pair in range(pairs):
            ours = _measured(folder / f"ours-{pair}", many)
            plain = _measured(folder / f"plain-{pair}", one, plain=True)
            ratios.append(ours.span / plain.span)
            over_ideal.append(ours.span / ours.ideal)
        found = statistics.median(over_ideal)
        yield Row(f"stream: {what}, over the ideal", f"{found:.3f} times", "at most 1.05", found <= 1.05)
        found = statistics.median(ratios)
        yield Row(
            "stream: over plain lm_eval on one task of that volume",
            f"{found:.3f} times",
            "at most 1.05",
            found <= 1.05,
        )
        if not quick:
            apart = sum(_measured(folder / name, many, tasks=[name]).span for name in many.tasks)
            share = ours.span / apart
            yield Row(
                "stream: over the same tasks one after the other",
                f"{share:.3f} times ({ours.span:.0f} of {apart:.0f} s)",
                "at most 0.15",
                share <= 0.15,
            )
        for busy in (0, 20):
            with _busy(busy):
                measured = _measured(folder / f"busy-{busy}", many)
            yield Row(
                f"stream: last score after the last answer, {busy} busy processes beside",
                f"{measured.last_score:.1f} s",
                "at most 2 s",
                measured.last_score <= 2,
            )
        yield from _killed(folder, many, kills, ours.scores)


# ---------------------------------------------------------------------- what is asked


class Rows(NamedTuple):
    """A folder of tasks with their data, and the tasks to ask."""

    folder: Path
    tasks: list[str]


def prepare(folder: Path, n_tasks: int, n_rows: int) -> Rows:
    """Tasks of BRIDGE with random rows of their own."""
    import loading

    loading.prepare(folder, n_rows)
    from medtasks_ext.registry import Registry

    # those whose score is a mean over documents, so that scoring takes no part in the figures
    names = [
        name
        for name, dataset in Registry(folder / "tasks").datasets.items()
        if dataset.metadata.task_type in ("text_classification", "natural_language_inference")
    ]
    return Rows(folder, sorted(names)[:n_tasks])


def _command(rows: Rows, url: str, out: Path, tasks: list[str], *, plain: bool) -> list[str]:
    model = f"model=m,base_url={url},num_concurrent={PLACES},max_retries=3,timeout=600,max_length=65536"
    program = ["-m", "lm_eval", "run"] if plain else ["-m", "medtasks_ext", "run", "--no-preflight"]
    return [
        *(sys.executable, *program, "--model", "local-chat-completions", "--model_args", model),
        *(("--include_path", f"{rows.folder}/built") if plain else ()),
        *("--tasks", ",".join(tasks), "--apply_chat_template"),
        *("--output_path", str(out)),
    ]


class Measured(NamedTuple):
    """What the server saw: seconds from the first request to the last answer, those of list scheduling in the
    order of arrival, the scores that came out, and seconds from the last answer to the last score."""

    span: float
    ideal: float
    scores: dict[str, float]
    last_score: float


def _measured(out: Path, rows: Rows, tasks: list[str] | None = None, *, plain: bool = False) -> Measured:
    with _server(out.with_suffix(".log")) as url:
        command = _command(rows, url, out, tasks or rows.tasks, plain=plain)
        subprocess.run(command, env=_environment(rows), cwd=ROOT, check=True, capture_output=True)
    found = _log(out.with_suffix(".log"))
    answered = [item for item in found if "answered" in item]
    span = max(item["answered"] for item in answered) - min(item["came"] for item in answered)
    ordered = sorted(answered, key=lambda item: item["came"])
    scored = max((file.stat().st_mtime for file in (out / "tasks").glob("*.json")), default=0.0)
    last = scored - max(item["answered"] for item in answered)
    return Measured(span, _list_scheduling([item["seconds"] for item in ordered]), _scores(out), last)


@contextmanager
def _busy(n: int) -> Iterator[None]:
    """So many processes that never wait."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _list_scheduling(durations: list[float]) -> float:
    """Seconds until all are done if each begins as soon as one of the places is free."""
    free = [0.0] * PLACES
    for seconds in durations:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def _environment(rows: Rows) -> dict[str, str]:
    own = {"MEDTASKS_DATA_DIR": f"{rows.folder}/data", "MEDTASKS_TASKS_DIR": f"{rows.folder}/tasks"}
    return environment(**own, PYTHONPATH=str(ROOT))


def _scores(out: Path) -> dict[str, float]:
    file = out / "results.json"
    if not file.is_file():
        return {}
    results = json.loads(file.read_text())["results"]
    return {name: item["score,answer"] for name, item in results.items()}


# ---------------------------------------------------------------------- kills


def _killed(folder: Path, rows: Rows, kills: int, expected: dict[str, float]) -> Iterator[Row]:
    """Kill the run again and again at random moments, then let it end."""
    rng, out = random.Random(0), folder / "killed"
    lost = 0
    with _server(folder / "killed.log") as url:
        command = _command(rows, url, out, rows.tasks, plain=False)
        for _ in range(kills):
            process = subprocess.Popen(
                command,
                env=_environment(rows),
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            begun = len(_log(folder / "killed.log"))
            while process.poll() is None and len(_log(folder / "killed.log")) == begun:
                time.sleep(0.05)  # a kill before the first request would show nothing
            time.sleep(rng.uniform(0, 3))
            process.send_signal(signal.SIGKILL)
            process.wait()
            asked = [item for item in _log(folder / "killed.log") if "came" in item]
            lost += len({item["id"] for item in asked[begun:]} - _stored(out))
        subprocess.run(command, env=_environment(rows), cwd=ROOT, check=True, capture_output=True)
    asked = [item for item in _log(folder / "killed.log") if "came" in item]
    distinct = len({item["text"] for item in asked})
    twice = len(asked) - distinct
    yield Row(
        f"stream: killed {kills} times, requests asked twice",
        f"{twice:,} of {distinct:,}",
        f"at most those under way at the kills, {lost:,}",
        twice <= lost,
    )
    same = _scores(out) == expected
    yield Row("stream: scores after the kills", "equal" if same else "not equal", "equal", same)


def _stored(out: Path) -> set[str]:
    ids = set()
    for file in (out / "responses").glob("*.jsonl"):
        for line in file.read_bytes().splitlines():
            try:
                ids.add(json.loads(line).get("request_id", ""))
            except ValueError:
                continue  # the line that the kill cut short
    return ids


# ---------------------------------------------------------------------- the server, a process of its own


@contextmanager
def _server(log: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, __file__, str(log)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/chat/completions"
    finally:
        process.kill()
        process.wait()


def _log(path: Path) -> list[dict[str, Any]]:
    """Requests in the order in which they came, with the moments that are known."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        item = json.loads(line)
        found.setdefault(item["id"], {}).update(item)
    return list(found.values())


def _seconds(text: str) -> float:
    """How long the answer to a question takes: the same for everyone who asks it."""
    rng = random.Random(sha256(text.encode()).digest())
    return min(CAP, MEDIAN * math.exp(rng.gauss(0, SIGMA)))


async def _serve(log: Path) -> None:
    from aiohttp import web

    places, numbers = asyncio.Semaphore(PLACES), iter(range(10**9))
    file = log.open("a", buffering=1)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        text = "\n".join(turn["content"] for turn in body["messages"])
        seconds, name = _seconds(text), f"r{next(numbers)}-{time.time_ns()}"
        about = {"id": name, "text": sha256(text.encode()).hexdigest()[:16], "seconds": seconds}
        file.write(json.dumps({**about, "came": time.time()}) + "\n")
        async with places:
            await asyncio.sleep(seconds)
        reply = {
            "id": name,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": f"answer {text[-1]}"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        }
        file.write(json.dumps({"id": name, "answered": time.time()}) + "\n")
        return web.json_response(reply)

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
