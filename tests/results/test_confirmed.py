"""Rows, words and examples are confirmed by a hash, claimed, or different; every output says which."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from medtasks_ext.data.rowlock import kept_hash
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DataLock, LockedPart, LockedRows, Seen, Site
from medtasks_ext.results.conditions import comparable, facts, of_the_paper
from medtasks_ext.results.confirmed import Confirmed, confirmed, confirmed_words, counted
from medtasks_ext.runs.conditions import Asked, Conditions, Observed, Rows, Shots, Wording

TASK = "bridge_brainmri_ais"
N = registry().datasets[TASK].n_documents
SEEN = Seen(day="2026-11-27", by="a maintainer")
ONE, OTHER = "1" * 64, "2" * 64


def sites(*folded, signed=SEEN):
    """A lock of rows that nobody may publish, by what sites say."""
    found = [Site(day="2026-11-27", by=f"site {number}", folded=item) for number, item in enumerate(folded)]
    rows = LockedRows(
        sample="0", basis="sites", seen=SEEN, sites=found, signed=signed, test=LockedPart(n=N, folded=ONE)
    )
    return DataLock(rows=rows, words=["aaaaaaaaaaaa"])


def states(lock=None, *, k=0, n=N, wording=None, download=None, **rows):
    record = Conditions(
        Asked(
            rows=Rows(**{"source": "suite", "origin": "local", "n_of_suite": N, "folded": ONE, **rows}),
            wording=wording or Wording("official", hash="bbbbbbbbbbbb"),
            shots=Shots(k),
        ),
        Observed(n=n, n_here=n),
    )
    dataset = SimpleNamespace(lock=lock, blocks={"rows": {"download": download} if download else {}})
    return confirmed(dataset, record)


def test_local_rows_of_the_right_number_with_anybodys_instruction_are_claimed():
    assert states() == Confirmed("claimed", "claimed", None) and states().state == "claimed"


def test_two_sites_with_one_hash_and_a_maintainer_confirm_rows():
    assert states(sites(ONE, ONE)).rows == "confirmed"
    for lock in (sites(ONE), sites(ONE, OTHER), sites(OTHER, OTHER), sites(ONE, ONE, signed=None)):
        assert states(lock).rows == "claimed"
    assert states(sites(ONE, ONE), folded=OTHER).rows == "claimed"
    assert states(sites(ONE, ONE), folded=None).rows == "claimed"


def test_one_site_that_looks_twice_is_one_site():
    lock = sites(ONE, ONE)
    same = [item.model_copy(update={"by": "site 0"}) for item in lock.rows.sites]
    again = lock.model_copy(update={"rows": lock.rows.model_copy(update={"sites": same})})
    assert states(again).rows == "claimed"


@pytest.mark.parametrize("change", [{"n": N - 1}, {"source": "rebuilt"}, {"differs": True}])
def test_rows_of_another_number_or_content_are_different(change):
    assert states(sites(ONE, ONE), **change).rows == "different"


def test_rows_that_the_lock_knows_to_be_others_are_not_ranked_beside_the_paper():
    paper = facts(of_the_paper(registry().datasets[TASK], "zero_shot"))
    own = replace(paper, differs=True)
    assert comparable(own, paper).grade == "other" and comparable(own, paper).known == ("rows",)


def test_words_are_confirmed_by_a_released_file_or_a_hash_in_the_lock():
    lock = sites(ONE, ONE)
    assert states(wording=Wording("official", "release.zip", "1")).words == "confirmed"
    assert states(lock, wording=Wording("official", hash="aaaaaaaaaaaa")).words == "confirmed"
    assert states(lock, wording=Wording("official", hash="cccccccccccc")).words == "claimed"
    assert states(wording=Wording("own")).words == "different"


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
    assert states(sites(ONE, ONE), k=5).shots == "claimed" and states(sites(ONE, ONE)).shots is None


def test_synthetic_rows_claim_nothing():
    assert states(source="synthetic") == Confirmed(None, None, None)


def test_counts_in_words():
    found = counted(["confirmed", "claimed", "claimed", "different", None])
    assert confirmed_words(found, 5) == (
        "rows and words confirmed in 1 of 5, claimed but not confirmed in 2, others than the suite's in 1"
    )


# ---------------------------------------------------------------------- invented rows, end to end


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
    file = tmp_path / "data" / "bridge" / "brainmri_ais" / "test.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made))
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("MEDTASKS_DATA", raising=False)
    return dataset


def test_invented_rows_with_anybodys_words_are_claimed_everywhere(medtasks, tmp_path, invented):
    asked = ("run", "--tasks", TASK, "--model", "random-label", "--output_path", "run")
    assert medtasks(*asked).code == 0
    record = json.loads((tmp_path / "run" / "tasks" / f"{TASK}.json").read_text())["conditions"]["asked"]
    test = check_rows(invented, "local").test
    assert record["wording"]["kind"] == "official" and record["rows"]["folded"] == kept_hash(invented, test)
    outcome = medtasks("report", "run", "-o", "out")
    said = " ".join(outcome.out.split())
    assert "rows and words confirmed in 0 of 1, claimed but not confirmed in 1" in said
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "claimed but not confirmed in 1" in page
    rows = (tmp_path / "out" / "results.csv").read_text(encoding="utf-8").splitlines()
    assert {"rows_are", "words_are", "shots_are"} <= set(rows[0].split(",")) and ",claimed,claimed," in rows[
        1
    ]
    medtasks("card", "run", "-o", "card")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "rows and words confirmed in 0 of 1, claimed but not confirmed in 1" in card


def test_data_hash_prints_hashes_to_add_and_no_text(medtasks, tmp_path, invented):
    outcome = medtasks("data", "hash", TASK, "--by", "Hospital of X")
    assert outcome.code == 0, outcome.text
    added = json.loads(outcome.out[outcome.out.index("{") : outcome.out.rindex("}") + 1])
    lock = DataLock.model_validate(added)
    assert lock.rows.confirmed is None and lock.rows.sites[0].by == "Hospital of X" and lock.words
    assert "Say what you like" not in outcome.text
    other = lock.rows.sites[0].model_copy(update={"by": "Hospital of Y"})
    both = lock.rows.model_copy(update={"sites": [*lock.rows.sites, other], "signed": SEEN})
    assert both.confirmed == kept_hash(invented, check_rows(invented, "local").test)


def test_data_hash_without_local_rows_says_so(medtasks, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path))
    outcome = medtasks("data", "hash", TASK)
    assert outcome.code == 2 and "no local rows" in outcome.text
