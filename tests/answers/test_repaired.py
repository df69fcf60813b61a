"""The repaired readings: worked examples, what must not change them, and a plain second reading of events."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.answers.normalise import answer_part
from medtasks_ext.answers.tolerant.lists import as_lines, joined
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.registry.functions import function_named
from tests.answers import responses
from tests.answers.plain_repaired import events as plain_events
from tests.answers.plain_repaired import reading as plain_reading
from tests.answers.plain_rules import plainly
from tests.answers.worked import examples, long, modes

Block = dict[str, Any]


def repaired(block: Block, text: str, *, cot: bool = False, gold: Any = "", target: str = "") -> Block:
    document = {"gold": gold, "target": target}
    found = answer_format(block).read_repaired(text, document, cot=cot)
    assert found is not None
    return json.loads(json.dumps(found))


# ---------------------------------------------------------------- worked examples


@pytest.mark.parametrize(("block", "example"), examples("repaired"))
def test_an_answer_is_read_as(block: Block, example: Block):
    for cot in modes(example):
        assert repaired(block["answer"], long(example["text"]), cot=cot)["answer"] == example.get("read")


@pytest.mark.parametrize(("block", "example"), examples("repaired_gold"))
def test_a_gold_answer_is_read_as(block: Block, example: Block):
    found = repaired(block["answer"], "", gold=example["official"], target=example["text"])
    assert found["gold"] == example["read"]


@pytest.mark.parametrize(("block", "example"), examples("repaired"))
def test_the_official_reading_is_the_same_or_as_stated(block: Block, example: Block):
    for cot in modes(example):
        official = answer_format(block["answer"]).read(long(example["text"]), {}, cot=cot)
        expected = example["official"] if "official" in example else example.get("read")
        assert plainly(official.answer) == plainly(expected)


# ---------------------------------------------------------------- gold answers of all tasks

BRIDGE = [name for name, dataset in registry().datasets.items() if dataset.metadata.suite == "bridge"]


@pytest.mark.parametrize("name", BRIDGE)
@pytest.mark.parametrize("cot", [False, True])
def test_the_gold_answers_of_a_task_are_right(name, cot):
    dataset = registry().datasets[name]
    documents = [
        document for split in load_documents(dataset, cot=cot, origin="sample").values() for document in split
    ]
    block = dataset.blocks["answer"]
    process, declared = function_named(dataset.process_results), dataset.metric_list
    before = "Analysis:\nNot needed.\nResult:\n" if cot else ""
    parsed = ParseAnswer(answer=block).apply(
        [[before + document["target"]] for document in documents], documents
    )
    results = [process(document, [answer]) for document, answer in zip(documents, parsed, strict=True)]
    aggregations = {item["metric"]: item["aggregation"] for item in declared}
    metrics = [metric for metric in results[0] if metric.endswith("_repaired")]
    assert "readable_repaired" in metrics
    assert ("score_repaired" in metrics) == ("score" in results[0])  # ROUGE needs a tokeniser
    for metric in metrics:
        values = [result[metric] for result in results]
        pool = aggregations[metric]
        assert (sum(values) / len(values) if pool == "mean" else function_named(pool)(values)) == 1, metric


# ---------------------------------------------------------------- labels

LABELS: Block = {
    "kind": "label",
    "prefix": "Topic",
    "labels": ["exam", "exam of skin", "no", "疾病", "B"],
}
AROUND = st.sampled_from(["", " ", "**", '"', "“", "[", "(", "`", "\n", "\n- "])
CLOSING = {"**": "**", '"': '"', "“": "”", "[": "]", "(": ")", "`": "`"}


@given(label=st.sampled_from(LABELS["labels"]), around=AROUND, stop=st.sampled_from(["", ".", "。", " "]))
def test_marks_around_a_label_do_no_harm(label, around, stop):
    written = f"{around}{label}{CLOSING.get(around, '')}{stop}"
    assert repaired(LABELS, f"Topic: {written}")["answer"] == label.lower()
    assert repaired(LABELS, written)["answer"] == label.lower()


@given(label=st.sampled_from(["exam", "no", "B"]), left=st.sampled_from("xé1"), right=st.sampled_from("xя2"))
def test_a_part_of_a_word_is_no_label(label, left, right):
    for word in (left + label, label + right, left + label + right, f"{left}-{label}", f"{label}-{right}"):
        assert repaired(LABELS, word)["answer"] is None
        assert repaired(LABELS, f"Topic: {word}")["answer"] is None


@given(
    labels=st.lists(st.sampled_from(LABELS["labels"]), min_size=2, max_size=4),
    joined=st.sampled_from([", ", "/", "、", " or ", " and ", "; ", "，", " & ", "\u3000或"]),
)
def test_labels_that_are_joined_are_an_answer_only_if_they_are_the_same(labels, joined):
    same = {label.lower() for label in labels}
    expected = same.pop() if len(same) == 1 else None
    assert repaired(LABELS, f"Topic: {joined.join(labels)}")["answer"] == expected


# ---------------------------------------------------------------- lists

LIST: Block = {
    "kind": "label_list",
    "prefix": "Items",
    "labels": ["Lab", "Imaging", "Other", "胃炎", "A / B"],
}
OPEN: Block = {"kind": "code_list", "prefix": "Items"}


@given(
    pieces=st.lists(st.sampled_from(LIST["labels"]), min_size=1, max_size=6),
    separator=st.sampled_from([",", ", ", "，", ";", "、", " ; ", ",,", "\n- "]),
    around=st.sampled_from(["", "**", '"', "`", "[", "("]),
    stop=st.sampled_from(["", ".", "。"]),
)
def test_pieces_are_found_whatever_separates_and_surrounds_them(pieces, separator, around, stop):
    written = [f"{around}{piece}{CLOSING.get(around, '')}" for piece in pieces]
    start = "\n- " if separator == "\n- " else ""
    text = f"Items: {start}{separator.join(written)}{stop}"
    expected = sorted({piece.lower() for piece in pieces})
    assert repaired(LIST, text)["answer"] == expected
    assert repaired(OPEN, text)["answer"] == expected


# ---------------------------------------------------------------- events

EVENT_KINDS = {"event_lines", "relation_lines", "attribute_lines"}
EVENTS = {
    name: block
    for name in BRIDGE
    if (block := registry().datasets[name].blocks["answer"])["kind"] in EVENT_KINDS
}
#: random answers per kind of events, each as written and shuffled, in both modes
ANSWERS = 500
#: one task of each kind of events
SHAPES = {
    (
        block["kind"],
        *block.get("patterns", ["by name"])[:1],
        len(block.get("all_fields", block["fields"])),
    ): name
    for name, block in EVENTS.items()
}


def in_lines(block: Block, text: str, cot: bool) -> bool:
    """Whether a text has a line for each event, which is all that the plain reading knows."""
    fields = tuple(name.lower() for name in block.get("all_fields", block["fields"]))
    part = answer_part(text, cot=cot)
    return joined(part, fields) == part and not as_lines(part, fields)


@pytest.mark.parametrize("name", SHAPES.values())
def test_random_answers_are_read_as_the_plain_reading_says(name):
    block = EVENTS[name]
    found, differing = 0, []
    for text in responses.many(block, responses.ROW, f"repaired {name}", ANSWERS):
        for written in (text, shuffled(text, block, random.Random(text))):
            for cot in (False, True):
                answer = repaired(block, written, cot=cot, target=written)["answer"]
                expected = plain_reading(block, answer_part(written, cot=cot))
                if answer != expected and in_lines(block, written, cot):
                    differing.append((written, answer, expected))
                found += answer is not None
    assert min(differing, key=lambda item: len(item[0]), default=None) is None
    assert ANSWERS < found < 4 * ANSWERS


def shuffled(text: str, block: Block, rng: random.Random) -> str:
    """The answer with pieces of its lines in another order and other marks between them."""
    lines = []
    for line in text.split("\n"):
        pieces = re.split(r"[,;]\s*", line)
        rng.shuffle(pieces)
        lines.append(rng.choice([", ", "; ", ",", "、", " | ", ",  **"]).join(pieces))
    return "\n".join(lines)


PARTS = st.sampled_from(
    [
        "entity",
        "type",
        "entity:",
        "type:",
        " entity: a",
        " type: b",
        ",",
        ";",
        "、",
        "|",
        ":",
        "\n",
        " ",
        "*",
        "`",
        "x",
    ]
)


@given(st.lists(PARTS, max_size=25).map("".join))
def test_any_mixture_of_names_and_marks_is_read_as_the_plain_reading_says(text):
    block = {"kind": "event_lines", "fields": ["entity", "type"], "patterns": ["strict"]}
    text = text.strip()
    assume(in_lines(block, text, cot=False))
    assert (repaired(block, text)["answer"] or []) == plain_events(text, ["entity", "type"], subject="entity")


VALUE = st.text("aé病 .,()%-/1", min_size=1, max_size=12).map(lambda text: f"v{text}".strip(" ,"))
FIELDS = ["subject", "first one", "second", "third/4th"]
FORM: Block = {"kind": "event_lines", "fields": FIELDS, "patterns": ["strict"]}


@given(
    events=st.lists(st.lists(VALUE, min_size=4, max_size=4), min_size=1, max_size=4),
    order=st.permutations(range(4)),
    bullet=st.sampled_from(["", "- ", "* ", "3. ", "• ", "> "]),
    comma=st.sampled_from([", ", ",", "，", " , ", ";", "、", " | "]),
    colon=st.sampled_from([": ", ":", "：", " : ", "**: "]),
    end=st.sampled_from([";", "", "；", " ;", "; "]),
    one_line=st.booleans(),
)
def test_neither_order_nor_marks_change_the_events(events, order, bullet, comma, colon, end, one_line):
    lines = [comma.join(f"{FIELDS[place]}{colon}{event[place]}" for place in order) + end for event in events]
    text = "; ".join(lines) if one_line else "\n".join(bullet + line for line in lines)
    assert repaired(FORM, text)["answer"] == [[value.lower() for value in event] for event in events]


@given(items=st.lists(st.text("ab病", min_size=1, max_size=3), max_size=5), data=st.data())
def test_a_bracketed_list_is_a_set(items, data):
    block = EVENTS["bridge_chip_cdee"]
    again = data.draw(st.permutations([*items, *items[:1]]))
    first, second = (
        repaired(block, f"subject: x, description: [{separator.join(each)}], location: [], status: y;")[
            "answer"
        ]
        for separator, each in ((",", items), ("、 ", again))
    )
    assert first == second


@pytest.mark.parametrize("name", EVENTS)
def test_prose_holds_no_event(name):
    prose = (
        "Note: nothing found.\nIn summary: a, b: c; d: e.\n结论：无，其他：无；\nThe entities are as follows:"
    )
    assert repaired(EVENTS[name], prose)["answer"] is None
