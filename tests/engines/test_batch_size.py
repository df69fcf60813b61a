"""Sizes of batches of transformers models, with a pretended one whose memory holds so many tokens."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from lm_eval.api.model import LM

from medtasks_ext.engines import Answer, Fault, Request
from medtasks_ext.engines.lm import engine_of
from medtasks_ext.privacy import text_hash
from medtasks_ext.results.conditions import facts
from medtasks_ext.runs.conditions import Conditions, read_conditions
from medtasks_ext.runs.manifest import EngineRecord, described
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


# What a loaded model says of itself: by stand-ins with the classes' names; tests/engine asks real ones.


ASKED = {"template": True, "system_text": None, "layout": None}


class VLLM:
    def __init__(self, **more):
        config = SimpleNamespace(dtype="torch.bfloat16", quantization=None)
        self.model = SimpleNamespace(llm_engine=SimpleNamespace(model_config=config))
        self.tokenizer = SimpleNamespace(chat_template="{{ messages }}", name_or_path="ORG/model")
        self.enable_thinking, self.chat_template_args = None, {}
        vars(self).update(more)


class HFLM:
    def __init__(self, brought, **more):
        config = SimpleNamespace(to_diff_dict=lambda: brought)
        self.model = SimpleNamespace(generation_config=config, dtype="torch.float32", config=None)
        self.tokenizer = SimpleNamespace(chat_template={"default": "a", "tool_use": "b"}, name_or_path=".")
        vars(self).update(more)


class LocalChatCompletion:
    pass


def test_vllm_says_what_it_loaded_and_lets_no_settings_of_the_models_file_in():
    found = described(VLLM(), **ASKED)
    assert found == EngineRecord(
        name="vllm", version=found.version, dtype="bfloat16", quantisation="none", adapters="none",
        thinking=None, tools=False, system_text="", template=text_hash("{{ messages }}"),
        repository_template=True, generation={},
    )  # fmt: skip


def test_an_adapter_is_named_without_its_place():
    adapter = SimpleNamespace(lora_path="/home/someone/adapters/cardio-7b")
    assert described(VLLM(lora_request=adapter), **ASKED).adapters == "cardio-7b"


@pytest.mark.parametrize(("name", "own"), [("ORG/model", True), (".", None), ("", None)])
def test_a_template_is_known_as_the_repositorys_own_where_it_comes_from_a_repository(name, own):
    tokenizer = SimpleNamespace(chat_template="{{ messages }}", name_or_path=name)
    assert described(VLLM(tokenizer=tokenizer), **ASKED).repository_template is own


def test_transformers_says_what_the_models_file_adds():
    found = described(HFLM({"repetition_penalty": 1.05, "eos_token_id": [1, 2], "top_k": 20}), **ASKED)
    assert found.generation == {"repetition_penalty": 1.05, "top_k": 20} and found.template == text_hash("a")
    read = Conditions(decoding={"do_sample": False}, engines=(found,))
    assert read_conditions(read.record()) == read
    # where nothing is drawn, top_k does nothing
    assert facts(read)["brought"] == (("repetition_penalty", 1.05),)


def test_a_layout_of_ones_own_stands_in_place_of_the_models_template():
    layout = "{{ x }}"
    found = described(VLLM(), template=False, system_text="Be brief.", layout=layout)
    assert (found.template, found.repository_template) == (text_hash(layout), False)
    assert found.system_text == text_hash("Be brief.")


def test_a_server_tells_nothing():
    found = described(LocalChatCompletion(), **ASKED)
    assert found == EngineRecord(name="LocalChatCompletion", system_text="")


# A model's batches keep their padding while the next prompts are fitted in another thread.


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
