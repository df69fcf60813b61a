"""The leaderboard of a thousand published models and five hundred submissions.

Both are invented, say so, and lie in a temporary folder: their scores are drawn around those that the suites'
papers print. A third of the submissions was asked as the papers asked, the others in own words, with another
budget, on a part of the tasks or with three strategies. The site reads their records alone. Pages are opened
from disk in Chromium, where one is installed.
"""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from common import ROOT, Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset
    from medtasks_lab.site.gather import BoardLine
    from medtasks_lab.submissions.record import TaskResult

PUBLISHED, SUBMISSIONS = 1000, 500
SECONDS, MEGABYTES, PAGE_MEGABYTES, VIEW_SECONDS = 60, 60, 1.0, 1.0
_KINDS = ("as the paper", "own words", "long budget", "a part", "as the paper", "three strategies")
_OPENED = ("index.html", "bridge.html", "results.html", "datasets.html", "mine.html")
_TIMES = 3


def run(quick: bool) -> Iterator[Row]:
    share = 20 if quick else 1
    with tempfile.TemporaryDirectory() as folder:
        made = fresh("leaderboard", "make", folder=folder, n=SUBMISSIONS // share, timeout=1800)
        done = fresh("leaderboard", "build", folder=folder, models=PUBLISHED // share, timeout=600)
        seen = fresh("leaderboard", "look", folder=folder, timeout=600)
    what = (
        f"site of {done['published']:,} published results and {SUBMISSIONS // share:,} submissions, "
        f"{made['experiments']:,} scores"
    )
    figures = f"{done['seconds']:.1f} s of processor time ({done['peak']:.2f} GB)"
    yield Row(what, figures, f"under {SECONDS} s", done["seconds"] < SECONDS)
    yield Row(
        "  all its files",
        f"{done['all']:.0f} MB in {done['files']:,} files",
        f"under {MEGABYTES} MB",
        done["all"] < MEGABYTES,
    )
    yield Row(
        f"  its largest page, {done['largest']}",
        f"{done['page']:.2f} MB",
        f"under {PAGE_MEGABYTES:g} MB",
        done["page"] < PAGE_MEGABYTES,
    )
    for name, seconds in seen.items():
        limit = f"under {VIEW_SECONDS:g} s"
        yield Row(f"  first view of {name} from disk", f"{seconds:.2f} s", limit, seconds < VIEW_SECONDS)


def build(folder: str, models: int) -> dict[str, float | str]:
    """The site over all of them."""
    from medtasks_ext.collector import collector_paused
    from medtasks_ext.registry import registry
    from medtasks_lab.site.gather import gather_site
    from medtasks_lab.site.write import write_site

    out = Path(folder, "site")
    with collector_paused():
        site = gather_site(registry(), Path(folder, "submissions"))
        site.lines = [*more_published(site.lines, models), *site.lines]
        write_site(out, site)
    sizes = {path.relative_to(out): path.stat().st_size for path in out.rglob("*") if path.is_file()}
    pages = {path: size for path, size in sizes.items() if path.suffix == ".html"}
    largest = max(pages, key=lambda path: pages[path])
    return {
        "seconds": time.process_time(),
        "peak": peak_gigabytes(),
        "published": sum(line.published for line in site.lines),
        "largest": str(largest),
        "page": pages[largest] / 1e6,
        "all": sum(sizes.values()) / 1e6,
        "files": len(sizes),
    }


def more_published(lines: list[BoardLine], n: int) -> Iterator[BoardLine]:
    """Invented models beside the published ones, so that there are `n`; each is near one of these."""
    printed = [line for line in lines if line.published]
    for number in range(n - len(printed)):
        draw, near = random.Random(number), printed[number % len(printed)]
        skill = draw.gauss(0, 0.03)
        scores = {
            name: replace(item, metrics=_moved(item.metrics, skill + draw.gauss(0, 0.01)))
            for name, item in near.entry.experiments.items()
        }
        entry = near.entry.part(scores, f"Invented-{number}")
        entry.model = entry.label
        entry.groups = _moved(entry.groups, skill)
        entry.printed = {}
        yield replace(near, entry=entry)


def _moved(values: dict[str, float], step: float) -> dict[str, float]:
    # papers print three or four digits
    return {name: round(min(1.0, max(0.0, value + step)), 4) for name, value in values.items()}


def look(folder: str) -> dict[str, float]:
    """Page -> seconds to the first view of its content, the median of some; none without Chromium."""
    import sys

    sys.path.insert(0, str(ROOT))
    from tests.browser.chromium import Chromium, find_chromium

    if find_chromium() is None:
        return {}
    browser = Chromium(Path(folder, "profile"), Path(folder, "downloads"))
    browser.screen(1440, 900)
    found: dict[str, float] = {}
    try:
        for name in _OPENED:
            times = []
            for _ in range(_TIMES):
                browser.call("Page.navigate", url="about:blank")
                browser.open(Path(folder, "site", name))
                browser.wait("performance.getEntriesByName('first-contentful-paint').length > 0")
                times.append(
                    browser.js("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
                )
            found[name] = median(times)
    finally:
        browser.close()
    return found


# ---------------------------------------------------------------------- submissions


def make(folder: str, n: int) -> dict[str, int]:
    """Write the records."""
    from medtasks_ext.registry import registry
    from medtasks_ext.results.published import published_entries
    from medtasks_ext.runs.conditions import Layout, RunConditions
    from medtasks_lab.submissions.record import Submission

    tasks = registry()
    printed: dict[str, list[float]] = {}
    for entry in published_entries(tasks):
        for item in entry.experiments.values():
            printed.setdefault(item.task, []).append(item.score or 0.0)
    experiments = 0
    for number in range(n):
        draw, kind = random.Random(number), _KINDS[number % len(_KINDS)]
        strategies = ("zero_shot", "cot", "five_shot") if kind == "three strategies" else ("zero_shot",)
        datasets = [item for item in tasks.datasets.values() if not item.metadata.control_of]
        if kind == "a part":
            chosen = draw.choice(("bridge", "medhelm", "open"))
            datasets = [item for item in datasets if chosen in (item.metadata.suite, item.metadata.access)]
        skill = draw.gauss(0, 0.08)
        found = {
            item.task(strategy): _task(
                item, strategy, kind, printed.get(item.task(strategy), [0.5]), skill, draw
            )
            for item in datasets
            for strategy in strategies
        }
        experiments += len(found)
        model = f"Org-{number % 50}/Model-{number}-{draw.choice((1, 3, 7, 14, 32, 70))}B"
        record = Submission(
            model=model,
            date="2026-05-01",
            about={
                "access": draw.choice(("open", "proprietary")),
                "domain": draw.choice(("general", "medical")),
            },
            invented="for a measurement",
            run=RunConditions(
                engine="vllm",
                layout=Layout(chat_template=True),
                decoding={},
                documents=("all",),
                synthetic=False,
            ),
            versions={"medtasks": "0.1.0", "vllm": f"0.{draw.randint(30, 33)}"},
            tasks=dict(sorted(found.items())),
            heads={},
        )
        place = Path(folder, "submissions", model, record.date)
        place.mkdir(parents=True)
        record.write(place)
    return {"experiments": experiments}


def _task(
    dataset: Dataset, strategy: str, kind: str, printed: list[float], skill: float, draw: random.Random
) -> TaskResult:
    from medtasks_ext.results.conditions import of_the_paper
    from medtasks_ext.results.document_scores import score_statistic
    from medtasks_ext.runs.conditions import Conditions, Layout, Wording
    from medtasks_lab.submissions.record import Spread, TaskResult

    score = min(1.0, max(0.0, draw.choice(printed) + skill + draw.gauss(0, 0.02)))
    n, sd = dataset.n_documents or 100, 0.01
    paper = of_the_paper(
        dataset, dataset.metadata.published_strategy if strategy == "zero_shot" else strategy
    )
    asked = replace(
        paper.asked,
        strategy=strategy,
        version=dataset.version,
        rows=replace(paper.asked.rows, origin="local"),
        layout=Layout(chat_template=True),
        engine="vllm",
        **({"wording": Wording("own", hash="p1")} if kind == "own words" else {}),
        **({"budget": 16_384} if kind == "long budget" else {}),
    )
    seen = replace(paper.observed, n=n, n_here=n, answers_cut=int(kind == "long budget"))
    return TaskResult(
        n=n,
        statistic=score_statistic(dataset).name,
        score=score,
        valid=draw.uniform(0.9, 1.0),
        unclosed=0.0,
        spread=Spread(low=max(0.0, score - 2 * sd), high=min(1.0, score + 2 * sd), sd=sd),
        conditions=Conditions(asked, seen),
    )
