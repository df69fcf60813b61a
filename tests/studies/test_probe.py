"""The rule of the contamination probe: cuts and matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.studies.contamination import CUTS, Completion, ModelTokenizer, completions, is_match
from tests.studies.contamination_models import Bytes, LooksAhead, Plain, SentencePieceWords, Words


def words(n: int) -> str:
    return " ".join(f"w{i}" for i in range(n))


def test_an_input_is_cut_at_five_places_and_five_tokens_follow():
    found = completions(words(60), Plain(Words()))
    assert [(item.cut, item.prefix.split()[-1], item.expected, item.n_tokens) for item in found] == [
        (10, "w9", " w10 w11 w12 w13 w14", 5),
        (15, "w14", " w15 w16 w17 w18 w19", 5),
        (20, "w19", " w20 w21 w22 w23 w24", 5),
        (25, "w24", " w25 w26 w27 w28 w29", 5),
        (30, "w29", " w30 w31 w32 w33 w34", 5),
    ]
    assert found[0].prefix == words(10)


def test_an_input_of_fewer_than_35_tokens_is_not_probed():
    assert completions(words(34), Plain(Words())) == []
    assert len(completions(words(35), Plain(Words()))) == 5
    assert completions("", Plain(Words())) == []


class Model:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer


def test_the_beginning_of_text_token_is_not_one_of_an_inputs_tokens():
    tokenizer = Words()
    assert len(tokenizer.encode(words(35))) == 36
    assert completions(words(34), ModelTokenizer(Model(tokenizer))) == []
    assert completions(words(35), ModelTokenizer(Model(tokenizer)))[0].prefix == words(10)


def test_a_cut_inside_a_character_moves_to_whole_characters():
    text = "患者发热三天伴咳嗽咳痰无胸痛既往体健查体双肺呼吸音粗"  # 3 bytes each, tokens of 2
    first = completions(text, Plain(Bytes(2)))[0]
    # 10 tokens are 20 bytes: back to 18, which are 9 tokens and 6 characters; 15 tokens are 10 characters
    assert first == Completion(10, text[:6], text[6:10], 6)


def test_a_prediction_runs_to_the_end_of_its_last_character():
    text = "患者发热三天伴咳嗽咳痰无胸痛既往体健查体双肺呼吸音粗"
    by_byte = completions(text, Plain(Bytes(1)))
    # cut 10: 9 bytes are 3 characters; 15 bytes are 5. cut 15: 5 characters; 20 bytes end in the 7th
    assert by_byte[0] == Completion(10, text[:3], text[3:5], 6)
    assert by_byte[1] == Completion(15, text[:5], text[5:7], 6)


def test_a_cut_moves_left_if_the_text_before_it_would_be_split_otherwise():
    text = "x" * 9 + "abc" + "y" * 40  # the tenth token is `ab`, by itself it is two
    first, second = completions(text, Plain(LooksAhead()))[:2]
    assert first == Completion(10, "x" * 9, "abcyyyy", 6)
    assert second.n_tokens == 5


texts = st.text(st.sampled_from("aé患😀� \n"), min_size=30, max_size=120)


@given(texts, st.integers(1, 5))
def test_what_is_given_and_expected_is_a_start_of_the_input(text, size):
    tokenizer = Plain(Bytes(size))
    ids = tokenizer.encode(text)
    found = completions(text, tokenizer)
    assert [item.cut for item in found] == ([] if len(ids) < 35 else list(CUTS))
    for item in found:
        assert text.startswith(item.prefix + item.expected) and item.expected
        assert item.n_tokens >= 5


@given(texts.filter(lambda text: "�" not in text), st.sampled_from([1, 2, 3]))
def test_the_model_is_given_the_very_tokens_of_the_input(text, size):
    tokenizer = Plain(Bytes(size))
    ids = tokenizer.encode(text)
    for item in completions(text, tokenizer):
        given_ids = tokenizer.encode(item.prefix)
        if given_ids == ids[: len(given_ids)]:
            assert len(given_ids) <= item.cut
            assert len(given_ids) + item.n_tokens >= item.cut + 5
        else:  # none of the five places before the cut is between two characters and two tokens
            ends = {len(text[:n].encode()) for n in range(len(text) + 1)}
            assert not ends & {size * place for place in range(item.cut - 4, item.cut + 1)}


@given(st.sets(st.integers(0, 34)))
def test_matches_are_those_of_the_rule_on_tokens(mistakes):
    """The oracle works on tokens: a cut matches if the model errs at none of its five places."""
    tokenizer, text = Plain(Words()), words(40)
    assert [matches(item, text, tokenizer, mistakes) for item in completions(text, tokenizer)] == [
        not mistakes & set(range(cut, cut + 5)) for cut in CUTS
    ]


@given(texts.filter(lambda text: "�" not in text), st.sets(st.integers(5, 40), max_size=6))
def test_moved_cuts_never_make_a_match_that_tokens_do_not_show(text, mistakes):
    tokenizer = Plain(Bytes(1))
    for item in completions(text, tokenizer):
        if matches(item, text, tokenizer, mistakes):
            assert not mistakes & set(range(item.cut, item.cut + 5))


def matches(item: Completion, text: str, tokenizer: Plain, mistakes: set[int]) -> bool:
    """A model that continues the text and writes a wrong token at some places."""
    ids, wrong = tokenizer.encode(text), tokenizer.encode("?")[:1]
    start = len(tokenizer.encode(item.prefix))
    predicted = [
        wrong[0] if place in mistakes else ids[place] for place in range(start, start + item.n_tokens)
    ]
    return is_match(item.expected, tokenizer.decode(predicted))


@pytest.mark.parametrize(
    ("expected", "predicted", "match"),
    [
        (" a b c d e", " a b c d e", True),
        (" a b c d e", "a b c d e", True),  # the space that SentencePiece loses
        (" a b c d e", " a b c d", False),
        (" a b c d e", " a b c d ef", False),
        (" a b c d e", " A b c d e", False),
        ("\na b c d", "a b c d", False),
        ("患者发热", "患者发热", True),
        ("患者发热", "患者发�", False),
        ("   ", "", False),
        ("a", "", False),
    ],
)
def test_a_match_is_exact_but_for_leading_spaces(expected, predicted, match):
    assert is_match(expected, predicted) is match


def test_a_tokenizer_that_loses_the_leading_space_gives_the_same_verdict():
    tokenizer, text = Plain(SentencePieceWords()), words(40)
    for item in completions(text, tokenizer):
        alone = tokenizer.decode(tokenizer.encode(text)[item.cut : item.cut + 5])
        assert not alone.startswith(" ") and item.expected.startswith(" ")
        assert is_match(item.expected, alone)


def test_only_the_start_of_a_long_input_is_split_unless_its_tokens_are_long():
    tokenizer = Plain(Words())
    long = words(50_000)
    assert completions(long, tokenizer) == completions(words(100), tokenizer)
    asked: list[int] = []
    tokenizer.encode = lambda text: asked.append(len(text)) or Plain.encode(tokenizer, text)
    completions(long, tokenizer)
    assert max(asked) < 10_000
    assert len(completions(" ".join("x" * 900 for _ in range(35)), Plain(Words()))) == 5


def test_texts_are_compared_as_the_model_wrote_them():
    tokenizer = Words()
    ModelTokenizer(Model(tokenizer))
    assert tokenizer.clean_up_tokenization_spaces is False


class Tiktoken:
    """Refuses the text of a special token unless told otherwise."""

    def encode(self, text, *, allowed_special=frozenset(), disallowed_special="all"):
        if disallowed_special and "<|endoftext|>" in text:
            raise ValueError
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode(errors="replace")


def test_a_tokenizer_of_tiktoken_reads_any_text():
    text = "<|endoftext|>" + words(40)
    assert completions(text, ModelTokenizer(Model(Tiktoken())))[0].prefix == text[:10]


@pytest.mark.parametrize("tokenizer", [None, object()])
def test_a_model_without_a_tokenizer_is_refused(tokenizer):
    with pytest.raises(MedtasksError, match="shows no tokenizer"):
        ModelTokenizer(Model(tokenizer))
