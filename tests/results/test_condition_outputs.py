"""Two runs that differ in one condition: the difference is named in every output, and obeyed."""

import csv
import json
import random
import re

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.runs.conditions import Judge, Jury
from medtasks_ext.runs.settings import LISTS, Effect, effect
from tests.conftest import hashed_anew, read_json
from tests.report.made import data_of, write_run
from tests.run_files import edited

pytestmark = pytest.mark.long

TASK = "bridge_chip_ctc"
GOOD, POOR = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30


def jury(name, version):
    return Jury((Judge(name),), protocol="likert", wording="own", hash=version)


CONFIG = {"num_fewshot": 5, "generation_kwargs": {"do_sample": False, "max_gen_toks": 100}}
FACTS = {"shots": "e", "context": 8_000, "seed": 1, "versions": {"vllm": "1"}}
CUT = {"shots_dropped": 0, "inputs_cut": 0, "answers_cut": 0}
USUAL = {"jury": jury("one", "1"), "config": CONFIG, "conditions": FACTS, "cut": CUT}


def changed(**more):
    return {
        "record": {
            name: {**USUAL[name], **value} if isinstance(value, dict) else value
            for name, value in more.items()
        }
    }


def generated(**more):
    return changed(config={"generation_kwargs": {"max_gen_toks": 100, **more}})


#: condition, as readers see it -> what differs in the run
MOVING = {
    "wording": {"loaded": {"instruction": "official"}},
    "rows": {"loaded": {"rows_hash": "others"}},
    "rows, rebuilt": {"loaded": {"rebuilt": True}},
    "version of the task": {"record": {"version": "2-A"}},
    "examples in the prompt": changed(conditions={"shots": "f"}),
    "examples in the prompt, dropped": changed(cut={"shots_dropped": 3}),
    "inputs": changed(cut={"inputs_cut": 3}),
    "budget": changed(config={"generation_kwargs": {"max_gen_toks": 50}}, cut={"answers_cut": 9}),
    "decoding": generated(temperature=1),
    "generation settings": generated(repetition_penalty=1.8),
    "stop strings": generated(until=["e"]),
    "system instruction": {"settings": {"system_instruction": "Most answers are yes."}},
    "model arguments": {"arguments": {"eos_string": "e"}},
    "chat template, one's own": {"settings": {"layout": "{{ messages }} Most answers are yes."}},
    "examples as turns": {"settings": {"fewshot_as_multiturn": True}},
    "jury": changed(jury=jury("another", "1")),
    "protocol of the jury": changed(jury=jury("one", "2")),
}
HARMLESS = {
    "context": changed(conditions={"context": 4_000}),
    "versions of packages": changed(conditions={"versions": {"vllm": "2"}}),
    "chat template": {"settings": {"apply_chat_template": True, "fewshot_as_multiturn": False}},
    "variant of the model": {"arguments": {"quantization": "fp8"}},
    "precision": {"arguments": {"dtype": "float16"}},
}


def write(folder, model, scores, changes):
    record = {**USUAL, **changes.get("record", {})}
    write_run(folder, f"ORG/{model}", {TASK: scores}, **{**changes, "record": record})


def reported(medtasks, *folders):
    return json.loads(medtasks("report", *folders, "--published", "none", "--json").out)


@pytest.mark.parametrize("condition", [*MOVING, *HARMLESS])
def test_a_difference_is_named_and_runs_are_ranked_tested_and_joined_as_it_says(
    medtasks, tmp_path, condition
):
    changes, title = {**MOVING, **HARMLESS}[condition], condition.partition(",")[0]
    for folder, model, scores, more in (
        ("base", "base", GOOD, {}), ("twin", "base", GOOD, {}),
        ("mine", "base", GOOD, changes), ("other", "other", POOR, changes),
    ):  # fmt: skip
        write(tmp_path / folder, model, scores, more)
    found, compared = reported(medtasks, "base", "other"), medtasks("compare", "base", "other")
    if condition in HARMLESS:
        assert len(found["pairs"]) == 1 and {row["rank_of"] for row in found["groups"]} == {2}
        assert condition.partition(" of ")[0] in compared.out
    else:
        outcome = medtasks("report", "base", "other", "--published", "none", "-o", "out")
        said = " ".join(outcome.out.split())
        assert f"differ in the {title} of {TASK}_5shot" in said and "p = " not in said and "p < " not in said
        page = data_of(tmp_path / "out" / "report.html")
        assert page["comparisons"] == found["pairs"] == []
        assert any(title in text for text in page["differences"])
        assert {row["rank_of"] for row in found["groups"]} == {1}
        refused = compared.code == 2 and "so it is not compared" in compared.text
        assert refused or title in compared.out
    # runs of one model
    assert [entry["entry"] for entry in reported(medtasks, "base", "twin")["entries"]] == ["ORG/base"]
    labels = [entry["entry"] for entry in reported(medtasks, "base", "twin", "mine")["entries"]]
    assert len(labels) == 2 and len(set(labels)) == 2
    shown = "model arguments" if "arguments" in changes else title
    assert all(f"{shown}: " in label for label in labels)


