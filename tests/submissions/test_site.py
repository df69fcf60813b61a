"""`medtasks dev site`: what the pages and tables say of published and submitted models."""

import shutil
import subprocess
from dataclasses import replace
from statistics import median

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.site.boards import BoardLine, Scores, gather_site, whole_of
from medtasks_ext.report.site.write import model_page
from medtasks_ext.report.submissions import read_record
from medtasks_ext.results.conditions import Confirmed
from medtasks_ext.results.experiments import Experiment
from medtasks_ext.results.models import identity_of
from medtasks_ext.results.published import published_entries
from tests.conftest import command
from tests.report.made import data_of
from tests.submissions.conftest import PLACE, write_submission
from tests.submissions.test_check import edited

ROOT = PLACE.partition("/")[0]


def line_of(board, label):
    """Group -> score of a line in the first strategy, as the page has it."""
    place = board["entries"]["label"].index(label)
    titles = [title for _, title, *_ in board["columns"]]
    return {title: cells[place] for title, cells in zip(titles, board["scores"][0], strict=True)}


@pytest.fixture(scope="session")
def site(made_once, made_submission):
    """Pages of all published models and of one submission: tests read them, and change nothing."""

    def fill(folder):
        shutil.copytree(made_submission / ROOT, folder / "results" / "submissions")
        shutil.copytree(made_submission / "data", folder / "data")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEDTASKS_DATA_DIR", str(folder / "data"))
            patch.chdir(folder)
            command("dev", "site", "-o", folder / "site")

    return made_once("site", fill) / "site"


def test_the_first_page_has_a_row_for_each_model_with_the_best_of_its_versions(site):
    board = data_of(site / "index.html")
    by_model = {}
    for entry in published_entries(registry()):
        by_model.setdefault(identity_of(entry).id, []).append(entry)
    shown = board["entries"]["page"]
    published = [place for place, flag in enumerate(board["entries"]["published"]) if flag]
    assert len(published) == len(by_model) and len({shown[place] for place in published}) == len(published)
    pages = {BoardLine(entries[0], {}).page: entries for entries in by_model.values()}
    column = [title for _, title, *_ in board["columns"]].index("BRIDGE")
    for place in published:
        cells = [
            sum(item.score for item in entry.experiments.values() if item.strategy == "zero_shot") / 87
            for entry in pages[shown[place]]
            if entry.paper == "bridge"
        ]
        cell = board["scores"][0][column][place]
        assert cell == (whole_of(max(cells)) if cells else None)
    ranked = [rank for rank in board["ranks"][0][column] if rank]
    assert min(ranked) == 1 and board["ranked"][0][column] == 98
    best = board["entries"]["label"][board["ranks"][0][column].index(1)]
    assert best.lower().replace(" ", "-") == "gemini-2.5-flash"


def test_every_score_of_model_pages_is_that_of_the_paper(site):
    """Of tasks, and their ranks on the whole suite."""
    wanted = {
        (BoardLine(entry, {}).title, entry.paper, item.dataset.id, strategy_title(item.strategy)): whole_of(
            item.score
        )
        for entry in published_entries(registry())
        for item in entry.experiments.values()
    }
    papers = {suite.title: suite.id for suite in registry().suites.values()}
    found, places = {}, {}
    for page in (site / "models").iterdir():
        for line in data_of(page)["lines"] if page.name[:3] != "org" else ():
            for row in line["tasks"]:
                found[line["label"], papers[row[0]], row[8], row[2]] = row[3]
            for place in line["places"]:
                key = place["suite"], place["strategy"]
                places.setdefault(key, []).append((place["score"], place["rank"]))
    assert found == wanted and len(found) > 25_000
    for some in places.values():
        ranked = [(score, rank) for score, rank in some if rank]
        for score, (rank, of) in ranked:
            assert of == len(ranked) and rank == 1 + sum(other > score for other, _ in ranked)


def test_every_score_of_dataset_pages_is_that_of_the_papers(site):
    scores = {}
    for entry in published_entries(registry()):
        for item in entry.experiments.values():
            key = item.dataset.id, strategy_title(item.strategy)
            scores.setdefault(key, []).append(whole_of(item.score))
    seen = 0
    for page in (site / "datasets").iterdir():
        for board in data_of(page)["boards"]:
            every = sorted(scores[page.stem, board["strategy"]], reverse=True)
            assert [row[2] for row in board["best"]] == every[:30] and board["n"] == len(every)
            assert board["median"] == int(median(every))
            assert [row[3] for row in board["best"]] == [
                1 + sum(other > one for other in every) for one in every[:30]
            ]
            seen += 1
    assert seen == len(scores)


def test_a_submission_on_a_part_in_own_words_is_in_no_rank_of_the_paper(site):
    board = data_of(site / "index.html")
    cell = line_of(board, "Org/random-label")["BRIDGE"]
    assert cell[1:] == [2]  # on two tasks
    [page] = (site / "models").glob("org-random-label-*.html")
    [line] = data_of(page)["lines"]
    assert [row["tasks"] for row in line["places"]] == [2, 2]
    assert all(row["rank"] is None and "wording" in row["otherwise"] for row in line["places"])
    assert any("wording" in words for words in line["words"])
    assert ["Trust", "answers checked: 2 of 4, self-reported: 2 of 4"] in line["source"]


