"""Levels of trust and ranks: a second site, what a person looks at, and what stands apart."""

import json
import shutil

import pytest
import yaml
from pyarrow import parquet

from medtasks_ext.registry import registry
from medtasks_lab.site.gather import gather_site
from medtasks_lab.submissions.flags import undetected
from medtasks_lab.submissions.trust import Trust, Verdict, levels_words
from tests.submissions.conftest import CLOSED_COUNTS, CLOSED_MEAN, OPEN_COUNTS, OPEN_MEAN, PLACE, TASKS
from tests.submissions.test_check import edited
from tests.submissions.test_site import data_of

ROOT = PLACE.partition("/")[0]
CONFIRMED = f"{PLACE}/confirmed-charite.json"


@pytest.fixture
def known(tmp_path):
    """A register in which one site may confirm."""

    def write(**more):
        content = {"sites": [{"name": "charite", "title": "Charité"}], **more}
        (tmp_path / ROOT).mkdir(exist_ok=True)
        (tmp_path / ROOT / "register.yaml").write_text(yaml.safe_dump(content))

    write()
    return write


def confirm(medtasks, run="second", *more):
    return medtasks("submit", run, "--confirm", PLACE, "--by", "charite", *more)


def test_a_second_site_lifts_what_is_not_open_and_says_how_far_it_agrees(medtasks, submission, run, known):
    run("second")
    said = confirm(medtasks)
    assert said.code == 0 and "4 of 4 tasks confirmed, by own run" in said.out, said.text
    assert "on 12 documents, the same score for 12, tolerance 0.02" in said.out
    checked = medtasks("submit", "--check", PLACE)
    assert checked.code == 0 and "confirmed by a second site" in checked.out
    assert "self-reported" not in checked.out


def test_a_site_that_ran_the_model_again_says_by_which_command(medtasks, submission, run, known):
    run("second")
    command = "medtasks run --model vllm --model_args pretrained=Org/random-label"
    assert confirm(medtasks, "second", "--command", command).code == 0
    assert "; run again" in medtasks("submit", "--check", PLACE).out
    site = gather_site(registry(), submissions_of(submission), published=False)
    [line] = site.lines
    verdict = line.verdict(line.entry.experiments[CLOSED_MEAN])
    assert verdict.trust is Trust.AGAIN and command in verdict.why and "on 12 documents" in verdict.why


def submissions_of(submission):
    return submission.parents[2]


def test_the_same_answers_scored_at_a_second_site_are_no_run(medtasks, submission, run, known, tmp_path):
    """Who got the run's folder has the same heads of chains."""
    shutil.copytree(tmp_path / "run", tmp_path / "second")
    said = confirm(medtasks, "second", "--command", "medtasks run")
    assert said.code == 2 and "says that it was run again, and scored the same answers" in said.err
    assert "by same answers" in confirm(medtasks).out


def test_a_part_of_the_documents_confirms_where_they_can_be_told_apart(medtasks, submission, run, known):
    run("second", "--limit", "5")
    said = confirm(medtasks).out
    content = json.loads((submission / "confirmed-charite.json").read_text())
    assert all(item["n"] == 5 for item in content["tasks"].values())
    assert content["tasks"][OPEN_MEAN]["same"] == 5 and content["tasks"][CLOSED_MEAN]["margin"] > 0
    assert "0 of 4 tasks confirmed" in said  # five documents are too few of twelve


