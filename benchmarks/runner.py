"""`medtasks run` beside the ideal and beside plain `lm_eval`, against a server on loopback.

Answers take as long as the question says: lognormal seconds drawn from a hash of its text, so that every
command waits for the same answers. The ideal is list scheduling: each question begins as soon as one of the
places is free. The server notes when each request came and was answered; spans go from the first request to
the last answer as the server saw them. Processor time a request is that of many less that of few, so that the
start of a command counts nothing; both commands write a record of each document (`--log_samples`). Scores of
ROUGE are counted while the model answers: what the ideal takes, over what the run took, is the share of its
speed that is left.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import os
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

from common import ROOT, Row, environment, words

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS, N, MANY, FEW = 20, 640, 20_000, 2000
TASKS_OF_BRIDGE, LONG = 87, 140_000
PAIRS, KILLS = 3, 30
#: Of tasks whose score is a mean over documents, and of those that are scored by ROUGE.
PLAIN = ("text_classification", "natural_language_inference")
ROUGE = ("question_answering", "summarization")


class Scripted(NamedTuple):
    """What a server does."""

    places: int = 256
    median: float = 2.0  # seconds of an answer, at most `cap`
    sigma: float = 1.0
    cap: float = 30.0
    words: int = 2  # of an answer
    refused: float = 0.0  # share of the requests that it refuses with 429 and `Retry-After: 1`


def run(quick: bool) -> Iterator[Row]:
    size, pairs, kills = (10, 1, 2) if quick else (1, PAIRS, KILLS)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = prepare(folder / "rows", TASKS, N // TASKS, PLAIN)
        yield from _beside_the_ideal(folder, rows, pairs)
        refusing = measured(folder / "refused", rows, Scripted(refused=0.05))
        yield _at_most("5 % refused with Retry-After, over the ideal", refusing.over_ideal, 1.15)
        many, few = (prepare(folder / f"short-{n}", 1, n // size, PLAIN) for n in (MANY, FEW))
        yield from _processor_time(folder, many, few, (MANY - FEW) // size)
        texts = prepare(folder / "texts", 10, MANY // size // 10, ROUGE)
        busy = measured(folder / "rouge", texts, Scripted(places=1024, sigma=0.3, words=60))
        kept = 1 / busy.over_ideal
        what = f"runner: {MANY // size:,} answers, ROUGE beside 1,024 places: speed of generation alone"
        yield Row(what, f"{kept:.3f}", "at least 0.97", kept >= 0.97)
        yield from _killed(folder, rows, kills)
        long = prepare(folder / "long", TASKS_OF_BRIDGE, LONG // TASKS_OF_BRIDGE // size, None, n_words=1400)
        peak = measured(folder / "memory", long, Scripted(median=0.05, sigma=0.0)).peak
        n = LONG // TASKS_OF_BRIDGE // size * TASKS_OF_BRIDGE
        yield _at_most(f"{n:,} documents of some 9 kB, {TASKS_OF_BRIDGE} tasks", peak, 1.5, "GB")


def _at_most(what: str, found: float, most: float, unit: str = "times") -> Row:
    return Row(f"runner: {what}", f"{found:.3f} {unit}", f"at most {most:g} {unit}", found <= most)


def _beside_the_ideal(folder: Path, rows: Rows, pairs: int) -> Iterator[Row]:
    own, plain = list[Measured](), list[Measured]()
    for pair in range(pairs):
        own.append(measured(folder / f"ours-{pair}", rows, Scripted()))
        plain.append(measured(folder / f"plain-{pair}", rows, Scripted(), plain=True))
    what = f"{N} requests of {TASKS} tasks, 256 places"
    yield _at_most(f"{what}, over the ideal", statistics.median(one.over_ideal for one in own), 1.02)
    found = statistics.median(one.over_ideal for one in plain)
    yield Row(f"runner: {what}, lm_eval over the ideal", f"{found:.3f} times")
    yield _at_most("first request after the start", min(one.first for one in own), 3, "s")
    yield _at_most("last score after the last answer", max(one.last_score for one in own), 2, "s")


def _processor_time(folder: Path, many: Rows, few: Rows, n: int) -> Iterator[Row]:
    script, ms = Scripted(places=1024, median=0.2, sigma=0.0), dict[bool, float]()
    for plain in (False, True):
        large, small = (
            measured(folder / f"{rows.folder.name}-{plain}", rows, script, plain=plain)
            for rows in (many, few)
        )
        ms[plain] = 1000 * (large.processor - small.processor) / n
    yield _at_most("short requests, 1,024 places: processor time a request", ms[False], 0.8, "ms")
    yield _at_most("the same over lm_eval's", ms[False] / ms[True], 0.7)


# ---------------------------------------------------------------------- what is asked


class Rows(NamedTuple):
    """A folder of tasks with their data, and the tasks to ask."""

    folder: Path
    tasks: list[str]


def prepare(
    folder: Path, n_tasks: int, n_rows: int, kinds: tuple[str, ...] | None = PLAIN, n_words: int = 200
) -> Rows:
    """Tasks of BRIDGE with random rows of their own; `kinds`: None for all."""
    import loading

    loading.prepare(folder, n_rows, n_words)
    from medtasks_ext.registry import Registry

    names = [
        name
        for name, dataset in Registry(folder / "tasks").datasets.items()
        if kinds is None or dataset.metadata.task_type in kinds
    ]
    return Rows(folder, sorted(names)[:n_tasks])


def command(rows: Rows, url: str, out: Path, places: int, *, plain: bool = False) -> list[str]:
    """Asks all tasks, by `medtasks run` or plain `lm_eval`."""
    model = f"model=m,base_url={url},num_concurrent={places},max_retries=3,timeout=600,max_length=65536"
    program = ["-m", "lm_eval", "run"] if plain else ["-m", "medtasks_ext", "run", "--no-preflight"]
    return [
        *(sys.executable, *program, "--model", "local-chat-completions", "--model_args", model),
        *(("--log_samples", "--include_path", f"{rows.folder}/built") if plain else ()),
        *("--tasks", ",".join(rows.tasks), "--apply_chat_template"),
        *("--output_path", str(out)),
    ]


class Measured(NamedTuple):
    """What the server saw, and what the command took, in seconds."""

    over_ideal: float  # first request to last answer, over list scheduling in the order of arrival
    first: float  # from the start of the command to its first request
    last_score: float  # from the last answer to the last score
    processor: float
    peak: float  # of its memory, in GB
    scores: dict[str, float | None]


def measured(out: Path, rows: Rows, script: Scripted, *, plain: bool = False) -> Measured:
    """Run a command against a server of its own."""
    with server(out.with_suffix(".log"), script) as url:
        began, quiet = time.time(), {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        asks = command(rows, url, out, script.places, plain=plain)
        child = subprocess.Popen(asks, env=environment_of(rows), cwd=ROOT, **quiet)  # type: ignore[call-overload]
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise subprocess.CalledProcessError(status, asks)
    answered = [item for item in log_of(out.with_suffix(".log")) if "answered" in item]
    first, last = min(item["came"] for item in answered), max(item["answered"] for item in answered)
    ordered = sorted(answered, key=lambda item: item["came"])
    ideal = _list_scheduling([item["seconds"] for item in ordered], script.places)
    scored = max(file.stat().st_mtime for file in out.rglob("samples_*.jsonl")) if not plain else last
    took, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9
    return Measured((last - first) / ideal, first - began, scored - last, took, peak, _scores(out))


def _list_scheduling(durations: list[float], places: int) -> float:
    """Seconds until all are done if each begins as soon as one of the places is free."""
    free = [0.0] * places
    for seconds in durations:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def environment_of(rows: Rows) -> dict[str, str]:
    """In which a command finds tasks and rows."""
    own = {"MEDTASKS_DATA_DIR": f"{rows.folder}/data", "MEDTASKS_TASKS_DIR": f"{rows.folder}/tasks"}
    return environment(**own, PYTHONPATH=str(ROOT))


def _scores(out: Path) -> dict[str, float | None]:
    results = json.loads(max(out.rglob("results_*.json")).read_text())["results"]
    return {name: item.get("score,answer") for name, item in results.items()}


# ---------------------------------------------------------------------- kills


def _killed(folder: Path, rows: Rows, kills: int) -> Iterator[Row]:
    """Kill the run again and again at random moments, then let it end."""
    rng, out, log, script = random.Random(0), folder / "killed", folder / "killed.log", Scripted()
    expected, lost = measured(folder / "unbroken", rows, script).scores, 0
    with server(log, script) as url:
        asks, where = command(rows, url, out, script.places), {"env": environment_of(rows), "cwd": ROOT}
        for _ in range(kills):
            begun = len(log_of(log))
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(asks, **where, **quiet)  # type: ignore[call-overload]
            while process.poll() is None and len(log_of(log)) == begun:
                time.sleep(0.05)  # a kill before the first request would show nothing
            time.sleep(rng.uniform(0, 3))
            process.send_signal(signal.SIGKILL)
            process.wait()
            asked = [item for item in log_of(log) if "came" in item]
            lost += len({item["id"] for item in asked[begun:]} - _stored(out))
        subprocess.run(asks, **where, check=True, capture_output=True)  # type: ignore[call-overload]
    asked = [item for item in log_of(log) if "came" in item]
    distinct = len({item["text"] for item in asked})
    twice = len(asked) - distinct
    yield Row(
        f"runner: killed {kills} times, requests asked twice",
        f"{twice:,} of {distinct:,}",
        f"at most those under way at the kills, {lost:,}",
        twice <= lost,
    )
    same = _scores(out) == expected
    yield Row("runner: scores after the kills", "equal" if same else "not equal", "equal", same)


def _stored(out: Path) -> set[str]:
    ids = set()
    for line in (out / "answers.jsonl").read_bytes().splitlines():
        try:
            ids.add(json.loads(line).get("request_id", ""))
        except ValueError:
            continue  # the line that the kill cut short
    return ids


# ---------------------------------------------------------------------- the server, a process of its own


@contextmanager
def server(log: Path, script: Scripted) -> Iterator[str]:
    """The address of a server that notes its requests in a file."""
    given = [sys.executable, __file__, str(log), json.dumps(script._asdict())]
    process = subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/chat/completions"
    finally:
        process.kill()
        process.wait()


def log_of(path: Path) -> list[dict[str, Any]]:
    """Requests in the order in which they came, with the moments that are known."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        item = json.loads(line)
        found.setdefault(item["id"], {}).update(item)
    return list(found.values())


async def _serve(log: Path, script: Scripted) -> None:
    from aiohttp import web

    places, numbers, chance = asyncio.Semaphore(script.places), iter(range(10**9)), random.Random(0)
    file = log.open("a", buffering=1)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        text = "\n".join(turn["content"] for turn in body["messages"])
        if chance.random() < script.refused:
            return web.json_response({}, status=429, headers={"Retry-After": "1"})
        rng = random.Random(sha256(text.encode()).digest())  # the same for everyone who asks it
        seconds = min(script.cap, script.median * math.exp(rng.gauss(0, script.sigma)))
        name, said = f"r{next(numbers)}-{time.time_ns()}", words(rng, script.words)
        about = {"id": name, "text": sha256(text.encode()).hexdigest()[:16], "seconds": seconds}
        file.write(json.dumps({**about, "came": time.time()}) + "\n")
        async with places:
            await asyncio.sleep(seconds)
        reply = {
            "id": name,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": said}}],
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
    asyncio.run(_serve(Path(sys.argv[1]), Scripted(**json.loads(sys.argv[2]))))
