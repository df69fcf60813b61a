"""Two hundred answers of a real model are read as an author read them before, but for some."""

import pytest

from tests.answers.real import NONE, real_answers

ANSWERS = list(real_answers())
#: place -> why the reader does not find what the author read; tests/answers/real counts them
STAY = {
    15: "a class of drugs before a colon is taken for the drug",
    24: "a sentence says that there is none, in words of its own",
    85: "prose that says no without the word",
    88: "a letter at the beginning counts against another one that is recommended later",
    90: "prose that says no without the word",
    96: "prose that says yes without the word",
    118: "an answer line names what is no label: read, and wrong",
    121: "the definitions of the labels are repeated behind their names",
    145: "a list of all options is begun again and cut behind its first line",
    147: "two numbers, of which the second is the result",
    151: "two numbers, of which the second is the result",
    168: "a label within a sentence does not count",
    186: "the form of the answer is repeated from the prompt",
    188: "the question is repeated as the answer",
}


def test_they_are_of_all_suites_and_kinds():
    assert len(ANSWERS) == 200
    assert {item.suite for item in ANSWERS} == {"bridge", "medhelm", "clinicbench", "mlb"}
    kinds = {item.kind for item in ANSWERS}
    assert {"label", "exact_letter", "option_letter", "event_lines", "tuples", "sql", "medec"} <= kinds
    assert 20 < sum(item.said != NONE for item in ANSWERS) < 180


@pytest.mark.parametrize("item", ANSWERS, ids=lambda item: f"{item.place}-{item.task}")
def test_it_is_read_as_the_author_read_it(item):
    assert item.agrees == (item.place not in STAY), (item.read(), item.said, item.response)
