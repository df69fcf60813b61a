"""What the page about the leaderboard shows: what stands on it, and how one score comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_lab.site.boards import interval_of, whole_of
from medtasks_lab.site.datasets import sample_prompt

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_lab.site.boards import Scores

#: Characters of the prompt and of its answer that are quoted.
_QUOTED = 420


def held(scores: Scores) -> list[Json]:
    """Of each suite with scores: title, tasks, published models, submissions, the best published model."""
    strategy, lines = scores.strategies[0], scores.site.lines
    found: list[Json] = []
    for suite, group in scores.whole.items():
        known = [lines[place].published for place, *of in scores.rows if of == [strategy, group]]
        if suite is None or not known:
            continue
        ranks = scores.ranks(strategy, group)
        first = sorted((place for place in ranks if lines[place].published), key=lambda place: ranks[place])[
            :1
        ]
        found.append(
            {
                "title": scores.site.tasks.suites[suite].title,
                "page": f"{suite}.html",
                "tasks": group.n_tasks,
                "published": sum(known),
                "submitted": len(known) - sum(known),
                "best": [
                    [lines[place].title, lines[place].page, whole_of(score)]
                    for place in first
                    if (score := scores.rows[place, strategy, group].score) is not None
                ],
            }
        )
    return found


def example(scores: Scores) -> Json | None:
    """A published model, first on a whole suite, and the first of its datasets with a short sample prompt.

    None where the site has no such model.
    """
    strategy = scores.strategies[0]
    for suite, group in scores.whole.items():
        ranks = scores.ranks(strategy, group) if suite else {}
        for place in sorted(ranks, key=lambda one: ranks[one]):
            line, row = scores.site.lines[place], scores.rows[place, strategy, group]
            if not line.published or row.score is None:
                continue
            for item in line.entry.experiments.values():
                if item.strategy != strategy or item.score is None or item.dataset.id not in group.counted:
                    continue
                found = sample_prompt(scores.site.tasks, item.dataset)
                if found is None or len(found[0]) > _QUOTED or not found[1]:
                    continue
                return {
                    "dataset": [item.dataset.id, item.dataset.metadata.name, item.n, whole_of(item.score)],
                    "prompt": found[0],
                    "gold": found[1][:_QUOTED],
                    "model": [line.title, line.page],
                    "suite": {
                        "title": scores.site.tasks.suites[suite or ""].title,
                        "score": whole_of(row.score),
                        "interval": interval_of(row),
                        "tasks": group.n_tasks,
                        "rank": ranks[place],
                    },
                }
    return None
