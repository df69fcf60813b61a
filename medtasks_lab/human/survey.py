"""The survey on a suite's taxonomy: what clinicians are asked, and what their answers amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from medtasks_ext.csvfile import write_csv
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.results.published import published
from medtasks_ext.stats.agreement import Kappa, kappas
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, of_shares
from medtasks_lab.human.forms import Export, FormItem, shuffled_forms
from medtasks_lab.human.kinds import Language, Option, load_kind
from medtasks_lab.human.results import agreement_row, origin

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.stats.intervals import Interval
    from medtasks_lab.human.ingest import Filled, Ingested

SCALE = range(1, 6)
PUBLISHED = "taxonomy_survey.csv"


def survey_export(name: str, registry: Registry, *, experts: int, seed: int) -> Export:
    """The survey on a suite's taxonomy; each expert gets the subcategories in an order of that expert alone.

    Raises:
        MedtasksError: there is no such suite, or it has no axis that divides another.
    """
    suite = registry.suites.get(name)
    axes = [axis for axis, one in suite.axes.items() if one.within] if suite else []
    if suite is None or not axes:
        with_taxonomy = [
            key for key, one in registry.suites.items() if any(axis.within for axis in one.axes.values())
        ]
        raise MedtasksError(
            "no suite has this name" if suite is None else "the suite has no taxonomy of two levels",
            where=name,
            remedy=f"there is: {', '.join(with_taxonomy)}",
        )
    axis = suite.axes[axes[0]]
    titles = suite.titles(axis.within or "")
    categories = [Option.named(key, titles[key]) for key in axis.parts]
    intended = {key: category for category, parts in axis.parts.items() for key in parts}
    tree = "\n\n".join(
        titles[category]
        + "".join(
            f"\n  {part.title}" + "".join(f"\n      {task}" for task in part.tasks) for part in parts.values()
        )
        for category, parts in axis.parts.items()
    )
    language: Language = "en"  # titles have one language
    prompts = {prompt.id: prompt for prompt in load_kind("survey").prompts}
    assignments = [
        [
            FormItem(
                page="assignment",
                about={"part": "assignment", "value": key},
                texts={"taxonomy": "", "item": axis.titles[key], "asks": ""},
                options=categories,
            )
        ]
        for key in intended
    ]

    def whole(part: str, about: str, options: list[Option]) -> FormItem:
        words = prompts[part]
        item = words.label.of(language) + (f": {titles[about]}" if about else "")
        texts = {"taxonomy": tree, "item": item, "asks": words.help.of(language)}
        return FormItem("whole", {"part": part, "value": about}, texts, options)

    rest = [
        whole("comprehensiveness", "", [Option.named(str(value)) for value in SCALE]),
        *(whole("comments", about, []) for about in ("", *axis.parts)),
    ]
    forms = {name: [*rows, *rest] for name, rows in shuffled_forms(assignments, experts, seed).items()}
    return Export(
        kind="survey",
        language=language,
        forms=forms,
        record={"seed": seed, "suite": name, "axis": axes[0], "intended": intended},
    )


# ---------------------------------------------------------------------- answers


@dataclass(frozen=True)
class Assigned:
    """Where clinicians look for one subcategory."""

    value: str
    category: str  # where the taxonomy has it
    agreement: float  # share of the clinicians who put it there, 0-1
    n: int  # clinicians
    counts: Mapping[str, int]  # category -> clinicians


@dataclass(frozen=True)
class Comment:
    """One comment; a line is one."""

    expert: str
    about: str  # a category, or nothing for the whole
    text: str


@dataclass(frozen=True)
class Survey:
    """What a survey amounts to."""

    assigned: list[Assigned]
    rate: float | None  # share of all assignments that are the taxonomy's, 0-1; None without any
    interval: Interval | None  # of it, over clinicians
    agreement: list[Kappa]  # of clinicians about the categories
    mean: float | None  # of the comprehensiveness, 1-5
    sd: float | None  # sample s.d.
    ratings: Mapping[int, int]  # value -> clinicians
    comments: list[Comment]

    @property
    def n_assignments(self) -> int:
        """All assignments."""
        return sum(item.n for item in self.assigned)

    @property
    def n_ratings(self) -> int:
        """Clinicians who rated the comprehensiveness."""
        return sum(self.ratings.values())


def survey_of(rows: Iterable[Filled], key: Mapping[str, Any]) -> Survey:
    """The figures of a survey."""
    intended: Mapping[str, str] = key["intended"]
    place = {category: number for number, category in enumerate(dict.fromkeys(intended.values()))}
    votes: dict[str, dict[str, int]] = {}  # expert -> subcategory -> category
    ratings: list[int] = []
    comments: list[Comment] = []
    for row in rows:
        part, answer = row.about["part"], row.answers["answer"]
        if part == "assignment":
            votes.setdefault(row.form, {})[row.about["value"]] = place[answer]
        elif part == "comprehensiveness":
            ratings.append(int(answer))
        else:
            lines = [line.strip() for line in answer.splitlines()]
            comments += [Comment(row.form, row.about["value"], line) for line in lines if line]
    assigned = []
    for value, category in intended.items():
        given = Counter(by[value] for by in votes.values() if value in by)
        if n := sum(given.values()):
            counts = {name: given[number] for name, number in place.items()}
            assigned.append(Assigned(value, category, counts[category] / n, n, counts))
    right = [sum(place[intended[value]] == vote for value, vote in by.items()) for by in votes.values()]
    total = [len(by) for by in votes.values()]
    interval = of_shares(right, total)
    return Survey(
        assigned,
        sum(right) / sum(total) if total else None,
        interval,
        kappas(votes, list(place.values())),
        fmean(ratings) if ratings else None,
        stdev(ratings) if len(ratings) > 1 else None,
        {value: ratings.count(value) for value in SCALE},
        comments,
    )


def published_survey(suite: str) -> dict[str, float]:
    """What the suite's paper prints: measure -> value; nothing where it has no survey."""
    return {row["measure"]: float(row["value"]) for row in published(PUBLISHED) if row["suite"] == suite}


def write_survey(folder: Path, figures: Survey, read: Ingested, key: Mapping[str, Any]) -> None:
    """`assignments.csv`, `comprehensiveness.csv`, `comments.csv`, `results.json`."""
    flat: Sequence[Mapping[str, Any]] = [
        {**{name: value for name, value in asdict(item).items() if name != "counts"}, **item.counts}
        for item in figures.assigned
    ]
    write_csv(folder / "assignments.csv", flat)
    write_csv(
        folder / "comprehensiveness.csv",
        [{"rating": value, "clinicians": n} for value, n in figures.ratings.items()],
    )
    write_csv(folder / "comments.csv", [asdict(item) for item in figures.comments])
    write_json(
        folder / "results.json",
        {
            "evaluation": "survey on a taxonomy",
            **origin(read, key),
            "suite": key["suite"],
            "axis": key["axis"],
            "agreement_rate": figures.rate,
            "agreement_rate_low": figures.interval.low if figures.interval else None,
            "agreement_rate_high": figures.interval.high if figures.interval else None,
            "assignments": figures.n_assignments,
            "comprehensiveness_mean": figures.mean,
            "comprehensiveness_sd": figures.sd,
            "ratings": {str(value): n for value, n in figures.ratings.items()},
            "comments": len(figures.comments),
            "agreement": [agreement_row(one) for one in figures.agreement],
            "published": published_survey(key["suite"]),
            "interval_method": f"{WILSON_OF_UNITS}, over clinicians",
        },
    )
