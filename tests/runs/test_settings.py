"""The list of settings: what no line names moves a score; what is harmless is so with its values alone."""

import functools
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from medtasks_ext.privacy import text_hash
from medtasks_ext.registry import registry
from medtasks_ext.results.condition_words import task_words
from medtasks_ext.results.conditions import differences, facts, moving, of_the_paper
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.runs.conditions import moving as moving_arguments
from medtasks_ext.runs.manifest import identity_of
from medtasks_ext.runs.settings import LISTS, Effect, effect, is_harmless, read_value, setting_of, with_effect

#: Model arguments that were no part of the identity of any run: the keys of requests hang on the others.
NEVER_IN_KEYS = [
    "base_url", "num_concurrent", "max_retries", "timeout", "verify_certificate", "ca_cert_path",
    "batch_size", "max_batch_size", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization",
    "device", "device_map", "parallelize", "max_memory_per_gpu", "max_cpu_memory", "offload_folder",
    "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size", "enable_expert_parallel",
    "distributed_executor_backend", "enforce_eager", "swap_space", "cpu_offload_gb", "disable_log_stats",
    "download_dir", "cache_dir", "trust_remote_code", "tokenizer_backend", "enable_prefix_caching",
    "enable_chunked_prefill", "kv_cache_memory_bytes", "max_parallel_loading_workers", "load_format",
]  # fmt: skip
NAMES = some.text(min_size=1, max_size=20)


def unlike(**asked):
    """What differs between two results, one of which was asked with more: condition -> whether it moves."""
    usual = {"decoding": {"do_sample": False}, "arguments": {}}
    found = differences(facts(Conditions(**usual)), facts(Conditions(**{**usual, **asked})))
    return {item.condition: item.moves for item in found}


def test_each_name_stands_in_one_line_of_its_list_and_each_line_has_a_reason():
    for lines in LISTS.values():
        names = [name for line in lines for name in line.names]
        assert len(names) == len(set(names))
        assert all(line.why and line.names for line in lines)


def test_the_identity_of_a_run_leaves_out_what_it_always_left_out():
    """Another one here would ask requests of runs anew that were paid for."""
    harmless = {name for line in LISTS["model"] for name in line.names if is_harmless(name)}
    assert harmless == set(NEVER_IN_KEYS)
    kept = identity_of("vllm", {"pretrained": "m", "dtype": "auto", **dict.fromkeys(NEVER_IN_KEYS, 1)}, {})
    assert kept.model["model_args"] == {"pretrained": "m", "dtype": "auto"}


@given(
    some.text(min_size=1, max_size=20).filter(lambda name: setting_of("generation", name) is None),
    some.integers(),
)
def test_what_no_line_names_is_another_condition(name, value):
    assert effect("generation", name, value) is Effect.MOVES
    assert unlike(decoding={"do_sample": False, name: value}) == {"generation settings": True}


@given(NAMES.filter(lambda name: setting_of("model", name) is None), some.text())
def test_an_argument_of_the_model_that_no_line_names_is_another_condition(name, value):
    assert effect("model", name, value) is Effect.MOVES
    assert unlike(arguments={name: value}) == {"model arguments": True}


@pytest.mark.parametrize(
    "decoding",
    [
        {"n": 1, "min_p": 0, "repetition_penalty": 1.0, "presence_penalty": "0", "ignore_eos": False},
        {"temperature": 0, "top_p": 0.9, "top_k": 50, "seed": 7},  # nothing is drawn
        {"stop": [], "logit_bias": {}, "structured_outputs": None, "bad_words": "[]", "num_beams": "1"},
        {"logprobs": 5, "user": "me", "stream": True, "use_cache": False},
    ],
)
def test_defaults_of_engines_are_no_difference(decoding):
    assert unlike(decoding={"do_sample": False, **decoding}) == {}


