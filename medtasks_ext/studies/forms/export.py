"""What forms ask about, as rows: answers of runs, scoring points, test items, a suite's taxonomy.

A row is `{page, about, texts, options}`: rows of one page stand together; `about` (task, unit, criterion)
stays in the key; `options` (value -> label) are its answers where the kind has none, empty for free text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines, parse_json
from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.judge.protocol import CONTROL
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.runner.run import Run
from medtasks_ext.studies.forms import kind_of, page_words

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

Item = dict[str, Any]
#: ClinicBench: three; MedHELM and MLB: two for each answer or item.
EXPERTS = {"pairwise": 3, "points": 1, "likert": 2, "review": 2, "survey": 1}


def clean(text: str) -> str:
    """A text that every program can show: no control characters or half surrogate pairs, one line break."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return CONTROL.sub(" ", text).strip()


def _whole(document: Mapping[str, Any]) -> str:
    return clean("\n\n".join(filter(None, (document["system"], shown(document)))))


def _shuffled(pages: Sequence[Any], experts: int, seed: int) -> dict[str, tuple[list[Any], Random]]:
    """Expert -> the pages in an order of that expert alone, and the chance that goes on from there."""
    drawn = {}
    for number in range(1, experts + 1):
        drawn[f"expert_{number}"] = (order := list(pages)), (chance := Random(f"{seed} expert {number}"))
        chance.shuffle(order)
    return drawn


def _drawn(names: Sequence[str], n: int, seed: int, task: str) -> list[str]:
    return sorted(Random(f"{seed} {task}").sample(sorted(names), min(n, len(names))))


def _record(tasks: Mapping[str, Any], registry: Registry, synthetic: bool, runs: Sequence[Run] = ()) -> Item:
    """Language and notices of a form, and what its key says of the texts."""
    about = [registry.tasks[task][0].metadata for task in tasks]
    gated = any(metadata.access != "open" for metadata in about)
    return {
        "language": "zh" if all(metadata.language == "zh" for metadata in about) else "en",
        "notices": ["sample"] if synthetic else ["gated"] if gated else [],
        "tasks": tasks,
        "SAMPLE_DATA": synthetic,
        "runs": [{"folder": str(run.folder), "model": run.manifest.identity.model} for run in runs],
    }


def _opened(folders: Sequence[str], tasks: Sequence[str], registry: Registry) -> list[Run]:
    runs = [Run(Path(folder), registry) for folder in folders]
    for run in runs:
        run.load()
        if lacking := [task for task in tasks if task not in run.manifest.tasks or not run.is_done(task)]:
            what = f"{lacking[0]} is not among the finished tasks"
            raise MedtasksError(what, where=run.folder, remedy="`medtasks run` it first")
    return runs


def pairwise(
    folders: Sequence[str], tasks: Sequence[str], registry: Registry, n: int, experts: int, seed: int
) -> Item:
    """Answers of two runs to the same documents; either run is A half of the time."""
    if len(folders) != 2 or len({Path(folder).resolve() for folder in folders}) != 2:
        raise MedtasksError("needs two runs", where=", ".join(folders), remedy="name the runs of two models")
    runs, pages, counts, synthetic = _opened(folders, tasks, registry), [], {}, False
    for task in tasks:
        one, other = (_answers(run, task) for run in runs)
        if apart := one.keys() ^ other.keys() or {name for name in one if one[name][0] != other[name][0]}:
            what = (
                f"the runs did not answer the same documents: {len(apart)} are others (first: {min(apart)})"
            )
            remedy = "compare runs on the same data, made with the same --limit and --data"
            raise MedtasksError(what, where=task, remedy=remedy)
        synthetic |= any(same[0] == "sample" for same, _, _ in one.values())
        drawn = _drawn(list(one), n, seed, task)
        pages += [(task, name, one[name][1], (one[name][2], other[name][2])) for name in drawn]
        counts[task] = {"dataset": registry.tasks[task][0].id, "documents": len(drawn), "of": len(one)}
    record, forms = _record(counts, registry, synthetic, runs), dict[str, list[Item]]()
    empty = page_words(record["language"])["no_answer"]
    for expert, (order, chance) in _shuffled(pages, experts, seed).items():
        sides, rows = [number % 2 == 0 for number in range(len(order))], list[Item]()
        chance.shuffle(sides)
        for (task, name, question, answers), straight in zip(order, sides, strict=True):
            a, b = answers if straight else answers[::-1]
            about = {"task": task, "unit": name, "first_run_is": "A" if straight else "B"}
            texts = {"question": question, "answer_a": a or empty, "answer_b": b or empty}
            rows.append({"page": f"{task} {name}", "about": about, "texts": texts})
        forms[expert] = rows
    return {**record, "forms": forms}


