"""What votes amount to, as files: results.json, votes.csv, and what the kind of form adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.csvfile import write_csv
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json, write_lines
from medtasks_ext.runs.manifest import Identity
from medtasks_ext.stats.agreement import Kappa, kappas
from medtasks_ext.stats.bootstrap import METHOD, RESAMPLES
from medtasks_ext.stats.votes import LOSS, MEAN, OUTCOMES, RATES, TIE, WIN, Rate, Votes, majority, rates
from medtasks_lab.human.kinds import load_kind

if TYPE_CHECKING:
    from medtasks_lab.human.ingest import Filled, Ingested

MERGING = (
    "mean: share of all votes; majority: the outcome that more voters chose than any other, "
    "a tie where there is none"
)
MET, NOT_MET = 1, 0


@dataclass(frozen=True)
class Criterion:
    """One criterion of one task: figures of the first run against the second."""

    task: str
    criterion: str
    rates: list[Rate]
    agreement: list[Kappa]


@dataclass(frozen=True)
class Decision:
    """What experts decided about a scoring point."""

    case: str
    point: str
    weight: float
    #: the majority's decision, or the only expert's; None where there is no majority or no vote
    met: bool | None
    votes: Mapping[str, bool]  # expert -> met


def criteria(rows: Iterable[Filled], key: Mapping[str, Any]) -> list[Criterion]:
    """The figures of a pairwise form, by task and criterion."""
    votes: dict[tuple[str, str], Votes] = {}
    for row in rows:
        for criterion in row.answers:
            by_expert = votes.setdefault((row.about["task"], criterion), {})
            by_expert.setdefault(row.form, {})[row.about["document"]] = _outcome(row, criterion)
    return [
        Criterion(
            task,
            question.id,
            rates(of_criterion, key["tasks"][task]["dataset"]),
            kappas(of_criterion, sorted(OUTCOMES.values())),
        )
        for task in key["tasks"]
        for question in load_kind("pairwise").questions
        if (of_criterion := votes.get((task, question.id)))
    ]


def _outcome(row: Filled, criterion: str) -> int:
    """What the answer means for the first run."""
    if row.answers[criterion] == "tie":
        return TIE
    return WIN if row.answers[criterion] == row.about["first_run_is"] else LOSS


def decisions(rows: Iterable[Filled], key: Mapping[str, Any]) -> list[Decision]:
    """The decisions about all points of a queue, in its order."""
    votes: dict[tuple[str, str], dict[str, bool]] = {}
    for row in rows:
        place = (row.about["case"], row.about["point"])
        votes.setdefault(place, {})[row.form] = row.answers["decision"] == "met"
    decided = []
    for case in key["cases"]:
        for point in case["points"]:
            here = votes.get((case["id"], point["id"]), {})
            vote = majority(Counter(map(int, here.values()))) if here else None
            decided.append(
                Decision(
                    case["id"], point["id"], point["weight"], None if vote is None else vote == MET, here
                )
            )
    return decided


def point_agreement(ratings: Sequence[Decision]) -> list[Kappa]:
    """How far experts agree about points."""
    votes: dict[str, dict[str, int]] = {}
    for number, decision in enumerate(ratings):
        for expert, met in decision.votes.items():
            votes.setdefault(expert, {})[f"{number}"] = int(met)
    return kappas(votes, [NOT_MET, MET])


# ---------------------------------------------------------------------- files


@dataclass(frozen=True)
class ExpertRate:
    """How often experts found one model's answers at least as good as another's."""

    dataset: str
    criterion: str
    model: str
    rival: str
    win_tie: float  # share of all votes, 0-1
    documents: int
    experts: int


def is_pairwise(folder: Path) -> bool:
    """Whether a folder holds what `write_pairwise` wrote."""
    return (folder / "rates.csv").is_file() and (folder / "results.json").is_file()


def read_rates(folder: Path) -> list[ExpertRate]:
    """The rates of a folder of `medtasks human ingest`: of all experts together.

    Raises:
        MedtasksError: it is damaged, or rests on synthetic rows.
    """
    path = folder / "results.json"
    content = read_json(path)
    if content.get("SAMPLE_DATA"):
        raise MedtasksError(
            "synthetic sample rows cannot stand beside published scores",
            where=folder,
            remedy="let experts compare answers to real rows",
        )
    try:
        identities = (Identity(model=run["model"], settings={}) for run in content["runs"])
        experts, (model, rival) = len(content["experts"]), (item.model_name for item in identities)
        merged = [row for row in content["rates"] if row["by"] == (MEAN if experts > 1 else row["by"])]
        return [
            ExpertRate(
                dataset=content["tasks"][row["task"]]["dataset"],
                criterion=row["criterion"],
                model=model,
                rival=rival,
                win_tie=row["win_tie"],
                documents=row["documents"],
                experts=experts,
            )
            for row in merged
        ]
    except (KeyError, TypeError, ValueError):
        raise MedtasksError(
            "is no result of a pairwise comparison", where=path, remedy="medtasks human ingest FORM --key KEY"
        ) from None


def write_pairwise(
    folder: Path, criteria_read: Sequence[Criterion], read: Ingested, key: Mapping[str, Any]
) -> None:
    """`results.json`, `rates.csv`, `agreement.csv`, `votes.csv`."""
    rate_rows = [rate_row(item, rate, "human") for item in criteria_read for rate in item.rates]
    agreement = agreement_rows(criteria_read)
    names = {value: name for name, value in OUTCOMES.items()}
    votes = [
        {
            "task": row.about["task"],
            "document": row.about["document"],
            "expert": row.form,
            **{name: names[_outcome(row, name)] for name in row.answers},
        }
        for row in read.rows
    ]
    write_csv(folder / "rates.csv", rate_rows)
    write_csv(folder / "agreement.csv", agreement)
    write_csv(folder / "votes.csv", votes)
    write_json(
        folder / "results.json",
        {
            "evaluation": "human experts, blinded pairwise comparison",
            **origin(read, key),
            "runs": key["runs"],
            "win": "the first run is better",
            "tasks": key["tasks"],
            "merging": f"{MERGING}. How the published figures merge three experts is not stated.",
            "interval_method": METHOD,
            "resamples": RESAMPLES,
            "rates": rate_rows,
            "agreement": agreement,
        },
    )


def write_points(folder: Path, figures: Sequence[Decision], read: Ingested, key: Mapping[str, Any]) -> None:
    """`decisions.jsonl` (a case per line), `votes.csv`, `results.json`."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for item in figures:
        cases.setdefault(item.case, []).append(
            {"id": item.point, "weight": item.weight, "met": item.met, "votes": dict(item.votes)}
        )
    write_lines(
        folder / "decisions.jsonl", ({"id": case, "points": points} for case, points in cases.items())
    )
    votes = [
        {"case": item.case, "point": item.point, "expert": expert, "decision": "met" if met else "not_met"}
        for item in figures
        for expert, met in item.votes.items()
    ]
    write_csv(folder / "votes.csv", votes)
    write_json(
        folder / "results.json",
        {
            "evaluation": "human experts, decisions on scoring points",
            **origin(read, key),
            "queue": key["queue"],
            "points": len(figures),
            "met": sum(item.met is True for item in figures),
            "not_met": sum(item.met is False for item in figures),
            "undecided": sum(item.met is None for item in figures),
            "agreement": [agreement_row(one) for one in point_agreement(figures)],
        },
    )


