"""What the page of `medtasks report` shows equals its data, worked out a second time."""

import csv
import re
from math import sqrt

import pytest

from medtasks_ext.stats.intervals import Interval, of_tasks, sample_sizes
from tests.browser.report_page import leaderboard, on_all, open_tables, same, table, texts, whole
from tests.report.made import data_of, unpacked

pytestmark = pytest.mark.long


def rows_of(report):
    """(label, strategy, dataset id) -> row of the results."""
    columns = unpacked(report["results"])
    rows = {}
    for place, entry in enumerate(columns["entry"]):
        row = {name: column[place] if place < len(column) else None for name, column in columns.items()}
        strategy, dataset = report["strategies"][row["strategy"]][0], report["datasets"][row["dataset"]]["id"]
        rows[report["entries"][entry]["label"], strategy, dataset] = row
    return rows


def chosen(report, **filters):
    """Ids of the datasets with one of the values on each axis; controls never.

    Suites that stand apart count in no mean with other suites' tasks.
    """

    def fits(dataset):
        return all(
            set(values) & set(dataset[key] if isinstance(dataset[key], list) else [dataset[key]])
            for key, values in filters.items()
        )

    return [
        item["id"]
        for item in report["datasets"]
        if not item["control_of"] and fits(item) and ("suite" in filters or item["in_totals"])
    ]


def expected(report, ids, strategy="zero_shot"):
    """Label -> (mean, tasks, interval by the rule of the report's groups or None) over these datasets."""
    rows, found = rows_of(report), {}
    for label in dict.fromkeys(entry["label"] for entry in report["entries"]):
        mine = [row for name in ids if (row := rows.get((label, strategy, name)))]
        if mine:
            scores, n = [row["score"] for row in mine], len(mine)
            ends = [Interval(row["low"], row["high"]) if row["low"] is not None else None for row in mine]
            interval = of_tasks([1 / n] * n, scores, ends, [row["n"] for row in mine])
            found[label] = (sum(scores) / n, n, interval)
    return found


def group(report, label, axis, value, suite=None):
    """A zero-shot row of `groups`."""
    columns = unpacked(report["groups"])
    for place in range(len(columns["entry"])):
        row = {name: column[place] if place < len(column) else None for name, column in columns.items()}
        found = report["axes"][row["axis"]]
        there = (found["key"], found["values"][row["value"]][0], row["suite"], row["strategy"])
        if report["entries"][row["entry"]]["label"] == label and there == (axis, value, suite, 0):
            return row
    raise KeyError(label)


def own(report):
    return [entry["label"] for entry in report["entries"] if entry["kind"] != "published"]


def test_a_suite_s_leaderboard_shows_the_report_s_own_figures(show, report):
    shown = leaderboard(show("leaderboard"))
    means = expected(report, chosen(report, suite=["bridge"]))
    assert set(shown) == set(means)
    for label, (mean, n, _) in means.items():
        assert same(shown[label]["score"], mean) and shown[label]["tasks"].startswith(f"{n}/87")
    for label in own(report):
        row = group(report, label, "suite", "bridge", "bridge")
        assert same(shown[label]["interval"], row["low"], row["high"])
    complete = [label for label, row in shown.items() if not row["section"]]
    scores = [means[label][0] for label in complete]
    assert scores == sorted(scores, reverse=True)
    assert [shown[label]["place"] for label in complete] == [
        str(1 + sum(round(other, 5) > round(score, 5) for other in scores)) for score in scores
    ]


FILTERS = {
    "two axes of one suite": {"suite": ["bridge"], "language": ["zh"], "task_type": ["text_classification"]},
    "three languages in all suites": {"language": ["de", "fr", "es"]},
    "overlapping specialties": {"suite": ["bridge"], "specialties": ["radiology", "neurology"]},
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=list(FILTERS))
def test_a_selection_of_one_s_own_is_averaged_anew(show, report, filters):
    query = "&".join(f"{key}={','.join(values)}" for key, values in {"suite": [], **filters}.items())
    shown = leaderboard(show(f"leaderboard?{query}"))
    ids = chosen(report, **filters)
    for label, (mean, n, interval) in expected(report, ids).items():
        assert same(shown[label]["score"], mean) and shown[label]["tasks"].startswith(f"{n}/{len(ids)}")
        if interval is not None:
            assert same(shown[label]["interval"], interval.low, interval.high)


