"""Each harmless line of the list of settings: a tiny model answers the same with it and without it.

The models are vLLM's and transformers' on the CPU, of the versions in this environment. What changes an
answer must not pass as harmless, whatever is drawn.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from medtasks_ext.results.conditions import comparable, facts
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.runs.manifest import described
from medtasks_ext.runs.settings import LISTS, SETTINGS, Effect, effect
from tests.engine.tiny_model import LINES, make

pytestmark = pytest.mark.engine

#: Greedy answers: prompts -> texts, with more settings of generation.
Asked = Callable[[Mapping[str, Any]], list[str]]
PROMPTS = [LINES[1], LINES[4], LINES[3]]
TOKENS = 12
BOTH = (True, False)
#: Values that are tried of what is harmless whatever its value.
TRIED: dict[str, tuple[Any, ...]] = {
    "logprobs": (0, 3), "prompt_logprobs": (0, 3), "logprob_token_ids": ([5, 6],), "flat_logprobs": BOTH,
    "stream_interval": (1, 4), "skip_clone": BOTH, "output_text_buffer_length": (0,),
    "skip_reading_prefix_cache": BOTH, "routed_experts_prompt_start": (0,), "output_attentions": BOTH,
    "output_hidden_states": BOTH, "output_scores": BOTH, "output_logits": BOTH, "use_cache": BOTH,
    "disable_compile": BOTH, "pad_token_id": (2, 5), "max_num_seqs": (1, 4),
    "max_num_batched_tokens": (2048, 4096), "enforce_eager": BOTH, "disable_log_stats": BOTH,
    "enable_prefix_caching": BOTH, "enable_chunked_prefill": BOTH,
}  # fmt: skip
#: Names that engines take in another form, or that another name stands for: why they are not tried here.
NOT_TRIED = {
    "top_logprobs": "a field of chat requests; vLLM's parameter is logprobs",
    "output_kind": "medtasks sets it",
    "prompt_logprob_token_ids": "a row for each token of one prompt: a setting of all prompts cannot have it",
    "prompt_logprob_start": "it goes with prompt_logprob_token_ids",
    "return_dict_in_generate": "lm-eval reads a tensor",
    "compile_config": "an object of transformers",
    "transformers_version": "a note in a file",
    "batch_size": "lm-eval's own batches; test_hf compares them",
    "max_batch_size": "lm-eval's own batches; test_hf compares them",
    "max_parallel_loading_workers": "not supported by this engine",
}
ARGUMENTS = {
    "max_num_seqs", "max_num_batched_tokens", "enforce_eager", "disable_log_stats", "enable_prefix_caching",
    "enable_chunked_prefill",
}  # fmt: skip


def tried(kind: str, *, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Each harmless key with each of its harmless values, of those that an engine knows."""
    for line in LISTS[kind]:
        for name in line.names:
            if line.untried or name in NOT_TRIED or name not in known or line.effect is Effect.SAID:
                continue
            for value in TRIED[name] if line.effect is Effect.HARMLESS else line.values:
                yield name, value


def assert_harmless(ask: Asked, known: set[str]) -> None:
    """Answers stay as they are with each harmless value that the engine takes; of each key it takes one."""
    usual, answered, names = ask({}), set(), set()
    for name, value in tried("generation", known=known):
        names.add(name)
        try:
            found = ask({name: value})
        except Exception:  # a value that this engine has not; each has errors of its own
            continue
        answered.add(name)
        assert found == usual, (name, value)
    assert names == answered and len(names) > 20


def test_every_harmless_line_is_tried_or_says_why_not():
    for line in itertools.chain(*LISTS.values()):
        if line.effect is Effect.HARMLESS and not line.untried:
            assert [name for name in line.names if name not in TRIED and name not in NOT_TRIED] == []
    for name in TRIED:
        assert Effect.HARMLESS in (effect("generation", name, 1), effect("model", name, 1)), name


