"""The page of a model: where it stands, its scores, and under which conditions they came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.standing import own_score, standings
from medtasks_ext.results.condition_words import difference_words, run_words
from medtasks_ext.results.result_frame import result_parts
from medtasks_lab.site.boards import Scores, interval_of, whole_of
from medtasks_lab.site.profile import profiles
from medtasks_lab.submissions.examples import may_be_shown
from medtasks_lab.submissions.trust import Trust

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Experiment
    from medtasks_lab.site.gather import BoardLine
    from medtasks_lab.submissions.trust import Verdict

_COMPUTED = "submission, whose scores were computed again from its documents"
#: Columns of the frame `results` that a page shows.
_FIGURES = (
    *("suite", "name", "task", "strategy", "value", "interval_low", "interval_high", "n", "rows_of_suite"),
    *("valid", "grade"),
)
_FACT_TITLES = {
    "organisation": "Organisation",
    "size": "Parameters, billions",
    "access": "Weights",
    "domain": "Domain",
    "reasoning": "Reasons before it answers",
    "date": "Released",
    "license": "Licence",
    "price_in": "Input, USD per million tokens",
    "price": "Output, USD per million tokens",
}


#: Conditions that the table of tasks has in columns of their own.
_IN_COLUMNS = ("strategy", "n", "n_of_suite", "differs", "documents", "judged")


class ModelPages:
    """Makes the pages; what all of them need is worked out once."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._places = {id(line): place for place, line in enumerate(scores.site.lines)}
        entries = [line.entry for line in scores.site.lines]
        # a row names every published model of its suite: a page takes out its own ones
        self._standings = standings(entries, scores.site.tasks, scores.strategies)
        self._rows: dict[str, list[int]] = {}
        for row, label in enumerate(self._standings["entry"].to_pylist()):
            self._rows.setdefault(label, []).append(row)
        parts = result_parts(entries, scores.site.tasks, metrics=("score",))
        self._results: list[list[Json]] = [[] for _ in entries]
        for place, figures in zip(parts.entries.tolist(), parts.rows(_FIGURES), strict=True):
            if figures["value"] is not None:
                self._results[place].append(figures)
        groups = [group for suite, group in scores.whole.items() if suite is not None]
        self._groups: list[Group] = groups

    def page(self, lines: Sequence[BoardLine]) -> Json:
        """The page of one model.

        Args:
            lines: of it, asked in different ways.
        """
        facts: dict[str, str | float] = {}
        for line in lines:
            facts = {**line.facts, **facts}
        first = next((line for line in lines if not line.published), lines[0])
        return {
            "title": first.entry.model,
            "suites": {suite.id: suite.title for suite in self._scores.site.tasks.suites.values()},
            "facts": [[title, facts[name]] for name, title in _FACT_TITLES.items() if name in facts],
            "hub_id": next(
                (line.entry.details["hub_id"] for line in lines if line.entry.details.get("hub_id")), None
            ),
            "lines": [self._line(line) for line in lines],
        }

    def _line(self, line: BoardLine) -> Json:
        entry, record = line.entry, line.record
        reasons: dict[str, int] = {}
        rows = sorted(
            self._results[self._places[id(line)]],
            key=lambda row: (row["suite"], row["name"], row["strategy"]),
        )
        return {
            "label": line.title,
            "published": line.published,
            "source": self._source(line),
            "places": list(self._of_suites(line)),
            "profiles": list(profiles(self._scores, self._places[id(line)])),
            "standings": [
                _standing(item)
                for row in self._rows.get(entry.label, ())
                for item in self._standings.slice(row, 1).to_pylist()
                if item["rivals"] and self._is_proven(line, item["suite"], item["strategy"])
            ],
            "tasks": [_task(row, line, reasons) for row in rows],
            "examples": self._examples(line),
            "reasons": list(reasons),
            "settings": [] if record is None else [*map(list, run_words(record.run).items())],
            "versions": [] if record is None else sorted(record.versions.items()),
        }

    def _examples(self, line: BoardLine) -> Json:
        """Some answers, and how many checked tasks have none because of the terms of their rows."""
        checked = [
            item
            for item in line.entry.experiments.values()
            if not line.published and line.verdict(item).trust is not Trust.SELF
        ]
        return {
            "shown": [
                [
                    line.entry.experiments[item.task].dataset.metadata.name,
                    item.terms,
                    item.question,
                    item.answer,
                    item.gold,
                    whole_of(item.score),
                ]
                for item in line.checked.examples
                if item.task in line.entry.experiments
            ],
            "hidden": sum(not may_be_shown(item.dataset.metadata.licence) for item in checked),
        }

    def _is_proven(self, line: BoardLine, suite: str, strategy: str) -> bool:
        """Whether it may be placed among published models."""
        group = self._scores.whole[suite]
        return (self._places[id(line)], strategy, group) not in self._scores.unproven

    def _source(self, line: BoardLine) -> list[list[str]]:
        """Where its scores come from: term and words."""
        if line.record is None:
            suite = self._scores.site.tasks.suites[line.entry.paper]
            notes = [["Note", note] for note in line.entry.notes]
            return [["Source", f"published scores of {suite.title}"], *notes]
        heads = " ".join(f"{file} {head}" for file, head in sorted(line.record.heads.items()))
        digest = sha256(heads.encode()).hexdigest()[:32]
        return [
            ["Source", "invented scores" if line.record.invented else _COMPUTED],
            ["Trust", line.trust],
            *(["A person looks at it first", str(flag)] for flag in line.checked.flags),
            *(
                [f"By {item.by}", f"{item.trust.value}, {item.basis}, {item.day}"]
                for item in line.checked.confirmations
            ),
            ["Submitted", line.record.date],
            *([["Run began", line.record.started]] if line.record.started else []),
            *([["Called in the run", line.record.called]] if line.record.called else []),
            ["Folder", f"results/submissions/{line.record.model}/{line.record.date}"],
            *([["Root of the run's folder", line.record.root]] if line.record.root else []),
            [f"Digest of {len(line.record.heads)} sealed heads", digest],
        ]

    def _of_suites(self, line: BoardLine) -> Iterator[Json]:
        place = self._places[id(line)]
        for group in self._groups:
            for strategy in self._scores.strategies:
                row = self._scores.rows.get((place, strategy, group))
                if row is None or row.score is None:
                    continue
                classes = self._scores.classes[group.suite, strategy]
                number = classes.of[place]
                yield {
                    "suite": group.suite,
                    "title": self._scores.site.tasks.suites[group.suite or ""].title,
                    "strategy": strategy_title(strategy),
                    "score": whole_of(row.score),
                    "interval": interval_of(row),
                    "tasks": row.scored,
                    "of": group.n_tasks,
                    "short": len(row.short),
                    "rank": self._scores.ranks(strategy, group).get(place),
                    "of_paper": number == 0,
                    "otherwise": "" if number is None else classes.found[number].words,
                    "unproven": (place, strategy, group) in self._scores.unproven,
                }


