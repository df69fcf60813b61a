"""Long replies and replies with reasoning: what is seen of them, and that each comes back."""

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

pytestmark = pytest.mark.long


def test_lines_in_the_middle_of_a_long_response_count_officially():
    dataset = registry().datasets["bridge_mie"]
    reader = answer_format(dataset.blocks["answer"])
    line = json.loads(dataset.sample_file.read_text(encoding="utf-8").splitlines()[0])["output"]
    padding = "这一段没有答案。\n" * 7_000
    alone, amid = (reader.read(text, {}, cot=False) for text in (line, f"{padding}{line}\n{padding}"))
    assert alone.valid and amid.answer == alone.answer


@pytest.mark.parametrize("n", [1, 1_000, 3_000, 20_000])
def test_the_shared_reader_sees_both_ends_of_a_long_response(n):
    """The end most of all: a response ends with its answer. Of a very long one, the middle is not read."""
    form = answer_format({"kind": "category", "labels": ["urgent", "routine"], "before": "triage:"})
    line = "The note goes on.\n"
    for text in (f"{line * n}triage: routine", f"triage: routine\n{line * n}"):
        found = form.read(text, {}, cot=False)
        assert found.answer == "routine" == text[slice(*found.span)]  # a place in the whole response
    middle = form.read(f"{line * n}triage: routine\n{line * n}", {}, cot=False)
    assert middle.valid == (n < 3_000)


#: one task for each kind of answer
KINDS = {dataset.blocks["answer"]["kind"]: name for name, dataset in registry().datasets.items()}
#: before a run: nothing, an announcement, an answer, the beginning of an answer in JSON or a tag
HEADS = ["", "The answer is ", "A", '{"a": "', "<answer>"]
UNITS = [*" *\n\x1c\u3000", "- ", "* \n", " ,", "[(", "(A", "A, ", "not A ", "```\n", "<answer>", '{"a": ']
UNITS += ["答案："]


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


OF_KIND = {
    "option_letter": {"letters": list("ABCD")},
    "choice": {"labels": list("ABCD")},
    "exact_letter": {"letters": list("ABCD")},
    "free_text": {},
    "prose": {},
}
ROW = {"options": ["fever", "cough", "rash", "pain"], "gold": "A", "target": "A"}


@pytest.mark.parametrize("kind", OF_KIND)
def test_reasoning_is_taken_off_in_every_known_form_and_what_never_closes_is_no_answer(kind):
    form = answer_format({"kind": kind, **OF_KIND[kind]})
    for trace in traces():
        reply = f"{trace.open}\nThe answer is B. Or C?\n{trace.close}\nA"
        assert form.read(reply, ROW, cot=False).answer == "A", trace
        if OF_KIND[kind] and not trace.at_begin:
            assert not form.read(f"{trace.open}The answer is A.", ROW, cot=False).valid, trace


@pytest.mark.parametrize("text", ["<ponder>Is it A?</ponder>B", "## Reasoning\nfirst", "<|cot|>so B"])
def test_a_trace_that_no_rule_knows_is_seen(text):
    """But a heading, where reasoning is asked for."""
    assert any(map(text.startswith, unknown_traces([text], asked=False))) and without_reasoning(text) == text
    assert bool(unknown_traces([text], asked=True)) == (not text.startswith("#"))


def test_other_replies_are_none():
    texts = ["B", "The answer is B.", "<think>a</think>B", "# Answer\nB", "I think B."]
    assert not unknown_traces(texts, asked=False)
