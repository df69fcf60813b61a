"""What forms ask about, as rows: answers of runs, scoring points, test items, a suite's taxonomy.

A row is `{page, about, texts}`: rows of one page stand together; `about` (task, unit, criterion) stays in the
key. It may bring its own question (`label`, `help`) and `options` (value -> label), empty for free text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.judge.protocol import CONTROL
from medtasks_ext.process import SEED
from medtasks_ext.prompts.documents import document_key, shown
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.runner.run import Run
from medtasks_ext.runs.records import parsed_of, read_samples
from medtasks_ext.studies.judge_data import read_cases
from medtasks_ext.studies.said import finished, study

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

Item = dict[str, Any]


class Wanted(NamedTuple):
    sources: Sequence[str]  # folders of runs, a file of cases, a suite
    tasks: Sequence[str]
    registry: Registry
    n: int  # documents of a task
    experts: int


def clean(text: str) -> str:
    """A text that every program can show: no control characters or half surrogate pairs, one line break."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return CONTROL.sub(" ", text).strip()


def _whole(document: Mapping[str, Any]) -> str:
    return clean("\n\n".join(filter(None, (document["system"], shown(document)))))


def _shuffled(pages: Sequence[Any], wanted: Wanted) -> dict[str, tuple[list[Any], Random]]:
    """Expert -> the pages in an order of that expert alone, and the chance that goes on from there."""
    drawn = {}
    for number in range(1, wanted.experts + 1):
        order, chance = list(pages), Random(f"{SEED} expert {number}")
        chance.shuffle(order)
        drawn[f"expert_{number}"] = order, chance
    return drawn


def _forms(pages: Sequence[list[Item]], wanted: Wanted, last: Sequence[Item] = ()) -> Item:
    forms = _shuffled(pages, wanted).items()
    return {"forms": {expert: [*chain(*order), *last] for expert, (order, _) in forms}}


def _drawn(names: Iterable[str], wanted: Wanted, task: str) -> list[str]:
    known = sorted(names)
    return sorted(Random(f"{SEED} {task}").sample(known, min(wanted.n, len(known))))


def _language(wanted: Wanted, tasks: Iterable[str]) -> str:
    return "zh" if all(wanted.registry.tasks[task][0].metadata.language == "zh" for task in tasks) else "en"


def _record(wanted: Wanted, tasks: Mapping[str, Any], synthetic: bool, runs: Sequence[Run] = ()) -> Item:
    """Language and notices of a form, and what its key says of the texts."""
    gated = any(wanted.registry.tasks[task][0].metadata.access != "open" for task in tasks)
    return {
        "language": _language(wanted, tasks),
        "notices": ["sample"] if synthetic else ["gated"] if gated else [],
        "tasks": tasks,
        "SAMPLE_DATA": synthetic,
        "runs": [{"folder": str(run.folder), "model": run.manifest.identity.model} for run in runs],
    }


def pairwise(wanted: Wanted) -> Item:
    """Answers of two runs to the same documents; either run is A half of the time."""
    runs, pages, counts, synthetic = finished(wanted.sources, wanted.registry, wanted.tasks), [], {}, False
    if len({run.folder.resolve() for run in runs}) != 2:
        where, remedy = ", ".join(wanted.sources), "name the runs of two models"
        raise MedtasksError("needs two runs", where=where, remedy=remedy)
    for task in wanted.tasks:
        one, other = (_answers(run, task) for run in runs)
        if apart := one.keys() ^ other.keys() or {name for name in one if one[name][0] != other[name][0]}:
            what = f"the runs did not answer the same documents: {len(apart)} are others"
            remedy = "compare runs on the same data, made with the same --limit and --data"
            raise MedtasksError(f"{what} (first: {min(apart)})", where=task, remedy=remedy)
        synthetic |= any(same[0] == "sample" for same, _, _ in one.values())
        drawn = _drawn(one, wanted, task)
        pages += [(task, name, one[name][1], (one[name][2], other[name][2])) for name in drawn]
        counts[task] = {"dataset": wanted.registry.tasks[task][0].id, "documents": len(drawn), "of": len(one)}
    record, forms = _record(wanted, counts, synthetic, runs), dict[str, list[Item]]()
    empty = study("forms/page/words")["no_answer"][record["language"]]
    for expert, (order, chance) in _shuffled(pages, wanted).items():
        sides, forms[expert] = [number % 2 == 0 for number in range(len(order))], []
        chance.shuffle(sides)
        for (task, name, question, answers), straight in zip(order, sides, strict=True):
            a, b = answers if straight else answers[::-1]
            about = {"task": task, "unit": name, "first_run_is": "A" if straight else "B"}
            texts = {"question": question, "answer_a": a or empty, "answer_b": b or empty}
            forms[expert].append({"page": f"{task} {name}", "about": about, "texts": texts})
    return {**record, "forms": forms}


