"""Where own results stand among published models: on the tasks that they have, and that were asked alike.

Nothing is claimed from fewer than three such tasks or 100 documents, and no side of the middle by an interval
that holds it. A rank on some of a suite's tasks is one on these alone, and says so. What stands here as words
is what terminal, page, card and site say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.groups import Group, GroupScore, groups_of
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


# ---------------------------------------------------------------------- figures


class _Field(NamedTuple):
    """The published models that have scores of a suite with one strategy."""

    suite: Suite
    strategy: str
    group: Group  # of the whole suite
    entries: list[Entry]
    columns: dict[str, int]  # dataset -> its column in `scores`
    scores: Array  # (models, datasets), NaN where one has none

    def on(self, names: Sequence[str]) -> tuple[list[Entry], Array]:
        """The models that have a score on all of these datasets, and these scores, (n, names)."""
        scores = self.scores.take([self.columns[name] for name in names], axis=1)
        there = np.flatnonzero(~np.isnan(scores).any(axis=1))
        return [self.entries[place] for place in there.tolist()], scores[there]


def standings(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> pa.Table:
    """The frame `standings`: each own entry, suite and strategy in which it has scores."""
    own = [entry for entry in entries if entry.kind != "published" and not entry.sample]
    fields = [
        _field(entries, suite, strategy, _group(tasks, suite.id))
        for suite in tasks.suites.values()
        for strategy in strategies
        if own and suite.published
    ]
    rows = (_standing(entry, field) for entry in own for field in fields)
    return table_of("standings", (row for row in rows if row))


def ranks_of(rows: Sequence[GroupScore], table: pa.Table) -> None:
    """Give own entries the rank of their standing among published models, and none where that has none."""
    known = {(row["entry"], row["suite"], row["strategy"]): row for row in table.to_pylist() if row["rivals"]}
    for row in rows:
        found = known.get((row.entry.label, row.group.suite, row.strategy))
        if found and not found["ranked"]:
            row.rank = row.of = None
        elif found and row.group.axis == "suite":
            row.rank, row.of = found["rank"], found["rank_of"]


@lru_cache(maxsize=32)
def _group(tasks: Registry, suite: str) -> Group:
    [own] = [group for group in groups_of(tasks) if group.suite == suite and group.axis == "suite"]
    return own


def _field(entries: Sequence[Entry], suite: Suite, strategy: str, group: Group) -> _Field:
    found, scores = [], []
    for entry in entries:
        items = entry.experiments.values() if entry.paper == suite.id else ()
        own = {item.dataset.id: item.score for item in items if item.strategy == strategy}
        if any(score is not None for score in own.values()):
            found.append(entry)
            scores.append([own.get(name) for name in group.datasets])
    columns = {name: column for column, name in enumerate(group.datasets)}
    table = np.array(scores, dtype=float).reshape(len(found), len(columns))
    return _Field(suite, strategy, group, found, columns, table)


def _standing(entry: Entry, field: _Field) -> Json | None:
    """The row of one entry in a suite with one strategy; None where it has no score there."""
    group = field.group
    own = {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == field.strategy and item.score is not None and item.dataset.id in group.counted
    }
    if not own:
        return None
    alike = [name for name, item in own.items() if item.may_stand_beside]
    names = alike or [*own]  # where nothing was asked alike, the score says nothing of places
    items, weight = [own[name] for name in names], _weights(group, names)
    scores = np.array([item.score for item in items], dtype=float)
    intervals = [item.intervals.get("score") for item in items]
    interval = of_tasks(weight, scores, intervals, [item.n for item in items])
    models, table = field.on(names)
    pairs = zip(models, (table @ weight).tolist(), strict=True)
    rivals = sorted(pairs, key=lambda pair: -pair[1])
    states = counted(item.confirmed.state for item in own.values())
    row: Json = {
        "entry": entry.label,
        "suite": field.suite.id,
        "strategy": field.strategy,
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
        "reasons": _reasons(own.values()),
    }
    row["rank_range"] = _rank_range(row)
    row["ranked"] = row["rank_range"] is not None
    row["rank"] = 1 + sum(score > row["score_comparable"] for _, score in rivals) if row["ranked"] else None
    claimed = sum(own[name].confirmed.state == "claimed" for name in alike)
    row["sentence"] = _sentence(row, field.suite.title, claimed)
    mine = model_id(entry)
    same = [
        f"{score:.2f} ({_called(rival)})"
        for rival, score in rivals
        if mine is not None and model_id(rival) == mine
    ]
    row["remarks"] = [*_remarks(row, field.suite.title, same)]
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
    return bool(
        row["rivals"]
        and row["comparable"] >= FEWEST_TASKS
        and row["documents_comparable"] >= FEWEST_DOCUMENTS
    )


def _rank_range(row: Json) -> tuple[int, int] | None:
    """Best and worst rank within the interval; None where nothing is claimed."""
    ends = ends_of(row)
    if not ends or not _enough(row):
        return None
    low, high = ends
    first, last = (1 + sum(score > end for _, score in row["rivals"]) for end in (high, low))
    return (first, last) if last - first + 1 <= _WIDEST * row["rank_of"] else None


# ---------------------------------------------------------------------- a row in words


def ends_of(row: Json) -> tuple[float, float] | None:
    """The ends of the 95 % interval of `score_comparable`; None where it has none."""
    return None if row["low"] is None else (row["low"], row["high"])


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
    if _enough(row) and not row["ranked"] and ends_of(row):
        yield "the error reaches over more than a third of the published models"
    if same:
        yield f"{suite} prints this model itself with {', '.join(same)}"
    if row["rivals"]:
        yield confirmed_words({state: row[state] for state in get_args(State)}, row["tasks"])
    if row["comparable"] and row["reasons"]:
        left_out = tasks_words(row["tasks"] - row["comparable"])
        yield f"{left_out} left out here, under other conditions: {_why(row)}"
