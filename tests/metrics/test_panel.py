"""A choice scored against the votes of experts: any scale, any number of experts."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers.choices import PanelRating
from medtasks_ext.answers.formats import GoldError
from medtasks_ext.metrics import choice
from tests.metrics.build import INVALID, columns, documents

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


@given(votes_of(), st.integers(2, 9))
def test_the_number_of_experts_plays_no_part(drawn, times):
    values, votes = drawn
    assert worth(values, [n * times for n in votes]) == pytest.approx(worth(values, votes))


@given(votes_of(), st.data())
def test_another_vote_for_a_choice_never_lowers_it(drawn, data):
    values, votes = drawn
    place = data.draw(st.integers(0, len(values) - 1))
    more = [n + (at == place) for at, n in enumerate(votes)]
    assert worth(values, more)[str(values[place])] >= worth(values, votes)[str(values[place])]


@given(votes_of())
def test_an_unreadable_answer_gets_nothing(drawn):
    got = credits(worth(*drawn), INVALID)
    assert got["score"] == got["in_panel"] == got["modal"] == [0.0]


@pytest.mark.parametrize(
    "votes",
    [None, [], [1, 2], [0, 0, 0], [1, -1, 0], [1, "2", 0], [float("nan"), 1, 0], [4, 7.25, 0], [0.3, 0.3, 0]],
)
def test_what_is_no_vote_of_experts_is_refused(votes):
    answers = PanelRating(kind="panel_rating", values=[-1, 0, 1], votes="experts")
    with pytest.raises(GoldError, match=r"experts (has|of -?\d are|are)"):
        answers.read_gold("Rating: 0", {"experts": votes})


@pytest.mark.parametrize("votes", [[0.2, 0.67, 0.13], [33.3, 66.7, 0], [0.25, 1, 0.5], [3.0, 12.0, 0.0]])
def test_shares_of_the_panel_are_worth_what_its_votes_are(votes):
    assert worth([-1, 0, 1], votes) == {
        str(value): pytest.approx(share / max(votes)) for value, share in zip((-1, 0, 1), votes, strict=True)
    }
