"""Documents that are asked several times: requests, scores, intervals as counted by hand."""

import json
from itertools import combinations
from pathlib import Path
from statistics import fmean
from zlib import crc32

import numpy as np
import pytest
import yaml
from lm_eval import simple_evaluate
from lm_eval.api.registry import get_model
from lm_eval.tasks import TaskManager

from medtasks_ext.metrics.repeats import pass_at
from medtasks_ext.registry import registry, tasks_folder
from medtasks_ext.results.conditions import differences, facts
from medtasks_ext.results.document_scores import load_resampled
from medtasks_ext.results.reading import read_results
from medtasks_ext.run.lm import register
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.preview import count_bytes, plan_task
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.records import parsed_of
from medtasks_ext.stats.bootstrap import resampling_weights
from tests.engines.server import Reply, Server, chat
from tests.judge import server as judges
from tests.run_files import result_of, samples_of

N, SEED = 4, 1234
#: a mean; F1 over labels; pooled F1 of sets; questions in three orders; open answers, which judges score
MEAN, POOLED, JUDGED = "medhelm_medbullets", "clinicbench_ddi", "medhelm_mtsamples"
TASKS = (MEAN, POOLED, "bridge_mednli", "bridge_ade_drug_dosage", "clinicbench_hoc", "mlb_cmexam", JUDGED)
REPEATED = f"temperature=0.7,repeats={N}"
_SAID = [
    "relation: entailment",
    "neutral",
    "contradiction",
    "A",
    "B",
    "effect",
    "mechanism",
    "int",
    "none",
    "?",
]


async def by_seed(asked):
    """Another answer to each seed."""
    return Reply(chat(_SAID[crc32(f"{asked.prompt} {asked.body['seed']}".encode()) % len(_SAID)]))


@pytest.fixture
def server():
    with Server(by_seed) as one:
        yield one


@pytest.fixture
def run(medtasks, server):
    def call(folder, settings, *tasks):
        model = f"model=m,base_url={server.url}/chat/completions,num_concurrent=4"
        return medtasks(
            *("run", "--model", "local-chat-completions", "--model_args", model, "--apply_chat_template"),
            *("--data", "sample", "--tasks", ",".join(tasks), "--gen_kwargs", settings),
            *("--no-preflight", "--output_path", folder),
        )

    return call


def test_a_score_is_the_mean_of_what_each_repeat_alone_scores(run, server):
    assert run("all", REPEATED, *TASKS).code == 0
    asked = [(asked.body["messages"], asked.body["seed"]) for asked in server.asked]
    documents = sum(result_of("all", task)["n"] for task in TASKS)
    assert len(asked) == N * documents and {seed for _, seed in asked} == {*range(SEED, SEED + N)}
    for draw in range(N):
        assert run(f"alone{draw}", f"temperature=0.7,do_sample=True,seed={SEED + draw}", *TASKS).code == 0
    for task in TASKS:
        found, alone = result_of("all", task)["metrics"], [result_of(f"alone{k}", task) for k in range(N)]
        for metric in alone[0]["metrics"]:
            expected = fmean(item["metrics"][metric] for item in alone)
            assert found[metric] == pytest.approx(expected, abs=1e-12), (task, metric)
    assert len({result_of(f"alone{draw}", MEAN)["metrics"]["score"] for draw in range(N)}) > 1
    assert result_of("all", POOLED)["metrics"]["score"] > 0


def test_agreement_and_pass_at_k_are_as_counted_by_hand(run, medtasks):
    assert run("all", REPEATED, MEAN, POOLED).code == 0
    metrics, samples = result_of("all", MEAN)["metrics"], samples_of("all", MEAN)
    read = [[parsed_of(sample, draw) for draw in range(N)] for sample in samples]
    golds = [sample["doc"]["gold"] for sample in samples]
    right = [[one["answer"] == gold for one in of] for of, gold in zip(read, golds, strict=True)]
    assert metrics["pass_at_1"] == pytest.approx(metrics["score"]) == pytest.approx(np.mean(right))
    assert metrics["pass_at_n"] == np.mean([any(of) for of in right]) > metrics["score"]
    pairs = [pair for of in read for pair in combinations(of, 2)]
    same = [one["valid"] and one["answer"] == other["answer"] for one, other in pairs]
    assert metrics["repeat_agreement"] == pytest.approx(np.mean(same)) and any(same)
    assert "pass_at_1" not in result_of("all", POOLED)["metrics"]  # its documents are not right or wrong
    sample = samples[0]
    assert sample["scores_per_repeat"]["score"] == right[0] and len(sample["resps"][0]) == N
    assert f"{N} answers to each document in 2 tasks" in medtasks("report", "all").out
    shown = medtasks("view", "all", MEAN, sample["doc"]["id"]).out
    for number, text in enumerate(sample["resps"][0], start=1):
        assert f"Answer {number}:" in shown and text in shown.replace("[official: ", "")
    for right_ones in range(7):
        drawn = [any(one < right_ones for one in some) for some in combinations(range(6), 2)]
        assert pass_at(6, right_ones, 2) == pytest.approx(np.mean(drawn))


