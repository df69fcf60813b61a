"""Rows, words and examples are confirmed by a hash, claimed, or different; every output says which."""

import json
from types import SimpleNamespace

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DataLock, LockedPart, LockedRows, Seen
from medtasks_ext.results.conditions import (
    Confirmed,
    Facts,
    confirmed,
    confirmed_words,
    counted,
    facts,
    moving,
    of_the_paper,
)
from medtasks_ext.runs.conditions import Conditions
from tests.conftest import write_jsonl
from tests.run_files import result_of

TASK = "bridge_brainmri_ais"
N = registry().datasets[TASK].n_documents
ONE, OTHER = "1" * 64, "2" * 64
LOCK = DataLock(
    rows=LockedRows(sample="0", seen=Seen(day="2026-11-27", by="a test"), test=LockedPart(n=N, folded=ONE))
)


def states(lock=None, *, k=0, n=N, wording=None, download=None, **rows):
    usual = {"source": "suite", "origin": "local", "n_of_suite": N, "folded": ONE}
    words = wording or {"wording": "official", "prompt": "bbbbbbbbbbbb"}
    record = Conditions(**{**usual, **words, **rows}, shots=k, n=n, n_here=n)
    dataset = SimpleNamespace(lock=lock, blocks={"rows": {"download": download} if download else {}})
    return confirmed(dataset, record)


def test_local_rows_of_the_right_number_with_anybodys_instruction_are_claimed():
    assert states() == Confirmed("claimed", "claimed", None) and states().state == "claimed"


def test_local_rows_are_confirmed_by_the_hash_of_the_lock():
    assert states(LOCK).rows == "confirmed"
    assert states(LOCK, folded=OTHER).rows == states(LOCK, folded=None).rows == "claimed"


@pytest.mark.parametrize("change", [{"n": N - 1}, {"source": "rebuilt"}, {"differs": True}])
def test_rows_of_another_number_or_content_are_different(change):
    assert states(LOCK, **change).rows == "different"


def test_rows_that_the_lock_knows_to_be_others_are_not_ranked_beside_the_paper():
    paper = facts(of_the_paper(registry().datasets[TASK], "zero_shot"))
    own = Facts(paper, differs=True)
    assert [item.condition for item in moving(own, paper)] == ["rows"]


def test_words_are_confirmed_by_a_released_file():
    assert states(wording={"wording": "official", "artefact": "release.zip"}).words == "confirmed"
    assert states(LOCK, wording={"wording": "official", "prompt": "aaaaaaaaaaaa"}).words == "claimed"
    assert states(wording={"wording": "own"}).words == "different"


@pytest.mark.parametrize(
    ("revision", "digest", "rows"),
    [
        ("v1", "sha256:" + "0" * 64, "confirmed"),
        ("v2", "sha256:" + "0" * 64, "claimed"),
        ("v1", "git:" + "0" * 40, "claimed"),
    ],
)
def test_rows_of_a_download_are_confirmed_by_its_pins(revision, digest, rows):
    download = {"test": ["a.json"], "revision": "v1", "digests": {"a.json": digest}}
    found = states(download=download, origin="hub", revision=revision, k=5)
    assert (found.rows, found.shots) == (rows, rows)


def test_examples_of_local_rows_are_claimed():
    assert states(LOCK, k=5).shots == "claimed" and states(LOCK).shots is None


def test_synthetic_rows_claim_nothing():
    assert states(source="synthetic") == Confirmed(None, None, None)


def test_counts_in_words():
    found = counted(["confirmed", "claimed", "claimed", "different", None])
    assert confirmed_words(found, 5) == (
        "data and prompts confirmed in 1 of 5, claimed but not confirmed in 2, different in 1"
    )


@pytest.fixture
def invented(tmp_path, monkeypatch):
    """As many rows as the suite has, made of sample rows, with anybody's instruction."""
    dataset = registry().datasets[TASK]
    rows = [json.loads(line) for line in (dataset.folder / "sample.jsonl").read_text().splitlines()]
    test = [row for row in rows if row.get("split", "test") == "test"]
    made = [
        {**test[number % len(test)], "id": str(number), "instruction": "Say what you like.",
         "input": f"{test[number % len(test)]['input']} ({number})"}
        for number in range(N)
    ]  # fmt: skip
    write_jsonl(tmp_path / "data" / "bridge" / "brainmri_ais" / "test.jsonl", made)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("MEDTASKS_DATA", raising=False)
    return dataset


def test_invented_rows_with_anybodys_words_are_claimed_everywhere(medtasks, tmp_path, invented):
    asked = ("run", "--tasks", TASK, "--model", "random-label", "--output_path", "run")
    assert medtasks(*asked).code == 0
    record = result_of(tmp_path / "run", TASK)["conditions"]
    assert record["wording"] == "official" and "folded" not in record
    outcome = medtasks("report", "run", "-o", "out")
    said = " ".join(outcome.out.split())
    assert "data and prompts confirmed in 0 of 1, claimed but not confirmed in 1" in said
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "claimed but not confirmed in 1" in page
    rows = (tmp_path / "out" / "results.csv").read_text(encoding="utf-8").splitlines()
    assert {"rows_are", "words_are", "shots_are"} <= set(rows[0].split(","))
    assert ",claimed,claimed," in rows[1]
    medtasks("card", "run", "-o", "card")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "data and prompts confirmed in 0 of 1, claimed but not confirmed in 1" in card
