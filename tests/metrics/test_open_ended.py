"""ROUGE and BERTScore of open-ended answers: the reference package's values, no score before judges."""

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics import generation
from tests.metrics.build import INVALID, columns, documents

ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
REFERENCE = RougeScorer(list(ROUGE.values()), use_stemmer=True)
BERTSCORE = ["BERTScore-P", "BERTScore-R", "BERTScore-F"]
STEMS = ["medicat", "infect", "inflamm", "resect", "treat", "stabil", "die", "generaliz", "ulcer", "oxygen"]
ENDINGS = [
    "", "s", "ed", "ing", "ion", "ions", "ation", "ational", "ies", "ness", "ful", "ly", "izer", "ment",
]  # fmt: skip
WORDS = st.lists(
    st.builds("".join, st.tuples(st.sampled_from(STEMS), st.sampled_from(ENDINGS)))
    | st.sampled_from(["The", "b.i.d.", "5mg", "{", "}", "x-ray", "é", "K", "skies", "dying", "news"]),
    min_size=1,
    max_size=25,
).map(" ".join)


def results(answer: str | dict, reference: str, **fields: str) -> dict[str, list]:
    return columns(generation.process_open_ended, documents([reference], language="en", **fields), [answer])


@given(WORDS | st.text(max_size=60), WORDS | st.text(max_size=60))
def test_rouge_is_that_of_the_reference_package_with_stemming(text, reference):
    expected = REFERENCE.score(reference, text)
    got = results(text, reference)
    assert [got[name] for name in ROUGE] == [[expected[kind].fmeasure] for kind in ROUGE.values()]


def test_the_fast_rouge_stems_as_the_reference_does():
    rng = random.Random("stems")
    letters = "aeioustlngrdymcbz"
    for _ in range(3_000):
        stem = "".join(rng.choices(letters, k=rng.randint(2, 6)))
        text, reference = (
            " ".join(stem + rng.choice(ENDINGS) for _ in range(rng.randint(1, 3))) for _ in range(2)
        )
        plain, fast = (
            generation.stemmed_rouge_scores(text, reference, backend=backend)
            for backend in ("rouge_score", "rouge_score_rs")
        )
        assert plain == fast, (text, reference)


def test_an_empty_answer_gets_0_and_half_a_character_does_no_harm():
    assert [results(INVALID, "rest")[name] for name in ROUGE] == [[0]] * 3
    assert results("rest \ud83d", "rest")["rouge_1"] == [1]


def test_of_a_benchmark_in_runs_each_value_carries_its_run():
    assert results("rest", "rest", run="icliniq")["rouge_l"] == [("icliniq", 1)]


class Scores(list):
    """What the package returns per part, as far as it is used."""

    def tolist(self):
        return list(self)


@pytest.fixture
def bert_score(monkeypatch):
    """A stand-in for the package that rates a text by its length. Returns the calls it got."""
    calls = []

    def score(texts, references, model_type):
        calls.append((texts, references, model_type))
        lengths = [len(text) / 100 for text in texts]
        return Scores(lengths), Scores(value * 2 for value in lengths), Scores(value * 3 for value in lengths)

    module = type(sys)("bert_score")
    module.score = score
    monkeypatch.setitem(sys.modules, "bert_score", module)
    monkeypatch.setenv("MEDTASKS_BERTSCORE", "1")
    generation.bert_scores.cache_clear()
    yield calls
    generation.bert_scores.cache_clear()


def test_bertscore_is_off_unless_asked_for():
    assert not set(BERTSCORE) & set(results("rest", "rest"))


def test_bertscore_takes_the_model_of_helm_and_counts_empty_answers_as_0(bert_score):
    docs = documents(["one", "{two}", "three"], language="en")
    got = columns(generation.process_open_ended, docs, ["ab", INVALID, "{abcd}"])
    parts = [generation.bertscore_p, generation.bertscore_r, generation.bertscore_f]
    values = [part(got[name]) for part, name in zip(parts, BERTSCORE, strict=True)]
    assert values == pytest.approx([0.02, 0.04, 0.06])
    # one call for all three, one brace less at either end
    assert bert_score == [(["ab", "abcd"], [["one"], ["three"]], "distilbert-base-uncased")]


def test_bertscore_of_runs_is_the_mean_of_their_means(bert_score):
    got = [
        columns(generation.process_open_ended, documents(["x"], language="en", run=run), [answer])
        for run, answer in (("a", "ab"), ("a", "abcd"), ("b", "abcdefghi"))
    ]
    items = [item["BERTScore-F"][0] for item in got]
    assert generation.bertscore_f_of_runs(items) == pytest.approx((0.03 + 0.09) * 3 / 2)


def test_bertscore_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bert_score", None)
    generation.bert_scores.cache_clear()
    with pytest.raises(MedtasksError, match=r"medtasks\[bertscore\]"):
        generation.bertscore_f([("a", "b")])
