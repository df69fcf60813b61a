"""Sizes of batches of transformers models, with a pretended one whose memory holds so many tokens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from lm_eval.api.model import LM

from medtasks_ext.engines import Answer, Fault, Request
from medtasks_ext.engines.lm import engine_of
from tests.engines.made import ListFeed


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


def requests(n: int, task: str, *, prompt: int, budget: int) -> list[Request]:
    return [
        Request(f"{task}{i}", task, f"d{i}", f"{task}{i}".ljust(prompt, "."), {"max_gen_toks": budget})
        for i in range(n)
    ]


def answered(model: Batches, *tasks: list[Request]) -> tuple[dict[str, object], list[str]]:
    said: list[str] = []
    outcomes: dict[str, object] = {}
    everything = [request for task in tasks for request in task]

    def done(request, outcome):
        assert request.key not in outcomes
        outcomes[request.key] = outcome
        assert isinstance(outcome, Fault) or outcome.text == f"to {request.prompt}"

    engine_of(model, say=said.append).run(ListFeed(everything), done)
    assert set(outcomes) == {request.key for request in everything}
    return outcomes, said


def test_auto_takes_the_largest_batches_and_no_search_is_made():
    model = Batches()
    outcomes, said = answered(
        model,
        requests(100, "a", prompt=50, budget=200),
        requests(70, "b", prompt=50, budget=20),
    )
    assert all(isinstance(item, Answer) for item in outcomes.values())
    assert model.batches == [64, 36, 64, 6] and not said


def test_a_cpu_gets_small_batches():
    model = Batches(device="cpu")
    answered(model, requests(20, "a", prompt=50, budget=20))
    assert model.batches == [8, 8, 4]


def test_a_batch_that_does_not_fit_is_halved_once_for_the_run_and_no_answer_is_lost():
    model = Batches(room=16 * 250)
    outcomes, said = answered(
        model,
        requests(100, "a", prompt=50, budget=200),
        requests(40, "b", prompt=50, budget=200),
        requests(70, "c", prompt=30, budget=20),
    )
    assert all(isinstance(item, Answer) for item in outcomes.values())
    assert sorted(model.answered) == sorted(set(model.answered))  # each was generated once
    assert model.batches[:2] == [64, 32] and model.batches[2:9] == [16] * 6 + [4]
    assert model.batches[9:12] == [16, 16, 8]  # the next task begins with what fitted
    assert model.batches[12:] == [64, 6]  # short ones fit in larger batches
    assert len(said) == 2 and "32" in said[0] and "16" in said[1]


def test_a_size_that_the_user_gave_is_halved_too_and_never_exceeded():
    model = Batches(8, room=4 * 250)
    answered(model, requests(12, "a", prompt=50, budget=200), requests(20, "b", prompt=30, budget=20))
    assert model.batches == [8, 4, 4, 4, 8, 8, 4]


def test_what_was_answered_before_the_memory_ran_out_is_kept():
    model = Batches(8, fails_at=1)
    outcomes, _ = answered(model, requests(20, "a", prompt=50, budget=50))
    assert all(isinstance(item, Answer) for item in outcomes.values())
    assert model.batches == [8, 8, 4, 4, 4]
    assert sorted(model.answered) == sorted(set(model.answered))


@pytest.mark.parametrize("wrong", [None, "an assertion on the device failed"])
def test_other_errors_and_a_single_request_that_does_not_fit_are_faults(wrong):
    model = Batches(2 if wrong is None else 8, room=10, wrong=wrong)
    outcomes, _ = answered(model, requests(6, "a", prompt=50, budget=200))
    assert all(isinstance(item, Fault) for item in outcomes.values())
    assert model.batches == ([2, 1] if wrong is None else [6])
