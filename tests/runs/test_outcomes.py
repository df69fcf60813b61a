"""The outcomes of a run on disk: append-only, chained, total on every string, killed at any place."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.engines import Answer, Fault, FaultKind, Usage
from medtasks_ext.engines.records import Likelihood
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runs import Intent, OutcomeLog, Stored, read_outcomes
from medtasks_ext.runs.chain import ChainedFile, sealed_head
from tests.conftest import ROOT

TASK = "bridge_mie"
ANSWER = Answer("A", "stop", Usage(3, 1), "because", "served/model", "id-1", 0.25)
FAULT = Fault(FaultKind.BUSY, "HTTP 503", status=503, tries=4, maybe_paid=2)

halves = st.text(st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF), max_size=2)
any_text = st.lists(st.one_of(st.text(max_size=20), halves), max_size=4).map("".join)
usages = st.builds(
    Usage, st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9), counted=st.booleans()
)
likelihoods = st.lists(st.builds(Likelihood, st.floats(-1e6, 0), st.booleans()), max_size=3).map(tuple)
answers = st.builds(
    Answer,
    *(any_text, any_text, st.none() | usages, any_text, any_text, any_text),
    likelihoods=likelihoods,
)
faults = st.builds(Fault, st.sampled_from(FaultKind), any_text, tries=st.integers(1, 9))
entries = st.one_of(answers, faults, st.builds(Intent, st.floats(0, 1e6)))


def log_of(folder: Path, *items: Stored) -> OutcomeLog:
    log = OutcomeLog(folder, TASK)
    log.load()
    for item in items:
        log.add(item.key, item.document, item.entry)
    log.close()
    return log


def lines(folder: Path) -> list[bytes]:
    return (folder / f"{TASK}.jsonl").read_bytes().splitlines(keepends=True)


def read(folder: Path) -> list[Stored]:
    return list(read_outcomes(folder, TASK))


@given(st.lists(st.tuples(any_text, any_text, entries), max_size=6))
def test_whatever_was_stored_is_read_again(tmp_path_factory, items):
    folder = tmp_path_factory.mktemp("responses")
    log_of(folder, *(Stored(*item) for item in items))
    found = [(item.key, item.document, item.entry) for item in read(folder)]
    # two halves that meet in a text are one character after reading, as JSON has it
    assert found == [joined(item) for item in items]
    for line in lines(folder) if items else ():
        assert isinstance(json.loads(line.decode("utf-8")), dict)


def joined(item):
    stored = Stored(*item).record()
    again = Stored.read(json.loads(json.dumps(stored)))
    return again.key, again.document, again.entry


def test_a_line_is_one_object_with_key_document_and_response(tmp_path):
    log_of(tmp_path, Stored("k", "d", ANSWER), Stored("k2", "d2", FAULT), Stored("k3", "d3", Intent(0.5)))
    answer, fault, intent = map(json.loads, lines(tmp_path))
    assert (answer["key"], answer["document"], answer["response"]) == ("k", "d", "A")
    assert answer["usage"] == {"prompt": 3, "completion": 1} and answer["finish"] == "stop"
    assert fault["fault"] == "busy" and fault["reason"] == "HTTP 503" and "response" not in fault
    assert intent["intent"] == 0.5 and "response" not in intent


def test_a_fault_is_no_answer_and_an_answer_settles_it(tmp_path):
    log = log_of(
        tmp_path, Stored("k", "d", Intent(1.0)), Stored("k", "d", FAULT), Stored("k2", "d2", Intent(2.0))
    )
    assert (log.answered, {*log.last}, log.unsettled) == (set(), {"k"}, {"k": [1.0], "k2": [2.0]})
    again = OutcomeLog(tmp_path, TASK)
    again.load()
    assert (again.answered, {*again.last}, again.unsettled) == (set(), {"k"}, {"k": [1.0], "k2": [2.0]})
    again.add("k", "d", ANSWER)
    assert again.answered == {"k"} and not again.last


def test_what_a_request_may_have_cost_stays_until_a_reply_says_it(tmp_path):
    broken, came = replace(FAULT, maybe_paid=1), replace(ANSWER, cost=0.25)
    lines = [("a", Intent(1.0)), ("a", broken), ("b", Intent(2.0)), ("b", Intent(2.0)), ("b", came)]
    log = log_of(tmp_path, *(Stored(key, "d", entry) for key, entry in lines))
    again = OutcomeLog(tmp_path, TASK)
    again.load()
    for one in (log, again):  # the try without a reply, and the first of two before the answer
        assert (one.unsettled, one.unsure, one.spent) == ({"a": [1.0], "b": [2.0]}, 3.0, 0.25)


@pytest.mark.parametrize(("settles", "left"), [(1.0, 1.0), (0.0, 2.0)], ids=["asked again", "from a batch"])
@pytest.mark.parametrize("entry", [ANSWER, replace(FAULT, maybe_paid=0)], ids=["answer", "fault"])
def test_what_a_killed_call_may_have_spent_stays_whatever_comes_later(tmp_path, entry, settles, left):
    log = OutcomeLog(tmp_path, TASK)
    for item in (Intent(1.0), Intent(1.0)):  # the first call was killed
        log.add("k", "d", item)
    log.add("k", "d", entry, settles=settles)
    log.close()
    again = OutcomeLog(tmp_path, TASK)
    again.load()
    assert log.unsure == again.unsure == left


@pytest.mark.parametrize("cut", [1, 2, 40, 100])
def test_a_line_that_a_crash_cut_short_is_dropped_and_the_chain_goes_on(tmp_path, cut):
    log_of(tmp_path, *(Stored(f"k{i}", f"d{i}", ANSWER) for i in range(3)))
    path = tmp_path / f"{TASK}.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert [item.key for item in read(tmp_path)] == ["k0", "k1"]
    log_of(tmp_path, Stored("k9", "d9", ANSWER))
    assert [item.key for item in read(tmp_path)] == ["k0", "k1", "k9"]


CHANGES = {
    "a changed answer": lambda found: [found[0].replace(b'"A"', b'"B"'), *found[1:]],
    "a line taken out": lambda found: [found[0], *found[2:]],
    "a line put in twice": lambda found: [found[0], found[0], *found[1:]],
    "lines in another order": lambda found: [found[1], found[0], *found[2:]],
    "broken JSON": lambda found: [found[0], b"{oops\n", *found[1:]],
    "a number for a response": lambda found: [found[0].replace(b'"A"', b"5"), *found[1:]],
    "no chain": lambda found: [b'{"key": "k", "document": "d", "response": "A"}\n', *found[1:]],
    "a list": lambda found: [b"[1]\n", *found],
    "5,000 digits": lambda found: [b'{"key": ' + b"1" * 5000 + b"}\n", *found],
    "a line from another task": lambda found: [*found, found[-1]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_that_is_not_the_one_that_was_written_is_named(tmp_path, change):
    log_of(tmp_path, *(Stored(f"k{i}", f"d{i}", ANSWER) for i in range(4)))
    path = tmp_path / f"{TASK}.jsonl"
    before = path.read_bytes()
    path.write_bytes(b"".join(change(lines(tmp_path))))
    assert path.read_bytes() != before
    with pytest.raises(MedtasksError, match=r"line \d is damaged, or not the one") as error:
        read(tmp_path)
    assert "delete this line and those after it" in error.value.remedy


def test_a_file_under_another_tasks_name_is_not_its_own(tmp_path):
    log_of(tmp_path, Stored("k", "d", ANSWER))
    (tmp_path / f"{TASK}.jsonl").rename(tmp_path / "bridge_cantemist.jsonl")
    with pytest.raises(MedtasksError, match="line 1 is damaged, or not the one"):
        list(read_outcomes(tmp_path, "bridge_cantemist"))


def test_lines_missing_at_the_end_show_against_the_seal_alone(tmp_path):
    seal = log_of(tmp_path, *(Stored(f"k{i}", f"d{i}", ANSWER) for i in range(4))).seal
    path = tmp_path / f"{TASK}.jsonl"
    assert sealed_head(path, seal) and seal.lines == 4
    log_of(tmp_path, Stored("k5", "d5", ANSWER))  # what is appended later leaves the seal whole
    assert sealed_head(path, seal)
    path.write_bytes(b"".join(lines(tmp_path)[:3]))
    assert len(read(tmp_path)) == 3 and not sealed_head(path, seal)
    path.unlink()
    assert not sealed_head(path, seal)


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path, monkeypatch):
    log = OutcomeLog(tmp_path, TASK)
    log.add("k0", "d0", ANSWER)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:10]) and full())
    with pytest.raises(MedtasksError, match="cannot be written") as error:
        log.add("k1", "d1", ANSWER)
    assert "make room" in error.value.remedy
    monkeypatch.undo()
    log.add("k2", "d2", ANSWER)
    log.close()
    assert [item.key for item in read(tmp_path)] == ["k0", "k2"]


def full():
    raise OSError(28, "No space left on device")


KILLED = """
import sys
from pathlib import Path
from medtasks_ext.engines import Answer
from medtasks_ext.runs import OutcomeLog
log = OutcomeLog(Path(sys.argv[1]), "bridge_mie")
log.load()
for number in range(10**9):
    log.add(f"k{number}", "d", Answer("x" * (number % 300)))
    print(number, flush=True)
"""


def test_a_killed_writer_has_lost_nothing_that_it_counted(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, env=environment
    ) as writer:
        assert writer.stdout is not None
        counted = [int(writer.stdout.readline()) for _ in range(500)]
        writer.send_signal(signal.SIGKILL)
        counted += map(int, writer.stdout.read().split())
    kept = [item.key for item in read(tmp_path)]
    assert kept[: len(counted)] == [f"k{number}" for number in counted]
    assert len(kept) <= len(counted) + 1


def test_files_of_tasks_whose_names_begin_alike_are_kept_apart(tmp_path):
    for task in ("bridge_mie", "bridge_mie_cot"):
        log = OutcomeLog(tmp_path, task)
        log.add(task, "d", ANSWER)
        log.close()
    assert [item.key for item in read(tmp_path)] == ["bridge_mie"]


def test_a_chained_file_takes_any_record(tmp_path):
    file = ChainedFile(tmp_path / "any.jsonl")
    records = [{"a": 'quote " chain": "x"}', "b": [1, {"chain": 2}]}, {"judge": "j", "n": 1.5}]
    for record in records:
        file.add(record)
    file.close()
    assert list(ChainedFile(tmp_path / "any.jsonl").read()) == records