def draws(values: Mapping[str, tuple[Any, ...]], seed: int) -> Iterator[dict[str, Any]]:
    """`MEDTASKS_DRAWS` times one to three settings."""
    rng = random.Random(seed)
    for _ in range(int(os.environ.get("MEDTASKS_DRAWS", "150"))):
        yield {name: rng.choice(values[name]) for name in rng.sample(sorted(values), rng.randint(1, 3))}


def unmarked(
    drawn: Iterable[dict[str, Any]], ask: Callable[[list[dict[str, Any]]], Iterable[list[str]]]
) -> list[dict[str, Any]]:
    """The settings that change answers and pass as harmless; what is drawn again is asked once."""
    each = {repr(sorted(settings.items())): settings for settings in drawn}
    usual_record = {"do_sample": False, "until": []}
    usual_facts = facts(Conditions(decoding=usual_record))
    passing = [
        settings
        for settings in each.values()
        if comparable(usual_facts, facts(Conditions(decoding={**usual_record, **settings})))
    ]
    [usual, *found] = ask([{}, *passing])
    return [settings for settings, answers in zip(passing, found, strict=True) if answers != usual]


# ---------------------------------------------------------------------- vLLM


@pytest.fixture(scope="module")
def in_one_process(environment) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        yield


def started(folder: Any, **more: Any) -> Any:
    from vllm import LLM

    usual = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "seed": 0}
    return LLM(str(folder), **{**usual, **more})


@pytest.fixture(scope="module")
def vllm(tiny, in_one_process) -> Any:
    return started(tiny)


def params_of(settings: Mapping[str, Any]) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    values = dict(settings)
    if isinstance(values.get("structured_outputs"), dict):
        values["structured_outputs"] = StructuredOutputsParams(**values["structured_outputs"])
    return SamplingParams(**{"temperature": 0, "max_tokens": TOKENS, "skip_special_tokens": False, **values})


def of_vllm(llm: Any, each: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Answers with each of many settings, fifty of them in a call."""
    for start in range(0, len(each), 50):
        some = each[start : start + 50]
        prompts, params = zip(*itertools.product(PROMPTS, map(params_of, some)), strict=True)
        outputs = [output.outputs[0].text for output in llm.generate(prompts, list(params), use_tqdm=False)]
        yield from ([*outputs[place :: len(some)]] for place in range(len(some)))


def test_harmless_parameters_of_vllm_change_no_answer_and_each_is_named(vllm):
    from vllm import SamplingParams

    known = {name for name in SamplingParams.__struct_fields__ if not name.startswith("_")}
    assert [name for name in sorted(known) if ("generation", name) not in SETTINGS] == []
    assert_harmless(lambda settings: next(of_vllm(vllm, [settings])), known)


#: Values that move answers where they are harmless by value. Temperature is what lets the other draws count.
DRAWN: dict[str, tuple[Any, ...]] = {
    "n": (1, 1), "presence_penalty": (0, 0.0, 2.0, -2.0), "frequency_penalty": (0, 2.0, -2.0),
    "repetition_penalty": (1, 1.0, 1.8, 0.5), "temperature": (0, 0.0, 0.7, 5.0), "top_p": (1, 0.2),
    "top_k": (0, 1, 5), "min_p": (0, 0.9), "seed": (1, 2), "stop": ([], ["e"], ["a", "o"]),
    "stop_token_ids": ([], [40, 41, 42]), "ignore_eos": (False, True), "min_tokens": (0, 5),
    "logprobs": (None, 2), "detokenize": (True,), "skip_special_tokens": (False, True),
    "spaces_between_special_tokens": (True, False), "include_stop_str_in_output": (False, True),
    "logit_bias": (None, {60: 50.0}), "allowed_token_ids": (None, [60, 61, 62]),
    "bad_words": ([], ["e", "a"]), "structured_outputs": (None, {"choice": ["A", "B"]}),
    "skip_reading_prefix_cache": (False, True),
}  # fmt: skip


def test_no_drawn_settings_of_vllm_that_change_an_answer_pass_as_harmless(vllm):
    assert unmarked(draws(DRAWN, 0), lambda each: of_vllm(vllm, each)) == []


def answers_with(folder: str, more: Mapping[str, Any]) -> list[str]:
    """Of an engine that was started with more arguments, and is gone afterwards."""
    llm = started(folder, **more)
    found = next(of_vllm(llm, [{}]))
    del llm
    gc.collect()
    return found


@pytest.fixture(scope="module")
def asked_with(tiny, in_one_process) -> Iterator[Callable[[tuple[tuple[str, Any], ...]], list[str]]]:
    """Answers by arguments of engines, in a process beside: the end of one ends all of its process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield functools.cache(lambda more: process.submit(answers_with, str(tiny), dict(more)).result())


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "value"), list(tried("model", known=ARGUMENTS)))
def test_harmless_arguments_of_vllm_change_no_answer(asked_with, name, value):
    assert asked_with(((name, value),)) == asked_with(())


