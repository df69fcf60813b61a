"""What to know before two figures are compared, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title as title_of
from medtasks_ext.results.conditions import moving
from medtasks_ext.results.experiments import Entry, Experiment, differing
from medtasks_ext.runs.manifest import DRAWN

if TYPE_CHECKING:
    from medtasks_ext.report.compared import Compared

#: Settings of tasks, and what is said of each; hashes of rows and prompts say something between entries only.
_WITHIN = {
    "prompt": "wording of the prompt",
    "data": "origin of the data",
}
_NAMED = 3  # tasks that a sentence names
#: documents below which a bootstrap is not to be relied on
_FEW = 30


#: Of whom something is to be known, and what: entries and suites of which the same is said share a sentence.
_Said: TypeAlias = "tuple[str, str]"
_Groups: TypeAlias = "list[tuple[Entry, str, str, list[Experiment]]]"


def differences(entries: Sequence[Entry], comparisons: Sequence[Compared]) -> list[str]:
    """Sentences: within entries, between those of one model, between entries task by task, published ones."""
    own = [entry for entry in entries if entry.kind != "published"]
    groups, of = _by_group(own), dict[str, dict[str, None]]()
    papers = {entry.paper for entry in entries if entry.kind == "published"}
    for whom, what in (
        *_limited(own),
        *_short(own),
        *_pending(own),
        *_unlike(groups, papers),
        *_named(groups, "rows rebuilt from the source, not the suite's own", lambda item: item.rebuilt),
        *_named(
            groups,
            "prompts that carry fewer examples, to fit the context",
            lambda item: item.cut.get("shots_dropped"),
        ),
        *_within(groups),
        *_between_namesakes(own),
        *_between(own),
        *_of_comparisons(entries, comparisons),
        *_few_documents(own),
        *_published(entries),
        *((entry.label, note) for entry in own for note in entry.notes),
    ):
        of.setdefault(what, {})[whom] = None
    return [f"{'; '.join(names)}: {what}" for what, names in of.items()]


def _title(suite: str, strategy: str) -> str:
    return f"{title_of('suite', suite)}, {strategy_title(strategy)}"


def _by_group(entries: Sequence[Entry]) -> _Groups:
    """Entry, suite, title of suite and strategy, and the experiments there."""
    found: _Groups = []
    for entry in entries:
        by_group: dict[tuple[str, str], list[Experiment]] = {}
        for item in entry.experiments.values():
            by_group.setdefault((item.dataset.metadata.suite, item.strategy), []).append(item)
        found += [(entry, place[0], _title(*place), items) for place, items in by_group.items()]
    return found


def _limited(entries: Sequence[Entry]) -> Iterator[_Said]:
    for entry in entries:
        by_words: dict[str, list[str]] = {}
        for item in entry.experiments.values() if entry.limited else ():
            by_words.setdefault(item.words["documents"], []).append(item.task)
        for words, names in by_words.items():
            if words != "all" and words.startswith(DRAWN):
                yield (entry.label, f"an estimate, {words}: compared by its interval alone, and in no rank")
            elif words != "all":
                where = "each task" if len(by_words) == 1 else _some(names)
                yield (entry.label, f"only {words} of {where} were asked: no scores of whole test sets")


def _short(entries: Sequence[Entry]) -> Iterator[_Said]:
    """Tasks whose rows here are fewer than the suite's."""
    for entry in entries:
        less = {
            item.task: item.in_part
            for item in entry.experiments.values()
            if item.score is not None and item.lacks_rows and not item.limited
        }
        if less:
            first = next(iter(less))
            yield (
                entry.label,
                f"rows are missing here of {_some([*less])} ({first}: {less[first]}): no "
                "scores of whole test sets, so there is no rank, and they are not on a card",
            )


def _pending(entries: Sequence[Entry]) -> Iterator[_Said]:
    for entry in entries:
        for item in entry.experiments.values():
            if item.covered < 1 and item.score is not None:
                low, high = item.bounds or (item.score, item.score)
                yield (
                    f"{entry.label}, {item.task}",
                    f"{1 - item.covered:.0%} of the answers wait for a judge, so "
                    f"the score is not final: between {low:.3f} and {high:.3f} when all are judged",
                )


