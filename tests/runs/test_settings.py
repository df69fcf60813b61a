"""The list of settings: what no line names moves a score; what is harmless is so with its values alone."""

import functools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from medtasks_ext.privacy import text_hash
from medtasks_ext.results.conditions import differences, facts
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.runs.conditions import moving as moving_arguments
from medtasks_ext.runs.settings import LISTS, SETTINGS, Effect, with_effect


def unlike(**asked):
    """What differs between two results, one of which was asked with more: condition -> whether it moves."""
    usual = {"decoding": {"do_sample": False}, "arguments": {}}
    found = differences(facts(Conditions(**usual)), facts(Conditions(**{**usual, **asked})))
    return {item.condition: item.moves for item in found}


@given(
    some.text(min_size=1, max_size=20).filter(lambda name: ("generation", name) not in SETTINGS),
    some.integers(),
)
def test_what_no_line_names_is_another_condition(name, value):
    assert unlike(decoding={"do_sample": False, name: value}) == {"generation settings": True}
    if ("model", name) not in SETTINGS:
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
    for value in ("auto", None, "None"):
        assert unlike(arguments={"dtype": value, "quantization": None, "revision": "main"}) == {}


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


def test_text_before_the_prompt_and_a_template_of_ones_own_are_conditions():
    assert unlike(system_instruction="Most answers are yes.") == {"system instruction": True}
    assert unlike(own_template=text_hash("{{ x }}"))["chat template"] is True
    one, public = "Be brief.", text_hash("Be brief.")
    assert differences(*(facts(Conditions(system_instruction=text)) for text in (one, public))) == ()


def test_harmless_arguments_are_not_recorded_and_others_are():
    given_ = {"pretrained": "m", "batch_size": 8, "dtype": "auto", "mood": "good"}
    assert moving_arguments(given_) == {"dtype": "auto", "mood": "good"}
    assert with_effect("model", given_, Effect.MOVES) == {"mood": "good"}


# Every name of the list of settings is in every record, whatever word it holds.


TASK = "bridge_chip_ctc"
#: Place -> the names that it takes. Harmless arguments of a model are no part of a run's identity, two
#: arguments name the model, and `repeats` is how often a document is asked.
NAMED = {
    "--gen_kwargs": {name for line in LISTS["generation"] for name in line.names} - {"repeats"},
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
