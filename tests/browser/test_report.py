"""The page of `medtasks report` in a real browser: what it shows equals its data, and how it is used."""

import json
import re
from copy import deepcopy
from math import sqrt

import pytest

from medtasks_ext.report.page import render
from tests.browser.chromium import Chromium, find_chromium
from tests.browser.report_payload import made_report

PARTS = (
    "overview", "leaderboard", "heatmap", "profile", "pairs", "cost", "strategies", "validity", "judges", "coverage",
    "tasks",
)  # fmt: skip
HOSTILE = '</script><img src=x onerror="window.hit=1"><script>window.hit=1</script> &amp; 中文 "\'\\'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder):
    if find_chromium() is None:
        pytest.skip("no Chromium here: install the package `chromium`, or name one in MEDTASKS_CHROMIUM")
    started = Chromium(folder / "profile", folder / "downloads")
    yield started
    started.close()


@pytest.fixture(scope="module")
def data():
    """Three own runs, the third of them partial, beside some published models of each suite."""
    return made_report(3, published=5)


@pytest.fixture(scope="module")
def page(data, folder):
    file = folder / "report.html"
    file.write_text(render(data), encoding="utf-8")
    return file


@pytest.fixture
def show(browser, page):
    """Open the report at an address: `show("leaderboard?suite=mlb")`."""

    def open_at(address, *, file=page, width=1300, dark=False):
        browser.call("Emulation.setEmulatedMedia", media="")
        browser.screen(width, 900, dark=dark, phone=width < 500)
        browser.call("Page.navigate", url="about:blank")
        browser.events.clear()
        browser.call("Page.navigate", url=f"{file.as_uri()}#{address}")
        browser.wait("document.readyState === 'complete' && !!document.querySelector('main h2')")
        return browser

    return open_at


def go(browser, address):
    browser.js(f"location.hash = {json.dumps(address)}")
    browser.js("new Promise((done) => setTimeout(done, 30))")


