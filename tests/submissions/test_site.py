"""`medtasks site`: what the pages and tables say of published and submitted models."""

import gzip
import json
import re
import shutil
from base64 import b64decode
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from medtasks_ext.metrics.known_defects import known_defects
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.results import frames
from medtasks_ext.results.confirmed import Confirmed
from medtasks_ext.results.experiments import Experiment
from medtasks_ext.results.models import identity_of
from medtasks_ext.results.published import published_entries
from medtasks_lab.site.boards import scores_of, whole_of
from medtasks_lab.site.gather import BoardLine, gather_site
from medtasks_lab.site.page_files import put
from tests.conftest import command
from tests.submissions.conftest import ANSWERS, OPEN_MEAN, PLACE, carry
from tests.submissions.made import write_submission
from tests.submissions.test_check import HOSTILE, edited

ROOT = PLACE.partition("/")[0]


def data_of(page):
    """What a page shows."""
    [(packed, content)] = re.findall(
        r'<script type="application/json" id="data"( data-packed)?>(.*?)</script>',
        page.read_text(),
        re.DOTALL,
    )
    return json.loads(gzip.decompress(b64decode(content)) if packed else content)


def line_of(board, label):
    """Group -> score of a line in the first strategy, as the page has it."""
    place = board["entries"]["label"].index(label)
    titles = [title for _, title, *_ in board["columns"]]
    return {title: cells[place] for title, cells in zip(titles, board["scores"][0], strict=True)}


@pytest.fixture(scope="session")
def site(made_once, made_submission):
    """Pages of all published models and of one submission: tests read them, and change nothing."""

    def fill(folder):
        shutil.copytree(made_submission / ROOT, folder / ROOT)
        shutil.copytree(made_submission / "data", folder / "data")
        carry(made_submission / ANSWERS, folder / "data")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEDTASKS_DATA_DIR", str(folder / "data"))
            command("site", "--submissions", folder / ROOT, "-o", folder / "site")

    return made_once("site", fill) / "site"


def test_published_models_stand_there_with_the_scores_that_papers_print(site):
    board = data_of(site / "bridge.html")
    for entry in published_entries(registry())[:98:20]:
        scores = [item.score for item in entry.experiments.values() if item.strategy == "zero_shot"]
        assert line_of(board, entry.model)["BRIDGE"] == whole_of(sum(scores) / 87)
    assert {title for _, title in board["axes"]} >= {
        "Suite",
        "Language",
        "Specialty",
        "Clinical stage",
        "Kind of task",
    }


def test_the_first_page_has_a_row_for_each_model_whose_numbers_are_those_of_the_frames(site):
    board = data_of(site / "index.html")
    groups = {
        (row["model"], row["suite"], row["strategy"]): row
        for row in parquet.read_table(site / "data" / "groups.parquet").to_pylist()
        if row["axis"] == "suite"
    }
    by_model = {}
    for entry in published_entries(registry()):
        by_model.setdefault(identity_of(entry).id, []).append(entry)
    shown = board["entries"]["page"]
    published = [place for place, flag in enumerate(board["entries"]["published"]) if flag]
    assert len(published) == len(by_model) and len({shown[place] for place in published}) == len(published)
    pages = {BoardLine(entries[0], None).page: entries for entries in by_model.values()}
    joined = 0
    for place in published:
        entries = pages[shown[place]]
        joined += len({entry.paper for entry in entries}) > 1
        for number, (strategy, _) in enumerate(board["strategies"]):
            for column, (_, title, _, at) in enumerate(board["columns"]):
                suite, cell = board["suites"][at][0], board["scores"][number][column][place]
                rows = [groups.get((item.model, suite, strategy)) for item in entries if item.paper == suite]
                found = [row for row in rows if row]
                if "win rate" in title:
                    continue
                if not found:
                    assert cell is None
                    continue
                best = max(found, key=lambda row: (row["tasks_scored"] == row["tasks"], row["score"]))
                assert (cell[0] if isinstance(cell, list) else cell) == whole_of(best["score"])
                rank = board["ranks"][number][column][place]
                assert (rank or [None, None]) == [best["rank"], best["rank_of"]]
    assert joined >= 13


