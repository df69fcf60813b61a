"""What the leaderboard shows: published models, and submitted ones."""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import STRATEGIES, strategy_title
from medtasks_ext.report.groups import Group, axis_titles, group_scores, groups_of, order, title
from medtasks_ext.report.submissions import (
    CHECKED,
    RECORD,
    Checked,
    Submission,
    check_submission,
    levels_words,
)
from medtasks_ext.results.conditions import difference_words
from medtasks_ext.results.experiments import Entry, Experiment, Fault, label_entries
from medtasks_ext.results.models import facts_of, facts_shown, identity_of, maker_of, version_of
from medtasks_ext.results.prices import prices
from medtasks_ext.results.published import published_entries
from medtasks_ext.suites.scores import published_win_rates

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry


@dataclass(frozen=True, eq=False)
class BoardLine:
    """A line of the leaderboard: a model, asked in one way."""

    entry: Entry
    known: Mapping[str, str]  # of the model (`results.models.facts_of`)
    checked: Checked = field(default_factory=Checked)  # what the check found of a submission

    @property
    def record(self) -> Submission | None:
        return self.checked.record

    @property
    def published(self) -> bool:
        return self.record is None

    @property
    def title(self) -> str:
        """As the paper prints it; one spelling where papers differ in spaces, dashes and capitals."""
        if not self.published:
            return self.entry.label
        known = identity_of(self.entry)
        name = self.entry.model
        return known.title if known and _letters(known.title) == _letters(name) else name

    @cached_property
    def model(self) -> str:
        """What lines of one model have in common: its id in the registry or on the hub, else its name."""
        known = identity_of(self.entry)
        return known.id if known else self.entry.details.get("hub_id") or self.entry.model

    @property
    def page(self) -> str:
        """The name of the model's page: letters, digits and dashes, and nothing that leads elsewhere."""
        model = self.model.casefold()
        name = re.sub(r"[^a-z0-9]+", "-", model).strip("-")[:60]
        return f"{name or 'model'}-{sha256(model.encode()).hexdigest()[:6]}.html"

    @cached_property
    def facts(self) -> dict[str, str | float]:
        found = facts_shown(self.entry, self.known)
        found["organisation"] = found.pop("maker") or (
            maker_of(self.entry.model.partition("/")[0]) if self.record else None
        )
        found["license"] = self.known.get("licence")
        found |= {
            name: float(self.known.get(of, 0))
            for name, of in (("price_in", "price_in"), ("price", "price_out"))
        }
        if not found["price"] and (price := prices().get(self.model)):
            found |= {"price_in": price.input, "price": price.output}
        return {name: value for name, value in found.items() if value}

    def is_proven(self, item: Experiment) -> bool:
        """Whether somebody else than the submitter has seen that a score follows."""
        return self.published or self.checked.verdicts.get(item.task) == CHECKED

    def apart(self, item: Experiment) -> str:
        """What keeps a result from a rank beside the paper's, beyond trust, in words; empty where nothing."""
        if self.published:
            return ""
        reasons = [difference_words(one) for one in item.unlike_the_paper]
        if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
            reasons.append("an older version of the task")
        if item.confirmed.state == "claimed":
            reasons.append("data or prompts that nobody has confirmed")
        return "; ".join(reasons)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


@dataclass
class Site:
    tasks: Registry
    lines: list[BoardLine] = field(default_factory=list)  # published ones first
    faults: list[Fault] = field(default_factory=list)  # submissions that are left out

    @cached_property
    def models(self) -> dict[str, list[BoardLine]]:
        found: dict[str, list[BoardLine]] = {}
        for line in self.lines:
            found.setdefault(line.page, []).append(line)
        return found