def _unlike(groups: _Groups, beside: set[str]) -> Iterator[_Said]:
    """Tasks that were not asked as the suite's paper asked them: no rank among its models."""
    for entry, suite, title, items in groups:
        differences = [
            item.unlike_the_paper
            for item in items
            if item.score is not None and not item.sample and suite in beside
        ]
        if n := sum(map(bool, differences)):
            reasons = Counter(
                words for item in differences for words in dict.fromkeys(one.condition for one in item)
            )
            named = ", ".join(f"{words} in {count}" for words, count in reasons.most_common())
            yield (
                f"{entry.label}, {title}",
                f"{n} of {len(differences)} tasks have other conditions than the published models "
                f"({named}), so there is no rank among these",
            )


def _few_documents(entries: Sequence[Entry]) -> Iterator[_Said]:
    by_group: dict[tuple[str, str], dict[str, None]] = {}
    for entry in entries:
        for item in entry.experiments.values():
            if item.score is not None and item.n < _FEW and not item.sample:
                names = by_group.setdefault((item.dataset.metadata.suite, item.strategy), {})
                names[item.dataset.id] = None
    for (suite, strategy), names in by_group.items():
        yield (
            _title(suite, strategy),
            f"fewer than {_FEW} documents in {_some([*names])}; p-values by bootstrap that rest on them "
            "are too small",
        )


def _named(groups: _Groups, what: str, holds: Callable[[Experiment], Any]) -> Iterator[_Said]:
    for entry, _, title, items in groups:
        if names := [item.dataset.id for item in items if holds(item)]:
            yield f"{entry.label}, {title}", f"{what}: {_some(names)}"


def _within(groups: _Groups) -> Iterator[_Said]:
    """Tasks of one suite that an entry was not asked alike."""
    for entry, _, title, items in groups:
        for setting, words in _WITHIN.items():
            # without the hash or revision, which differs from task to task anyway
            kinds = Counter(item.words.get(setting, "").partition(" ")[0] for item in items)
            if len(kinds) > 1:
                shares = ", ".join(f"{kind} in {n}" for kind, n in kinds.most_common())
                yield (entry.label, f"the tasks of {title} differ in {words}: {shares}")


def _between_namesakes(entries: Sequence[Entry]) -> Iterator[_Said]:
    models = dict.fromkeys(entry.model for entry in entries)
    for model in models:
        same = [entry for entry in entries if entry.model == model]
        names = differing([entry.words for entry in same]) if len(same) > 1 else []
        for name in names:
            values = dict.fromkeys(entry.words.get(name, "–") for entry in same)
            yield (model, f"its entries differ in {name}: {' | '.join(values)}")


def _between(entries: Sequence[Entry]) -> Iterator[_Said]:
    by_task: dict[str, list[Experiment]] = {}
    for entry in entries:
        for name, item in entry.experiments.items():
            if not item.sample:
                by_task.setdefault(name, []).append(item)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, items in by_task.items():
        ways = dict.fromkeys(item.facts for item in items)
        unlike = (difference for pair in combinations(ways, 2) for difference in moving(*pair))
        for condition in dict.fromkeys(difference.condition for difference in unlike):
            key = (items[0].dataset.metadata.suite, items[0].strategy, condition)
            groups.setdefault(key, []).append(name)
    for (suite, strategy, condition), names in groups.items():
        yield (
            _title(suite, strategy),
            f"entries differ in the {condition} of {_some(names)}; such "
            "entries are not ranked or tested against each other on them",
        )


def _of_comparisons(entries: Sequence[Entry], comparisons: Sequence[Compared]) -> Iterator[_Said]:
    for item in comparisons:
        title = _title(item.suite, item.strategy)
        if item.left_out:
            names = ", ".join(entries[place].label for place in item.left_out)
            yield (title, f"not compared, since they share too few tasks asked alike with others: {names}")
        if item.unlike:
            yield (title, f"{_some(item.unlike)} left out of comparisons: other conditions")


def _published(entries: Sequence[Entry]) -> Iterator[_Said]:
    notes: dict[str, str] = {}
    for entry in entries:
        if entry.kind == "published" and entry.notes:
            notes.setdefault(entry.paper, entry.notes[0])
    for suite, note in notes.items():
        yield (f"published scores of {title_of('suite', suite)}", f"from {note}")


def _some(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_NAMED])
    return f"{len(names)} tasks ({shown}{', …' if len(names) > _NAMED else ''})"