def check_earlier(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    """Refuse to write over results that hold more than what is given now.

    Raises:
        MedtasksError: the folder has results of another export, or of rows that are not given now.
    """
    path = folder / "results.json"
    if not path.is_file():
        return
    earlier = read_json(path)
    if earlier.get("export") != key["export"]:
        raise MedtasksError(
            "holds results of another export", where=folder, remedy="name another folder with -o"
        )
    now = Counter(row.form for row in read.rows)
    if gone := [form for form, n in earlier.get("rows_by_expert", {}).items() if n > now[form]]:
        raise MedtasksError(
            f"its results rest on rows of {', '.join(gone)} that are not given now",
            where=folder,
            remedy="give all forms together, or name another folder with -o (nothing was written)",
        )


def origin(read: Ingested, key: Mapping[str, Any]) -> dict[str, Any]:
    """What all results say of the forms that they rest on."""
    return {
        "export": key["export"],
        **({"SAMPLE_DATA": True} if key.get("SAMPLE_DATA") else {}),
        "experts": sorted({row.form for row in read.rows}),
        "rows": len(read.rows),
        "rows_by_expert": Counter(row.form for row in read.rows),
        "rows_missing": read.n_missing,
        "missing": {"absent": read.absent, "incomplete": read.incomplete},
    }


def rate_row(item: Criterion, rate: Rate, source: str) -> dict[str, Any]:
    """A rate as files hold it; `metric` names its `win_tie` after who voted, `human` or `jury`."""
    row: dict[str, Any] = {
        "task": item.task,
        "criterion": item.criterion,
        "metric": f"{source}_win_tie_{item.criterion}",
        "by": rate.by,
        "documents": rate.n,
        "without_majority": rate.undecided,
    }
    for name in RATES:
        interval = rate.intervals[name]
        row[name] = rate.shares[name]
        row[f"{name}_low"] = interval.low if interval else None
        row[f"{name}_high"] = interval.high if interval else None
    return row


def agreement_row(one: Kappa) -> dict[str, Any]:
    """A figure of agreement as files hold it."""
    return {**one._asdict(), "between": ", ".join(one.between)}


def agreement_rows(criteria: Iterable[Criterion]) -> list[dict[str, Any]]:
    """The agreement about each criterion as files hold it."""
    return [
        {"task": item.task, "criterion": item.criterion, **agreement_row(one)}
        for item in criteria
        for one in item.agreement
    ]
