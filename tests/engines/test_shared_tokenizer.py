"""A model's batches keep their padding while the next prompts are fitted in another thread."""

from __future__ import annotations

import threading

from lm_eval.api.model import LM

from medtasks_ext.engines import Answer, Request
from medtasks_ext.engines.lm import engine_of
from tests.engines.made import ListFeed


class Tokenizer:
    """Keeps padding as a state, as a fast tokenizer does."""

    is_fast = True
    padding = False

    def __call__(self, texts, **_):
        self.padding = False
        return {"input_ids": [[0] * len(text) for text in texts]}


class FromTwoThreads(LM):
    """Asks for the tokens of a text in the middle of a batch, as the thread that fits prompts does."""

    batch_size_per_gpu, max_batch_size = 4, 4

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = Tokenizer()
        self.rows: list[int] = []
        self.fitted: list[int] = []

    def tok_encode(self, text: str) -> list[int]:
        return self.tokenizer([text])["input_ids"][0]

    def tok_batch_encode(self, texts: list[str]) -> list[int]:
        self.tokenizer.padding = True
        other = threading.Thread(target=lambda: self.fitted.append(len(self.tok_encode("next"))))
        other.start()
        other.join()
        longest = max(map(len, texts))
        return [longest if self.tokenizer.padding else len(text) for text in texts]

    def generate_until(self, requests, disable_tqdm=False):
        self.rows += self.tok_batch_encode([item.args[0] for item in requests])
        return ["yes"] * len(requests)

    loglikelihood = loglikelihood_rolling = None


def test_fitting_a_prompt_takes_no_padding_from_a_batch():
    model = FromTwoThreads()
    asked = [Request(f"k{n}", "task", f"d{n}", "?" * n, {"max_gen_toks": 5}) for n in (1, 2, 3)]
    outcomes = {}
    engine_of(model).run(ListFeed(asked), lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    assert model.rows == [3, 3, 3] and model.fitted == [4]
    assert all(isinstance(outcome, Answer) for outcome in outcomes.values())
