"""Reasoning is taken off in every form that `traces.yaml` lists; one that never closes is no answer."""

import pytest

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.reasoning import traces, unknown_traces, without_reasoning

KINDS = {
    "option_letter": {"kind": "option_letter", "letters": list("ABCD")},
    "choice": {"kind": "choice", "labels": list("ABCD")},
    "exact_letter": {"kind": "exact_letter", "letters": list("ABCD")},
}
ROW = {"options": ["fever", "cough", "rash", "pain"], "gold": "A", "target": "A"}


@pytest.mark.parametrize("trace", traces(), ids=lambda trace: trace.open)
@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_a_trace_is_not_read(trace, kind):
    reply = f"{trace.open}\nThe answer is B. Or C?\n{trace.close}\nA"
    assert answer_format(KINDS[kind]).read(reply, ROW, cot=False).answer == "A"


@pytest.mark.parametrize(
    "trace", [item for item in traces() if not item.at_begin], ids=lambda item: item.open
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_that_never_closes_is_unreadable(trace, kind):
    reading = answer_format(KINDS[kind]).read(f"{trace.open}The answer is A.", ROW, cot=False)
    assert not reading.valid


def test_the_reader_says_that_reasoning_never_ends():
    reading = answer_format(KINDS["choice"]).read("<unused94>thought\nThe answer is A.", ROW, cot=False)
    assert reading.why == "the reasoning never ends"


@pytest.mark.parametrize("trace", traces(), ids=lambda trace: trace.open)
@pytest.mark.parametrize("kind", ["free_text", "prose"])
def test_a_text_that_judges_rate_has_no_trace(trace, kind):
    reply = f"{trace.open}\nShe may have scabies.\n{trace.close}\nTake a rest."
    assert answer_format({"kind": kind}).read(reply, ROW, cot=False).answer == "Take a rest."


def test_a_heading_is_no_unknown_trace_where_reasoning_is_asked_for():
    texts = ["## Reasoning\nfirst", "<ponder>x</ponder>B", "<ponder>y</ponder>A", "B"]
    assert unknown_traces(texts, asked=False) == {"<ponder>": 2, "## Reasoning": 1}
    assert unknown_traces(texts, asked=True) == {"<ponder>": 2}


def test_each_trace_has_a_source():
    assert all(trace.source and trace.open != trace.close for trace in traces())


@pytest.mark.parametrize("text", ["<ponder>Is it A?</ponder>B", "## Reasoning\nfirst", "<|cot|>so B"])
def test_a_trace_that_no_rule_knows_is_seen(text):
    assert any(map(text.startswith, unknown_traces([text], asked=False))) and without_reasoning(text) == text


@pytest.mark.parametrize("text", ["B", "The answer is B.", "<think>a</think>B", "# Answer\nB", "I think B."])
def test_other_replies_are_none(text):
    assert not unknown_traces([text], asked=False)
