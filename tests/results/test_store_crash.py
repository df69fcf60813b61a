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
from medtasks_ext.results.reading import read_runs
from medtasks_ext.results.store.ingest import ingest
from medtasks_ext.results.store.read import read_store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of this process")
TASKS = ("mlb_cmexam", "bridge_mie_cot")
RANDOM_KILLS = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run before and after it went on, and two more."""
    from medtasks_ext.cli.run import run_command

    folder = tmp_path_factory.mktemp("runs")
    arguments = ["--model", "random-label", "--data", "sample", "--tasks", ",".join(TASKS)]
    assert run_command([*arguments, "--output_path", str(folder / "later")]) == 0
    for name in ("earlier", "other", "next"):
        shutil.copytree(folder / "later", folder / name)
        file = folder / name / "run.json"
        manifest = json.loads(file.read_text())
        if name == "earlier":
            manifest["tasks"]["bridge_mie_cot"] = {"state": "waiting"}
        else:
            manifest["identity"]["model"]["model_args"] = {"pretrained": f"org/{name}"}
        file.write_text(json.dumps(manifest))
    return folder


def put(store, *folders):
    return ingest(folders, store, registry())


def seen(store):
    """Model -> task -> score and documents, as our reader finds them; nothing may be wrong."""
    faults = []
    found = {
        entry.model: {
            task: (item.metrics, list(item.read_documents().documents), item.read_documents().value)
            for task, item in entry.experiments.items()
        }
        for entry in read_store(store, registry(), faults)
    }
    assert faults == []
    return found


def counted(store):
    """Model and task -> rows of documents, as readers of the files alone find them."""
    table = ds.dataset(str(store / "documents"), partitioning="hive").to_table(columns=["model", "task"])
    rows = table.group_by(["model", "task"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["model"], row["task"]): row["count_all"] for row in rows}


@pytest.fixture(scope="module")
def states(runs, tmp_path_factory):
    """The store before an ingest that replaces one run and adds another; what is seen before and after."""
    folder = tmp_path_factory.mktemp("stores")
    put(folder / "before", runs / "earlier", runs / "other")
    shutil.copytree(folder / "before", folder / "after")
    put(folder / "after", runs / "later", runs / "next")
    return folder / "before", [
        (seen(store), counted(store)) for store in (folder / "before", folder / "after")
    ]


def killed_at(store, folders, operation):
    """Ingest in a copy of this process that kills itself at its n-th operation; False if it survived."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    try:
        left = operation

        def count(event, arguments):
            nonlocal left
            if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.fsync") or (
                event == "open" and str(arguments[0]).startswith(str(store))
            ):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sync = os.fsync
        os.fsync = lambda descriptor: (count("os.fsync", ()), sync(descriptor))
        sys.addaudithook(count)
        put(store, *folders)
    finally:
        os._exit(0)


def check_and_complete(store, states, folders):
    """After a kill: nothing lost, nothing half; the next ingest makes it whole."""
    (before, rows_before), (after, rows_after) = states
    for place, n in counted(store).items():  # before anyone mends anything
        assert n in (rows_before.get(place), rows_after.get(place))
    for place in rows_before:
        assert place in counted(store)
    assert seen(store) in (before, after)
    put(store, *folders)
    assert seen(store) == after and counted(store) == rows_after
    assert not [path for path in store.iterdir() if path.name in ("_staging", "_journal.json")]


def test_an_ingest_killed_at_any_operation_on_files_leaves_the_store_whole(runs, states, tmp_path):
    before, expected = states
    folders = (runs / "later", runs / "next")
    operation, survived = 0, False
    while not survived:
        operation += 1
        store = shutil.copytree(before, tmp_path / f"{operation}")
        survived = not killed_at(store, folders, operation)
        check_and_complete(store, expected, folders)
        shutil.rmtree(store)
    assert operation > 60


def test_the_first_ingest_killed_at_any_operation_leaves_a_place_for_the_next(runs, tmp_path):
    operation, survived = 0, False
    while not survived:
        operation += 3
        store = tmp_path / f"{operation}"
        survived = not killed_at(store, [runs / "later"], operation)
        put(store, runs / "later")
        assert set(seen(store)) == {"random-label"}
    assert operation > 30


def test_an_ingest_killed_at_random_moments_leaves_the_store_whole(runs, states, tmp_path):
    before, expected = states
    folders = (runs / "later", runs / "next")
    store = shutil.copytree(before, tmp_path / "timed")
    began = time.perf_counter()
    put(store, *folders)
    longest, rng = 1.5 * (time.perf_counter() - began), random.Random(0)
    for number in range(RANDOM_KILLS):
        store = shutil.copytree(before, tmp_path / f"{number}")
        child = os.fork()
        if not child:
            try:
                put(store, *folders)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_and_complete(store, expected, folders)


def test_the_completion_of_a_killed_ingest_may_be_killed_too(runs, states, tmp_path):
    before, expected = states
    folders = (runs / "later", runs / "next")
    store = shutil.copytree(before, tmp_path / "store")
    operation = 1
    while not (store / "_journal.json").exists():  # just past the moment at which the change has happened
        shutil.rmtree(store)
        shutil.copytree(before, store)
        assert killed_at(store, folders, operation)
        operation += 1
    operation = 1
    while killed_at(store, [runs / "other"], operation):
        operation += 1
    assert operation > 10 and seen(store) == expected[1][0]


def test_ingests_at_the_same_time_wait_for_each_other(runs, tmp_path):
    store, names = tmp_path / "store", ("later", "other", "next")
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "medtasks_ext", "ingest", runs / name, "--store", store],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for name in names
    ]
    assert [process.wait() for process in processes] == [0, 0, 0], [item.stderr.read() for item in processes]
    assert seen(store).keys() == {read_runs(runs / name, registry(), [])[0].model for name in names}
    assert not (store / "_staging").exists()