@pytest.mark.parametrize(
    ("one", "two", "ranked", "condition"),
    [
        ("known", "known", 2, "budget"),
        ("known", "unknown", 1, "budget"),
        ("unknown", "unknown", 1, "budget"),
        (8_000, 8_000, 2, "context"),
        (8_000, 4_000, 1, "context"),
    ],
)
def test_less_room_can_move_a_score_where_something_was_or_may_have_been_cut(
    medtasks, tmp_path, one, two, ranked, condition
):
    """Nobody counted the answers that fill their budget, or both runs cut inputs."""
    for name, said, budget in (("a", one, 100), ("b", two, 50)):
        if condition == "budget":
            record = changed(config={"generation_kwargs": {"do_sample": False, "max_gen_toks": budget}})
            if said == "unknown":
                record["record"]["cut"] = {"shots_dropped": 0, "inputs_cut": 0}
        else:
            record = changed(cut={"inputs_cut": 3}, conditions={"context": said})
        write(tmp_path / name, name, GOOD, record)
    found = reported(medtasks, "a", "b")
    assert (len(found["pairs"]), {row["rank_of"] for row in found["groups"]}) == (ranked - 1, {ranked})
    assert any(f"differ in the {condition}" in text for text in found["differences"]) is (ranked == 1)


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"record": {"config": {"num_fewshot": 3}}}, 2, "asked 3-shot, which the leaderboard does not take"),
        ({"record": {"config": {"generation_kwargs": {"temperature": 0.7}}}}, 2, "sampled answers"),
        ({"loaded": {"instruction": "official", "rebuilt": True}}, 2, "rows rebuilt from their source"),
        ({"sample": True}, 2, "synthetic sample rows"),
        ({"settings": {"limit": 5}}, 2, "covers a part of the test rows"),
        ({}, 2, "was not asked only with official prompts"),
        ({"loaded": {"instruction": "official"}}, 0, "CHIP-CTC-direct-greedy-42.result.json: 40 rows\n"),
        (
            {"loaded": {"instruction": "official"}, "record": {"config": {"num_fewshot": 5}}},
            0,
            "CHIP-CTC-direct-5-shot-greedy-42.result.json",
        ),
    ],
)
def test_the_leaderboards_files_say_or_refuse_what_differs(medtasks, tmp_path, changes, code, words):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, **changes)
    outcome = medtasks("card", "a", "--layout", "bridge", "-o", "out")
    assert outcome.code == code and words in outcome.text


def test_the_leaderboards_files_take_a_part_on_wish_and_name_what_is_left_out(medtasks, tmp_path):
    write_run(tmp_path / "own", "ORG/a", {TASK: GOOD}, loaded={"instruction": "own"})
    outcome = medtasks("card", "own", "--layout", "bridge", "-o", "noted", "--parts")
    assert outcome.code == 0 and "not asked only with official prompts" in outcome.out
    rows = read_json(next((tmp_path / "noted").rglob("*.json")))
    assert len(rows) == 40 and all("not asked only with official prompts" in row["notes"] for row in rows)
    scores = {TASK: GOOD, "bridge_ade_identification": GOOD}
    run = write_run(tmp_path / "a", "ORG/a", scores, loaded={"instruction": "official"})
    with edited(run, "bridge_ade_identification") as record:
        record["loaded"]["rebuilt"] = True
    hashed_anew(run)
    outcome = medtasks("card", "a", "--layout", "bridge", "-o", "out", "--parts")
    assert outcome.code == 1
    assert "left out: a: bridge_ade_identification was run on rows rebuilt" in outcome.err
    [path] = (tmp_path / "out").rglob("*.json")
    assert path.name == "CHIP-CTC-direct-greedy-42.result.json"
    assert "notes" not in read_json(path)[0]  # fields of the official code alone


