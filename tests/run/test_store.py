"""The file of outcomes: what is whole is used, what is torn is asked again, and the disk may fail."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.engines import Answer, Fault, FaultKind, Likelihood, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.lock import DEAD, NAME, FolderLock, _place
from medtasks_ext.run.store import Answers

TEXTS = st.text(st.characters(), max_size=30)
COUNTS = st.integers(0, 9)
ANSWERS = st.builds(
    Answer,
    text=TEXTS,
    finish=st.sampled_from(["", "stop", "length"]),
    usage=st.none() | st.builds(Usage, COUNTS, COUNTS, cached=st.none() | COUNTS),
    reasoning=TEXTS,
    model=TEXTS,
    seconds=st.none() | st.floats(0, 9),
    likelihoods=st.lists(st.builds(Likelihood, st.floats(-9, 0), st.booleans()), max_size=2).map(tuple),
)  # fmt: skip
FAULTS = st.builds(Fault, st.sampled_from(FaultKind), TEXTS, tries=st.integers(0, 5))


def key(number: int) -> str:
    return f"{number:032x}"


def stored(folder: Path, *outcomes: Answer | Fault, name: str = "") -> None:
    answers = Answers(folder, name=name)
    for number, outcome in enumerate(outcomes):
        answers.put(key(number), outcome, "task", str(number))
    answers.close()


@given(st.lists(ANSWERS | FAULTS, max_size=8))
def test_what_is_put_comes_back_and_faults_are_no_answers(tmp_path_factory, outcomes) -> None:
    folder = tmp_path_factory.mktemp("run")
    stored(folder, *outcomes)
    known = Answers(folder, write=False).known(map(key, range(len(outcomes))))
    assert known == {key(n): outcome for n, outcome in enumerate(outcomes) if isinstance(outcome, Answer)}
    assert len(list(Answers(folder, write=False).rows())) == len(outcomes)


def said(content: bytes) -> list[dict]:
    """The lines without the time at which they were written."""
    rows = map(json.loads, content.splitlines())
    return [{name: value for name, value in row.items() if name not in ("at", "hash")} for row in rows]


@given(st.lists(ANSWERS, min_size=1, max_size=4), st.floats(0, 1))
def test_a_torn_end_costs_only_its_own_request(tmp_path_factory, outcomes, share) -> None:
    folder = tmp_path_factory.mktemp("run")
    stored(folder, *outcomes)
    path = folder / "answers.jsonl"
    whole = path.read_bytes()
    cut = int(share * len(whole))  # a share, because a line holds the time and its length differs
    path.write_bytes(whole[:cut])
    n = whole[:cut].count(b"\n")
    again = Answers(folder)
    assert again.known(map(key, range(len(outcomes)))) == {key(i): outcomes[i] for i in range(n)}
    for number in range(n, len(outcomes)):
        again.put(key(number), outcomes[number], "task", str(number))
    again.close()
    assert said(path.read_bytes()) == said(whole)
    assert not again.damaged


def test_a_damaged_line_is_named_and_the_rest_is_used(tmp_path: Path) -> None:
    stored(tmp_path, *(Answer(f"text {n}") for n in range(5)))
    path = tmp_path / "answers.jsonl"
    path.write_bytes(path.read_bytes().replace(b"text 2", b"text 7"))
    answers = Answers(tmp_path, write=False)
    assert answers.damaged == ["answers.jsonl, line 3"]
    assert sorted(answers.known(map(key, range(5)))) == [key(n) for n in (0, 1, 3, 4)]


def test_of_one_key_the_first_answer_counts(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    for outcome in (Fault(FaultKind.BUSY, "later"), Answer("first"), Answer("second")):
        answers.put(key(0), outcome, "task", "0")
    assert answers.known([key(0)]) == {key(0): Answer("first")}
    answers.flush()
    answers.put(key(0), Answer("third"), "task", "0")
    answers.close()
    assert [row["outcome"] for row in answers.rows()] == ["fault", "answer"]


def test_files_of_two_machines_are_joined_by_copying(tmp_path: Path) -> None:
    stored(tmp_path / "one", Answer("a"))
    stored(tmp_path / "two", Answer("a"), Answer("b"), name="two")
    shutil.copy(tmp_path / "two/answers-two.jsonl", tmp_path / "one")
    assert Answers(tmp_path / "one", write=False).known([key(0), key(1)]) == {
        key(0): Answer("a"),
        key(1): Answer("b"),
    }


def test_a_full_disk_is_said_and_what_came_is_written_once_there_is_room(tmp_path: Path, monkeypatch) -> None:
    answers, write, room = Answers(tmp_path), os.write, [40]

    def written(file: int, content: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n = write(file, content[: room[0]])
        room[0] -= n
        return n

    monkeypatch.setattr("medtasks_ext.run.store.os.write", written)
    answers.put(key(0), Answer("a"), "task", "0")
    with pytest.raises(MedtasksError, match="No space left"):
        answers.flush()
    assert answers.known([key(0)]) == {key(0): Answer("a")}, "what cannot be written is kept in memory"
    assert (tmp_path / "answers.jsonl").stat().st_size == 0, "no half line stays"
    room[0] = 10_000
    answers.close()
    assert Answers(tmp_path, write=False).known([key(0)]) == {key(0): Answer("a")}


def test_a_slow_disk_holds_up_nobody_who_looks_up_or_puts(tmp_path: Path, monkeypatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        begun.set()
        assert go_on.wait(60)

    answers = Answers(tmp_path)
    monkeypatch.setattr("medtasks_ext.run.store.os.fsync", slow)
    answers.put(key(0), Answer("a"), "task", "0")
    assert begun.wait(60), "it is written without a call"
    answers.put(key(1), Answer("b"), "task", "1")
    assert answers.known([key(0), key(1)]) == {key(0): Answer("a"), key(1): Answer("b")}
    go_on.set()
    answers.close()


def test_a_reader_needs_no_right_to_write_and_sees_what_is_there(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.put(key(0), Answer("a"), "task", "0")
    answers.flush()
    before = sorted(tmp_path.iterdir())
    assert Answers(tmp_path, write=False).known([key(0)]) == {key(0): Answer("a")}
    assert sorted(tmp_path.iterdir()) == before
    answers.close()


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    stored(tmp_path / "run", Answer("a"))
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "run/answers.jsonl").stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------------- who may write


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    with pytest.raises(MedtasksError, match=f"process {os.getpid()} on {socket.gethostname()}"):
        FolderLock(tmp_path)
    first.release()
    FolderLock(tmp_path).release()


def test_the_lock_of_a_killed_process_is_taken(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from medtasks_ext.run.lock import FolderLock;"
        "FolderLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "held\n"
    with pytest.raises(MedtasksError, match=f"process {child.pid} "):
        FolderLock(tmp_path)
    child.kill()
    child.wait()
    FolderLock(tmp_path).release()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lives", [True, False])
def test_a_holder_on_another_host_lives_as_long_as_it_touches_the_file(
    tmp_path: Path, lives: bool, monkeypatch
) -> None:
    path, slept = tmp_path / NAME, [0.0]
    path.write_text(json.dumps({"host": "elsewhere", "process": 7, "started": "", "token": "t"}))

    def sleep(seconds: float) -> None:
        slept[0] += seconds
        if lives and slept[0] == DEAD / 2:
            os.utime(path, (time.time(), time.time() + slept[0]))

    monkeypatch.setattr(time, "sleep", sleep)
    if lives:
        with pytest.raises(MedtasksError, match="process 7 on elsewhere"):
            FolderLock(tmp_path)
    else:
        FolderLock(tmp_path).release()
        assert slept[0] == DEAD


def test_who_stood_still_writes_nothing_over_its_successor(tmp_path: Path, monkeypatch) -> None:
    answers = Answers(tmp_path)
    monkeypatch.setattr("medtasks_ext.run.lock.TOUCH", 0)
    (tmp_path / NAME).write_text("{}")
    answers.put(key(0), Answer("a"), "task", "0")
    with pytest.raises(MedtasksError, match="another process writes to this folder by now"):
        answers.flush()
    assert not (tmp_path / "answers.jsonl").read_bytes()


@pytest.mark.parametrize("n", [8])
def test_of_many_that_find_a_dead_holder_one_writes(tmp_path: Path, n: int) -> None:
    (tmp_path / NAME).write_text(
        json.dumps({"place": _place(), "process": 2**22 + 1, "started": "", "token": "t"})
    )
    held: list[FolderLock] = []
    refused: list[MedtasksError] = []

    def take() -> None:
        try:
            held.append(FolderLock(tmp_path))
        except MedtasksError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, n - 1)
