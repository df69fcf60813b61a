"""Adjudicated cases, the data that a judge model is fine-tuned on, and its decisions against those of experts
(MLB, sections 3.6 and 4.4, Table 5); references that a jury doubts (MedHELM).

A case is one answer with its scoring points, each of which an expert has decided to be met or not:

    {"id": "…", "task": "…", "document": "…", "question": "…", "answer": "…",
     "points": [{"id": "…", "text": "…", "weight": 1}],
     "decisions": {"POINT": true}, "decided_by": "expert"}

`task`, `document` and `weight` may be missing. Decisions may also stand at the points (`met`), as in the
file that `medtasks study forms` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines, parse_json, read_json, write_json, write_lines
from medtasks_ext.judge.cases import FIELD, PROTOCOL, JudgedTask, point_rubric, shown_for_point
from medtasks_ext.judge.cases import Case as JudgedCase
from medtasks_ext.judge.protocol import AXIS
from medtasks_ext.metrics.common import micro_f1, micro_precision, micro_recall
from medtasks_ext.process import SEED, random_rank
from medtasks_ext.stats.bootstrap import percentile_interval, resample, resampling_weights
from medtasks_ext.stats.intervals import intervals_of
from medtasks_ext.stats.statistic import Array, Counts, Statistic, as_they_are, by_unit, ratios
from medtasks_ext.studies.said import Said, rubric_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.folder import RunFolder

#: Of the questions, that is held out.
TEST_SHARE = 0.1
EXPERT, TASK = "expert", "scoring_points"
Case = dict[str, Any]
#: (case, point) -> whether it is met
Decisions = dict[tuple[str, str], bool]
_SHAPE = "docs/judges.md shows what a case looks like"


def read_cases(paths: Iterable[Path], *, texts: bool = True) -> dict[str, Case]:
    """Case id -> case, from JSON lines; `points`: point -> text, `decisions`: point -> whether it is met.

    The same line in two files counts once. With `texts`, question and points must be there to be shown.
    """
    cases: dict[str, Case] = {}
    for path in paths:
        for number, line in numbered_lines(path, remedy="name a JSONL file of cases"):
            try:
                case = _case(parse_json(line))
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                what = str(error) if type(error) is ValueError else "no case"
                raise MedtasksError(what, where=f"{path}:{number}", remedy=_SHAPE) from None
            if texts and not (case["question"].strip() and all(map(str.strip, case["points"].values()))):
                what = "no text of the question, or of a point"
                raise MedtasksError(what, where=f"{path}:{number}", remedy=_SHAPE)
            if cases.setdefault(case["id"], case) != case:
                what, remedy = f"case {case['id']} occurs twice", "give each answer an id of its own"
                raise MedtasksError(what, where=f"{path}:{number}", remedy=remedy)
    if not cases:
        raise MedtasksError("no cases", where=", ".join(map(str, paths)), remedy=_SHAPE)
    return cases


def _case(given: Mapping[str, Any]) -> Case:
    points = {point["id"]: point.get("text", "") for point in given["points"]}
    if not points or len(points) < len(given["points"]):
        raise ValueError("no points, or two with the same id")
    met = {point["id"]: point["met"] for point in given["points"] if point.get("met") is not None}
    decisions = given.get("decisions", {})
    if unknown := decisions.keys() - points.keys():
        raise ValueError(f"a decision about {min(unknown)!r}, which is no point of the case")
    both = {**met, **decisions}
    if any(type(value) is not bool for value in both.values()) or both != {**decisions, **met}:
        raise ValueError("decisions are true or false, and one of each point")
    names = ("id", "task", "document", "question", "answer", "decided_by")
    named = {name: str(given[name] if name == "id" else given.get(name, "")) for name in names}
    return {**named, "points": points, "decisions": both}


def expert_decisions(cases: Mapping[str, Case], files: Sequence[Path] = ()) -> Decisions:
    """What experts decided: in the cases that are marked so (`decided_by`), and in further files."""
    marked = [case for case in cases.values() if case["decided_by"] == EXPERT]
    decisions = {(case["id"], point): met for case in marked for point, met in case["decisions"].items()}
    for path in files:
        for (case, point), met in decisions_about(cases, path).items():
            if decisions.setdefault((case, point), met) != met:
                what = f"another decision about point {point} of case {case} than before"
                raise MedtasksError(what, where=path, remedy="keep the final one")
    if not decisions:
        remedy = f'mark the cases with "decided_by": "{EXPERT}", or name the decisions (--expert FILE)'
        where = ", ".join(map(str, files)) or "cases"
        raise MedtasksError("no decision of an expert", where=where, remedy=remedy)
    return decisions


def decisions_about(cases: Mapping[str, Case], path: Path) -> Decisions:
    """The decisions in a file, all of which must be about points of the cases."""
    decisions = {}
    for item in read_cases([path], texts=False).values():
        known = cases.get(item["id"], {"points": ()})["points"]
        for point, met in item["decisions"].items():
            if point not in known:
                what = f"point {point} of case {item['id']}" if known else f"case {item['id']}"
                what = f"a decision about {what}, which is not among the cases"
                remedy = "give the file of cases that the decisions are about"
                raise MedtasksError(what, where=path, remedy=remedy)
            decisions[item["id"], point] = met
    return decisions


def question_of(case: Case) -> str:
    """What cases that ask the same have in common: the question without blanks and case."""
    return "".join(case["question"].split()).casefold()


def split_by_question(cases: Mapping[str, Case], decisions: Decisions) -> dict[str, list[Case]]:
    """`train` and `test`: cases with the decisions of experts alone, no question on both sides.

    Depends on the cases alone; the order is random, so its first n are a random subset.
    """
    used = {}
    for name, case in cases.items():
        if of := {point: decisions[name, point] for point in case["points"] if (name, point) in decisions}:
            used[name] = {**case, "decisions": of}
    order = sorted(set(map(question_of, used.values())), key=lambda question: random_rank(SEED, question))
    if len(order) < 2:
        what, remedy = "one question cannot be split", "give cases of several questions"
        raise MedtasksError(what, where="cases", remedy=remedy)
    held_out = set(order[: min(max(round(TEST_SHARE * len(order)), 1), len(order) - 1)])
    ranked = sorted(used.values(), key=lambda case: random_rank(SEED, case["id"]))
    test = [case for case in ranked if question_of(case) in held_out]
    return {"train": [case for case in ranked if question_of(case) not in held_out], "test": test}


def training_rows(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Rows of TRL's conversational prompt-completion format, in random order."""
    rubric, rows = point_rubric(), []
    for case in cases:
        for point, met in case["decisions"].items():
            texts = shown_for_point(case["question"], case["points"][point], case["answer"])
            said = json.dumps(rubric.written({AXIS: {FIELD: met}}, texts))
            completion = [{"role": "assistant", "content": said}]
            about = {"case": case["id"], "point": point}
            rows.append({**about, "prompt": rubric.messages(texts), "completion": completion})
    return sorted(rows, key=lambda row: random_rank(SEED, f"{row['case']}\x1f{row['point']}"))


