"""The list of settings once more, in other words, and that no line of it can change unseen.

Who changes a line changes what may be ranked beside what, so it is said in two places. Each line is then
left out, shortened by a name, given another effect, and more and fewer values that change nothing: every such
list differs from what is said here, in the grade of two results.
"""

from dataclasses import replace

import pytest

from medtasks_ext.results.condition_words import task_words
from medtasks_ext.results.conditions import differences, facts
from medtasks_ext.runs import settings
from medtasks_ext.runs.conditions import Conditions, moving
from medtasks_ext.runs.settings import LISTS, Effect, effect, is_harmless, setting_of

#: Place -> what each key does with a value that stands in no line, and the values that change nothing.
SAID: dict[str, list[tuple[Effect, tuple[object, ...], str]]] = {
    "generation": [
        (Effect.ROUNDS, (True, None,), "include_reasoning"),
        (Effect.DRAWS, (0,), "temperature"),
        (Effect.DRAWS, (0, -1, None,), "top_k"),
        (Effect.DRAWS, (0, None,), "min_p epsilon_cutoff eta_cutoff"),
        (Effect.DRAWS, (1, None,), "top_p typical_p"),
        (Effect.DRAWS, (False, None,), "do_sample"),
        (Effect.DRAWS, (None,), "top_h seed"),
        (Effect.HARMLESS, (), """
            logprobs top_logprobs prompt_logprobs prompt_logprob_token_ids prompt_logprob_start
            logprob_token_ids flat_logprobs output_kind stream_interval skip_clone
            output_text_buffer_length skip_reading_prefix_cache routed_experts_prompt_start
            output_attentions output_hidden_states output_scores output_logits
            return_dict_in_generate use_cache disable_compile compile_config pad_token_id
            transformers_version user request_id session_id priority stream stream_options
            cache_salt metadata store service_tier safety_identifier prompt_cache_key
            return_tokens_as_token_ids return_token_ids return_token_offsets return_prompt_text
            parallel_tool_calls
        """),
        (Effect.MODEL, (None,), "enable_thinking reasoning_effort reasoning thinking"),
        (Effect.MOVES, (), """
            eos_token_id bos_token_id decoder_start_token_id skip_special_tokens
            spaces_between_special_tokens
        """),
        (Effect.MOVES, (0, None,), """
            presence_penalty frequency_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size
            diversity_penalty penalty_alpha min_tokens min_new_tokens min_length
        """),
        (Effect.MOVES, (1, None,), """
            repetition_penalty encoder_repetition_penalty num_beams num_beam_groups n
            num_return_sequences best_of length_penalty
        """),
        (Effect.MOVES, (False, None,), """
            use_beam_search early_stopping include_stop_str_in_output ignore_eos echo
            continue_final_message renormalize_logits remove_invalid_values
        """),
        (Effect.MOVES, (None,), """
            repetition_detection max_length max_time thinking_token_budget truncate_prompt_tokens
            truncation_side forced_bos_token_id forced_eos_token_id exponential_decay_length_penalty
            chat_template cache_config
        """),
        (Effect.MOVES, (None, 'dynamic', 'static',), "cache_implementation"),
        (Effect.MOVES, (None, False,), """
            watermarking watermarking_config token_healing assistant_model prompt_lookup_num_tokens
            use_mtp
        """),
        (Effect.MOVES, (None, [],), """
            dola_layers guidance_scale constraints force_words_ids stop stop_strings stop_sequences
            stop_token_ids allowed_token_ids suppress_tokens begin_suppress_tokens bad_words
            bad_words_ids logits_processor logits_processors tools tool_choice functions
            function_call documents
        """),
        (Effect.MOVES, (None, {},), """
            structured_outputs guided_json guided_regex guided_choice guided_grammar guided_decoding
            response_format extra_args vllm_xargs trace_decode_token_ids
        """),
        (Effect.MOVES, (None, {}, [],), "logit_bias sequence_bias"),
        (Effect.MOVES, (True,), "detokenize"),
        (Effect.MOVES, (True, None,), "add_generation_prompt"),
        (Effect.SAID, (), "max_gen_toks max_new_tokens max_tokens max_completion_tokens until"),
    ],
    "model": [
        (Effect.ROUNDS, ('auto', None,), "dtype"),
        (Effect.ROUNDS, ('default', 'causal',), "backend"),
        (Effect.ROUNDS, (None,), """
            softmax_dtype mixed_precision_dtype attention_backend attn_implementation model_impl
            use_fast_tokenizer async_scheduling block_size compilation_config max_logprobs
            speculative_config scheduling_policy think_end_token
        """),
        (Effect.ROUNDS, (True, None,), "tokenized_requests"),
        (Effect.HARMLESS, (), """
            base_url verify_certificate ca_cert_path num_concurrent max_retries timeout
            batch_size max_batch_size max_num_seqs max_num_batched_tokens gpu_memory_utilization
            swap_space cpu_offload_gb kv_cache_memory_bytes device device_map parallelize
            max_memory_per_gpu max_cpu_memory offload_folder tensor_parallel_size data_parallel_size
            pipeline_parallel_size enable_expert_parallel distributed_executor_backend enforce_eager
            disable_log_stats enable_prefix_caching enable_chunked_prefill
            max_parallel_loading_workers download_dir cache_dir trust_remote_code tokenizer_backend
            load_format
        """),
        (Effect.MODEL, (None,), """
            peft delta lora_local_path max_lora_rank enable_lora tokenizer enable_thinking
            reasoning_effort reasoning_parser served_model_name
        """),
        (Effect.MODEL, (None, '', [], {}, False,), """
            quantization quantization_config load_in_4bit load_in_8bit autogptq gptqmodel
            bnb_4bit_quant_type bnb_4bit_compute_dtype bnb_4bit_use_double_quant
        """),
        (Effect.MODEL, (None, 'auto', 'hf',), "tokenizer_mode"),
        (Effect.MODEL, (None, "", -1,), "model_sha peft_sha delta_sha model_num_parameters"),
        (Effect.MODEL, (None, 'main', '',), """
            revision code_revision tokenizer_revision subfolder gguf_file
        """),
        (Effect.MOVES, ('auto', None,), "kv_cache_dtype"),
        (Effect.MOVES, ('left', None,), "truncation_side"),
        (Effect.MOVES, (False, None,), "truncate truncation"),
        (Effect.MOVES, (None,), """
            add_bos_token add_eos_token bos_token eos_token unk_token pad_token prefix_token_id
            custom_prefix_token_id eos_string
        """),
        (Effect.MOVES, (None, 'auto', {},), "generation_config override_generation_config"),
        (Effect.MOVES, (None, {}, [],), "hf_overrides logits_processors"),
        (Effect.SAID, (), """
            pretrained model max_model_len max_length max_gen_toks seed chat_template_args
            chat_template_kwargs
        """),
    ],
    "flag": [
        (Effect.HARMLESS, (), """
            batch_size max_batch_size batch_sizes device use_cache bootstrap_iters
            check_integrity write_out log_samples output_path show_config include_path verbosity
            wandb_args wandb_config_args hf_hub_log_args trackio_args trust_remote_code
            confirm_run_unsafe_code
        """),
        (Effect.MOVES, (False, None,), "predict_only"),
        (Effect.SAID, (), """
            model model_args gen_kwargs config metadata tasks num_fewshot limit samples drop_faulty
            data prompts apply_chat_template fewshot_as_multiturn layout system_instruction
            system_role official_budget context seed random_seed numpy_seed torch_seed fewshot_seed
            model_num_parameters model_dtype model_revision model_sha peft_sha delta_sha
        """),
    ],
    "template": [
        (Effect.MODEL, (None,), "enable_thinking reasoning_effort thinking thinking_mode"),
        (Effect.MOVES, (False, None,), "continue_final_message"),
        (Effect.MOVES, (None,), "date_string"),
        (Effect.MOVES, (None, [],), "tools documents"),
        (Effect.MOVES, (True, None,), "add_generation_prompt"),
    ],
}  # fmt: skip
#: In no line, and no default of any engine.
UNUSUAL = (7, 0.37, "quince", ["quince"], {"quince": 1}, True, False, 0, 1, -1, None, "", "main", "auto")
#: What a difference is called, where answers are the likeliest ones.
CALLED = {
    ("generation", Effect.MOVES): "generation", ("generation", Effect.MODEL): "variant",
    ("generation", Effect.ROUNDS): "rounding", ("model", Effect.MOVES): "arguments",
    ("model", Effect.MODEL): "variant", ("model", Effect.ROUNDS): "rounding",
    ("template", Effect.MOVES): "arguments", ("template", Effect.MODEL): "variant",
}  # fmt: skip
LINES = [(place, line) for place, lines in LISTS.items() for line in lines]
NAMES = sorted((place, name) for place, line in LINES for name in line.names)