def test_a_submission_that_cannot_be_read_is_named_and_the_others_are_shown(medtasks, submission, tmp_path):
    edited(submission, lambda content: content.update(schema=7))
    write_submission(tmp_path / ROOT, "Org/Other", 0.5)
    outcome = medtasks("dev", "site", "--submissions", ROOT, "-o", "site")
    assert outcome.code == 1 and "schema: input should be 5" in outcome.err and "1 submission" in outcome.out
    assert [*(tmp_path / "site" / "models").glob("org-other-*.html")]
    [(where, what)] = data_of(tmp_path / "site" / "about.html")["left_out"]
    assert where == "Org/random-label/2026-05-01: submission.json" and "schema: input should be 5" in what


def test_a_later_site_takes_the_place_of_an_earlier_one_alone(medtasks, site, submission, tmp_path):
    old = shutil.copytree(site, tmp_path / "site") / "models" / "old.html"
    old.write_text("old")
    assert medtasks("dev", "site", "--submissions", ROOT, "-o", "site").code == 0
    assert not old.exists() and len([*old.parent.iterdir()]) == 1
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    refused = medtasks("dev", "site", "-o", "other")
    assert refused.code == 2 and "holds files that no site wrote" in refused.err
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("rows", ["claimed", "confirmed"])
def test_what_nobody_has_checked_or_confirmed_has_no_rank(tmp_path, monkeypatch, proven, rows):
    monkeypatch.setattr(BoardLine, "is_proven", lambda *_: proven)
    monkeypatch.setattr(Experiment, "confirmed", Confirmed(rows, rows, None))
    write_submission(tmp_path, "Org/Said", 0.5)
    scores = Scores(gather_site(registry(), tmp_path, published=False))
    cell = scores.cells[0, "zero_shot", scores.whole["bridge"]]
    said = "data or prompts that nobody has confirmed in 87 of 87 tasks"
    assert (cell.proven, cell.apart) == (proven, "" if rows == "confirmed" else said)
    assert (cell.rank == (1, 1)) is (proven and rows == "confirmed")


def test_only_what_was_asked_as_the_paper_asked_is_ranked(tmp_path, monkeypatch):
    monkeypatch.setattr(BoardLine, "is_proven", lambda *_: True)
    monkeypatch.setattr(Experiment, "confirmed", Confirmed("confirmed", "confirmed", None))
    write_submission(tmp_path, "Org/Alike", 0.5)
    write_submission(tmp_path, "Org/Own-Words", 0.9, wording="own", prompt="p1")
    record = write_submission(tmp_path, "Org/Old", 0.6)
    tasks = {}
    for name, item in record.tasks.items():
        older = replace(item.conditions, version="0-A")
        tasks[name] = item.model_copy(update={"conditions": older})
    record.model_copy(update={"tasks": tasks}).write(tmp_path / "Org" / "Old" / "2026-05-01", {})
    scores = Scores(gather_site(registry(), tmp_path, published=False))
    group = scores.whole["bridge"]
    apart = {
        line.entry.model: scores.cells[place, "zero_shot", group].apart
        for place, line in enumerate(scores.site.lines)
    }
    assert apart["Org/Alike"] == "" and "wording" in apart["Org/Own-Words"]
    assert "an older version of the task in 87" in apart["Org/Old"]
    [place] = [at for (at, _, key), cell in scores.cells.items() if key is group and cell.rank]
    assert scores.site.lines[place].entry.model == "Org/Alike"


def test_no_page_of_all_published_results_is_larger_than_a_megabyte(site):
    sizes = {page.name: page.stat().st_size for page in site.rglob("*.html")}
    assert len(sizes) > 300 and max(sizes.values()) < 1_000_000
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 60_000_000


def test_submissions_stand_in_the_order_of_their_commits_with_what_a_second_site_confirmed(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    for model in ("Org/Zeta", "Org/Alpha"):
        write_submission(tmp_path / "in", model, 0.5, first=2)
    assert [line.title for line in gather_site(registry(), tmp_path / "in", published=False).lines] == [
        "Org/Alpha", "Org/Zeta",
    ]  # fmt: skip
    git("init", "-q")
    for model in ("Zeta", "Alpha"):
        git("add", f"in/Org/{model}")
        git("commit", "-q", "-m", model)
    record = read_record(tmp_path / "in" / "Org" / "Zeta" / "2026-05-01")
    task = next(iter(record.tasks))
    (tmp_path / "in/Org/Zeta/2026-05-01/README.md").write_text(f"# Zeta\n\nconfirmed: {task} by Ward 7\n")
    (tmp_path / "in/Org/Alpha/2026-05-01/README.md").write_text("confirmed: x_y by Ward 7\n")
    found = gather_site(registry(), tmp_path / "in", published=False)
    assert [line.title for line in found.lines] == ["Org/Zeta"]  # Alpha's note names no task of it
    assert [fault.where for fault in found.faults] == ["Org/Alpha/2026-05-01: README.md"]
    [line] = model_page(Scores(found), found.lines)["lines"]
    assert ["Confirmed", f"{task} by Ward 7"] in line["source"]
    (tmp_path / "in/Org/Alpha/2026-05-01/README.md").unlink()
    found = gather_site(registry(), tmp_path / "in", published=False)
    assert [line.title for line in found.lines] == ["Org/Zeta", "Org/Alpha"]
