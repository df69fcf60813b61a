"""Processes that share a run: blocks, a slow one, a dead one, and those that cannot share it."""

import json
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.engines.choose import engine_of
from medtasks_ext.errors import MedtasksError
from medtasks_ext.models.baselines import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.runner import ranks as of_ranks
from medtasks_ext.runner.ranks import Ranks, blocks
from medtasks_ext.runner.run import Run, Settings, build_tasks
from medtasks_ext.runner.stream import RunPlanner

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run")


class Counts:
    """Numbers that threads share."""

    def __init__(self, **sums: int) -> None:
        self.sums = Counter(sums)
        self.lock = threading.Lock()

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            self.sums[key] += amount
            return self.sums[key]


class Nobody:
    """Watches nothing but outcomes of other ranks."""

    def __init__(self) -> None:
        self.n_elsewhere = 0

    def elsewhere(self, task: str, n: int) -> None:
        self.n_elsewhere += n

    def stored(self, *_):
        pass

    began = answered = faulted = finished = stored


def answered(rank: int = 0) -> list[str]:
    """Documents that one rank answered."""
    path = Path("run/responses", f"{TASK}{f'.rank{rank}' if rank else ''}.jsonl")
    return [json.loads(line)["document"] for line in path.open()] if path.is_file() else []


def state() -> dict:
    return json.loads(Path("run/run.json").read_text())["tasks"][TASK]


@given(
    st.lists(st.integers(0, 3000), max_size=12),
    st.integers(1, 16),
    st.sampled_from([1, 8, 64]),
)
def test_blocks_hold_every_document_once_in_order(sizes, ranks, batch):
    found = blocks(sizes, ranks, batch)
    documents = [(block.task, place) for block in found for place in range(block.start, block.stop)]
    assert documents == [(task, place) for task, n in enumerate(sizes) for place in range(n)]
    assert all(block.stop - block.start <= of_ranks.BATCHES * batch for block in found) or ranks == 1


def test_blocks_are_whole_batches_at_first_and_small_at_the_end():
    found = [block.stop - block.start for block in blocks([5000, 1000], 4, 64)]
    assert found[0] == 256 and all(n % 64 == 0 for n in found[:19])
    assert found[-2] == 16 and sum(found) == 6000
    assert blocks([5000, 0, 1000], 1, 64) == [of_ranks.Block(0, 0, 5000), of_ranks.Block(2, 0, 1000)]


