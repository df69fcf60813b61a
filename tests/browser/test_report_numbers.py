"""What the page of `medtasks report` shows equals its data, worked out a second time."""

import re
from math import sqrt

import pytest

from medtasks_ext.stats.intervals import Interval, of_tasks, sample_sizes
from tests.browser.report_page import address_of, leaderboard, on_all, open_tables, same, table, texts, whole
from tests.report.made import unpacked


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


def test_a_partial_row_is_marked_and_never_ranked(show, report):
    third = leaderboard(show("leaderboard"))[own(report)[2]]
    assert third["tasks"].endswith("partial") and third["place"] == ""
    assert third["section"].startswith("Incomplete")


FILTERS = {
    "two axes of one suite": {"suite": ["bridge"], "language": ["zh"], "task_type": ["text_classification"]},
    "two suites": {"suite": ["medhelm", "mlb"]},
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
    ("suite=bridge&language=zh", "language", "zh", "bridge"),
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


def test_published_and_own_models_are_averaged_over_the_same_tasks(show, report):
    shown = leaderboard(show("leaderboard?suite=clinicbench&scenario=generation"))
    every = chosen(report, scenario=["generation"])
    ids = [item["id"] for item in report["datasets"] if item["id"] in every and not item["left_out"]]
    assert 0 < len(ids) < len(every)
    for label, (mean, n, _) in expected(report, ids).items():
        assert same(shown[label]["score"], mean) and shown[label]["tasks"].startswith(f"{n}/{len(ids)}")


def test_averages_that_are_published_alone_stand_where_they_fit_and_nowhere_else(show, report):
    models = {entry["label"] for entry in report["entries"] if entry["suite"] == "mlb"}
    shown = leaderboard(show("leaderboard?suite=mlb"))
    for label in models:
        printed = group(report, label, "suite", "mlb", "mlb")["score"]
        assert same(shown[label]["score"], printed) and shown[label]["tasks"] == "as published"
    assert models <= set(leaderboard(show("leaderboard?suite=mlb&dimension=medse")))
    assert not models & set(leaderboard(show("leaderboard?suite=mlb&stage=research")))


def test_only_tasks_that_all_have(show, report):
    browser = show("leaderboard?kind=own")
    browser.click("main button[data-key='button Only tasks that all have']")
    assert "common=1" in address_of(browser)
    rows, labels = rows_of(report), own(report)
    every = chosen(report, suite=["bridge"])
    ids = [name for name in every if all((label, "zero_shot", name) in rows for label in labels)]
    assert 0 < len(ids) < 87
    means, shown = expected(report, ids), leaderboard(browser)
    for label in labels:
        assert same(shown[label]["score"], means[label][0]) and shown[label]["place"]
        assert shown[label]["tasks"] == f"{len(ids)}/{len(ids)}"


def test_strategies_are_never_mixed(show, report):
    browser = show("leaderboard?strategy=&kind=own&suite=medhelm")
    lines = on_all(
        browser,
        "main tbody tr",
        "[one.cells[2].textContent, one.cells[0].textContent, one.querySelector('.name').textContent, "
        "one.querySelector('.score').textContent]",
    )
    assert len(lines) == 9
    for strategy, title in report["strategies"]:
        means = expected(report, chosen(report, suite=["medhelm"]), strategy)
        found = {label: (place, score) for name, place, label, score in lines if name == title}
        assert set(found) == set(own(report))
        assert all(same(score, means[label][0]) for label, (_, score) in found.items())
        assert sorted(place for place, _ in found.values()) == ["1", "2", "3"]


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


def test_profiles_show_groups_with_their_intervals(show, report):
    first = own(report)[0]
    series = "zero_shot%253A" + first.replace("/", "%252F")
    browser = show(f"profile?axis=language&models={series}")
    open_tables(browser)
    shown = table(browser, "table.values")
    [axis] = [axis for axis in report["axes"] if axis["key"] == "language"]
    assert len(shown) == len(axis["values"]) == 9
    for value, title in axis["values"]:
        row = group(report, first, "language", value, "bridge")
        assert same(shown[title][0], row["score"], row["low"], row["high"])


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


def test_shares_of_readable_answers_are_means_over_tasks(show, report):
    browser, rows = show("leaderboard?suite=medhelm&kind=own"), rows_of(report)
    [place] = [n for n, title in enumerate(texts(browser, "main thead th")) if title.startswith("Readable")]
    shown = dict(
        on_all(
            browser,
            "main tbody tr",
            f"[one.querySelector('.name').textContent, one.cells[{place}].textContent]",
        )
    )
    for label in own(report):
        shares = [rows[label, "zero_shot", name]["valid"] for name in chosen(report, suite=["medhelm"])]
        assert shown[label] == f"{100 * sum(shares) / len(shares):.1f} %"


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


def test_the_tasks_stand_with_the_lowest_score_and_share_of_own_runs_the_worst_first(show, report):
    browser, rows = show("tasks?suite=medhelm"), rows_of(report)
    shown = table(browser)
    medhelm = chosen(report, suite=["medhelm"])
    names = {item["name"]: item["id"] for item in report["datasets"] if item["id"] in medhelm}
    titles = [title.rstrip("▲▼") for title in texts(browser, "main thead th")[1:]]
    worst = []
    for name, cells in shown.items():
        mine = [rows[label, "zero_shot", names[name]] for label in own(report)]
        found = dict(zip(titles, cells, strict=True))
        worst.append(min(row["score"] for row in mine))
        assert same(found["Score"], worst[-1])
        assert found["Readable"] == f"{100 * min(row['valid'] for row in mine):.1f} %"
    assert len(worst) == 37 and worst == sorted(worst)


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
