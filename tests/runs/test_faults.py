"""A fault at every operation on files: what a command had finished stays, and the same command finishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks_ext.cli.run import run_command
from medtasks_ext.runs.folder import state_of
from tests.conftest import outcomes
from tests.run_files import results_of
from tests.runs.faults import at_every_operation, fresh

pytestmark = pytest.mark.nightly

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "random-label", "--data", "sample", "--limit", "3", "--tasks", TASK, "--output_path")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run; made here, so that forked processes find all loaded."""
    folder = tmp_path_factory.mktemp("made")
    assert run_command([*RUN[1:], str(folder / "run")]) == 0
    return folder


def metrics(run: Path) -> dict:
    return results_of(run)["results"]


def result_of(run: Path) -> list[str]:
    return [row["key"] for row in outcomes(run, TASK)]


def test_run(made, tmp_path):
    place = tmp_path / "run"

    def check(said: str) -> None:
        keys = result_of(place)
        assert len(keys) == len(set(keys)) == 3, said
        assert metrics(place) == metrics(made / "run") and state_of(place).mark == "", said

    at_every_operation([*RUN, str(place)], place, lambda: fresh(place), check)


def test_rescore(made, tmp_path):
    place = tmp_path / "run"

    def check(said: str) -> None:
        assert metrics(place) == metrics(made / "run") and state_of(place).mark == "", said

    at_every_operation(["rescore", str(place)], place, lambda: fresh(place, made / "run"), check)
