"""Progress of a run: a live display on a terminal, plain lines elsewhere, honest figures on both."""

import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console, ConsoleDimensions

from medtasks_ext.cli import progress as module
from medtasks_ext.cli.progress import Progress, left_words, view
from medtasks_ext.cli.words import duration
from medtasks_ext.engines import Answer, Fault, FaultKind, Request, Usage
from medtasks_ext.run.charge import Budget
from medtasks_ext.runner import tally as tally_module
from medtasks_ext.runner.tally import Alarms, Tally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

MIE, COT = "bridge_mie", "bridge_mie_cot"


def request(task: str = MIE, budget: int = 512) -> Request:
    return Request("key", task, "1", "Question", {"max_gen_toks": budget}, row={"id": "1"})


def answers(progress: Progress | Tally, n: int, task: str = MIE, answer: Answer | None = None) -> None:
    for _ in range(n):
        progress.ended(request(task), answer or Answer("text"))


class Reader:
    """Reads what says `yes`, and counts how often it is asked."""

    def __init__(self, clock: Any = None, seconds: float = 0.0) -> None:
        self.asked, self._clock, self._seconds = 0, clock, seconds

    def valid(self, row: Any, text: str) -> bool:
        self.asked += 1
        if self._clock:
            self._clock.now += self._seconds
        return "yes" in text


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0
        strftime = staticmethod(time.strftime)
        localtime = staticmethod(time.gmtime)

        def monotonic(self) -> float:
            return self.now

        def time(self) -> float:
            return self.now

    clock = Clock()
    for place in (module, tally_module):
        monkeypatch.setattr(place, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Put a terminal in place of standard error, within the test."""

    def make(kind: str = "xterm") -> Terminal:
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setenv("TERM", kind)
        return screen

    return make


def lines(tally: Tally, width: int = 80, height: int = 24, alarms: Alarms | None = None) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(view(tally, alarms, ConsoleDimensions(width, height)))
    return console.export_text().splitlines()


def test_the_time_left_follows_from_what_this_process_did(clock):
    tally = Tally({MIE: 1000})
    assert tally.seconds_left() is None
    tally.stored(MIE, 600)  # stored by an earlier call, in no time
    assert tally.seconds_left() is None
    clock.now = 50
    answers(tally, 100)
    assert tally.seconds_left() == 150
    clock.now = 90  # the next batch is under way: nothing is known of it
    assert tally.seconds_left() == 150
    answers(tally, 300)
    assert tally.seconds_left() == 0


def test_the_time_left_follows_from_the_last_minutes_where_answers_become_shorter(clock):
    tally = Tally({MIE: 100_000})
    for clock.now in range(10, 3601, 10):  # an hour with an answer a second
        answers(tally, 10)
    for clock.now in range(3610, 4801, 10):  # 20 minutes with 10 a second
        answers(tally, 100)
    assert tally.seconds_left() == pytest.approx((100_000 - 15_600) / 10, rel=0.05)


def test_speed_is_said_for_now_and_since_the_start_and_silence_as_such(clock):
    tally = Tally({MIE: 1000})
    counted = Answer("text", usage=Usage(90, 10))
    assert tally.speed() is None
    for clock.now in range(10, 601, 10):
        answers(tally, 1, answer=counted)  # 10 tokens a second
    for clock.now in range(610, 671, 10):
        answers(tally, 10, answer=counted)  # 100
    assert module.speed_words(tally.speed()) == "100 tokens/s (19 since the start)"
    clock.now += 600
    assert module.speed_words(tally.speed()) == "no answer for 10 min; 10 tokens/s since the start"
    assert "tokens/s" in "".join(lines(tally))
    answers(tally, 1000 - tally.done)
    assert "/s" not in "".join(lines(tally)), "what is left is scoring"


def test_answers_are_counted_where_nobody_counts_tokens(clock):
    tally = Tally({MIE: 1000})
    clock.now = 10
    answers(tally, 32)
    assert module.speed_words(tally.speed()) == "3.2 answers/s (3.2 since the start)"
    clock.now = 640
    assert module.speed_words(tally.speed()) == "no answer for 10 min; 3.0 answers/min since the start"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.0, ""),
        (7200, "about 2 h 0 min left, until 02:00"),
        (80_000, "about 22 h 13 min left, until Thu 22:13"),
        (864_000, "about 10 d 0 h left, until 11 Jan"),
    ],
)
def test_the_end_is_said_as_a_time_of_day(clock, seconds, words):
    assert left_words(seconds, clock=True) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (95, "2 min"), (3600, "60 min"), (5400, "1 h 30 min"), (200_000, "2 d 8 h")],
)
def test_a_time_is_written_in_two_units_at_most(seconds, words):
    assert duration(seconds) == words


def test_what_it_costs_follows_from_counted_tokens_and_unknown_replies_are_the_most_they_can_be(clock):
    budget = Budget(spent=7.0, unsure=3.0)  # by earlier calls
    tally = Tally({MIE: 100}, budget=budget)
    answers(tally, 4, answer=Answer("text", usage=Usage(100_000, 10_000), cost=0.35))
    budget.settle(2.0, spent=1.4)
    assert module.money_words(tally) == "1.40 USD in this call"
    tally.ended(request(), Fault(FaultKind.TIMEOUT, "no reply in 60 s", tries=3, maybe_paid=3))
    budget.settle(0.02, unsure=0.02)
    tally.ended(request(), Fault(FaultKind.REFUSED, "no"))
    tally.stored(MIE, 0, unsure=0.25)  # sent by an earlier call that was killed
    assert module.money_words(tally) == (
        "1.40 USD in this call, and up to 0.27 for requests whose reply never came"
    )
    answers(tally, 1, answer=Answer("text", cost=0.5))
    budget.settle(0.5, spent=0.5)
    assert "1.90 USD in this call, with the highest cost of 1 answer whose" in module.money_words(tally)
    assert module.money_words(Tally({MIE: 1})) == ""


def test_faults_are_counted_with_the_most_frequent_reason():
    tally = Tally({MIE: 100})
    assert module.fault_words(tally) == ""
    tally.ended(request(), Fault(FaultKind.TIMEOUT, "no reply in 60 s"))
    assert module.fault_words(tally) == "1 request without an answer: no reply in 60 s"
    for _ in range(2):
        tally.ended(request(), Fault(FaultKind.BUSY, "HTTP 503\nand more"))
    assert module.fault_words(tally) == "3 requests without an answer, mostly (2): HTTP 503"


def test_the_first_hundred_answers_are_read_then_one_in_ten(clock):
    reader = Reader()
    tally = Tally({MIE: 2000, COT: 10}, {MIE: reader})
    clock.now = 1000
    answers(tally, 60, answer=Answer("yes"))
    answers(tally, 1000)
    answers(tally, 5, COT)  # nothing reads these
    assert reader.asked == 100 + 96
    assert module.readable_words([tally.tasks[MIE]]) == "31% of 196 readable"
    assert module.readable_words([tally.tasks[COT]]) == ""


def test_reading_takes_a_small_share_of_the_time_but_for_the_first_answers(clock):
    slow = Reader(clock, 0.1)
    tally = Tally({MIE: 2000}, {MIE: slow})
    for _ in range(1000):
        clock.now += 0.001
        answers(tally, 1)
    assert slow.asked <= 25
    clock.now += 1000
    answers(tally, 100)
    assert slow.asked >= 30


def test_a_reader_that_fails_does_not_end_the_run(clock):
    class Broken:
        def valid(self, row: Any, text: str) -> bool:
            raise ValueError

    tally = Tally({MIE: 10}, {MIE: Broken()})  # type: ignore[dict-item]
    answers(tally, 10)
    assert tally.tasks[MIE].answers == 10 and tally.tasks[MIE].read == 0


def test_a_pipe_gets_a_plain_line_per_task(clock, capsys):
    with Progress(Tally({MIE: 10, COT: 10}), score=lambda task: "score 0.5000") as progress:
        clock.now = 30
        answers(progress, 10)
        progress.finished(MIE, TaskEntry(state=TaskState.DONE))
        clock.now = 60
        answers(progress, 10, COT)
        progress.finished(COT, TaskEntry(state=TaskState.FAILED, error="[red] hung up"))
    assert capsys.readouterr().err.splitlines() == [
        f"[1/2] {MIE}: done, score 0.5000 (30 s, about 30 s left)",
        f"[2/2] {COT}: failed: [red] hung up (60 s)",
    ]


def test_a_long_task_is_heard_of_now_and_then_with_the_same_figures(clock, capsys):
    budget = Budget()
    tally = Tally({MIE: 10_000, COT: 10}, {MIE: Reader()}, budget)
    with Progress(tally) as progress:
        progress.began(MIE)
        progress.ended(request(), Fault(FaultKind.BUSY, "HTTP 503", maybe_paid=1))
        budget.settle(0.002, unsure=0.002)
        for minute in range(1, 61):
            clock.now = 60 * minute
            budget.settle(0.1, spent=0.1)
            answers(progress, 100, answer=Answer("yes", usage=Usage(900, 100), cost=0.001))
            progress.remind()
    said = capsys.readouterr().err
    assert 4 <= len(said.splitlines()) <= 6 and "\r" not in said and "\x1b" not in said
    assert said.splitlines()[0] == (
        "1,101 of 10,010 responses (11 min, about 89 min left); 1,667 tokens/s (1,667 since the start); "
        "1.10 USD in this call, and up to 0.00 for requests whose reply never came; "
        "1 request without an answer: HTTP 503; bridge_mie 1,101/10,000, 100% of 200 readable"
    )


def test_many_tasks_under_way_are_not_all_named_in_a_log(clock, capsys):
    names = [f"bridge_{n}" for n in range(9)]
    with Progress(Tally(dict.fromkeys(names, 10))) as progress:
        for name in reversed(names):
            progress.began(name)
        clock.now = 1000
        progress.remind()
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("bridge_8 0/10; bridge_7 0/10; bridge_6 0/10; 6 more tasks under way")


def test_a_log_hears_of_a_server_that_does_not_answer(monkeypatch, capsys):
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.05)
    with Progress(Tally({MIE: 10})):
        while not (said := capsys.readouterr().err):
            time.sleep(0.01)
    assert said.splitlines()[0] == "0 of 10 responses (0 s); no answer yet"


@pytest.mark.parametrize("kind", ["pipe", "dumb"])
def test_variables_of_ci_systems_and_dumb_terminals_make_no_terminal(monkeypatch, capsys, terminal, kind):
    monkeypatch.setenv("FORCE_COLOR", "1")
    screen = terminal(kind) if kind == "dumb" else None
    with Progress(Tally({MIE: 1})) as progress:
        progress.finished(MIE, TaskEntry(state=TaskState.DONE))
    assert (screen.getvalue() if screen else capsys.readouterr().err) == f"[1/1] {MIE}: done (0 s)\n"


def test_finished_tasks_scroll_by_above_the_display(clock, terminal):
    screen = terminal()
    with Progress(Tally({MIE: 20, COT: 20}), score=lambda task: "score 0.5000") as progress:
        progress.stored(MIE, 10)
        progress.began(MIE)
        clock.now = 10
        answers(progress, 10)
        progress.finished(MIE, TaskEntry(state=TaskState.DONE))
    shown = screen.getvalue()
    assert f"[1/2] {MIE}: done, score 0.5000 (10 s)\n" in shown
    assert "20/40  50%  10 s" in shown and "1 of 2 tasks done, 1 not begun" in shown
    assert "about 20 s left, until" in shown


def test_no_figures_stand_below_a_line_that_says_more(monkeypatch, clock, terminal):
    screen = terminal()
    monkeypatch.setattr(f"{Progress.__module__}._DRAW_SECONDS", 1e9)  # no drawing between
    with Progress(Tally({MIE: 20})) as progress:
        answers(progress, 20)
        progress.finished(MIE, TaskEntry(state=TaskState.DONE))
    assert "0 of 1 task done" not in screen.getvalue().partition(f"[1/1] {MIE}: done")[2]


def test_a_signal_may_speak_while_figures_are_counted(clock, terminal):
    screen = terminal()
    with Progress(Tally({MIE: 20})) as progress:
        counted = progress.tally.stored
        progress.tally.stored = lambda *of: (counted(*of), progress.say("waiting"))
        progress.stored(MIE, 10)
    assert "waiting\n" in screen.getvalue() and "10/20  50%" in screen.getvalue()


@contextmanager
def busy(clock, n_tasks: int = 20) -> Iterator[Tally]:
    """A run in full swing: a task is done, eleven are under way, faults, costs."""
    long = [f"clinicbench_hospitalization_summarization_{n}_5shot" for n in range(n_tasks)]
    readers = {name: Reader() for name in long}
    tally = Tally(dict.fromkeys(long, 12_345), readers, Budget())
    for name in long[:12]:
        tally.began(name)
    clock.now = 3600
    for name in long[1:11]:
        answers(tally, 500, name, Answer("yes", usage=Usage(2000, 200)))
    tally.finished(long[0])
    tally.ended(request(long[2]), Fault(FaultKind.BUSY, "HTTP 503: " + "overloaded " * 30, maybe_paid=1))
    yield tally


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_broken_or_longer_than_the_terminal(clock, width):
    with busy(clock) as tally:
        shown = lines(tally, width)
    assert all(len(line.rstrip()) <= width for line in shown)
    assert len(shown) == 8 + 5
    counts = [re.search(r"\d[\d,]*/12,345", line) for line in shown[:7]]
    assert all(counts) and len({found.end() for found in counts if found}) == 1  # in one column
    assert all("…" in line or width > 80 for line in shown[:7])


def test_at_most_eight_lines_of_tasks_the_rest_summed(clock):
    with busy(clock) as tally:
        shown = lines(tally, 120)
    assert shown[0].split()[0] == "clinicbench_hospitalization_summarization_1_5shot"
    assert shown[7].startswith("and 4 more tasks") and "1,500/49,380" in shown[7]
    assert "1 of 20 tasks done, 11 under way, 8 not begun" in shown[9]
    assert "5,001/246,900" in shown[8] and "2%" in shown[8]
    assert "100% of 140 readable" in shown[0]  # 100 and every tenth of 400


def test_the_ends_of_long_names_stay_since_they_say_the_strategy(clock):
    with busy(clock) as tally:
        assert all("_5shot " in line for line in lines(tally, 80)[:7])


def test_a_low_terminal_gets_fewer_lines(clock):
    with busy(clock) as tally:
        assert len(lines(tally, 80, 14)) == 2 + 5


def test_tasks_left_behind_stay_on_top(clock):
    tally = Tally({"a": 10, "b": 10, "c": 10})
    for name in "bca":
        tally.began(name)
    assert [line.split()[0] for line in lines(tally)[:3]] == ["b", "c", "a"]
    answers(tally, 10, "c")
    assert [line.split()[0] for line in lines(tally)[:2]] == ["b", "a"]
    assert "0 of 3 tasks done, 2 under way, 1 to be scored" in "\n".join(lines(tally))


CUT, EMPTY, BAD = Answer("hm " * 9, "length"), Answer(" \n", "stop"), Answer("no", "stop")


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


def test_reasoning_without_end_is_thought_of_where_answers_were_cut(capsys):
    progress, _ = watched(MIE)
    answers(progress, 20, answer=BAD)
    assert "reasoning" not in said(progress, capsys)[0]
    progress, _ = watched(MIE)
    answers(progress, 5, answer=CUT)
    answers(progress, 15, answer=BAD)
    assert "reasoning never ends (--gen_kwargs max_gen_toks=16384)" in said(progress, capsys)[0]


def test_half_of_the_answers_is_not_most(capsys):
    progress, _ = watched(MIE)
    for _ in range(20):
        answers(progress, 1, answer=Answer("yes", "stop"))
        answers(progress, 1, answer=BAD)
    assert said(progress, capsys) == []
    answers(progress, 1, answer=BAD)
    assert len(said(progress, capsys)) == 1


def test_a_small_task_is_judged_when_all_its_answers_are_there(capsys):
    progress, _ = watched(MIE, asked=5)
    answers(progress, 4, answer=BAD)
    assert said(progress, capsys) == []
    progress.ended(request(), Fault(FaultKind.BUSY, "HTTP 503"))
    assert said(progress, capsys)[0].startswith(f"! {MIE}: 4 of 4 answers cannot be read")


def test_of_many_tasks_the_first_few_are_named_at_once_and_the_worst_at_the_end(capsys):
    names = [f"bridge_{n}" for n in range(17)]
    progress, alarms = watched(*names, asked=40)
    for place, name in enumerate(names):
        answers(progress, 20, name, BAD)
        answers(progress, place, name, Answer("yes"))
        progress.finished(name, TaskEntry(state=TaskState.DONE))
    shown = said(progress, capsys)
    assert [line.split()[1] for line in shown] == [f"bridge_{n}:" for n in range(4)]
    assert "medtasks preview" in shown[0] and all(line.endswith("cannot be read, too") for line in shown[1:3])
    assert "further tasks are counted" in shown[3]
    assert alarms.notes() == ["most answers cannot be read in bridge_0, bridge_1, bridge_2 and 14 more tasks"]
    assert module.alarm_words(alarms) == "most answers cannot be read in 17 tasks"


def test_what_was_a_bad_beginning_alone_is_no_note(capsys):
    progress, alarms = watched(MIE)
    answers(progress, 20, answer=EMPTY)
    assert alarms.notes() == []  # the task has not ended
    answers(progress, 80, answer=Answer("yes"))
    progress.finished(MIE, TaskEntry(state=TaskState.DONE))
    assert len(said(progress, capsys)) == 1 and alarms.notes() == []


def test_an_empty_answer_that_was_cut_is_explained_by_the_cut(capsys):
    progress, alarms = watched(MIE)
    answers(progress, 60, answer=Answer("", "length"))
    assert len(said(progress, capsys)) == 1 and list(alarms.counts()) == ["are truncated at the token limit"]