def test_a_penalty_is_no_part_of_how_answers_are_drawn():
    sampled = facts(Conditions(decoding={"temperature": 0.7, "repetition_penalty": "1.8"}))
    assert (dict(sampled["decoding"]), dict(sampled["generation"])) == (
        {"temperature": 0.7},
        {"repetition_penalty": 1.8},
    )


@pytest.mark.parametrize(
    ("arguments", "condition", "moves"),
    [
        ({"quantization": "fp8"}, "variant of the model", False),
        ({"lora_local_path": "/adapters/a"}, "variant of the model", False),
        ({"enable_thinking": "True"}, "variant of the model", False),
        ({"chat_template_args": {"enable_thinking": True}}, "variant of the model", False),
        ({"chat_template_args": '{"tools": [1]}'}, "model arguments", True),
        ({"chat_template_args": "{{ no JSON"}, "model arguments", True),
        ({"chat_template_args": {"mood": "good"}}, "model arguments", True),
        ({"dtype": "float16"}, "precision", False),
        ({"eos_string": "e"}, "model arguments", True),
        ({"hf_overrides": {"rope": 2}}, "model arguments", True),
    ],
)
def test_what_an_argument_of_a_model_does_is_said_by_the_list(arguments, condition, moves):
    assert unlike(arguments=arguments) == {condition: moves}


@pytest.mark.parametrize("value", ["auto", None, "None"])
def test_an_argument_at_its_default_is_no_difference(value):
    assert unlike(arguments={"dtype": value, "quantization": None, "revision": "main"}) == {}


def test_text_before_the_prompt_and_a_template_of_ones_own_are_conditions():
    assert unlike(system_instruction="Most answers are yes.") == {"system instruction": True}
    assert unlike(own_template=text_hash("{{ x }}"))["chat template"] is True
    one, public = "Be brief.", text_hash("Be brief.")
    assert differences(*(facts(Conditions(system_instruction=text)) for text in (one, public))) == ()


def test_what_a_paper_does_not_state_was_not_added():
    """Also where the paper says nothing of its decoding."""
    for name in ("bridge_mie", "clinicbench_medqa"):
        dataset = registry().datasets[name]
        paper = facts(of_the_paper(dataset, "zero_shot"))
        for decoding in ({"repetition_penalty": 1.8}, {"until": ["e"]}):
            run = facts(Conditions(decoding={"do_sample": False, "until": [], **decoding}))
            assert {"generation", "stop"} & {item.field for item in moving(run, paper)}
        usual = facts(Conditions(decoding={"do_sample": False, "until": []}))
        assert not {"generation", "stop", "arguments"} & {item.field for item in moving(usual, paper)}


@given(some.recursive(some.none() | some.booleans() | some.integers() | some.text(), some.lists))
def test_a_value_of_a_command_line_is_read_or_left(value):
    assert not isinstance(value, str) or read_value(read_value(value)) == read_value(read_value(value))
    assert isinstance(value, str) or read_value(value) is value


def test_harmless_arguments_are_not_recorded_and_others_are():
    given_ = {"pretrained": "m", "batch_size": 8, "dtype": "auto", "mood": "good"}
    assert moving_arguments(given_) == {"dtype": "auto", "mood": "good"}
    assert with_effect("model", given_, Effect.MOVES) == {"mood": "good"}


def test_each_setting_of_a_run_is_named_and_said_by_another_field_of_the_record():
    for item in fields(Settings):
        line = setting_of("flag", item.name)
        assert line is not None and line.effect is Effect.SAID, item.name


# Every name of the list of settings is in every record, whatever word it holds.


TASK = "bridge_chip_ctc"
#: Place -> the names that it takes. Harmless arguments of a model are no part of a run's identity, and two
#: arguments name the model.
NAMED = {
    "--gen_kwargs": {name for line in LISTS["generation"] for name in line.names},
    "--model_args": {
        name for line in LISTS["model"] if line.effect is not Effect.HARMLESS for name in line.names
    }
    - {"pretrained", "model"},
}
TEMPLATE = {name for line in LISTS["template"] for name in line.names}
#: no default of any engine; as a length it is long enough for a prompt and its answer
VALUE = 7000
#: A form of answers with fields that are called as logins are.
FORM = {"properties": {"key": {"type": "string"}, "token": {"type": "integer"}}}


