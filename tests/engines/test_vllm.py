"""Requests over vLLM, with an engine that only pretends; the real one is in tests/engine."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from types import SimpleNamespace

import pytest

from medtasks_ext.engines import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.vllm import AskedModel, VllmEngine
from medtasks_ext.errors import MedtasksError
from tests.engines.conftest import ListFeed


@pytest.fixture(autouse=True)
def parameters(monkeypatch):
    """As much of vLLM as makes parameters."""

    class Parameters(SimpleNamespace):
        def clone(self):
            return Parameters(**vars(self))

    kinds = SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY=2), RepetitionDetectionParams=dict)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=Parameters))
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", kinds)


def ready(n: int) -> list[Request]:
    return [Request(str(i), "task", str(i), f"question {i}", {}, tokens=[i]) for i in range(n)]


class Pretends:
    """vLLM's engine of one replica: answers when it is full, or nothing more of `total` comes, the newest
    first. It runs `seats` at a time, `refuses` a request by its only token, and dies after some answers."""

    def __init__(self, seats=2, total=90, dies_after=-1, refuses=None) -> None:
        self.vllm_config = SimpleNamespace(
            scheduler_config=SimpleNamespace(max_num_seqs=seats),
            parallel_config=SimpleNamespace(data_parallel_size=1),
            cache_config=SimpleNamespace(enable_prefix_caching=True),
        )
        self.left, self.dies_after, self.refuses = total, dies_after, refuses or {}
        self.window, self.waiting = 2 * seats, deque()
        self.most = self.aborted = 0
        self.errored = self.ended = False

    async def generate(self, prompt, parameters, name, *, lora_request):
        [token] = prompt["prompt_token_ids"]
        if self.errored:
            raise RuntimeError("no memory")
        if token in self.refuses:
            raise self.refuses[token]
        came = asyncio.get_running_loop().create_future()
        self.waiting.append(came)
        self.most, self.left = max(self.most, len(self.waiting)), self.left - 1
        asyncio.get_running_loop().call_soon(self.answer)
        try:
            await came
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        completion = SimpleNamespace(text="Yes.", finish_reason="stop", token_ids=[1])
        yield SimpleNamespace(outputs=[completion], prompt_token_ids=[token], num_cached_tokens=0)

    def answer(self) -> None:
        while self.waiting and not self.errored:
            if self.left > 0 and len(self.waiting) < self.window:
                return
            self.waiting.pop().set_result(None)
            self.dies_after -= 1
            self.errored = self.dies_after == 0
        for came in self.waiting:
            came.set_exception(RuntimeError("no memory\nTraceback"))

    def shutdown(self) -> None:
        self.ended = True


def engine_of(pretends: Pretends) -> VllmEngine:
    lm = model()
    lm.model = AskedModel(pretends)
    return VllmEngine(lm)


def outcomes_of(engine: VllmEngine, requests: list[Request]) -> dict[str, Answer | Fault]:
    found: dict[str, Answer | Fault] = {}
    engine.run(ListFeed(requests), lambda request, outcome: found.setdefault(request.key, outcome))
    return found


def test_the_engine_is_kept_full():
    engine = engine_of(pretends := Pretends(4))
    assert engine.window == 8
    assert len(outcomes_of(engine, ready(90))) == 90 and pretends.most == 8 and not pretends.aborted


def test_what_has_come_is_handed_on_before_an_engine_that_dies_ends_the_run():
    engine, answers = engine_of(Pretends(5, dies_after=7)), []
    said = r"vLLM's engine has died \(RuntimeError: no memory\)\n  → .*"
    with pytest.raises(MedtasksError, match=said) as found:
        engine.run(ListFeed(ready(100)), lambda request, outcome: answers.append((request.key, outcome.text)))
    assert len(dict(answers)) == len(answers) == 7 and "gpu_memory_utilization" in str(found.value)


def test_a_request_that_vllm_refuses_is_a_fault_and_the_rest_is_answered():
    engine = engine_of(Pretends(total=8, refuses={3: ValueError("top_p must be\nat most 1")}))
    outcomes = outcomes_of(engine, ready(9))
    assert outcomes.pop("3").reason == "vLLM does not answer the request: ValueError: top_p must be"
    assert len(outcomes) == 8 and all(isinstance(got, Answer) for got in outcomes.values())


def test_what_was_given_up_is_nobodys_answer_in_the_next_run():
    engine = engine_of(pretends := Pretends(total=50))

    def leave(*_):
        raise LookupError

    with pytest.raises(LookupError):
        engine.run(ListFeed(ready(30)), leave)
    assert pretends.aborted == 3  # a window of four, less the one that came
    pretends.waiting, pretends.left = deque(), 3
    assert sorted(outcomes_of(engine, ready(3))) == ["0", "1", "2"]


def test_lm_evals_own_calls_are_answered_by_the_same_engine():
    engine = engine_of(pretends := Pretends(total=3))
    asked = SimpleNamespace(clone=lambda: SimpleNamespace())
    outputs = engine.lm.model.generate(
        [{"prompt_token_ids": [i]} for i in range(3)],
        sampling_params=[asked] * 3,
        use_tqdm=False,
        lora_request=None,
    )
    assert [output.prompt_token_ids for output in outputs] == [[0], [1], [2]]
    engine.close()
    assert pretends.ended


def model() -> SimpleNamespace:
    return SimpleNamespace(
        max_length=100,
        max_gen_toks=40,
        think_end_token=None,
        lora_request=None,
        eot_token_id=0,
        tokenizer=SimpleNamespace(decode=lambda token: "</s>"),
        tok_encode=lambda text: [len(word) for word in text.encode().decode().split()],
        apply_chat_template=lambda turns: " ".join(turn["content"] for turn in turns),
        modify_gen_kwargs=lambda settings, eos, default_max_gen_toks: (
            {}, [], int(settings.get("max_gen_toks", default_max_gen_toks))
        ),
    )  # fmt: skip


def prepared(engine: VllmEngine, prompt, **settings):
    return engine.prepare(Request("key", "task", "key", prompt, settings))


def test_a_prompt_that_does_not_fit_is_a_fault_with_its_numbers():
    engine = engine_of(Pretends())
    assert len(prepared(engine, "word " * 60).tokens) == 60
    fault = prepared(engine, "word " * 61)
    assert fault.kind is FaultKind.TOO_LONG and "61 tokens" in fault.reason and "room for 60" in fault.reason
    assert "max_model_len" in fault.remedy and "word" not in fault.reason
    assert prepared(engine, "word", max_gen_toks=100).kind is FaultKind.TOO_LONG
    assert "room for 0" in prepared(engine, "word", max_gen_toks=101).reason


def test_what_cannot_become_tokens_is_a_fault_without_text_of_the_row():
    engine = engine_of(Pretends())
    assert prepared(engine, "a secret \ud83d") == Fault(
        FaultKind.ENGINE, "the prompt cannot be made into tokens (UnicodeEncodeError)"
    )
    assert prepared(engine, "word", max_gen_toks="many").kind is FaultKind.ENGINE
    assert prepared(engine, [{"role": "user", "content": "two words"}]).tokens == [3, 5]
