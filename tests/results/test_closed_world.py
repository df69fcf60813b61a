"""No setting passes unmarked: keys and values from five sources, through every output.

The sources are vLLM's `SamplingParams` (0.32), `GenerationConfig` of transformers (5), requests of chat
servers, arguments of lm-eval's models with its flags, and what a chat template is given. What each key does
is said here once more, and not read from the list of settings, which
`tests/engine/test_harmless_settings.py` proves.
"""

import csv
import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from medtasks_ext.registry import registry
from medtasks_ext.results.condition_words import task_words
from medtasks_ext.results.conditions import comparable, differences, facts, moving, of_the_paper
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.runs.manifest import EngineRecord
from tests.report.made import write_run

TASK = "bridge_brainmri_ais"
N = registry().datasets[TASK].n_documents


def listed(names):
    return names.split()


SAMPLING = listed("""
    n presence_penalty frequency_penalty repetition_penalty watermarking stop stop_token_ids ignore_eos
    min_tokens skip_special_tokens spaces_between_special_tokens include_stop_str_in_output
    structured_outputs logit_bias allowed_token_ids extra_args bad_words thinking_token_budget
    repetition_detection trace_decode_token_ids best_of guided_choice guided_json guided_regex
    guided_grammar detokenize
""")
TRANSFORMERS = listed("""
    num_beams num_beam_groups num_return_sequences early_stopping max_time max_length stop_strings
    min_length min_new_tokens encoder_repetition_penalty length_penalty no_repeat_ngram_size
    bad_words_ids renormalize_logits forced_bos_token_id forced_eos_token_id
    exponential_decay_length_penalty suppress_tokens begin_suppress_tokens sequence_bias token_healing
    guidance_scale watermarking_config eos_token_id bos_token_id decoder_start_token_id penalty_alpha
    dola_layers diversity_penalty constraints force_words_ids remove_invalid_values
    prompt_lookup_num_tokens use_mtp assistant_ensemble_weight speculation_type
    encoder_no_repeat_ngram_size cache_implementation cache_config logits_processor
""")
CHAT = listed("""
    response_format tools tool_choice functions function_call echo chat_template documents
    add_generation_prompt continue_final_message truncate_prompt_tokens use_beam_search vllm_xargs
    web_search_options modalities prediction verbosity reasoning_effort enable_thinking include_reasoning
    truncation_side
""")
ARGUMENTS = listed("""
    eos_string truncation truncation_side add_bos_token prefix_token_id hf_overrides logits_processors
    override_generation_config generation_config kv_cache_dtype quantization peft delta lora_local_path
    revision subfolder gguf_file tokenizer enable_thinking autogptq load_in_4bit dtype max_lora_rank
    reasoning_parser tokenizer_mode think_end_token --predict_only --mood softmax_dtype backend
    attn_implementation attention_backend tokenized_requests served_model_name
""")
CONTEXT = ["enable_thinking", "reasoning_effort", "tools", "documents", "date_string", "mood"]
CONTEXT += ["add_generation_prompt", "continue_final_message"]
#: By which another model answers, and by which the same one rounds: named, and no bar to a rank.
NAMED = {
    "reasoning_effort", "enable_thinking", "quantization", "peft", "delta", "lora_local_path", "revision",
    "subfolder", "gguf_file", "tokenizer", "autogptq", "load_in_4bit", "dtype", "max_lora_rank",
    "reasoning_parser", "tokenizer_mode", "think_end_token", "softmax_dtype", "backend",
    "attn_implementation", "attention_backend", "tokenized_requests", "served_model_name",
    "include_reasoning",
}  # fmt: skip
#: None of them is a default of an engine.
VALUES = (7, 0.37, "quince", ["quince"], {"quince": 1}, "7", "['quince']")
SOURCES = {"generation": [*SAMPLING, *TRANSFORMERS, *CHAT], "model": ARGUMENTS, "template": CONTEXT}
PLACES = [(place, name) for place, names in SOURCES.items() for name in names]
USUAL = {"do_sample": False, "until": [], "max_gen_toks": 4000}


