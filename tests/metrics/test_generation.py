"""ROUGE, BLEU and BERTScore: the reference packages' values with the suite's tokenisers."""

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


def reference_scorer(language: str) -> RougeScorer:
    """`rouge_score` with one token per character but the blank for Chinese, its own words for English."""
    characters = SimpleNamespace(tokenize=lambda text: [character for character in text if character != " "])
    return RougeScorer(ROUGE, use_stemmer=False, tokenizer=characters if language == "zh" else None)


def scored(process, answer: str | dict, gold: str | list[str], language: str = "en") -> dict[str, float]:
    got = columns(process, documents([gold], language=language), [answer])
    return {name: values[0] for name, values in got.items()}


def generated(answer: str | dict, references: list[str], language: str = "zh") -> dict[str, float]:
    return scored(generation.process_text, answer, references, language)


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


# ROUGE and BERTScore of open-ended answers: the reference package's values, no score before judges.


STEMMED = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
STEMMER = RougeScorer(list(STEMMED.values()), use_stemmer=True)
STEMS = ["medicat", "infect", "inflamm", "resect", "treat", "stabil", "die", "generaliz", "ulcer", "oxygen"]
ENDINGS = [
    "", "s", "ed", "ing", "ion", "ions", "ation", "ational", "ies", "ness", "ful", "ly", "izer", "ment",
]  # fmt: skip
INFLECTED = st.lists(
    st.builds("".join, st.tuples(st.sampled_from(STEMS), st.sampled_from(ENDINGS)))
    | st.sampled_from(["The", "b.i.d.", "5mg", "{", "}", "x-ray", "é", "K", "skies", "dying", "news"]),
    min_size=1,
    max_size=25,
).map(" ".join)


@given(INFLECTED | st.text(max_size=60), INFLECTED | st.text(max_size=60))
def test_rouge_is_that_of_the_reference_package_with_stemming(text, reference):
    expected = STEMMER.score(reference, text)
    got = scored(generation.process_open_ended, text, reference)
    assert [got[name] for name in STEMMED] == [expected[kind].fmeasure for kind in STEMMED.values()]


@pytest.fixture
def bert_score(monkeypatch):
    """A stand-in for the package that rates a text by its length. Returns the calls it got."""
    calls = []

    def score(texts, references, **model):
        calls.append((texts, references, *model.values()))
        rated = [[len(text) * part / 100 for text in texts] for part in (1, 2, 3)]
        return [SimpleNamespace(tolist=lambda values=values: values) for values in rated]

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=score))
    monkeypatch.setenv("MEDTASKS_BERTSCORE", "1")
    generation.bert_scores.cache_clear()
    yield calls
    generation.bert_scores.cache_clear()


@pytest.mark.parametrize(("language", "model"), [("zh", "zh"), ("en", "en"), ("fr", "other")])
def test_bertscore_leaves_empty_answers_out_of_the_call_and_counts_them_0(bert_score, language, model):
    items = [
        ("a", ["b"], language), ("", ["c"], language), ("d", ["e", "f"], language), ("", ["g"], language),
    ]  # fmt: skip
    assert generation.bertscore_f1(items) == pytest.approx(0.03 / 2)
    assert bert_score == [(["a", "d"], [["b"], ["e", "f"]], model)]
    assert generation.bertscore_f1([("", ["b"], language)]) == 0
    assert len(bert_score) == 1


def test_bertscore_takes_the_model_of_helm_and_counts_empty_answers_as_0(bert_score):
    docs = documents(["one", "{two}", "three"], language="en")
    got = columns(generation.process_open_ended, docs, ["ab", INVALID, "{abcd}"])
    parts = [generation.bertscore_p, generation.bertscore_r, generation.bertscore_f]
    values = [part(got[f"BERTScore-{name}"]) for part, name in zip(parts, "PRF", strict=True)]
    assert values == pytest.approx([0.02, 0.04, 0.06])
    # one call for all three, one brace less at either end
    assert bert_score == [(["ab", "abcd"], [["one"], ["three"]], "distilbert-base-uncased")]


# ROUGE-L of reports: the reference package's.


REPORT_SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
REPORT_WORDS = st.lists(
    st.sampled_from(
        ["No", "no", "acute", "effusion.", "effusion", "1.", "x-ray", "", "\n", "é", "effusions", "\ud800"]
    ),
    max_size=20,
).map(" ".join)


@given(REPORT_WORDS | st.text(max_size=60), REPORT_WORDS.filter(str.strip))
def test_rouge_is_that_of_the_reference_package_without_stemming(text, reference):
    text, reference = (item.encode(errors="replace").decode() for item in (text, reference))
    expected = REPORT_SCORER.score(reference, text)
    got = scored(generation.process_report, text, reference)
    for name in ("rouge1", "rouge2", "rougeL"):
        assert got[name] == pytest.approx(expected[name].fmeasure, abs=1e-12)
    assert got["score"] == got["rougeL"]


def coco(text: str, reference: str) -> float:
    """pycocoevalcap's, written out plainly."""
    given, wanted = (item.replace("\n", " ").split(" ") for item in (text, reference))
    row = [0] * (len(wanted) + 1)
    for token in given:
        before, row = row, [0]
        for place, own in enumerate(wanted):
            row.append(before[place] + 1 if token == own else max(before[place + 1], row[place]))
    precision, recall = row[-1] / len(given), row[-1] / len(wanted)
    return 2.44 * precision * recall / (recall + 1.44 * precision) if row[-1] else 0.0


@given((REPORT_WORDS | st.text(max_size=60)).filter(bool), REPORT_WORDS.filter(str.strip))
def test_the_coco_variant_counts_case_and_punctuation_and_weighs_recall(text, reference):
    plain = [item.encode(errors="replace").decode() for item in (text, reference)]
    got = scored(generation.process_report, text, reference)
    assert got["rougeL_coco"] == pytest.approx(coco(*plain), abs=1e-12)


def test_the_words_of_a_report_are_counted():
    assert scored(generation.process_report, "no acute disease", "No disease.")["output_words"] == 3
