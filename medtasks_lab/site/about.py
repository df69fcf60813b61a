"""What the page about the leaderboard shows: how one score comes about, with figures of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_lab.site.boards import interval_of, whole_of
from medtasks_lab.site.datasets import sample_prompt

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_lab.site.boards import Scores

#: Characters of the prompt and of its answer that are quoted.
_QUOTED = 420


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