def gather_site(tasks: Registry, submissions: Path | None, *, published: bool = True) -> Site:
    """Read the registry and submissions in `ORG/MODEL/DATE`, with the models that papers print.

    A submission that cannot be read or does not follow is left out, and named.
    """
    site, own = Site(tasks), list[tuple[Entry, Checked]]()
    for file in _in_order(submissions) if submissions else ():
        checked, name = check_submission(file.parent, tasks), "/".join(file.parts[-4:-1])
        site.faults += [Fault(f"{name}: {item.where}", item.what, item.remedy) for item in checked.faults]
        if checked.record is not None and not checked.faults:
            own.append((checked.record.entry(file.parent, tasks), checked))
    label_entries([entry for entry, _ in own])
    papers = published_entries(tasks) if published else []
    shown = [*((entry, Checked()) for entry in papers), *own]
    site.lines += [BoardLine(entry, facts_of(entry, papers), checked) for entry, checked in shown]
    if not site.lines:
        remedy = "name a folder of submissions, or show published models: leave --submissions out"
        raise MedtasksError("there is nothing to show", where=submissions, remedy=remedy)
    return site


def _in_order(folder: Path) -> list[Path]:
    """The records of submissions by the commit that first held each, in a git checkout; then by name.

    Who submits writes the date of a folder, and nobody can write a commit before those that are there.
    """
    command = ["git", "log", "--reverse", "--diff-filter=A", "--name-only", "--format=", "--relative", "."]
    try:
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):  # no git, or no checkout
        said = ""
    place = {name: number for number, name in enumerate(dict.fromkeys(said.splitlines()))}

    def order(file: Path) -> tuple[int, Path]:
        return place.get(file.relative_to(folder).as_posix(), len(place)), file

    return sorted(folder.glob(f"*/*/*/{RECORD}"), key=order)


#: what rows can be filtered by
FACTS = ("organisation", "size", "access", "domain", "reasoning", "date", "price")
_UNIT = 10_000


def whole_of(score: float) -> int:
    """A score as the pages have it: whole ten-thousandths, cut off.

    Pages show three digits. A number rounded to four and then to three may end up beside the one that is
    nearest (0.44249 -> 0.4425 -> 0.443); one that is cut off does not.
    """
    return math.floor(Fraction(score) * _UNIT)


#: What a number is of: a group, whose mean it is, or a suite, whose paper ranks by the share of pairs won.
Key: TypeAlias = Group | str


class Cell(NamedTuple):
    """A line's number, in ten-thousandths."""

    value: int
    whole: bool = True  # it stands on all tasks of the group, and on all rows and judgements of these
    proven: bool = True  # somebody else than the submitter has seen that it follows
    apart: str = ""  # what keeps it from the paper's ranks
    interval: tuple[int, int, int] | None = None  # its ends, and whether the paper gives them
    tasks: int | None = None  # that have a score; None where the paper prints the group's alone
    # and among how many: of lines that are whole, proven, and asked as the suite's paper asked
    rank: tuple[int, int] | None = None

    @property
    def shown(self) -> int | list[int]:
        """A part has the number of tasks beside it; a whole that is not proven has a third number."""
        if self.whole and self.proven:
            return self.value
        return [self.value, self.tasks or 0, *([1] if self.whole else [])]


