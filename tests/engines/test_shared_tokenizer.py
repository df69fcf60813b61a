"""A model's batches keep their padding while the next prompts are fitted in another thread."""

from __future__ import annotations

import threading

from lm_eval.api.model import LM

from medtasks_ext.engines import Answer, Request
from medtasks_ext.engines.choose import engine_of
from medtasks_ext.engines.feed import ListFeed


class OneTokenizer(LM):
    """Has a tokenizer whose padding is a state, as that of a fast tokenizer is.

    In the middle of a batch another thread asks for the tokens of a text, as the one that fits prompts does.
    """

    batch_size_per_gpu, max_batch_size = 4, 4

    def __init__(self) -> None:
        super().__init__()
        self.padding = False
        self.rows: list[int] = []

    def tok_encode(self, text: str) -> list[int]:
        self.padding = False
        return [0] * len(text)

    def tok_batch_encode(self, texts: list[str]) -> list[int]:
        self.padding = True
        fitted = threading.Event()
        other = threading.Thread(target=lambda: (self.tok_encode("next"), fitted.set()), daemon=True)
        other.start()
        fitted.wait(0.5)  # if nothing keeps it out, it is through at once
        longest = max(map(len, texts))
        return [longest if self.padding else len(text) for text in texts]

    def generate_until(self, requests, disable_tqdm=False):
        self.rows += self.tok_batch_encode([item.args[0] for item in requests])
        return ["yes"] * len(requests)

    loglikelihood = loglikelihood_rolling = None


def test_fitting_a_prompt_waits_for_a_batch_that_is_being_encoded():
    model = OneTokenizer()
    asked = [Request(f"k{n}", "task", f"d{n}", "?" * n, {"max_gen_toks": 5}) for n in (1, 2, 3)]
    outcomes = {}
    engine_of(model).run(ListFeed(asked), lambda request, outcome: outcomes.__setitem__(request.key, outcome))
    assert model.rows == [3, 3, 3]
    assert all(isinstance(outcome, Answer) for outcome in outcomes.values())
