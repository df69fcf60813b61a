"""`medtasks run --shard` and `medtasks merge`: a run in parts is the run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.models.baselines import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.runner.ranks import Ranks
from medtasks_ext.runner.shards import Shard
from tests.conftest import ROOT, sft_row

CHIP_CTC = ("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run")


def every_kind() -> list[str]:
    """A task of every family of metrics, and the strategies that load documents in their own way."""
    families: dict[str, str] = {}
    for dataset in registry().datasets.values():
        families.setdefault(dataset.family.name, dataset.id)
    return [*families.values(), "bridge_mie_5shot", "bridge_chip_ctc_cot", "mlb_cmexam_5shot"]


@pytest.fixture
def half_right(monkeypatch):
    """A model that knows about half of the answers, always the same ones."""
    right = Oracle.answer

    def answer(self, request, requests):
        known = crc32(str(request.doc["id"]).encode()) % 2 or request.doc.get("trial") == 1
        return right(self, request, requests) if known else "不知道 B"

    monkeypatch.setattr(Oracle, "answer", answer)


@pytest.fixture
def split(medtasks):
    """Run a command in n shards, the last one first; returns their folders."""

    def call(n: int, *command: object, folder: str = "run") -> list[str]:
        for index in range(n, 0, -1):
            outcome = medtasks(*command, "--shard", f"{index}/{n}")
            assert outcome.code == 0, outcome.text
        return [f"{folder}-shard-{index}-of-{n}" for index in range(1, n + 1)]

    return call


def files(folder: Path) -> dict[str, object]:
    """What a run says: responses, samples, and the results of its tasks with their resamples."""
    return {
        str(path.relative_to(folder)): responses(path)
        if path.parent.name == "responses"
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name not in ("run.json", "results.json", "seal.jsonl", "medtasks-root.json")
    }


def responses(path: Path) -> list[dict]:
    """The lines of a file but for their times, and the chain that depends on them."""
    lines = map(json.loads, path.read_text().splitlines())
    return [{key: value for key, value in line.items() if key not in ("at", "chain")} for line in lines]


def documents(folder: str | Path, task: str = "bridge_chip_ctc") -> list[str]:
    path = Path(folder) / "responses" / f"{task}.jsonl"
    return [line["document"] for line in responses(path)] if path.is_file() else []


def results(folder: str | Path) -> dict:
    return json.loads((Path(folder) / "results.json").read_text())


# ---------------------------------------------------------------------- the same as in one piece


@pytest.mark.parametrize(
    "numbers", [pytest.param((3,), id="3"), pytest.param((1, 2, 7), id="1 2 7", marks=pytest.mark.nightly)]
)
def test_shards_of_any_number_make_the_run_that_one_machine_makes(
    medtasks, split, half_right, tmp_path, numbers
):
    command = ("run", "--model", "oracle", "--data", "sample", "--output_path", "run", "--tasks")
    command += (",".join(every_kind()),)
    assert medtasks(*command).code == 0
    whole = files(tmp_path / "run")
    scores = [item.get("score,answer") for item in results("run")["results"].values()]
    assert sum(score is not None and 0 < score < 1 for score in scores) > 10
    for n in numbers:
        outcome = medtasks("merge", *split(n, *command), "-o", f"merged-{n}")
        assert outcome.code == 0, outcome.text
        assert files(tmp_path / f"merged-{n}") == whole
        merged, single = results(f"merged-{n}"), results("run")
        for there in (merged, single):
            del there["medtasks"]["manifest"]
        assert merged == single


@pytest.mark.parametrize(
    "more", [("--limit", "5"), ("--limit", "0.5"), ("--samples", '{"mlb_cmexam": [1, 2, 4, 7, 8, 20]}')]
)
def test_a_limit_or_a_list_chooses_documents_of_the_whole_run(medtasks, split, half_right, tmp_path, more):
    command = ("run", "--model", "oracle", "--data", "sample", "--tasks", "mlb_cmexam", *more)
    command += ("--output_path", "run")
    medtasks(*command)
    assert medtasks("merge", *split(3, *command), "-o", "merged").code == 0
    assert files(tmp_path / "merged") == files(tmp_path / "run")


def test_tokens_and_cut_answers_are_those_of_the_whole(medtasks, split, monkeypatch, chip_ctc, tmp_path):
    monkeypatch.setattr(Oracle, "tokenizer", staticmethod(tokens), raising=False)
    monkeypatch.setattr(Oracle, "tok_encode", lambda self, text: list(text), raising=False)
    monkeypatch.setattr(Oracle, "max_length", 620, raising=False)
    command = (*CHIP_CTC, "--num_fewshot", "3", "--gen_kwargs", "max_gen_toks=25")
    medtasks(*command)
    stored = json.loads((tmp_path / "run/tasks/bridge_chip_ctc.json").read_text())
    assert stored["tokens"]["output"] == 8 * len("clinical trial criterion: 年龄")
    assert stored["cut"] == {"shots_dropped": 8, "inputs_cut": 0, "answers_cut": 8}
    assert medtasks("merge", *split(3, *command), "-o", "merged").code == 0
    for file in ("tasks/bridge_chip_ctc.json", "responses/bridge_chip_ctc.jsonl"):
        assert files(tmp_path / "merged")[file] == files(tmp_path / "run")[file]


def tokens(texts, **_):
    return {"input_ids": [list(text) for text in texts]}


def test_a_template_without_system_turn_is_the_same_in_parts(medtasks, split, monkeypatch, tmp_path):
    def without_system(self, turns, add_generation_prompt=True):
        return "\n".join(turn["content"] for turn in turns if turn["role"] != "system")

    monkeypatch.setattr(Oracle, "apply_chat_template", without_system)
    command = ("run", "--model", "oracle", "--data", "sample", "--apply_chat_template")
    command += ("--tasks", "medhelm_medcalc_bench", "--output_path", "run")
    medtasks(*command)
    before = (tmp_path / "run/tasks/medhelm_medcalc_bench.json").read_bytes()
    outcome = medtasks("merge", *split(2, *command), "-o", "merged")
    assert outcome.code == 0 and "instructions go into the first user turn" in outcome.err
    assert (tmp_path / "merged/tasks/medhelm_medcalc_bench.json").read_bytes() == before
    medtasks("rescore", "run")
    assert (tmp_path / "run/tasks/medhelm_medcalc_bench.json").read_bytes() == before
    assert "1 of 1 tasks are done already" in medtasks(*command).err
    assert "1 of 1 tasks are done already" in medtasks(*command, "--shard", "1/2").err


def test_a_merged_run_goes_on_as_any_other(medtasks, split, chip_ctc, tmp_path):
    medtasks(*CHIP_CTC)
    medtasks("merge", *split(3, *CHIP_CTC), "-o", "merged")
    before = files(tmp_path / "merged")
    assert medtasks("rescore", "merged").code == 0 and files(tmp_path / "merged") == before
    assert "1 of 1 tasks are done already" in medtasks(*CHIP_CTC[:-1], "merged").err
    for run in ("run", "merged"):
        assert medtasks("export", "bridge", run, "-o", f"{run}-out", "--own-words").code == 0
    assert files(tmp_path / "run-out") == files(tmp_path / "merged-out")


# ---------------------------------------------------------------------- how documents are dealt


@st.composite
def _tests(draw):
    """Documents of a test file, some asked several times, and the places that a run asks."""
    rows = []
    for number, trials in enumerate(draw(st.lists(st.integers(0, 4), max_size=40))):
        if trials:
            rows += [{"id": str(number), "item": str(number), "trial": trial} for trial in range(trials)]
        else:
            rows.append({"id": str(number)})
    chosen = sorted(draw(st.sets(st.sampled_from(range(len(rows)))))) if rows else []
    return rows, chosen


@given(_tests(), st.integers(1, 50), st.text(min_size=1, max_size=20))
def test_shards_are_disjoint_complete_and_even_and_keep_trials_together(test, n, task):
    rows, chosen = test
    parts = [Shard(index, n).places(task, rows, chosen) for index in range(1, n + 1)]
    assert sorted(place for part in parts for place in part) == chosen
    assert all(part == sorted(part) for part in parts)
    questions = [{rows[place]["id"] for place in part} for part in parts]
    assert sum(map(len, questions)) == len({rows[place]["id"] for place in chosen})
    assert max(map(len, questions)) - min(map(len, questions)) <= 1


def test_small_tasks_do_not_all_fall_to_the_same_shard():
    owners = defaultdict(int)
    for task in registry().tasks:
        for index in range(1, 9):
            owners[index] += len(Shard(index, 8).places(task, [{"id": "1"}], [0]))
    assert min(owners.values()) > sum(owners.values()) / 16


# ---------------------------------------------------------------------- what a shard leaves


def test_a_shard_stores_its_responses_and_shows_no_score(medtasks, chip_ctc, tmp_path):
    outcome = medtasks(*CHIP_CTC, "--shard", "2/3")
    assert outcome.code == 0 and "no scores" in outcome.out
    assert "medtasks merge run-shard-*-of-3 -o run" in outcome.err
    shard = tmp_path / "run-shard-2-of-3"
    stored = json.loads((shard / "tasks/bridge_chip_ctc.json").read_text())
    asked = (shard / "prompts/bridge_chip_ctc.jsonl").read_text().splitlines()
    assert [json.loads(line)["document"] for line in asked] == documents(shard)
    assert (stored["n"], stored["n_all"]) == (len(documents(shard)), 8)
    record = results(shard)
    assert record["results"] == {} and record["medtasks"]["shard"] == "2/3"
    assert record["n-samples"] == {"bridge_chip_ctc": {"original": 8, "effective": stored["n"]}}


@pytest.mark.parametrize("command", [("rescore",), ("judge", "--jury", "local")])
def test_what_needs_a_whole_run_refuses_a_shard(medtasks, chip_ctc, command):
    medtasks(*CHIP_CTC, "--shard", "1/2")
    outcome = medtasks(*command, "run-shard-1-of-2")
    assert outcome.code == 2
    assert "is shard 1/2 of a run" in outcome.err and "medtasks merge" in outcome.err


def test_a_shard_without_a_document_is_complete(medtasks, split, chip_ctc, tmp_path):
    medtasks(*CHIP_CTC, "--limit", "2")
    folders = split(5, *CHIP_CTC, "--limit", "2")
    assert sorted(len(documents(folder)) for folder in folders) == [0, 0, 0, 1, 1]
    assert medtasks("merge", *folders, "-o", "merged").code == 0
    assert files(tmp_path / "merged") == files(tmp_path / "run")


def test_a_finished_shard_asks_again_only_for_responses_that_were_lost(medtasks, split, chip_ctc, tmp_path):
    folder = Path(split(2, *CHIP_CTC)[0])
    assert "1 of 1 tasks are done already" in medtasks(*CHIP_CTC, "--shard", "1/2").err
    stored = folder / "responses/bridge_chip_ctc.jsonl"
    before = responses(stored)
    stored.write_text("".join(stored.read_text().splitlines(keepends=True)[:-1]))
    outcome = medtasks(*CHIP_CTC, "--shard", "1/2")
    assert outcome.code == 0 and "does not hold any more what it held" in outcome.err
    assert responses(stored) == before
    assert json.loads((folder / "run.json").read_text())["tasks"]["bridge_chip_ctc"]["generated"] == 1


class Counts:
    """Numbers that threads share."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(2)

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            self.sums[key] += amount
            return self.sums[key]