def alike(value, values):
    return any(isinstance(value, bool) == isinstance(item, bool) and value == item for item in values)


def wrong(names):
    """Of some keys, those that the list treats otherwise than is said here."""
    for place, groups in SAID.items():
        for does, values, said in groups:
            for name in said.split():
                for value in (*values, *UNUSUAL) if (place, name) in names else ():
                    if effect(place, name, value) is not (Effect.HARMLESS if alike(value, values) else does):
                        yield place, name, value


def test_the_list_says_what_is_said_here():
    assert [*wrong(NAMES)] == []
    said = [(place, name) for place, groups in SAID.items() for *_, names in groups for name in names.split()]
    assert sorted(said) == NAMES


@pytest.mark.parametrize(("place", "name"), [item for item in NAMES if item[0] != "flag"])
def test_what_the_list_says_is_the_grade_of_two_results(place, name):
    line = setting_of(place, name)
    value = next(value for value in UNUSUAL if not alike(value, line.values))
    usual = {"decoding": {"do_sample": False, "until": []}, "arguments": {}}
    if name in ("chat_template_args", "chat_template_kwargs"):
        value = {}
    given = {"chat_template_args": {name: value}} if place == "template" else {name: value}
    if place == "generation":
        more = {**usual, "decoding": {**usual["decoding"], **given}}
    else:
        more = {**usual, "arguments": moving(given)}
    found = differences(*(facts(Conditions(**asked)) for asked in (usual, more)))
    fields = [item.field for item in found]
    if line.effect in (Effect.HARMLESS, Effect.SAID, Effect.DRAWS):
        # of these, two alone say something where nothing is drawn
        assert fields == {"until": ["stop"], "temperature": ["decoding"]}.get(name, [])
        assert place != "model" or is_harmless(name) is (line.effect is Effect.HARMLESS)
    else:
        assert fields == [CALLED[place, line.effect]]
        assert found[0].moves is (line.effect is Effect.MOVES)
        assert name in task_words(Conditions(**more))["asked_with"]


