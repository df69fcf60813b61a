"""The record of conditions: written, read, and in words."""

import json
from dataclasses import replace

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.results.condition_words import decoding_words, jury_words, shown, task_words
from medtasks_ext.results.conditions import drawn, facts, read_decoding, read_jury
from medtasks_ext.results.reading import read_results
from medtasks_ext.runs.conditions import (
    Conditions,
    Judge,
    Jury,
    read_conditions,
)
from medtasks_ext.runs.manifest import identity_of
from medtasks_ext.runs.settings import is_harmless
from tests.run_files import result_of, results_of

TASK = "bridge_chip_ctc"
JURY = Jury((Judge("a", "org/a-70b"), Judge("b")), Judge("c", "org/c"), "likert", "official", "0123abcd")
RECORD = Conditions(
    dataset=TASK, strategy="five_shot", version="1-A",
    source="suite", origin="hub", revision="4bc0", rows="77ab", documents="the first 5", n_of_suite=90,
    n=5, n_here=80, held_out=5, n_dropped=1,
    wording="official", artefact="a release.json", artefact_revision="1.0",
    prompt="1f3a", shots=5, examples="e5", shots_dropped=0,
    template=True, system=True, turns=True,
    budget=100, context=8_000, inputs_cut=2, answers_cut=0,
    decoding={"do_sample": True, "temperature": 0.6, "until": ["\n\n"]}, seed=7,
    jury=JURY, judged=0.5,
    engine="vllm", arguments={"dtype": "bfloat16"}, served=("org/model",),
    versions=({"vllm": "1"}, {"vllm": "2", "torch": "3"}),
)  # fmt: skip
#: What was added to how the task asks, in words.
ADDED = {
    "generation": None, "stop": r"'\n\n'", "arguments": None, "variant": None, "brought": None,
    "rounding": "dtype=bfloat16",
    "template_hash": None,
    "own_template": None, "local_template": None, "system_text": None, "delimiter": None,
}  # fmt: skip


def test_a_record_is_read_as_it_was_written():
    stored = json.loads(json.dumps(RECORD.record()))
    assert read_conditions(stored) == RECORD
    assert json.dumps(read_conditions(stored).record()) == json.dumps(RECORD.record())


def test_what_is_unknown_is_not_written_and_is_unknown_when_read():
    assert Conditions().record() == {"schema": 3, "strategy": "zero_shot"}
    assert read_conditions({"schema": 3}) == Conditions()
    greedy = Conditions(decoding={})
    assert read_conditions(greedy.record()).decoding == {}  # known, and nothing of it


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "schema is 2"),
        ({"mood": "good"}, "conditions: mood"),
        ({"jury": {"judges": [], "mood": "good"}}, "jury.mood"),
        ({"source": "invented"}, "conditions: source"),
        ({"n": "many"}, "conditions: n: "),
    ],
)
def test_what_the_record_does_not_know_is_refused_with_its_place(change, words):
    with pytest.raises(MedtasksError, match=words.replace(".", r"\.")):
        read_conditions({**RECORD.record(), **change}, "run/tasks/t.json")


def test_a_sampled_result_with_all_conditions_in_words():
    assert task_words(RECORD) == {
        "version": "1", "prompt": "official 1f3a", "data": "hub @ 4bc0", "rows": "77ab", "rebuilt": "no",
        "examples": "e5", "documents": "the first 5",
        "jury": "a (org/a-70b) + b, c (org/c) decides; likert with official prompts, 0123abcd",
        "asked_with": r"decoding: temperature=0.6; stop strings: '\n\n'; precision: dtype=bfloat16",
    }  # fmt: skip
    assert shown(facts(RECORD)) == {
        "strategy": "five_shot", "version": "1", "wording": "official", "artefact": "a release.json 1.0",
        "prompt": "1f3a", "examples": "e5", "examples_cut": False, "source": "suite", "revision": "4bc0",
        "rows": "77ab", "documents": "the first 5", "n": 5, "n_of_suite": 90, "held_out": 5, "budget": 100,
        "answers_cut": False, "context": 8_000, "inputs_cut": True, "decoding": "temperature=0.6", "seed": 7,
        "template": "yes", "system": "system turn", "turns": "yes",
        "jury": "a (org/a-70b) + b, c (org/c) decides", "protocol": "likert with official prompts, 0123abcd",
        "judged": 0.5, "engine": "vllm", "versions": "vllm 2, torch 3", "requests": None,
        "differs": False, "less_room": True, **ADDED,
    }  # fmt: skip


@pytest.mark.parametrize(
    "jury", [Jury((Judge("gpt-4o"),)), Jury(()), Jury((Judge("gpt-4o"), Judge("llama-3.3-70b")))]
)
def test_a_jury_in_words_is_read_back(jury):
    assert read_jury(jury_words(jury)) == jury


@pytest.mark.parametrize("text", ["greedy", "sampled", "temperature=0.6, top_p=0.95, top_k=20", "top_p=1"])
def test_decoding_in_words_is_read_back(text):
    assert decoding_words(drawn(read_decoding(text))) == text


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
        ({"max_length": 512}, False),
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


def test_an_identity_that_kept_an_argument_of_place_goes_on_with_its_own_keys():
    kept = identity_of("vllm", {"pretrained": "m"}, {})
    older = kept.model_copy(
        update={"model": {"model": "vllm", "model_args": {"pretrained": "m", "batch_size": "auto"}}}
    )
    assert is_harmless("batch_size")
    assert not older.differs_from(kept) and not kept.differs_from(older)
    assert older.digest != kept.digest  # so keys must be those of the folder
    assert kept.differs_from(identity_of("vllm", {"pretrained": "other"}, {}))


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


def test_conditions_of_tasks_without_a_score_stay(medtasks, chip_ctc, tmp_path, monkeypatch):
    monkeypatch.setattr(Oracle, "answer", lambda *_: 1 / 0)
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "-o", "run").code == 1
    kept = results_of(tmp_path / "run")
    assert kept["results"] == {} and read_conditions(kept["medtasks"]["tasks"][TASK]["conditions"]).rows