class Threads(Ranks):
    """Two processes of one model, as threads."""

    def __init__(self, rank: int, counts: Counts) -> None:
        super().__init__(rank, 2, counts)
        self.connect = lambda plan: counts.barrier.wait()


class Nobody:
    """Watches nothing."""

    def stored(self, *_):
        pass

    began = answered = faulted = finished = elsewhere = stored


@pytest.mark.parametrize("limit", [None, 2.0])
@pytest.mark.parametrize("shards", [1, 2])
def test_the_ranks_of_a_model_share_the_documents(medtasks, chip_ctc, tmp_path, limit, shards):
    from medtasks_ext.engines.choose import engine_of
    from medtasks_ext.runner.run import Run, Settings, build_tasks
    from medtasks_ext.runner.shards import ShardRun
    from medtasks_ext.runner.stream import RunPlanner
    from medtasks_ext.runs.choice import Choice

    settings, name = Settings(), "bridge_chip_ctc"
    medtasks(*CHIP_CTC, "--output_path", "whole", *(("--limit", "2") if limit else ()))

    def work(index: int, counts: Counts, rank: int) -> None:
        shard = Shard(index, shards)
        folder = Path("run")
        run = (
            ShardRun(shard.folder(folder), registry(), shard, rank=rank)
            if shards > 1
            else Run(folder, registry(), rank=rank)
        )
        run.open("oracle", {}, settings, [name], [name])
        tasks, _ = build_tasks(registry(), [name], settings)
        run.choose(tasks, {name: Choice(limit=limit)})
        model, ranks = Oracle(), Threads(rank, counts)
        RunPlanner(run, model, engine_of(model), tasks, settings, Nobody(), ranks=ranks, instant=True).go()

    for index in range(1, shards + 1):
        counts = Counts()
        other = threading.Thread(target=work, args=(index, counts, 1))
        other.start()
        work(index, counts, 0)
        other.join()
    folders = [f"run-shard-{index}-of-{shards}" for index in range(1, shards + 1)] if shards > 1 else ["run"]
    stored = sorted(path.name for path in Path(folders[0], "responses").iterdir())
    assert set(stored) <= {f"{name}.jsonl", f"{name}.rank1.jsonl"}
    if shards > 1:
        outcome = medtasks("merge", *folders, "-o", "run")
        assert outcome.code == 0, outcome.text
        assert documents("run") == documents("whole")
    whole, shared = ((tmp_path / run / "samples_bridge_chip_ctc.jsonl") for run in ("whole", "run"))
    assert whole.read_bytes() == shared.read_bytes()


