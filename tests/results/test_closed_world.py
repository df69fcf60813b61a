"""No setting passes unmarked: drawn from the list of settings, through every output.

What each key of the list does is proved by `tests/engine/test_harmless_settings.py`.
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
from medtasks_ext.runs.settings import LISTS, Effect, effect
from tests.report.made import write_run

TASK = "bridge_brainmri_ais"
N = registry().datasets[TASK].n_documents
#: Place -> the settings that must be named in words.
SOURCES = {
    place: sorted(
        name
        for line in LISTS[place]
        if line.effect in (Effect.MOVES, Effect.MODEL, Effect.ROUNDS)
        for name in line.names
    )
    for place in ("generation", "model", "template")
}
#: None of them is a default of an engine.
VALUES = (7, 0.37, "quince", ["quince"], {"quince": 1}, "7", "['quince']")
USUAL = {"do_sample": False, "until": [], "max_gen_toks": 4000}


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
    place, name, value = drawn
    moves = place not in SOURCES or effect(place, name, value) is Effect.MOVES
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