def changed(line):
    """What somebody may make of a line, each with the reason."""
    values, names = line.values, line.names
    # what no line names moves a score, so that without values such a line says nothing else
    if values or line.effect is not Effect.MOVES:
        yield "left out", None
        for name in names:
            yield f"without {name}", replace(line, names=tuple(item for item in names if item != name))
    for other in Effect:
        if other is not line.effect:
            yield other.value, replace(line, effect=other)
    if line.effect in (Effect.HARMLESS, Effect.SAID):
        return
    for value in values:
        yield f"{value!r} moves", replace(line, values=tuple(item for item in values if item is not value))
    for value in UNUSUAL:
        if not alike(value, values):
            yield f"{value!r} is harmless", replace(line, values=(*values, value))


@pytest.mark.parametrize(("place", "line"), [pytest.param(*item, id=item[1].names[0]) for item in LINES])
def test_no_line_can_be_changed_unseen(monkeypatch, place, line):
    keys, unseen = {(place, name) for name in line.names}, []
    for why, other in changed(line):
        lines = tuple(one for item in LISTS[place] if (one := other if item is line else item) is not None)
        monkeypatch.setattr(settings, "LISTS", {**LISTS, place: lines})
        settings._by_name.cache_clear()
        if not any(wrong(keys)):
            unseen.append(why)
    monkeypatch.undo()
    settings._by_name.cache_clear()
    assert unseen == []