@pytest.mark.parametrize("more", [(), ("--shard", "1/2")])
def test_only_the_first_rank_writes_results(medtasks, chip_ctc, monkeypatch, tmp_path, more):

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(Oracle, "rank", 1)
    monkeypatch.setattr(Oracle, "world_size", 2)
    monkeypatch.setattr(Ranks, "connect", lambda self, plan: setattr(self, "_counts", Counts()))
    outcome = medtasks(*CHIP_CTC, *more)
    assert outcome.code == 0 and not outcome.out
    assert not list(tmp_path.glob("run*/run.json")) and not list(tmp_path.glob("run*/results.json"))
    assert list(tmp_path.glob("run*/responses/bridge_chip_ctc.rank1.jsonl"))


# ---------------------------------------------------------------------- stopped and continued

SHARD = """
import os, signal, sys
from medtasks_ext.models.baselines import Oracle
answer, last = Oracle.answer, int(sys.argv[1])
asked = []
def noted(self, request, requests):
    asked.append(request.doc["id"])
    with open("calls", "a") as log:
        log.write(asked[-1] + "\\n")
    if len(asked) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(self, request, requests)
Oracle.answer = noted
from medtasks_ext.cli.main import main
sys.argv = ["medtasks", "run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run",
            "--shard", "1/2"]
main()
"""


