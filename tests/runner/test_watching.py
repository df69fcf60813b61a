"""What a run tells those who watch it, and what it warns of while it goes on."""

from __future__ import annotations

import json
import re
import shlex
import time
from typing import Any, ClassVar

import pytest
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from medtasks_ext.cli.progress import Progress
from medtasks_ext.engines import Answer, Fault
from medtasks_ext.models import Oracle
from medtasks_ext.runner.tally import STOP_AFTER
from tests.conftest import sft_row

TASK = "bridge_chip_ctc"
N = 30
RUN = ("run", "--tasks", TASK, "--output_path", "run", "--no-preflight")


@register_model("watched")
class Watched(LM):
    """Answers with the gold up to a place, then with another text, or not at all."""

    good: ClassVar[int] = N
    then: ClassVar[str | None] = None

    def __init__(self, **_: Any) -> None:
        super().__init__()

    tokenizer_name = "watched"

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            if len(answers) >= self.good and self.then is None:
                raise RuntimeError("hung up")
            answers.append(request.doc["target"] if len(answers) < self.good else self.then)
            self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers

    loglikelihood = loglikelihood_rolling = None


@pytest.fixture
def model(monkeypatch, chip_ctc):
    """Set what the model answers; a task with 30 documents is at hand."""
    rows = [sft_row(i, f"入组标准第{i}条", "clinical trial criterion: 年龄") for i in range(N)]
    (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows))

    def answers(good: int, then: str | None = None) -> None:
        monkeypatch.setattr(Watched, "good", good)
        monkeypatch.setattr(Watched, "then", then)

    return answers


def notes(tmp_path) -> list[str]:
    return json.loads((tmp_path / "run" / "run.json").read_text()).get("notes", [])


def test_what_was_answered_before_is_told_before_the_rest_is_asked(medtasks, model, monkeypatch):
    heard: list[tuple[Any, ...]] = []

    def hear(name: str) -> None:
        told = getattr(Progress, name)

        def listening(self, *arguments):
            outcomes = [type(item).__name__ for item in arguments if isinstance(item, Answer | Fault)]
            heard.append(
                (name, *outcomes, *(item for item in arguments if isinstance(item, str | int | float)))
            )
            told(self, *arguments)

        monkeypatch.setattr(Progress, name, listening)

    for name in ("began", "stored", "ended", "finished"):
        hear(name)
    model(good=12)
    assert medtasks(*RUN, "--model", "watched").code == 1
    assert heard.count(("ended", "Answer")) == 12 and heard.count(("ended", "Fault")) == N - 12
    heard.clear()
    model(good=N)
    assert medtasks(*RUN, "--model", "watched").code == 0
    before = heard[: heard.index(("ended", "Answer"))]
    assert sum(event[2] for event in before if event[0] == "stored") == 12
    assert [event for event in heard if event[0] == "began"] == [("began", TASK)]
    assert heard.count(("ended", "Answer")) == N - 12 and heard[-1] == ("finished", TASK)
    assert sum(event[2] for event in heard if event[0] == "stored") == 12


def test_most_answers_without_worth_are_said_at_once_and_at_the_end_and_kept(
    medtasks, model, tmp_path, monkeypatch
):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    model(good=5, then="入组标准 is what I say")
    outcome = medtasks(*RUN, "--model", "watched")
    assert outcome.code == 0
    start, end = outcome.err.split(f"[1/1] {TASK}: done, score ")
    assert (
        f"! {TASK}: 15 of 20 answers cannot be read: an instruct model needs --apply_chat_template" in start
    )
    assert notes(tmp_path) == [f"most answers cannot be read in {TASK}"]
    assert f"note: {notes(tmp_path)[0]}" in end
    assert "入组标准" not in outcome.text
    assert f"most answers cannot be read in {TASK}" in medtasks("report", "run").out


def test_empty_answers_are_said_as_such(medtasks, model, tmp_path):
    model(good=0, then="  ")
    assert f"! {TASK}: 20 of 20 answers are empty" in medtasks(*RUN, "--model", "watched").err
    assert notes(tmp_path) == [f"most answers are empty in {TASK}"]


def test_what_mends_itself_leaves_no_note(medtasks, model, tmp_path):
    model(good=N)
    outcome = medtasks(*RUN, "--model", "watched")
    assert "!" not in outcome.err and notes(tmp_path) == []


def test_models_without_weights_raise_no_alarm(medtasks, model, tmp_path, monkeypatch):
    monkeypatch.setattr(Oracle, "answer", lambda self, request, requests: "")
    outcome = medtasks(*RUN, "--model", "oracle")
    assert outcome.code == 0 and "!" not in outcome.err and notes(tmp_path) == []


# ---------------------------------------------------------------------- rules that end a run


@register_model("babbles")
class Babbles(LM):
    """Answers with a text that is no label, slowly enough to be stopped."""

    asked: ClassVar[list[str]] = []
    slow: ClassVar[bool] = True

    def __init__(self, **_: Any) -> None:
        super().__init__()

    tokenizer_name = "babbles"

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        self.asked.extend(request.args[0] for request in requests)
        for number, request in enumerate(requests):
            if self.slow and number > STOP_AFTER:
                time.sleep(0.02)
            self.cache_hook.add_partial("generate_until", request.args, "(babble)")
        return ["(babble)"] * len(requests)

    loglikelihood = loglikelihood_rolling = None


@pytest.fixture
def babbles(chip_ctc, monkeypatch):
    """The command of a run of 600 documents whose answers cannot be read."""
    rows = [sft_row(i, f"入组标准第{i}条", "clinical trial criterion: 年龄") for i in range(300)]
    (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows))
    monkeypatch.setattr(Babbles, "asked", [])
    monkeypatch.setattr(Babbles, "slow", True)
    both = f"{TASK},{TASK}_cot"
    return ("run", "--model", "babbles", "--tasks", both, "--output_path", "run", "--no-preflight")


def test_a_rule_pauses_a_run_and_the_command_without_it_goes_on(medtasks, babbles):
    outcome = medtasks(*babbles, "--stop-if", "unreadable>50%")
    asked = len(Babbles.asked)
    assert outcome.code == 1 and STOP_AFTER <= asked < 600, outcome.err
    [why] = [line for line in outcome.err.splitlines() if line.startswith("✗ stopped (--stop-if): ")]
    n, of = map(int, re.findall(r"(\d+) of (\d+) answers that were looked at cannot be read", why)[0])
    assert n == of and STOP_AFTER <= of <= asked and TASK in why
    typed = shlex.split(outcome.err.partition("next:")[2].strip().splitlines()[0])
    assert typed == ["medtasks", *babbles]

    Babbles.slow = False
    assert medtasks(*typed[1:]).code == 0
    assert len(Babbles.asked) == len(set(Babbles.asked)) == 600


def test_a_rule_that_is_not_met_changes_nothing(medtasks, babbles):
    Babbles.slow = False
    outcome = medtasks(*babbles, "--stop-if", "empty>0%", "--stop-if=cut>99.5 %")
    assert outcome.code == 0 and "--stop-if" not in outcome.err and len(Babbles.asked) == 600


@pytest.mark.parametrize(
    "rule", ["", "unreadable", "unreadable>100%", "wrong>5%", "unreadable<5%", "empty>-1%"]
)
def test_what_is_no_rule_is_named_before_anything_is_asked(medtasks, babbles, rule):
    outcome = medtasks(*babbles, f"--stop-if={rule}")
    assert outcome.code == 2 and "--stop-if" in outcome.err and "unreadable>50%" in outcome.err
    assert not Babbles.asked