class Scores:
    """The numbers of a leaderboard.

    Attributes:
        groups: that hold a score.
        whole: suite -> its own group, of suites that hold a score.
        cells: place of a line, strategy, and what a number is of -> the number.
        ranked: the same without a line -> how many lines have a rank, and their median.
    """

    def __init__(self, site: Site) -> None:
        self.site, axes = site, list(axis_titles())
        known = [group for group in groups_of(site.tasks) if not group.derived and group.suite is not None]
        every = tuple(sorted(known, key=lambda one: (axes.index(one.axis), order(one.axis, one.value))))
        inside = {suite: tuple(one for one in every if one.suite == suite) for suite in site.tasks.suites}
        used = {item.strategy for line in site.lines for item in line.entry.experiments.values()}
        self.strategies = tuple(name for name in STRATEGIES if name in used or name == STRATEGIES[0])
        self.cells: dict[tuple[int, str, Key], Cell] = {
            (place, strategy, row["group"]): _mean(line, row)
            for place, line in enumerate(site.lines)
            for strategy in self.strategies
            for row in group_scores(line.entry, strategy, inside.get(line.entry.paper, every))
            if row["score"] is not None
        }
        held = {group for _, _, group in self.cells}
        self.groups = tuple(group for group in every if group in held)
        self.whole = {str(group.suite): group for group in known if group.axis == "suite" and group in held}
        for suite in self.whole:
            rates = published_win_rates(site.tasks, site.tasks.suites[suite])
            for place, line in enumerate(site.lines):
                if line.published and line.entry.paper == suite and line.entry.model in rates:
                    cell = Cell(whole_of(rates[line.entry.model]))
                    self.cells[place, self.strategies[0], suite] = cell
        firm: dict[tuple[str, Key], dict[int, int]] = {}
        for (place, strategy, key), cell in self.cells.items():
            if cell.whole and cell.proven and not cell.apart:
                firm.setdefault((strategy, key), {})[place] = cell.value
        for (strategy, key), values in firm.items():
            best_first = sorted(values.values(), reverse=True)
            for place, value in values.items():
                rank = 1 + best_first.index(value), len(values)
                self.cells[place, strategy, key] = self.cells[place, strategy, key]._replace(rank=rank)
        self.ranked = {key: (len(values), int(median(values.values()))) for key, values in firm.items()}


def _mean(line: BoardLine, row: Json) -> Cell:
    of_paper = row["paper_interval_low"] is not None
    ends = (row[f"{'paper_' * of_paper}interval_{end}"] for end in ("low", "high"))
    low, high = (None if end is None else whole_of(end) for end in ends)
    interval = None if low is None or high is None else (low, high, int(of_paper))
    items = [
        item
        for item in (() if line.published else line.entry.experiments.values())
        if item.strategy == row["strategy"] and item.score is not None
        if item.dataset.id in row["group"].counted
    ]
    reasons = Counter(words for item in items if (words := line.apart(item)))
    said = ", ".join(f"{words} in {n} of {len(items)} tasks" for words, n in reasons.most_common())
    proven, whole = all(map(line.is_proven, items)), row["whole"] and not row["partial"]
    return Cell(whole_of(row["score"]), whole, proven, said, interval, row["tasks_scored"])


class Column(NamedTuple):
    key: Key
    group: Group
    title: str


#: of each row of a table, the place of the line whose score stands there
_Places: TypeAlias = Callable[[str, Column], Sequence[int | None]]
#: what a table says of a strategy, a column, the place of a line, and the number there
_Say: TypeAlias = Callable[[str, Column, int, Cell], Any]


def suite_board(scores: Scores, suite: str) -> Json:
    groups = [group for group in scores.groups if group.suite == suite]
    columns = [Column(group, group, title(group.axis, group.value)) for group in groups]
    if (scores.strategies[0], suite) in scores.ranked:  # the paper ranks by win rates
        columns.insert(0, Column(suite, scores.whole[suite], "Win rate"))
    places = sorted({place for place, _, key in scores.cells if key in groups})
    return _board(scores, columns, lambda *_: places, [scores.site.lines[place] for place in places])[0]


