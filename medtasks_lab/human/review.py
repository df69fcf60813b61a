"""Test items that physicians review on MLB's five criteria, and what their verdicts amount to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import write_json
from medtasks_ext.prompts import dialogue
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.stats.agreement import Kappa, kappas
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, of_shares
from medtasks_lab.human.forms import Export, FormItem, clean
from medtasks_lab.human.kinds import Language, load_kind
from medtasks_lab.human.results import agreement_row, origin

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Registry
    from medtasks_lab.human.ingest import Filled, Ingested

#: MLB: two physicians review each item
PHYSICIANS = 2
REMARK = "remark"
ALL = "all tasks"

Outcome = Literal["accepted", "failed", "disputed"]


def review_export(
    names: Sequence[str], registry: Registry, *, documents: int, experts: int = PHYSICIANS, seed: int
) -> Export:
    """Items of tasks as forms; every expert sees all of them, in an order of that expert alone.

    An item is asked about its options where it has some, about its answer and its scoring points likewise.

    Args:
        names: tasks, groups or tags, whose rows are at hand.
        documents: of each task; all, where there are fewer.
        seed: of the draw and the orders.

    Raises:
        MedtasksError: rows are not at hand.
    """
    tasks = list(dict.fromkeys(leaf for leaves in registry.resolve(names).values() for leaf in leaves))
    metadata = {task: registry.tasks[task][0].metadata for task in tasks}
    language: Language = "zh" if all(item.language == "zh" for item in metadata.values()) else "en"
    items: list[list[FormItem]] = []
    counts: dict[str, Any] = {}
    synthetic = False
    for task in tasks:
        rows = _items_of(load_documents(registry.tasks[task][0], cot=False)["test"])
        synthetic |= any(document["data"] == "sample" for document in rows.values())
        drawn = Random(f"{seed} {task}").sample(sorted(rows), min(documents, len(rows)))
        items += [_asked(task, name, rows[name], language) for name in sorted(drawn)]
        counts[task] = {"documents": len(drawn), "of": len(rows)}
    forms = {}
    for number in range(1, experts + 1):
        order = list(items)
        Random(f"{seed} expert {number}").shuffle(order)
        forms[f"expert_{number}"] = [row for rows_of_item in order for row in rows_of_item]
    gated = any(item.access != "open" for item in metadata.values())
    return Export(
        kind="review",
        language=language,
        forms=forms,
        notices=["sample"] if synthetic else ["gated"] if gated else [],
        record={"seed": seed, "tasks": counts, "SAMPLE_DATA": synthetic},
    )


def _items_of(documents: Iterable[Document]) -> dict[str, Document]:
    """Item -> document, the first where an item is asked with several orders of its options."""
    found: dict[str, Document] = {}
    for document in documents:
        found.setdefault(str(document.get("item", document["id"])), document)
    return found


def _asked(task: str, name: str, document: Document, language: Language) -> list[FormItem]:
    points = document.get("points") or []
    absent = {
        "answer": not document["target"].strip(),
        "distractors": not document.get("options"),
        "rubric": not points,
    }
    shown = {
        "item": clean("\n\n".join(filter(None, (document["system"], dialogue.shown(document)))).strip()),
        "reference": clean(document["target"].strip()),
        "points": clean("\n".join(f"{point['weight']:g}  {point['text']}" for point in points)),
    }
    return [
        FormItem(
            page=f"{task} {name}",
            about={"task": task, "item": name, "criterion": criterion.id},
            texts={
                **shown,
                "criterion": criterion.label.of(language),
                "asks": criterion.help.of(language),
            },
            options=[] if criterion.id == REMARK else None,
        )
        for criterion in load_kind("review").prompts
        if not absent.get(criterion.id)
    ]


# ---------------------------------------------------------------------- verdicts


@dataclass(frozen=True)
class CriterionReview:
    """How items stand on one criterion."""

    task: str  # or `all tasks`
    criterion: str
    items: int  # that are asked about it
    met: float  # share of the verdicts that it is met, 0-1
    low: float | None  # 95 % interval over items; None below two items
    high: float | None
    met_by_all: float  # share of the items on which every physician says so
    agreement: list[Kappa]


@dataclass(frozen=True)
class ItemReview:
    """What becomes of one item."""

    task: str
    item: str
    #: accepted: all criteria met, say all; failed: one is not, say all; disputed: they differ on one
    outcome: Outcome
    not_met: list[str]  # criteria that somebody says are not met
    remarks: list[str]


def review_of(
    rows: Iterable[Filled], key: Mapping[str, Any]
) -> tuple[list[CriterionReview], list[ItemReview]]:
    """The figures of each criterion, by task and over all, and the outcome of each item."""
    verdicts: dict[tuple[str, str], dict[str, dict[str, int]]] = {}  # item -> criterion -> expert -> met
    remarks: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        place = (row.about["task"], row.about["item"])
        if row.about["criterion"] == REMARK:
            remarks.setdefault(place, []).append(row.answers["verdict"])
        else:
            by_expert = verdicts.setdefault(place, {}).setdefault(row.about["criterion"], {})
            by_expert[row.form] = int(row.answers["verdict"] == "yes")
    tasks = list(key["tasks"])
    figures = []
    for name, members in [(task, [task]) for task in tasks] + ([(ALL, tasks)] if len(tasks) > 1 else []):
        for criterion in load_kind("review").prompts:
            found = {
                f"{task} {item}": by[criterion.id]
                for (task, item), by in verdicts.items()
                if task in members and criterion.id in by
            }
            if found:
                figures.append(_criterion(name, criterion.id, found))
    items = [
        ItemReview(
            task,
            item,
            _outcome(by),
            [criterion for criterion, votes in by.items() if not all(votes.values())],
            remarks.get((task, item), []),
        )
        for (task, item), by in sorted(verdicts.items())
    ]
    return figures, items


def _criterion(task: str, criterion: str, found: Mapping[str, Mapping[str, int]]) -> CriterionReview:
    met = [sum(votes.values()) for votes in found.values()]
    given = [len(votes) for votes in found.values()]
    low = high = None
    if len(found) > 1:
        interval = of_shares(met, given)
        low, high = (interval.low, interval.high) if interval else (None, None)
    by_expert: dict[str, dict[str, int]] = {}
    for item, votes in found.items():
        for expert, vote in votes.items():
            by_expert.setdefault(expert, {})[item] = vote
    return CriterionReview(
        task,
        criterion,
        len(found),
        sum(met) / sum(given),
        low,
        high,
        sum(one == of for one, of in zip(met, given, strict=True)) / len(found),
        kappas(by_expert, [0, 1]),
    )


def _outcome(by_criterion: Mapping[str, Mapping[str, int]]) -> Outcome:
    votes = [set(by.values()) for by in by_criterion.values()]
    if {0} in votes:
        return "failed"
    return "accepted" if all(found == {1} for found in votes) else "disputed"


def write_review(
    folder: Path,
    figures: Sequence[CriterionReview],
    items: Sequence[ItemReview],
    read: Ingested,
    key: Mapping[str, Any],
) -> None:
    """`criteria.csv`, `agreement.csv`, `items.csv`, `results.json`."""
    rows = [{name: value for name, value in asdict(one).items() if name != "agreement"} for one in figures]
    agreement = [
        {"task": one.task, "criterion": one.criterion, **agreement_row(found)}
        for one in figures
        for found in one.agreement
    ]
    of_items = [
        {**asdict(one), "not_met": ", ".join(one.not_met), "remarks": "\n".join(one.remarks)} for one in items
    ]
    write_csv(folder / "criteria.csv", rows)
    write_csv(folder / "agreement.csv", agreement)
    write_csv(folder / "items.csv", of_items)
    write_json(
        folder / "results.json",
        {
            "evaluation": "review of test items on five criteria, each physician alone",
            **origin(read, key),
            "tasks": key["tasks"],
            "interval_method": f"{WILSON_OF_UNITS}, over items",
            "criteria": rows,
            "agreement": agreement,
            "items": [asdict(one) for one in items],
        },
    )