def test_intervals_of_a_selection_follow_the_rule_of_the_groups(show):
    """One rule in two languages: also for few documents, and for scores at the ends."""
    cases = [
        ([0.5], [0.3], [0.7], [20]),
        ([0.9, 0.4, 0.0], [0.8, 0.35, 0.0], [0.95, 0.5, 0.2], [50, 300, 12]),
        ([1.0, 1.0], [0.7, 1.0], [1.0, 1.0], [9, 4]),
        ([0.2, 0.0, 0.6, 0.31], [0.1, 0.0, 0.59, 0.3], [0.3, 0.0, 0.61, 0.32], [40, 1, 9000, 7]),
    ]
    browser = show("leaderboard")
    for scores, low, high, n in cases:
        sizes = sample_sizes(scores, low, high, n).tolist()
        found = browser.js(f"meanInterval({scores}, {sizes})")
        ends = list(map(Interval, low, high))
        wanted = of_tasks([1 / len(scores)] * len(scores), scores, ends, n)
        assert (found["low"], found["high"]) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


GROUPS = [
    ("suite=mlb", "suite", "mlb", "mlb"),
    ("suite=&language=zh", "language", "zh", None),
    ("suite=clinicbench&scenario=generation", "scenario", "generation", "clinicbench"),
    ("suite=", "all", "all", None),
]


@pytest.mark.parametrize(("query", "axis", "value", "suite"), GROUPS)
def test_a_selection_that_is_a_group_has_the_group_s_figures(show, report, query, axis, value, suite):
    browser = show(f"leaderboard?{query}")
    shown = leaderboard(browser)
    for label in own(report)[:2]:
        row = group(report, label, axis, value, suite)
        assert same(shown[label]["score"], row["score"])
        assert same(shown[label]["interval"], row["low"], row["high"]) and "≈" not in shown[label]["interval"]
        assert shown[label]["tasks"].startswith(f"{row['scored'] or row['tasks']}/{row['tasks']}")
    # MLB averages dimensions, ClinicBench leaves two sets out, and the page says so
    assert ("averaged in the suite’s own way" in whole(browser)) == (value in ("mlb", "generation"))


def test_the_heat_map_s_table_and_a_task_s_page_show_each_score(show, report):
    rows = rows_of(report)
    browser = show("heatmap?kind=own&suite=mlb")
    browser.click(".as-table summary")
    browser.wait("!!document.querySelector('table.values')")
    ids = {item["name"]: item["id"] for item in report["datasets"] if item["suite"] == "mlb"}
    names = texts(browser, "table.values thead th")[1:]
    for label, scores in table(browser, "table.values").items():
        assert same(" ".join(scores), *(rows[label, "zero_shot", ids[name]]["score"] for name in names))
    browser.go("task/mlb_cmeee?on=cot")
    shown = leaderboard(browser)
    assert set(shown) == set(own(report))
    for label, line in shown.items():
        row = rows[label, "cot", "mlb_cmeee"]
        assert same(line["score"], row["score"]) and same(line["interval"], row["low"], row["high"])


def test_a_strategy_is_compared_with_zero_shot_on_the_same_tasks(show, report):
    browser = show("strategies?suite=medhelm&kind=own")
    open_tables(browser)
    shown = table(browser, "table.values")
    ids, rows = chosen(report, suite=["medhelm"]), rows_of(report)
    zero, cot = expected(report, ids), expected(report, ids, "cot")
    for label in own(report):
        difference = cot[label][0] - zero[label][0]
        gains = [rows[label, "cot", name]["sd_of_gain"] for name in ids]
        spread = 1.96 * sqrt(sum(sd**2 for sd in gains)) / len(ids)
        # the invented resamples of two strategies are drawn independently
        halves = [(interval.high - interval.low) / 2 for _, _, interval in (zero[label], cot[label])]
        assert spread == pytest.approx(sqrt(sum(half**2 for half in halves)), rel=0.1)
        assert same(shown[label][0], difference, difference - spread, difference + spread)


