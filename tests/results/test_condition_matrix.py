"""Two runs that differ in one condition alone, through every output: the difference is named."""

import csv
import json
import re

import pytest

from medtasks_ext.registry import registry
from tests.report.made import write_run

TASK = "bridge_chip_ctc"
N = registry().datasets[TASK].n_documents
GOOD, POOR = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30
CONFIG = {"num_fewshot": 5, "generation_kwargs": {"do_sample": False, "max_gen_toks": 100}}
FACTS = {"shots": {"hash": "e"}, "context": 8_000, "seed": 1, "versions": {"vllm": "1"}}
CUT = {"shots_dropped": 0, "inputs_cut": 0, "answers_cut": 0}
USUAL = {"jury": "one; likert 1", "config": CONFIG, "conditions": FACTS, "cut": CUT}


def changed(**more):
    return {
        name: {**USUAL[name], **value} if isinstance(value, dict) else value for name, value in more.items()
    }


#: condition, as readers see it -> what differs in the run
MOVING = {
    "wording": {"loaded": {"instruction": "official"}},
    "wording, the words": {"loaded": {"prompt_hash": "q"}},
    "rows": {"loaded": {"rows_hash": "others"}},
    "rows, rebuilt": {"loaded": {"rebuilt": True}},
    "version of the task": {"record": {"version": "2-A"}},
    "examples in the prompt": {"record": changed(conditions={"shots": {"hash": "f"}})},
    "examples in the prompt, dropped": {"record": changed(cut={"shots_dropped": 3})},
    "inputs": {"record": changed(cut={"inputs_cut": 3})},
    "budget": {"record": changed(config={"generation_kwargs": {"max_gen_toks": 50}}, cut={"answers_cut": 9})},
    "decoding": {"record": changed(config={"generation_kwargs": {"temperature": 1, "max_gen_toks": 100}})},
    "examples as turns": {"settings": {"fewshot_as_multiturn": True}},
    "jury": {"record": changed(jury="another; likert 1")},
    "protocol of the jury": {"record": changed(jury="one; likert 2")},
}  # fmt: skip
#: harmless ones
CLOSE = {
    "context": {"record": changed(conditions={"context": 4_000})},
    "versions of packages": {"record": changed(conditions={"versions": {"vllm": "2"}})},
    "chat template": {"settings": {"apply_chat_template": True, "fewshot_as_multiturn": False}},
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


def payload(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    [content] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(content)


@pytest.mark.parametrize("pair", MOVING, indirect=True)
def test_a_difference_that_can_move_a_score_is_named_and_neither_ranked_nor_tested(medtasks, tmp_path, pair):
    other, condition = pair
    title = condition.partition(",")[0]
    medtasks("ingest", "base", other, "--store", "store")
    for places in (("base", other), ("store",)):
        outcome = medtasks("report", *places, "--published", "none", "-o", "out")
        said = " ".join(outcome.out.split())
        assert f"differ in the {title} of {TASK}_5shot" in said and "p = " not in said and "p < " not in said
        assert len(re.findall(r" 1/1 ", outcome.out)) == 2 and "2/2" not in outcome.out
        page = payload(tmp_path / "out")
        assert page["comparisons"] == [] and any(title in item["text"] for item in page["differences"])
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


@pytest.mark.parametrize("pair", ["decoding", "budget", "jury", "wording", "context"], indirect=True)
def test_the_card_holds_the_conditions(medtasks, tmp_path, pair):
    other, _ = pair
    records = []
    for name in ("base", other):
        assert medtasks("card", name, "-o", f"card_{name}").code == 0
        manifest = json.loads((tmp_path / f"card_{name}" / "medtasks-manifest.json").read_text())
        records.append(manifest["tasks"][f"{TASK}_5shot"]["conditions"])
    assert records[0]["schema"] == 1
    assert {key for key in records[0] if records[0][key] != records[1].get(key)} - {"answers_cut"} == {
        {"wording": "wording"}.get(pair[1], pair[1])
    }


def beside(tmp_path, medtasks, **changes):
    scores = {"medhelm_medqa": [1.0] * registry().datasets["medhelm_medqa"].n_documents}
    folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
    write_run(folder, "ORG/own", scores, **{"loaded": {"instruction": "official"}, **changes})
    return medtasks("reproduce", "medhelm:table1", folder)


@pytest.mark.parametrize(
    ("condition", "changes"),
    [
        ("wording", {"loaded": {"instruction": "own"}}),
        ("rows", {"loaded": {"instruction": "official", "rebuilt": True}}),
        ("decoding", {"record": {"config": {"num_fewshot": 0, "generation_kwargs": {"temperature": 1}}}}),
        ("documents", {"settings": {"limit": 5}}),
    ],
)
def test_a_run_that_was_asked_otherwise_has_no_win_rate(medtasks, tmp_path, condition, changes):
    outcome = beside(tmp_path, medtasks)
    assert "ORG/own (yours)" in outcome.out and "otherwise" not in outcome.text
    outcome = beside(tmp_path, medtasks, **changes)
    assert outcome.code == 0 and re.search(r"ORG/own \(yours\) +– +– ", outcome.out)
    assert f"{condition} in 1" in outcome.err


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"record": {"config": {"num_fewshot": 3}}}, 2, "asked 3-shot, which the leaderboard does not take"),
        ({"record": {"config": {"generation_kwargs": {"temperature": 0.7}}}}, 2, "sampled answers"),
        ({"loaded": {"instruction": "official", "rebuilt": True}}, 0, "rows rebuilt from the source"),
        ({}, 0, "not asked in the suite's own words"),
        ({"loaded": {"instruction": "official"}}, 0, "CHIP-CTC-direct-greedy-42.result.json: 40 rows\n"),
    ],
)
def test_the_export_says_or_refuses_what_differs(medtasks, tmp_path, changes, code, words):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, **changes)
    outcome = medtasks("export", "bridge", "a", "-o", "out")
    assert outcome.code == code and words in outcome.text


def test_five_examples_by_num_fewshot_are_exported_as_five(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, record={"config": {"num_fewshot": 5}})
    assert (
        "CHIP-CTC-direct-5-shot-greedy-42.result.json" in medtasks("export", "bridge", "a", "-o", "out").out
    )
