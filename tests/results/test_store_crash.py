"""An ingest may be killed at any moment: the store is then as it was, or as it was going to be."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from filelock import FileLock

from medtasks_ext.registry import registry
from medtasks_ext.results.store.ingest import ingest
from medtasks_ext.results.store.layout import is_store
from medtasks_ext.results.store.read import read_store

TASKS = ("mlb_cmexam", "bridge_mie_cot", "medhelm_hospice_referral")
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir")


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


def put(store, *folders, **options):
    return ingest(folders, store, registry(), **options)


def seen(store):
    """(model, task) -> metrics and documents as our reader finds them, nothing wrong; {} without a store."""
    found, faults = {}, []
    for entry in read_store(store, registry(), faults) if is_store(store) else []:
        for task, item in entry.experiments.items():
            documents = item.read_documents()
            found[entry.model, task] = item.metrics, documents.documents, documents.value
    assert faults == []
    return found


class Killed(BaseException):
    """Stands for the death of the process: from then on no operation on files succeeds."""


class Countdown:
    """Counts the operations that change files, and lets none happen from the n-th on."""

    def __init__(self):
        self.folder, self.count, self.last = None, 0, 0

    def __call__(self, event, arguments):
        if self.folder is None or event not in CHANGES:
            return
        if event == "open":
            path, _, flags = arguments
            if not (flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(self.folder)):
                return
        self.count += 1
        if self.count >= self.last:
            raise Killed

    def put(self, store, *folders, last=10**6):
        """Ingest, and die at the n-th operation; the number of operations if there were fewer."""
        self.folder, self.count, self.last = str(store), 0, last
        try:
            put(store, *folders)
        except Killed:
            return None
        finally:
            self.folder = None
        return self.count


@pytest.fixture(scope="module")
def countdown():
    hook = Countdown()
    sys.addaudithook(hook)  # stays as long as the process, and does nothing between two calls of `put`
    return hook


@pytest.mark.parametrize("first", [False, True], ids=["a run is replaced", "the store is new"])
def test_an_ingest_that_dies_leaves_the_old_or_the_new_and_can_be_repeated(runs, tmp_path, countdown, first):
    new, before, after = (runs / "later", runs / "other"), tmp_path / "before", tmp_path / "after"
    before.mkdir()
    if not first:
        put(before, runs / "earlier")
    shutil.copytree(before, after)
    operations = countdown.put(after, *new)
    old, expected, ends = seen(before), seen(after), []
    assert old != expected
    for last in range(1, operations + 1):
        store = shutil.copytree(before, tmp_path / f"{last}")
        assert countdown.put(store, *new, last=last) is None
        found = seen(store)
        assert found in (old, expected)
        ends.append(found == expected)
        put(store, *new)
        assert seen(store) == expected
        assert {item.name for item in store.iterdir()} == {item.name for item in after.iterdir()}
    assert ends[0] is False and ends[-1] is True and ends == sorted(ends)


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


def test_who_waits_for_another_ingest_is_told(runs, tmp_path):
    (tmp_path / "store").mkdir()
    lock = FileLock(tmp_path / "store" / ".lock")
    lock.acquire()
    [item], _ = put(tmp_path / "store", runs / "other", waiting=lock.release)
    assert item.state == "new" and not lock.is_locked
