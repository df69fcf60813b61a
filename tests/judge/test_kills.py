"""Judges on one folder, killed again and again: nothing is judged twice, and the limit of money holds."""
# ruff: noqa: F811

import shutil
import signal

import pytest

from medtasks_ext.runs.folder import state_of
from tests.conftest import wait_for
from tests.judge.conftest import judgements
from tests.judge.made import make_rows, process, rows
from tests.judge.server import Reply, fair, verdict
from tests.judge.test_agreement import ANN, BEN, judged, rated, ratings_file  # noqa: F401  a fixture
from tests.judge.test_record import HIGHEST, REPLY, priced  # noqa: F401  a fixture
from tests.runs.changes import all_named, files_of, named
from tests.runs.faults import at_every_operation, fresh

N, KILLS = 30, 10


@pytest.mark.nightly
@pytest.mark.parametrize("n", [2, 4, 8])
def test_judges_killed_ten_times_stay_in_limits(
    run, priced, medtasks, metrics, server, data_dir, tasks, tmp_path, n
):
    make_rows(data_dir, "qa", rows(N))
    folder, path = run("qa"), priced("one", max_concurrent=1)
    command = ("run", "--jury", path, "--max-cost")
    limit = N * REPLY + KILLS * HIGHEST
    for number in range(KILLS):
        answered = len(server.asked) + 1

        def script(asked, seen, answered=answered):
            return fair(asked, seen) if len(server.asked) <= answered else Reply(delay=1000)

        server.script = script
        children = [process(*command, limit, cwd=tmp_path) for _ in range(n)]
        try:
            wait_for(lambda wanted=answered: len(server.asked) > wanted, _Any(children))
        finally:
            for child in children:
                child.send_signal(signal.SIGKILL)
            said = [child.communicate()[1] for child in children]
        others = [text for text, child in zip(said, children, strict=True) if child.returncode == 2]
        assert all("works in this folder" in text for text in others)
        assert len(server.asked) == 2 * (number + 1)
    server.script = fair
    # what was under way at a kill may have been charged: each counts with what it can cost at most
    open_now = len(judgements(folder, kind="intent")) - len(judgements(folder))
    assert open_now == KILLS and len(judgements(folder)) == KILLS
    short = KILLS * HIGHEST + KILLS * REPLY + HIGHEST
    assert medtasks("judge", *command, short).code == 1
    assert KILLS * HIGHEST + (len(server.asked) - KILLS) * REPLY <= short
    assert medtasks("judge", *command, limit + HIGHEST).code == 0
    assert len(server.asked) == N + KILLS and metrics(folder)["judged"] == 1
    keys = [item["key"] for item in judgements(folder)]
    assert len(keys) == len(set(keys)) == N


class _Any:
    """Several processes, of which one at least must live."""

    def __init__(self, children) -> None:
        self.children = children
        self.returncode = None

    def poll(self):
        return None if any(child.poll() is None for child in self.children) else 1


# A fault at every operation of a jury on files and sockets: nothing is judged twice or missing.


@pytest.mark.nightly
def test_judge(run, jury, medtasks, server, tmp_path):
    made, place = run("qa", folder="made"), tmp_path / "run"
    path = jury("one", "two")
    shutil.copytree(made, place)
    assert medtasks("judge", "--jury", path).code == 0  # so that forked processes find all loaded

    def check(said: str) -> None:
        keys = [item["key"] for item in judgements(place)]
        assert len(keys) == len(set(keys)) == 12, said
        assert state_of(place).mark == "", said

    at_every_operation(["judge", str(place), "--jury", str(path)], place, lambda: fresh(place, made), check)


# The hashes of a run that judges and clinicians rated, and whose texts went to a server.


def test_every_change_to_a_judged_and_rated_run_is_named(judged, tmp_path):
    folder, _ = judged()
    files = files_of(folder)
    wanted = {"judgements/answers.jsonl", "judgements/agreement.json"}
    assert wanted <= set(files)
    made = all_named(folder, tmp_path)
    assert set(files) <= made.keys() and sum(made.values()) >= 137


def test_judging_is_no_change_and_names_what_was_changed_before(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    folder = run("qa")
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert named(folder) == set()
    samples = next(folder.glob("samples_*.jsonl"))
    samples.write_text(samples.read_text() + "\n")
    again = medtasks("judge", "--jury", jury("one"))
    assert f"changed since the run ended: {samples.name}" in again.err
    assert named(folder) == {samples.name}