def _answers(run: Run, task: str) -> dict[str, tuple[Any, str, str]]:
    """Document -> what both runs must share of it, what was asked, the answer."""
    found = {}
    for sample in read_samples(run.files.samples_file(task)):
        document, answer = sample["doc"], parsed_of(sample)["answer"]
        if not isinstance(answer, str | None):
            what = f"the answers of {task} are not texts"
            raise MedtasksError(what, where="--tasks", remedy="name open tasks")
        question = (document.get("question") or "").strip()
        same = (document["data"], document["target"].strip(), question)
        found[document_key(document)] = (same, clean(question) or _whole(document), clean(answer or ""))
    return found


def likert(wanted: Wanted) -> Item:
    """Answers of runs, rated on the axes and the scale of their task's jury; empty answers are left out."""
    runs, counts, pages, synthetic = (
        finished(wanted.sources, wanted.registry, wanted.tasks),
        dict[str, Item](),
        list[list[Item]](),
        False,
    )
    for name in wanted.tasks:
        judged = [task for run in runs for task in judged_tasks(run.folder, wanted.registry, [name])]
        scale = [str(one) for task in judged[:1] for one in task.rubric.protocol.verdict.get("score", ())]
        if not scale:
            raise MedtasksError(f"{name} has no axes with a scale", where="--tasks", remedy="name others")
        there = [{case.document: case for case in task.cases if case.asked} for task in judged]
        drawn = _drawn(set.intersection(*map(set, there)), wanted, name)
        rubric, language = judged[0].rubric, _language(wanted, [name])
        ends = {"low": scale[0], "high": scale[-1], "lowest": rubric.judging.lowest}
        words = study("forms/page/words")["scale"][language].format(**ends)
        counts[name] = {"documents": len(drawn), "axes": list(rubric.axes), "scale": scale}
        synthetic |= any(case.synthetic for case in judged[0].cases)
        for case, run in ((of[one], run) for one in drawn for of, run in zip(there, runs, strict=True)):
            about = {"task": name, "unit": f"{run.folder}\t{case.document}", "response": response_hash(case)}
            texts = {"question": clean(case.texts["question"]), "answer": clean(case.texts["response"])}
            pages.append([])
            page = {"page": f"{name} {about['unit']}", "texts": texts, "options": {one: one for one in scale}}
            for axis, question in rubric.judging.axes.items():
                asks = {"label": axis.capitalize(), "help": f"{' '.join(question.split())}\n{words}"}
                pages[-1].append({**page, **asks, "about": {**about, "criterion": axis}})
    if not pages:
        raise MedtasksError("no answers to rate", where="--tasks", remedy="every answer is empty")
    return {**_record(wanted, counts, synthetic, runs), **_forms(pages, wanted)}