# ---------------------------------------------------------------------- transformers


@pytest.fixture(scope="module")
def hf(tmp_path_factory) -> Asked:
    """The tiny model in transformers."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make(tmp_path_factory.mktemp("hf"), layers=1)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)

    def ask(settings: Mapping[str, Any]) -> list[str]:
        found = []
        for text in PROMPTS:
            tokens = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            usual = {"do_sample": False, "max_new_tokens": TOKENS, "pad_token_id": 2}
            torch.manual_seed(0)
            output = model.generate(**tokens, **{**usual, **settings}, tokenizer=tokenizer)
            found.append(tokenizer.decode(output[0][tokens["input_ids"].shape[1] :]))
        return found

    return ask


def test_harmless_settings_of_transformers_change_no_answer_and_new_ones_move_a_score(hf):
    from transformers import GenerationConfig

    known = {name for name in GenerationConfig().to_dict() if not name.startswith("_")}
    unnamed = [name for name in known if ("generation", name) not in SETTINGS]
    assert all(effect("generation", name, 1) is Effect.MOVES for name in unnamed)
    assert_harmless(hf, known)


DRAWN_HF: dict[str, tuple[Any, ...]] = {
    "num_beams": (1, 5), "num_return_sequences": (1,), "repetition_penalty": (1, 1.8),
    "no_repeat_ngram_size": (0, 2), "length_penalty": (1, 5.0), "min_new_tokens": (0, 5),
    "stop_strings": (None, ["e"]), "suppress_tokens": (None, [60, 61, 62, 63]),
    "begin_suppress_tokens": (None, [60, 61]), "forced_eos_token_id": (None, 5),
    "bad_words_ids": (None, [[60], [61]]), "guidance_scale": (None, 3.0), "use_cache": BOTH,
    "do_sample": (False, True), "temperature": (0.7, 1.0), "top_k": (5, 50), "top_p": (0.2, 1.0),
    "min_p": (None, 0.5), "cache_implementation": (None, "static", "dynamic"),
    "renormalize_logits": (False, True), "exponential_decay_length_penalty": (None, (2, 3.0)),
    "encoder_repetition_penalty": (1.0, 2.0),
}  # fmt: skip


def test_no_drawn_settings_of_transformers_that_change_an_answer_pass_as_harmless(hf):
    drawn = [*draws(DRAWN_HF, 1)]
    for settings in drawn:
        if not settings.get("do_sample"):  # lm-eval leaves out a temperature where nothing is drawn
            settings.pop("temperature", None)
    assert unmarked(drawn, lambda each: map(hf, each)) == []


def test_a_loaded_model_says_what_it_is(tmp_path):
    from lm_eval.models.huggingface import HFLM

    file = make(tmp_path) / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "repetition_penalty": 1.3}))
    lm = HFLM(pretrained=str(tmp_path), device="cpu", dtype="float32")
    found = described(lm, template=True, layout=None)
    assert found.dtype == "float32" and found.template == found.local_template != ""
    assert {"repetition_penalty": 1.3}.items() <= found.generation.items()
    record = Conditions(decoding={"do_sample": False}, engines=(found,))
    assert facts(record)["brought"] == (("repetition_penalty", 1.3),)
