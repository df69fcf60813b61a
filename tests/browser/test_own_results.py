"""Results of one's own in the page: placed by the core's rules, and nothing of the file is run or sent."""

import json
from dataclasses import replace
from random import Random

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.groups import groups_of
from medtasks_ext.report.standing import standings
from medtasks_ext.results.conditions import comparable, facts, of_the_paper
from medtasks_ext.results.experiments import Experiment
from medtasks_ext.results.published import published_entries
from medtasks_ext.runs.conditions import Judge, Jury, Shots, Wording
from medtasks_lab.site.boards import whole_of
from medtasks_lab.submissions.read import submitted_entry
from tests.browser.chromium import Chromium, find_chromium
from tests.submissions.made import write_submission

HOSTILE = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>'
DRAWN = 1000


@pytest.fixture(scope="module")
def page(tmp_path_factory, published_site):
    """The page for own results, in a browser."""
    if find_chromium() is None:
        pytest.skip("no Chromium here: install the package `chromium`, or name one in MEDTASKS_CHROMIUM")
    folder = tmp_path_factory.mktemp("mine")
    browser = Chromium(folder / "profile", folder / "downloads")
    browser.screen(1440, 900)
    browser.open(published_site / "mine.html")
    yield browser
    browser.close()


@pytest.fixture
def submission(tmp_path):
    """Writes `submission.json` of all of BRIDGE and gives the file."""

    def write(score, **asked):
        write_submission(tmp_path / "in", "Org/Mine-8B", score, **asked)
        return tmp_path / "in" / "Org" / "Mine-8B" / "2026-05-01" / "submission.json"

    return write


def taken(page, give):
    """What the page says of what it is given."""
    page.events.clear()
    page.js("mine = null; show()")
    give()
    page.wait("!!document.querySelector('#placed .refused, #placed .standing')")
    return page.js("document.querySelector('#placed').innerText")


def drop(page, file):
    """Choose a file, and what the page says then."""
    return taken(page, lambda: page.choose_file("#file", file))


def drawn_record(random):
    """A record of conditions, and its task: as the paper asked, with some things changed."""
    datasets = [item for item in registry().datasets.values() if item.of_paper and item.suite.published]
    dataset, strategy = random.choice(datasets), random.choice(["zero_shot", "cot", "five_shot"])
    paper = of_the_paper(dataset, strategy)
    asked, seen = paper.asked, paper.observed
    settings = [("temperature", 0.0), ("temperature", 0.7), ("temperature", "0"), ("do_sample", True),
                ("do_sample", "False"), ("top_p", 0.9), ("top_p", 1), ("repetition_penalty", 1.1),
                ("repetition_penalty", "1.0"), ("until", ["\n"]), ("until", []), ("seed", 7),
                ("unheard_of", 1), ("reasoning_effort", "high"), ("logprobs", 3), ("stop", None)]  # fmt: skip
    arguments = [("dtype", "bfloat16"), ("dtype", "auto"), ("quantization", "awq"), ("unheard_of", "x"),
                 ("revision", "main"), ("revision", "abc"), ("truncate", True), ("max_model_len", 4096),
                 ("chat_template_args", {"enable_thinking": False}), ("chat_template_kwargs", "{}"),
                 ("add_bos_token", "true"), ("tensor_parallel_size", 2)]  # fmt: skip

    def some(values):
        return dict(random.sample(values, random.randint(0, 3)))

    n, words, jury = seen.n or 100, ["official", "own", None], Jury((Judge("gpt-5"),), None, "p", "own", "h")
    strategies = ["zero_shot", "cot", "five_shot", "cot_3_shot"]
    changes = {
        "version": lambda: replace(asked, version=random.choice([dataset.version, "999-Z"])),
        "wording": lambda: replace(asked, wording=Wording(random.choice(words), hash="p")),
        "rows": lambda: replace(
            asked,
            rows=replace(
                asked.rows,
                source=random.choice(["suite", "rebuilt", "synthetic", None]),
                hash=random.choice([None, "h"]),
                differs=random.choice([None, True, False]),
                documents=random.choice(["all", "first 5", None]),
            ),
        ),
        "shots": lambda: replace(asked, shots=Shots(5, random.choice([None, "s"]))),
        "layout": lambda: replace(
            asked,
            layout=replace(
                asked.layout,
                chat_template=random.choice([True, False, "x", None]),
                system_instruction=random.choice([None, "Be brief."]),
                shots_as_turns=random.choice([True, None]),
                own_template=random.choice([None, "t"]),
                target_delimiter=random.choice([None, " "]),
            ),
        ),
        "budget": lambda: replace(asked, budget=random.choice([None, 64, 4096])),
        "context": lambda: replace(asked, context=random.choice([None, 2048])),
        "decoding": lambda: replace(asked, decoding=random.choice([None, some(settings)])),
        "seed": lambda: replace(asked, seed=random.choice([None, 1])),
        "arguments": lambda: replace(asked, arguments=random.choice([None, some(arguments)])),
        "jury": lambda: replace(asked, jury=random.choice([None, jury])),
        "strategy": lambda: replace(asked, strategy=random.choice(strategies)),
    }  # fmt: skip
    for name in random.sample(sorted(changes), random.randint(0, 4)):
        asked = changes[name]()
    if random.random() < 0.6:
        seen = replace(
            seen,
            n=random.choice([n, n - 1, None]),
            n_here=random.choice([n, n - 2, None]),
            n_held_out=random.choice([None, 0, 2]),
            n_faulty=random.choice([None, 1]),
            answers_cut=random.choice([None, 0, 3]),
            inputs_cut=random.choice([None, 0, 1]),
            shots_dropped=random.choice([None, 0, 2]),
            judged=random.choice([None, 1.0, 0.5]),
            versions=random.choice([(), ({"vllm": "0.32", "torch": "2.9"},)]),
        )
    return dataset, strategy, replace(paper, asked=asked, observed=seen)


