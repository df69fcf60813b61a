"""Two runs that differ in one condition alone, through every output: the difference is named."""

import csv
import json
import re

import pytest

from medtasks_ext.runs.conditions import Judge, Jury
from tests.conftest import hashed_anew, read_json
from tests.report.made import data_of, write_run
from tests.run_files import edited

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
        name: {**USUAL[name], **value} if isinstance(value, dict) else value for name, value in more.items()
    }


#: condition, as readers see it -> what differs in the run
MOVING = {
    "wording": {"loaded": {"instruction": "official"}},
    "wording, one's own line": {"loaded": {"instruction": "official, own strategy line"}},
    "wording, the words": {"loaded": {"prompt_hash": "q"}},
    "rows": {"loaded": {"rows_hash": "others"}},
    "rows, rebuilt": {"loaded": {"rebuilt": True}},
    "version of the task": {"record": {"version": "2-A"}},
    "examples in the prompt": {"record": changed(conditions={"shots": "f"})},
    "examples in the prompt, dropped": {"record": changed(cut={"shots_dropped": 3})},
    "inputs": {"record": changed(cut={"inputs_cut": 3})},
    "budget": {"record": changed(config={"generation_kwargs": {"max_gen_toks": 50}}, cut={"answers_cut": 9})},
    "decoding": {"record": changed(config={"generation_kwargs": {"temperature": 1, "max_gen_toks": 100}})},
    "generation settings": {
        "record": changed(config={"generation_kwargs": {"repetition_penalty": 1.8, "max_gen_toks": 100}})
    },
    "generation settings, unknown": {
        "record": changed(config={"generation_kwargs": {"mood": "good", "max_gen_toks": 100}})
    },
    "stop strings": {"record": changed(config={"generation_kwargs": {"until": ["e"], "max_gen_toks": 100}})},
    "system instruction": {"settings": {"system_instruction": "Most answers are yes."}},
    "model arguments": {"arguments": {"eos_string": "e"}},
    "chat template, one's own": {"settings": {"layout": "{{ messages }} Most answers are yes."}},
    "examples as turns": {"settings": {"fewshot_as_multiturn": True}},
    "jury": {"record": changed(jury=jury("another", "1"))},
    "protocol of the jury": {"record": changed(jury=jury("one", "2"))},
}  # fmt: skip
#: harmless ones
CLOSE = {
    "context": {"record": changed(conditions={"context": 4_000})},
    "versions of packages": {"record": changed(conditions={"versions": {"vllm": "2"}})},
    "chat template": {"settings": {"apply_chat_template": True, "fewshot_as_multiturn": False}},
    "variant of the model": {"arguments": {"quantization": "fp8"}},
    "precision": {"arguments": {"dtype": "float16"}},
}


def write(folder, model, scores, changes):
    record = {**USUAL, **changes.get("record", {})}
    write_run(folder / model, f"ORG/{model}", {TASK: scores}, **{**changes, "record": record})
    return folder / model


def name_of(condition):
    return re.sub(r"\W+", "_", condition)


@pytest.fixture
def pair(tmp_path, request):
    write(tmp_path, "base", GOOD, {})
    return write(
        tmp_path, name_of(request.param), POOR, {**MOVING, **CLOSE}[request.param]
    ).name, request.param


@pytest.mark.parametrize("pair", MOVING, indirect=True)
def test_a_difference_that_can_move_a_score_is_named_and_neither_ranked_nor_tested(medtasks, tmp_path, pair):
    other, condition = pair
    title = condition.partition(",")[0]
    outcome = medtasks("report", "base", other, "--published", "none", "-o", "out")
    said = " ".join(outcome.out.split())
    assert f"differ in the {title} of {TASK}_5shot" in said and "p = " not in said and "p < " not in said
    assert "2/2" not in outcome.out  # groups.csv has the ranks
    page = data_of(tmp_path / "out" / "report.html")
    assert page["comparisons"] == [] and any(title in text for text in page["differences"])
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "score"]
    assert len(rows) == 2
    with (tmp_path / "out" / "groups.csv").open(encoding="utf-8") as file:
        assert {row["rank_of"] for row in csv.DictReader(file)} == {"1"}
    outcome = medtasks("compare", "base", other)
    assert (outcome.code == 2 and "so it is not compared" in outcome.text) or title in outcome.out


@pytest.mark.parametrize("pair", CLOSE, indirect=True)
def test_a_harmless_difference_is_named_in_the_record_and_ranked(medtasks, tmp_path, pair):
    other, condition = pair
    found = json.loads(medtasks("report", "base", other, "--published", "none", "--json").out)
    assert len(found["pairs"]) == 1 and {row["rank_of"] for row in found["groups"]} == {2}
    assert condition.partition(" of ")[0] in medtasks("compare", "base", other).out


def ranked(medtasks, *folders):
    """Whether the runs are tested against each other, and among how many each is ranked."""
    found = json.loads(medtasks("report", *folders, "--published", "none", "--json").out)
    return len(found["pairs"]), {row["rank_of"] for row in found["groups"]}


def without(counts, *names):
    return {name: n for name, n in counts.items() if name not in names}


FEWER = {"generation_kwargs": {"do_sample": False, "max_gen_toks": 50}}


