"""`tasks.lock`: a change of what scores follow from is found, and nothing else is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medtasks_ext.answers import text
from medtasks_ext.metrics import labels
from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.runner.proof import (
    LOCK_FILE,
    read_lock,
)
from tests.conftest import ROOT, declare_suites, problems_of

TASKS = registry()
#: of several families: a label, several labels, events, options
COPIED = ("bridge/mednli", "bridge/cas_label", "bridge/mie", "mlb/cmexam", "medhelm/hospice_referral")


@pytest.fixture
def own(tasks_of):
    """A tasks folder with a few datasets."""
    root = tasks_of(*COPIED)
    again()
    yield root
    again()


@pytest.fixture(scope="module")
def text_of_lock() -> dict[str, str]:
    """What was written for that folder, kept for the tests after the first."""
    return {}


@pytest.fixture
def locked(own, medtasks, text_of_lock):
    """That folder with its lock written."""
    if not text_of_lock:
        assert medtasks("dev", "lock").code == 0
        text_of_lock["written"] = (own / LOCK_FILE).read_text(encoding="utf-8")
    (own / LOCK_FILE).write_text(text_of_lock["written"], encoding="utf-8")
    return own


def again() -> None:
    """What another process would do: read tasks and rows anew."""
    forget()
    _build.cache_clear()


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    again()


def lines(root: Path) -> dict[str, str]:
    text = (root / LOCK_FILE).read_text(encoding="utf-8")
    return {line.split()[0]: line for line in text.splitlines() if not line.startswith("#")}


def test_a_changed_prompt_is_named_with_its_task_and_nothing_is_written(locked, medtasks):
    before, path = (locked / LOCK_FILE).read_text(), locked / "bridge" / "mednli" / "task.yaml"
    # what readers see of a dataset is no change
    rewrite(path, "name: MedNLI", "name: MedNLI (renamed)")
    assert medtasks("dev", "lock").code == 0
    rewrite(path, "Assign the inference", "Give the inference")
    for arguments in ((), ("bridge_mednli_cot", "--check")):
        outcome = medtasks("dev", "lock", *arguments)
        assert outcome.code == 1 and outcome.out == ""
        (said,) = outcome.err.splitlines()
        assert said.startswith("bridge_mednli: prompts changed, and the version is still 3-A → ")
        assert "write `version: 4-A` in task.yaml" in said
    assert (locked / LOCK_FILE).read_text() == before


def test_a_changed_rule_of_reading_is_named_for_every_task_that_it_reads(locked, medtasks, monkeypatch):
    after_first = text._after_first

    def after_last(text: str, marker: str) -> str:
        return text.rpartition(marker)[2] if marker == "</think>" else after_first(text, marker)

    monkeypatch.setattr(text, "_after_first", after_last)
    again()
    outcome = medtasks("dev", "lock", "--check")
    assert outcome.code == 1
    said = [line.partition(" → ")[0] for line in outcome.err.splitlines() if "Punkt" not in line]
    assert said == [
        f"{name}: readings or scores changed, and the version is still 3-A"
        for name in ("bridge_cas_label", "bridge_mednli", "bridge_mie")
    ]


def test_a_changed_score_is_named_and_an_added_metric_is_no_change(locked, medtasks, monkeypatch):
    process = labels.process_label
    monkeypatch.setattr(labels, "process_label", lambda *given: {**process(*given), "another": 1.0})
    assert medtasks("dev", "lock", "--check").code == 0
    monkeypatch.setattr(labels, "process_label", lambda *given: {**process(*given), "score": 0.0})
    outcome = medtasks("dev", "lock", "--check")
    assert outcome.code == 1
    (said,) = outcome.err.splitlines()
    assert said.startswith("bridge_mednli: readings or scores changed")


def test_a_higher_number_is_accepted_and_another_letter_is_not(locked, medtasks):
    path = locked / "bridge" / "mednli" / "task.yaml"
    rewrite(path, "Assign the inference", "Give the inference")
    rewrite(path, "version: 3-A", "version: 3-B")
    outcome = medtasks("dev", "lock")
    assert outcome.code == 1 and "the version is still 3-B" in outcome.err and "`version: 4-A`" in outcome.err
    before = lines(locked)
    rewrite(path, "version: 3-B", "version: 4-A")
    assert medtasks("dev", "lock", "--check").code == 0
    assert medtasks("dev", "lock").code == 0
    after = lines(locked)
    assert after.pop("bridge_mednli").startswith("bridge_mednli 4-A ")
    before.pop("bridge_mednli")
    assert after == before
    rewrite(path, "Give the inference", "Tell the inference")
    assert "`version: 5-A`" in medtasks("dev", "lock", "--check").err


def test_a_new_dataset_is_no_change_and_adds_one_line(locked, medtasks):
    before = lines(locked)
    folder = locked / "medhelm" / "added"
    shutil.copytree(TASKS.root / "medhelm" / "hospice_referral", folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    for old in ("medhelm_hospice_referral", "medhelm/hospice_referral"):
        text = text.replace(old, old.replace("hospice_referral", "added"))
    (folder / "task.yaml").write_text(text, encoding="utf-8")
    again()
    assert medtasks("dev", "lock", "--check").code == 0 and lines(locked) == before
    assert medtasks("dev", "lock").code == 0
    after = lines(locked)
    assert after.pop("medhelm_added") and after == before
    shutil.rmtree(folder)
    again()
    assert medtasks("dev", "lock", "bridge_mie").code == 0 and lines(locked) == before


def test_a_new_row_is_no_change(locked, medtasks):
    path = locked / "bridge" / "mednli" / "sample.jsonl"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max(number for number, row in enumerate(rows) if json.loads(row)["_split"] == "test")
    path.write_text("".join(rows[:last] + rows[last + 1 :]), encoding="utf-8")
    (locked / LOCK_FILE).unlink()
    again()
    medtasks.done("dev", "lock", "bridge_mednli")
    path.write_text("".join(rows), encoding="utf-8")
    again()
    medtasks.done("dev", "lock", "--check", "bridge_mednli")


def test_the_lock_of_this_checkout_has_every_dataset_at_its_version():
    found = read_lock(ROOT / LOCK_FILE)
    assert {name: item.version for name, item in found.items()} == {
        name: dataset.version for name, dataset in TASKS.datasets.items()
    }
    assert all(item.rows for item in found.values())


@pytest.mark.parametrize(
    "line", ["bridge_mie", "bridge_mie one", "=======", "bridge_other 1-A 0123abcd:0123abcd:0123abcd"]
)
def test_a_line_that_is_none_is_one_error_with_its_place(locked, medtasks, line):
    path = locked / LOCK_FILE
    n = len(path.read_text().splitlines())
    path.write_text(f"{path.read_text()}{line}\n")
    outcome = medtasks("dev", "lock")
    assert outcome.code == 2 and f"{path}:{n + 1}: not a line of a lock" in outcome.err
    assert "→ delete the line" in outcome.err and "Traceback" not in outcome.text


def test_a_doubled_line_is_refused(locked, medtasks):
    path = locked / LOCK_FILE
    n = len(lines := path.read_text(encoding="utf-8").splitlines(keepends=True))
    path.write_text("".join([*lines, lines[-1]]), encoding="utf-8")  # as a merge by union leaves it
    refused = medtasks("dev", "lock")
    assert refused.code == 2 and f"{path}:{n + 1}: a second line of" in refused.err


# What `medtasks dev validate` asks of a dataset whose score comes from judges.


JUDGED = "medhelm_mimic_rrs"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('question: "{{ findings }}"', 'question: " "', "judge.question is not rendered for row t1"),
        (
            "clarity: Do referring clinicians understand it easily?",
            'clarity: " "',
            "judge: clarity says nothing",
        ),
        (
            "{kind: free_text}",
            "{kind: exact_letter, letters: [A, B]}",
            "'exact_letter' have no metrics that judges score by axes",
        ),
    ],
)
def test_what_is_missing_is_said(tmp_path, old, new, message):
    target = tmp_path / "medhelm" / "mimic_rrs"
    shutil.copytree(TASKS.root / "medhelm" / "mimic_rrs", target)
    declare_suites(tmp_path)
    rewrite(target / "task.yaml", old, new)
    copied = Registry(tmp_path)
    dataset = copied.datasets.get(JUDGED)  # none where its file cannot be used at all
    problems = problems_of(copied, dataset) if dataset else copied.broken.values()
    assert any(message in problem for problem in problems)
