"""Every setting that can reach an engine, and what it can do to a score: the one list.

Keys of generation (vLLM's `SamplingParams`, `GenerationConfig` of transformers, chat requests), arguments of
models and of engines, flags of lm-eval, and what a chat template is given. A key that no line names is taken
to move a score. `tests/engine/test_harmless_settings.py` proves the harmless lines by equal answers of a
tiny model.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Literal


class Effect(Enum):
    """What a setting can do to a score."""

    #: nothing, whatever its value
    HARMLESS = "harmless"
    #: another field of the record says it
    SAID = "said"
    #: rounding alone: it is recorded and named, and makes two results `close`
    CLOSE = "close"
    #: it is part of which model was asked: it is named with the model, and makes two results `close`
    MODEL = "model"
    #: something where answers are drawn, and nothing where the likeliest ones are taken
    DRAWS = "draws"
    #: it moves a score
    MOVES = "moves"


#: Where a setting is given: generation (`--gen_kwargs`, a task's `generation_kwargs`), `--model_args`,
#: lm-eval's command line, or the context of a chat template (`chat_template_args`).
Place = Literal["generation", "model", "flag", "template"]


@dataclass(frozen=True)
class Setting:
    """A line of the list.

    Attributes:
        names: keys, for which all the same holds.
        effect: of a value that is none of `values`.
        why: the reason.
        values: those that change nothing: the engines' own defaults.
        untried: why no test compares answers with and without it; empty where one does.
    """

    names: tuple[str, ...]
    effect: Effect
    why: str
    values: tuple[Any, ...] = ()
    untried: str = ""


def _line(effect: Effect, names: str, why: str, *values: Any, untried: str = "") -> Setting:
    return Setting(tuple(names.split()), effect, why, values, untried)


_HARMLESS, _SAID, _CLOSE, _MODEL, _DRAWS, _MOVES = (
    Effect.HARMLESS,
    Effect.SAID,
    Effect.CLOSE,
    Effect.MODEL,
    Effect.DRAWS,
    Effect.MOVES,
)
_SERVER = "a server's own books; the tiny model's has none"
_MACHINE = "another machine"
#: no value
UNSET: tuple[Any, ...] = (None, "", [], {}, False)

#: What an answer is generated with.
GENERATION: tuple[Setting, ...] = (
    _line(_SAID, "max_gen_toks max_new_tokens max_tokens max_completion_tokens", "the budget of an answer"),
    _line(_SAID, "until", "the stop strings"),
    _line(_DRAWS, "do_sample", "whether answers are drawn", False, None),
    _line(_DRAWS, "temperature", "how far answers leave the likeliest one", 0),
    _line(_DRAWS, "top_p", "which tokens are drawn from", 1, None),
    _line(_DRAWS, "top_k", "which tokens are drawn from", 0, -1, None),
    _line(_DRAWS, "min_p", "which tokens are drawn from", 0, None),
    _line(_DRAWS, "typical_p", "which tokens are drawn from", 1, None),
    _line(_DRAWS, "top_h", "which tokens are drawn from", None),
    _line(_DRAWS, "epsilon_cutoff eta_cutoff", "which tokens are drawn from", 0, None),
    _line(_DRAWS, "seed", "the same answers drawn anew", None),
    _line(_MOVES, "repetition_penalty", "words that were said become less likely", 1, None),
    _line(_MOVES, "presence_penalty frequency_penalty", "words that were said become less likely", 0, None),
    _line(_MOVES, "encoder_repetition_penalty", "words of the prompt become more likely", 1, None),
    _line(_MOVES, "no_repeat_ngram_size encoder_no_repeat_ngram_size", "repeats are forbidden", 0, None),
    _line(_MOVES, "repetition_detection", "answers that repeat themselves are cut", None),
    _line(_MOVES, "num_beams num_beam_groups", "another search for the answer", 1, None),
    _line(_MOVES, "n num_return_sequences best_of", "the answer is chosen among several", 1, None),
    _line(_MOVES, "use_beam_search early_stopping", "another search for the answer", False, None),
    _line(_MOVES, "length_penalty", "beams are chosen by their length", 1, None),
    _line(_MOVES, "diversity_penalty penalty_alpha", "another search for the answer", 0, None),
    _line(
        _MOVES, "dola_layers guidance_scale constraints force_words_ids", "other tokens are likely", None, []
    ),
    _line(_MOVES, "stop stop_strings stop_sequences stop_token_ids", "answers are cut", None, []),
    _line(_MOVES, "include_stop_str_in_output ignore_eos", "answers end elsewhere", False, None),
    _line(_MOVES, "min_tokens min_new_tokens min_length", "answers may not end", 0, None),
    _line(_MOVES, "max_length max_time", "answers are cut", None),
    _line(_MOVES, "thinking_token_budget", "reasoning is cut", None),
    _line(_MOVES, "truncate_prompt_tokens", "prompts are cut", None),
    _line(_MOVES, "truncation_side", "prompts are cut", None),
    _line(
        _MOVES,
        "structured_outputs guided_json guided_regex guided_choice guided_grammar guided_decoding "
        "response_format",
        "answers are forced into a form",
        None,
        {},
    ),
    _line(_MOVES, "logit_bias sequence_bias", "some tokens become more likely", None, {}, []),
    _line(
        _MOVES,
        "allowed_token_ids suppress_tokens begin_suppress_tokens",
        "some tokens are forbidden",
        None,
        [],
    ),
    _line(_MOVES, "bad_words bad_words_ids", "some words are forbidden", None, []),
    _line(_MOVES, "forced_bos_token_id forced_eos_token_id", "some tokens are forced", None),
    _line(_MOVES, "exponential_decay_length_penalty", "long answers become less likely", None),
    _line(_MOVES, "watermarking watermarking_config token_healing", "other tokens are likely", None, False),
    _line(_MOVES, "eos_token_id bos_token_id decoder_start_token_id", "answers begin or end elsewhere"),
    _line(_MOVES, "detokenize", "without it there is no text", True),
    _line(
        _MOVES, "skip_special_tokens spaces_between_special_tokens", "the text of an answer is another one"
    ),
    _line(_MOVES, "extra_args vllm_xargs trace_decode_token_ids", "read by nobody knows what", None, {}),
    _line(_MOVES, "logits_processor logits_processors", "other tokens are likely", None, []),
    _line(
        _MOVES, "tools tool_choice functions function_call documents", "the prompt is another one", None, []
    ),
    _line(_MOVES, "chat_template", "the prompt is another one", None),
    _line(_MOVES, "echo", "the answer repeats the prompt", False, None),
    _line(_MOVES, "add_generation_prompt", "the prompt is another one", True, None),
    _line(_MOVES, "continue_final_message", "the prompt is another one", False, None),
    _line(
        _MODEL, "enable_thinking reasoning_effort reasoning thinking", "one model reasons more or less", None
    ),
    _line(
        _CLOSE,
        "include_reasoning",
        "whether the reply shows its reasoning; the answer is the same",
        True,
        None,
    ),
    _line(
        _HARMLESS,
        "logprobs top_logprobs prompt_logprobs prompt_logprob_token_ids prompt_logprob_start "
        "logprob_token_ids flat_logprobs",
        "the engine tells more of the same answer",
    ),
    _line(
        _HARMLESS,
        "output_kind stream_interval skip_clone output_text_buffer_length skip_reading_prefix_cache "
        "routed_experts_prompt_start",
        "how the engine hands an answer on",
    ),
    _line(
        _HARMLESS,
        "output_attentions output_hidden_states output_scores output_logits return_dict_in_generate",
        "the engine tells more of the same answer",
    ),
    _line(_HARMLESS, "use_cache disable_compile compile_config", "how the engine reckons"),
    _line(_HARMLESS, "pad_token_id transformers_version", "what is padded is not read"),
    _line(_MOVES, "cache_implementation", "a quantised cache rounds", None, "dynamic", "static"),
    _line(_MOVES, "cache_config", "a quantised cache rounds", None),
    _line(_MOVES, "renormalize_logits remove_invalid_values", "other tokens are likely", False, None),
    _line(
        _MOVES,
        "assistant_model prompt_lookup_num_tokens use_mtp",
        "another search for the answer",
        None,
        False,
    ),
    _line(
        _HARMLESS,
        "user request_id session_id priority stream stream_options cache_salt metadata store service_tier "
        "safety_identifier prompt_cache_key return_tokens_as_token_ids return_token_ids return_token_offsets "
        "return_prompt_text parallel_tool_calls",
        "a server's own books, and how it hands an answer on",
        untried=_SERVER,
    ),
)

#: What a model is loaded with. Harmless ones are no part of the identity of a run.
MODEL: tuple[Setting, ...] = (
    _line(_SAID, "pretrained model", "the name of the model"),
    _line(_SAID, "max_model_len max_length", "the context; inputs that are cut are counted"),
    _line(_SAID, "max_gen_toks", "the budget of an answer, where a task states none; ours do"),
    _line(_SAID, "seed", "the seed of the draws"),
    _line(
        _HARMLESS,
        "base_url header verify_certificate ca_cert_path num_concurrent max_retries timeout",
        "where a server is, and how often it is asked",
        untried=_SERVER,
    ),
    _line(
        _HARMLESS,
        "batch_size max_batch_size max_num_seqs max_num_batched_tokens",
        "how many are asked at a time: rounding",
    ),
    _line(
        _HARMLESS,
        "gpu_memory_utilization swap_space cpu_offload_gb kv_cache_memory_bytes device device_map "
        "parallelize max_memory_per_gpu max_cpu_memory offload_folder tensor_parallel_size "
        "data_parallel_size pipeline_parallel_size enable_expert_parallel distributed_executor_backend",
        "on which devices: rounding",
        untried=_MACHINE,
    ),
    _line(
        _HARMLESS,
        "enforce_eager disable_log_stats enable_prefix_caching enable_chunked_prefill "
        "max_parallel_loading_workers",
        "how the engine reckons: rounding",
    ),
    _line(
        _HARMLESS,
        "download_dir cache_dir trust_remote_code tokenizer_backend load_format",
        "from where, in which container and by whose leave the same weights are read",
        untried="it needs a hub",
    ),
    _line(_CLOSE, "dtype", "rounding", "auto", None),
    _line(_CLOSE, "softmax_dtype mixed_precision_dtype", "rounding", None),
    _line(_CLOSE, "backend", "the class that loads the weights", "default", "causal"),
    _line(
        _CLOSE,
        "attention_backend attn_implementation model_impl use_fast_tokenizer async_scheduling block_size "
        "compilation_config max_logprobs speculative_config scheduling_policy",
        "how the engine reckons: rounding",
        None,
    ),
    _line(_CLOSE, "tokenized_requests", "a server may begin a text otherwise than tokens", True, None),
    _line(_CLOSE, "think_end_token", "reasoning is set aside before the answer is read, as readers do", None),
    _line(
        _MODEL,
        "revision code_revision tokenizer_revision subfolder gguf_file",
        "other weights of the same name",
        None,
        "main",
        "",
    ),
    _line(
        _MODEL, "peft delta lora_local_path max_lora_rank enable_lora", "an adapter makes another model", None
    ),
    _line(
        _MODEL,
        "quantization quantization_config load_in_4bit load_in_8bit autogptq gptqmodel bnb_4bit_quant_type "
        "bnb_4bit_compute_dtype bnb_4bit_use_double_quant",
        "weights of fewer bits make another model",
        *UNSET,
    ),
    _line(_MODEL, "tokenizer", "another tokenizer makes another model", None),
    _line(_MODEL, "tokenizer_mode", "another tokenizer makes another model", None, "auto", "hf"),
    _line(
        _MODEL, "enable_thinking reasoning_effort reasoning_parser", "one model reasons more or less", None
    ),
    _line(_MODEL, "served_model_name", "the name of the model", None),
    _line(_SAID, "chat_template_args chat_template_kwargs", "what the template is given, key by key"),
    _line(_MOVES, "add_bos_token", "prompts begin otherwise", None),
    _line(_MOVES, "prefix_token_id custom_prefix_token_id", "prompts begin otherwise", None),
    _line(_MOVES, "eos_string", "answers are cut", None),
    _line(_MOVES, "truncate truncation", "prompts are cut", False, None),
    _line(_MOVES, "truncation_side", "prompts are cut", "left", None),
    _line(_MOVES, "kv_cache_dtype", "a cache of fewer bits rounds", "auto", None),
    _line(_MOVES, "generation_config override_generation_config", "settings of generation", None, "auto", {}),
    _line(_MOVES, "hf_overrides logits_processors", "other tokens are likely", None, {}, []),
)

#: Flags of lm-eval and of `medtasks run`, and what lm-eval's results say of a call.
FLAG: tuple[Setting, ...] = (
    _line(_SAID, "model model_args gen_kwargs config metadata", "the lists above"),
    _line(_SAID, "tasks num_fewshot", "task and strategy"),
    _line(_SAID, "limit samples drop_faulty", "the documents"),
    _line(_SAID, "data prompts", "origin of the rows; the wording"),
    _line(_SAID, "apply_chat_template fewshot_as_multiturn layout", "the layout of a prompt"),
    _line(_SAID, "system_instruction system_role", "the system turn"),
    _line(_SAID, "official_budget context", "budget and context"),
    _line(_SAID, "seed random_seed numpy_seed torch_seed fewshot_seed", "seed, and the hash of the examples"),
    _line(
        _SAID,
        "model_num_parameters model_dtype model_revision model_sha peft_sha delta_sha",
        "the model that was loaded",
    ),
    _line(
        _HARMLESS,
        "batch_size max_batch_size batch_sizes device use_cache bootstrap_iters "
        "check_integrity write_out log_samples output_path show_config include_path verbosity "
        "wandb_args wandb_config_args hf_hub_log_args trackio_args trust_remote_code confirm_run_unsafe_code",
        "how a call works and what it writes",
        untried="the call is the test's own",
    ),
    _line(
        _HARMLESS,
        "whole_answers",
        "without it an answer may end at the next question that a model asks itself, where the readers of "
        "its kind look no further: all metrics are those of the whole response",
        untried="tests/answers/test_ends.py compares the metrics of both",
    ),
    _line(_MOVES, "predict_only", "nothing is scored", False, None),
)

#: What a chat template is given beside the turns.
TEMPLATE: tuple[Setting, ...] = (
    _line(
        _MODEL,
        "enable_thinking reasoning_effort thinking thinking_mode",
        "one model reasons more or less",
        None,
    ),
    _line(_MOVES, "tools documents", "the prompt is another one", None, []),
    _line(_MOVES, "add_generation_prompt", "the prompt is another one", True, None),
    _line(_MOVES, "continue_final_message", "the prompt is another one", False, None),
    _line(_MOVES, "date_string", "the prompt is another one", None),
)
LISTS: Mapping[Place, tuple[Setting, ...]] = {
    "generation": GENERATION,
    "model": MODEL,
    "flag": FLAG,
    "template": TEMPLATE,
}
#: Arguments whose value holds settings of templates.
NESTED = ("chat_template_args", "chat_template_kwargs")


@lru_cache(maxsize=1)
def _by_name() -> dict[tuple[Place, str], Setting]:
    return {(place, name): line for place, lines in LISTS.items() for line in lines for name in line.names}


def setting_of(place: Place, name: str) -> Setting | None:
    """The line of a setting; None where no line names it."""
    return _by_name().get((place, name))


def effect(place: Place, name: str, value: Any) -> Effect:
    """What a setting with a value can do to a score.

    Args:
        place: where it is given.
        name: its key.
        value: as a file or a command line has it.
    """
    line = setting_of(place, name)
    if line is None:
        return Effect.MOVES
    if line.effect not in (Effect.HARMLESS, Effect.SAID) and _is_one_of(value, line.values):
        return Effect.HARMLESS
    return line.effect


def with_effect(place: Place, values: Mapping[str, Any], *effects: Effect) -> dict[str, Any]:
    """The settings among some that have one of these effects; what a template is given stands by name."""
    return {name: value for at, name, value in _each(place, values) if effect(at, name, value) in effects}


def _each(place: Place, values: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    for name, value in values.items():
        inner = read_value(value) if name in NESTED else None
        if isinstance(inner, Mapping):
            yield from (("template", str(key), item) for key, item in inner.items())
        elif name in NESTED:
            if not _is_one_of(value, UNSET):
                yield "template", name, value
        else:
            yield place, name, value


def read_value(value: Any) -> Any:
    """A value as it is meant: command lines and plain lm-eval write numbers, lists and mappings as text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in ("none", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _is_one_of(value: Any, known: Iterable[Any]) -> bool:
    """Whether a value is one of some; 1 is 1.0, and no truth value is a number."""
    read = read_value(value)
    return any(isinstance(read, bool) == isinstance(item, bool) and read == item for item in known)