WRONG = {
    "nobody of the register": (lambda content: content.update(by="other"), "says that it is by other"),
    "another submission": (lambda content: content.update(record="0" * 64), "is of another submission"),
    "a score that was not submitted": (
        lambda content: content["tasks"][CLOSED_MEAN].update(submitted=0.123),
        "says that 0.123 was submitted",
    ),
    "more documents": (
        lambda content: content["tasks"][CLOSED_MEAN].update(n=99),
        "99 documents, and the submission has 12",
    ),
    "a tolerance that is none": (lambda content: content.update(tolerance=0.5), "tolerance"),
    "a task that is not there": (
        lambda content: content["tasks"].update(x=content["tasks"][CLOSED_MEAN]),
        "is no task of the submission",
    ),
    "a key more": (lambda content: content.update(note="x"), "note"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_the_word_of_a_second_site_is_named_and_nothing_rises(
    medtasks, submission, run, known, tmp_path, case
):
    run("second")
    confirm(medtasks)
    change, words = WRONG[case]
    file = tmp_path / CONFIRMED
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1 and words in found.out and "confirmed-charite.json" in found.out
    [line] = gather_site(registry(), submissions_of(submission), published=False).lines
    assert line.verdict(line.entry.experiments[CLOSED_MEAN]).trust is Trust.SELF


def test_nobody_confirms_himself_and_nobody_who_is_not_known(medtasks, submission, run, known, tmp_path):
    run("second")
    own = medtasks("submit", "second", "--confirm", PLACE, "--by", "org")
    assert own.code == 2 and "is by the submitter" in own.err
    assert not list(submission.glob("confirmed*"))
    (tmp_path / ROOT / "register.yaml").unlink()
    confirm(medtasks)
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1 and "no site of register.yaml is called charite" in found.out
    assert "says who it is" in medtasks("submit", "second", "--confirm", PLACE).err


def test_sites_that_disagree_leave_the_level_as_it_was(medtasks, submission, run, known, tmp_path):
    run("second")
    confirm(medtasks)
    file = tmp_path / CONFIRMED
    content = json.loads(file.read_text())
    content["tasks"][CLOSED_COUNTS]["score"] = 0.999
    file.write_text(json.dumps(content))
    assert medtasks("submit", "--check", PLACE).code == 0
    [line] = gather_site(registry(), submissions_of(submission), published=False).lines
    verdict = line.verdict(line.entry.experiments[CLOSED_COUNTS])
    assert verdict.trust is Trust.SELF and "not confirmed: " in verdict.why


# ---------------------------------------------------------------------- the leaderboard


def test_the_level_stands_on_the_leaderboard_its_pages_and_tables(medtasks, submission, tmp_path):
    outcome = medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site")
    assert outcome.code == 0, outcome.text
    words = "answers checked in 2 of 4 tasks, self-reported in 2"
    board = data_of(tmp_path / "site" / "index.html")
    assert board["entries"]["trust"] == [words] and board["entries"]["level"] == [0]
    [page] = (tmp_path / "site" / "models").glob("*.html")
    assert ["Trust", words] in data_of(page)["lines"][0]["source"]
    assert any(
        reason.startswith("self-reported: its data is not open")
        for reason in data_of(page)["lines"][0]["reasons"]
    )
    rows = parquet.read_table(tmp_path / "site" / "data" / "results.parquet").to_pylist()
    assert {row["task"]: row["trust"] for row in rows} == {
        task: "answers checked" if task in (OPEN_MEAN, OPEN_COUNTS) else "self-reported" for task in TASKS
    }


def test_answers_that_are_gone_cost_the_level_and_nothing_else(
    medtasks, submission, data_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))  # another test's check found them good
    shutil.rmtree(data_dir / "downloads", ignore_errors=True)
    for file in data_dir.rglob("run.answers.parquet"):
        file.unlink()
    outcome = medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site")
    assert outcome.code == 0 and "not ranked" in outcome.err and "HF_HUB_OFFLINE" in outcome.err
    assert data_of(tmp_path / "site" / "index.html")["entries"]["trust"] == ["self-reported"]
    assert data_of(tmp_path / "site" / "about.html")["unranked"]


def test_answers_are_scored_once_for_many_sites(medtasks, submission, monkeypatch):
    from medtasks_lab.submissions import kept

    first = gather_site(registry(), submissions_of(submission), published=False).lines[0]
    monkeypatch.setattr(kept, "look_at", lambda *_: pytest.fail("scored again"))
    again = gather_site(registry(), submissions_of(submission), published=False).lines[0]
    assert again.checked.verdicts == first.checked.verdicts


def test_a_score_edited_by_hand_is_left_out_and_named(medtasks, submission, tmp_path):
    edited(submission, lambda content: content["tasks"][OPEN_MEAN].update(score=0.99))
    outcome = medtasks("site", "--submissions", ROOT, "-o", "site")
    assert outcome.code == 1 and f"tasks.{OPEN_MEAN}.score: is 0.99" in outcome.err
    left_out = data_of(tmp_path / "site" / "about.html")["left_out"]
    assert left_out and left_out[0][0] == "Org/random-label/2026-05-01/submission.json"


def test_what_no_check_can_see_is_said_to_readers(site_about):
    assert site_about["undetected"] == list(undetected().values()) and len(site_about["undetected"]) > 5


@pytest.fixture
def site_about(medtasks, submission, tmp_path):
    medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site")
    return data_of(tmp_path / "site" / "about.html")


def test_levels_have_an_order_and_verdicts_as_submitted_are_not_proven():
    assert [trust.place for trust in Trust] == [0, 1, 2, 3]
    assert Verdict(Trust.ANSWERS).is_proven and not Verdict(Trust.SELF).is_proven
    judged = Verdict(Trust.ANSWERS, judged=True)
    assert not judged.is_proven and judged.words == "answers checked, verdicts as submitted"
    assert Verdict(Trust.SITE, judged=True).is_proven
    assert levels_words([judged, judged]) == judged.words