def test_win_rates_of_the_first_page_are_those_of_the_paper_s_table(site, medtasks, tmp_path):
    assert medtasks("reproduce", "medhelm:table1", "-o", "out").code == 0
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
    assert board["entries"]["label"][best] == "DeepSeek-R1" and board["ranks"][0][column][best] == [1, 9]


def test_every_number_of_model_pages_is_that_of_the_frames(site):
    """Scores of tasks and suites, their ranks, and the neighbours' scores; published and submitted."""
    results = parquet.read_table(site / "data" / "results.parquet").to_pylist()
    tasks = {
        (row["model"], row["dataset"], strategy_title(row["strategy"]), row["kind"]): row for row in results
    }
    suites = {
        (row["model"], row["suite"], strategy_title(row["strategy"]), row["kind"]): row
        for row in parquet.read_table(site / "data" / "groups.parquet").to_pylist()
        if row["axis"] == "suite"
    }
    n_tasks = n_suites = 0
    for page in (site / "models").iterdir():
        content = data_of(page)
        for line in content["lines"]:
            kind = "published" if line["published"] else "medtasks"
            model = line["label"] if line["published"] else content["title"]
            for found in line["tasks"]:
                row = tasks[model, found[11], found[2], kind]
                assert (found[3], found[5], found[6]) == (
                    whole_of(row["value"]),
                    row["n"],
                    row["rows_of_suite"],
                )
                n_tasks += 1
            for place in line["places"]:
                row = suites[model, place["suite"], place["strategy"], kind]
                assert (place["score"], place["tasks"]) == (whole_of(row["score"]), row["tasks_scored"])
                assert (place["rank"] or [None, None]) == [row["rank"], row["rank_of"]]
                n_suites += 1
    assert (n_tasks, n_suites) == (len(results), len(suites))


def test_every_number_of_dataset_pages_is_that_of_the_frames(site):
    scores = {}
    for row in parquet.read_table(site / "data" / "results.parquet").to_pylist():
        if row["kind"] == "published":
            key = row["dataset"], strategy_title(row["strategy"])
            scores.setdefault(key, []).append(whole_of(row["value"]))
    seen = 0
    for page in (site / "datasets").iterdir():
        content = data_of(page)
        for board in content["boards"]:
            every = sorted(scores[content["id"], board["strategy"]], reverse=True)
            assert board["all"] == every and board["n"] == len(every)
            assert [row[2] for row in board["best"]] == every[:30]
            assert board["median"] == int(median(every))
            assert [row[3] for row in board["best"]] == [
                1 + sum(other > one for other in every) for one in every[:30]
            ]
            seen += 1
    assert seen == len(scores)


def test_each_known_defect_of_a_scorer_stands_on_the_pages_of_its_datasets(site):
    pages = {page.stem: data_of(page)["scorer"] for page in (site / "datasets").iterdir()}
    tasks = registry()
    for group in known_defects():
        for defect in group.defects:
            named = [name for name, dataset in tasks.datasets.items() if group.has(defect, dataset)]
            assert named and set(defect.datasets) <= tasks.datasets.keys(), defect.rule
            words = re.sub("`([^`]*)`", "“\\1”", defect.rule)
            assert {name for name, found in pages.items() if words in [rule for rule, *_ in found]} == set(
                named
            )
    assert any("Pharmacology" in rule for rule, *_ in pages["clinicbench_pharmacology_qa"])
    assert not any("Pharmacology" in rule for rule, *_ in pages["clinicbench_gad"])