def test_a_killed_shard_goes_on_where_it_stopped_and_is_not_merged_before(medtasks, chip_ctc, tmp_path):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(
        json.dumps([sft_row(i, f"第{i}条", "clinical trial criterion: 年龄") for i in range(160)])
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SHARD]
    killed = subprocess.run([*command, "41"], cwd=tmp_path, env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    kept = documents("run-shard-1-of-2")
    assert 0 < len(kept) < 80
    medtasks(*CHIP_CTC, "--shard", "2/2")
    merge = ("merge", "run-shard-1-of-2", "run-shard-2-of-2", "-o", "run")
    outcome = medtasks(*merge)
    assert outcome.code == 2 and not Path("run").exists() and not list(Path().glob(".run*.part"))
    assert f"shard 1/2 (run-shard-1-of-2): {80 - len(kept)}: bridge_chip_ctc" in outcome.err
    Path("calls").unlink()
    subprocess.run([*command, "0"], cwd=tmp_path, env=environment, check=True)
    asked_again = Path("calls").read_text().split()
    assert len(asked_again) == 80 - len(kept) and not set(asked_again) & set(kept)
    assert medtasks(*merge).code == 0
    assert documents("run") == [f"test-{i}" for i in range(160)]
    assert results("run")["results"]["bridge_chip_ctc"]["score,answer"] == 1


KILLED_MERGE = """
import os, signal, sys
from medtasks_ext.runner.run import Run
finish = Run.finish_task
def once(self, task):
    if task.task_name == "bridge_chip_ctc_cot":
        os.kill(os.getpid(), signal.SIGKILL)
    return finish(self, task)
Run.finish_task = once
from medtasks_ext.cli.main import main
sys.argv = ["medtasks", "merge", "run-shard-1-of-2", "run-shard-2-of-2", "-o", "merged"]
main()
"""


def test_a_killed_merge_leaves_no_run_and_the_next_one_makes_it(medtasks, split, chip_ctc, tmp_path):
    command = (*CHIP_CTC, "--tasks", "bridge_chip_ctc,bridge_chip_ctc_cot")
    medtasks(*command)
    folders = split(2, *command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_MERGE], cwd=tmp_path, env=environment, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert not Path("merged").exists()
    assert medtasks("merge", *folders, "-o", "merged").code == 0
    assert files(tmp_path / "merged") == files(tmp_path / "run")


def test_merging_again_changes_nothing_and_keeps_what_was_added_since(medtasks, split, chip_ctc, tmp_path):
    folders = split(2, *CHIP_CTC)
    medtasks("merge", *folders, "-o", "merged")
    added = tmp_path / "merged" / "notes.txt"
    added.write_text("rated by hand")
    before = files(tmp_path / "merged")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "merged/responses").iterdir()}
    assert medtasks("merge", *reversed(folders), "-o", "merged").code == 0
    assert files(tmp_path / "merged") == before
    assert {path: path.stat().st_mtime_ns for path in written} == written