@pytest.mark.parametrize("known", ["neither", "the first", "the second", "both"])
def test_another_budget_can_move_a_score_unless_both_have_cut_no_answer(medtasks, tmp_path, known):
    """Where nobody counted the answers that fill their budget, they may be many."""
    uncounted = {"cut": without(CUT, "answers_cut")}
    write(tmp_path, "a", GOOD, {"record": {} if known in ("the first", "both") else uncounted})
    cut = {} if known in ("the second", "both") else uncounted
    write(tmp_path, "b", POOR, {"record": {**changed(config=FEWER), **cut}})
    assert ranked(medtasks, "a", "b") == ((1, {2}) if known == "both" else (0, {1}))
    said = " ".join(medtasks("report", "a", "b", "--published", "none").out.split())
    assert ("differ in the budget" in said) is (known != "both")


@pytest.mark.parametrize("context", [8_000, 4_000])
def test_another_context_can_move_a_score_where_inputs_were_cut(medtasks, tmp_path, context):
    """Both runs cut inputs, so that only the room differs in which they were asked."""
    write(tmp_path, "a", GOOD, {"record": changed(cut={"inputs_cut": 3})})
    record = changed(cut={"inputs_cut": 3}, conditions={"context": context})
    write(tmp_path, "b", POOR, {"record": record})
    same = context == FACTS["context"]
    assert ranked(medtasks, "a", "b") == ((1, {2}) if same else (0, {1}))
    said = " ".join(medtasks("report", "a", "b", "--published", "none").out.split())
    assert ("differ in the context" in said) is not same


@pytest.mark.parametrize("pair", ["decoding", "budget", "jury", "wording", "context"], indirect=True)
def test_the_card_holds_the_conditions(medtasks, tmp_path, pair):
    other, _ = pair
    records = []
    for name in ("base", other):
        assert medtasks("card", name, "-o", f"card_{name}").code == 0
        manifest = read_json(tmp_path / f"card_{name}" / "medtasks-manifest.json")
        records.append(manifest["tasks"][f"{TASK}_5shot"]["conditions"])
    assert {key for key in records[0] if records[0][key] != records[1].get(key)} - {"answers_cut"} == {
        {"wording": "wording"}.get(pair[1], pair[1])
    }


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
def test_the_export_says_or_refuses_what_differs(medtasks, tmp_path, changes, code, words):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, **changes)
    outcome = medtasks("card", "a", "--layout", "bridge", "-o", "out")
    assert outcome.code == code and words in outcome.text


@pytest.mark.parametrize("instruction", ["own", "official, own strategy line"])
def test_the_export_takes_other_words_on_wish_and_each_row_says_so(medtasks, tmp_path, instruction):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, loaded={"instruction": instruction})
    outcome = medtasks("card", "a", "--layout", "bridge", "-o", "out", "--parts")
    assert outcome.code == 0 and "not asked only with official prompts" in outcome.out
    rows = read_json(next((tmp_path / "out").rglob("*.json")))
    assert len(rows) == 40 and all("not asked only with official prompts" in row["notes"] for row in rows)


def test_the_export_keeps_to_what_the_leaderboard_takes_and_names_the_rest(medtasks, tmp_path):
    """Official rows in official words have the fields of the official code alone."""
    run = write_run(
        tmp_path / "a", "ORG/a", {TASK: GOOD, "bridge_ade_identification": GOOD},
        loaded={"instruction": "official"},
    )  # fmt: skip
    with edited(run, "bridge_ade_identification") as record:
        record["loaded"]["rebuilt"] = True
    hashed_anew(run)
    outcome = medtasks("card", "a", "--layout", "bridge", "-o", "out", "--parts")
    assert outcome.code == 1
    assert "left out: a: bridge_ade_identification was run on rows rebuilt" in outcome.err
    [path] = (tmp_path / "out").rglob("*.json")
    assert path.name == "CHIP-CTC-direct-greedy-42.result.json"
    assert "notes" not in read_json(path)[0]


@pytest.mark.parametrize("condition", [*MOVING, *CLOSE])
def test_runs_of_a_model_that_differ_in_a_condition_are_not_joined(medtasks, tmp_path, condition):
    write(tmp_path / "one", "base", GOOD, {})
    write(tmp_path / "twin", "base", GOOD, {})
    changes = {**MOVING, **CLOSE}[condition]
    write(tmp_path / "other", "base", GOOD, changes)
    command = ("report", "--published", "none", "--json")
    [alone] = json.loads(medtasks(*command, "one/base", "twin/base").out)["entries"]
    assert alone["entry"] == "ORG/base"
    labels = [
        entry["entry"]
        for entry in json.loads(medtasks(*command, "one/base", "twin/base", "other/base").out)["entries"]
    ]
    assert len(labels) == 2 and len(set(labels)) == 2
    title = "model arguments" if "arguments" in changes else condition.partition(",")[0]
    assert all(f"{title}: " in label for label in labels)


@pytest.mark.parametrize(
    ("settings", "condition"),
    [
        ({"apply_chat_template": True, "fewshot_as_multiturn": False}, "chat template"),
        ({"fewshot_as_multiturn": True}, "examples as turns"),
        ({"system_instruction": "Answer briefly."}, "system instruction"),
        ({"gen_kwargs": {"temperature": 0.7}}, "generation settings"),
        ({"limit": 5}, "documents"),
    ],
)
def test_runs_of_other_settings_without_a_shared_task_are_not_joined(medtasks, tmp_path, settings, condition):
    write(tmp_path / "one", "base", GOOD, {})
    write_run(tmp_path / "other", "ORG/base", {"bridge_ade_identification": GOOD}, settings=settings)
    found = json.loads(medtasks("report", "one/base", "other", "--published", "none", "--json").out)
    assert len(found["entries"]) == 2 and not [item for item in found["faults"] if "disagrees" in str(item)]
    assert all(f"{condition}: " in entry["entry"] for entry in found["entries"])