def test_scores_by_language_on_model_pages_are_those_of_the_paper_s_table(site, medtasks, tmp_path):
    assert medtasks("reproduce", "bridge:tables5", "-o", "out").code == 0
    [file] = (tmp_path / "out").glob("**/*tables5*.csv")
    wanted = {
        (row["row"], row["column"]): row["recomputed"]
        for row in csv.read_csv(file).to_pylist()
        if row["recomputed"] is not None
    }
    models, seen = {name for name, _ in wanted}, 0
    for page in (site / "models").iterdir():
        for line in data_of(page)["lines"]:
            for profile in line["profiles"]:
                if (profile["suite"], profile["strategy"]) != ("bridge", "zero-shot"):
                    continue
                if line["label"] not in models:
                    continue  # the leaderboard has it, the paper has not
                for axis, values in profile["axes"]:
                    for title, _, score, *_ in values if axis == "Language" else ():
                        percent = float(wanted[line["label"], title])
                        assert score / 100 == pytest.approx(percent, abs=0.0101), (line["label"], title)
                        seen += 1
    assert seen == sum(column != "Average" for _, column in wanted) > 800


def test_a_submission_on_a_part_in_own_words_is_in_no_rank_of_the_paper(site, submission):
    groups = parquet.read_table(site / "data" / "groups.parquet").to_pylist()
    record = json.loads((submission / "submission.json").read_text())
    mine = [row for row in groups if row["submitted"] and row["axis"] == "suite"]
    assert {row["suite"] for row in mine} == {"bridge", "medhelm"}
    for row in mine:
        assert row["score"] == pytest.approx(record["groups"][row["suite"]]["score"])
        assert (row["rank"], row["partial"]) == (None, True)
        assert row["other_conditions"] and row["rows_in_part"]
    board = data_of(site / "index.html")
    assert line_of(board, "Org/random-label")["BRIDGE"] == [
        whole_of(record["groups"]["bridge"]["score"]),
        2,
    ]


def test_ranks_of_published_models_are_those_of_their_scores(site):
    groups = parquet.read_table(site / "data" / "groups.parquet").to_pylist()
    rows = [
        row for row in groups
        if (row["suite"], row["axis"], row["strategy"]) == ("bridge", "suite", "zero_shot") and row["rank"]
    ]  # fmt: skip
    assert len(rows) == 98 and {row["rank_of"] for row in rows} == {98}
    best = max(rows, key=lambda row: row["score"])
    assert (best["model"], best["rank"]) == ("gemini-2.5-flash", 1)


def test_the_tables_are_the_same_in_both_forms_and_hold_every_score(site, submission):
    record = json.loads((submission / "submission.json").read_text())
    table = parquet.read_table(site / "data" / "results.parquet")
    assert csv.read_csv(site / "data" / "results.csv.gz").num_rows == table.num_rows
    mine = {row["task"]: row for row in table.to_pylist() if row["submitted"]}
    assert {task: row["value"] for task, row in mine.items()} == {
        task: item["score"] for task, item in record["tasks"].items()
    }
    assert table.column_names == [*frames.names("results"), "invented", "submitted", "trust", "waits"]
    assert mine[OPEN_MEAN]["wording"] == "own" and "wording" in mine[OPEN_MEAN]["otherwise"]


def test_a_model_page_says_conditions_coverage_and_heads(site):
    [page] = (site / "models").glob("org-random-label-*.html")
    content = data_of(page)
    [line] = content["lines"]
    assert [row["tasks"] for row in line["places"]] == [2, 2] and all(
        row["rank"] is None for row in line["places"]
    )
    assert any("wording" in reason for reason in line["reasons"])
    assert any(term.startswith("Digest of 4 sealed heads") for term, _ in line["source"])
    assert all("not ranked among" in item["sentence"] for item in line["standings"])


