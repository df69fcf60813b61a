"""MedCalc-Bench, by HELM's rule and by limits; MEDEC: error flag, faulty sentence and the correction."""

import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.metrics import choice, generation
from tests.metrics.build import columns, documents

FORMAT = answer_format({"kind": "medcalc"})
AGE = "('14 weeks', '2 days')"
#: category -> gold, lower limit, upper limit
ROWS = {
    "physical": ("78", "74.1", "81.9"), "lab test": ("-2", "-2.1", "-1.9"), "lab": ("30", "28.5", "31.5"),
    "dosage": ("160", "152", "168"), "dosage conversion": ("25", "23.75", "26.25"),
    "risk": ("1.5", "1.425", "1.575"), "severity": ("8", "8", "8"), "diagnosis": ("0", "0", "0"),
    "date": ("09/05/2023", "09/05/2023", "09/05/2023"), "age": (AGE, AGE, AGE),
}  # fmt: skip


def gold(row: str) -> dict:
    answer, lower, upper = ROWS[row]
    category = "date" if row == "age" else row
    return FORMAT.read_gold(answer, {"category": category, "lower_limit": lower, "upper_limit": upper})


def scores(row: str, reply: str) -> dict[str, list]:
    """The metrics of one reply, read from the response on."""
    document = documents([gold(row)])
    return columns(choice.process_medcalc, document, [FORMAT.read(reply, document[0], cot=False).answer])


def hits(row: str, reply: str) -> tuple[float, float]:
    got = scores(row, reply)
    assert got["score"] == got["medcalc_bench_accuracy"]
    within = max(value[0][0] for name, value in got.items() if name.startswith("accuracy_"))
    return got["medcalc_bench_accuracy"][0], within


def plain_official(row: str, reply: str) -> int:
    """HELM's rule, written down from its description alone."""
    answer, lower, upper = ROWS[row]
    category, reply = "date" if row == "age" else row, reply.strip()
    if category in ("risk", "severity", "diagnosis"):
        return int(reply == answer)

    def days(text: str) -> int:
        weeks_and_days = re.match(r"\('(\d+) weeks', '(\d+) days'\)", text)
        if weeks_and_days is None:
            raise ValueError
        return 7 * int(weeks_and_days.group(1)) + int(weeks_and_days.group(2))

    def moment(text: str) -> datetime:
        return datetime.strptime(text, "%m/%d/%Y")

    readers = {"physical": float, "dosage conversion": float, "date": days if row == "age" else moment}
    if category not in readers:
        return 0
    read = readers[category]
    try:
        return int(read(lower) <= read(reply) <= read(upper))
    except ValueError:
        return 0


@pytest.mark.parametrize("row", ROWS)
def test_the_gold_scores_unless_helm_does_not_know_its_category(row):
    known = row not in ("lab", "lab test", "dosage")
    assert hits(row, ROWS[row][0]) == (float(known), 1)
    own = {"lab test": "lab", "dosage conversion": "dosage", "age": "date"}.get(row, row)
    counted = {name: value[0] for name, value in scores(row, ROWS[row][0]).items() if "accuracy_" in name}
    assert counted.pop(f"accuracy_{own}") == (1, 1) and set(counted.values()) == {(0, 0)}
    assert FORMAT.ceiling(gold(row)) == known


@pytest.mark.parametrize(
    ("row", "reply", "expected"),
    [
        ("physical", "74.1", (1, 1)), ("physical", "81.9", (1, 1)),  # limits belong to the range
        ("physical", "74.09", (0, 0)), ("physical", " 78\n", (1, 1)), ("physical", "78 mm Hg", (0, 0)),
        ("physical", "78.", (1, 1)), ("physical", "٧٨", (1, 1)),  # numbers to Python
        ("physical", "78,0", (0, 0)), ("physical", "nan", (0, 0)), ("physical", "1e999", (0, 0)),
        ("physical", "234/3", (0, 0)), ("physical", "9" * 100_000, (0, 0)), ("physical", "", (0, 0)),
        ("physical", "\ud800", (0, 0)), ("lab test", "-2.05", (0, 1)), ("lab test", "2", (0, 0)),
        ("lab", "29", (0, 1)), ("dosage", "160", (0, 1)), ("dosage conversion", "26.25", (1, 1)),
        ("risk", "1.50", (0, 1)), ("risk", "2", (0, 0)),  # HELM compares texts
        ("severity", "8 points", (0, 0)), ("diagnosis", "-0", (0, 1)), ("date", "9/5/2023", (1, 1)),
        ("date", "2023-09-05", (0, 0)), ("date", "13/45/2023", (0, 0)), ("date", "09/05/2023.", (0, 0)),
        ("age", "('13 weeks', '9 days')", (1, 1)),  # the same number of days
        ("age", "('14 weeks', '2 days'), that is", (1, 1)),  # HELM looks at the beginning
        ("age", "(14 weeks, 2 days)", (0, 1)),  # as the questions write it
        ("age", "('14 weeks, 2 days')", (0, 0)), ("age", "100 days", (0, 0)),
        ("age", f"('{'9' * 5000} weeks', '1 days')", (0, 0)),
    ],
)  # fmt: skip
def test_worked_cases_of_both_rules(row, reply, expected):
    assert hits(row, reply) == expected
    assert plain_official(row, reply) == expected[0]


