"""Whatever sleeps, dies or jumps: nothing is asked twice beyond what was in flight, and no line is lost."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.runs import chain, lease, read_outcomes
from tests.runs.protocol import REQUESTS, STARTS, World, asked_twice

EVERY_DAY, NIGHTLY = 50, 1000  # schedules


def gone_through(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world after its schedule, all processes ended."""
    world = World(folder, seed)
    monkeypatch.setattr(chain, "check_of", world.check_of)
    monkeypatch.setattr(lease, "checked", lambda *_: nullcontext())  # each process has the folder for itself
    try:
        world.go()
    finally:
        world.end()
    return world


def faults(world: World) -> list[str]:
    """What does not hold: requests asked twice, lines that do not verify, answers that never came."""
    found = asked_twice(world)
    stored = [item.key for item in read_outcomes(world.folder / "responses", "task")]
    found += [f"{name}: no answer" for name in REQUESTS if name not in stored]
    return found


def check(seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[World]:
    worlds = []
    for seed in seeds:
        world = gone_through(tmp_path / str(seed), seed, monkeypatch)
        assert faults(world) == [], seed
        worlds.append(world)
    return worlds


def test_no_request_is_asked_twice_beyond_what_was_in_flight(tmp_path, monkeypatch):
    worlds = check(range(EVERY_DAY), tmp_path, monkeypatch)
    processes = [process for world in worlds for process in world.processes]
    said = " ".join(process.said for process in processes)
    assert len(processes) > EVERY_DAY * STARTS and any(process.killed for process in processes)
    for reached in ("works in this folder", "has taken the folder over", "another process has written there"):
        assert said.count(reached) > 5, reached


@pytest.mark.nightly
def test_a_thousand_schedules(tmp_path, monkeypatch):
    check(range(EVERY_DAY, EVERY_DAY + NIGHTLY), tmp_path, monkeypatch)


#: What the protocol stands on -> how a process does without it.
MISSING = {
    "a look at the lease before each write": (lease.Lease, "check", lambda self: None),
    "the size of a file before each write": (chain.ChainedFile, "_check_size", lambda self, size: None),
}


@pytest.mark.parametrize("missing", MISSING)
def test_the_schedules_find_what_is_missing(tmp_path, monkeypatch, missing):
    monkeypatch.setattr(*MISSING[missing])
    for seed in range(EVERY_DAY):
        try:
            if faults(gone_through(tmp_path / str(seed), seed, monkeypatch)):
                return
        except MedtasksError:  # a line does not verify
            return
    pytest.fail("no schedule finds it")