def _standing(row: Json) -> Json:
    return {
        "suite": row["suite"],
        "strategy": strategy_title(row["strategy"]),
        "sentence": row["sentence"],
        "remarks": row["remarks"],
        "ranked": row["ranked"],
        "own": whole_of(own_score(row)),
        "rivals": [whole_of(rival["score"]) for rival in row["rivals"]],
    }


def _task(row: Json, line: BoardLine, reasons: dict[str, int]) -> list[Any]:
    """A row of the table of tasks; reason, trust and conditions are places in `reasons`.

    Suite, name, strategy, score, interval, documents, of the suite, readable, grade, reason, trust, id,
    conditions.
    """
    item = line.entry.experiments[row["task"]]
    unlike = "; ".join(map(difference_words, line.unlike(item)))
    ends = [row["interval_low"], row["interval_high"]]
    return [
        row["suite"],
        row["name"],
        strategy_title(row["strategy"]),
        whole_of(row["value"]),
        None if None in ends else [*map(whole_of, ends)],
        row["n"],
        row["rows_of_suite"],
        None if row["valid"] is None else whole_of(row["valid"]),
        row["grade"],
        reasons.setdefault(unlike, len(reasons)) if unlike else None,
        None if line.published else reasons.setdefault(_trust(line.verdict(item)), len(reasons)),
        item.dataset.id,
        reasons.setdefault(_conditions(item), len(reasons)),
    ]


def _conditions(item: Experiment) -> str:
    """Under which conditions a score came about, as far as somebody recorded it."""
    said = {
        name: value
        for name, value in item.shown.items()
        if value not in (None, "", False) and name not in _IN_COLUMNS
    }
    return "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in said.items())


def _trust(verdict: Verdict) -> str:
    return f"{verdict.words}: {verdict.why}" if verdict.why else verdict.words
