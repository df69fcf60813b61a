"""MedHELM's exact match and its kin, and MLB's accuracy over permuted options."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers.choices import PanelRating
from medtasks_ext.answers.formats import GoldError
from medtasks_ext.metrics import choice, repeats
from tests.metrics.build import INVALID, columns, documents, mean

KIN = ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"]


def helm(reply: str, options: list[str], gold: str = "A") -> list[float]:
    got = columns(choice.process_choice, documents([gold], options=options), [reply])
    assert got["score"] == got["exact_match"]
    return [got[name][0] for name in KIN]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("A", [1, 1, 1, 1]), ("B", [0, 0, 0, 0]),
        ("A. yes", [0, 0, 0, 0]),  # mapped to nothing
        ("(A)", [0, 0, 0, 0]), ("a", [0, 0, 0, 0]), ("yes", [0, 0, 0, 0]), ("Answer: A", [0, 0, 0, 0]),
        ("AB", [0, 0, 0, 0]), ("A B", [0, 0, 0, 0]), ("C", [0, 0, 0, 0]), ("", [0, 0, 0, 0]),
        ("**A**", [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_a_reply_is_right_when_it_is_the_letter_alone(reply, expected):
    assert helm(reply, ["yes", "no"]) == expected


@pytest.mark.parametrize(
    ("gold_text", "chosen_text", "expected"),
    [
        ("heparin", "heparin", [1, 1, 1, 1]),  # two options of the same text: texts are compared
        ("heparin ", "heparin", [1, 1, 1, 1]), ("The heart.", "heart", [0, 1, 0, 1]),
        ("Heart", "heart", [0, 1, 0, 1]), ("heparin", "heparin and rest", [0, 0, 1, 1]),
        ("heparin and rest", "heparin", [0, 0, 0, 0]), ("Heparin", "heparin, rest", [0, 0, 0, 1]),
        ("the", "heparin", [0, 0, 0, 1]),  # nothing is left of the gold, and anything begins with nothing
        ("heparin", "", [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_the_letter_is_mapped_to_its_text_and_texts_are_compared(gold_text, chosen_text, expected):
    assert helm("B", [gold_text, chosen_text]) == expected


OPTIONS = ["x", "y", "z"]
TRIALS = st.tuples(*[st.sampled_from([["x"], ["y"], ["x", "y"], None])] * 3)


def asked(questions: list[tuple], gold: tuple[str, ...] = ("x",)) -> dict[str, list]:
    """The results of questions, each given as the answers of its trials (None: unreadable)."""
    docs, answers = documents([list(gold)] * sum(map(len, questions)), options=OPTIONS), []
    for number, trials in enumerate(questions):
        for trial, answer in enumerate(trials):
            docs[len(answers)].update(item=str(number), trial=trial)
            answers.append(INVALID if answer is None else answer)
    return columns(repeats.process_results, docs, answers)


@given(st.lists(TRIALS, min_size=1, max_size=8))
def test_permutation_metrics_are_those_of_a_plain_count(questions):
    got = asked(questions)
    n = len(questions)
    all_right = sum(all(answer == ["x"] for answer in trials) for trials in questions)
    pairs = [pair for trials in questions for pair in combinations(trials, 2)]
    agreeing = sum(one is not None and one == other for one, other in pairs)
    assert repeats.accuracy_all3(got["score"]) == pytest.approx(all_right / n)
    assert got["accuracy_all3"] == got["score"]
    first = sum(trials[0] == ["x"] for trials in questions)
    assert repeats.single_trial_accuracy(got["single_trial_accuracy"]) == pytest.approx(first / n)
    right = sum(answer == ["x"] for trials in questions for answer in trials)
    assert mean(got["mean_trial_accuracy"]) == pytest.approx(right / (3 * n))
    assert repeats.position_consistency(got["position_consistency"]) == pytest.approx(agreeing / (3 * n))


def test_a_question_cut_by_a_limit_is_left_out():
    got = asked([(["x"], ["x"], ["x"]), (["y"], ["y"])])
    assert repeats.accuracy_all3(got["score"]) == 1
    assert repeats.accuracy_all3(got["score"][:2]) == 0  # no question asked in full


ALWAYS_A = [(letter, "A") for letter in "ABCDE"] * 3


@pytest.mark.parametrize(
    ("trials", "bias"),
    [
        (ALWAYS_A, 0.8),
        ([("A", "A"), ("A", "A"), ("A", "A"), ("BC", "BC")], 0),  # whatever the right letters are
        ([("A", "B"), ("B", "A")], 0),  # errors that cancel out
        ([("A", "A"), ("E", ""), ("E", "E")], 0),  # an unreadable answer chooses nothing
        ([("AB", "A"), ("AB", "BA")], 1 / 6),  # several right options are one set
    ],
)
def test_positions_that_a_model_prefers(trials, bias):
    docs, answers = [], []
    for number, (right, chosen) in enumerate(trials):
        options = [f"option {place}" for place in range(5)]
        [document] = documents([sorted(options["ABCDE".index(letter)] for letter in right)], options=options)
        document.update(item=str(number), trial=0)
        docs.append(document)
        answers.append(sorted(options["ABCDE".index(letter)] for letter in chosen) or INVALID)
    got = columns(repeats.process_results, docs, answers)
    assert repeats.position_bias(got["position_bias"]) == pytest.approx(bias)


# A choice scored against the votes of experts: any scale, any number of experts.


SCALES = st.lists(st.integers(-9, 9), min_size=2, max_size=7, unique=True).map(sorted)


def spelled(value: int) -> str:
    return f"Rating: {value:+d}" if value else "Rating: 0"


def worth(values: list[int], votes: list[float]) -> dict[str, float]:
    """What each value is worth, read by the format as a task file declares it."""
    answers = PanelRating(kind="panel_rating", values=values, votes="experts")
    first = values[votes.index(max(votes))]
    return answers.read_gold(spelled(first), {"experts": votes})


def credits(gold: dict[str, float], *chosen: str) -> dict[str, list[float]]:
    return columns(choice.process_panel, documents([gold] * len(chosen)), list(chosen))


@st.composite
def votes_of(draw):
    values = draw(SCALES)
    votes = draw(st.lists(st.integers(0, 30), min_size=len(values), max_size=len(values)).filter(any))
    return values, votes


@given(votes_of())
def test_a_choice_is_worth_its_votes_over_the_most_votes(drawn):
    values, votes = drawn
    got = credits(worth(values, votes), *map(str, values))
    assert got["score"] == got["panel_credit"] == [float(Fraction(n, max(votes))) for n in votes]
    assert got["in_panel"] == [float(n > 0) for n in votes]
    assert got["modal"] == [float(n == max(votes)) for n in votes]


@pytest.mark.parametrize(
    "votes",
    [None, [], [1, 2], [0, 0, 0], [1, -1, 0], [1, "2", 0], [float("nan"), 1, 0]],
)
def test_what_is_no_vote_of_experts_is_refused(votes):
    answers = PanelRating(kind="panel_rating", values=[-1, 0, 1], votes="experts")
    with pytest.raises(
        GoldError,
        match=r"experts is .*; expected 3 numbers from 0 on, .*, and not all 0",
    ):
        answers.read_gold("Rating: 0", {"experts": votes})
