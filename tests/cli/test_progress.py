"""Progress of a run: a live display on a terminal, plain lines elsewhere, honest figures on both."""

import io
import time
from typing import Any

import pytest
from rich.console import Console, ConsoleDimensions

from medtasks_ext.cli import progress as module
from medtasks_ext.cli.progress import Progress, view
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


class Reader:
    """Reads what says `yes`, and counts how often it is asked."""

    asked = 0

    def valid(self, row: Any, text: str) -> bool:
        self.asked += 1
        return "yes" in text


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
    budget = Budget(spent=7.0, unsure=3.0)  # by earlier calls
    tally = Tally({MIE: 100}, budget=budget)
    answers(tally, 4, answer=Answer("text", usage=Usage(100_000, 10_000), cost=0.35))
    budget.settle(2.0, spent=1.4)
    tally.ended(request(), Fault(FaultKind.TIMEOUT, "no reply in 60 s", tries=3, maybe_paid=3))
    budget.settle(0.02, unsure=0.02)
    tally.stored(MIE, 0, unsure=0.25)  # sent by an earlier call that was killed
    unsure = "and up to 0.27 for requests whose reply never came"
    assert module.money_words(tally) == f"1.40 USD in this call, {unsure}"
    answers(tally, 1, answer=Answer("text", cost=0.5))
    budget.settle(0.5, spent=0.5)
    assert "1.90 USD in this call, with the highest cost of 1 answer whose" in module.money_words(tally)


def test_the_first_hundred_answers_are_read_then_one_in_ten_in_a_small_share_of_the_time(clock):
    class Slow(Reader):
        def valid(self, row: Any, text: str) -> bool:
            clock.now += 0.1
            return super().valid(row, text)

    quick, slow = Reader(), Slow()
    tally = Tally({MIE: 2000, COT: 2000}, {MIE: quick, COT: slow})
    answers(tally, 1000, COT)
    assert slow.asked <= 25
    clock.now = 1000
    answers(tally, 60, answer=Answer("yes"))
    answers(tally, 1000)
    assert quick.asked == 100 + 96
    assert module.readable_words([tally.tasks[MIE]]) == "31% of 196 readable"


def test_a_pipe_gets_a_plain_line_per_task_and_hears_of_long_ones(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # CI systems set it
    budget = Budget()
    tally = Tally({MIE: 10, COT: 10_000}, {COT: Reader()}, budget)
    with Progress(tally, score=lambda task: "score 0.5000") as progress:
        clock.now = 30
        answers(progress, 10)
        progress.finished(MIE, DONE)
        progress.ended(request(COT), Fault(FaultKind.BUSY, "HTTP 503\nand more", maybe_paid=1))
        budget.settle(0.1, spent=0.1)
        clock.now = 660
        answers(progress, 999, COT, Answer("yes", usage=Usage(90, 10)))
        progress.remind()
        progress.finished(COT, TaskEntry(state=TaskState.FAILED, error="[red] hung up"))
    assert capsys.readouterr().err.splitlines() == [
        f"[1/2] {MIE}: done, score 0.5000 (30 s, about 8 h 20 min left)",
        "1,010 of 10,010 responses (11 min, about 1 h 35 min left); 159 tokens/s; 0.10 USD in this call, "
        "with the highest cost of 10 answers whose tokens nobody counts; 1 request without an answer: "
        f"HTTP 503; {COT} 1,000/10,000, 100% of 189 readable",
        f"[2/2] {COT}: failed: [red] hung up (11 min, about 1 h 35 min left)",
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
        progress.began(MIE)
        clock.now = 10
        answers(progress, 10)
        progress.finished(MIE, DONE)
    shown = screen.getvalue()
    assert "waiting\n" in shown and f"[1/2] {MIE}: done, score 0.5000 (10 s)\n" in shown
    assert "20/40  50%  10 s" in shown and "1 of 2 tasks done" in shown and "about 20 s left" in shown


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_display_fits_the_terminal_and_sums_what_has_no_line(clock, width):
    names = [f"clinicbench_hospitalization_summarization_{n}_5shot" for n in range(20)]
    tally = Tally(dict.fromkeys(names, 12_345), {name: Reader() for name in names}, Budget())
    for name in names[:12]:
        tally.began(name)
    clock.now = 3600
    for name in names[1:11]:
        answers(tally, 500, name, Answer("yes", usage=Usage(2000, 200)))
    tally.finished(names[0])
    tally.ended(request(names[2]), Fault(FaultKind.BUSY, "HTTP 503: " + "overloaded " * 30, maybe_paid=1))
    for height, most in ((24, 8), (14, 2)):
        console = Console(width=width, height=height, record=True, file=io.StringIO())
        console.print(view(tally, None, ConsoleDimensions(width, height)))
        shown = console.export_text().splitlines()
        assert all(len(line.rstrip()) <= width for line in shown) and len(shown) == most + 1 + 6
        assert all("500/12,345" in line for line in shown[:1]) and "1 of 20 tasks done" in shown[most + 2]
        assert shown[most].startswith(f"and {11 - most} more")


def said(progress: Progress, capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("!")]


def watched(*names: str, asked: int = 100, chat_template: bool = True) -> tuple[Progress, Alarms]:
    alarms = Alarms(chat_template=chat_template)
    readers: dict[str, Any] = {name: Reader() for name in names}
    return Progress(Tally(dict.fromkeys(names, asked), readers), alarms=alarms), alarms


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (CUT, ["answers are truncated at the token limit of 512: ", "max_gen_toks=16384", "chat template"]),
        (EMPTY, ["answers are empty", "chat template", "max_gen_toks=16384"]),
        (BAD, ["answers cannot be read", f"`medtasks preview {MIE}`", "another form"]),
    ],
)
def test_answers_worth_nothing_are_said_once_with_a_remedy(capsys, answer, words):
    progress, _ = watched(MIE)
    answers(progress, 19, answer=answer)
    assert said(progress, capsys) == []
    answers(progress, 40, answer=answer)
    (line,) = said(progress, capsys)
    assert line.startswith(f"! {MIE}: 20 of 20 answers ") and all(word in line for word in words)
    progress, _ = watched(MIE, chat_template=False)
    answers(progress, 30, answer=answer)
    assert "--apply_chat_template" in said(progress, capsys)[0]


def test_half_of_the_answers_is_not_most(capsys):
    progress, _ = watched(MIE)
    for _ in range(20):
        answers(progress, 1, answer=Answer("yes", "stop"))
        answers(progress, 1, answer=BAD)
    assert said(progress, capsys) == []
    answers(progress, 1, answer=BAD)
    assert len(said(progress, capsys)) == 1


def test_of_many_tasks_the_first_few_are_named_at_once_and_the_worst_at_the_end(capsys):
    names = [f"bridge_{n}" for n in range(17)]
    progress, alarms = watched(*names, asked=40)
    for place, name in enumerate(names):
        answers(progress, 20, name, BAD)
        answers(progress, place, name, Answer("yes"))
        progress.finished(name, DONE)
    shown = said(progress, capsys)
    assert [line.split()[1] for line in shown] == [f"bridge_{n}:" for n in range(4)]
    assert "further tasks are counted" in shown[3]
    assert alarms.notes() == ["most answers cannot be read in bridge_0, bridge_1, bridge_2 and 14 more tasks"]
