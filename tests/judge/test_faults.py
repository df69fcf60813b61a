"""A fault at every operation of a jury on files and sockets: nothing is judged twice or missing."""

import shutil

import pytest

from medtasks_ext.runs.folder import state_of
from tests.judge.conftest import judgements
from tests.runs.faults import at_every_operation, fresh


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
