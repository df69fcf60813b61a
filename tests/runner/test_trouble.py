"""A cause that fails every request ends a run; one bad task does not. The same command goes on."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from typing import Any, ClassVar

import pytest
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from medtasks_ext.engines import Answer, Fault, FaultKind
from medtasks_ext.runner.tally import IN_A_ROW, Trouble
from tests.conftest import sft_row
from tests.run_files import results_of

TASKS = ("bridge_chip_ctc_5shot", "bridge_chip_ctc_cot", "bridge_chip_ctc")
N = 30
REASON = "CUDA error: device-side assert"


@register_model("troubled")
class Troubled(LM):
    """Answers, but for the tasks that are named; `after` requests of these are answered before it fails."""

    failing: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[int] = 0
    asked: ClassVar[Counter[str]] = Counter()

    def __init__(self, **_: Any) -> None:
        super().__init__()

    tokenizer_name = "troubled"

    def apply_chat_template(self, chat_history, add_generation_prompt: bool = True) -> str:
        return "\n".join(turn["content"] for turn in chat_history)

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            if request.task_name in self.failing and len(answers) >= self.after:
                raise RuntimeError(REASON)
            self.asked[request.task_name] += 1
            answers.append(
                f"Result: {request.doc['target']}" if request.doc["cot"] else request.doc["target"]
            )
            self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers

    loglikelihood = loglikelihood_rolling = None


@pytest.fixture
def model(monkeypatch, chip_ctc):
    """Set for which tasks the model fails; three tasks of 30 documents are at hand."""
    rows = [sft_row(i, f"入组标准第{i}条", "clinical trial criterion: 年龄") for i in range(N)]
    (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows))

    def fails(*tasks: str, after: int = 0) -> None:
        monkeypatch.setattr(Troubled, "failing", tasks)
        monkeypatch.setattr(Troubled, "after", after)
        monkeypatch.setattr(Troubled, "asked", Counter())

    return fails


def command(tasks: str = ",".join(TASKS), *more: str) -> list[str]:
    return ["run", "--model", "troubled", "--tasks", tasks, "--output_path", "run", "--no-preflight", *more]


def manifest(tmp_path) -> dict[str, Any]:
    return json.loads((tmp_path / "run" / "run.json").read_text())


def states(tmp_path) -> dict[str, str]:
    return {name: entry["state"] for name, entry in manifest(tmp_path)["tasks"].items()}


def scores(tmp_path) -> dict[str, float]:
    results = results_of(tmp_path / "run")["results"]
    return {name: item["score,answer"] for name, item in results.items()}


def test_a_cause_that_fails_all_requests_stops_the_run_and_the_same_command_continues(
    medtasks, model, tmp_path
):
    model(*TASKS)
    outcome = medtasks(*command())
    assert outcome.code == 1 and "Traceback" not in outcome.text
    assert f"✗ stopped (engine): no request gets an answer: {REASON}\n  → mend what the" in outcome.err
    faults = [sum(entry.get("faults", {}).values()) for entry in manifest(tmp_path)["tasks"].values()]
    assert sorted(faults)[1:] == [N, N] and min(faults) <= 1  # the third is not asked
    assert "the same command continues" in outcome.err
    assert "0 of 3 tasks scored, 3 unfinished" in outcome.out

    model()
    typed = outcome.err.partition("next:")[2].strip().splitlines()[0]
    assert shlex.split(typed) == ["medtasks", *command()]
    assert medtasks(*shlex.split(typed)[1:]).code == 0
    assert scores(tmp_path) == dict.fromkeys(TASKS, 1.0)
    assert Troubled.asked == dict.fromkeys(TASKS, N)


@pytest.mark.parametrize("bad", TASKS)
@pytest.mark.parametrize("after", [0, 5])
def test_one_failing_task_does_not_stop_the_others(medtasks, model, tmp_path, bad, after):
    model(bad, after=after)
    outcome = medtasks(*command())
    assert outcome.code == 1 and "stopped" not in outcome.err
    assert f"✗ {bad}: {REASON} ({N - after} requests without an answer)" in outcome.err
    assert states(tmp_path) == {name: "incomplete" if name == bad else "done" for name in TASKS}
    assert scores(tmp_path) == {name: 1.0 for name in TASKS if name != bad}

    model()
    assert medtasks(*command()).code == 0
    assert Troubled.asked == {bad: N - after}
    assert scores(tmp_path) == dict.fromkeys(TASKS, 1.0)


def test_what_was_finished_keeps_its_score_and_stands_in_the_table(medtasks, model, tmp_path):
    model()
    assert medtasks(*command(TASKS[0])).code == 0
    model(*TASKS)
    outcome = medtasks(*command())
    assert outcome.code == 1 and "✗ stopped (engine)" in outcome.err
    rows = {line.split()[0]: line.split()[1] for line in outcome.out.splitlines() if "chip_ctc" in line}
    assert rows == {TASKS[0]: "1.0000", TASKS[1]: "–", TASKS[2]: "–"}
    assert scores(tmp_path) == {TASKS[0]: 1.0}
    assert states(tmp_path)[TASKS[0]] == "done"


def test_a_run_too_short_for_tens_of_failures_says_the_cause_too(medtasks, model, tmp_path):
    model(*TASKS)
    outcome = medtasks(*command(TASKS[0], "--limit", "3"))
    assert outcome.code == 1
    assert f"no request gets an answer: {REASON}" in outcome.err


# ---------------------------------------------------------------------- which causes end a run


def seen(*outcomes: tuple[str, Answer | Fault], n_tasks: int = 3) -> list[bool]:
    trouble = Trouble(n_tasks)
    return [trouble.see(task, outcome) for task, outcome in outcomes]


def fault(kind: FaultKind, reason: str = "no") -> Fault:
    return Fault(kind, reason)


@pytest.mark.parametrize("kind", [FaultKind.KEY, FaultKind.MONEY, FaultKind.MODEL])
def test_a_cause_that_no_request_escapes_ends_at_once_even_after_answers(kind):
    assert seen(("a", Answer("yes")), ("a", fault(kind))) == [False, True]


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.TIMEOUT, FaultKind.BUSY])
def test_a_server_that_is_gone_ends_the_run_even_after_answers(kind):
    found = seen(("a", Answer("yes")), *[("a", fault(kind))] * IN_A_ROW)
    assert found == [False] * IN_A_ROW + [True]
    between = [*[("a", fault(kind))] * (IN_A_ROW - 1), ("a", Answer("yes"))]
    assert not any(seen(*between, *between))


@pytest.mark.parametrize("kind", [FaultKind.REFUSED, FaultKind.ENGINE, FaultKind.TOO_LONG])
def test_a_cause_that_may_lie_in_the_requests_must_fail_two_tasks_and_answer_none(kind):
    of_a, of_b = [("a", fault(kind))] * (2 * IN_A_ROW), ("b", fault(kind))
    assert not any(seen(*of_a))
    assert seen(*of_a, of_b)[-1]
    assert not any(seen(("a", Answer("yes")), *of_a, of_b))
    assert not any(seen(*of_a, ("b", fault(kind, "another reason"))))
    assert seen(*of_a, n_tasks=1)[IN_A_ROW - 1]


def test_reasons_that_differ_in_their_numbers_are_one_cause():
    refused = [("ab"[i % 2], fault(FaultKind.REFUSED, f"asked for {i} tokens")) for i in range(IN_A_ROW)]
    assert seen(*refused)[-1]
