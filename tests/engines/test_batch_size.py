"""Sizes of batches of transformers models, with a pretended one whose memory holds so many tokens."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from lm_eval.api.model import LM

from medtasks_ext.engines import Answer, Fault, Request
from medtasks_ext.engines.lm import engine_of
from tests.engines.conftest import ListFeed


class Batches(LM):
    """Answers in batches as lm-eval's HFLM does: sorted, longest prompt first, each answer handed on."""

    def __init__(self, batch_size="auto", *, device="cuda", room=10**9, fails_at=None, wrong=None):
        super().__init__()
        self.batch_size_per_gpu, self.max_batch_size = batch_size, 64
        self._device = SimpleNamespace(type=device)
        self.room, self.fails_at, self.wrong = room, fails_at, wrong
        self.batches: list[int] = []
        self.answered: list[str] = []

    def tokenizer(self, texts, **_):
        return {"input_ids": [[0] * len(text) for text in texts]}

    def generate_until(self, requests, disable_tqdm=False):
        assert isinstance(self.batch_size_per_gpu, int), "lm-eval would search for the size"
        order = sorted(requests, key=lambda item: -len(item.args[0]))
        texts = {}
        while order:
            batch, order = order[: self.batch_size_per_gpu], order[self.batch_size_per_gpu :]
            prompts = [item.args[0] for item in batch]
            self.batches.append(len(batch))
            held = len(batch) * (len(prompts[0]) + batch[0].args[1]["max_gen_toks"])
            if held > self.room or len(self.batches) - 1 == self.fails_at:
                raise RuntimeError(self.wrong or "CUDA out of memory. Tried to allocate 2.00 GiB")
            for item in batch:
                texts[item.args[0]] = f"to {item.args[0]}"
                self.answered.append(item.args[0])
                self.cache_hook.add_partial("generate_until", item.args, texts[item.args[0]])
        return [texts[item.args[0]] for item in requests]

    loglikelihood = loglikelihood_rolling = None


def answered(model: Batches, *tasks: tuple[int, int, int]) -> tuple[list[object], list[str]]:
    """Outcomes of tasks of so many requests, prompts so long, and such a budget; and what was said."""
    said, outcomes = list[str](), dict[str, object]()
    everything = [
        Request(f"{task} {i}", str(task), f"d{i}", f"{task} {i}".ljust(prompt, "."), {"max_gen_toks": budget})
        for task, (n, prompt, budget) in enumerate(tasks)
        for i in range(n)
    ]

    def done(request, outcome):
        assert request.key not in outcomes
        outcomes[request.key] = outcome
        assert isinstance(outcome, Fault) or outcome.text == f"to {request.prompt}"

    engine_of(model, say=said.append).run(ListFeed(everything), done)
    assert set(outcomes) == {request.key for request in everything}
    assert len(model.answered) == len(set(model.answered))  # each was generated once
    return list(outcomes.values()), said


@pytest.mark.parametrize(
    ("model", "tasks", "batches", "halved"),
    [
        (Batches(), [(100, 50, 200), (70, 50, 20)], [64, 36, 64, 6], 0),  # the largest, and no search is made
        (Batches(device="cpu"), [(20, 50, 20)], [8, 8, 4], 0),
        (  # the next task begins with what fitted
            Batches(room=16 * 250),
            [(100, 50, 200), (40, 50, 200), (70, 30, 20)],
            [64, 32, *[16] * 6, 4, 16, 16, 8, *[16] * 4, 6],
            2,
        ),
        # a size that the user gave is halved, too, and never exceeded
        (Batches(8, room=4 * 250), [(12, 50, 200), (20, 30, 20)], [8, *[4] * 8], 1),
        (Batches(8, fails_at=1), [(20, 50, 50)], [8, 8, 4, 4, 4], 1),  # what came before is kept
    ],
)
def test_batches_are_as_large_as_the_memory_holds_and_no_answer_is_lost(model, tasks, batches, halved):
    outcomes, said = answered(model, *tasks)
    assert all(isinstance(item, Answer) for item in outcomes)
    assert model.batches == batches and len(said) == halved


@pytest.mark.parametrize("wrong", [None, "an assertion on the device failed"])
def test_other_errors_and_a_single_request_that_does_not_fit_are_faults(wrong):
    model = Batches(2 if wrong is None else 8, room=10, wrong=wrong)
    outcomes, _ = answered(model, (6, 50, 200))
    assert all(isinstance(item, Fault) for item in outcomes)
    assert model.batches == ([2, 1] if wrong is None else [6])


# What a loaded model says of itself; tests/engine asks vLLM's and transformers' own.


class FromTwoThreads(LM):
    """Asks for the tokens of a text in the middle of a batch, as the thread that fits prompts does.

    Its tokenizer keeps padding as a state, as a fast one does.
    """

    batch_size_per_gpu, max_batch_size = 4, 4

    class Tokenizer:
        is_fast, padding = True, False

        def __call__(self, texts, **_):
            self.padding = False
            return {"input_ids": [[0] * len(text) for text in texts]}

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer, self.rows, self.fitted = self.Tokenizer(), list[int](), list[int]()

    def tok_encode(self, text: str) -> list[int]:
        return self.tokenizer([text])["input_ids"][0]

    def generate_until(self, requests, disable_tqdm=False):
        texts = [item.args[0] for item in requests]
        self.tokenizer.padding = True
        other = threading.Thread(target=lambda: self.fitted.append(len(self.tok_encode("next"))))
        other.start()
        other.join()
        self.rows += [max(map(len, texts)) if self.tokenizer.padding else len(text) for text in texts]
        return ["yes"] * len(requests)

    tok_batch_encode = loglikelihood = loglikelihood_rolling = None


def test_fitting_a_prompt_takes_no_padding_from_a_batch():
    model, outcomes = FromTwoThreads(), []
    asked = [Request(f"k{n}", "task", f"d{n}", "?" * n, {"max_gen_toks": 5}) for n in (1, 2, 3)]
    engine_of(model).run(ListFeed(asked), lambda request, outcome: outcomes.append(outcome))
    assert model.rows == [3, 3, 3] and model.fitted == [4]
    assert all(isinstance(outcome, Answer) for outcome in outcomes) and len(outcomes) == 3