# ---------------------------------------------------------------------- parts that do not fit together


@pytest.mark.parametrize("text", ["0/4", "5/4", "x", "1/0", "1-4", "-1/4", "1/4/2", "", "1.0/4"])
def test_what_is_no_shard_gets_one_message(medtasks, chip_ctc, tmp_path, text):
    outcome = medtasks(*CHIP_CTC, f"--shard={text}")
    assert outcome.code == 2 and "write I/N with I from 1 to N" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def refused(medtasks, *arguments: str, out: str = "merged") -> str:
    outcome = medtasks("merge", *arguments, "-o", out)
    assert outcome.code == 2 and outcome.err.startswith("medtasks: ") and "→" in outcome.err, outcome.text
    assert "Traceback" not in outcome.err
    assert not Path("merged").exists() and not list(Path().glob(".merged*.part"))
    return outcome.err


def test_a_folder_that_is_no_shard_is_named(medtasks, split, chip_ctc, tmp_path):
    folders = split(2, *CHIP_CTC)
    medtasks(*CHIP_CTC)
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text("[1]")
    assert "nowhere: no such folder" in refused(medtasks, *folders, "nowhere")
    assert "empty/run.json: no such file" in refused(medtasks, *folders, "empty")
    assert "odd/run.json: is no manifest of a run" in refused(medtasks, *folders, "odd")
    assert "run: is a run of its own, not a shard" in refused(medtasks, *folders, "run")


def test_shards_of_different_splits_are_refused(medtasks, split, chip_ctc):
    error = refused(medtasks, *split(2, *CHIP_CTC), *split(3, *CHIP_CTC))
    assert "is shard 1/3, but run-shard-1-of-2 is shard 1/2" in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--limit", "3"), "is a part of other documents (the first 3) than run-shard-1-of-2 (all)"),
        (("--model_args", "seed=7"), "model.model_args.seed was None, is 7"),
    ],
)
def test_shards_of_another_model_or_other_settings_are_refused(medtasks, chip_ctc, change, message):
    medtasks(*CHIP_CTC, "--shard", "1/2")
    medtasks(*CHIP_CTC, "--shard", "2/2", "--output_path", "other", *change)
    assert message in refused(medtasks, "run-shard-1-of-2", "other-shard-2-of-2")


def test_where_a_shard_was_run_does_not_matter(medtasks, chip_ctc, tmp_path):
    medtasks(*CHIP_CTC)
    for index in (1, 2):
        medtasks(
            *CHIP_CTC, "--shard", f"{index}/2", "--model_args", f"timeout={index},num_concurrent={index}"
        )
    assert medtasks("merge", "run-shard-1-of-2", "run-shard-2-of-2", "-o", "merged").code == 0
    assert files(tmp_path / "merged") == files(tmp_path / "run")


def test_a_shard_of_another_schema_is_refused(medtasks, split, chip_ctc):
    folders = split(2, *CHIP_CTC)
    manifest = json.loads(Path(folders[1], "run.json").read_text())
    Path(folders[1], "run.json").write_text(json.dumps({**manifest, "schema": 99}))
    assert "was written by a newer version (schema 99" in refused(medtasks, *folders)
    Path(folders[1], "run.json").write_text(json.dumps({**manifest, "schema": 1}))
    assert "another version of medtasks (schema 1" in refused(medtasks, *folders)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("CHIP-CTC.SFT.json", "rows_hash was"),
        ("example/CHIP-CTC.example.json", "pool_hash was"),
    ],
)
def test_shards_that_read_other_rows_or_examples_are_refused(medtasks, chip_ctc, file, message):
    medtasks(*CHIP_CTC, "--shard", "1/2")
    path = chip_ctc / "bridge" / file
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([{**rows[0], "input": "换了一条"}, *rows[1:]]))
    from medtasks_ext.prompts import load

    load._build.cache_clear()
    medtasks(*CHIP_CTC, "--shard", "2/2")
    error = refused(medtasks, "run-shard-1-of-2", "run-shard-2-of-2")
    assert "run-shard-1-of-2: bridge_chip_ctc: other rows or prompts" in error and message in error


