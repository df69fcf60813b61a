"""Test items that physicians review on MLB's five criteria, and what their verdicts amount to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import yaml

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import write_json
from medtasks_ext.prompts import dialogue
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry.metadata import ReadRows, Reviewed
from medtasks_ext.stats.agreement import Kappa, kappas
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, of_shares
from medtasks_ext.strict import validated
from medtasks_lab.human.forms import Export, FormItem, clean, language_of, notices_of, shuffled_forms
from medtasks_lab.human.kinds import Language, load_kind
from medtasks_lab.human.results import agreement_row, origin

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Registry
    from medtasks_lab.human.ingest import Filled, Ingested

#: MLB: two physicians review each item
PHYSICIANS = 2
REMARK = "remark"
#: asked once about the prompt of a task, and by whom the form was filled
WORDING, SIGNED, NATIVE = "wording", "signed", "native"
#: answered in words of one's own
FREE = frozenset({REMARK, SIGNED, NATIVE})
#: name of the page about the prompt, and before the name of a synthetic row
PROMPT, SYNTHETIC = "prompt", "sample "
#: synthetic rows of a task whose real rows are asked, too
SAMPLES = 6
ALL = "all tasks"

Outcome = Literal["accepted", "failed", "disputed"]


def review_export(
    names: Sequence[str], registry: Registry, *, documents: int, experts: int = PHYSICIANS, seed: int
) -> Export:
    """Items of tasks as forms; every expert sees all of them, in an order of that expert alone.

    An item is asked about its options where it has some, about its answer and its scoring points likewise.
    Each task has a page about its prompt, which the expert signs; where its real rows are at hand, some
    of its synthetic ones are asked about, too.

    Args:
        names: tasks, groups or tags, whose rows are at hand.
        documents: of each task; all, where there are fewer.
        seed: of the draw and the orders.

    Raises:
        MedtasksError: rows are not at hand.
    """
    tasks = registry.leaves_of(names)
    metadata = {task: registry.tasks[task][0].metadata for task in tasks}
    language = language_of(tasks, registry)
    items: list[list[FormItem]] = []
    counts: dict[str, Any] = {}
    synthetic = False
    for task in tasks:
        rows = _items_of(load_documents(registry.tasks[task][0], cot=False)["test"])
        synthetic |= any(document["data"] == "sample" for document in rows.values())
        drawn = Random(f"{seed} {task}").sample(sorted(rows), min(documents, len(rows)))
        items.append(_asked(task, PROMPT, rows[min(drawn)], language))
        items += [_asked(task, name, rows[name], language) for name in sorted(drawn)]
        invented = rows[drawn[0]]["data"] == "sample"
        if not invented:
            synthetic_rows = _items_of(
                load_documents(registry.tasks[task][0], cot=False, origin="sample")["test"]
            )
            shown = sorted(synthetic_rows)[:SAMPLES]
            items += [_asked(task, SYNTHETIC + name, synthetic_rows[name], language) for name in shown]
        counts[task] = {
            "documents": len(drawn),
            "of": len(rows),
            "dataset": registry.tasks[task][0].id,
            "invented": invented,
            "open": metadata[task].access == "open",
        }
    gated = any(item.access != "open" for item in metadata.values())
    return Export(
        kind="review",
        language=language,
        forms=shuffled_forms(items, experts, seed),
        notices=notices_of(synthetic=synthetic, gated=gated),
        record={"seed": seed, "tasks": counts, "SAMPLE_DATA": synthetic},
    )


def _items_of(documents: Iterable[Document]) -> dict[str, Document]:
    """Item -> document, the first where an item is asked with several orders of its options."""
    items: dict[str, Document] = {}
    for document in documents:
        items.setdefault(str(document.get("item", document["id"])), document)
    return items


def _asked(task: str, name: str, document: Document, language: Language) -> list[FormItem]:
    """The page of an item, or about a task's prompt, which the expert signs: `PROMPT`."""
    of_prompt = name == PROMPT
    points = [] if of_prompt else document.get("points") or []
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
    about_prompt = (WORDING, SIGNED, NATIVE)
    return [
        FormItem(
            page=f"{task} {name}",
            about={"task": task, "item": name, "criterion": criterion.id},
            texts={
                **shown,
                "criterion": criterion.label.of(language),
                "asks": criterion.help.of(language),
            },
            options=[] if criterion.id in FREE else None,
        )
        for criterion in load_kind("review").prompts
        if criterion.id == REMARK
        or ((criterion.id in about_prompt) == of_prompt and not (absent.get(criterion.id) and not of_prompt))
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
        if row.about["criterion"] in (SIGNED, NATIVE):
            continue  # by whom, not what
        if row.about["criterion"] == REMARK:
            remarks.setdefault(place, []).append(row.answers["verdict"])
        else:
            by_expert = verdicts.setdefault(place, {}).setdefault(row.about["criterion"], {})
            by_expert[row.form] = int(row.answers["verdict"] == "yes")
    tasks = list(key["tasks"])
    figures = []
    for name, members in [(task, [task]) for task in tasks] + ([(ALL, tasks)] if len(tasks) > 1 else []):
        for criterion in load_kind("review").prompts:
            votes_of_items = {
                f"{task} {item}": by[criterion.id]
                for (task, item), by in verdicts.items()
                if task in members and criterion.id in by
            }
            if votes_of_items:
                figures.append(_criterion(name, criterion.id, votes_of_items))
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


def _criterion(task: str, criterion: str, votes_of_items: Mapping[str, Mapping[str, int]]) -> CriterionReview:
    met = [sum(votes.values()) for votes in votes_of_items.values()]
    given = [len(votes) for votes in votes_of_items.values()]
    low = high = None
    if len(votes_of_items) > 1:
        interval = of_shares(met, given)
        low, high = (interval.low, interval.high) if interval else (None, None)
    by_expert: dict[str, dict[str, int]] = {}
    for item, votes in votes_of_items.items():
        for expert, vote in votes.items():
            by_expert.setdefault(expert, {})[item] = vote
    return CriterionReview(
        task,
        criterion,
        len(votes_of_items),
        sum(met) / sum(given),
        low,
        high,
        sum(one == of for one, of in zip(met, given, strict=True)) / len(votes_of_items),
        kappas(by_expert, [0, 1]),
    )


def _outcome(by_criterion: Mapping[str, Mapping[str, int]]) -> Outcome:
    votes = [set(by.values()) for by in by_criterion.values()]
    if {0} in votes:
        return "failed"
    return "accepted" if all(answers == {1} for answers in votes) else "disputed"


@dataclass(frozen=True)
class NativeReview:
    """What one native speaker's form says of a dataset: an entry of `reviewed` in its card."""

    dataset: str
    entry: Reviewed


def native_reviews(rows: Iterable[Filled], key: Mapping[str, Any], day: date) -> list[NativeReview]:
    """The entries of `reviewed` that signed forms make, by dataset and expert.

    A row is wrong where any criterion is not met; the gold answer of a real row of open data where the
    criterion `answer` is not.

    Args:
        rows: filled.
        key: of the export.
        day: of the review.

    Raises:
        MedtasksError: a native language is none of ISO 639.
    """
    told: dict[tuple[str, str], dict[str, dict[str, str]]] = {}  # task, expert -> item -> criterion -> answer
    for row in rows:
        items = told.setdefault((row.about["task"], row.form), {})
        items.setdefault(row.about["item"], {})[row.about["criterion"]] = row.answers["verdict"]
    reviews = []
    for (task, expert), items in sorted(told.items()):
        about, prompt = key["tasks"][task], items.pop(PROMPT, {})
        native = [code.strip().lower() for code in prompt.get(NATIVE, "").replace(";", ",").split(",")]
        if not prompt.get(SIGNED, "").strip() or not any(native):
            continue
        invented = [by for item, by in items.items() if about["invented"] or item.startswith(SYNTHETIC)]
        real = [by for item, by in items.items() if not about["invented"] and not item.startswith(SYNTHETIC)]
        golds = [by["answer"] for by in real if "answer" in by] if about["open"] else []
        asked = [criterion.id for criterion in load_kind("review").prompts if criterion.id not in FREE]
        wrong = sum(any(by.get(name) == "no" for name in asked) for by in invented)
        entry = validated(
            partial(
                Reviewed,
                by=prompt[SIGNED].strip(),
                native=[code for code in native if code],
                prompt=prompt[WORDING] == "yes" if WORDING in prompt else None,
                rows=ReadRows(read=len(invented), wrong=wrong) if invented else None,
                gold=ReadRows(read=len(golds), wrong=golds.count("no")) if golds else None,
                day=day,
            ),
            where=f"{expert}, {task}, native languages",
            remedy="write codes of ISO 639 with commas between",
            first=True,
        )
        reviews.append(NativeReview(about["dataset"], entry))
    return reviews


def write_reviewed(folder: Path, reviews: Sequence[NativeReview]) -> Path | None:
    """`reviewed.yaml`: by dataset, the entries as its card takes them; nothing where no form is signed."""
    if not reviews:
        return None
    entries: dict[str, list[dict[str, Any]]] = {}
    for item in reviews:
        entries.setdefault(item.dataset, []).append(item.entry.model_dump(exclude_none=True))
    path = folder / "reviewed.yaml"
    text = "# for the card.yaml of each dataset, under `reviewed`\n"
    write_text(path, text + yaml.safe_dump(entries, allow_unicode=True, sort_keys=False))
    return path


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
        {"task": one.task, "criterion": one.criterion, **agreement_row(estimate)}
        for one in figures
        for estimate in one.agreement
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
