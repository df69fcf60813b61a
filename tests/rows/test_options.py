"""Options: their orders, taken out of texts, in all forms in which makers write them; entities and masks."""

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.expressions import Expression
from medtasks_ext.rows.filters import as_letters, masked, permuted, question_and_options
from medtasks_ext.rows.originals.readers import annotated_rows
from tests.conftest import write_jsonl

MAEXAM = registry().datasets["mlb_maexam"].folder
FIVE = ["甲", "乙", "丙", "丁", "戊"]


def row(number: object, *, options: list[str] = FIVE, answer: str = "A") -> dict:
    return {"id": str(number), "options": options, "answer": answer}


OPTIONS = st.lists(st.text("甲乙丙丁戊己", min_size=1, max_size=3), min_size=2, max_size=6, unique=True)


@given(OPTIONS, st.data(), st.integers())
def test_every_trial_asks_the_same_question_with_the_same_right_content(options, data, number):
    right = sorted(data.draw(st.sets(st.integers(0, len(options) - 1), min_size=1)))
    trials = permuted(row(number, options=options, answer=as_letters(right)), 3)
    assert [trial["trial"] for trial in trials] == [0, 1, 2]
    for trial in trials:
        assert sorted(trial["options"]) == sorted(options)
        assert {trial["options"]["ABCDEF".index(letter)] for letter in trial["answer"]} == {
            options[place] for place in right
        }
    orders = {tuple(trial["options"]) for trial in trials}
    assert len(orders) == (2 if len(options) == 2 else 3)  # never the same order three times


def test_all_orders_and_all_places_of_the_right_answer_are_equally_frequent():
    asked = [permuted(row(number), 3) for number in range(10_000)]
    for trial in range(3):
        places = Counter(trials[trial]["answer"] for trials in asked)
        assert chisquare([places[letter] for letter in "ABCDE"]).pvalue > 0.001
    orders = Counter(tuple(trial["options"]) for trials in asked for trial in trials)
    assert chisquare([orders[order] for order in permutations(FIVE)]).pvalue > 0.001


GOLDEN = {
    "1": ["丁乙戊丙甲", "乙甲戊丁丙", "丙甲戊乙丁"],
    "s1": ["乙丁甲丙戊", "丙甲乙丁戊", "丙甲丁乙戊"],
    "试题-7": ["丙丁乙戊甲", "丁甲戊丙乙", "乙甲戊丁丙"],
}


def test_orders_are_these_on_every_machine():
    assert {
        number: ["".join(trial["options"]) for trial in permuted(row(number), 3)] for number in GOLDEN
    } == GOLDEN


def question(number: int, **change) -> dict:
    return {"id": f"q{number}", "question": f"题{number}", "options": FIVE, "answer": [number % 5], **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ["甲", "乙", "甲", "丁", "戊"]}, "has the option '甲' more than once"),
        ({"options": FIVE[:3], "answer": [3]}, "has the answer 'D', which is none of its 3 options"),
        ({"options": ["甲"], "answer": [0]}, "has 1 options"),
        ({"answer": [-1]}, "-1 is no index into the options"),
        ({"answer": ["A"]}, "(a list with other items than integers), expected a list of integers"),
        ({"answer": "A"}, "column answer holds 'A', expected a list of integers"),
    ],
)
@pytest.mark.parametrize("split", ["test", "fewshot"])
def test_a_question_that_cannot_be_asked_names_file_row_and_remedy(data_dir, split, change, message):
    folder = data_dir / "mlb" / "maexam"
    rows = {
        name: [question(i) for i in range(first, first + 6)] for name, first in (("test", 0), ("fewshot", 9))
    }
    rows[split][2] = {**rows[split][2], **change}
    for name, content in rows.items():
        write_jsonl(folder / f"{name}.jsonl", content)
    with pytest.raises(MedtasksError) as error:
        load_documents(Dataset(MAEXAM), cot=False, shots=5)
    text, split_name = str(error.value), {"test": "test", "fewshot": "few-shot"}[split]
    assert f"{split_name} row 3" in text and message in text and str(folder) in text
    assert error.value.remedy


