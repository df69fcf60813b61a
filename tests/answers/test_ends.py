"""An answer that an engine ends at the next question is scored as the whole response."""

from __future__ import annotations

import random
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.answers.tolerant.markers import NEXT_QUESTIONS, ends_in_next_question
from medtasks_ext.answers.tolerant.reply import LONGEST
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.registry.functions import function_named
from tests.answers import replies, responses
from tests.conftest import PARTS, part_of

TASKS = {
    (name, cot): dataset
    for name, dataset in registry().datasets.items()
    for cot in (False, True)
    if answer_format(dataset.blocks["answer"]).ends_at_question(cot=cot)
}
#: of the corpus, for each task
RESPONSES = 150
#: no mark that begins or ends reasoning
FRAGMENTS = [*responses.MARKS, *responses.WORDS, *responses.RESULTS, *responses.CHINESE, *NEXT_QUESTIONS]
FRAGMENTS += ["A", "B.", "(C)", "D", "yes", "no", "maybe", "\\boxed{", "}", "<answer>", "</answer>", "wait, "]
FRAGMENTS += [
    "the answer is ",
    "Answer: ",
    "\n## Question 3:",
    "\n***\nQuestion:",
    "78.5",
    "<|im_end|>",
    ">",
    "\n",
]


class Task:
    """The sample documents of a task, and what becomes of a response to one of them."""

    def __init__(self, name: str, cot: bool) -> None:
        dataset = registry().datasets[name]
        self.block, self.cot = dataset.blocks["answer"], cot
        self.documents = load_documents(dataset, cot=cot, origin="sample")["test"]
        self._filter = ParseAnswer(answer=self.block)
        self._process = function_named(dataset.process_results)

    def metrics(self, document: dict[str, Any], text: str) -> dict[str, Any]:
        [answer] = self._filter.apply([[text]], [document])
        return self._process(document, [answer])

    def said(self, rng: random.Random) -> list[tuple[dict[str, Any], str]]:
        """Documents with responses of the corpus: right, nearly right, noise; without reasoning."""
        found = []
        for document, _ in zip(cycle(self.documents), range(RESPONSES), strict=False):
            row = {**responses.ROW, **{key: document[key] for key in ("options",) if key in document}}
            text = responses.one(self.block, row, rng)
            gold = str(document["target"])
            found.append((document, rng.choice([text, gold, f"{gold}\n{text}"])))
        return found


def stopped(text: str) -> str | None:
    """What an engine keeps of a response: up to the first of its stop texts; None where it goes on."""
    ends = [place + len(stop) for stop in NEXT_QUESTIONS if (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends and ends_in_next_question(text[: min(ends)]) else None


def without_reasoning(text: str) -> bool:
    return not any(mark.lower() in text.lower() for mark in ("think>", "assistantfinal", "reasoning>"))


@pytest.mark.parametrize(("name", "cot"), TASKS)
def test_all_metrics_of_a_stopped_answer_are_those_of_the_whole(name, cot):
    task, rng = Task(name, cot), random.Random(name)
    said = [item for item in task.said(rng) if without_reasoning(item[1])]
    n = 0
    for document, text in said:
        more = rng.choice(said)[1]
        whole = (
            f"{text}{rng.choice(NEXT_QUESTIONS)}{rng.choice([' ', chr(10), ''])}{more}\n{rng.choice(said)[1]}"
        )
        if (kept := stopped(whole)) is not None:
            n += 1
            assert task.metrics(document, kept) == task.metrics(document, whole), (kept, whole)
    assert n > RESPONSES / 4


@pytest.mark.parametrize(
    ("name", "cot"), {task.blocks["answer"]["kind"]: key for key, task in TASKS.items()}.values()
)
def test_whatever_a_model_writes(name, cot):
    task = Task(name, cot)

    @settings(max_examples=300)
    @given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), st.data())
    def is_scored_alike(text, data):
        document = data.draw(st.sampled_from(task.documents))
        if (kept := stopped(text)) is not None:
            assert task.metrics(document, kept) == task.metrics(document, text)

    is_scored_alike()


@pytest.mark.parametrize("part", PARTS)
def test_replies_in_many_languages_that_go_on_are_read_as_before(part):
    written = [*replies.written_before(), *replies.written_second(), *replies.written_third()]
    rng, n = random.Random(0), 0
    for item, other in zip(written, rng.sample(written, len(written)), strict=True):
        if part_of(item.text) != part:
            continue
        form, options = answer_format(item.spec), dict(item.block).get("options")
        if not form.ends_at_question(cot=False) or not without_reasoning(item.text + other.text):
            continue
        document = {"gold": None, "target": "", **({"options": options} if options else {})}
        whole = f"{item.text}{rng.choice(NEXT_QUESTIONS)} {other.text}\n{item.text}"
        if (kept := stopped(whole)) is not None:
            n += 1
            read = [form.read_repaired(text, document, cot=False) for text in (kept, whole)]
            assert read[0] == read[1]
    assert n > 150


def test_kinds_that_look_at_the_end_of_a_reply_are_not_stopped():
    told = {(dataset.blocks["answer"]["kind"], cot) for (_, cot), dataset in TASKS.items()}
    direct = {kind for kind, cot in told if not cot}
    assert direct == {"exact_letter", "marked_letters", "choice", "choices", "category", "ordinal"}
    under_cot = {"label_word", "relation_label", "option_letter", "medcalc", "verified_letter"}
    assert {kind for kind, cot in told if cot} == direct | under_cot


@pytest.mark.parametrize(
    "text",
    [
        "\nQuestion:",  # nothing stands before it
        " \n\nUser:",
        "<think>B\nQuestion:",  # reasoning
        "</think>\nB\nQuestion:",
        "B",
        "B\n" + "x" * LONGEST + "\nQuestion:",  # readers look for the question in the first part alone
    ],
)
def test_an_answer_goes_on_where_readers_would_look_further(text):
    assert not ends_in_next_question(text)


@pytest.mark.parametrize("stop", NEXT_QUESTIONS)
def test_each_stop_text_is_one_that_readers_stop_at(stop):
    assert ends_in_next_question(f"B{stop}")
