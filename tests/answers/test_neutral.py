"""Kinds of answers that belong to no paper: read in any language and script, scored as other libraries do."""

from __future__ import annotations

import csv
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import yaml
from babel import Locale
from babel.lists import format_list

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.answers.languages import LISTS as GROUPS
from medtasks_ext.answers.languages import languages, own_groups, sources, words_of
from medtasks_ext.answers.tolerant.folding import folded, plain
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.generation import tokeniser
from tests.answers.replies import (
    NONE,
    written_before,
    written_fifth,
    written_for_mending,
    written_fourth,
    written_later,
    written_second,
    written_seventh,
    written_sixth,
    written_third,
)
from tools.language_words import SOUGHT, of_lm_eval, stands

#: our codes -> those of CLDR
_CLDR = {"tl": "fil", "no": "nb", "arz": "ar_EG"}
_NAMES = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
#: numbering systems of CLDR with digits of their own -> their script in the Unicode Character Database
_SCRIPTS = {
    "arab": "ARABIC-INDIC", "arabext": "EXTENDED ARABIC-INDIC", "beng": "BENGALI", "deva": "DEVANAGARI",
    "gujr": "GUJARATI", "guru": "GURMUKHI", "knda": "KANNADA", "tamldec": "TAMIL", "telu": "TELUGU",
    "thai": "THAI",
}  # fmt: skip


def read(block: dict, text: str, **row) -> object:
    document = {**row, "gold": None, "target": ""}
    return answer_format(block).read_repaired(text, document, cot=False)["answer"]


# ---------------------------------------------------------------------- replies


def test_a_hundred_replies_in_each_of_twelve_languages():
    counts = Counter(item.language for item in written_before())
    assert len(counts) == 12 and set(counts.values()) == {100}


@pytest.mark.parametrize("language", sorted({item.language for item in written_before()}))
def test_less_than_one_reply_in_a_hundred_is_misread(language):
    wrong = [
        (item.text, item.gold, read)
        for item in written_before()
        if item.language == language and (read := item.read()) != item.gold
    ]
    assert not wrong


#: set of replies in first_readings.csv -> its replies
SETS = {
    "later": written_later, "second": written_second, "third": written_third, "fourth": written_fourth,
    "fifth": written_fifth, "sixth": written_sixth, "models": written_for_mending, "seventh": written_seventh,
}  # fmt: skip


def record() -> dict[str, dict[str, str]]:
    """Set -> its line of the record of first readings."""
    with (Path(__file__).parent / "first_readings.csv").open(encoding="utf-8", newline="") as file:
        return {line["set"]: line for line in csv.DictReader(file) if line["set"]}


@pytest.mark.parametrize("name", SETS)
def test_the_record_of_readings_says_how_a_set_is_read_now(name):
    line, items = record()[name], SETS[name]()
    read_as = [(item, item.read()) for item in items]
    wrong = [item for item, read in read_as if read not in (item.gold, NONE)]
    unread = [item for item, read in read_as if read == NONE != item.gold]
    now = (len(items), len(wrong), len(unread))
    assert now == (int(line["number"]), int(line["wrong_now"]), int(line["unread_now"])), (wrong, unread)


def test_the_seventh_set_has_a_hundred_replies_in_each_of_twelve_languages():
    counts = Counter(item.language for item in written_seventh())
    assert len(counts) == 12 and set(counts.values()) == {100}


@pytest.mark.parametrize("item", [*written_before(), *written_later()][::7], ids=lambda item: item.language)
def test_the_place_of_an_answer_lies_in_the_reply(item):
    found = answer_format(item.spec).read_repaired(
        item.text, {**dict(item.block), "gold": None, "target": ""}, cot=False
    )
    if found["answer"] is not None and found["span"]:
        begin, end = found["span"]
        assert 0 <= begin < end <= len(item.text)


# ---------------------------------------------------------------------- words


#: the thirty largest by speakers, first and second language together (Ethnologue 2025)
LARGEST = {
    "en", "zh", "hi", "es", "ar", "fr", "bn", "pt", "ru", "id", "ur", "de", "ja", "pcm", "arz",
    "mr", "vi", "te", "ha", "tr", "pnb", "sw", "tl", "ta", "yue", "wuu", "fa", "ko", "th", "jv",
}  # fmt: skip


def test_the_thirty_largest_languages_have_words_and_each_group_of_them_says_where_it_stands():
    assert len(LARGEST) == 30 and set(languages()) >= LARGEST
    for code, said in sources().items():
        assert set(said) <= {
            "cldr",
            "lm_eval",
            "lighteval",
            "h5p",
            "surveyjs",
            "moodle",
            "mediawiki",
            "ours",
        }, code
        public = {group for source, groups in said.items() if source != "ours" for group in groups}
        assert {*public, *said.get("ours", ())} == set(SOUGHT) & {*own_groups(code), *public}, code
        assert not public & set(said.get("ours", ())), code
    by_babel = {code for code, said in sources().items() if "decimal" in said.get("cldr", ())}
    assert set(languages()) - by_babel == {"wuu", "pnb"}


