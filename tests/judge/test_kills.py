"""Judges on one folder, killed again and again: nothing is judged twice, and the limit of money holds."""
# ruff: noqa: F811

import signal

import pytest

from tests.conftest import wait_for
from tests.judge.conftest import judgements
from tests.judge.made import make_rows, rows
from tests.judge.processes import process
from tests.judge.server import Reply, fair
from tests.judge.test_record import HIGHEST, REPLY, priced  # noqa: F401  a fixture

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
