"""Which results have a rank among those that papers print, and why others have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from medtasks_ext.results.condition_words import difference_words

if TYPE_CHECKING:
    from medtasks_ext.results.experiments import Experiment
    from medtasks_lab.submissions.trust import Verdict


def why_no_rank(item: Experiment, verdict: Verdict) -> str:
    """Why a result has no rank among published ones, the first reason; empty where it has one.

    Args:
        item: the result.
        verdict: how far its score is trusted.
    """
    if not item.whole:
        missing = item.coverage.words
        return f"on a part of its rows or judgements{f' ({missing})' if missing else ''}"
    if not verdict.is_proven:
        return verdict.words + (f": {verdict.why}" if verdict.why else "")
    if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
        return "of an older version of its task"
    if unlike := item.unlike_the_paper:
        return f"asked otherwise than the suite's paper: {'; '.join(map(difference_words, unlike))}"
    if item.confirmed.state == "said":
        return "nobody has confirmed that its rows and words are the suite's"
    return ""


def no_ranks(items: Iterable[Experiment], verdicts: Mapping[str, Verdict]) -> dict[str, list[str]]:
    """Reason -> tasks that have no rank among published results for it, the commonest reason first.

    Figures that differ from task to task are left out of the reason.
    """
    found: dict[str, list[str]] = {}
    for item in items:
        if why := why_no_rank(item, verdicts[item.task]):
            found.setdefault(why.partition(" (")[0], []).append(item.task)
    return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))