def texts(browser, selector):
    return browser.js(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")


# ---------------------------------------------------------------------- the same figures, worked out again


def found_in(data):
    """(label, strategy, dataset id) -> row of the results."""
    results = data["results"]
    names = list(results)
    length = len(results["entry"])
    columns = [results[name] + [None] * (length - len(results[name])) for name in names]
    rows = {}
    for values in zip(*columns, strict=True):
        row = dict(zip(names, values, strict=True))
        key = (
            data["entries"][row["entry"]]["label"],
            data["strategies"][row["strategy"]][0],
            data["datasets"][row["dataset"]]["id"],
        )
        rows[key] = row
    return rows


def chosen(data, **filters):
    """Ids of the datasets with one of the values on each axis; twins never."""
    return [
        item["id"]
        for item in data["datasets"]
        if not item["twin_of"]
        and all(
            set(values) & set(item[key] if isinstance(item[key], list) else [item[key]])
            for key, values in filters.items()
        )
    ]


def expected(data, ids, strategy="zero_shot"):
    """Label -> (mean, tasks, deviation of the mean or None) over these datasets."""
    rows, found = found_in(data), {}
    for entry in data["entries"]:
        mine = [rows[entry["label"], strategy, name] for name in ids if (entry["label"], strategy, name) in rows]
        if mine:
            deviations = [row["sd"] for row in mine]
            spread = None if None in deviations else sqrt(sum(sd**2 for sd in deviations)) / len(mine)
            found[entry["label"]] = (sum(row["score"] for row in mine) / len(mine), len(mine), spread)
    return found


def group(data, label, axis, value, suite=None, strategy="zero_shot"):
    """A row of `groups`."""
    groups = data["groups"]
    axes = [item["key"] for item in data["axes"]]
    for place, entry in enumerate(groups["entry"]):
        row = {name: (column[place] if place < len(column) else None) for name, column in groups.items()}
        found = data["axes"][row["axis"]]
        if (
            data["entries"][entry]["label"] == label
            and axes[row["axis"]] == axis
            and found["values"][row["value"]][0] == value
            and row["suite"] == suite
            and data["strategies"][row["strategy"]][0] == strategy
        ):
            return row
    raise KeyError(label)


def leaderboard(browser):
    """Label -> {place, score, interval, tasks, section} as shown, in the order shown."""
    rows, section = {}, ""
    lines = browser.js(
        "[...document.querySelectorAll('main table tbody tr')].map((line) => line.className === 'section' "
        "? line.textContent : [line.cells[0].textContent, line.querySelector('.name').textContent, "
        "line.querySelector('.score').textContent, line.querySelector('.interval').textContent, "
        "line.querySelector('.coverage, .number [title]')?.textContent])"
    )
    for line in lines:
        if isinstance(line, str):
            section = line
        else:
            place, label, score, interval, tasks = line
            rows[label] = {"place": place, "score": score, "interval": interval, "tasks": tasks, "section": section}
    return rows


def own(data):
    return [entry["label"] for entry in data["entries"] if entry["kind"] != "published"]


def same(shown, *values):
    """Whether the numbers in a text are these, to the three digits shown."""
    numbers = [float(number) for number in re.findall(r"[+-]?\d+\.\d+", shown.replace("−", "-"))]
    return len(numbers) == len(values) and all(
        abs(number - value) < 0.0005 + 1e-5 for number, value in zip(numbers, values, strict=True)
    )


# ---------------------------------------------------------------------- it opens


def test_every_part_is_drawn_without_network_and_without_complaint(show, data):
    browser = show("")
    browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    label = data["entries"][0]["label"]
    for address in (*PARTS, "task/bridge_mie", "task/mlb_cmeee", f"model/{label}", "leaderboard?suite=&strategy="):
        go(browser, address)
        assert browser.js("document.querySelector('main h2').textContent.length > 0"), address
        assert browser.js("document.querySelector('main').textContent.length > 200"), address
    assert browser.complaints() == [] and browser.requests() == []


@pytest.mark.parametrize(
    "address",
    ["nowhere", "task/nothing", "model/%E0%A4%A", "leaderboard?suite=x&sort-leaderboard=-y&language=%", "profile?axis=q&models=%"],
)  # fmt: skip
def test_an_address_that_means_nothing_still_shows_a_page(show, address):
    browser = show(address)
    assert browser.js("document.querySelector('main h2').textContent.length > 0")
    assert browser.complaints() == []


def test_an_empty_selection_says_so(show):
    browser = show("leaderboard?suite=mlb&language=en")
    assert "No task fits all filters" in browser.js("document.querySelector('main').textContent")


# ---------------------------------------------------------------------- the numbers


def test_a_suite_s_leaderboard_shows_the_report_s_own_figures(show, data):
    shown = leaderboard(show("leaderboard"))
    means = expected(data, chosen(data, suite=["bridge"]))
    assert set(shown) == set(means)
    for label, (mean, n, _) in means.items():
        assert same(shown[label]["score"], mean) and shown[label]["tasks"].startswith(f"{n}/87")
    for label in own(data):
        row = group(data, label, "suite", "bridge", "bridge")
        assert same(shown[label]["interval"], row["low"], row["high"])
    complete = [label for label, row in shown.items() if not row["section"]]
    scores = [means[label][0] for label in complete]
    assert scores == sorted(scores, reverse=True)
    assert [shown[label]["place"] for label in complete] == [
        str(1 + sum(round(other, 5) > round(score, 5) for other in scores)) for score in scores
    ]


def test_a_partial_row_is_marked_and_never_ranked(show, data):
    shown = leaderboard(show("leaderboard"))
    third = shown[own(data)[2]]
    assert third["tasks"].endswith("partial") and third["place"] == ""
    assert third["section"].startswith("Incomplete")


FILTERS = {
    "two axes of one suite": {"suite": ["bridge"], "language": ["zh"], "task_type": ["text_classification"]},
    "two suites": {"suite": ["medhelm", "mlb"]},
    "three languages in all suites": {"language": ["de", "fr", "es"]},
    "overlapping specialties": {"suite": ["bridge"], "specialties": ["radiology", "neurology"]},
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=list(FILTERS))
def test_a_selection_of_one_s_own_is_averaged_anew(show, data, filters):
    query = "&".join(f"{key}={','.join(values)}" for key, values in {"suite": [], **filters}.items())
    shown = leaderboard(show(f"leaderboard?{query}"))
    ids = chosen(data, **filters)
    for label, (mean, n, spread) in expected(data, ids).items():
        assert same(shown[label]["score"], mean)
        assert shown[label]["tasks"].startswith(f"{n}/{len(ids)}")
        if spread is not None:
            low, high = max(mean - 1.96 * spread, 0), min(mean + 1.96 * spread, 1)
            assert same(shown[label]["interval"], low, high) and shown[label]["interval"].startswith("≈ ")


@pytest.mark.parametrize(
    ("query", "axis", "value", "suite"),
    [
        ("suite=mlb", "suite", "mlb", "mlb"),
        ("suite=&language=zh", "language", "zh", None),
        ("suite=bridge&language=zh", "language", "zh", "bridge"),
        ("suite=clinicbench&scenario=generation", "scenario", "generation", "clinicbench"),
        ("suite=", "all", "all", None),
    ],
)
def test_a_selection_that_is_a_group_has_the_group_s_score_and_interval(show, data, query, axis, value, suite):
    browser = show(f"leaderboard?{query}")
    shown = leaderboard(browser)
    for label in own(data)[:2]:
        row = group(data, label, axis, value, suite)
        assert same(shown[label]["score"], row["score"]) and "≈" not in shown[label]["interval"]
        assert same(shown[label]["interval"], row["low"], row["high"])
        assert shown[label]["tasks"] == f"{row['tasks']}/{row['tasks']}"
    # MLB averages dimensions, ClinicBench leaves two sets out, and the page says so
    said = "averaged in the suite’s own way" in browser.js("document.querySelector('main').textContent")
    assert said == (value in ("mlb", "generation"))


def test_published_and_own_models_are_averaged_over_the_same_tasks(show, data):
    shown = leaderboard(show("leaderboard?suite=clinicbench&scenario=generation"))
    ids = [
        item["id"] for item in data["datasets"]
        if item["scenario"] == "generation" and item["counted"] and not item["twin_of"]
    ]  # fmt: skip
    assert 0 < len(ids) < len(chosen(data, scenario=["generation"]))
    for label, (mean, n, _) in expected(data, ids).items():
        assert same(shown[label]["score"], mean) and shown[label]["tasks"].startswith(f"{n}/{len(ids)}")


def test_averages_that_are_published_alone_stand_where_they_fit_and_nowhere_else(show, data):
    models = {entry["label"] for entry in data["entries"] if entry.get("suite") == "mlb"}
    shown = leaderboard(show("leaderboard?suite=mlb"))
    for label in models:
        printed = group(data, label, "suite", "mlb", "mlb")["score"]
        assert same(shown[label]["score"], printed) and shown[label]["tasks"] == "as published"
    assert models & set(leaderboard(show("leaderboard?suite=mlb&dimension=medse"))) == models
    assert not models & set(leaderboard(show("leaderboard?suite=mlb&stage=research")))


def test_only_tasks_that_all_have(show, data):
    browser = show("leaderboard?kind=own")
    browser.js("document.querySelector('button.small').click()")
    assert "common=1" in browser.js("location.hash")
    rows, labels = found_in(data), own(data)
    ids = [
        name for name in chosen(data, suite=["bridge"]) if all((label, "zero_shot", name) in rows for label in labels)
    ]
    shown = leaderboard(browser)
    assert 0 < len(ids) < 87
    for label, (mean, _, _) in expected(data, ids).items():
        if label in labels:
            assert same(shown[label]["score"], mean) and shown[label]["tasks"] == f"{len(ids)}/{len(ids)}"
            assert shown[label]["place"]


def test_strategies_are_never_mixed(show, data):
    browser = show("leaderboard?strategy=&kind=own&suite=medhelm")
    lines = browser.js(
        "[...document.querySelectorAll('main tbody tr')].map((line) => [line.cells[2].textContent, "
        "line.cells[0].textContent, line.querySelector('.name').textContent, line.querySelector('.score').textContent])"
    )
    assert len(lines) == 9
    for strategy, title in data["strategies"]:
        means = expected(data, chosen(data, suite=["medhelm"]), strategy)
        found = {label: (place, score) for name, place, label, score in lines if name == title}
        assert set(found) == set(own(data))
        assert all(same(score, means[label][0]) for label, (_, score) in found.items())
        assert sorted(place for place, _ in found.values()) == ["1", "2", "3"]


def test_the_heat_map_s_table_and_a_task_s_page_show_each_score(show, data):
    rows = found_in(data)
    browser = show("heatmap?kind=own&suite=mlb")
    browser.js("document.querySelector('.as-table summary').click()")
    browser.wait("!!document.querySelector('table.values')")
    names = texts(browser, "table.values thead th")[1:]
    by_name = {item["name"]: item["id"] for item in data["datasets"] if item["suite"] == "mlb"}
    for line in browser.js(
        "[...document.querySelectorAll('table.values tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))"
    ):
        assert same(" ".join(line[1:]), *(rows[line[0], "zero_shot", by_name[name]]["score"] for name in names))
    go(browser, "task/mlb_cmeee?on=cot")
    shown = leaderboard(browser)
    assert set(shown) == set(own(data))
    for label, line in shown.items():
        row = rows[label, "cot", "mlb_cmeee"]
        assert same(line["score"], row["score"]) and same(line["interval"], row["low"], row["high"])


def test_profiles_strategies_validity_and_coverage_show_what_the_data_say(show, data):
    first = own(data)[0]
    browser = show("profile?axis=language&models=" + "zero_shot%253A" + first.replace("/", "%252F"))
    shown = dict(
        browser.js("[...document.querySelectorAll('.dots tbody tr')].map((tr) => [tr.querySelector('a').textContent, tr.cells[2].textContent])")
    )  # fmt: skip
    titles = dict(next(axis["values"] for axis in data["axes"] if axis["key"] == "language"))
    assert len(shown) == 9
    for value, title in titles.items():
        row = group(data, first, "language", value, "bridge")
        assert same(shown[title], row["score"], row["low"], row["high"])

    go(browser, "strategies?suite=medhelm&kind=own")
    ids = chosen(data, suite=["medhelm"])
    zero, cot = expected(data, ids), expected(data, ids, "cot")
    deltas = dict(
        browser.js("[...document.querySelectorAll('.dots tbody tr')].map((tr) => [tr.querySelector('.name').textContent, tr.cells[2].querySelector('b').textContent])")
    )  # fmt: skip
    for label in own(data):
        assert same(deltas[label], cot[label][0] - zero[label][0])

    go(browser, "validity?suite=medhelm")
    rows = found_in(data)
    shares = dict(browser.js("[...document.querySelector('main table').tBodies[0].rows].map((tr) => [tr.querySelector('.name').textContent, tr.cells[1].textContent])"))  # fmt: skip
    for label in own(data):
        valid = [rows[label, "zero_shot", name]["valid"] for name in ids]
        assert shares[label] == f"{100 * sum(valid) / len(valid):.1f} %"

    go(browser, "coverage?suite=clinicbench")
    counts = dict(browser.js("[...document.querySelector('main table').tBodies[0].rows].map((tr) => [tr.querySelector('.name').textContent, [...tr.cells].slice(1).map((td) => td.textContent)])"))  # fmt: skip
    assert counts[first][0] == "17" and counts[own(data)[2]] == ["0", "0", "0", "0", "0", "1", "16"]
    assert "failed: out of memory" in browser.js("document.querySelector('.reasons').textContent")


def test_pairs_show_differences_intervals_and_p_values(show, data):
    browser = show("pairs?suite=medhelm")
    [comparison] = [
        item for item in data["comparisons"] if (item["suite"], item["strategy"]) == ("medhelm", "zero_shot")
    ]
    labels = [data["entries"][place]["label"] for place in comparison["entries"]]
    browser.js("document.querySelector('.as-table summary').click()")
    browser.wait("!!document.querySelector('table.values')")
    names = texts(browser, "table.values thead th")[1:]
    ranks = [comparison["rank"][labels.index(name)] for name in names]
    assert len(names) == 3 and ranks == sorted(ranks)
    cells = browser.js("[...document.querySelectorAll('table.values tbody tr')].map((tr) => [...tr.cells].slice(1).map((td) => td.textContent))")  # fmt: skip
    for row, one in enumerate(names):
        for column, other in enumerate(names):
            if one != other:
                difference = comparison["difference"][labels.index(one)][labels.index(other)]
                assert same(cells[row][column], difference)
    # a click says all that is known of a pair
    browser.js("document.querySelector('.field').focus()")
    browser.press("ArrowRight", "Enter")
    row, column = labels.index(names[0]), labels.index(names[1])
    detail = browser.js("document.querySelector('.detail').textContent")
    holm = comparison["p_holm"][row][column]
    assert f"{names[0]} against {names[1]}" in detail
    assert f"Holm {'<0.001' if holm < 0.001 else f'{holm:.3f}'}" in detail
    browser.click("[data-key='matrix=wins']")
    assert "matrix=wins" in browser.js("location.hash")
    assert browser.js("document.querySelector('.row-names').children.length") == len(comparison["entries"])


# ---------------------------------------------------------------------- using it


def test_sorting_searching_and_filtering_by_hand_end_up_in_the_address(show, data):
    browser = show("leaderboard")
    browser.click("[data-key='sort-leaderboard model']")
    shown = [name for name, row in leaderboard(browser).items() if not row["section"]]
    order = browser.js(f"{json.dumps(shown)}.slice().sort((a, b) => a.localeCompare(b, 'en', {{numeric: true, sensitivity: 'base'}}))")  # fmt: skip
    assert shown == order and len(shown) == 7
    assert browser.js("document.querySelector('th[aria-sort]').textContent").startswith("Model")
    browser.click("[data-key='sort-leaderboard model']")
    assert [name for name, row in leaderboard(browser).items() if not row["section"]] == shown[::-1]

    browser.click("#search")
    browser.press(*"llama")
    assert all("llama" in name.lower() for name in leaderboard(browser)) and len(leaderboard(browser)) > 1
    assert browser.js("document.activeElement.id") == "search"

    browser.click(".pills input[value=medhelm]")
    browser.click(".pills input[value=bridge]")
    browser.click("[data-filter=access] summary")
    browser.click("[data-filter=access] input[value=open]")
    address = browser.js("location.hash")
    assert "suite=medhelm" in address and "access=open" in address and "q=llama" in address
    n = len(chosen(data, suite=["medhelm"], access=["open"]))
    assert browser.js("document.querySelector('#filters .selection').textContent").endswith(f"{n} tasks")

    before = leaderboard(browser)
    browser.reload()
    assert leaderboard(browser) == before and browser.js("document.getElementById('search').value") == "llama"
    browser.js("document.getElementById('reset').click()")
    assert browser.js("location.hash") == "#leaderboard?sort-leaderboard=-model"


def test_counts_beside_a_filter_say_what_it_would_give(show, data):
    browser = show("leaderboard?suite=bridge&task_type=summarization")
    browser.click("[data-filter=language] summary")
    shown = browser.js("Object.fromEntries([...document.querySelectorAll('[data-filter=language] label')].map((label) => [label.querySelector('input').value, label.querySelector('.n').textContent]))")  # fmt: skip
    assert len(shown) == 9
    for value, n in shown.items():
        assert n == str(len(chosen(data, suite=["bridge"], task_type=["summarization"], language=[value])))


def test_everything_can_be_reached_with_the_keyboard(show):
    browser = show("leaderboard?kind=own")
    browser.press("Tab")
    assert browser.js("document.activeElement.id") == "skip"
    browser.press("Enter")
    assert browser.js("document.activeElement.id") == "main" and "leaderboard" in browser.js("location.hash")

    # a sorted column keeps the focus, though it is drawn anew
    browser.js("document.querySelector('[data-key=\"sort-leaderboard valid\"]').focus()")
    browser.press("Enter")
    assert browser.js("document.activeElement.dataset.key") == "sort-leaderboard valid"
    assert browser.js("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"

    # a menu opens, its boxes take a space, Escape closes it and gives the focus back
    browser.js("document.querySelector('[data-filter=language] summary').focus()")
    browser.press("Enter", "Tab", " ")
    assert "language=en" in browser.js("location.hash")
    browser.press("Escape")
    assert not browser.js("document.querySelector('[data-filter=language]').open")
    assert browser.js("document.activeElement.matches('[data-filter=language] summary')")

    # the heat map has a cursor, which reads the cell and opens the task
    go(browser, "heatmap?kind=own&suite=mlb")
    browser.js("document.querySelector('.field').focus()")
    browser.press("ArrowDown", "ArrowRight", "ArrowRight")
    said = browser.js("document.querySelector('.grid-frame .spoken').textContent")
    assert re.search(r"^0\.\d{3} \[", said) and not browser.js("document.querySelector('.cursor').hidden")
    name = texts(browser, ".column-name")[2]
    assert name in said and not browser.js("document.getElementById('tip').hidden")
    browser.press("Enter")
    browser.wait("location.hash.startsWith('#task/')")
    browser.wait(f"document.querySelector('main h2').textContent.endsWith({json.dumps(name)})")


def test_from_a_model_to_a_task_to_its_examples_and_back(show, data):
    browser = show("leaderboard?kind=own")
    first = leaderboard(browser)
    label = next(iter(first))
    browser.click("main tbody .name")
    browser.wait("location.hash.startsWith('#model/')")
    assert label in browser.js("document.querySelector('main h2').textContent")
    browser.js("[...document.querySelectorAll('main a')].find((a) => a.textContent === 'MIE').click()")
    browser.wait("location.hash.startsWith('#task/bridge_mie')")
    for title in ("Scores", "Prompts", "How it is scored", "Examples"):
        assert title in texts(browser, "main h3")
    [right, wrong] = data["tasks"]["bridge_mie"]["examples"]
    shown = texts(browser, ".example")
    assert right["response"] in shown[0] and "score 1.000" in shown[0]
    assert wrong["response"] in shown[1] and "score 0.000" in shown[1] and "气促" in shown[1]
    mark = browser.js("document.querySelector('main mark').textContent")
    assert mark == data["tasks"]["bridge_mie"]["prompts"]["zero_shot"]["strategy_line"]
    browser.js("history.back()")
    browser.wait("location.hash.startsWith('#model/')")
    browser.js("history.back()")
    browser.wait("location.hash.startsWith('#leaderboard')")
    assert leaderboard(browser) == first


def test_two_entries_of_one_name_are_told_apart(show, folder, data):
    data = deepcopy(data)
    bridge, mlb = (next(entry for entry in data["entries"] if entry["suite"] == suite) for suite in ("bridge", "mlb"))
    mlb["label"] = bridge["label"]
    file = folder / "namesakes.html"
    file.write_text(render(data), encoding="utf-8")
    browser = show("leaderboard?suite=&language=zh", file=file)
    browser.js("[...document.querySelectorAll('.name')].find((a) => a.textContent.includes('(published), BRIDGE')).click()")
    browser.wait("location.hash.startsWith('#model/')")
    assert "published results of BRIDGE" in browser.js("document.querySelector('.lead').textContent")
    go(browser, browser.js(f"address('model', {json.dumps(mlb['label'])} + ', MLB')"))
    assert "published results of MLB" in browser.js("document.querySelector('.lead').textContent")


def test_texts_of_gated_data_are_said_to_be_left_out(show, data):
    gated = next(item["id"] for item in data["datasets"] if item["access"] == "gated")
    assert "Text left out: gated data" in show(f"task/{gated}").js("document.querySelector('main').textContent")


# ---------------------------------------------------------------------- what cannot be trusted or compared


def test_texts_from_the_data_stay_texts(show, folder, data):
    data = deepcopy(data)
    data["title"] = data["entries"][0]["label"] = data["entries"][0]["model"] = HOSTILE
    data["entries"][0].update(notes=[HOSTILE], details={HOSTILE: HOSTILE}, settings={HOSTILE: HOSTILE}, price=HOSTILE)
    data["differences"], data["faults"] = [{"text": HOSTILE}], [{"where": HOSTILE, "what": HOSTILE, "remedy": HOSTILE}]
    data["axes"][1]["values"][0][1] = HOSTILE
    place = next(place for place, item in enumerate(data["datasets"]) if item["id"] == "bridge_mie")
    data["datasets"][place].update(name=HOSTILE, summary=HOSTILE, url="javascript:window.hit=1", licence=HOSTILE)
    data["coverage"]["reasons"] = [HOSTILE for _ in data["coverage"]["reasons"]]
    page = data["tasks"]["bridge_mie"]
    page["rule"] = page["note"] = HOSTILE
    page["prompts"]["zero_shot"] = {"instruction": f"{HOSTILE} x", "input": HOSTILE, "strategy_line": HOSTILE}
    page["examples"] = [dict.fromkeys(("input", "response", "answer", "gold", "document"), HOSTILE) | {"entry": 0, "strategy": "zero_shot", "score": None}]  # fmt: skip
    file = folder / "hostile.html"
    file.write_text(render(data), encoding="utf-8")
    browser = show("overview", file=file)
    for address in (*PARTS, "task/bridge_mie"):
        go(browser, address)
        assert browser.js("document.querySelectorAll('img, main script, [onerror]').length") == 0, address
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    whole = browser.js("document.querySelector('main').textContent")
    assert whole.count(HOSTILE) >= 10
    assert browser.js("[...document.querySelectorAll('a')].every((a) => !/^javascript/i.test(a.getAttribute('href')))")
    go(browser, browser.js("address('model', entries[0].label)"))
    assert HOSTILE in texts(browser, "main h2")[0] and browser.js("document.title").startswith(HOSTILE)
    assert browser.js("window.hit") is None and browser.complaints() == []


def test_synthetic_rows_are_announced_and_never_ranked_beside_real_ones(show, folder, data):
    data = deepcopy(data)
    data["sample"] = data["entries"][0]["sample"] = True
    file = folder / "mixed.html"
    file.write_text(render(data), encoding="utf-8")
    browser = show("leaderboard?kind=own", file=file)
    assert "SAMPLE DATA" in browser.js("document.querySelector('.banner').textContent")
    shown = leaderboard(browser)
    synthetic, real, _ = own(data)
    assert shown[synthetic]["place"] == "" and shown[synthetic]["section"].startswith("SAMPLE")
    assert shown[real]["place"] == "1" and shown[real]["section"] == ""
    for part in ("overview", "leaderboard", "validity", "coverage", "strategies", "task/bridge_mie"):
        go(browser, part)
        lines = f"[...document.querySelectorAll('main tbody tr')].filter((tr) => tr.textContent.includes({json.dumps(synthetic)}))"  # fmt: skip
        assert browser.js(f"{lines}.length > 0 && {lines}.every((tr) => tr.querySelector('.tag.sample'))"), part

    for entry in data["entries"][:3]:
        entry["sample"] = True
    file.write_text(render(data), encoding="utf-8")
    shown = leaderboard(show("leaderboard?kind=own", file=file))
    assert [row["place"] for row in shown.values()] == ["1", "2", ""]
    assert browser.js("document.querySelectorAll('main .tag.sample').length") == 3


# ---------------------------------------------------------------------- how it looks


@pytest.mark.parametrize("width", [375, 768, 1300])
def test_nothing_is_wider_than_the_screen(show, width):
    browser = show("overview", width=width)
    for address in (*PARTS, "task/bridge_mie", "leaderboard?suite=&strategy=", "profile?axis=specialties"):
        go(browser, address)
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), address


def luminance(browser, colour):
    parts = [
        int(part) / 255
        for part in re.findall(r"\d+", browser.js(f"getComputedStyle(document.body).{colour}"))[:3]
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_dark_and_light_follow_the_system_or_one_s_choice(show, browser):
    for dark in (False, True):
        show("leaderboard", dark=dark)
        assert (luminance(browser, "color") > luminance(browser, "backgroundColor")) == dark
    browser.js("document.getElementById('theme').value = 'light'; document.getElementById('theme').dispatchEvent(new Event('change'))")  # fmt: skip
    assert luminance(browser, "backgroundColor") > 0.9
    browser.reload()
    assert luminance(browser, "backgroundColor") > 0.9 and browser.js("document.getElementById('theme').value") == "light"
    browser.js("localStorage.clear()")


@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_enough_contrast(show, dark):
    browser = show("leaderboard", dark=dark)
    ratio = (
        "(one, other) => { const light = (name) => cssColour(name).replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3').match(/../g)"
        " && parse(cssColour(name).replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3')).map((part) => part / 255)"
        ".map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)"
        ".reduce((sum, part, place) => sum + [0.2126, 0.7152, 0.0722][place] * part, 0.05);"
        " return Math.max(light(one), light(other)) / Math.min(light(one), light(other)); }"
    )
    for ink in ("ink", "soft", "accent", "warn", "good", "bad"):
        for ground in ("ground", "panel"):
            assert browser.js(f"({ratio})('{ink}', '{ground}')") >= 4.5, (ink, ground)
    assert browser.js(f"({ratio})('accent', 'on-accent')") >= 4.5
    for series in range(8):
        assert browser.js(f"({ratio})('series-{series}', 'ground')") >= 3


def test_on_paper_all_parts_stand_below_each_other_in_light_colours_without_controls(show, browser):
    show("leaderboard?kind=own", dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.wait("document.querySelectorAll('main > .part').length > 1")
    assert texts(browser, "main h2")[:3] == ["Overview", "Leaderboard", "Heat map"]
    assert browser.js("document.querySelectorAll('main > .part').length") == len(PARTS)
    assert luminance(browser, "backgroundColor") > 0.9
    seen = "[...document.querySelectorAll('button, select, input, nav, #filters')].filter((one) => one.offsetParent && !one.closest('thead'))"  # fmt: skip
    assert browser.js(f"{seen}.length") == 0
    assert browser.js("[...document.querySelectorAll('main details:not(.as-table, .menu)')].every((one) => one.open)")
    assert browser.complaints() == []
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.wait("document.querySelectorAll('main > .part').length === 1")

    go(browser, "task/bridge_mie")
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.wait("[...document.querySelectorAll('main h4')].some((one) => one.textContent === '5-shot')")
    assert browser.js("document.querySelectorAll('main > .part').length") == 1
    assert {"zero-shot", "chain of thought", "5-shot"} <= set(texts(browser, "main h4"))
    browser.call("Emulation.setEmulatedMedia", media="")


def test_a_finger_first_reads_a_cell_of_the_heat_map_and_then_opens_it(show, browser):
    show("heatmap?kind=own&suite=mlb", width=375)
    x, y = browser.js(
        "(() => { const names = document.querySelector('.row-names'); names.scrollIntoView({block: 'center'}); "
        "const box = names.getBoundingClientRect(); return [box.right + 20, box.top + 8]; })()"
    )

    def tap():
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    tap()
    browser.wait("!document.getElementById('tip').hidden")
    assert re.match(r"0\.\d{3} \[", browser.js("document.getElementById('tip').textContent"))
    assert browser.js("location.hash").startswith("#heatmap")
    tap()
    browser.wait("location.hash.startsWith('#task/mlb_')")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
