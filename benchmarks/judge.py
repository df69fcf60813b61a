"""A jury of three, 2,000 answers, a loopback server that answers in 50 ms; then killed and resumed.

`medtasks judge` on 2,000 answers of random words with three judges, eight requests each at a time, against
a server on loopback that answers after 50 ms. Seconds from the first request to the last answer, as the
server saw them, over the ideal (requests × latency ÷ concurrency); the whole command with its memory; its
processor time beside the ideal, which tells on a busy machine whether the command is what is slow;
judgements in the file and answers given; then the same with the process killed outright after 2,000
judgements and started again: only answers on their way at that moment may be given twice.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ROOT, Row, environment, fresh, words

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK, N, LATENCY, CONCURRENT = "medhelm_medication_qa", 2000, 0.05, 8
JUDGES = ("one", "two", "three")
CODE = "c" * 16  # stands for the code of the request
VERDICT = {axis: {"score": 4, "explanation": "x"} for axis in ("accuracy", "completeness", "clarity")}


def run(quick: bool) -> Iterator[Row]:
    n = N // 10 if quick else N
    what = f"{n:,} responses x {len(JUDGES)} judges, {CONCURRENT} requests each at a time, 50 ms"
    ideal = n * LATENCY / CONCURRENT  # the judges are asked side by side
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as url:
        jury = make_run(Path(folder) / "run", url, n)
        found = fresh("judge", "judged", env=_rows_of(Path(folder)), folder=f"{folder}/run", jury=str(jury))
        asked = _counts(folder)
        seconds = asked["last"] - asked["first"]
        served = asked["busy"] / CONCURRENT / len(JUDGES)  # the ideal with the times that the server took
        ratio = f"{seconds:.1f} s, {seconds / ideal:.2f} times the ideal ({seconds / served:.2f} as served)"
        yield Row(f"jury: {what}", ratio, "at most 1.1", seconds <= 1.1 * ideal)
        yield Row(
            "jury: the whole command",
            f"{found['seconds']:.1f} s, {found['gigabytes'] * 1000:.0f} MB",
            "under 500 MB",
            found["gigabytes"] < 0.5,
        )
        yield Row(
            "jury: processor time of the command, beside the ideal",
            f"{found['processor']:.1f} s, {ideal:.1f} s",
            "less than it",
            found["processor"] < ideal,
        )
        total = n * len(JUDGES)
        yield Row(
            "jury: judgements kept, paid for",
            f"{found['kept']:,}, {asked['paid']:,}",
            f"{total:,} both",
            found["kept"] == asked["paid"] == asked["distinct"] == total,
        )
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as url:
        jury = make_run(Path(folder) / "run", url, n)
        stored = Path(folder) / "run" / "judgements" / "answers.jsonl"
        arguments = ("--jury", str(jury), "--prompts", "own")
        process = subprocess.Popen(
            [sys.executable, "-m", "medtasks_ext", "judge", f"{folder}/run", *arguments],
            cwd=ROOT, env=environment(**_rows_of(Path(folder))), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while not stored.is_file() or stored.read_bytes().count(b"\n") < n:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = stored.read_bytes().count(b"\n")
        found = fresh("judge", "judged", env=_rows_of(Path(folder)), folder=f"{folder}/run", jury=str(jury))
        asked = _counts(folder)
        twice = asked["paid"] - asked["distinct"]
        under_way = CONCURRENT * len(JUDGES)
        yield Row(
            f"jury: killed after {before:,} judgements, resumed",
            f"{found['kept']:,} kept, {twice} paid twice",
            f"all, at most the {under_way} under way",
            found["kept"] == total and twice <= under_way,
        )


def make_run(folder: Path, url: str, n: int) -> Path:
    """A finished run over n rows of random words, answered with the gold, and a jury file beside it."""
    rng = random.Random(0)
    rows = folder.parent / "data" / "medhelm" / "medication_qa"
    rows.mkdir(parents=True)
    with (rows / "test.jsonl").open("w") as file:
        for index in range(n):
            row = {"id": f"d{index}", "Question": f"{index} {words(rng, 300)}", "Answer": words(rng, 200)}
            file.write(json.dumps(row) + "\n")
    command = ("run", "--tasks", TASK, "--model", "oracle", "--output_path", str(folder))
    subprocess.run(
        [sys.executable, "-m", "medtasks_ext", *command],
        cwd=ROOT, env=environment(**_rows_of(folder.parent)), stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    jury = folder.parent / "jury.yaml"
    judges = [{"name": name, "model": name, "base_url": url, "max_concurrent": CONCURRENT} for name in JUDGES]
    jury.write_text(json.dumps({"judges": judges}))
    return jury


def _rows_of(folder: Path) -> dict[str, str]:
    return {"MEDTASKS_DATA_DIR": str(folder / "data")}


def judged(folder: str, jury: str) -> dict[str, float]:
    """Seconds and memory of `medtasks judge` in this process."""
    from common import peak_gigabytes

    from medtasks_ext.cli.main import main

    began, worked = time.perf_counter(), time.process_time()
    sys.argv = [
        "medtasks",
        "judge",
        folder,
        "--jury",
        jury,
        "--prompts",
        "own",
    ]  # whose verdicts carry a code
    with suppress(SystemExit):
        main()
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    lines = map(json.loads, (Path(folder) / "judgements" / "answers.jsonl").read_text().splitlines())
    return {
        "seconds": seconds,
        "processor": processor,
        "gigabytes": peak_gigabytes(),
        "kept": len({row["key"] for row in lines if row["outcome"] == "answer"}),
    }


# ---------------------------------------------------------------------- the server, a process of its own


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).resolve()), str(folder)]
    process = subprocess.Popen(command, env=environment())
    try:
        while not (address := folder / "address").is_file():
            time.sleep(0.02)
        yield address.read_text()
    finally:
        process.kill()
        process.wait()


def _counts(folder: str) -> dict[str, Any]:
    """What the server has answered so far, once it has written that down."""
    before, path = time.time(), Path(folder) / "counts"
    while not path.is_file() or path.stat().st_mtime < before:
        time.sleep(0.05)
    return json.loads(path.read_text())


async def serve(folder: Path) -> None:
    """Answer every chat request after the latency; write counts every tenth of a second."""
    paid: Counter[int] = Counter()
    times: list[float] = []
    busy: list[float] = []  # seconds that each answer took here
    message = {"message": {"content": json.dumps({"code": CODE, **VERDICT})}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 900, "completion_tokens": 60}
    answer = json.dumps({"choices": [message], "usage": usage}).encode()
    fence = re.compile(rb"<<<\w+ (\w{16})")
    models = json.dumps({"data": [{"id": name} for name in JUDGES]}).encode()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                data = models
                if body:
                    times.append(came := time.time())
                    await asyncio.sleep(LATENCY)
                    paid[hash(body)] += 1
                    times.append(time.time())
                    busy.append(times[-1] - came)
                    data = answer.replace(CODE.encode(), fence.search(body)[1])  # verdicts carry it
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0, limit=2**20)
    part = folder / "address.part"
    part.write_text(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    part.rename(folder / "address")
    while True:
        await asyncio.sleep(0.1)
        found = {"paid": paid.total(), "distinct": len(paid)}
        found |= {"first": min(times, default=0), "last": max(times, default=0), "busy": sum(busy)}
        part.write_text(json.dumps(found))
        part.rename(folder / "counts")


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
