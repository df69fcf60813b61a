"""A prompt that does not fit is cut where counting each text as a whole cuts it, at a tenth of the work."""

from __future__ import annotations

import random
import re
from types import SimpleNamespace

import pytest

from medtasks_ext.prompts.fit import PromptCounter, PromptFitter
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task

WORDS = [
    *("patient", "admitted", "12.5mg", "twice", "daily;", "history:", "患者发热三天，伴咳嗽咳痰。", "Fieber"),
    *("Übelkeit", "heart-failure\n\n", "2021-03-04T10:00", "🫀", "e\u0301", "\t", "<event>", "lab=4.2"),
    *("</event>", "unauffällig"),
]


class Pieces:
    """A fast tokenizer in Python: words by a pattern, each in the longest known pieces."""

    is_fast = True
    pattern = re.compile(r" ?\w+|\s+(?!\S)|\s|[^\w\s]+")

    def __init__(self) -> None:
        chance, words = random.Random(1), " ".join(WORDS).split()
        self.known = {word[i : i + chance.randint(2, 5)] for word in words for i in (0, 2, 3)}
        self.numbers = {}

    def __call__(self, text, *, return_offsets_mapping=False, **_):
        ids, places = [], []
        for word in self.pattern.finditer(text):
            start = word.start()
            while start < word.end():
                rest = text[start : word.end()]
                size = next((n for n in (5, 4, 3, 2) if len(rest) >= n and rest[:n] in self.known), 1)
                # a rare character is several tokens, as its bytes are
                for part in range(1 + (ord(text[start]) > 10_000)):
                    ids.append(self.numbers.setdefault((text[start : start + size], part), len(self.numbers)))
                    places.append((start, start + size))
                start += size
        return {"input_ids": ids, **({"offset_mapping": places} if return_offsets_mapping else {})}


def trained(kind):
    """A tokenizer of a library, trained on the words above."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    models, before, trainers = tokenizers.models, tokenizers.pre_tokenizers, tokenizers.trainers
    model, split, trainer = {
        "bytes": (
            models.BPE(),
            before.ByteLevel(add_prefix_space=False),
            trainers.BpeTrainer(vocab_size=400, initial_alphabet=before.ByteLevel.alphabet()),
        ),
        "unigram": (
            models.Unigram(),
            before.Metaspace(),
            trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>"], unk_token="<unk>"),
        ),
        "words": (
            models.WordPiece(unk_token="<unk>"),
            before.BertPreTokenizer(),
            trainers.WordPieceTrainer(vocab_size=300, special_tokens=["<unk>"]),
        ),
    }[kind]
    one = tokenizers.Tokenizer(model)
    one.pre_tokenizer = split
    chance = random.Random(2)
    one.train_from_iterator([" ".join(chance.choices(WORDS, k=40)) for _ in range(100)], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=one)


class Model:
    """A model of lm-eval as far as prompts are fitted to it; `plain` has no places of tokens."""

    def __init__(self, tokenizer, context, *, plain=False, begin=()):
        self._tokenizer, self.max_length, self.begin = tokenizer, context, list(begin)
        self.tokenizer = SimpleNamespace(is_fast=False) if plain else tokenizer

    def tok_encode(self, text):
        return self.begin + list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


TOKENIZERS = ("pieces", "bytes", "unigram", "words")


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return Pieces() if request.param == "pieces" else trained(request.param)


def prose(chance, n):
    return " ".join(chance.choices(WORDS, k=n))


@pytest.mark.parametrize("begin", [(), (1,)])
def test_texts_that_differ_in_one_place_are_counted_by_what_differs(tokenizer, begin):
    chance = random.Random(3)
    model = Model(tokenizer, 1, begin=begin)
    whole = saved = 0
    for _ in range(12):
        counter, text = PromptCounter(model), prose(chance, 1500)
        assert counter.first(text) == len(model.tok_encode(text))
        for _ in range(12):
            start = chance.randrange(len(text))
            end = chance.choice([len(text), min(len(text), start + chance.randrange(3000)), start])
            other = text[:start] + prose(chance, chance.choice([0, 0, 3, 60])) + text[end:]
            before = counter.characters
            assert counter.like(other) == len(model.tok_encode(other))
            whole, saved = whole + len(other), saved + counter.characters - before
    assert saved < whole / 3


def test_what_prompts_begin_with_alike_is_tokenised_once(tokenizer):
    chance, model = random.Random(4), Model(tokenizer, 1)
    counter, shots = PromptCounter(model), prose(chance, 3000)
    questions = [shots + prose(chance, 40) for _ in range(20)]
    assert [counter.first(text) for text in questions] == [len(model.tok_encode(text)) for text in questions]
    assert counter.characters < 2 * len(shots)


@pytest.mark.parametrize("name", ["bridge_chip_ctc_5shot", "medhelm_medalign", "medhelm_medalign_5shot"])
@pytest.mark.parametrize("begin", [(), (1,)])
def test_prompts_are_cut_where_whole_counts_cut_them(tokenizer, name, begin):
    """Of inputs that lose their end, and of records that lose their beginning."""
    chance, task = random.Random(5), build_task(registry(), name, Settings(data="sample", prompts="own"))
    for document in task.eval_docs:
        record = document.record or document["prompt"]
        longer = prose(chance, 1500)
        document["prompt"] = document["prompt"].replace(record, longer, 1)
        if document.record:
            document.record = longer
    shots = int(task.config.num_fewshot or 0)
    prompts = [task.fewshot_context(one, shots) for one in task.eval_docs]
    longest = max(len(tokenizer(text)["input_ids"]) for text in prompts)
    cuts, tokenised, otherwise = set(), 0, 0
    for context in (*range(300, 2500, 700), *range(longest - 900, longest + 100, 240)):
        ours, theirs = (Model(tokenizer, context, plain=plain, begin=begin) for plain in (False, True))
        fitter, plain = PromptFitter(ours), PromptFitter(theirs)
        for document in task.eval_docs[:2]:
            found = fitter.fitted(document, shots, 32, task.fewshot_context)
            assert found == plain.fitted(document, shots, 32, task.fewshot_context)
            cuts.add(found[1])
        tokenised += fitter._counter.characters
        otherwise += plain._counter.characters
    assert "input" in cuts and "" in cuts and ("shots" in cuts or "5shot" not in name)
    assert tokenised < otherwise / 2  # of short prompts; the windows are as small for long ones


class FromTheEnd(Pieces):
    """Tokens of five characters, counted from the end: a text that ends elsewhere has others everywhere."""

    def __call__(self, text, *, return_offsets_mapping=False, **_):
        places = [(max(0, end - 5), end) for end in range(len(text), 0, -5)][::-1]
        ids = [ord(text[start]) for start, _ in places]
        return {"input_ids": ids, **({"offset_mapping": places} if return_offsets_mapping else {})}


def test_a_tokenizer_whose_windows_do_not_fall_in_is_asked_for_the_whole():
    chance, model = random.Random(6), Model(FromTheEnd(), 1)
    counter, text = PromptCounter(model), prose(chance, 1500)
    counter.first(text)
    for kept in (4000, 3001, 2002, 1003):
        assert counter.like(text[:kept]) == len(model.tok_encode(text[:kept]))
