"""Scoring beside a running engine: a process of low priority that reads the records of a run.

A thread of this process takes its turns from the engine's loop, so that only small tasks are scored here, for
a small share of the time (`SHARE`). The process for others is started once the stream has lasted a while,
since its start takes seconds, and only while the model still generates; it gets a task when it has started.
What is left when the stream ends is scored here. The process has ordinary priority from then on; where the
system does not allow that, or the task is small, what it has in hand is taken back: on a busy machine it
would be waited for while GPUs lie idle.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from medtasks_ext.atomic import checked
from medtasks_ext.runs.lease import Borrowed
from medtasks_ext.runs.manifest import Manifest, TaskEntry

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

#: Seconds that a stream must have lasted before a process is worth its start.
START_AFTER = 8.0
#: Of the time of the stream, what scoring here may take while the model generates, in the processor's time.
SHARE = 0.05
#: Seconds that a task may take here at most, and those that a document of a closed list takes, and a task.
_LONGEST, _OF_DOCUMENT, _OF_TASK = 1.0, 0.001, 0.05
#: How far the process steps back behind the engine and all else.
NICE = 10
#: What the process says when it can score.
_READY = b"ready\n"


class Scorer:
    """Scores tasks of a run one after the other, in a process of its own and, at the end, here.

    Args:
        here: scores a task in this process.
        alone: never start a process.
        say: called with what the process prints, line by line: written straight to the terminal, it would
            go through the display of the run.
    """

    def __init__(
        self,
        folder: Path,
        registry: Registry,
        here: Callable[[str], TaskEntry],
        *,
        alone: bool,
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._registry, self._here, self._alone = folder, registry, here, alone
        self._say = say
        self._waiting: deque[str] = deque()
        self._seconds: dict[str, float] = {}  # of the processor that a small task takes
        self._spent, self._ready = 0.0, False
        self._process: subprocess.Popen[bytes] | None = None
        self._in_hand: str | None = None
        self._began = time.monotonic()

    def submit(self, task: str, documents: int | None = None) -> None:
        """Have a task scored whose last answer is on the disk.

        Args:
            documents: of a task whose scoring takes next to nothing for each of them.
        """
        self._waiting.append(task)
        if documents is not None:
            self._seconds[task] = _OF_TASK + _OF_DOCUMENT * documents

    def poll(self, *, generates: bool = True) -> Iterator[tuple[str, TaskEntry]]:
        """The results that have come, and the next task for the process.

        Args:
            generates: whether the model still works; a process is not started where it does not.
        """
        if self._in_hand is not None and (entry := self._received(wait=False)) is not None:
            yield entry
        while generates and (task := self._small_one()):
            began = time.thread_time()
            yield task, self._here(task)
            self._spent += time.thread_time() - began
        if self._waiting and self._in_hand is None and self._worth_it(generates) and self._is_ready():
            self._give(self._waiting.popleft())

    def _small_one(self) -> str | None:
        """The next task that may be scored here beside the engine, taken from those that wait."""
        left = SHARE * (time.monotonic() - self._began) - self._spent
        for task in self._waiting:
            if self._seconds.get(task, math.inf) <= min(left, _LONGEST):
                self._waiting.remove(task)
                return task
        return None

    def drain(self) -> Iterator[tuple[str, TaskEntry]]:
        """Score what is left, here and in the process, and end it; the model does not work any more."""
        equal = self._process is not None and self._is_ready() and _ordinary_priority(self._process.pid)
        while self._waiting or self._in_hand is not None:
            if self._waiting:
                task = self._waiting.popleft()
                yield task, self._here(task)
                if equal:
                    yield from self.poll(generates=False)
            elif (entry := self._received(wait=equal and self._in_hand not in self._seconds)) is not None:
                yield entry
            elif self._in_hand is not None:
                self._lost(self._in_hand)
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()
            self._process.kill()  # what it wrote is whole, or is written again
            self._process.wait()
            self._process, self._ready = None, False

    def _worth_it(self, generates: bool) -> bool:
        late = time.monotonic() - self._began > START_AFTER
        if self._process is None and not self._alone and generates and late:
            folders = [self._folder, self._registry.root, *self._registry.own]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "medtasks_ext.runner.scoring", str(NICE), *map(str, folders)],
                bufsize=0,  # so that `select` sees all that has come
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            threading.Thread(target=self._hand_on, args=(self._process.stderr,), daemon=True).start()
        return self._process is not None

    def _hand_on(self, printed: IO[bytes]) -> None:
        for line in printed:
            self._say(line.decode(errors="replace").rstrip())

    def _give(self, task: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(f"{task}\n".encode())
            self._process.stdin.flush()
            self._in_hand = task
        except OSError:  # the process died; this one does its work at the end
            self._lost(task)

    def _lost(self, task: str) -> None:
        self._waiting.appendleft(task)
        self._alone, self._in_hand = True, None
        self.close()

    def _has_said(self) -> bool:
        assert self._process is not None and self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def _is_ready(self) -> bool:
        """Whether the process has started, or has died."""
        assert self._process is not None and self._process.stdout is not None
        if not self._ready and self._has_said():
            self._process.stdout.readline()
            self._ready = True
        return self._ready

    def _received(self, *, wait: bool) -> tuple[str, TaskEntry] | None:
        assert self._process is not None and self._process.stdout is not None and self._in_hand is not None
        if not wait and not self._has_said():
            return None
        line, task = self._process.stdout.readline(), self._in_hand
        if not line:
            self._lost(task)
            return (task, self._here(self._waiting.popleft())) if wait else None
        self._in_hand = None
        return task, TaskEntry.model_validate_json(line)


def _ordinary_priority(pid: int) -> bool:
    """Give a process the priority of this one; whether the system allows it."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0))
    except OSError:  # without a privilege a process can be made nicer alone
        return False
    return True


def main(nice: str, folder: str, root: str, *own: str) -> None:
    """Score the tasks whose names come in, one a line, and say what became of each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run's own process decides
    with suppress(OSError):
        os.nice(int(nice))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    with redirect_stdout(sys.stderr):  # libraries print
        os.environ.setdefault("TQDM_DISABLE", "1")  # the run shows its own progress
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        # the run's end names what lacks data
        logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)
        from medtasks_ext.registry import Registry
        from medtasks_ext.runner.evaluate import build_task
        from medtasks_ext.runner.run import Run, failed

        run = Run(Path(folder), Registry(Path(root), tuple(map(Path, own))))
        answers.write(_READY)
        with checked(run.folder, Borrowed(run.folder).check):
            for line in sys.stdin:
                name = line.strip()
                run.manifest = Manifest.read(run.folder)
                try:
                    entry = run.finish_task(build_task(run.registry, name, run.settings_of(name)))
                except Exception as error:  # the next task may be sound
                    entry = failed(error)
                answers.write(json.dumps(entry.model_dump(mode="json")).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
