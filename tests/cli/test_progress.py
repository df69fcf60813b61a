"""Progress of a run: a bar on a terminal, plain lines elsewhere, an honest time that is left."""

import io

import pytest

from medtasks_ext.cli import progress as module
from medtasks_ext.cli.progress import Progress, duration
from medtasks_ext.engines import Answer, Request


def answers(progress: Progress, n: int) -> None:
    """That many answers arrive."""
    for number in range(n):
        request = Request(f"{number}", "bridge_mie", f"{number}", "Question", {})
        progress.answered(request, Answer("text"))


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""

    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_time_left_follows_from_what_this_process_did(clock):
    with Progress(2, 1000) as progress:
        assert progress.seconds_left() is None
        progress.stored("bridge_mie", 600)  # stored by an earlier call, in no time
        assert progress.seconds_left() is None
        clock.now = 50
        answers(progress, 100)
        assert progress.seconds_left() == 150
        clock.now = 90  # the next batch is under way: nothing is known of it
        assert progress.seconds_left() == 150
        answers(progress, 300)
        assert progress.seconds_left() == 0


def test_a_pipe_gets_a_plain_line_per_task(clock, capsys):
    with Progress(2, 20) as progress:
        clock.now = 30
        for _ in range(10):
            answers(progress, 1)
        progress.say_task("bridge_mie", "done")
        clock.now = 60
        answers(progress, 10)
        progress.say_task("bridge_mie_cot", "failed: [red] hung up")
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] bridge_mie: done (30 s, about 30 s left)",
        "[2/2] bridge_mie_cot: failed: [red] hung up (60 s)",
    ]


def test_a_long_task_is_heard_of_now_and_then(clock, capsys):
    with Progress(1, 10_000) as progress:
        for minute in range(1, 61):
            clock.now = 60 * minute
            answers(progress, 100)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 6
    assert lines[0] == "1,001 of 10,000 responses (11 min, about 1 h 39 min left)"


def test_a_terminal_gets_a_bar(clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(1, 40) as progress:
        progress.stored("bridge_mie", 20)
        clock.now = 10
        answers(progress, 10)
        progress.say_task("bridge_mie", "done")
    shown = screen.getvalue()
    assert "30/40" in shown and "about 10 s left" in shown and "[1/1] bridge_mie: done (10 s" in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (95, "2 min"), (3600, "60 min"), (5400, "1 h 30 min"), (200_000, "2 d 8 h")],
)
def test_a_time_is_written_in_two_units_at_most(seconds, words):
    assert duration(seconds) == words