@pytest.mark.parametrize(
    "code", sorted(code for code, said in sources().items() if "decimal" in said.get("cldr", ()))
)
def test_marks_and_joining_words_are_those_of_cldr(code):
    words, locale = languages()[code], Locale.parse(_CLDR.get(code, code))
    assert locale.number_symbols["latn"]["decimal"] == words.decimal

    def joint(style: str) -> str:
        return locale.list_patterns[style]["2"].replace("{0}", "").replace("{1}", "").strip()

    assert joint("standard") in (*words.joins, "、")
    assert joint("or") in words.or_


@pytest.mark.parametrize("code", sorted(set(languages()) - {"wuu", "pnb"}))
def test_what_cldr_writes_in_a_language_is_read(code):
    """Lists as its patterns join them; numbers in the language's digits, with their own mark of decimals."""
    locale = Locale.parse(_CLDR.get(code, code))
    options, several = ["A", "B", "C", "D"], {"language": code, "labels": ["A", "B", "C", "D"]}
    three = format_list(["A", "C", "D"], "standard", locale)
    assert read({"kind": "choices", **several}, three) == ["A", "C", "D"]
    names = {"kind": "labels", "language": code, "labels": ["fever", "cough", "rash"]}
    pattern = locale.list_patterns["standard-short" if code == "yo" else "standard"]
    two = pattern.get("2", pattern["end"])  # the long Yoruba one lacks a blank, its short one has it
    assert read(names, two.format("fever", "cough")) == ["fever", "cough"]
    assert read({"kind": "choice", **several}, format_list(options[:2], "or", locale)) is None
    system = locale.other_numbering_systems.get("native", "latn")
    script = _SCRIPTS.get(system)
    digits = [unicodedata.lookup(f"{script} DIGIT {name}") for name in _NAMES] if script else "0123456789"
    decimal = locale.number_symbols.get(system, {}).get("decimal") or languages()[code].decimal
    assert read({"kind": "number", "language": code}, f"{digits[3]}{digits[7]}{decimal}{digits[5]}") == 37.5


@pytest.mark.parametrize("code", sorted(languages()))
def test_words_that_are_said_to_stand_in_tasks_of_lm_eval_stand_there(code):
    found = {said.group for said in of_lm_eval(code) if stands(said, code)}
    assert set(sources()[code].get("lm_eval", ())) == found


def test_words_are_texts_and_none_is_a_truth_value_of_yaml():
    for code, words in languages().items():
        for group in GROUPS:
            assert all(isinstance(word, str) and plain(word) for word in getattr(words, group)), (code, group)


@pytest.mark.parametrize("code", sorted(languages()))
def test_letters_of_a_language_are_told_apart_and_of_one_script(code):
    labels = languages()[code].labels
    assert len({plain(label) for label in labels}) == len(labels) >= 10
    assert len({unicodedata.name(label).split()[0] for label in labels}) == 1
    clash = {plain(word) for word in words_of(code).yes} & {plain(word) for word in words_of(code).no}
    assert not clash


@pytest.mark.parametrize("code", sorted(languages()))
def test_each_language_reads_its_own_letters_behind_its_own_words(code):
    words = languages()[code]
    labels = list(words.labels[:4])
    block = {"kind": "choice", "language": code, "labels": labels}
    options = ["aspirin 100", "heparin 200", "warfarin 300", "alteplase 400"]
    for place, label in enumerate(labels):
        for noun in words.answer[:2]:
            assert read(block, f"{noun}: {label}", options=options) == label
            assert read(block, f"{noun}： ({label})", options=options) == label
        assert read(block, options[place], options=options) == label
        assert read(block, f"{label}. {options[place]}", options=options) == label
    for name, word in (("yes", words.yes[0]), ("no", words.no[0])):
        either = {"kind": "category", "language": code, "labels": [words.yes[0], words.no[0]]}
        assert read(either, f"{words.answer[0]}: {word}") == word, name


def test_a_language_without_words_has_english_ones_and_says_so():
    block = {"kind": "choice", "language": "mi"}
    assert read(block, "Answer: B", options=["a 1", "b 2"]) == "B"
    assert "no words of the language 'mi' are known" in answer_format(block).unknown_language()
    told = {**block, "words": {"answer": ["whakautu"], "filler": ["ko"]}}
    assert not answer_format(told).unknown_language()
    assert read(told, "A, B pea. Whakautu: ko B", options=["a 1", "b 2"]) == "B"
    assert read(told, "Whakautu ko B", options=["a 1", "b 2"]) == "B"
    assert not answer_format({**block, "language": "sv"}).unknown_language()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"answers": ["x"]}, "did you mean answer"),
        ({"yes": []}, "write one word or more"),
        ({"no": [" "]}, "one word"),
    ],
)
def test_words_that_are_none_are_refused(words, said):
    with pytest.raises(MedtasksError, match=said):
        answer_format({"kind": "choice", "language": "mi", "words": words})


