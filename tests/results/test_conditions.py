"""The record of conditions, which of them move a score, and what follows for joining, ranks and cards."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DataLock, LockedPart, LockedRows, Seen
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.registry.tasks import ANSWER_BUDGET
from medtasks_ext.results.conditions import (
    RULES,
    Facts,
    comparable,
    confirmed,
    differences,
    facts,
    of_the_paper,
)
from medtasks_ext.results.reading import read_results
from medtasks_ext.runs.conditions import Conditions, Judge, read_conditions
from tests.conftest import hashed_anew, write_jsonl
from tests.report.made import write_run
from tests.run_files import edited, result_of, results_of

TASK, SECOND = "bridge_chip_ctc", "bridge_ehrqa_primary_department"
N = registry().datasets[TASK].metadata.n_test
GOOD, POOR = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30
ASKED = Facts(
    facts(Conditions()),
    strategy="five_shot", version="1", wording="own", artefact=("a", "1"), prompt="p", examples="e",
    examples_cut=False, source="suite", revision="v", rows="r", documents="all", n=9, n_of_suite=9,
    held_out=0, budget=100, answers_cut=True, context=8_000, inputs_cut=False,
    decoding=(("top_p", 1),), stop=(), seed=1, repeats=1, rounding=(), template=True, system=True, turns=True,
    template_hash="text-3",
    jury=((Judge("a"), Judge("b")), None), requests=('{"temperature": 0.0}',) * 2,
    protocol=("likert", "own", "1"), engine="vllm", versions=(("vllm", "1"),),
)  # fmt: skip
OTHER = {
    "strategy": "cot", "version": "2", "wording": "official", "artefact": ("a", "2"), "prompt": "q",
    "examples": "f", "examples_cut": True, "source": "rebuilt", "revision": "w", "rows": "s",
    "documents": "the first 3", "n": 3, "held_out": 5, "budget": 50, "context": 4_000, "inputs_cut": True,
    "decoding": (("temperature", 1),), "seed": 2, "repeats": 2, "template": False, "system": False,
    "generation": (("n", 2),), "stop": ("e",), "differs": True, "system_text": "text-0", "delimiter": "' '",
    "arguments": (("eos_string", "e"),), "variant": (("quantization", "fp8"),), "own_template": "text-1",
    "local_template": "text-2", "template_hash": "text-4",
    "brought": (("repetition_penalty", 1.1),), "rounding": (("dtype", "float16"),), "turns": False,
    "jury": ((Judge("c"),), None),
    "requests": ('{"temperature": 1.0}',), "protocol": ("likert", "own", "2"), "judged": 0.5, "engine": "hf",
    "versions": (("vllm", "2"),),
}  # fmt: skip
HARMLESS = {
    "template", "system", "variant", "brought", "rounding", "engine", "versions", "seed", "repeats",
    "context", "held_out", "revision", "artefact",
    "local_template", "template_hash",
}  # fmt: skip


@pytest.mark.parametrize("field", RULES)
def test_each_condition_counts_in_both_directions_and_an_unknown_one_is_no_bar(field):
    assert comparable(ASKED, ASKED) and differences(ASKED, Facts(ASKED)) == ()
    changed = Facts(ASKED, **{field: OTHER[field]})
    for one, other in ((ASKED, changed), (changed, ASKED)):
        assert comparable(one, other) is (field in HARMLESS)
        found = differences(one, other)
        assert found and all(item.known and item.one != item.other for item in found)
    if field in ("strategy", "judged"):
        return
    unknown = Facts(ASKED, **{field: None})
    assert comparable(ASKED, unknown)
    assert not [item for item in differences(ASKED, unknown) if item.known]
    # of two runs of one model each is named, but for juries
    joined = differences(ASKED, unknown, joined=True)
    assert [item.field for item in joined] == [field] * (field not in ("jury", "requests", "protocol"))


@pytest.mark.parametrize(
    ("dataset", "context", "budget"),
    [
        ("bridge_mie", None, 3_072),  # an eighth of the context, at most 3,072
        ("bridge_mie", 8_192, 1_024),
        ("mlb_cmeee", None, ANSWER_BUDGET),  # the paper says none: the task's own
    ],
)
def test_another_budget_is_harmless_unless_it_may_have_cut_an_answer(dataset, context, budget):
    one = Facts(ASKED, answers_cut=False)
    assert comparable(one, Facts(one, budget=50)) and differences(one, Facts(one, budget=50))
    assert not comparable(one, Facts(one, budget=50, answers_cut=True))
    paper = facts(of_the_paper(registry().datasets[dataset], "zero_shot"))
    assert paper["budget"] is None
    for tokens, cut in itertools.product((budget - 1, budget, budget + 1), (0, 3, None)):
        run = facts(Conditions(dataset=dataset, context=context, budget=tokens, answers_cut=cut))
        found = [item.moves for item in differences(run, paper) if item.field == "budget"]
        assert found == [tokens < budget and cut != 0], (tokens, cut)


USUAL = {"do_sample": False, "until": [], "max_gen_toks": 4000}


@pytest.mark.parametrize("name", ["top_p", "top_k", "min_p", "typical_p", "top_h", "epsilon_cutoff"])
def test_what_draws_answers_counts_where_they_are_drawn_and_nowhere_else(name):
    drawn, greedy = ({**USUAL, "temperature": heat, "do_sample": heat > 0} for heat in (0.7, 0))
    for value, usual in itertools.product((7, 0.37, "quince", ["quince"]), (drawn, greedy)):
        pair = (facts(Conditions(decoding={**usual, **more})) for more in ({}, {name: value}))
        found = [item.condition for item in differences(*pair)]
        assert found == (["decoding"] if usual is drawn else [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "schema is 2"),
        ({"jury": {"judges": [], "mood": "good"}}, "jury.mood"),
        ({"source": "invented"}, "conditions: source"),
    ],
)
def test_what_the_record_does_not_know_is_refused_with_its_place(change, words):
    with pytest.raises(MedtasksError, match=words.replace(".", r"\.")):
        read_conditions({**Conditions().record(), **change}, "run/tasks/t.json")


def plain(folder, arguments, **flags):
    """What plain `lm_eval` leaves of one task, with invented figures."""
    content = {
        "results": {TASK: {"score,answer": 0.5}},
        "configs": {TASK: {"num_fewshot": 0, "generation_kwargs": {"max_gen_toks": 100}}},
        "versions": {TASK: "1-A"},
        "n-samples": {TASK: {"effective": 10}},
        "config": {"model": "vllm", "model_args": {"pretrained": "ORG/a", **arguments}, "gen_kwargs": {},
         **flags},
        "chat_template": None,
    }  # fmt: skip
    folder.mkdir()
    (folder / "results_2026-01-01.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("arguments", "one_model"),
    [
        ({"enable_prefix_caching": True, "max_num_batched_tokens": 8192, "download_dir": "/scratch"}, True),
        ({"eos_string": "</s>"}, False),
        ({"max_model_len": 512}, False),
        ({"dtype": "float16"}, False),
    ],
)
def test_arguments_of_place_and_speed_make_no_other_model_those_that_cut_do(tmp_path, arguments, one_model):
    folders = [plain(tmp_path / "one", {}), plain(tmp_path / "two", arguments)]
    entries = read_results(folders, registry()).entries
    assert (len(entries) == 1) == one_model
    if not one_model:
        [name] = arguments
        assert all(entry.label.startswith("ORG/a (model arguments: ") for entry in entries)
        assert f"{name}={arguments[name]}" in entries[1].label


def test_a_flag_of_lm_eval_that_nobody_knows_is_a_condition(tmp_path):
    plain(tmp_path / "known", {}, batch_size="auto", random_seed=0, model_dtype="bfloat16", use_cache=None)
    plain(tmp_path / "unknown", {}, mood="good", predict_only=True)
    known, unknown = read_results([tmp_path / "known", tmp_path / "unknown"], registry()).entries
    assert known.experiments[TASK].facts["arguments"] == ()
    assert unknown.experiments[TASK].facts["arguments"] == (("--mood", "good"), ("--predict_only", True))


def test_the_record_is_there_before_the_first_request_and_complete_after_the_last(
    medtasks, chip_ctc, tmp_path, monkeypatch
):
    right, seen = Oracle.answer, []

    def answer(self, request, requests):
        seen.append(results_of(tmp_path / "run"))
        return right(self, request, requests)

    monkeypatch.setattr(Oracle, "answer", answer)
    call = ("run", "--model", "oracle", "--tasks", f"{TASK},{TASK}_5shot", "-o", "run")
    medtasks.done(*call, "--gen_kwargs", "max_gen_toks=90")
    assert seen[0]["results"] == {}
    for name in (TASK, f"{TASK}_5shot"):
        before = read_conditions(seen[0]["medtasks"]["tasks"][name]["conditions"])
        after = read_conditions(result_of(tmp_path / "run", name)["conditions"])
        assert before.rows and before.prompt and before.budget == 90 and before.n is None
        assert after.n == 8 and after.served == ()
        assert before == replace(after, n=None, served=None, **dict.fromkeys(after.cut))


def with_shots(shots):
    return {"config": {"task": TASK, "num_fewshot": shots}}


@pytest.mark.parametrize(("shots", "strategy"), [(3, "3_shot"), (5, "five_shot")])
def test_a_score_has_the_strategy_by_which_it_was_asked_and_its_rank_alone(
    medtasks, tmp_path, shots, strategy
):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, record=with_shots(shots))
    write_run(tmp_path / "b", "ORG/b", {TASK: POOR})
    outcome = medtasks.done("report", "a", "-o", "out", "--published", "none")
    assert set(pl.read_parquet(tmp_path / "out" / "results.parquet")["strategy"]) == {strategy}
    assert f"{TASK}, {strategy_title(strategy)} " in outcome.out and "without a score" not in outcome.out
    assert set(pl.read_csv(tmp_path / "out" / "groups.csv")["strategy"]) == {strategy}
    medtasks("card", "a", "-o", "card")
    card = (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    assert f"mean score ({strategy_title(strategy)}" in card
    found = json.loads(medtasks("report", "a", "b", "--published", "none", "--json").out)
    assert found["pairs"] == [] and {row["rank_of"] for row in found["groups"]} == {1}


def test_a_score_over_some_of_the_judgements_is_marked_bounded_unranked_and_on_no_card(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD, SECOND: GOOD}, record={"jury": "gpt-4o"})
    with edited(tmp_path / "a", TASK) as stored:
        stored["conditions"]["judged"] = 0.75
        stored["metrics"] |= {"judged": 0.75, "scored": 0.75, "judgements_missing": 10}
    hashed_anew(tmp_path / "a")
    outcome = medtasks("report", "a", "--published", "none", "-o", "out")
    assert "judged in part" in outcome.out
    score = stored["metrics"]["score"]
    assert f"between {0.75 * score:.3f} and {0.75 * score + 0.25:.3f}" in outcome.out
    [suite] = pl.read_csv(tmp_path / "out" / "groups.csv").filter(axis="suite").to_dicts()
    assert (suite["rank"], suite["pending"]) == (None, 1)
    medtasks("card", "a", "-o", "card")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "judged by gpt-4o" in card
    assert f"rows or judgements</summary>\n\n- `{TASK}` (75% of" in card
    assert f"| `{TASK}` |" not in card and f"| `{SECOND}` |" in card


ONE, TWO = "1" * 64, "2" * 64
LOCK = DataLock(
    rows=LockedRows(sample="0", seen=Seen(day="2026-11-27", by="a test"), test=LockedPart(n=N, folded=ONE))
)
PINNED = {"download": {"test": ["a.json"], "revision": "v1", "digests": {"a.json": "sha256:" + "0" * 64}}}


@pytest.mark.parametrize(
    ("rows", "blocks", "lock", "expected"),
    [
        ({}, {}, None, "claimed"),
        ({}, {}, LOCK, "confirmed"),
        ({"folded": TWO}, {}, LOCK, "claimed"),
        ({"n": N - 1}, {}, LOCK, "different"),
        ({"source": "rebuilt"}, {}, LOCK, "different"),
        ({"differs": True}, {}, LOCK, "different"),
        ({"source": "synthetic"}, {}, None, None),
        ({"origin": "hub", "revision": "v1"}, PINNED, None, "confirmed"),
        ({"origin": "hub", "revision": "v2"}, PINNED, None, "claimed"),
    ],
)
def test_rows_are_confirmed_by_a_hash_claimed_or_different(rows, blocks, lock, expected):
    usual = {"source": "suite", "origin": "local", "n_of_suite": N, "folded": ONE, "wording": "official"}
    n = rows.get("n", N)
    record = Conditions(**{**usual, **rows, "n": n, "n_here": n})
    dataset = SimpleNamespace(lock=lock, blocks={"rows": blocks})
    assert confirmed(dataset, record).rows == expected
    words = {"official": "claimed", "own": "different"}
    assert expected is None or words == {
        wording: confirmed(dataset, replace(record, wording=wording)).words for wording in words
    }
    released = replace(record, artefact="release.zip")
    assert expected is None or confirmed(dataset, released).words == "confirmed"


@pytest.mark.long
def test_invented_rows_with_anybodys_words_are_claimed_everywhere(medtasks, data_dir, tmp_path):
    """As many rows as the suite has, made of sample rows."""
    dataset = registry().datasets["bridge_brainmri_ais"]
    rows = [json.loads(line) for line in (dataset.folder / "sample.jsonl").read_text().splitlines()]
    test = [row for row in rows if row.get("split", "test") == "test"]
    made = [
        {**row, "id": str(number), "instruction": "Say what you like.", "input": f"{row['input']} ({number})"}
        for number, row in zip(range(dataset.n_documents), itertools.cycle(test), strict=False)
    ]
    write_jsonl(data_dir / "bridge" / "brainmri_ais" / "test.jsonl", made)
    medtasks.done("run", "--tasks", dataset.id, "--model", "random-label", "--output_path", "run")
    record = result_of(tmp_path / "run", dataset.id)["conditions"]
    assert record["wording"] == "official" and "folded" not in record
    outcome = medtasks("report", "run", "-o", "out")
    medtasks("card", "run", "-o", "card")
    said = "data and prompts confirmed in 0 of 1, claimed but not confirmed in 1"
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert said in " ".join(outcome.out.split()) and said in page and said in card
    assert ",claimed,claimed," in (tmp_path / "out" / "results.csv").read_text(encoding="utf-8")