def given_at(place):
    """An option that gives every setting of a place."""
    if place == "--gen_kwargs":
        return place, json.dumps({**dict.fromkeys(sorted(NAMED[place]), VALUE), "guided_json": FORM})
    return place, json.dumps(
        {
            **dict.fromkeys(sorted(NAMED[place]), VALUE),
            "chat_template_args": dict.fromkeys(sorted(TEMPLATE), VALUE),
        }
    )


def lacking(place, text):
    """The names of a place that a text does not hold with a value."""
    names = NAMED[place] | (TEMPLATE if place == "--model_args" else set())
    return sorted(name for name in names if not re.search(rf"\b{name}\b['\"]?\s*(=|:|\|| was)", text))


@pytest.fixture
def run(medtasks, chip_ctc):
    def call(folder, *options):
        return medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", folder, *options)

    assert call("plain").code == 0
    return call


@pytest.mark.parametrize("place", NAMED)
def test_every_setting_is_recorded_compared_and_published(medtasks, run, place):
    outcome = run("set", *given_at(place))
    assert outcome.code == 0, outcome.err
    assert lacking(place, Path("set/run.json").read_text()) == []
    continued = run("plain", *given_at(place))
    assert continued.code == 2 and lacking(place, continued.err) == []
    compared = medtasks("compare", "plain", "set")
    assert lacking(place, compared.out) == [] and "the same results" not in compared.out
    assert medtasks("card", "set", "-o", "card", "--parts").code == 0
    assert lacking(place, Path("card/medtasks-manifest.json").read_text()) == []
    assert (
        medtasks("card", "--layout", "medtasks", "set", "-o", "submissions/Org/oracle/2026-05-01").code == 0
    )
    assert lacking(place, Path("submissions/Org/oracle/2026-05-01/submission.json").read_text()) == []
    if place == "--gen_kwargs":
        identity = json.loads(Path("set/run.json").read_text())["identity"]
        assert identity["settings"]["gen_kwargs"]["guided_json"] == FORM


@pytest.mark.parametrize("place", NAMED)
def test_every_setting_of_plain_lm_eval_is_read(medtasks, chip_ctc, built_tasks, monkeypatch, place):
    from lm_eval import tasks
    from lm_eval.__main__ import cli_evaluate

    import medtasks_ext.models  # noqa: F401  # `oracle`

    monkeypatch.setattr(tasks, "TaskManager", functools.partial(tasks.TaskManager, include_defaults=False))
    for folder, options in (("plain", ()), ("set", given_at(place))):
        call = ["lm_eval", "--model", "oracle", "--tasks", TASK, "--include_path", str(built_tasks),
                "--output_path", folder, "--log_samples", *options]  # fmt: skip
        monkeypatch.setattr("sys.argv", call)
        cli_evaluate()
    compared = medtasks("compare", "plain", "set")
    assert lacking(place, compared.out) == [] and "the same results" not in compared.out


# The list of settings once more, in other words, so that no line of it can change unseen.
#
# Who changes a line changes what may be ranked beside what, so each name, its effect, and each value that
# changes nothing are said in two places.


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
EVERY_NAME = sorted((place, name) for place, line in LINES for name in line.names)


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
    assert [*wrong(EVERY_NAME)] == []
    said = {
        (place, name): values
        for place, groups in SAID.items() for _, values, names in groups for name in names.split()
    }  # fmt: skip
    assert sorted(said) == EVERY_NAME
    for place, line in LINES:
        for name in line.names:
            assert all(alike(value, (*said[place, name], *UNUSUAL)) for value in line.values), name


@pytest.mark.parametrize(("place", "name"), [item for item in EVERY_NAME if item[0] != "flag"])
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
        more = {**usual, "arguments": moving_arguments(given)}
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