# No setting passes unmarked: some are drawn from the list of settings, and go through every output. What each
# key of the list does is said in tests/runs/test_settings.py, and proved by
# tests/engine/test_harmless_settings.py.

SMALL = "bridge_brainmri_ais"
SOURCES = {
    place: sorted(
        name
        for line in LISTS[place]
        if line.effect in (Effect.MOVES, Effect.MODEL, Effect.ROUNDS)
        for name in line.names
    )
    for place in ("generation", "model", "template")
}
_RNG = random.Random(20)
DRAWN = [
    ("generation", "repetition_penalty", 1.8),
    ("generation", "stop", ["e"]),
    ("model", "quantization", "fp8"),
    *((place, _RNG.choice(names), _RNG.choice((7, 0.37, "quince"))) for place, names in SOURCES.items()),
    ("system", "system_instruction", "Most answers are yes."),
    ("layout", "layout", "{{ messages }} Most answers are yes."),
]


def with_setting(folder, model, place=None, name=None, value=None):
    """A run with the suite's prompts, asked with one setting more."""
    generation = {"do_sample": False, "until": [], "max_gen_toks": 4000}
    arguments, settings = {}, {"apply_chat_template": True}
    if place == "generation":
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
    values = [float(number % 3 == 0) for number in range(registry().datasets[SMALL].n_documents)]
    write_run(
        folder / model, f"ORG/{model}", {SMALL: values}, loaded={"instruction": "official"},
        record={"config": {"num_fewshot": 0, "generation_kwargs": generation}, "cut": CUT},
        settings=settings, arguments=arguments,
    )  # fmt: skip


def says(text, drawn):
    """Whether a text names the setting, or the condition that it is."""
    place, name, _ = drawn
    words = {"layout": "template", "system": "system"}.get(place, name)
    return words in text or (place == "system" and "text-" in text)


def score_row(file, **wanted):
    with file.open(encoding="utf-8") as content:
        [row] = [row for row in csv.DictReader(content) if wanted.items() <= row.items()]
    return row


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda item: f"{item[0]}-{item[1]}")
def test_a_setting_is_marked_in_every_output(medtasks, tmp_path, drawn):
    place, name, value = drawn
    moves = place not in SOURCES or effect(place, name, value) is Effect.MOVES
    with_setting(tmp_path, "usual")
    with_setting(tmp_path, "more", *drawn)
    outcome = medtasks.done("report", "more", "-o", "out")
    row = score_row(tmp_path / "out" / "results.csv", metric="score", kind="medtasks")
    suite = score_row(tmp_path / "out" / "groups.csv", axis="suite", kind="medtasks", suite="bridge")
    if moves:
        assert "comparable with published scores: 0 of 1 task" in " ".join(outcome.out.split())
        assert (row["comparable"], suite["rank"], suite["rank_of"]) == ("false", "", "")
        assert says(row["otherwise"], drawn)
    else:
        assert row["comparable"] == "true" and row["unknown"]
    assert says(json.dumps(row), drawn) and (moves or says(outcome.out, drawn) or name in row["rounding"])
    assert says((tmp_path / "out" / "report.html").read_text(encoding="utf-8"), drawn)
    assert re.search(r"1\.000  other (?!$)\w+", medtasks("compare", "usual", "more").out)
    assert (reported(medtasks, "usual", "more")["pairs"] == []) is moves
    medtasks.done("card", "more", "-o", "card")
    for file in ("medical-evaluation.md", "medtasks-manifest.json"):
        assert says((tmp_path / "card" / file).read_text(encoding="utf-8"), drawn), file
    front = (tmp_path / "card" / "README.md").read_text(encoding="utf-8").partition("\n---")[0]
    assert says(front, drawn)
    exported = medtasks("card", "more", "--layout", "bridge", "-o", "exported")
    assert exported.code == 2 if moves else exported.code in (0, 2)
    assert not moves or "other conditions" in exported.text
    for path in (tmp_path / "exported").rglob("*.json"):
        assert name in ("dtype", "think_end_token") or says(path.read_text(), drawn)
