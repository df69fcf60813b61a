"""Where own results stand among published models: on the tasks that they have, and that were asked alike.

Nothing is claimed from fewer than three such tasks or 100 documents, and no side of the middle by an interval
that holds it. A rank on some of a suite's tasks is one on these alone, and says so. What stands here as words
is what terminal, page, card and site say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.conditions import State, confirmed_words, counted
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.stats.intervals import of_tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: Tasks that were asked alike, and documents of them, below which nothing is claimed.
FEWEST_TASKS, FEWEST_DOCUMENTS = 3, 100
#: Share of the ranks over which an interval may reach; beyond, there is no rank.
_WIDEST = 1 / 3


def standings(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> pa.Table:
    """The frame `standings`: each own entry, suite and strategy in which it has scores."""
    of_suite = {group.suite: group for group in groups_of(tasks) if group.axis == "suite"}
    own = [entry for entry in entries if entry.kind != "published" and not entry.sample]
    printed = [
        (suite, strategy, _scores(entries, suite, strategy))
        for suite in tasks.suites.values()
        for strategy in strategies
        if own and suite.published
    ]
    found = [_standing(entry, of_suite[place[0].id], *place) for entry in own for place in printed]
    return table_of("standings", filter(None, found))


def ranks_of(rows: Iterable[Json], table: pa.Table) -> None:
    """Give own rows of groups the rank of their standing among published models, or none."""
    known = {(row["entry"], row["suite"], row["strategy"]): row for row in table.to_pylist() if row["rivals"]}
    for row in rows:
        found = known.get((row["entry"], row["suite"], row["strategy"]))
        if found and not found["ranked"]:
            row["rank"] = row["rank_of"] = None
        elif found and row["axis"] == "suite":
            row |= {name: found[name] for name in ("rank", "rank_of")}


def _scores(
    entries: Sequence[Entry], suite: Suite, strategy: str
) -> list[tuple[Entry, dict[str, float | None]]]:
    """The published models of a suite, and their scores by dataset."""
    return [
        (entry, {of.dataset.id: of.score for of in entry.experiments.values() if of.strategy == strategy})
        for entry in entries
        if entry.paper == suite.id
    ]


def _standing(
    entry: Entry,
    group: Group,
    suite: Suite,
    strategy: str,
    printed: Sequence[tuple[Entry, dict[str, float | None]]],
) -> Json | None:
    """The row of one entry in a suite with one strategy; None where it has no score there."""
    own = {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None and item.dataset.id in group.counted
    }
    if not own:
        return None
    alike = [name for name, item in own.items() if item.may_stand_beside]
    names = alike or [*own]  # where nothing was asked alike, the score says nothing of places
    items, weight = [own[name] for name in names], _weights(group, names)
    scores = np.array([item.score for item in items], dtype=float)
    intervals = [item.intervals.get("score") for item in items]
    interval = of_tasks(weight, scores, intervals, [item.n for item in items])
    beside = [(rival, [of.get(name) for name in names]) for rival, of in printed]
    beside = [(rival, values) for rival, values in beside if None not in values]
    means = np.array([values for _, values in beside], dtype=float).reshape(len(beside), len(names)) @ weight
    rivals = sorted(zip((rival for rival, _ in beside), means.tolist(), strict=True), key=lambda one: -one[1])
    states = counted(item.confirmed.state for item in own.values())
    row: Json = {
        "entry": entry.label,
        "suite": suite.id,
        "strategy": strategy,
        "score": float(_weights(group, [*own]) @ [item.score or 0.0 for item in own.values()]),
        "tasks": len(own),
        "of_suite": group.n_tasks,
        "official": sum(item.conditions.wording == "official" for item in own.values()),
        **{state: states.get(state, 0) for state in get_args(State)},
        "comparable": len(alike),
        "documents_comparable": sum(item.n for item in items) if alike else 0,
        "score_comparable": float(weight @ scores),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "rivals": [(rival.label, score) for rival, score in rivals],
        "rank_of": len(rivals) + 1,
        **{"rank": None, "rank_range": None},
        "reasons": _reasons(own.values()),
    }
    if interval and _enough(row):
        ends = (interval.high, interval.low, row["score_comparable"])
        first, last, rank = (1 + sum(score > end for _, score in rivals) for end in ends)
        if last - first + 1 <= _WIDEST * row["rank_of"]:
            row |= {"rank": rank, "rank_range": (first, last)}
    row["ranked"] = row["rank"] is not None
    claimed = sum(own[name].confirmed.state == "claimed" for name in alike)
    row["sentence"] = _sentence(row, suite.title, claimed)
    mine = model_id(entry)
    same = [(rival, score) for rival, score in rivals if mine is not None and model_id(rival) == mine]
    row["remarks"] = [*_remarks(row, suite.title, [f"{score:.2f} ({_called(one)})" for one, score in same])]
    return row


def _weights(group: Group, names: Sequence[str]) -> Array:
    weights = group.weights(frozenset(names))
    return np.array([weights[name] for name in names])


def _reasons(own: Iterable[Experiment]) -> list[tuple[str, int]]:
    """Condition -> tasks that are unlike the published ones by it."""
    unlike = [(item, dict.fromkeys(one.condition for one in item.unlike_the_paper)) for item in own]
    reasons = Counter(condition for _, conditions in unlike for condition in conditions)
    if n := sum(not conditions and not item.whole for item, conditions in unlike):
        reasons["part of the rows or judgements"] += n
    return reasons.most_common()


def _enough(row: Json) -> bool:
    documents = row["documents_comparable"] >= FEWEST_DOCUMENTS
    return bool(row["rivals"] and row["comparable"] >= FEWEST_TASKS and documents)


def quarters_of(scores: Iterable[float]) -> list[float]:
    """Those at a quarter, the half and three quarters of them: what pictures of places show."""
    found = sorted(scores)
    return [found[int(share * (len(found) - 1) + 0.5)] for share in (0.25, 0.5, 0.75)]


def measured_words(score: float, tasks: int, suite: str, of_suite: int, strategy: str) -> str:
    words = f"{score:.2f} on {tasks} of {suite}'s {tasks_words(of_suite)}"
    return words if strategy == "zero_shot" else f"{words}, {strategy_title(strategy)}"


def place_words(row: Json) -> str:
    """What the sentence says behind the score, and the remarks."""
    return "; ".join([*re.split("[:;] ", row["sentence"], maxsplit=1)[1:], *row["remarks"]])


def range_words(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def tasks_words(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


def _called(entry: Entry) -> str:
    version = version_of(entry)
    return f"{entry.model}, {version}" if version and version not in entry.model else entry.model


def _why(row: Json) -> str:
    return ", ".join(f"{reason} in {count}" for reason, count in row["reasons"])


def _sentence(row: Json, suite: str, claimed: int) -> str:
    """Where it stands; `claimed` of the tasks that were asked alike rest on what nobody has confirmed."""
    n, comparable = len(row["rivals"]), row["comparable"]
    words = measured_words(row["score"], row["tasks"], suite, row["of_suite"], row["strategy"])
    if not n:
        return words
    if not comparable:
        return f"{words}; not ranked among {n} published models: other conditions ({_why(row)})"
    if not _enough(row):
        return (
            f"{words}; no rank yet: at least {FEWEST_TASKS} tasks with {FEWEST_DOCUMENTS} documents must be "
            f"under the conditions of the published models, and {tasks_words(comparable)} with "
            f"{row['documents_comparable']:,} documents are"
        )
    if comparable < row["tasks"]:
        words += (
            f"; {row['score_comparable']:.2f} on the {comparable} under the conditions of the published "
            "models"
        )
    if not row["ranked"]:
        return f"{words}: too little for a rank among {n} published models"
    words += f": rank {range_words(*row['rank_range'])} of {n + 1}"
    words += " on only these tasks" if comparable < row["of_suite"] else ""
    middle = float(np.median([score for _, score in row["rivals"]]))
    words += ", above the middle" if row["low"] > middle else ""
    words += ", below the middle" if row["high"] < middle else ""
    if not claimed:
        return words
    some = "" if claimed == comparable else f" in {claimed} of these {comparable} tasks"
    return f"{words}, on data or prompts that nobody has confirmed{some}"


def _remarks(row: Json, suite: str, same: Sequence[str]) -> Iterator[str]:
    """What else is to know; `same` is what the paper prints of the same model, by the registry of models."""
    if _enough(row) and not row["ranked"] and row["low"] is not None:
        yield "the error reaches over more than a third of the published models"
    if same:
        yield f"{suite} prints this model itself with {', '.join(same)}"
    if row["rivals"]:
        yield confirmed_words({state: row[state] for state in get_args(State)}, row["tasks"])
    if row["comparable"] and row["reasons"]:
        left_out = tasks_words(row["tasks"] - row["comparable"])
        yield f"{left_out} left out here, under other conditions: {_why(row)}"