def _answers(run: Run, task: str) -> dict[str, tuple[Any, str, str]]:
    """Document -> what both runs must share of it, what was asked, the answer."""
    found = {}
    for sample in run.files.read_samples(task):
        document, answer = sample["doc"], sample["filtered_resps"][0]["answer"]
        if not isinstance(answer, str | None):
            what = f"the answers of {task} are not texts"
            raise MedtasksError(what, where="--tasks", remedy="name open tasks")
        question = (document.get("question") or "").strip()
        same = (document["data"], document["target"].strip(), question)
        found[document_key(document)] = (same, clean(question) or _whole(document), clean(answer or ""))
    return found


def likert(
    folders: Sequence[str], tasks: Sequence[str], registry: Registry, n: int, experts: int, seed: int,
    raters: int,
) -> Item:  # fmt: skip
    """Answers of runs, each rated by some of the experts on the axes and the scale of its task's jury.

    Empty answers are left out. All experts have as many answers, one more or less.
    """
    if raters > experts:
        raise MedtasksError(f"{raters} of {experts} experts", where="--raters", remedy="name more --experts")
    runs, counts, synthetic, answers = _opened(folders, tasks, registry), {}, False, list[Any]()
    for name in tasks:
        judged = [task for run in runs for task in judged_tasks(run.folder, registry, [name])]
        rubric = judged[0].rubric if judged else None
        asks = rubric is not None and not rubric.judging.points
        scale = rubric.protocol.verdict[rubric.protocol.rating] if rubric and asks else ()
        if not rubric or not scale or not all(type(value) is int for value in scale):
            raise MedtasksError(f"{name} has no axes with a scale", where="--tasks", remedy="name others")
        there = [{case.document: case for case in task.cases if case.asked} for task in judged]
        drawn = _drawn(list(set.intersection(*map(set, there))), n, seed, name)
        pairs = [(run, cases) for run, cases in zip(runs, there, strict=True)]
        answers += [(str(run.folder), name, rubric, scale, of[one]) for one in drawn for run, of in pairs]
        counts[name] = {"documents": len(drawn), "axes": list(rubric.axes), "scale": list(scale)}
        synthetic |= any(case.synthetic for case in judged[0].cases)
    if not answers:
        raise MedtasksError("no answers to rate", where="--tasks", remedy="every answer is empty")
    chance, record = Random(f"{seed} raters"), _record(counts, registry, synthetic, runs)
    given: dict[int, list[Any]] = {number: [] for number in range(1, experts + 1)}
    for answer in chance.sample(answers, len(answers)):
        for number in sorted(given, key=lambda number: (len(given[number]), chance.random()))[:raters]:
            given[number].append(answer)
    forms: dict[str, list[Item]] = {}
    for number, mine in given.items():
        Random(f"{seed} expert {number}").shuffle(mine)
        forms[f"expert_{number}"] = rows = []
        for run, task, rubric, values, case in mine:
            ends = {"low": values[0], "high": values[-1], "lowest": rubric.judging.lowest}
            words = page_words(record["language"])["scale"].format(**ends)
            texts = {"question": clean(case.texts["question"]), "answer": clean(case.texts["response"])}
            about = {"task": task, "unit": f"{run}\t{case.document}", "response": response_hash(case)}
            for axis, question in rubric.judging.axes.items():
                asks_of = {"axis": axis.capitalize(), "asks": f"{' '.join(question.split())}\n{words}"}
                row = {"page": f"{task} {about['unit']}", "about": {**about, "criterion": axis}}
                options = {str(value): str(value) for value in values}
                rows.append({**row, "texts": {**texts, **asks_of}, "options": options})
    return {**record, "forms": forms}


def _forms(pages: Sequence[list[Item]], experts: int, seed: int, last: Sequence[Item] = ()) -> Item:
    forms = _shuffled(pages, experts, seed).items()
    return {"forms": {expert: [*chain(*order), *last] for expert, (order, _) in forms}}


