"""Where own results stand among published models: on the tasks that they have, and that were asked alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.frames import SPREAD, table_of
from medtasks_ext.results.models import facts_of
from medtasks_ext.stats.bootstrap import LEVEL

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.conditions import Difference
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: Models count as of one size up to this factor.
_SIZE = 2.0
#: Billions of parameters in the name of a model: Qwen3-8B, 30B-A3B.
_BILLIONS = re.compile(r"(?<![\d.A-Za-z])(\d+(?:\.\d+)?)[bB](?![A-Za-z])")
_DIGITS = 12  # what differs in later ones is equal: it is rounding
#: strong and weak values that are named
NAMED = 3
_STRIP = 48  # characters of a strip
#: suite and strategy -> published models, each with its scores: dataset -> score
_Published: TypeAlias = "dict[tuple[str, str], list[tuple[Entry, dict[str, float]]]]"


def lead(strip: Json) -> float:
    """How far the own score is above the median of the published models, on one value of an axis."""
    return float(strip["score"] - strip["median"])


def _named(strip: Json) -> str:
    return f"{title(strip['axis'], strip['value'])} ({lead(strip):+.2f} from the median)"


def _strong_and_weak(strips: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """The values furthest above the median, or least below; and of the others those furthest below."""
    strong = sorted(strips, key=lambda strip: (-strip["below"], -lead(strip)))[:NAMED]
    rest = [strip for strip in strips if strip not in strong]
    return strong, sorted(rest, key=lambda strip: (strip["below"], lead(strip)))[:NAMED]


def _sentence(row: Json, suite: Suite, models: Sequence[str]) -> str:
    """Where it stands, in words.

    Args:
        row: of the frame.
        suite: in which.
        models: the published ones, in the order of the row's rivals.
    """
    words = f"{row['score']:.2f} on {row['tasks']} of {suite.title}'s {_tasks(row['of_suite'])}"
    words += "" if row["strategy"] == "zero_shot" else f", {strategy_title(row['strategy'])}"
    if not models:
        return words
    if not row["placed"]:
        why = _reasons(row)
        return f"{words}; no place among {len(models)} published models, which were asked otherwise ({why})"
    mine = row["on_alike"]
    if row["alike"] < row["tasks"]:
        words += f"; {mine:.2f} on the {row['alike']} that were asked as the published models were"
    scores = [score for _, score in row["rivals"]]
    ahead, equal = sum(score > mine for score in scores), scores.count(mine)
    if equal:
        between = f"level with {models[ahead]}"
    elif not ahead:
        between = f"above {models[0]}, the best"
    elif ahead == len(models):
        between = f"below {models[-1]}, the last"
    else:
        between = f"between {models[ahead - 1]} and {models[ahead]}"
    return f"{words}, {between} of {len(models)}"


def _reasons(row: Json) -> str:
    return ", ".join(f"{reason} in {count}" for reason, count in dict(row["reasons"]).items())


def _among_peers(row: Json) -> str:
    """Its place among models of its size, in words; empty where none is known."""
    peers = {*row["peers"]}
    if not row["placed"] or not peers:
        return ""
    place = 1 + sum(score > row["on_alike"] for label, score in row["rivals"] if label in peers)
    size = f"about {row['size']:g} B parameters"
    return f"place {place} of {len(peers) + 1} among models of its size ({size})"


def strip_of(row: Json) -> str:
    """Published models from the least score to the greatest, their middle half thick, and the own one."""
    scores: list[float] = sorted(rival["score"] for rival in row["rivals"])
    mine: float = row["on_alike"]
    least, most = min(scores[0], mine), max(scores[-1], mine)

    def place(score: float) -> int:
        return round((score - least) / (most - least or 1) * (_STRIP - 1))

    quarters = [scores[round(share * (len(scores) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
    low, first, middle, third, high = map(place, quarters)
    cells = [" "] * _STRIP
    cells[low : high + 1] = "─" * (high + 1 - low)
    cells[first : third + 1] = "━" * (third + 1 - first)
    cells[middle] = "┃"
    cells[place(mine)] = "●" if row["placed"] else "○"
    return f"{least:.2f} {''.join(cells)} {most:.2f}"


def remarks(row: Json) -> list[str]:
    """How sure, among whom, strong and weak, and what is left out, a line each."""
    lines = []
    if row["places"] and row["places"][0] != row["places"][1]:
        first, last = row["places"]
        lines.append(f"how sure: place {row['place']}, between {first} and {last} within the 95 % interval")
    lines += [row["among_peers"]] if row["among_peers"] else []
    if len(row["strips"]) > 1 and row["tasks"] > 1:
        named = {(strip["axis"], strip["value"]): _named(strip) for strip in row["strips"]}
        for words, some in (("strongest", row["strong"]), ("weakest", row["weak"])):
            if some:
                lines.append(f"{words}: {', '.join(named[item['axis'], item['value']] for item in some)}")
    if row["placed"] and row["reasons"]:
        left_out = _tasks(row["tasks"] - row["alike"])
        lines.append(f"{left_out} left out here, being asked otherwise: {_reasons(row)}")
    return lines


def standings(
    entries: Sequence[Entry],
    draws: Sequence[Mapping[str, Array]],
    tasks: Registry,
    strategies: Sequence[str],
) -> pa.Table:
    """The frame `standings`: each own entry, suite, and strategy in which it has scores.

    A row is placed if tasks were asked as the published models were. Otherwise all that follows on these
    tasks is over all of its tasks, and says nothing of places.

    Args:
        entries: own and published ones.
        draws: for each entry, task -> its score on each resample.
        strategies: of the report.
    """
    published = _published(entries)
    rows = (
        found
        for entry, values in zip(entries, draws, strict=True)
        if entry.kind != "published" and not entry.sample
        for suite in tasks.suites.values()
        for strategy in strategies
        if (found := _standing(entry, values, tasks, suite, strategy, published))
    )
    return table_of("standings", rows)


def size_of(entry: Entry, known: Mapping[str, str]) -> float | None:
    """Billions of parameters of a model: as somebody states them, else as its name does.

    Args:
        entry: whose model it is.
        known: what is known of the model (`results.models.facts_of`).
    """
    said = known.get("parameters_b", "").strip("~B ")
    try:
        return float(said)
    except ValueError:
        found = _BILLIONS.search(entry.model)
        return float(found[1]) if found else None


def _size(entry: Entry) -> float | None:
    return size_of(entry, facts_of(entry, ()))


def _is_near(one: float, other: float | None) -> bool:
    return other is not None and max(one, other) <= _SIZE * min(one, other)


def _tasks(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


def _standing(
    entry: Entry,
    draws: Mapping[str, Array],
    tasks: Registry,
    suite: Suite,
    strategy: str,
    published: _Published,
) -> Json | None:
    if suite.published is None:
        return None
    group, axes = _groups(tasks, suite.id)
    own = {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None and item.dataset.id in group.counted
    }
    if not own:
        return None
    unlike = {name: item.unlike_the_paper for name, item in own.items()}
    alike = [name for name, item in own.items() if item.may_stand_beside]
    chosen = alike or list(own)
    scored = _scored(published.get((suite.id, strategy), []), chosen)
    weights = group.weights(frozenset(chosen))
    weight = np.array([weights[name] for name in chosen])
    values = np.array([own[name].score for name in chosen], dtype=float)
    table = np.array([scores for _, scores in scored], dtype=float).reshape(-1, len(chosen))
    mine = float(weight @ values)
    of_rivals = table @ weight
    low, high, places = _range(weight, [draws.get(own[name].task) for name in chosen], of_rivals)
    order = np.argsort(-of_rivals, kind="stable").tolist()
    everything = group.weights(frozenset(own))
    reasons = Counter(
        words for found in unlike.values() for words in dict.fromkeys(one.condition for one in found)
    )
    reasons.update({"part of the rows or judgements": n} if (n := _parts(own, unlike)) else {})
    size, rivals = _size(entry), [scored[place][0] for place in order]
    of_strips = list(_strips(axes, chosen, values, table)) if scored else []
    strong, weak = _strong_and_weak(of_strips)
    row = {
        **{"entry": entry.label, "suite": suite.id, "strategy": strategy},
        "score": float(sum(everything[name] * (own[name].score or 0.0) for name in own)),
        **{"tasks": len(own), "of_suite": group.n_tasks},
        "official": sum(item.facts.wording == "official" for item in own.values()),
        "placed": bool(alike and scored),
        "place": 1 + int((of_rivals > mine).sum()) if alike and scored else None,
        "of": len(rivals) + 1,
        "places": places if alike and scored else None,
        **{"alike": len(chosen), "on_alike": mine, "low": low, "high": high},
        "reasons": reasons.most_common(),
        "size": size,
        "rivals": [
            (rival.label, float(of_rivals[place])) for rival, place in zip(rivals, order, strict=True)
        ],
        "peers": [rival.label for rival in rivals if size and _is_near(size, _size(rival))],
        **{"strips": of_strips, "strong": strong, "weak": weak},
    }
    words = _sentence(row, suite, [rival.model for rival in rivals])
    return {**row, "sentence": words, "among_peers": _among_peers(row)}


@lru_cache(maxsize=32)
def _groups(tasks: Registry, suite: str) -> tuple[Group, list[Group]]:
    """The suite's own group, and those of its axes that form groups."""
    groups = [group for group in groups_of(tasks) if group.suite == suite]
    [own] = [group for group in groups if group.axis == "suite"]
    axes = [axis for axis in tasks.suites[suite].groups if axis not in tasks.suites[suite].tags]
    return own, [group for group in groups if group.axis in axes and not group.derived]