def test_an_interval_draws_documents_with_all_their_answers(run):
    assert run("all", REPEATED, POOLED).code == 0
    samples = samples_of("all", POOLED)
    counts = np.array([sample["score"] for sample in samples], dtype=float)
    assert counts.shape == (len(samples), N, 3) and counts[..., 0].any()  # the last: tp, fp, fn
    weights = resampling_weights(POOLED, len(samples)).astype(float)
    tp, fp, fn = np.moveaxis(np.einsum("rd,dkc->rkc", weights, counts), -1, 0)
    f1 = np.divide(2 * tp, 2 * tp + fp + fn, out=np.zeros_like(tp), where=2 * tp + fp + fn > 0)
    np.testing.assert_allclose(
        load_resampled(RunFolder(Path("all")).resampled_file(POOLED)), f1.mean(axis=1), atol=1e-12
    )
    interval = result_of("all", POOLED)["intervals"]["score"]
    assert interval["interval_low"] < result_of("all", POOLED)["metrics"]["score"] < interval["interval_high"]


def test_nothing_is_asked_twice_and_a_new_number_asks_what_is_missing(run, server, medtasks):
    assert run("one", REPEATED, MEAN).code == 0
    n, before = len(server.asked), result_of("one", MEAN)["metrics"]
    assert run("one", REPEATED, MEAN).code == 0 and medtasks("rescore", "one").code == 0
    assert len(server.asked) == n and result_of("one", MEAN)["metrics"] == before
    file = Path("one/answers.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    lost = next(line for line in map(json.loads, lines) if line["document"].endswith("(repeat 3)"))
    file.write_text("".join(line for line in lines if lost["key"] not in line))
    assert run("one", REPEATED, MEAN).code == 0
    assert [asked.body["seed"] for asked in server.asked[n:]] == [SEED + 2]
    assert result_of("one", MEAN)["metrics"] == before
    assert "repeats" in run("one", "temperature=0.7,repeats=2", MEAN).err


def test_a_likeliest_answer_is_asked_for_once(run, server):
    outcome = run("none", f"repeats={N}", MEAN)
    assert outcome.code and "likeliest answer" in outcome.text and "set a temperature" in outcome.text
    assert not server.asked
    assert "whole number" in run("none", "temperature=1,repeats=0", MEAN).text


def test_judges_rate_every_answer(run, medtasks, tmp_path):
    assert run("open", REPEATED, JUDGED).code == 0
    answers = [sample["resps"][0] for sample in samples_of("open", JUDGED)]

    def script(asked, seen):
        return judges.Reply(judges.verdict(asked.axes, 1 + _SAID.index(asked.texts["response"]) % 5))

    with judges.Server(script) as judge:
        jury = {"judges": [{"name": "one", "model": "one", "base_url": judge.url, "temperature": 0}]}
        (tmp_path / "jury.yaml").write_text(yaml.safe_dump(jury))
        for _ in range(2):
            assert medtasks("judge", "open", "--jury", "jury.yaml").code == 0
        assert len(judge.asked) == N * len(answers)  # each answer once, also where two are the same
    by_hand = np.mean([fmean(_SAID.index(text) % 5 / 4 for text in of) for of in answers])
    assert result_of("open", JUDGED)["metrics"]["score"] == pytest.approx(by_hand)
    assert medtasks("rescore", "open").code == 0
    assert result_of("open", JUDGED)["metrics"]["score"] == pytest.approx(by_hand)


def test_plain_lm_eval_gives_the_same_and_the_condition_is_named(run, server, tmp_path):
    assert run("all", REPEATED, MEAN).code == 0 and run("two", "temperature=0.7,repeats=2", MEAN).code == 0
    theirs = {
        "include": str(tasks_folder() / "medhelm" / "medbullets" / "task.yaml"),
        "task": "my_medbullets",
        "tag": [],
    }
    said = {**theirs, "repeats": N, "generation_kwargs": {"temperature": 0.7}}
    (tmp_path / "my_medbullets.yaml").write_text(yaml.safe_dump(said))
    arguments = {"run": str(tmp_path / "kept"), "model": "m", "base_url": f"{server.url}/chat/completions"}
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False, metadata={"data": "sample"})
    register()
    model = get_model("medtasks-api").create_from_arg_obj(arguments, {})
    found = simple_evaluate(
        model, tasks=["my_medbullets"], task_manager=manager, apply_chat_template=True, bootstrap_iters=0
    )
    model.close()
    metrics = result_of("all", MEAN)["metrics"]
    for metric in ("score", "valid", "repeat_agreement"):
        assert found["results"]["my_medbullets"][f"{metric},answer"] == pytest.approx(metrics[metric]), metric
    one, two = (
        read_results([tmp_path / name], registry()).entries[0].experiments[MEAN] for name in ("all", "two")
    )
    found = differences(facts(one.conditions), facts(two.conditions))
    assert [(item.field, item.moves, item.one, item.other) for item in found] == [("repeats", False, N, 2)]


def test_a_plan_counts_every_request():
    often = Settings(data="sample", gen_kwargs={"temperature": 0.7, "repeats": N})
    settings = (Settings(data="sample"), often)
    once, often = (plan_task(registry(), MEAN, one, count_bytes, None) for one in settings)
    assert often["most_output_tokens"] == N * once["most_output_tokens"]
    assert often["documents"] == once["documents"]
    assert often["prompt_tokens"] == pytest.approx(N * once["prompt_tokens"], abs=N)
