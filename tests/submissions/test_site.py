"""`medtasks dev site`: what the pages and tables say of published and submitted models."""

import json
import re
import shutil
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.site.boards import BoardLine, gather_site, scores_of, whole_of
from medtasks_ext.report.site.write import put
from medtasks_ext.results.conditions import Confirmed
from medtasks_ext.results.experiments import Experiment
from medtasks_ext.results.models import identity_of
from medtasks_ext.results.published import published_entries
from tests.conftest import command
from tests.report.made import data_of
from tests.submissions.conftest import PLACE
from tests.submissions.made import write_submission
from tests.submissions.test_check import edited

ROOT = PLACE.partition("/")[0]
HOSTILE = "<img src=x onerror=alert(1)>"


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


def test_published_models_stand_there_with_the_scores_that_papers_print(site):
    board = data_of(site / "bridge.html")
    for entry in published_entries(registry())[:98:20]:
        scores = [item.score for item in entry.experiments.values() if item.strategy == "zero_shot"]
        assert line_of(board, entry.model)["BRIDGE"] == whole_of(sum(scores) / 87)
    axes = {"Suite", "Language", "Specialty", "Clinical stage", "Kind of task"}
    assert axes <= {title for _, title in board["axes"]}


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


def test_win_rates_of_the_first_page_are_those_of_the_paper_s_table(site, medtasks, tmp_path):
    assert medtasks("study", "reproduce", "medhelm:table1", "-o", "out").code == 0
    [file] = (tmp_path / "out").glob("**/*table1*.csv")
    rates = {
        row["row"]: row["recomputed"]
        for row in csv.read_csv(file).to_pylist()
        if row["column"] == "win_rate" and row["recomputed"] is not None
    }
    board = data_of(site / "index.html")
    column = [title for _, title, *_ in board["columns"]].index("MedHELM: win rate")
    cells = board["scores"][0][column]
    assert sorted(cell for cell in cells if cell is not None) == sorted(map(whole_of, rates.values()))
    best = max(range(len(cells)), key=lambda place: cells[place] or 0)
    assert board["entries"]["label"][best] == "DeepSeek-R1" and board["ranks"][0][column][best] == 1
    assert board["ranked"][0][column] == 9


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


def test_scores_by_language_on_model_pages_are_those_of_the_paper_s_table(site, medtasks, tmp_path):
    assert medtasks("study", "reproduce", "bridge:tables5", "-o", "out").code == 0
    [file] = (tmp_path / "out").glob("**/*tables5*.csv")
    wanted = {
        (row["row"], row["column"]): row["recomputed"]
        for row in csv.read_csv(file).to_pylist()
        if row["recomputed"] is not None
    }
    models, seen = {name for name, _ in wanted}, 0
    printed = [entry for entry in published_entries(registry()) if entry.paper == "bridge"]
    names = {BoardLine(entry, {}).title: entry.model for entry in printed}
    for page in (site / "models").iterdir():
        for line in data_of(page)["lines"]:
            for profile in line["places"]:
                if (profile["suite"], profile["strategy"]) != ("bridge", "zero-shot"):
                    continue
                if (name := names.get(line["label"])) not in models:
                    continue  # the leaderboard has it, the paper has not
                for axis, values in profile.get("axes", ()):
                    for title, _, score, *_ in values if axis == "Language" else ():
                        percent = float(wanted[name, title])
                        assert score / 100 == pytest.approx(percent, abs=0.0101), (name, title)
                        seen += 1
    assert seen == sum(column != "Average" for _, column in wanted) > 800


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


def test_each_model_has_one_page_whose_name_leads_nowhere_else(site):
    board = data_of(site / "index.html")
    pages = set(board["entries"]["page"])
    assert all(re.fullmatch(r"[a-z0-9-]+\.html", name) for name in pages)
    assert {path.name for path in (site / "models").iterdir()} == pages


def test_the_same_model_on_the_hub_and_in_a_paper_has_one_page(medtasks, submission, tmp_path):
    edited(submission, lambda content: content["about"].update(hub_id="Qwen/Qwen3-8B"))
    (tmp_path / "results").mkdir()
    (tmp_path / ROOT).rename(tmp_path / "results" / "submissions")
    outcome = medtasks("dev", "site", "-o", "site")
    n = len(published_entries(registry()))
    assert outcome.code == 0 and f"{n} published results, 1 submission" in outcome.out
    [page] = (tmp_path / "site" / "models").glob("qwen-qwen3-8b-*.html")
    kinds = [line["published"] for line in data_of(page)["lines"]]
    assert kinds.count(True) >= 1 and kinds.count(False) == 1


