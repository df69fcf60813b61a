"""An ingest may be killed at any moment: the store is then as it was, or as it was going to be."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.dataset as ds
import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.store.ingest import ingest
from medtasks_ext.results.store.read import read_store

TASKS = ("mlb_cmexam", "bridge_mie_cot", "medhelm_hospice_referral")
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "fsync")
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of this process")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, `later` with one more task and one less than `earlier`, and another run."""
    from medtasks_ext.cli.run import run_command

    folder = tmp_path_factory.mktemp("runs")
    arguments = ["--model", "random-label", "--data", "sample", "--tasks", ",".join(TASKS)]
    assert run_command([*arguments, "--output_path", str(folder / "whole")]) == 0
    for name, missing in (("earlier", TASKS[2]), ("later", TASKS[1]), ("other", TASKS[0])):
        shutil.copytree(folder / "whole", folder / name)
        manifest = json.loads((folder / name / "run.json").read_text())
        manifest["tasks"][missing] = {"state": "waiting"}
        if name == "other":
            manifest["identity"]["model"]["model_args"] = {"pretrained": "org/other"}
        (folder / name / "run.json").write_text(json.dumps(manifest))
    return folder


def put(store, *folders):
    return ingest(folders, store, registry())


def seen(store):
    """Model -> task -> metrics and documents, as our reader finds them; nothing may be wrong."""
    faults = []
    found = {}
    for entry in read_store(store, registry(), faults):
        for task, item in entry.experiments.items():
            documents = item.read_documents()
            found[entry.model, task] = item.metrics, documents.documents, documents.value
    assert faults == []
    return found


def counted(store):
    """Model and task -> rows of documents, as readers of the files alone find them."""
    table = ds.dataset(str(store / "documents"), partitioning="hive").to_table(columns=["model", "task"])
    rows = table.group_by(["model", "task"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["model"], row["task"]): row["count_all"] for row in rows}


@pytest.fixture(scope="module")
def states(runs, tmp_path_factory):
    """The store before `later` is put in, and what is seen of it before and after."""
    folder = tmp_path_factory.mktemp("stores")
    put(folder / "before", runs / "earlier", runs / "other")
    shutil.copytree(folder / "before", folder / "after")
    put(folder / "after", runs / "later")
    both = [folder / "before", folder / "after"]
    return both[0], [(seen(store), counted(store)) for store in both]


class Killed(BaseException):
    """Stands for the death of the process: from then on no operation on files succeeds."""


class Countdown:
    """Strikes just before the n-th operation that changes files, flushing them included."""

    def __init__(self):
        self.left, self.store, self.strike, self._sync = 0, "", None, os.fsync

    def __call__(self, event, arguments):
        if self.strike is None or event not in CHANGES:
            return
        if event == "open":
            path, _, flags = arguments
            if not (flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(self.store)):
                return
        self.left -= 1
        if self.left <= 0:
            self.strike()

    def fsync(self, descriptor):
        self("fsync", ())
        self._sync(descriptor)


countdown = Countdown()


@pytest.fixture
def watched(monkeypatch):
    """Operations on files are counted."""
    if not getattr(sys, "_medtasks_countdown", None):
        sys._medtasks_countdown = True
        sys.addaudithook(countdown)  # hooks stay as long as the process
    monkeypatch.setattr(os, "fsync", countdown.fsync)
    yield
    countdown.strike = None


def die_at(operation, store, folder):
    """Ingest, and die at the n-th operation; False if there were fewer."""

    def strike():
        raise Killed

    countdown.left, countdown.store, countdown.strike = operation, str(store), strike
    try:
        put(store, folder)
    except Killed:
        return True
    finally:
        countdown.strike = None
    return False


def kill_at(operation, store, folder):
    """The same with a copy of this process that is really killed."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    try:
        countdown.left, countdown.store = operation, str(store)
        countdown.strike = lambda: os.kill(os.getpid(), signal.SIGKILL)
        put(store, folder)
    finally:
        os._exit(0)


def check_and_complete(store, states, folder):
    """After a kill: nothing lost, nothing half; the next ingest makes it whole."""
    (before, rows_before), (after, rows_after) = states
    found = counted(store)  # by other readers, before anyone mends anything
    assert found.items() <= {*rows_before.items(), *rows_after.items()}
    assert found.keys() >= rows_before.keys() & rows_after.keys()
    assert seen(store) in (before, after)
    put(store, folder)
    assert seen(store) == after and counted(store) == rows_after
    assert not (store / "_staging").exists() and not (store / "_journal.json").exists()


def test_an_ingest_that_dies_at_any_operation_leaves_the_store_whole(runs, states, tmp_path, watched):
    before, expected = states
    operation, died = 0, True
    while died:
        operation += 1
        store = shutil.copytree(before, tmp_path / f"{operation}")
        died = die_at(operation, store, runs / "later")
        check_and_complete(store, expected, runs / "later")
    assert operation > 60


@can_fork
def test_an_ingest_that_is_really_killed_leaves_the_store_whole(runs, states, tmp_path, watched):
    before, expected = states
    operation, killed = 0, True
    while killed:
        operation += 3
        store = shutil.copytree(before, tmp_path / f"{operation}")
        killed = kill_at(operation, store, runs / "later")
        check_and_complete(store, expected, runs / "later")
    assert operation > 60


@can_fork
def test_an_ingest_that_is_killed_at_random_moments_leaves_the_store_whole(runs, states, tmp_path):
    before, expected = states
    store = shutil.copytree(before, tmp_path / "timed")
    began = time.perf_counter()
    put(store, runs / "later")
    longest, rng = time.perf_counter() - began, random.Random(0)
    for number in range(20):
        store = shutil.copytree(before, tmp_path / f"{number}")
        child = os.fork()
        if not child:
            try:
                put(store, runs / "later")
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_and_complete(store, expected, runs / "later")


def test_its_completion_may_die_as_often_as_it_likes(runs, states, tmp_path, watched):
    before, expected = states
    store, operation = tmp_path / "store", 0
    while not (store / "_journal.json").exists():  # just past the moment at which the change has happened
        operation += 1
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(before, store)
        assert die_at(operation, store, runs / "later")
    operation = 0
    while die_at(operation := operation + 1, store, runs / "other"):
        pass
    assert operation > 10 and seen(store) == expected[1][0]


def test_the_first_ingest_that_dies_leaves_a_place_for_the_next(runs, tmp_path, watched):
    operation, died = 0, True
    while died:
        operation += 4
        store = tmp_path / f"{operation}"
        died = die_at(operation, store, runs / "later")
        put(store, runs / "later")
        assert len(seen(store)) == 2
    assert operation > 40


def test_ingests_at_the_same_time_wait_for_each_other(runs, tmp_path):
    store, names = tmp_path / "store", ("earlier", "other", "later")
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "medtasks_ext", "ingest", runs / name, "--store", store],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for name in names
    ]
    assert [process.wait() for process in processes] == [0, 0, 0], [item.stderr.read() for item in processes]
    assert {model for model, _ in seen(store)} == {"random-label", "org/other"}
    assert not (store / "_staging").exists()
