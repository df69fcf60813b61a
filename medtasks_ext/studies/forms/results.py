"""What filled forms amount to: tables of rows, by kind; `kinds/*.yaml` says which of them are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import write_json, write_lines
from medtasks_ext.results.published import published
from medtasks_ext.stats import agreement as agree
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, of_shares

Rows = Sequence[Mapping[str, Any]]
Tables = dict[str, list[dict[str, Any]]]
#: (task, criterion) -> expert -> unit -> what was said
Groups = dict[tuple[str, str], dict[str, dict[str, str]]]
OUTCOMES = ("win", "tie", "loss")
COMPOSITE = "mean of axes"


def tables_of(rows: Rows, key: Mapping[str, Any]) -> Tables:
    """Name -> rows of the tables of a kind; with the agreement about each criterion.

    A criterion's agreement: Fleiss' kappa of all experts, Cohen's of each pair; of ratings ICC(3,k) after
    z-scoring, the mean over pairs, Krippendorff's alpha and Cohen's kappa with quadratic weights.
    """
    if key["kind"] == "likert":  # an answer counts where all of its axes are rated
        rated = Counter((row["form"], row["about"]["task"], row["about"]["unit"]) for row in rows)
        axes = {task: len(of["axes"]) for task, of in key["tasks"].items()}
        whole = {place for place, n in rated.items() if n == axes[place[1]]}
        rows = [row for row in rows if (row["form"], row["about"]["task"], row["about"]["unit"]) in whole]
    groups: Groups = {}
    for row in rows:
        about = row["about"]
        for question, said in row["answers"].items():
            if side := about.get("first_run_is"):
                said = "tie" if said == "tie" else "win" if said == side else "loss"
            place = (about["task"], about.get("criterion", question))
            groups.setdefault(place, {}).setdefault(row["form"], {})[about["unit"]] = said
    if key["kind"] == "likert":
        return _likert(groups, rows, key)
    of_kind = {"pairwise": _pairwise, "points": _points, "review": _review, "survey": _survey}[key["kind"]]
    if key["kind"] == "points":  # their agreement is about the points of all cases
        points: dict[str, dict[str, str]] = {}
        for (case, _), by in groups.items():
            for expert, said_of in by.items():
                of_case = {f"{case}\t{unit}": said for unit, said in said_of.items()}
                points.setdefault(expert, {}).update(of_case)
        compared: Groups = {("points", "decision"): points}
    else:
        free = ("remark", "comments", "comprehensiveness")
        compared = {place: by for place, by in groups.items() if place[1] not in free}
    found = []
    for (task, criterion), by in compared.items():
        values = sorted({said for said_of in by.values() for said in said_of.values()})
        votes = {expert: {unit: values.index(said) for unit, said in of.items()} for expert, of in by.items()}
        for one in agree.kappas(votes, range(len(values))):
            row = {**one._asdict(), "between": ", ".join(one.between)}
            found.append({"task": task, "criterion": criterion, **row})
    return {**of_kind(groups, key), "agreement": found}


def write_results(folder: Path, key: Mapping[str, Any], rows: Rows, missing: Any, tables: Tables) -> None:
    """TABLE.csv for each table, `results.json`, and of points `decisions.jsonl`, a case a line."""
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in tables.get("decisions", ()):
        cases.setdefault(row["case"], []).append({"id": row["point"], "met": row["met"]})
    if cases:
        write_lines(folder / "decisions.jsonl", ({"id": case, "points": of} for case, of in cases.items()))
    told = ("kind", "export", "runs", "tasks", "suite", "SAMPLE_DATA")
    about = {name: key[name] for name in told if name in key}
    by_expert = Counter(row["form"] for row in rows)
    more = {"experts": sorted(by_expert), "missing": missing, "interval_method": WILSON_OF_UNITS}
    write_json(folder / "results.json", {**about, **more, **tables})


def _share(hits: Any, of: Any) -> tuple[float, float | None, float | None]:
    """A share with its 95 % interval, over units; none below two."""
    around = of_shares(hits, of) if len(hits) > 1 else None
    return float(np.sum(hits) / np.sum(of)), around.low if around else None, around.high if around else None


def _pairwise(groups: Groups, key: Mapping[str, Any]) -> Tables:
    """Rates of the first run, of each expert and of all together.

    `mean` is the share of all votes; `majority` takes for each document what more experts chose than anything
    else, and a tie where there is no such thing. How ClinicBench merges its experts is not stated.
    """
    rates = []
    for (task, criterion), votes in groups.items():
        units = sorted({unit for by in votes.values() for unit in by})
        tables: dict[str, Any] = {}
        for expert, by in sorted(votes.items()):
            votes_of = [[by[unit] == one for one in OUTCOMES] for unit in units if unit in by]
            tables[expert] = np.array(votes_of, dtype=float)
        if len(votes) > 1:
            of = ([by.get(unit) for by in votes.values()] for unit in units)
            tables["mean"] = np.array([[given.count(one) for one in OUTCOMES] for given in of], dtype=float)
            most = tables["mean"] == tables["mean"].max(axis=1, keepdims=True)
            one = most.sum(axis=1, keepdims=True) == 1
            tables["majority"] = np.where(one, most, [False, True, False]).astype(float)
        for name_of, table in tables.items():
            row = {"task": task, "criterion": criterion, "by": name_of, "documents": len(table)}
            for name, which in zip((*OUTCOMES, "win_tie"), [*np.eye(3), np.array([1, 1, 0])], strict=True):
                ends = _share(table @ which, table.sum(axis=1))
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            rates.append(row)
    return {"rates": rates}


def _points(groups: Groups, key: Mapping[str, Any]) -> Tables:
    decided = []
    for case, weights in key["cases"].items():
        votes = list(groups.get((case, "decision"), {}).values())
        for point, weight in weights.items():
            met = [by[point] == "met" for by in votes if point in by]
            excess = 2 * sum(met) - len(met)  # of those who say so over the others
            made = {"met": excess > 0 if excess else None, "experts": len(met)}
            decided.append({"case": case, "point": point, "weight": weight, **made})
    return {"decisions": decided}


def _likert(groups: Groups, rows: Rows, key: Mapping[str, Any]) -> Tables:
    scores, found = [], []
    rated_on: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for (task, axis), by in groups.items():
        for rater, of in by.items():
            for unit, said in of.items():
                for name in (axis, COMPOSITE):
                    ratings = rated_on.setdefault((task, name), {}).setdefault(rater, {})
                    share = 1 if name == axis else 1 / len(key["tasks"][task]["axes"])
                    ratings[unit] = ratings.get(unit, 0) + share * float(said)
    for (task, axis), rated in rated_on.items():
        of_runs: dict[str, dict[str, list[float]]] = {}
        for ratings in rated.values():
            for unit, value in ratings.items():
                of_runs.setdefault(unit.partition("\t")[0], {}).setdefault(unit, []).append(value)
        for run, by_unit in of_runs.items():
            means = [fmean(values) for values in by_unit.values()]
            figures = {"mean": fmean(means), "sd": stdev(means) if len(means) > 1 else None, "n": len(means)}
            scores.append({"task": task, "run": run, "axis": axis, **figures})
        table = agree.rating_table(rated)
        measures = {
            "ICC(3,k)": agree.icc_of_raters(table, task),
            "mean of pairs' ICC": agree.pairwise_baseline(rated),
            "alpha": agree.krippendorff_alpha(table, "ordinal", task),
        }
        if axis != COMPOSITE:  # a mean is no value of the scale
            measures["kappa"] = agree.mean_kappa(table, key["tasks"][task]["scale"], "quadratic", task)
        of = {"task": task, "axis": axis}
        if len(rated) > 1:
            found += [{**of, "measure": name, **one._asdict()} for name, one in measures.items()]
    lines = []
    for row in rows:
        about, (run, _, document) = row["about"], row["about"]["unit"].partition("\t")
        what = {"task": about["task"], "document": document, "rater": row["form"], "axis": about["criterion"]}
        lines.append({**what, "score": row["answers"]["rating"], "run": run, "response": about["response"]})
    return {"scores": scores, "ratings": lines, "agreement": found}


def _review(groups: Groups, key: Mapping[str, Any]) -> Tables:
    criteria, said = [], dict[tuple[str, str], dict[str, list[str]]]()
    for (task, criterion), by in groups.items():
        verdicts: dict[str, list[str]] = {}
        for of in by.values():
            for unit, verdict in of.items():
                verdicts.setdefault(unit, []).append(verdict)
        for unit, some in verdicts.items():
            said.setdefault((task, unit), {})[criterion] = some
        if criterion != "remark":
            met = np.array([some.count("yes") for some in verdicts.values()])
            share, low, high = _share(met, given := np.array([len(some) for some in verdicts.values()]))
            figures = {"met": share, "low": low, "high": high, "met_by_all": float((met == given).mean())}
            criteria.append({"task": task, "criterion": criterion, "items": len(met), **figures})
    items = []
    for (task, unit), verdicts in sorted(said.items()):
        remarks = "\n".join(verdicts.pop("remark", []))
        failed = [name for name, some in verdicts.items() if "no" in some]
        outcome = "failed" if any("yes" not in verdicts[name] for name in failed) else "disputed"
        row = {"task": task, "item": unit, "outcome": outcome if failed else "accepted"}
        items.append({**row, "not_met": ", ".join(failed), "remarks": remarks})
    counts = Counter(row["outcome"] for row in items)
    outcomes = [{name: counts[name] for name in ("accepted", "failed", "disputed")}]
    return {"criteria": criteria, "items": items, "outcomes": outcomes}


def _survey(groups: Groups, key: Mapping[str, Any]) -> Tables:
    intended, suite = key["intended"], key["suite"]
    votes = list(groups.get((suite, "assignment"), {}).values())
    assigned = []
    for unit, category in intended.items():
        given = Counter(by[unit] for by in votes if unit in by)
        counts = {name: given[name] for name in dict.fromkeys(intended.values())}
        share = given[category] / given.total() if given else None
        row = {"value": unit, "category": category, "agreement": share, "n": given.total()}
        assigned.append({**row, **counts})
    right = [sum(intended[unit] == said for unit, said in by.items()) for by in votes]
    rate = _share(np.array(right), np.array([len(by) for by in votes])) if votes else (None, None, None)
    stars = [int(by[""]) for by in groups.get((suite, "comprehensiveness"), {}).values()]
    comments = [
        {"expert": expert, "about": unit, "text": text.strip()}
        for expert, by in groups.get((suite, "comments"), {}).items()
        for unit, said in by.items()
        for text in said.splitlines()
        if text.strip()
    ]
    figures = {
        "agreement_rate": rate,
        "comprehensiveness_mean": (fmean(stars) if stars else None, None, None),
        "comprehensiveness_sd": (stdev(stars) if len(stars) > 1 else None, None, None),
        "clinicians": (len(stars), None, None),
        "comments": (len(comments), None, None),
    }
    known = [row for row in published("taxonomy_survey.csv") if row["suite"] == suite]
    paper, summary = {row["measure"]: row["value"] for row in known}, []
    for name, (value, low, high) in figures.items():
        row = {"measure": name, "value": value, "low": low, "high": high}
        summary.append({**row, "published": paper.get(name)})
    return {"summary": summary, "assignments": assigned, "comments": comments}