def asked_with(place, name, value):
    """What is asked with a setting: `decoding` and `arguments`."""
    if place == "generation":
        return {**USUAL, name: value}, {}
    return USUAL, {name: value} if place == "model" else {"chat_template_args": {name: value}}


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize(("place", "name"), PLACES)
def test_each_setting_is_another_condition_or_is_named_in_words(place, name, value):
    decoding, arguments = asked_with(place, name, value)
    run = Conditions(decoding=decoding, arguments=arguments)
    paper = of_the_paper(registry().datasets[TASK], "zero_shot")
    added = {"generation", "arguments"} & {item.field for item in moving(facts(run), facts(paper))}
    assert bool(added) is (name not in NAMED)
    assert name in task_words(run)["asked_with"]


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize(
    "name", ["top_p", "top_k", "min_p", "typical_p", "top_h", "epsilon_cutoff", "eta_cutoff"]
)
def test_what_draws_answers_counts_where_they_are_drawn_and_nowhere_else(name, value):
    drawn, greedy = ({**USUAL, "temperature": heat, "do_sample": heat > 0} for heat in (0.7, 0))
    pairs = [
        differences(*(facts(Conditions(decoding={**usual, **more})) for more in ({}, {name: value})))
        for usual in (drawn, greedy)
    ]
    assert [[item.condition for item in pair] for pair in pairs] == [["decoding"], []]


@given(some.text(min_size=1), some.text(min_size=1))
def test_added_text_and_templates_are_other_conditions(text, template):
    paper = facts(of_the_paper(registry().datasets[TASK], "zero_shot"))
    for layout in ({"system_instruction": text}, {"own_template": template}):
        run = Conditions(decoding=USUAL, arguments={}, **layout)
        assert not comparable(facts(run), paper) and "asked_with" in task_words(run)


def test_a_template_of_a_folder_on_ones_machine_is_named_and_keeps_two_runs_of_one_model_apart():
    on_the_hub, one, other = (
        Conditions(
            decoding=USUAL,
            arguments={},
            template=True,
            engines=(EngineRecord(template=hash_, repository_template=known),),
        )
        for hash_, known in (("text-1", True), ("text-1", None), ("text-2", None))
    )
    assert "text-2" in task_words(other)["asked_with"] and "asked_with" not in task_words(on_the_hub)
    for first, second in ((on_the_hub, one), (one, other)):
        joined = differences(facts(first), facts(second), joined=True)
        assert [(item.condition, item.moves) for item in joined] == [("chat template", False)]
        assert comparable(facts(first), facts(second)) and differences(facts(first), facts(second))


def laid_out(hash_, *, written=False):
    """Conditions by the hash of the chat template: that of the tokenizer's repository, or a written one."""
    seen = EngineRecord(template=hash_, repository_template=None if hash_ is None else not written)
    own = hash_ if written else None
    asked = {"decoding": USUAL, "arguments": {}, "template": True, "own_template": own}
    return facts(Conditions(**asked, engines=(seen,)))


def test_known_hashes_of_two_templates_are_a_difference_and_an_unknown_one_is_no_bar():
    one, other, written, unknown = (
        laid_out("text-1"), laid_out("text-2"), laid_out("text-2", written=True), laid_out(None),
    )  # fmt: skip
    again = laid_out("text-1")
    assert differences(one, again) == differences(one, again, joined=True) == ()
    for found in (differences(one, other), differences(one, other, joined=True)):
        assert [(item.condition, item.moves, item.known) for item in found] == [
            ("chat template", False, True)
        ]
    assert [item.condition for item in moving(one, written)] == ["chat template"]
    assert differences(one, unknown) == ()
    paper = facts(of_the_paper(registry().datasets[TASK], "zero_shot"))
    assert differences(one, paper) == differences(unknown, paper)


#: What is drawn for every output: some of each source, and what the reviews tried.
_RNG = random.Random(20)
DRAWN = [
    ("generation", "repetition_penalty", 1.8),
    ("generation", "stop", ["e"]),
    ("model", "quantization", "fp8"),
    *((*_RNG.choice([(place, name) for name in SOURCES[place]]), _RNG.choice(VALUES)) for place in SOURCES),
    ("system", "system_instruction", "Most answers are yes."),
    ("until", "until", ["e"]),
    ("layout", "layout", "{{ messages }} Most answers are yes."),
]  # fmt: skip
SCORES = [float(number % 3 == 0) for number in range(40)]