def test_a_thousand_drawn_records_are_judged_as_the_core_judges_them(page):
    random, cases, wanted = Random(38), [], []
    for _ in range(DRAWN):
        dataset, strategy, record = drawn_record(random)
        n = record.observed.n or 0
        item = Experiment(dataset.task(strategy), dataset, record, {"score": 0.5}, {}, n)
        asked = dataset.metadata.published_strategy if strategy == "zero_shot" else strategy
        found = comparable(facts(record), facts(of_the_paper(dataset, asked)))
        moving = list(dict.fromkeys(one.condition for one in found.moving))
        wanted.append([found.grade, moving, item.coverage.whole])
        cases.append([dataset.id, strategy, n, record.record()])
    script = f"""{json.dumps(cases)}.map(([dataset, strategy, n, record]) => {{
        const [, , , ways, room] = site.datasets[dataset];
        const paper = site.ways[ways[strategy]];
        const {{ grade, moving }} = comparable(site.table, factsOf(site.table, record, room), paper);
        return [grade, moving, isWhole(record, n)];
    }})"""
    found = page.js(script)
    unlike = [
        (case, mine, theirs)
        for case, mine, theirs in zip(cases, found, wanted, strict=True)
        if mine != theirs
    ]
    assert not unlike, unlike[0]
    assert len({json.dumps(item) for item in wanted}) > 100  # the draw reaches many cases


def test_scores_are_cut_off_as_pages_cut_them_off(page):
    random = Random(1)
    scores = [random.random() for _ in range(500)] + [place / 10_000 for place in range(0, 10_001, 7)]
    assert page.js(f"{json.dumps(scores)}.map(cutOff)") == [whole_of(score) for score in scores]


@pytest.mark.parametrize("score", [0.05, 0.3777, 0.43, 0.6])
def test_a_whole_suite_has_the_rank_that_its_mean_has_among_published_ones(page, submission, score):
    said = drop(page, submission(score))
    means = []
    for entry in published_entries(registry()):
        if entry.paper == "bridge":
            scores = [one.score for one in entry.experiments.values() if one.strategy == "zero_shot"]
            means.append(whole_of(sum(scores) / 87))
    rank = 1 + sum(mean > whole_of(score) for mean in means)
    assert f"{score:.3f}: rank {rank} of 99" in said
    assert page.requests() == [] and page.complaints() == []


@pytest.mark.parametrize("width", [1440, 420])
def test_own_results_stand_within_the_first_screen(page, submission, width):
    page.screen(width, 900, phone=width < 600)
    drop(page, submission(0.38))
    assert page.js("document.querySelector('#placed tr.own').getBoundingClientRect().bottom") < 900
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    page.screen(1440, 900)


@pytest.mark.parametrize("above", [0, 1, 2, 3])
def test_a_file_and_folders_around_it_can_be_dropped_or_chosen(page, submission, above):
    """The page is a file itself, to which browsers open less than to a page of a server."""
    file = submission(0.4)
    (file.parent.parent / "notes").mkdir(exist_ok=True)
    (file.parent.parent / "notes" / "other.json").write_text("{}")
    given = file if above == 0 else file.parents[above - 1]
    by_hand = drop(page, file)
    assert "rank" in by_hand
    assert taken(page, lambda: page.drop(".drop", given)) == by_hand
    if above:
        assert taken(page, lambda: page.choose_file("#folder", given)) == by_hand
    assert page.requests() == [] and page.complaints() == []


