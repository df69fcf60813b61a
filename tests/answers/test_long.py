"""Long responses: a released reader sees all of them, the shared reader both ends."""

import json

import pytest

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.answers.reasoning import traces, unknown_traces, without_reasoning
from medtasks_ext.judge.reply import UnreadableError, read_only_verdict
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.registry.functions import function_named
from tests.conftest import PARTS, part_of


@pytest.mark.parametrize("side", [20_000, 60_000])
def test_lines_in_the_middle_of_a_long_response_count_officially(side):
    dataset = registry().datasets["bridge_mie"]
    reader = answer_format(dataset.blocks["answer"], where=dataset.file)
    first = next(
        json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines() if line
    )
    line = first["output"]
    padding = "这一段没有答案。\n" * (side // 9)
    alone, amid = (reader.read(text, {}, cot=False) for text in (line, f"{padding}{line}\n{padding}"))
    assert alone.valid and amid.answer == alone.answer


LINE = "The note goes on.\n"
FORM = answer_format({"kind": "category", "labels": ["urgent", "routine"], "before": "triage:"})


@pytest.mark.parametrize("n", [1, 1_000, 3_000, 20_000])
def test_the_shared_reader_sees_both_ends_of_a_long_response(n):
    """The end most of all: a response ends with its answer, a trace in front of it or not."""
    for text in (f"{LINE * n}triage: routine", f"triage: routine\n{LINE * n}"):
        found = FORM.read(text, {}, cot=False)
        assert found.answer == "routine"
        begin, end = found.span  # of the whole response
        assert text[begin:end] == "routine"


def test_what_lies_in_the_middle_of_a_very_long_response_is_not_read():
    assert not FORM.read(f"{LINE * 3_000}triage: routine\n{LINE * 3_000}", {}, cot=False).valid


VERIFIED = [
    name
    for name, dataset in registry().datasets.items()
    if dataset.blocks["answer"]["kind"] == "verified_letter"
]


@pytest.mark.parametrize("text", [f"answer{'*' * 3_000}?", f"> {' ' * 3_000}x", f"answer is{' ' * 3_000}?"])
@pytest.mark.parametrize("name", VERIFIED[:1])
def test_a_run_of_marks_or_blanks_can_be_read_in_one_way(name, text):
    """With more ways than one, a reply of a few thousand characters would not come back."""
    dataset = registry().datasets[name]
    reader = answer_format(dataset.blocks["answer"], where=dataset.file)
    row = {"options": ["fever", "cough", "rash", "pain"], "gold": "A", "target": "A"}
    assert not reader.read(text, row, cot=False).valid


#: one task for each kind of answer
KINDS = {dataset.blocks["answer"]["kind"]: name for name, dataset in registry().datasets.items()}
#: before a run: nothing, an announcement, an answer, the beginning of an answer in JSON or a tag
HEADS = ["", "The answer is ", "A", '{"a": "', "<answer>"]
UNITS = [
    *" *\n\x1c\u3000",
    "- ",
    "* \n",
    " ,",
    "[(",
    "(A",
    "A, ",
    "not A ",
    "```\n",
    "<answer>",
    '{"a": ',
    "答案：",
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_anything_is_read(kind, part):
    """Where a pattern could divide a run in many ways, these would not come back."""
    dataset = registry().datasets[KINDS[kind]]
    document = load_documents(dataset, cot=True, origin="sample")["test"][0]
    parse, score = ParseAnswer(answer=dataset.blocks["answer"]), function_named(dataset.process_results)
    runs = [(head, unit) for head in HEADS for unit in UNITS if part_of(f"{kind} {head} {unit}") == part]
    for text in (head + (unit * 3_000)[:3_000] + "x" for head, unit in runs):
        [answer] = parse.apply([[text]], [document])
        assert score(document, [answer])


@pytest.mark.parametrize("unit", ["\n", " ", "{", '{"', "```\n", "\\"])
def test_a_run_in_a_judges_reply_is_no_verdict(unit):
    with pytest.raises(UnreadableError):
        read_only_verdict("```" + unit * 6_000, ["axis"], {"rating": [1, 2]}, [])


# Reasoning is taken off in every form that `traces.yaml` lists; one that never closes is no answer.


OF_KIND = {
    "option_letter": {"kind": "option_letter", "letters": list("ABCD")},
    "choice": {"kind": "choice", "labels": list("ABCD")},
    "exact_letter": {"kind": "exact_letter", "letters": list("ABCD")},
}
ROW = {"options": ["fever", "cough", "rash", "pain"], "gold": "A", "target": "A"}


@pytest.mark.parametrize("trace", traces(), ids=lambda trace: trace.open)
@pytest.mark.parametrize("kind", OF_KIND)
def test_what_stands_in_a_trace_is_not_read(trace, kind):
    reply = f"{trace.open}\nThe answer is B. Or C?\n{trace.close}\nA"
    assert answer_format(OF_KIND[kind]).read(reply, ROW, cot=False).answer == "A"


@pytest.mark.parametrize(
    "trace", [item for item in traces() if not item.at_begin], ids=lambda item: item.open
)
@pytest.mark.parametrize("kind", OF_KIND)
def test_a_trace_that_never_closes_is_unreadable(trace, kind):
    reading = answer_format(OF_KIND[kind]).read(f"{trace.open}The answer is A.", ROW, cot=False)
    assert not reading.valid


def test_the_reader_says_that_reasoning_never_ends():
    reading = answer_format(OF_KIND["choice"]).read("<unused94>thought\nThe answer is A.", ROW, cot=False)
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