def test_several_right_options_are_one_set_in_every_trial(data_dir):
    rows = [question(i, answer=[0, 3]) for i in range(3)]
    write_jsonl(data_dir / "mlb" / "maexam" / "test.jsonl", rows)
    for document in load_documents(Dataset(MAEXAM), cot=False)["test"]:
        assert document["gold"] == sorted(["甲", "丁"])
        shown = [document["options"]["ABCDE".index(letter)] for letter in document["target"].split("：")[1]]
        assert sorted(shown) == document["gold"]


QUESTION = "Which drug lowers potassium?"
FOUR = ["Furosemide", "Spironolactone", "Lisinopril", "Amiloride"]


WHOLE = [QUESTION, *FOUR]
#: text, marks -> question and options, or what is wrong
READ = [
    (f"{QUESTION} A) Furosemide B) Spironolactone C) Lisinopril D) Amiloride", "{ABCD}) ", WHOLE),
    ("Which?\r\n1. gout\r\n2. lupus", "\n{1234}. ", ["Which?", "gout", "lupus"]),
    ("降低血钾？A．呋塞米B．螺内酯", "{ABCDE}．", ["降低血钾？", "呋塞米", "螺内酯"]),
    ("Conduta?\n'A': 'Gota d'água.', 'B': 'Alta.'", "'{AB}': '|'", ["Conduta?", "Gota d'água.", "Alta."]),
    ("يفرز من: ا. الكبد ب. الكظر", "{أبج}. ", ["يفرز من:", "الكبد", "الكظر"]),
    ("Too much vitamin B) or D) does what? A) kills B) heals", "{ABCD}) ",
     ["Too much vitamin B) or D) does what?", "kills", "heals"]),
    ("Which? A) gout B) lupus, not A) C) none", "{ABCD}) ", ["Which?", "gout", "lupus, not A)", "none"]),
    ("Which?", "{ABCD}) ", "no option found"),
    ("Which? A) gout B) lupus D) none", "{ABCD}) ", "option D stands there, option C before it does not"),
    ("Which? A) gout A) gout B) lupus", "{ABCD}) ", "the options A to B can be read in several ways"),
    ("Which? A) B) lupus", "{ABCD}) ", "option A has no text"),
    ("A) gout B) lupus", "{ABCD}) ", "no question stands before its options"),
    ("Q? 'A': 'x' 'B': 'y' and so on", "'{AB}': '|'", "option B does not end with"),
    ("Which? A) gout B) lupus", "{AA}) ", "labels of options in braces"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marks", "found"), READ)
def test_question_and_options_are_taken_apart_or_it_is_said_why_not(text, marks, found):
    marks = marks.split("|")
    if isinstance(found, str):
        with pytest.raises(ValueError, match=found):
            question_and_options(text, *marks)
    else:
        read = question_and_options(text, *marks)
        assert [read["question"], *read["options"]] == found


@pytest.mark.parametrize("part", ["A) ", "B) A) ", "A) B) C) D) "])
def test_readings_of_a_hostile_text_are_counted_and_not_tried(part):
    """Two million characters: a search through their readings would never end."""
    text = "Which? " + part * (2_000_000 // len(part))
    with pytest.raises(ValueError, match="option"):
        question_and_options(text, "{ABCD}) ")


SENTENCE = "Calcium lowers nonheme and heme iron."


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        (["27-35", "0-6"], "@DRUG$ lowers nonheme and @DRUG$."),
        (["0-6", "15-21;32-35"], "@DRUG$ lowers @DRUG$."),  # in two pieces
        (["15-21;32-35", "27-35"], "Calcium lowers @DRUG-DRUG$."),  # overlapping
        (["a-b"], None), (["5-3"], None), (["30-60"], None), (["1-2-3"], None),
    ],
)  # fmt: skip
def test_both_drugs_are_masked_or_the_offset_is_refused(offsets, text):
    if text is None:
        with pytest.raises(ValueError, match=r"offset|outside|literal"):
            masked(SENTENCE, offsets, "DRUG")
    else:
        assert masked(SENTENCE, offsets, "DRUG") == text


#: Cells of a row, an expression over them -> what it gives, or words of the message.
FORMS = [
    ({"o": {"a": "gout", "b": "lupus"}}, "o | split_options", ["gout", "lupus"]),
    ({"o": "A) gout; rare\nB) lupus"}, "o | split_options", ["gout; rare", "lupus"]),
    ({"o": [{"id": 1, "text": "gout"}, {"id": 2, "text": "flu"}]}, "o | picked('text')", ["gout", "flu"]),
    ({"o": {"x": 1}}, "o | picked('y')", "has no y"),
    ({"a": "b"}, "a | option_letters(['gout', 'lupus'])", "B"),
    ({"a": "lupus"}, "a | option_letters(['gout', 'lupus'])", "B"),
    ({"a": "A, C"}, "a | option_letters(['gout', 'lupus', 'flu'])", "AC"),
    ({"a": 0}, "a | option_letters(['gout', 'lupus'], 0)", "A"),
    ({"a": 2}, "a | option_letters(['gout', 'lupus'], 0)", "names no option of 2"),
    ({"a": 1}, "a | option_letters(['gout', 'lupus'])", "--count-from says from which number"),
    ({"a": "A"}, "a | option_letters(['B', 'A'])", "is the letter of one option and the text of another"),
    ({"t": ["one", "", ["two", 3]]}, "t | as_text", "one\n\ntwo\n\n3"),
    ({"t": {"x": 1}}, "t | as_text", "stands where text belongs"),
    ({"e": [[0, 4, "D"], [9, 12]]}, "e | as_entities('gout and flu')", [("gout", "D"), ("flu", "")]),
    ({"e": [{"offsets": [[0, 4], [9, 12]], "text": ["gout", "flu"], "type": "D"}]}, "e | as_entities",
     [("gout flu", "D")]),
    ({"e": [{"entity_text": "gout", "entity_type": "D"}]}, "e | as_entities", [("gout", "D")]),
    ({"e": [[0, 40]]}, "e | as_entities('gout')", "neither a text nor offsets within the 4 characters"),
    ({"e": "gout"}, "e | as_entities", "is no list of entities"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "expression", "made"), FORMS, ids=range(len(FORMS)))
def test_a_form_is_read_or_named(row, expression, made):
    if isinstance(made, str) and " " in made.strip("\n") and "\n" not in made:
        with pytest.raises(ValueError, match=made):
            Expression(expression, "task.yaml").value(row)
        return
    found = Expression(expression, "task.yaml").value(row)
    if "as_entities" in expression:
        found = [(item["entity"], item["type"]) for item in found]
    assert found == made


def test_annotated_texts_are_told_by_their_lines_and_no_others():
    tagged = "# id\nHigh\tO\nfever\tB-D\nnow\tO\n\nNo\tO\ncough\tB-D\nat\tI-D\n"
    rows = annotated_rows(tagged)
    assert [row["text"] for row in rows] == ["High fever now", "No cough at"]
    assert [[(x["text"], x["type"]) for x in row["entities"]] for row in rows] == [
        [("fever", "D")], [("cough at", "D")],
    ]  # fmt: skip
    pubtator = "7|t|Gout now.\n7|a|No flu.\n7\t0\t4\tGout\tDisease\tD1\n7\tCID\tD1\tD2\n"
    (row,) = annotated_rows(pubtator)
    assert (row["id"], row["text"]) == ("7", "Gout now.\nNo flu.")
    assert row["entities"] == [{"start": 0, "end": 4, "text": "Gout", "type": "Disease"}]
    for other in ("question\tanswer\nWhy?\tO\n", '{"a": "O"}\n', "", "one two\n"):
        assert annotated_rows(other) == []