def points(wanted: Wanted) -> Item:
    """Cases (`judge_data.read_cases`), on whose points experts decide."""
    pages, asked, chinese = [], {}, True
    for name, case in read_cases(map(Path, wanted.sources)).items():
        texts = {part: clean(case[part]) for part in ("question", "answer")}
        row, asked[name] = {"page": name, "texts": texts}, list(case["points"])
        of = [({"task": name, "unit": point}, clean(text)) for point, text in case["points"].items()]
        pages.append([{**row, "about": about, "label": text} for about, text in of])
        chinese &= any("\u4e00" <= letter <= "\u9fff" for letter in texts["question"])
    form = {"language": "zh" if chinese else "en", "notices": ["gated"], "cases": asked}
    return {**form, **_forms(pages, wanted)}


def review(wanted: Wanted) -> Item:
    """Test items on MLB's five criteria; their options and scoring points where there are some."""
    drawn = []
    for task in wanted.tasks:
        rows: dict[str, Any] = {}
        for document in load_documents(wanted.registry.tasks[task][0], cot=False)["test"]:
            name = str(document.get("item", document["id"]))
            rows.setdefault(name, document)  # of several orders the first
        drawn += [(task, name, rows[name]) for name in _drawn(rows, wanted, task)]
    counts = {task: {"documents": sum(name == task for name, *_ in drawn)} for task in wanted.tasks}
    synthetic = any(document["data"] == "sample" for *_, document in drawn)
    record, pages = _record(wanted, counts, synthetic), list[list[Item]]()
    for task, name, document in drawn:
        rubric = "\n".join(f"{item['weight']:g}  {item['text']}" for item in document.get("points") or [])
        texts = {"item": _whole(document), "reference": clean(document["target"]), "points": clean(rubric)}
        there = {"answer": texts["reference"], "distractors": document.get("options"), "rubric": rubric}
        pages.append([])
        for asked in study("forms/kinds/review")["prompts"]:
            if there.get(asked["id"], True):
                about = {"task": task, "unit": name, "criterion": asked["id"]}
                row = {"page": f"{task} {name}", "about": about, "texts": texts}
                pages[-1].append({**row, **_asked(asked, record["language"])})
    return {**record, **_forms(pages, wanted)}


def _asked(prompt: Mapping[str, Any], language: str) -> Item:
    own = {"options": {one: one for one in prompt["options"]}} if "options" in prompt else {}
    return {name: prompt[name][language] for name in ("label", "help")} | own


def survey(wanted: Wanted) -> Item:
    """The subcategories of a suite's taxonomy, each to be put into a category; what it covers; comments."""
    suites, [name] = wanted.registry.suites, wanted.sources
    known = {key: axis for key, suite in suites.items() for axis in suite.axes.values() if axis.within}
    if name not in known:
        raise MedtasksError("no suite with a taxonomy", where=name, remedy=f"there is: {', '.join(known)}")
    axis, titles = known[name], suites[name].titles(known[name].within or "")
    intended = {key: category for category, parts in axis.parts.items() for key in parts}
    tree = []
    for category, parts in axis.parts.items():
        lines = ["\n      ".join([f"\n  {part.title}", *part.tasks]) for part in parts.values()]
        tree.append(titles[category] + "".join(lines))

    def row(criterion: str, unit: str = "", **asked: Any) -> Item:
        about = {"task": name, "criterion": criterion, "unit": unit}
        return {"page": criterion == "assignment", "about": about, "texts": {}, **asked}

    categories = {category: titles[category] for category in axis.parts}
    pages = [[row("assignment", key, label=axis.titles[key], options=categories)] for key in intended]
    asked, whole = study("forms/kinds/survey")["prompts"], {"taxonomy": "\n\n".join(tree)}
    last = [row(one["id"], texts=whole, **_asked(one, "en")) for one in asked]
    forms = _forms(pages, wanted, last)
    return {"language": "en", "notices": [], "suite": name, "intended": intended, **forms}


KINDS = {"pairwise": pairwise, "points": points, "likert": likert, "review": review, "survey": survey}