REPLIES = st.one_of(
    st.sampled_from([answer for answer, _, _ in ROWS.values()]),
    st.decimals(allow_nan=True, allow_infinity=True).map(str), st.floats().map(str),
    st.integers(-200, 200).map(str), st.dates().map(lambda day: f"{day.month}/{day.day}/{day.year}"),
    st.tuples(st.integers(0, 20), st.integers(0, 9)).map(lambda age: f"('{age[0]} weeks', '{age[1]} days')"),
    st.from_regex(r"\(?'?\d{1,2} weeks?'?, ?'?\d days?'?\)?", fullmatch=True), st.text(max_size=20),
)  # fmt: skip


@given(st.sampled_from(list(ROWS)), REPLIES)
def test_the_official_rule_is_helms_and_the_limits_take_nothing_away(row, reply):
    official, within = hits(row, reply)
    assert official == plain_official(row, reply)
    assert within >= official


def test_helms_exact_matches_compare_the_reply_itself():
    got = scores("lab", "30.0 mEq/L")
    assert [got[f"{kind}exact_match"][0] for kind in ("", "quasi_", "prefix_", "quasi_prefix_")] == [
        0, 0, 1, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"upper_limit": None}, "upper_limit is missing"),
        ({"lower_limit": "about 3"}, "lower_limit 'about 3' is no number"),
        ({"category": "imaging"}, "category 'imaging' is none of"),
        ({"category": "date"}, "lower_limit '1' is no date"),
    ],
)
def test_a_row_whose_limits_cannot_be_read_is_refused(change, message):
    with pytest.raises(GoldError, match=re.escape(message)):
        FORMAT.read_gold("2", {"category": "lab", "lower_limit": "1", "upper_limit": "3", **change})


# MEDEC, as HELM reads it.


MEDEC = answer_format({"kind": "medec"})
FAULTY = "12 Oral azithromycin is given."
ACCURACIES = ("medec_error_flag_accuracy", "medec_error_sentence_accuracy")


def medec_results(gold: str, reply: str, *, cot: bool = False) -> dict:
    document = documents([MEDEC.read_gold(gold, {})], language="en")
    answer = MEDEC.read(reply, document[0], cot=cot).answer
    return {name: values[0] for name, values in columns(generation.process_medec, document, [answer]).items()}


def accuracies(gold: str, reply: str) -> tuple[float, ...]:
    got = medec_results(gold, reply)
    assert got["score"] == got["medec_error_flag_accuracy"]
    return tuple(got[name] for name in ACCURACIES)


def plain_medec(gold: str, reply: str) -> tuple[int, int]:
    """HELM's two accuracies, written down from their description alone."""
    gold, reply = gold.replace(".", "").strip(), reply.strip()
    gold_flag = int(gold != "CORRECT")
    try:
        gold_sentence = int(gold)
    except ValueError:
        gold_sentence = -1
    flag, digits = int(reply != "CORRECT"), re.match(r"\d+", reply)
    sentence = int(digits.group()) if digits else -2
    if gold_flag != flag:
        return 0, 0
    return 1, int(not gold_flag or sentence == gold_sentence)


@pytest.mark.parametrize(
    ("gold", "reply", "expected"),
    [
        ("CORRECT", " CORRECT\n", (1, 1)), ("CORRECT", "CORRECT.", (0, 0)), ("CORRECT", "", (0, 0)),
        (FAULTY, FAULTY, (1, 0)), (FAULTY, "12", (1, 0)),  # HELM cannot read the number in its own gold
        (FAULTY, "CORRECT", (0, 0)), (FAULTY, "", (1, 0)),  # saying nothing counts as reporting an error
        ("12", "12 Oral azithromycin is given.", (1, 1)), ("12", "١٢ x", (1, 1)), ("12", "-12 x", (1, 0)),
    ],
)  # fmt: skip
def test_worked_cases_of_medec(gold, reply, expected):
    assert accuracies(gold, reply) == expected
    assert plain_medec(gold, reply) == expected


MEDEC_REPLIES = st.one_of(
    st.sampled_from(["CORRECT", "CORRECT.", FAULTY, "12", ""]),
    st.tuples(st.integers(0, 30), st.text(max_size=12)).map(lambda reply: f"{reply[0]} {reply[1]}"),
    st.text(max_size=20),
)


@given(st.sampled_from(["CORRECT", FAULTY, "12", "0 It is."]), MEDEC_REPLIES)
def test_accuracies_of_medec_are_helms(gold, reply):
    assert accuracies(gold, reply) == plain_medec(gold, reply)


@pytest.mark.parametrize(
    ("reply", "correction"),
    [
        (FAULTY, "Oral azithromycin is given."),
        ("3 Oral azithromycin is recommended.", "Oral azithromycin is recommended."), ("12", ""),
        ("CORRECT", ""), ("Oral azithromycin is given.", ""),
    ],
)  # fmt: skip
def test_the_correction_is_compared_by_rouge_over_the_notes_with_an_error(reply, correction):
    types = ["rouge1", "rouge2", "rougeL"]
    wanted = RougeScorer(types, use_stemmer=False).score("Oral azithromycin is given.", correction)
    got = medec_results(FAULTY, reply)
    assert [got[f"correction_{name}"] for name in types] == [
        (pytest.approx(wanted[name].fmeasure), 1) for name in types
    ]


def test_gold_that_names_no_sentence_is_refused():
    with pytest.raises(GoldError, match="neither CORRECT nor begins with a sentence's number"):
        MEDEC.read_gold("Oral azithromycin is given.", {})
