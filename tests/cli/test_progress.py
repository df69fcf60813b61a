"""Progress of a run: a live display on a terminal, plain lines elsewhere, honest figures on both."""

import io
import time
from typing import Any

import pytest

from medtasks_ext.cli import progress as module
from medtasks_ext.cli.progress import Progress
from medtasks_ext.engines import Answer, Fault, FaultKind, Request, Usage
from medtasks_ext.run.charge import Budget
from medtasks_ext.runner import tally as tally_module
from medtasks_ext.runner.tally import Alarms, Tally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

MIE, COT = "bridge_mie", "bridge_mie_cot"
DONE = TaskEntry(state=TaskState.DONE)
CUT, EMPTY, BAD = Answer("hm " * 9, "length"), Answer(" \n", "stop"), Answer("no", "stop")


def request(task: str = MIE) -> Request:
    return Request("key", task, "1", "Question", {"max_gen_toks": 512}, row={"id": "1"})


def answers(progress: Progress | Tally, n: int, task: str = MIE, answer: Answer | None = None) -> None:
    for _ in range(n):
        progress.ended(request(task), answer or Answer("text"))


def reader(row: Any, text: str) -> Any:
    """Reads what says `yes`."""
    return {"valid": "yes" in text}


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    for place in (module, tally_module):
        monkeypatch.setattr(place, "time", clock)
    return clock


def test_the_time_left_follows_from_what_this_process_did_in_the_last_minutes(clock):
    tally = Tally({MIE: 100_000})
    tally.stored(MIE, 600)  # by an earlier call, in no time
    assert tally.seconds_left() is None
    for clock.now in range(10, 3601, 10):  # an hour with an answer a second
        answers(tally, 10)
    for clock.now in range(3610, 4801, 10):  # 20 minutes with 10 a second
        answers(tally, 100)
    left = (100_000 - 600 - 15_600) / 10
    assert tally.seconds_left() == pytest.approx(left, rel=0.05)
    clock.now += 60  # the next batch is under way: nothing is known of it
    assert tally.seconds_left() == pytest.approx(left, rel=0.05)


def test_what_it_costs_follows_from_counted_tokens_and_unknown_replies_are_the_most_they_can_be(clock):
    budget = Budget(None, [7.0], 3.0)  # by earlier calls
    tally = Tally({MIE: 100}, budget=budget)
    answers(tally, 4, answer=Answer("text", usage=Usage(100_000, 10_000), cost=0.35))
    budget.spent += 1.4
    tally.ended(request(), Fault(FaultKind.TIMEOUT, "no reply in 60 s", tries=3, maybe_paid=3))
    budget.unsure += 0.02
    unsure = "and up to 3.02 for requests whose reply never came"
    assert module.money_words(tally) == f"1.40 USD in this call, {unsure}"
    answers(tally, 1, answer=Answer("text", cost=0.5))
    budget.spent += 0.5
    assert "1.90 USD in this call, with the highest cost of 1 answer whose" in module.money_words(tally)


def test_a_pipe_gets_a_plain_line_per_task_and_hears_of_long_ones(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # CI systems set it
    budget = Budget()
    tally = Tally({MIE: 10, COT: 10_000}, {COT: reader}, budget)
    with Progress(tally, score=lambda task: "score 0.5000") as progress:
        clock.now = 30
        answers(progress, 10)
        progress.finished(MIE, DONE)
        progress.ended(request(COT), Fault(FaultKind.BUSY, "HTTP 503\nand more", maybe_paid=1))
        budget.spent += 0.1
        clock.now = 660
        answers(progress, 999, COT, Answer("yes", usage=Usage(90, 10)))
        progress.remind()
        progress.finished(COT, TaskEntry(state=TaskState.FAILED, error="[red] hung up"))
    assert capsys.readouterr().err.splitlines() == [
        f"[1/2] {MIE}: done, score 0.5000 (30 s, about 8 h 20 min left)",
        "1,010 of 10,010 responses (11 min, about 1 h 38 min left); 151 tokens/s; 0.10 USD in this call, "
        "with the highest cost of 10 answers whose tokens nobody counts; 1 request without an answer: "
        f"HTTP 503; {COT} 1,000/10,000, 100% of 144 readable",
        f"[2/2] {COT}: failed: [red] hung up (11 min, about 1 h 38 min left)",
    ]


def test_a_log_hears_of_a_server_that_does_not_answer(capsys):
    with Progress(Tally({MIE: 10}), every=0.05):
        while not (said := capsys.readouterr().err):
            time.sleep(0.01)
    assert said.splitlines()[0] == "0 of 10 responses (0 s); no answer yet"


def test_on_a_terminal_finished_tasks_scroll_by_above_the_display_and_a_signal_may_speak(clock, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(Tally({MIE: 20, COT: 20}), score=lambda task: "score 0.5000") as progress:
        counted = progress.tally.stored
        progress.tally.stored = lambda *of: (counted(*of), progress.say("waiting"))
        progress.stored(MIE, 10)
        clock.now = 10
        answers(progress, 10)
        progress.finished(MIE, DONE)
        while "20 of 40 responses (10 s, about 20 s left); 1.0 answers/s" not in (shown := screen.getvalue()):
            time.sleep(0.01)
    assert "waiting\n" in shown and f"[1/2] {MIE}: done, score 0.5000 (10 s, about 20 s left)\n" in shown


def said(progress: Progress, capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("!")]


def watched(chat_template: bool) -> Progress:
    return Progress(Tally({MIE: 100}, {MIE: reader}), alarms=Alarms(chat_template=chat_template))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (CUT, ["answers are truncated at the token limit of 512: ", "max_gen_toks=16384", "chat template"]),
        (EMPTY, ["answers are empty", "chat template", "max_gen_toks=16384"]),
        (BAD, ["answers cannot be read", f"`medtasks preview {MIE}`", "another form"]),
    ],
)
def test_answers_worth_nothing_are_said_once_with_a_remedy(capsys, answer, words):
    progress = watched(chat_template=True)
    answers(progress, 19, answer=answer)
    assert said(progress, capsys) == []
    answers(progress, 40, answer=answer)
    (line,) = said(progress, capsys)
    assert line.startswith(f"! {MIE}: 20 of 20 answers ") and all(word in line for word in words)
    progress = watched(chat_template=False)
    answers(progress, 30, answer=answer)
    assert "--apply_chat_template" in said(progress, capsys)[0]