def test_hostile_texts_stay_texts_in_every_page(medtasks, submission, tmp_path):
    def hostile(content):
        content["run"] = {"engine": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
        content["about"]["license"] = HOSTILE
        for item in content["tasks"].values():
            item["conditions"]["jury"] = {"judges": [{"name": HOSTILE}], "protocol": HOSTILE}
            item["conditions"]["decoding"] = {"temperature": 1, "top_p": HOSTILE}

    edited(submission, hostile)
    assert medtasks("dev", "site", "--submissions", ROOT, "-o", "site").code == 0
    for page in (tmp_path / "site").rglob("*.html"):
        assert "<img" not in page.read_text(), page


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


def test_submitted_models_alone_and_nothing_at_all(medtasks, submission, tmp_path):
    outcome = medtasks("dev", "site", "--submissions", ROOT, "-o", "site")
    assert outcome.code == 0 and "0 published results, 1 submission" in outcome.out
    (tmp_path / "empty").mkdir()
    nothing = medtasks("dev", "site", "--submissions", "empty", "-o", "site2")
    assert nothing.code == 2 and "there is nothing to show" in nothing.err
    assert "no such folder" in medtasks("dev", "site", "--submissions", "gone", "-o", "site2").err


@pytest.fixture
def confirmed_rows(monkeypatch):
    """All rows and words are confirmed: most datasets of BRIDGE have no hash yet."""
    monkeypatch.setattr(Experiment, "confirmed", Confirmed("confirmed", "confirmed", None))


@pytest.fixture
def proven(monkeypatch):
    """All scores are proven, although these are invented."""
    monkeypatch.setattr(BoardLine, "is_proven", lambda *_: True)


@pytest.mark.usefixtures("proven")
def test_rows_that_nobody_has_confirmed_have_no_rank(tmp_path):
    write_submission(tmp_path, "Org/Said", 0.5)
    scores = scores_of(gather_site(registry(), tmp_path, published=False))
    group = scores.whole["bridge"]
    said = "data or prompts that nobody has confirmed in 87 of 87 tasks"
    cell = scores.cells[0, "zero_shot", group]
    assert (cell.proven, cell.apart) == (True, said) and ("zero_shot", group) not in scores.ranks


def test_what_nobody_has_checked_has_no_rank(tmp_path, confirmed_rows):
    write_submission(tmp_path, "Org/Self", 0.5)
    scores = scores_of(gather_site(registry(), tmp_path, published=False))
    group = scores.whole["bridge"]
    cell = scores.cells[0, "zero_shot", group]
    assert (cell.proven, cell.apart) == (False, "") and ("zero_shot", group) not in scores.ranks


@pytest.mark.usefixtures("confirmed_rows", "proven")
def test_only_what_was_asked_as_the_paper_asked_is_ranked(tmp_path):
    write_submission(tmp_path, "Org/Alike", 0.5)
    write_submission(tmp_path, "Org/Own-Words", 0.9, wording="own", prompt="p1")
    record = write_submission(tmp_path, "Org/Old", 0.6)
    tasks = {}
    for name, item in record.tasks.items():
        older = replace(item.conditions, version="0-A")
        tasks[name] = item.model_copy(update={"conditions": older})
    record.model_copy(update={"tasks": tasks}).write(tmp_path / "Org" / "Old" / "2026-05-01", {})
    scores = scores_of(gather_site(registry(), tmp_path, published=False))
    group = scores.whole["bridge"]
    apart = {
        line.entry.model: scores.cells[place, "zero_shot", group].apart
        for place, line in enumerate(scores.site.lines)
    }
    assert apart["Org/Alike"] == "" and "wording" in apart["Org/Own-Words"]
    assert "an older version of the task in 87" in apart["Org/Old"]
    [place] = scores.ranks["zero_shot", group].of
    assert scores.site.lines[place].entry.model == "Org/Alike"


@given(st.one_of(st.floats(0, 1), st.integers(0, 10_000).map(lambda n: n / 10_000)))
def test_pages_show_the_nearest_number_of_three_digits(score):
    """What the page's script makes of a number that is cut off behind its fourth digit."""
    shown = (whole_of(score) + 5) // 10 / 1000
    halves = Decimal(score).quantize(Decimal("0.001"), ROUND_HALF_UP)
    assert f"{shown:.3f}" == str(halves)


def test_long_data_stands_packed_so_that_no_page_is_large(tmp_path):
    """As many numbers as a page of 1,000 models with 87 tasks and three strategies has."""
    numbers = [number % 9973 for number in range(1000 * 87 * 3)]
    for name, some in (("long.html", numbers), ("short.html", numbers[:100])):
        put(tmp_path, name, {"made": "today"}, {"title": name, "kind": "about", "numbers": some})
        assert data_of(tmp_path / name)["numbers"] == some
    assert "data-packed" in (tmp_path / "long.html").read_text()
    assert "data-packed" not in (tmp_path / "short.html").read_text()
    assert (tmp_path / "long.html").stat().st_size < 1_000_000 < len(json.dumps(numbers))


def test_no_page_of_all_published_results_is_larger_than_a_megabyte(site):
    sizes = {page.name: page.stat().st_size for page in site.rglob("*.html")}
    assert len(sizes) > 300 and max(sizes.values()) < 1_000_000
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 60_000_000