def _parts(own: Mapping[str, Experiment], unlike: Mapping[str, Sequence[Difference]]) -> int:
    return sum(not unlike[name] and not item.whole for name, item in own.items())


def _published(entries: Sequence[Entry]) -> _Published:
    found: _Published = {}
    for entry in entries:
        if entry.kind != "published":
            continue
        scores: dict[str, dict[str, float]] = {}
        for item in entry.experiments.values():
            if item.score is not None:
                scores.setdefault(item.strategy, {})[item.dataset.id] = item.score
        for strategy, of in scores.items():
            found.setdefault((entry.paper, strategy), []).append((entry, of))
    return found


def _scored(
    rivals: Sequence[tuple[Entry, Mapping[str, float]]], chosen: Sequence[str]
) -> list[tuple[Entry, list[float]]]:
    """The published models with a score on all of these tasks."""
    return [
        (entry, [scores[name] for name in chosen])
        for entry, scores in rivals
        if all(name in scores for name in chosen)
    ]


def _range(
    weight: Array, draws: Sequence[Array | None], rivals: Array
) -> tuple[float | None, float | None, tuple[int, int] | None]:
    """The interval of the own score, and of its place among fixed scores."""
    known = [values for values in draws if values is not None]
    if len(known) < len(draws):
        return None, None, None
    resampled = weight @ np.stack(known)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(resampled, tails).tolist()
    return low, high, (1 + int((rivals > high).sum()), 1 + int((rivals > low).sum()))


def _strips(groups: Sequence[Group], chosen: Sequence[str], values: Array, table: Array) -> Iterator[Json]:
    members = np.array([[name in group.counted for name in chosen] for group in groups], dtype=float)
    sizes = members.sum(axis=1)
    kept = np.flatnonzero(sizes).tolist()
    shares = members[kept] / sizes[kept, None]
    # (rivals, groups) and (groups,), rounded: what is equal stays equal
    others, mine = np.round(table @ shares.T, _DIGITS), np.round(shares @ values, _DIGITS)
    quarters = np.quantile(others, [0, 0.25, 0.5, 0.75, 1], axis=0).T.tolist()
    below = ((others < mine) + 0.5 * (others == mine)).mean(axis=0).tolist()
    for place, number in enumerate(kept):
        group, figures = groups[number], (float(mine[place]), *quarters[place], below[place])
        whose = {"axis": group.axis, "value": group.value, "tasks": int(sizes[number])}
        yield whose | dict(zip(SPREAD, figures, strict=True))