def write_split(folder: Path, split: Mapping[str, list[Case]]) -> list[dict[str, Any]]:
    """Write `train.jsonl`, `test.jsonl`, `test_cases.jsonl`, `split.json`; a row of numbers for each side."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = []
    for side, cases in split.items():
        rows, n = training_rows(cases), len(set(map(question_of, cases)))
        write_lines(folder / f"{side}.jsonl", rows)
        met = sum(sum(case["decisions"].values()) for case in cases)
        counts = {"questions": n, "answers": len(cases), "points": len(rows), "met": met}
        sides.append({"side": side, **counts, "share": met / len(rows)})
    shown = []
    for case in split["test"]:
        points = [{"id": name, "text": text} for name, text in case["points"].items()]
        shown.append({**case, "points": points, "decided_by": EXPERT})
    write_lines(folder / "test_cases.jsonl", shown)
    about = {"protocol": PROTOCOL, "prompt_version": point_rubric().version}
    write_json(folder / "split.json", {**about, "test_share": TEST_SHARE, "seed": SEED, "sides": sides})
    return sides


def _kappa(sums: Array) -> Array:
    tp, fp, fn, tn = np.moveaxis(sums, -1, 0)
    n = tp + fp + fn + tn
    expected = ratios((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn), n * n)
    return ratios(ratios(tp + tn, n) - expected, 1 - expected)


#: of (tp, fp, fn, tn); positive is a point that is met
OF_COUNTS = {
    "accuracy": Statistic(
        "accuracy", as_they_are, lambda sums: ratios(sums[..., 0] + sums[..., 3], sums.sum(axis=-1))
    ),
    "precision": micro_precision,
    "recall": micro_recall,
    "F1": micro_f1,
    "kappa": Statistic("kappa", as_they_are, _kappa),
}


def evaluate(
    cases: Mapping[str, Case], expert: Decisions, judge: Decisions, name: str
) -> list[dict[str, Any]]:
    """How far a judge decides as experts do, on the points that both decided: a row for each measure.

    With 95 % intervals: whole questions, with all their points, are resampled 1,000 times.
    """
    keys = sorted(key for key in expert if key in judge)
    rows = [
        (t and g, not t and g, t and not g, not t and not g)
        for t, g in ((expert[key], judge[key]) for key in keys)
    ]
    units = [question_of(cases[case]) for case, _ in keys]
    n = {"judge": name, "n": len(keys), "of": len(expert), "questions": len(set(units))}
    points = {**n, "measure": "points", "value": None, "low": None, "high": None}
    if not rows:
        return [points]
    counts = Counts(by_unit(as_they_are(rows), units), OF_COUNTS)
    limits = intervals_of(counts, resample([counts], TASK))
    tp, fp, fn, tn = np.sum(rows, axis=0)
    defined = {"precision": tp + fp, "recall": tp + fn, "F1": tp + fp + fn, "kappa": max(tp, tn) < len(rows)}
    figures = []
    for measure, value in counts.values().items():
        around = limits.get(measure)
        ends = {"low": around and around.low, "high": around and around.high}
        known = value if defined.get(measure, True) else None
        figures.append({**n, "measure": measure, "value": known, **ends})
    return [*figures, points]


def points_to_judge(
    cases: Mapping[str, Case], expert: Decisions, tasks: Registry
) -> tuple[JudgedTask, dict[str, tuple[str, str]]]:
    """The points that experts decided as a task for a jury, and which document is which point.

    Its text is open where that of all the cases' tasks is.
    """
    rubric, names = point_rubric(), {case["task"] for case in cases.values()}
    is_open = all(name in tasks.tasks and tasks.tasks[name][0].metadata.access == "open" for name in names)
    task, keys = JudgedTask(TASK, rubric, open_access=is_open), {}
    for name, point in sorted(expert):
        case = cases[name]
        document = json.dumps([name, point], ensure_ascii=False)  # ids may hold any character
        keys[document] = (name, point)
        texts = shown_for_point(case["question"], case["points"][point], case["answer"])
        task.cases.append(JudgedCase(document, None, texts, rubric))
    return task, keys


# Whether references hold, a jury says (MedHELM, arXiv v1, Appendix D and Figure 6): a model flags those that
# rest on more than the input; the scores of answers whose reference is flagged stand beside the others'.


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
                own.cases.append(JudgedCase(case.document, case.run, texts, rubric, synthetic=case.synthetic))
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