def test_best_and_worst_groups_lie_wholly_beyond_their_suite_s_score(show, report):
    [axis] = [axis for axis in report["axes"] if axis["key"] == "suite"]
    suites = {title: value for value, title in axis["values"]}
    said = texts(show("overview"), "main .extremes li")
    for label, words in zip(own(report), said, strict=True):
        for above, part in zip((True, False), words.split(" Worst: "), strict=True):
            found = re.findall(r"\[([\d.]+), ([\d.]+)\]~? \((.+?)\)", part)
            assert len(found) == 3
            for low, high, suite in found:
                score = group(report, label, "suite", suites[suite], suites[suite])["score"]
                assert float(low) > score if above else float(high) < score


def test_pairs_show_differences_intervals_and_p_values(show, report):
    browser = show("pairs?suite=medhelm")
    [found] = [
        item
        for item in report["comparisons"]
        if (item["suite"], item["strategy"]) == ("medhelm", "zero_shot")
    ]
    labels = [report["entries"][place]["label"] for place in found["entries"]]
    browser.click(".as-table summary")
    browser.wait("!!document.querySelector('table.values')")
    names = texts(browser, "table.values thead th")[1:]
    ranks = [found["rank"][labels.index(name)] for name in names]
    assert len(names) == 3 and ranks == sorted(ranks)
    cells = table(browser, "table.values")
    for one in names:
        for other, cell in zip(names, cells[one], strict=True):
            row, column = labels.index(one), labels.index(other)
            if one == other:
                assert cell == "–"
                continue
            figures, p = cell.split(", p ")
            assert same(figures, *(found[name][row][column] for name in ("difference", "low", "high")))
            holm = found["p_holm"][row][column]
            assert p == ("<0.001" if holm < 0.001 else f"{holm:.3f}")
    # a click on a cell says all that is known of the pair
    browser.click(".drawing .mark-rect path")
    [detail] = texts(browser, ".detail")
    assert " against " in detail and "Holm" in detail and "Wins" in detail
    ranks = texts(browser, "main .ranks li")
    assert [re.split(r" (?=[0-9.]+ \[)", line)[0] for line in ranks] == names


@pytest.fixture(scope="module")
def suite_rows(published_report):
    """Rows of groups.csv of whole suites: (suite, strategy) -> model -> row."""
    found = {}
    with (published_report / "groups.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["axis"] == "suite" and row["score"]:
                found.setdefault((row["suite"], row["strategy"]), {})[row["model"]] = row
    return found


def test_a_report_of_published_models_opens_on_a_picture_by_size_with_their_scores(
    browser, published_report, suite_rows
):
    browser.show((published_report / "report.html").as_uri(), width=420)
    [top, *_] = on_all(browser, "main .drawing svg", "one.getBoundingClientRect().top")
    assert top < 700
    open_tables(browser)
    entries = data_of(published_report / "report.html")["entries"]
    sizes = {item["label"]: item["facts"]["size"] for item in entries if item["suite"] == "bridge"}
    shown = table(browser, ".as-table table")
    assert len(shown) == sum(size is not None for size in sizes.values()) > 80
    rows = suite_rows["bridge", "zero_shot"]
    for name, cells in shown.items():
        assert cells[2].startswith(f"{float(rows[name.removesuffix(' (BRIDGE)')]['score']):.3f}")


def test_readable_answers_and_the_papers_intervals_stand_as_in_the_terminal(
    browser, published_report, suite_rows
):
    browser.show(f"{(published_report / 'report.html').as_uri()}#leaderboard")
    rows = suite_rows["bridge", "zero_shot"]
    titles = texts(browser, "main thead th")
    valid = next(place for place, title in enumerate(titles) if title.startswith("Readable"))
    parts = ["one.querySelector('.name')", "one.querySelector('.interval')", f"one.cells[{valid}]"]
    read = ", ".join(f"{part}.textContent" for part in parts)
    shown = on_all(browser, "main tbody tr", f"[{read}]")
    assert len(shown) == len(rows) == 98 and sum(interval != "" for _, interval, _ in shown) > 90
    for name, interval, share in shown:
        row = rows[re.sub(r" \(BRIDGE\)$", "", name)]
        ends = [row[f"paper_interval_{end}"] for end in ("low", "high")]
        assert interval == (f"[{float(ends[0]):.3f}, {float(ends[1]):.3f}]p" if ends[0] else "")
        assert share == (f"{100 * float(row['valid']):.1f} %" if row["valid"] else "–")
    assert sum(share != "–" for *_, share in shown) > 90