def test_a_shard_that_was_run_twice_must_say_the_same(medtasks, split, chip_ctc, monkeypatch):
    folders = split(2, *CHIP_CTC)
    medtasks(*CHIP_CTC, "--output_path", "again", "--shard", "1/2")
    twice = [*folders, "again-shard-1-of-2"]
    assert medtasks("merge", *twice, "-o", "good").code == 0
    first = documents(twice[-1])[0]
    monkeypatch.setattr(Oracle, "answer", lambda self, request, requests: "another answer")
    shutil.rmtree(twice[-1])
    medtasks(*CHIP_CTC, "--output_path", "again", "--shard", "1/2")
    error = refused(medtasks, *twice)
    assert (
        f"bridge_chip_ctc: document {first} has different responses in {folders[0]} and {twice[-1]}" in error
    )


def test_a_folder_that_holds_something_else_is_left_alone(medtasks, split, chip_ctc, tmp_path):
    folders = split(2, *CHIP_CTC)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    assert "is there already and holds something else" in refused(medtasks, *folders, out="full")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert medtasks("merge", *folders, "-o", "empty").code == 0
    medtasks("run", "--model", "random-label", *CHIP_CTC[3:])
    assert "is there already" in refused(medtasks, *folders, out="run")


def test_documents_that_no_shard_covers_are_counted_by_shard(medtasks, split, chip_ctc):
    folders = split(4, *CHIP_CTC)
    stored = Path(folders[1], "responses/bridge_chip_ctc.jsonl")
    stored.write_text("".join(stored.read_text().splitlines(keepends=True)[:-1]))
    error = refused(medtasks, *folders[:3])
    assert f"shard 2/4 ({folders[1]}): 1: bridge_chip_ctc 1" in error
    assert "shard 4/4 (not given): 2: bridge_chip_ctc 2" in error


def test_a_task_that_failed_in_one_shard_can_be_left_without_a_score(
    medtasks, monkeypatch, chip_ctc, tmp_path
):
    command = (*CHIP_CTC, "--tasks", "bridge_chip_ctc,bridge_chip_ctc_cot")
    medtasks(*command)
    medtasks(*command, "--shard", "1/2")
    right = Oracle.answer

    def fragile(self, request, requests):
        if request.task_name == "bridge_chip_ctc":
            raise RuntimeError("the endpoint hung up")
        return right(self, request, requests)

    with monkeypatch.context() as patched:
        patched.setattr(Oracle, "answer", fragile)
        assert medtasks(*command, "--shard", "2/2").code == 1
    shards = ("run-shard-1-of-2", "run-shard-2-of-2")
    assert "bridge_chip_ctc 4 (the endpoint hung up)" in refused(medtasks, *shards)
    outcome = medtasks("merge", *shards, "-o", "merged", "--partial")
    assert outcome.code == 1
    assert "✗ bridge_chip_ctc: responses are missing: 4 of shard 2/2" in outcome.err
    assert list(results("merged")["results"]) == ["bridge_chip_ctc_cot"]
    assert medtasks("rescore", "merged").code == 1
    assert list(results("merged")["results"]) == ["bridge_chip_ctc_cot"]
    # the same command without --shard asks for the rest
    assert medtasks(*command, "--output_path", "merged").code == 0
    manifest = json.loads(Path("merged/run.json").read_text())
    assert manifest["tasks"]["bridge_chip_ctc"]["generated"] == 4
    assert results("merged")["results"] == results("run")["results"]


def test_a_task_without_data_anywhere_stays_missing(medtasks, chip_ctc):
    command = (*CHIP_CTC, "--tasks", "bridge_chip_ctc,bridge_mie", "--data", "local")
    for index in (1, 2):
        assert medtasks(*command, "--shard", f"{index}/2").code == 1
    outcome = medtasks("merge", "run-shard-1-of-2", "run-shard-2-of-2", "-o", "merged")
    assert outcome.code == 1
    assert json.loads(Path("merged/run.json").read_text())["tasks"]["bridge_mie"]["state"] == "missing"
    assert list(results("merged")["results"]) == ["bridge_chip_ctc"]