def test_a_slow_rank_gets_less_and_every_document_is_asked_once(chip_ctc, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    counts, watchers, met = Counts(), [Nobody(), Nobody()], threading.Barrier(2)
    n_blocks = len(blocks([8], 2, 1))
    taken = threading.Event()
    calls: list[int] = []

    class Slow(Oracle):
        def generate_until(self, requests, disable_tqdm=False):
            calls.append(len(requests))
            taken.set()
            while counts.sums["blocks"] <= n_blocks:  # until the other rank finds nothing more to take
                time.sleep(0.01)
            return super().generate_until(requests, disable_tqdm)

    class Quick(Oracle):
        def generate_until(self, requests, disable_tqdm=False):
            taken.wait()  # the other rank gets a block, too
            return super().generate_until(requests, disable_tqdm)

    def work(rank: int) -> None:
        run = Run(Path("run"), registry(), rank=rank)
        run.open("oracle", {}, Settings(), [TASK], [TASK])
        tasks, _ = build_tasks(registry(), [TASK], Settings())
        model, ranks = (Slow() if rank else Quick()), Ranks(rank, 2, counts)
        ranks.connect = lambda plan: met.wait()
        stream = RunPlanner(
            run, model, engine_of(model), tasks, Settings(), watchers[rank], ranks=ranks, instant=True
        )
        stream.go()

    slow = threading.Thread(target=work, args=(1,))
    slow.start()
    work(0)
    slow.join()
    assert calls == [len(answered(1))] and 0 < len(answered(1)) < len(answered(0))
    assert sorted([*answered(0), *answered(1)]) == sorted({*answered(0), *answered(1)})
    assert len([*answered(0), *answered(1)]) == 8
    assert state()["state"] == "done" and watchers[0].n_elsewhere == len(answered(1))
    assert not list(Path("run/prompts").iterdir())


def test_what_a_dead_rank_took_is_missing_and_asked_by_the_same_command(medtasks, chip_ctc, monkeypatch):
    with monkeypatch.context() as two:
        two.setattr(of_ranks, "SILENT_SECONDS", 0)
        two.setattr(Oracle, "world_size", 2)
        counts = Counts(blocks=1)  # the first block was taken by a rank that says nothing more
        two.setattr(Ranks, "connect", lambda self, plan: setattr(self, "_counts", counts))
        outcome = medtasks(*RUN)
    assert outcome.code == 1
    assert "rank 1 of 2 has died" in outcome.err and f"{TASK}: not asked to the end" in outcome.err
    kept = answered()
    assert len(kept) == 6 and state()["state"] == "waiting"
    outcome = medtasks(*RUN)
    assert outcome.code == 0, outcome.text
    assert answered()[:6] == kept and len(set(answered())) == len(answered()) == 8
    assert state()["state"] == "done" and state()["generated"] == 2


def test_without_the_first_rank_the_others_answer_what_they_have_taken(chip_ctc, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    class Lost(Counts):
        def add(self, key: str, amount: int) -> int:
            if key == "blocks" and self.sums[key]:  # the first block was taken
                raise RuntimeError("Connection was likely closed")
            return super().add(key, amount)

    run = Run(tmp_path / "run", registry(), rank=1)
    run.open("oracle", {}, Settings(), [TASK], [TASK])
    tasks, _ = build_tasks(registry(), [TASK], Settings())
    ranks, model = Ranks(1, 2, Lost()), Oracle()
    with pytest.raises(MedtasksError, match="first process of the run is gone"):
        RunPlanner(run, model, engine_of(model), tasks, Settings(), Nobody(), ranks=ranks, instant=True).go()
    assert len(answered(1)) == 2


def test_the_first_rank_says_how_to_go_on_when_all_are_ended(medtasks, chip_ctc, monkeypatch):
    def ended(self, requests, disable_tqdm=False):
        raise KeyboardInterrupt

    with monkeypatch.context() as two:
        two.setattr(Oracle, "world_size", 2)
        two.setattr(Oracle, "generate_until", ended)
        two.setattr(Ranks, "connect", lambda self, plan: setattr(self, "_counts", Counts()))
        outcome = medtasks(*RUN)
    assert outcome.code == 130
    assert "tasks not answered to the end: 1; the same command asks for the rest" in outcome.err
    assert medtasks(*RUN).code == 0 and len(answered()) == 8


@pytest.mark.parametrize("kind", ["FSDP", "DEEPSPEED"])
def test_a_model_that_is_spread_over_the_ranks_is_refused(medtasks, chip_ctc, monkeypatch, kind):
    accelerator = SimpleNamespace(
        process_index=0, num_processes=2, distributed_type=SimpleNamespace(value=kind)
    )
    monkeypatch.setattr(Oracle, "accelerator", accelerator, raising=False)
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and kind in outcome.err
    assert "parallelize=True" in outcome.err and "tensor_parallel_size" in outcome.err
    assert not answered()


@pytest.mark.parametrize("rank", ["0", "1"])
def test_processes_of_a_model_that_knows_of_no_other_are_refused(medtasks, chip_ctc, monkeypatch, rank):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", rank)
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "2 processes were started" in outcome.err
    assert not answered() and not answered(1)


def test_processes_that_nothing_connects_are_refused(medtasks, chip_ctc, monkeypatch):
    monkeypatch.setattr(Oracle, "world_size", 2)
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "cannot share the documents" in outcome.err
    assert not answered()