def test_a_model_page_shows_examples_of_checked_answers_where_the_terms_of_rows_allow_it(
    medtasks, submission, tmp_path
):
    """One task's rows are under MIT; of the other's terms nobody knows; the rest is not open at all."""
    assert medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site").code == 0
    [page] = (tmp_path / "site" / "models").glob("org-random-label-*.html")
    [line] = data_of(page)["lines"]
    found = line["examples"]
    assert {name for name, *_ in found["shown"]} == {"MedQA"} and found["hidden"] == 1
    scores = [value for *_, value in found["shown"]]
    assert scores == sorted(scores, reverse=True) and len(scores) <= 2
    for _, terms, question, answer, gold, value in found["shown"]:
        assert terms.startswith("MIT") and "Quendel" in question
        assert (value == 10_000) == (answer.strip() == gold)
    again = gather_site(registry(), submission.parents[2]).lines[-1]  # as it was kept
    assert [item.answer for item in again.checked.examples] == [row[3] for row in found["shown"]]


def test_each_model_has_one_page_whose_name_leads_nowhere_else(site):
    board = data_of(site / "index.html")
    pages = set(board["entries"]["page"])
    assert all(re.fullmatch(r"[a-z0-9-]+\.html", name) for name in pages)
    assert {path.name for path in (site / "models").iterdir()} == pages


def test_the_same_model_on_the_hub_and_in_a_paper_has_one_page(medtasks, submission, tmp_path):
    edited(submission, lambda content: content["about"].update(hub_id="Qwen/Qwen3-8B"))
    outcome = medtasks("site", "--submissions", ROOT, "-o", "site")
    n = len(published_entries(registry()))
    assert outcome.code == 0 and f"{n} published results, 1 submission" in outcome.out
    [page] = (tmp_path / "site" / "models").glob("qwen-qwen3-8b-*.html")
    kinds = [line["published"] for line in data_of(page)["lines"]]
    assert kinds.count(True) >= 1 and kinds.count(False) == 1