# ---------------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    ("text", "plain_form"),
    [
        ("Ｂ", "b"), ("٣", "3"), ("३", "3"), ("③", "3"), ("إجابة", "اجابه"), ("نَعَم", "نعم"), 
        ("الإجابـة", "الاجابه"),
        ("Réponse", "reponse"), ("ЁЖ", "еж"), ("й", "й"), ("हाँ", "हां"), ("\u200fب\u200e", "ب"), ("İ", "i"),
    ],
)  # fmt: skip
def test_what_people_take_for_the_same_is_the_same(text, plain_form):
    assert plain(text) == plain_form
    form = folded(text)
    assert len(form.places) == len(form.text) + 1 and form.places[-1] == len(text)


@pytest.mark.parametrize("labels", [["A", "А"], ["A", "B", "С"], ["a", "ب"]])
def test_labels_of_two_scripts_are_refused(labels):
    with pytest.raises(MedtasksError, match="are of two scripts: use one"):
        answer_format({"kind": "choice", "labels": labels})


@pytest.mark.parametrize("labels", [["A", "Ａ"], ["①", "1"], ["ا", "أ"]])
def test_labels_that_fold_to_one_letter_are_refused(labels):
    with pytest.raises(MedtasksError, match="are the same letter to a reader: use others"):
        answer_format({"kind": "choice", "labels": labels})


def test_options_of_the_same_text_are_refused_by_their_letters():
    form = answer_format({"kind": "choice", "labels": ["أ", "ب", "ج"], "language": "ar"})
    with pytest.raises(GoldError, match="options أ and ج have the same text: correct the row"):
        form.read_gold("أ", {"options": ["الأسبرين", "هيبارين", "الاسبرين"]})
    with pytest.raises(GoldError, match="4 options, and 3 labels"):
        form.read_gold("أ", {"options": list("1234")})
    with pytest.raises(GoldError, match="is none of أ, ب, ج, and no option's text"):
        form.read_gold("د", {"options": list("123")})
    assert form.read_gold("هيبارين", {"options": ["الأسبرين", "هيبارين", "وارفارين"]}) == "ب"


@pytest.mark.parametrize(
    ("language", "text"),
    [("ja", "血圧が下がる"), ("ar", "انخفاض ضغط الدم"), ("ru", "падает давление"), ("th", "ความดันต่ำ"),
     ("el", "πίεση"),
     ("zh", "血压下降"), ("ko", "혈압 저하"), ("hi", "रक्तचाप गिरना")],
)  # fmt: skip
def test_every_script_has_tokens(language, text):
    tokenise = tokeniser(language)
    if tokenise is not None:  # of the suites' own languages NLTK's data may not be installed
        assert tokenise(text)


# ---------------------------------------------------------------------- lists and texts

LISTS = yaml.safe_load((Path(__file__).parent / "replies_lists.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("block", "text", "gold"),
    [(block, *reply) for block in LISTS for reply in block["replies"]],
    ids=lambda item: item["language"] if isinstance(item, dict) else "",
)
def test_several_labels_and_mentions_are_read_in_any_script(block, text, gold):
    keys = ("kind", "language", "labels", "nothing")
    spec = {key: block[key] for key in keys if key in block}
    answer = read(spec, text, prompt=block.get("prompt", ""))
    if gold == "?":
        assert answer is None
    else:
        wanted = gold.replace("; ", "\n") if gold != "none" else block["nothing"]
        assert answer == answer_format(spec).read_gold(wanted, {})


def test_a_gold_label_outside_the_list_and_an_empty_one_are_refused():
    form = answer_format({"kind": "labels", "labels": ["fever", "cough"]})
    with pytest.raises(GoldError, match="'pain' is not one of: fever, cough"):
        form.read_gold("fever, pain", {})
    with pytest.raises(GoldError, match="write the labels with commas between, or none"):
        form.read_gold(" ", {})
    with pytest.raises(GoldError, match="write one mention on each line, or none"):
        answer_format({"kind": "spans"}).read_gold("", {})


@pytest.mark.parametrize(
    ("language", "text", "answer"),
    [
        ("ar", "أفكر أولاً.\nالجواب: اشرب الماء.\nواسترح.", "اشرب الماء.\nواسترح."),
        ("ja", "まず考えます。\n答え：水を飲んでください。", "水を飲んでください。"),
        ("fr", "Je réfléchis.\n**Réponse finale :** Buvez de l'eau.", "Buvez de l'eau."),
        ("de", "Ich denke nach.\nResult: Trinken Sie.", "Trinken Sie."),
        ("en", "```\nDrink water.\n```", "Drink water."),
    ],
)
def test_a_text_is_what_follows_its_announcement(language, text, answer):
    form = answer_format({"kind": "prose", "language": language})
    found = form.read_repaired(text, {"gold": None, "target": ""}, cot=True)
    assert found["answer"] == answer
    assert text[slice(*found["span"])].strip() == answer