def front_board(scores: Scores) -> Json:
    """A row for each model, and what each suite says of it.

    Where a paper prints several versions of a model, the one with the best mean stands there, and says which.
    Submissions stand each for itself.
    """
    lines, columns, found = scores.site.lines, list[Column](), dict[str, list[int]]()
    for suite, group in scores.whole.items():
        name = scores.site.tasks.suites[suite].title
        if wins := (scores.strategies[0], suite) in scores.ranked:
            columns.append(Column(suite, group, f"{name}: win rate"))
        columns.append(Column(group, group, f"{name}: mean" if wins else name))
    for place, line in enumerate(lines):
        found.setdefault(line.model.casefold() if line.published else f"submission {place}", []).append(place)
    models = list(found.values())
    of = {place: places for places in models for place in places}

    def best(strategy: str, column: Column) -> list[int | None]:
        """The line of a model with its best mean on a whole suite; a part only where it has nothing else."""
        cells = {at: scores.cells.get((at, strategy, column.group)) for at in of}
        worth = {at: (cell.whole, cell.value) for at, cell in cells.items() if cell}
        return [
            max((at for at in places if at in worth), key=worth.__getitem__, default=None)
            for places in models
        ]

    def version(strategy: str, column: Column, place: int, _: Cell) -> str | None:
        n = sum((other, strategy, column.group) in scores.cells for other in of[place])
        said = [version_of(lines[place].entry), f"best of {n}" if n > 1 else ""]
        return ", ".join(filter(None, said)) or None if lines[place].published else None

    rows = [[lines[place] for place in places] for places in models]
    board, of_cells = _board(scores, columns, best, [row[0] for row in rows])
    known = [identity_of(row[0].entry) if row[0].published and len(row) > 1 else None for row in rows]
    titles = [of.title if of else row[0].title for of, row in zip(known, rows, strict=True)]
    board["entries"]["label"] = titles
    facts = list(map(facts_of_lines, rows))
    board["entries"] |= {name: [one.get(name) for one in facts] for name in FACTS}
    board["versions"] = of_cells(version)
    board["dates"] = of_cells(lambda _name, _one, place, _cell: lines[place].facts.get("date"))
    return board


def _board(
    scores: Scores, columns: Sequence[Column], places: _Places, lines: Sequence[BoardLine]
) -> tuple[Json, Callable[[_Say], list[list[list[Any]]]]]:
    """Rows, columns, and strategy, column, row -> score, interval, and what is unlike the paper.

    Second what makes further tables of these.
    """
    titles, words, wanted = axis_titles(), {"": 0}, {column.group for column in columns}
    used = {strategy for _, strategy, key in scores.cells if key in wanted}
    strategies = [strategy for strategy in scores.strategies if strategy in used]
    axes = list(dict.fromkeys(column.group.axis for column in columns))

    def of(say: _Say) -> list[list[list[Any]]]:
        def said(name: str, one: Column, place: int | None) -> Any:
            cell = None if place is None else scores.cells.get((place, name, one.key))
            return None if place is None or cell is None else say(name, one, place, cell)

        return [[[said(name, one, at) for at in places(name, one)] for one in columns] for name in strategies]

    content = {
        "strategies": [[name, strategy_title(name)] for name in strategies],
        "axes": [[axis, axis_title(titles[axis])] for axis in axes],
        "columns": [[axes.index(one.group.axis), one.title, one.group.n_tasks] for one in columns],
        "entries": {
            "label": [line.title for line in lines],
            "page": [line.page for line in lines],
            "published": [int(line.published) for line in lines],
            "trust": [levels_words(line.checked.verdicts.values()) for line in lines],
            **{name: [line.facts.get(name) for line in lines] for name in FACTS},
        },
        "scores": of(lambda _name, _one, _place, cell: cell.shown),
        "intervals": of(
            lambda _name, one, _place, cell: cell.interval if one.group.axis == "suite" else None
        ),
        "apart": of(lambda _name, _one, _place, cell: words.setdefault(cell.apart, len(words))),
        "apart_words": list(words),
        "ranks": of(lambda _name, _one, _place, cell: cell.rank and cell.rank[0]),
        "ranked": [[scores.ranked.get((name, one.key), (0,))[0] for one in columns] for name in strategies],
    }
    return content, of


def axis_title(words: str) -> str:
    """The title of an axis without the suites that have it: a page is of one suite."""
    name = words.partition(" (")[0]
    return name[:1].upper() + name[1:]


def facts_of_lines(lines: Sequence[BoardLine]) -> dict[str, str | float]:
    found: dict[str, str | float] = {}
    for line in reversed(lines):
        found |= line.facts
    if len({line.facts.get("reasoning") for line in lines} - {None}) > 1:
        del found["reasoning"]
    return found