def write(folder, model, place=None, name=None, value=None):
    """A run in the suite's own words, asked with one setting more."""
    generation, arguments, settings = dict(USUAL), {}, {"apply_chat_template": True}
    if place in ("generation", "until"):
        generation[name] = value
        settings["gen_kwargs"] = {name: value}
    elif place == "model":
        arguments[name] = value
    elif place == "template":
        arguments["chat_template_args"] = {name: value}
    elif place == "layout":
        settings = {"apply_chat_template": False, "layout": value, "fewshot_as_multiturn": True}
    elif place == "system":
        settings[name] = value
    config = {"num_fewshot": 0, "generation_kwargs": generation}
    values = [SCORES[number % len(SCORES)] for number in range(N)]
    return write_run(
        folder / model, f"ORG/{model}", {TASK: values}, loaded={"instruction": "official"},
        record={"config": config, "cut": {"shots_dropped": 0, "inputs_cut": 0, "answers_cut": 0}},
        settings=settings, arguments=arguments,
    )  # fmt: skip


def says(text, drawn):
    """Whether a text names the setting, or the condition that it is."""
    place, name, _ = drawn
    words = {
        "until": "stop strings", "layout": "template", "system": "system",
    }.get(place, name)  # fmt: skip
    return words in text or {"system": "text-", "until": '"stop"'}.get(place, "\0") in text


def rows_of(file):
    with file.open(encoding="utf-8") as content:
        return list(csv.DictReader(content))


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda item: f"{item[0]}-{item[1]}")
def test_a_setting_is_marked_in_every_output(medtasks, tmp_path, drawn):
    moves = drawn[1] not in NAMED
    write(tmp_path, "usual")
    write(tmp_path, "more", *drawn)
    # report, its page and its tables
    outcome = medtasks.done("report", "more", "-o", "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    [row] = [item for item in rows_of(tmp_path / "out" / "results.csv") if item["metric"] == "score"
             and item["kind"] == "medtasks"]  # fmt: skip
    [suite] = [item for item in rows_of(tmp_path / "out" / "groups.csv") if item["axis"] == "suite"
               and item["kind"] == "medtasks" and item["suite"] == "bridge"]  # fmt: skip
    if moves:
        assert "other conditions than the published models" in " ".join(outcome.out.split())
        assert (row["comparable"], suite["rank"], suite["rank_of"]) == ("false", "", "")
        assert says(row["otherwise"], drawn)
    else:
        assert row["comparable"] == "true" and row["unknown"]
    assert says(json.dumps(row), drawn) and (moves or says(outcome.out, drawn) or drawn[1] in row["rounding"])
    assert says(page, drawn)
    # compare names it
    assert re.search(r"1\.000  other (?!$)\w+", medtasks("compare", "usual", "more").out)
    # the two are tested against each other only where they are alike
    both = json.loads(medtasks("report", "usual", "more", "--published", "none", "--json").out)
    assert (both["pairs"] == []) is moves
    # card, hub
    assert medtasks("card", "more", "-o", "card").code == 0
    for name in ("medical-evaluation.md", "medtasks-manifest.json"):
        assert says((tmp_path / "card" / name).read_text(encoding="utf-8"), drawn), name
    readme = (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    assert says(readme.partition("\n---")[0], drawn)
    assert all(says(path.read_text(), drawn) for path in (tmp_path / "card").glob("*.json"))
    # the leaderboard's files
    exported = medtasks("card", "more", "--layout", "bridge", "-o", "exported")
    assert exported.code == 2 if moves else exported.code in (0, 2)
    if moves:
        assert "other conditions" in exported.text
    for path in (tmp_path / "exported").rglob("*.json"):
        assert drawn[1] in ("dtype", "think_end_token") or says(path.read_text(), drawn)


def test_no_name_stands_in_two_sources_with_another_meaning():
    assert len(PLACES) == len(set(PLACES)) and not re.search(r"\s", "".join(name for _, name in PLACES))
