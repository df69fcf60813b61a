"""The leaderboard of a thousand submissions beside all published models.

The submissions are invented, say so, and lie in a temporary folder: their scores are drawn around those that
the suites' papers print. A third was asked as the papers asked, the others in own words, with another budget,
on a part of the tasks or with three strategies. The site reads their records alone.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset
    from medtasks_lab.submissions.record import TaskResult

SUBMISSIONS = 1000
SECONDS, FRONT_MEGABYTES = 60, 1.0
_KINDS = ("as the paper", "own words", "long budget", "a part", "as the paper", "three strategies")


def run(quick: bool) -> Iterator[Row]:
    n = SUBMISSIONS // 20 if quick else SUBMISSIONS
    with tempfile.TemporaryDirectory() as folder:
        made = fresh("leaderboard", "make", folder=folder, n=n, timeout=1800)
        done = fresh("leaderboard", "build", folder=folder, timeout=600)
    what = f"site of {n:,} submissions, {made['experiments']:,} scores, beside all published models"
    figures = f"{done['seconds']:.1f} s of processor time ({done['peak']:.2f} GB)"
    yield Row(what, figures, f"under {SECONDS} s", done["seconds"] < SECONDS)
    yield Row(
        "  its front page",
        f"{done['front']:.2f} MB",
        f"under {FRONT_MEGABYTES:g} MB",
        done["front"] < FRONT_MEGABYTES,
    )
    yield Row("  all its files", f"{done['all']:.0f} MB in {done['files']:,} files", "", True)


def build(folder: str) -> dict[str, float]:
    """`medtasks site` over all of them."""
    from medtasks_lab.cli.site import site

    out = Path(folder, "site")
    site(str(out), str(Path(folder, "submissions")))
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return {
        "seconds": time.process_time(),
        "peak": peak_gigabytes(),
        "front": (out / "index.html").stat().st_size / 1e6,
        "all": sum(sizes) / 1e6,
        "files": len(sizes),
    }


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
    from dataclasses import replace

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