def test_a_folder_without_results_gets_one_line(page, tmp_path):
    (tmp_path / "thesis" / "chapter").mkdir(parents=True)
    (tmp_path / "thesis" / "chapter" / "one.txt").write_text("text")
    said = taken(page, lambda: page.drop(".drop", tmp_path / "thesis"))
    assert said.strip() == "thesis holds no submission.json and no results.json: no rank"
    assert page.complaints() == []


PARTS = 40


@pytest.mark.parametrize("suite", ["bridge", "medhelm"])
def test_a_part_of_a_suite_has_the_rank_that_the_core_gives_on_these_tasks(page, tmp_path, suite):
    """For drawn parts: the published models' means on them, by the core's weights; and its standings, where
    the core carries a part over to no whole suite."""
    random, tasks = Random(3), registry()
    [group] = [item for item in groups_of(tasks) if (item.axis, item.suite) == ("suite", suite)]
    published = [entry for entry in published_entries(tasks) if entry.paper == suite]
    scores = {
        entry.label: {
            one.dataset.id: one.score for one in entry.experiments.values() if one.strategy == "zero_shot"
        }
        for entry in published
    }
    whole = write_submission(tmp_path / "in", "Org/Mine-8B", 0.5, suite=suite)
    ranks = 0
    for _ in range(PARTS):
        names = random.sample(sorted(whole.tasks), random.randint(3, 12))
        level = random.uniform(0.1, 0.9)
        some = {
            name: whole.tasks[name].model_copy(update={"score": level + random.uniform(-0.1, 0.1)})
            for name in names
        }
        record = whole.model_copy(update={"tasks": some})
        record.write(tmp_path)
        content = (tmp_path / "submission.json").read_text()
        places = page.js(f"readMine('submission.json', {json.dumps(content)}).places")
        entry = submitted_entry(record, tmp_path, tasks)
        mine = {
            one.dataset.id: one.score for one in entry.experiments.values() if one.dataset.id in group.counted
        }
        if sum(one.n for one in entry.experiments.values()) < 100:
            continue
        weights = group.weights(frozenset(mine))
        rivals = [
            sum(weight * found[name] for name, weight in weights.items())
            for found in scores.values()
            if weights.keys() <= found.keys()
        ]
        own = sum(weight * mine[name] for name, weight in weights.items())
        [place] = places
        assert place["on"] == pytest.approx(own, abs=1e-9)
        assert (place["rank"], place["of"]) == (
            1 + sum(rival > own + 1e-12 for rival in rivals),
            len(rivals) + 1,
        )
        [row] = standings([*published, entry], tasks, ["zero_shot"]).to_pylist()
        if row["equivalent"] is None and row["ranked"]:
            assert row["rank"] == place["rank"]
            ranks += 1
    assert ranks or suite == "bridge"


def test_other_conditions_have_no_rank_and_says_why(page, submission):
    said = drop(page, submission(0.9, wording="own", prompt="p"))
    assert "no rank" in said and "wording in 87" in said
    assert page.js("document.querySelector('#placed table')") is None


def test_a_part_of_a_suite_is_placed_on_its_tasks_alone(page, submission):
    assert "on these tasks alone" in drop(page, submission(0.5, first=10))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("{", "is no JSON, or not whole"),
        ("[1]", "is no results file of medtasks"),
        ('{"score": 1}', "is no results file of medtasks"),
        ('{"results": {}, "configs": {}}', "has no record of conditions"),
        ('{"schema": 99, "tasks": {}, "model": "x"}', "version 99, and this page reads 3"),
        ('{"schema": 3, "tasks": {"bridge_mie": {"score": 1, "n": 2}}}', "bridge_mie has no record"),
        (
            '{"schema": 3, "tasks": {"bridge_mie": {"score": 1, "n": 2, "conditions": {"schema": 9}}}}',
            "conditions of version 9",
        ),
        ('{"schema": 3, "tasks": {"__proto__": {"score": 1}, "constructor": 2}}', "holds no task"),
        ('{"schema": 3, "tasks": {"bridge_mie": null}}', "does not hold what"),
        (json.dumps({"schema": HOSTILE, "tasks": {}}), "is a submission of version"),
    ],
)
def test_a_file_that_cannot_be_placed_gets_one_line(page, tmp_path, content, line):
    file = tmp_path / "results.json"
    file.write_text(content)
    said = drop(page, file)
    assert line in said and "\n" not in said.strip()
    assert page.complaints() == [] and page.requests() == []


def test_hostile_names_stay_text(page, submission, tmp_path):
    content = json.loads(submission(0.4).read_text())
    content["model"] = HOSTILE
    file = tmp_path / "submission.json"
    file.write_text(json.dumps(content))
    said = drop(page, file)
    assert "<script>" in said and page.js("window.hit") is None
    assert page.js("document.querySelectorAll('#placed img, #placed script').length") == 0
