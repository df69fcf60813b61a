"""The axes of reports: their titles, and those of their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from medtasks_ext.registry import Registry, registry, suites
from medtasks_ext.registry.groups import suite_of_group
from medtasks_ext.registry.strategies import strategy_order, suffix_of
from medtasks_ext.report.groups import ALL, AVERAGE

#: axis -> title, for those that all suites have; in the order of display
_SHARED = {
    ALL: "all tasks",
    "suite": "suite",
    "language": "language",
    "specialties": "specialty",
    "stage": "clinical stage",
    "task_type": "kind of task",
    "document_types": "kind of document",
    "access": "access to the data",
}


def axis_titles() -> dict[str, str]:
    """Axis -> title, in the order of display; an axis of single suites names them."""
    own, known = {}, suites()
    for axis in dict.fromkeys(axis for suite in known.values() for axis in suite.axes):
        having = [suite for suite in known.values() if axis in suite.axes]
        own[axis] = f"{having[0].title_of(axis)} ({', '.join(suite.title for suite in having)})"
    return {**_SHARED, **own}


def title(axis: str, value: str) -> str:
    if axis == ALL:
        return "all tasks (plain mean)"
    if axis == "access":
        return value
    if value == AVERAGE:
        return "Average of these"
    return registry().titles.get(axis, {}).get(value) or value.replace("_", " ").capitalize()


def titles_of(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    return {pair: title(*pair) for pair in {*pairs}}


def order(axis: str, value: str) -> tuple[int, str]:
    """For sorting values as the vocabulary and the suites list them, others by name."""
    known = [*registry().titles.get(axis, ()), *(["", AVERAGE] if value == AVERAGE else [])]
    return (known.index(value) if value in known else len(known), value)


#: Tasks of a group inside one suite that is a row without axes below it.
_SMALL = 20
#: Tasks of a group across suites that are rows themselves.
_FEW = 12
#: Rows of single names; of more, the suites are shown.
_MANY = 40


@dataclass(frozen=True)
class OutlineBlock:
    names: list[str]  # of the suite, or of groups of it that were asked for
    axes: dict[str, dict[str, str]]  # main axis -> name of a group -> its title


@dataclass(frozen=True)
class Outline:
    single: list[str]  # tasks, and groups that are rows without axes
    blocks: list[OutlineBlock]  # suites in their order


def outline(registry: Registry, requested: Iterable[str]) -> Outline:
    single: dict[str, None] = {}
    blocks: dict[tuple[str, str], dict[str, None]] = {}
    for name in requested:
        places = _places(registry, [name])
        n = len(registry.leaves(name))
        if n <= _FEW and (len(places) > 1 or not registry.parts(name)):
            single |= dict.fromkeys(registry.leaves(name))
        elif len(places) == 1 and n <= _SMALL and name not in _suites(places):
            single[name] = None
        else:
            for place, suite in zip(places, _suites(places), strict=True):
                blocks.setdefault(place, {})[name if len(places) == 1 else suite] = None
    if len(single) > _MANY:
        places = _places(registry, single)
        for place, suite in zip(places, _suites(places), strict=True):
            blocks.setdefault(place, {})[suite] = None
        single = {}
    return Outline(
        list(single),
        [OutlineBlock(list(blocks[place]), _axes(registry, *place)) for place in _in_order(registry, blocks)],
    )


def _places(registry: Registry, names: Iterable[str]) -> list[tuple[str, str]]:
    """A suite's group is of that suite, whatever the folders of its tasks."""
    found: dict[tuple[str, str], None] = {}
    for name in names:
        suite = None if registry.asked(name) else suite_of_group(registry, name)
        for dataset, strategy in map(registry.known, registry.leaves(name)):
            found[(suite or dataset.suite).id, strategy] = None
    return list(found)


def _suites(places: Iterable[tuple[str, str]]) -> list[str]:
    return [suite + suffix_of(strategy) for suite, strategy in places]


def _in_order(registry: Registry, places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    suites = list(registry.suites)
    yield from sorted(places, key=lambda place: (suites.index(place[0]), strategy_order(place[1])))


def _axes(registry: Registry, name: str, strategy: str) -> dict[str, dict[str, str]]:
    suite = registry.suites[name]
    datasets = [item for item in registry.datasets_of(suite) if item.metadata.grouped]
    found = {}
    for axis in suite.main_axes:
        values = {value for dataset in datasets for value in dataset.values(suite, axis)}
        titles = {
            suite.named(suite.groups[axis], value) + suffix_of(strategy): title(axis, value)
            for value in sorted(values, key=lambda value: order(axis, value))
        }
        found[axis] = {name: words for name, words in titles.items() if registry.knows(name)}
    return found