def test_hostile_texts_stay_texts_in_every_page(medtasks, submission, tmp_path):
    def hostile(content):
        content["run"] = {"engine": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
        content["about"]["license"] = content["called"] = HOSTILE
        for item in content["tasks"].values():
            item["conditions"]["asked"]["jury"] = {"judges": [{"name": HOSTILE}], "protocol": HOSTILE}
            item["conditions"]["asked"]["decoding"] = {"temperature": 1, "top_p": HOSTILE}

    edited(submission, hostile)
    assert medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site").code == 0
    for page in (tmp_path / "site").rglob("*.html"):
        assert "<img" not in page.read_text(), page


def test_a_submission_that_cannot_be_read_is_named_and_the_others_are_shown(medtasks, submission, tmp_path):
    edited(submission, lambda content: content.update(schema=7))
    write_submission(tmp_path / ROOT, "Org/Other", 0.5)
    outcome = medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site")
    assert outcome.code == 1 and "schema: is 7" in outcome.err and "1 submission" in outcome.out
    assert [*(tmp_path / "site" / "models").glob("org-other-*.html")]
    assert [what for _, what in data_of(tmp_path / "site" / "about.html")["left_out"]] == [
        "schema: is 7, and this version reads 3"
    ]


def test_invented_scores_are_said_to_be_so(medtasks, submission, tmp_path):
    edited(submission, lambda content: content.update(invented="for a test"))
    assert "INVENTED" in medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site").err
    assert all(data_of(page)["invented"] for page in (tmp_path / "site").rglob("*.html"))


def test_a_later_site_takes_the_place_of_an_earlier_one_and_of_nothing_else(
    medtasks, site, submission, tmp_path
):
    old = shutil.copytree(site, tmp_path / "site") / "models" / "old.html"
    old.write_text("old")
    assert medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site").code == 0
    assert not old.exists() and len([*old.parent.iterdir()]) == 1
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    refused = medtasks("site", "-o", "other")
    assert refused.code == 2 and "holds files that no site wrote" in refused.err
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_submitted_models_alone_and_nothing_at_all(medtasks, submission, tmp_path):
    outcome = medtasks("site", "--submissions", ROOT, "--no-published", "-o", "site")
    assert outcome.code == 0 and "0 published results, 1 submission" in outcome.out
    (tmp_path / "empty").mkdir()
    nothing = medtasks("site", "--submissions", "empty", "--no-published", "-o", "site2")
    assert nothing.code == 2 and "there is nothing to show" in nothing.err
    assert "no such folder" in medtasks("site", "--submissions", "gone", "-o", "site2").err


@pytest.fixture
def confirmed_rows(monkeypatch):
    """All rows and words are confirmed: most datasets of BRIDGE have no hash yet."""
    monkeypatch.setattr(Experiment, "confirmed", Confirmed("confirmed", "confirmed", None))


@pytest.fixture
def proven(monkeypatch):
    """All scores are proven, although these are invented."""
    monkeypatch.setattr(BoardLine, "is_proven", lambda *_: True)


@pytest.mark.usefixtures("proven")
def test_rows_that_nobody_has_confirmed_are_ranked_in_a_part_of_their_own(tmp_path):
    for number in range(2):
        write_submission(tmp_path, f"Org/Said-{number}", 0.5, wording="official")
    scores = scores_of(gather_site(registry(), tmp_path, published=True))
    classes = scores.classes["bridge", "zero_shot"]
    of = {line.entry.model: number for line, number in zip(scores.site.lines, classes.of, strict=True)}
    assert of["Org/Said-0"] == of["Org/Said-1"] == 1
    assert classes.found[1].words == "rows as the submitter says in 87 of 87 tasks"
    ranks = scores.ranks("zero_shot", scores.whole["bridge"])
    own = [
        ranks[place]
        for place, line in enumerate(scores.site.lines)
        if line.entry.model in ("Org/Said-0", "Org/Said-1")
    ]
    assert own == [(1, 2), (1, 2)]


@pytest.mark.usefixtures("confirmed_rows", "proven")
def test_results_that_differ_among_themselves_are_not_ranked_together(tmp_path):
    """What the paper does not say may differ: the commonest way of asking stands among its models."""
    root = tmp_path / "in"
    for number in range(3):
        write_submission(root, f"Org/Common-{number}", 0.5, prompt="p1", wording="official")
    write_submission(root, "Org/A-First", 0.5, prompt="p2", wording="official")
    write_submission(root, "Org/Short", 0.5, suite="medhelm", inputs_cut=1, context=2048)
    scores = scores_of(gather_site(registry(), root, published=False))
    of = dict(
        zip(
            [line.entry.model for line in scores.site.lines],
            scores.classes["bridge", "zero_shot"].of,
            strict=True,
        )
    )
    assert {of[f"Org/Common-{number}"] for number in range(3)} == {0}
    assert of["Org/A-First"] == 1 and of["Org/Short"] is None
    [_, other] = scores.classes["bridge", "zero_shot"].found
    assert other.words == "wording in 87 of 87 tasks"
    ranks = scores.ranks("zero_shot", scores.whole["bridge"])
    assert sorted(ranks.values()) == [(1, 1), (1, 3), (1, 3), (1, 3)]


@pytest.mark.usefixtures("confirmed_rows", "proven")
def test_an_older_version_of_a_task_has_a_rank_of_its_own(tmp_path):
    record = write_submission(tmp_path, "Org/Old", 0.5)
    write_submission(tmp_path, "Org/New", 0.4)
    tasks = {
        name: item.model_copy(
            update={
                "conditions": replace(item.conditions, asked=replace(item.conditions.asked, version="0-A"))
            }
        )
        for name, item in record.tasks.items()
    }
    record.model_copy(update={"tasks": tasks}).write(tmp_path / "Org" / "Old" / "2026-05-01")
    scores = scores_of(gather_site(registry(), tmp_path, published=False))
    assert scores.classes["bridge", "zero_shot"].of == (0, 1)
    assert "an older version of the task in 87" in scores.classes["bridge", "zero_shot"].found[1].words


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