def points(path: Path, experts: int, seed: int) -> Item:
    """Cases `{id, question, answer, points: [{id, text, weight}]}`, a line each, on which experts decide."""
    pages, cases = [], dict[str, Any]()
    try:
        for _, line in numbered_lines(path, remedy="name the JSONL file of the queue"):
            case = parse_json(line)
            texts = {name: clean(case[name]) for name in ("question", "answer")}
            asked = {point["id"]: clean(point["text"]) for point in case["points"]}
            if case["id"] in cases or len(asked) < len(case["points"]) or not asked:
                raise ValueError
            cases[case["id"]] = {point["id"]: float(point["weight"]) for point in case["points"]}
            of = [
                ({"task": case["id"], "unit": name}, {**texts, "point": text}) for name, text in asked.items()
            ]
            pages.append([{"page": case["id"], "about": about, "texts": shown} for about, shown in of])
    except (KeyError, TypeError, ValueError):
        what = f"line {len(cases) + 1} is no case, or its id or a point's id occurs twice"
        remedy = "a case is {id, question, answer, points: [{id, text, weight}]}"
        raise MedtasksError(what, where=path, remedy=remedy) from None
    letters = [letter for page in pages for letter in "".join(page[0]["texts"].values()) if letter.isalpha()]
    language = "zh" if 2 * sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) else "en"
    return {"language": language, "notices": ["gated"], "cases": cases, **_forms(pages, experts, seed)}


def review(tasks: Sequence[str], registry: Registry, n: int, experts: int, seed: int) -> Item:
    """Test items on MLB's five criteria; their options and scoring points where there are some."""
    drawn: dict[str, dict[str, Any]] = {}
    for task in tasks:
        rows: dict[str, Any] = {}
        for document in load_documents(registry.tasks[task][0], cot=False)["test"]:
            rows.setdefault(
                str(document.get("item", document["id"])), document
            )  # of several orders the first
        drawn[task] = {name: rows[name] for name in _drawn(list(rows), n, seed, task)}
    synthetic = any(document["data"] == "sample" for rows in drawn.values() for document in rows.values())
    record = _record({task: {"documents": len(rows)} for task, rows in drawn.items()}, registry, synthetic)
    pages = []
    for task, name, document in ((task, *item) for task, rows in drawn.items() for item in rows.items()):
        rubric = "\n".join(f"{item['weight']:g}  {item['text']}" for item in document.get("points") or [])
        texts = {"item": _whole(document), "reference": clean(document["target"]), "points": clean(rubric)}
        there = {"answer": texts["reference"], "distractors": document.get("options"), "rubric": rubric}
        pages.append(page := list[Item]())
        for asked in kind_of("review")["prompts"]:
            if there.get(key := asked["id"], True):
                about = {"task": task, "unit": name, "criterion": key}
                row = {
                    "page": f"{task} {name}",
                    "about": about,
                    **({"options": {}} if key == "remark" else {}),
                }
                page.append({**row, "texts": {**texts, **_asked(asked, record["language"], "criterion")}})
    return {**record, **_forms(pages, experts, seed)}


def _asked(prompt: Mapping[str, Any], language: str, name: str) -> dict[str, str]:
    return {name: prompt["label"][language], "asks": prompt["help"][language]}


def survey(name: str, registry: Registry, experts: int, seed: int) -> Item:
    """The subcategories of a suite's taxonomy, each to be put into a category; what it covers; comments."""
    suites = registry.suites.items()
    known = {key: axis for key, suite in suites for axis in suite.axes.values() if axis.within}
    if name not in known:
        raise MedtasksError("no suite with a taxonomy", where=name, remedy=f"there is: {', '.join(known)}")
    axis, titles = known[name], registry.suites[name].titles(known[name].within or "")
    tree = []
    for category, parts in axis.parts.items():
        lines = ["\n      ".join([f"\n  {part.title}", *part.tasks]) for part in parts.values()]
        tree.append(titles[category] + "".join(lines))
    covers, comments = kind_of("survey")["prompts"]

    def row(part: str, unit: str, texts: Mapping[str, str], options: Mapping[str, str]) -> Item:
        about = {"task": name, "criterion": part, "unit": unit}
        return {"page": part == "assignment", "about": about, "texts": texts, "options": options}

    of = {category: titles[category] for category in axis.parts}
    intended = {key: category for category, parts in axis.parts.items() for key in parts}
    pages = [[row("assignment", key, {"item": axis.titles[key]}, of)] for key in intended]
    whole = {"taxonomy": "\n\n".join(tree), **_asked(covers, "en", "item")}
    last = [row(covers["id"], "", whole, {str(value): str(value) for value in range(1, 6)})]
    for category, title in {"": "", **of}.items():
        texts = {**whole, **_asked(comments, "en", "item")}
        last.append(row(comments["id"], category, {**texts, "item": f"{texts['item']} {title}".strip()}, {}))
    forms = _forms(pages, experts, seed, last)
    return {"language": "en", "notices": [], "suite": name, "intended": intended, **forms}
