"""What a run warns of, which causes and rules end it, and that the same command goes on."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from medtasks_ext.engines import Answer, Fault, FaultKind
from medtasks_ext.runner.tally import IN_A_ROW, STOP_AFTER, Trouble
from tests.conftest import read_json, sft_row
from tests.run_files import results_of

TASKS = ("bridge_chip_ctc_5shot", "bridge_chip_ctc_cot", "bridge_chip_ctc")
TASK = TASKS[2]
N = 30
REASON = "CUDA error: device-side assert"


def gold(request: Any, number: int) -> str | None:
    return f"Result: {request.doc['target']}" if request.doc["cot"] else request.doc["target"]


@register_model("troubled")
class Troubled(LM):
    """Says what a test sets, of a request and its place in the call; where that is None, the call fails."""

    says: ClassVar[Callable[[Any, int], str | None]] = staticmethod(gold)
    asked: ClassVar[list[tuple[str, str]]] = []
    tokenizer_name = "troubled"

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        answers = []
        for number, request in enumerate(requests):
            if (text := self.says(request, number)) is None:
                raise RuntimeError(REASON)
            self.asked.append((request.task_name, request.doc["id"]))
            answers.append(text)
            self.cache_hook.add_partial("generate_until", request.args, text)
        return answers

    loglikelihood = loglikelihood_rolling = None


@pytest.fixture
def model(monkeypatch, chip_ctc):
    """Set what the model says; three tasks of some documents are at hand."""

    def says(what: Callable[[Any, int], str | None] = gold, n: int = N) -> None:
        rows = [sft_row(i, f"入组标准第{i}条", "clinical trial criterion: 年龄") for i in range(n)]
        (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows))
        monkeypatch.setattr(Troubled, "says", staticmethod(what))
        monkeypatch.setattr(Troubled, "asked", [])

    return says


def fails(*tasks: str, after: int = 0) -> Callable[[Any, int], str | None]:
    return lambda request, number: (
        None if request.task_name in tasks and number >= after else gold(request, number)
    )


def command(*tasks: str) -> list[str]:
    names = ",".join(tasks or TASKS)
    return ["run", "--model", "troubled", "--tasks", names, "--output_path", "run", "--no-preflight"]


def asked() -> Counter[str]:
    return Counter(task for task, _ in Troubled.asked)


def scores() -> dict[str, float]:
    return {name: item["score,answer"] for name, item in results_of("run")["results"].items()}


def test_a_cause_that_fails_all_requests_stops_the_run_and_the_same_command_continues(medtasks, model):
    model()
    medtasks.done(*command(TASKS[0]))
    model(fails(*TASKS))
    outcome = medtasks(*command())
    assert outcome.code == 1 and "Traceback" not in outcome.text
    assert f"✗ stopped (engine): no request gets an answer: {REASON}\n  → mend what the" in outcome.err
    assert "the same command continues" in outcome.err
    # what was finished keeps its score, and stands in the table
    rows = {line.split()[0]: line.split()[1] for line in outcome.out.splitlines() if "chip_ctc" in line}
    assert rows == {TASKS[0]: "1.0000", TASKS[1]: "–", TASKS[2]: "–"}
    assert scores() == {TASKS[0]: 1.0}

    model()
    typed = outcome.err.partition("next:")[2].strip().splitlines()[0]
    assert shlex.split(typed) == ["medtasks", *command()]
    medtasks.done(*shlex.split(typed)[1:])
    assert scores() == dict.fromkeys(TASKS, 1.0) and asked() == dict.fromkeys(TASKS[1:], N)


@pytest.mark.parametrize(("bad", "after"), [(TASKS[0], 0), (TASKS[1], 5), (TASKS[2], 5)])
def test_one_failing_task_does_not_stop_the_others(medtasks, model, tmp_path, bad, after):
    model(fails(bad, after=after))
    outcome = medtasks(*command())
    assert outcome.code == 1 and "stopped" not in outcome.err
    assert f"✗ {bad}: {REASON} ({N - after} requests without an answer)" in outcome.err
    states = {name: entry["state"] for name, entry in read_json(tmp_path / "run/run.json")["tasks"].items()}
    assert states == {name: "incomplete" if name == bad else "done" for name in TASKS}
    assert scores() == {name: 1.0 for name in TASKS if name != bad}

    model()
    medtasks.done(*command())
    assert asked() == {bad: N - after} and scores() == dict.fromkeys(TASKS, 1.0)


def test_most_answers_without_worth_are_said_at_once_and_at_the_end_and_kept(
    medtasks, model, tmp_path, monkeypatch
):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    model(lambda request, number: gold(request, number) if number < 5 else "入组标准 is what I say")
    outcome = medtasks.done(*command(TASK))
    start, end = outcome.err.split(f"[1/1] {TASK}: done, score ")
    said = f"! {TASK}: 15 of 20 answers cannot be read: they may have another form than is asked for"
    note = f"most answers cannot be read in {TASK}"
    assert said in start and f"note: {note}" in end and "入组标准" not in outcome.text
    assert read_json(tmp_path / "run/run.json")["notes"] == [note]
    assert note in medtasks("report", "run").out


def test_a_rule_pauses_a_run_and_the_command_without_it_goes_on(medtasks, model):
    def babbles(request, number):
        time.sleep(0.02 * (number > STOP_AFTER))  # slowly enough to be stopped
        return "(babble)"

    model(babbles, n=300)
    outcome = medtasks(*command(*TASKS[1:]), "--stop-if", "unreadable>50%")
    n_asked = len(Troubled.asked)
    assert outcome.code == 1 and STOP_AFTER <= n_asked < 600, outcome.err
    [why] = [line for line in outcome.err.splitlines() if line.startswith("✗ stopped (--stop-if): ")]
    n, of = map(int, re.findall(r"(\d+) of (\d+) answers that were looked at cannot be read", why)[0])
    assert n == of and STOP_AFTER <= of <= n_asked and TASK in why
    typed = shlex.split(outcome.err.partition("next:")[2].strip().splitlines()[0])
    assert typed == ["medtasks", *command(*TASKS[1:])]

    Troubled.says = staticmethod(lambda request, number: "(babble)")
    medtasks.done(*typed[1:])
    assert len(Troubled.asked) == len({*Troubled.asked}) == 600


@pytest.mark.parametrize("rule", ["unreadable", "unreadable>100%", "wrong>5%"])
def test_what_is_no_rule_is_named_before_anything_is_asked(medtasks, model, rule):
    model()
    outcome = medtasks(*command(), f"--stop-if={rule}")
    assert outcome.code == 2 and "--stop-if" in outcome.err and "unreadable>50%" in outcome.err
    assert not Troubled.asked


def seen(*outcomes: tuple[str, Answer | Fault], n_tasks: int = 3) -> list[bool]:
    trouble = Trouble(n_tasks)
    return [trouble.see(task, outcome) for task, outcome in outcomes]


@pytest.mark.parametrize("kind", [FaultKind.KEY, FaultKind.MONEY, FaultKind.MODEL])
def test_a_cause_that_no_request_escapes_ends_at_once_even_after_answers(kind):
    assert seen(("a", Answer("yes")), ("a", Fault(kind, "no"))) == [False, True]


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.TIMEOUT, FaultKind.BUSY])
def test_a_server_that_is_gone_ends_the_run_even_after_answers(kind):
    found = seen(("a", Answer("yes")), *[("a", Fault(kind, "no"))] * IN_A_ROW)
    assert found == [False] * IN_A_ROW + [True]
    between = [*[("a", Fault(kind, "no"))] * (IN_A_ROW - 1), ("a", Answer("yes"))]
    assert not any(seen(*between, *between))


@pytest.mark.parametrize("kind", [FaultKind.REFUSED, FaultKind.ENGINE, FaultKind.TOO_LONG])
def test_a_cause_that_may_lie_in_the_requests_must_fail_two_tasks_and_answer_none(kind):
    of_a = [("a", Fault(kind, f"asked for {i} tokens")) for i in range(2 * IN_A_ROW)]  # one cause
    of_b = ("b", Fault(kind, "asked for 7 tokens"))
    assert not any(seen(*of_a))
    assert seen(*of_a, of_b)[-1]
    assert not any(seen(("a", Answer("yes")), *of_a, of_b))
    assert not any(seen(*of_a, ("b", Fault(kind, "another reason"))))
    assert seen(*of_a, n_tasks=1)[IN_A_ROW - 1]
