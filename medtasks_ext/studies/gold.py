"""Whether reference answers hold, by a jury, and how runs score with good and with doubtful ones.

MedHELM (arXiv v1, Appendix D and Figure 6) has a model flag references that rest on more than the input, and
compares the scores of answers whose reference is flagged with those of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.stats.bootstrap import percentile_interval, resampling_weights
from medtasks_ext.studies.said import Said, rubric_of

if TYPE_CHECKING:
    from medtasks_ext.runs.folder import RunFolder


def gold_cases(tasks: Iterable[JudgedTask]) -> list[JudgedTask]:
    """The references of runs' judged tasks, each once; tasks without any are left out."""
    rubric = rubric_of("gold")
    by_task: dict[str, JudgedTask] = {}
    seen: set[tuple[str, str]] = set()
    for task in tasks:
        for case in task.cases:
            if "gold" in case.texts and (task.name, case.document) not in seen:
                seen.add((task.name, case.document))
                own = by_task.setdefault(task.name, JudgedTask(task.name, rubric, task.open_access))
                texts = {"question": case.texts["question"], "response": case.texts["gold"]}
                own.cases.append(Case(case.document, case.run, texts, rubric, synthetic=case.synthetic))
    return list(by_task.values())


def gold_tables(
    tasks: Sequence[JudgedTask], said: Said, runs: Mapping[str, RunFolder]
) -> dict[str, list[dict[str, Any]]]:
    """`flags`, `tasks`: references that more judges doubt than accept; `scores`: the jury's by these."""
    tables: dict[str, list[dict[str, Any]]] = {"tasks": [], "scores": [], "flags": []}
    for task in tasks:
        flags = {}
        for case in task.cases:
            if votes := [by["reference"] for by in said[task.name, case.document].values()]:
                flags[case.document] = 2 * sum(votes) < len(votes)
        for name, folder in runs.items():
            path = folder.judged_file(task.name)
            documents = read_json(path)["documents"] if path.is_file() else []
            if by := {item["document"]: item["score"] for item in documents if item["score"] is not None}:
                row = _by_reference(task.name, by, flags)
                tables["scores"].append({"task": task.name, "run": name, **row})
        n = {"documents": len(flags), "flagged": sum(flags.values()), "missing": len(task.cases) - len(flags)}
        percent = 100 * n["flagged"] / len(flags) if flags else None
        tables["tasks"].append({"task": task.name, **n, "percent": percent})
        rows = [{"task": task.name, "document": name, "flagged": int(flag)} for name, flag in flags.items()]
        tables["flags"] += rows
    return tables


def _by_reference(task: str, scores: Mapping[str, float], flags: Mapping[str, bool]) -> dict[str, Any]:
    """Means of one run on 0-1, and the difference with its 95 % interval, documents drawn anew."""
    shared = sorted(set(scores) & set(flags))
    values = np.array([scores[document] for document in shared])
    flagged = np.array([flags[document] for document in shared], dtype=bool)
    row: dict[str, Any] = {"n_flagged": int(flagged.sum()), "n_accepted": int((~flagged).sum())}
    for name, part in (("flagged", flagged), ("accepted", ~flagged)):
        row[name] = float(values[part].mean()) if part.any() else None
    if None in row.values():
        return {**row, "difference": None, "low": None, "high": None}
    weights = resampling_weights(task, len(shared)).astype(float)
    with np.errstate(invalid="ignore"):  # a resample without one of the two has no difference
        drawn = [weights @ (values * part) / (weights @ part) for part in (flagged, ~flagged)]
    differences = drawn[0] - drawn[1]
    around = percentile_interval(differences[~np.isnan(differences)])
    return {**row, "difference": row["flagged"] - row["accepted"], "low": around.low, "high": around.high}
