"""ROUGE, BLEU and BERTScore: the reference packages' values with the suite's tokenisers."""

import random
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from medtasks_ext.answers import answer_format
from medtasks_ext.metrics import generation
from tests.metrics.build import INVALID, columns, documents

ROUGE = ["rouge1", "rouge2", "rougeL"]
CHINESE = st.text("患者发热咳嗽三天，。 ab1\n", min_size=1, max_size=40).filter(lambda text: text.strip())
ENGLISH = st.lists(
    st.sampled_from(["the", "patient", "has", "fever,", "Cough", "x-ray", "é", "10mg", "K", "。"]),
    min_size=1,
    max_size=20,
).map(" ".join)
TEXTS = {"zh": CHINESE, "en": ENGLISH}
ANY = {"zh": st.text(max_size=60), "en": st.text(max_size=60)}


def reference_scorer(language: str) -> RougeScorer:
    """`rouge_score` with one token per character but the blank for Chinese, its own words for English."""
    characters = SimpleNamespace(tokenize=lambda text: [character for character in text if character != " "])
    return RougeScorer(ROUGE, use_stemmer=False, tokenizer=characters if language == "zh" else None)


def generated(answer: str | dict, references: list[str], language: str = "zh") -> dict[str, float]:
    got = columns(generation.process_text, documents([references], language=language), [answer])
    return {name: values[0] for name, values in got.items()}


@pytest.mark.parametrize("language", TEXTS)
def test_rouge_avg_is_the_mean_f_measure_of_three_types(language):
    @given(TEXTS[language], TEXTS[language])
    def agree(text, reference):
        expected = reference_scorer(language).score(reference, text)
        got = generated(text, [reference], language)
        for name in ROUGE:
            assert got[name] == expected[name].fmeasure
        assert got["rouge_avg"] == pytest.approx(
            sum(expected[name].fmeasure for name in ROUGE) / 3, abs=1e-15
        )
        assert got["score"] == got["rouge_avg"]

    agree()


@pytest.mark.parametrize("language", ANY)
def test_the_fast_rouge_gives_exactly_the_scores_of_the_reference(language):
    spell = generation.rouge_spelling(language)
    scorers = [generation.rouge_scorer(backend) for backend in ("rouge_score", "rouge_score_rs")]

    def agree(text, references):
        spelled = [spell(reference) for reference in references]
        plain, fast = (scorer.score_multi(spelled, spell(text)) for scorer in scorers)
        assert {name: tuple(plain[name]) for name in ROUGE} == {name: tuple(fast[name]) for name in ROUGE}

    rng = random.Random(f"rouge {language}")
    words = (
        "患者发热咳嗽三天伴胸痛，。"
        if language == "zh"
        else ["the ", "patient ", "Fever, ", "x-ray ", "K ", "10mg "]
    )
    for _ in range(400):
        text, *references = (
            "".join(rng.choices(words, k=rng.randint(1, 80))) for _ in range(rng.randint(2, 4))
        )
        agree(text, references)
    given(ANY[language], st.lists(ANY[language], min_size=1, max_size=3))(agree)()


@pytest.mark.parametrize(
    ("n", "value"), [(1, 0.1925), (2, 0.4359), (3, 0.7467), (4, 1.0106), (5, 1.1167), (9, 1.1167)]
)
def test_bleu_of_identical_texts_is_not_capped(n, value):
    text = "患者发热咳嗽三天伴"[:n]
    assert generated(text, [text])["bleu_4"] == pytest.approx(value, abs=5e-5)


@given(CHINESE, st.lists(CHINESE, min_size=1, max_size=3))
def test_bleu_is_that_of_nltk_with_smoothing_7(text, references):
    characters = [[c for c in item if c != " "] for item in (text, *references)]
    expected = sentence_bleu(
        characters[1:], characters[0], weights=[0.25] * 4, smoothing_function=SmoothingFunction().method7
    )
    assert generated(text, references)["bleu_4"] == float(expected)


@pytest.mark.parametrize("language", TEXTS)
def test_an_empty_answer_scores_0_on_every_metric(language):
    empty = answer_format({"kind": "text"}).read("<think>x</think> ", {}, cot=False)
    assert (empty.answer, empty.valid) == (None, False)
    got = generated(INVALID, ["发热"], language)
    assert {got[name] for name in ["score", "rouge_avg", *ROUGE]} == {0}
    assert got.get("bleu_4", 0) == 0
    assert got["valid"] == 0


def test_an_answer_without_any_token_scores_0():
    assert generated("！", ["fever"], "en")["score"] == 0


def test_of_several_references_each_rouge_type_takes_the_best():
    alone = [generated("发热咳嗽", [reference]) for reference in ("咳嗽发热", "头痛", "发热")]
    together = generated("发热咳嗽", ["咳嗽发热", "头痛", "发热"])
    for name in ROUGE:
        assert together[name] == max(got[name] for got in alone)
    assert together["rouge_avg"] > max(got["rouge_avg"] for got in alone)
    assert generated("发热咳嗽五天", ["头痛", "发热咳嗽五天"])["bleu_4"] == pytest.approx(1.1167, abs=5e-5)


def test_without_punkt_data_english_keeps_rouge_and_french_has_no_score(no_punkt, caplog):
    english, french = (generated("fever", ["fever"], language) for language in ("en", "fr"))
    assert english["rouge1"] == 1
    assert "bleu_4" not in english
    assert not {"score", "rouge_avg", "bleu_4"} & set(french)
    assert french["scored"] == french["valid"] == 1
    assert "python -m nltk.downloader punkt_tab" in caplog.text


def test_passages_are_scored_one_by_one_and_a_missing_one_is_0():
    docs = documents([["发热咳嗽", "头痛"]])
    got = columns(generation.process_passages, docs, [["发热咳嗽", ""]])
    assert got["rouge_avg"] == got["score"] == [0.5]
    assert got["bleu_4"][0] == pytest.approx(1.0106 / 2, abs=5e-5)
    assert columns(generation.process_passages, docs, [INVALID])["score"] == [0]


def test_bertscore_is_off_unless_asked_for(monkeypatch):
    monkeypatch.delenv("MEDTASKS_BERTSCORE", raising=False)
    assert "bertscore_f1" not in generated("发热", ["发热"])
    monkeypatch.setenv("MEDTASKS_BERTSCORE", "1")
    assert generated("发热", ["发热"])["bertscore_f1"] == ("发热", ["发热"], "zh")


@pytest.mark.parametrize(
    ("language", "model"), [("zh", "zh"), ("en", "en"), ("fr", "other"), ("ja", "other")]
)
def test_bertscore_leaves_empty_answers_out_of_the_call_and_counts_them_0(monkeypatch, language, model):
    calls = []

    def score(texts, references, lang):
        calls.append((texts, references, lang))
        return [SimpleNamespace(tolist=lambda: [0.5] * len(texts))] * 3

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=score))
    items = [
        ("a", ["b"], language), ("", ["c"], language), ("d", ["e", "f"], language), ("", ["g"], language),
    ]  # fmt: skip
    assert generation.bertscore_f1(items) == 0.25
    assert calls == [(["a", "d"], [["b"], ["e", "f"]], model)]
    assert generation.bertscore_f1([("", ["b"], language)]) == 0
    assert len(calls) == 1
