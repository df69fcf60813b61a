"""Blinded forms for experts, one YAML a kind, over one page: what they ask about, the key that stays behind,
the CSV that a page exports, and what filled forms amount to.

A row of a form is `{page, about, texts}`: rows of one page stand together; `about` (task, unit, criterion)
stays in the key. It may bring its own question (`label`, `help`) and `options` (value -> label), empty for
free text.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json, write_json, write_lines
from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.judge.protocol import CONTROL
from medtasks_ext.offline_page import offline_page
from medtasks_ext.process import SEED
from medtasks_ext.prompts.documents import document_key, shown
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.runs.records import parsed_of, read_samples
from medtasks_ext.stats import agreement as agree
from medtasks_ext.stats.intervals import of_shares
from medtasks_ext.studies.judge_data import read_cases
from medtasks_ext.studies.said import finished, study
from medtasks_ext.tables import read_sheet, write_csv

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.run import Run

Item = dict[str, Any]
KEY_FILE = "key.json"


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


def _shuffled(pages: Sequence[Any], wanted: Wanted) -> Iterator[tuple[str, list[Any], Random]]:
    """Of each expert the pages in an order of their own, and the chance that goes on from there."""
    for number in range(1, wanted.experts + 1):
        order, chance = list(pages), Random(f"{SEED} expert {number}")
        chance.shuffle(order)
        yield f"expert_{number}", order, chance


def _forms(pages: Sequence[list[Item]], wanted: Wanted, last: Sequence[Item] = ()) -> Item:
    return {"forms": {name: [*chain(*order), *last] for name, order, _ in _shuffled(pages, wanted)}}


def _drawn(names: Iterable[str], wanted: Wanted, task: str) -> list[str]:
    known = sorted(names)
    return sorted(Random(f"{SEED} {task}").sample(known, min(wanted.n, len(known))))


def _language(wanted: Wanted, tasks: Iterable[str]) -> str:
    return "zh" if all(wanted.registry.tasks[task][0].metadata.language == "zh" for task in tasks) else "en"


def _record(wanted: Wanted, tasks: Mapping[str, Any], synthetic: bool, runs: Sequence[Run] = ()) -> Item:
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
    for expert, order, chance in _shuffled(pages, wanted):
        sides, forms[expert] = [number % 2 == 0 for number in range(len(order))], []
        chance.shuffle(sides)
        for (task, name, question, answers), straight in zip(order, sides, strict=True):
            a, b = answers if straight else answers[::-1]
            about = {"task": task, "unit": name, "first_run_is": "A" if straight else "B"}
            texts = {"question": question, "answer_a": a or empty, "answer_b": b or empty}
            forms[expert].append({"page": f"{task} {name}", "about": about, "texts": texts})
    return {**record, "forms": forms}


def _answers(run: Run, task: str) -> dict[str, tuple[Any, str, str]]:
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
    runs = finished(wanted.sources, wanted.registry, wanted.tasks)
    counts, pages, synthetic = dict[str, Item](), list[list[Item]](), False
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


def write_forms(export: Mapping[str, Any], kind: str, folder: Path) -> list[Path]:
    """Write EXPERT.html for each expert, and `key.json`, the last of the files."""
    if (folder / KEY_FILE).exists():  # which would be lost
        raise MedtasksError("holds the key of an export", where=folder, remedy="name another folder")
    key = {"kind": kind, "export": f"mt{secrets.token_hex(5)}", **export, "forms": {}}
    listed = study(f"forms/kinds/{kind}").get("options", ())
    of_kind = {option["value"]: option["label"][export["language"]] for option in listed}
    for number, (form, items) in enumerate(export["forms"].items(), start=1):
        rows = {f"E{number}R{place:03d}": {"options": of_kind, **item} for place, item in enumerate(items, 1)}
        key["forms"][form] = {
            row: {"about": item["about"], "values": list(item["options"])} for row, item in rows.items()
        }
        write_text(folder / f"{form}.html", _page(key, form, rows))
    write_json(folder / KEY_FILE, key)
    return [*(folder / f"{form}.html" for form in export["forms"]), folder / KEY_FILE]


def _page(key: Mapping[str, Any], form: str, rows: Mapping[str, Any]) -> str:
    """The page of one form; `page/page.js` says what its data is."""
    language, page = key["language"], Path(__file__).with_name("page")
    kind = study(f"forms/kinds/{key['kind']}")
    words = {name: said[language] for name, said in study("forms/page/words").items()}
    pages = []
    for _, group in groupby(rows.items(), key=lambda row: row[1]["page"]):
        members, prompts = list(group), []
        for row, item in members:
            for question in kind["questions"]:
                own = {name: question[name][language] for name in ("label", "help")}
                asked = {name: item.get(name, "") for name in own} if "label" in item else own
                options = [{"value": value, "label": label} for value, label in item["options"].items()]
                prompts.append({**asked, "row": row, "question": question["id"], "options": options})
        texts: dict[str, list[dict[str, str]]] = {"above": [], "answer": []}
        for text in kind["texts"]:
            if shown := members[0][1]["texts"].get(text["id"]):
                texts[text["place"]].append({"label": text["label"][language], "text": shown})
        pages.append({**texts, "prompts": prompts})
    data = {
        **{name: kind[name][language] for name in ("title", "introduction")},
        "notices": [words[notice] for notice in key["notices"]],
        "export": key["export"],
        "form": form,
        "words": words,
        "columns": [question["id"] for question in kind["questions"]],
        "pages": pages,
    }
    tongue = "zh-Hans" if language == "zh" else "en"
    files: dict[str, Any] = {"style": page / "page.css", "scripts": [page / "page.js"]}
    return offline_page(page / "page.html", **files, data=data, language=tongue, title=data["title"])


def read_key(path: Path) -> dict[str, Any]:
    key = read_json(path)
    if not isinstance(key, dict) or key.get("kind") not in KINDS or not {"export", "forms"} <= set(key):
        remedy = "use the key.json that `medtasks study forms` wrote"
        raise MedtasksError("is not the key of an export", where=path, remedy=remedy)
    return key


def read_forms(
    paths: Sequence[Path], key: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Filled forms: rows `{form, about, options, answers}`, and expert -> rows that are open.

    Raises MedtasksError: rows of another export, unknown or given twice, a value that is no option; all
    faults come in one message.
    """
    questions = [item["id"] for item in study(f"forms/kinds/{key['kind']}")["questions"]]
    given, faults = dict[tuple[str, str], dict[str, str]](), list[str]()
    remedy = "give the CSV files that the pages exported"
    for path in dict.fromkeys(paths):
        for number, line in read_sheet(path, ["form", "row", *questions], remedy=remedy):
            export, _, form = line["form"].partition("/")
            record, place = key["forms"].get(form, {}).get(line["row"]), f"{path}, row {number}"
            if export != key["export"]:
                faults.append(f"{path}: belongs to another export ({export or 'none'}, not {key['export']})")
            elif record is None:
                faults.append(f"{place}: {form or 'the form'} has no such row")
            elif (form, line["row"]) in given:
                faults.append(f"{path}: rows of {form} are given twice")
            else:
                given[form, line["row"]] = answers = {name: line[name].strip() for name in questions}
                for name, value in answers.items():
                    if value and record["values"] and value not in record["values"]:
                        faults.append(f"{place}: {name} is {value!r}, not {' or '.join(record['values'])}")
    rows, missing = [], dict[str, list[str]]()
    for form, of_form in key["forms"].items():
        for row, record in of_form.items():
            answers = given.get((form, row), {})
            if answers and all(answers.values()):
                about = {"form": form, "about": record["about"], "options": record["values"]}
                rows.append({**about, "answers": answers})
            elif record["values"]:  # words of one's own may stay out
                missing.setdefault(form, []).append(row)
    if faults or not rows:
        what = some(list(dict.fromkeys(faults)), 5, "\n  ") or "no row is answered"
        raise MedtasksError(what, remedy=f"{remedy}, as they are (nothing was written)")
    return rows, missing


Rows = Sequence[Mapping[str, Any]]
Tables: TypeAlias = dict[str, list[dict[str, Any]]]
#: (task, criterion) -> expert -> unit -> what was said
Groups: TypeAlias = dict[tuple[str, str], dict[str, dict[str, str]]]
COMPOSITE = "mean of axes"
_TOLD = ("kind", "export", "runs", "tasks", "suite", "SAMPLE_DATA")  # what results repeat of the key


def tables_of(rows: Rows, key: Mapping[str, Any]) -> Tables:
    """Name -> rows of the tables of a kind: every vote, shares of votes, agreement about each criterion.

    The agreement of votes is Fleiss' kappa of all experts and Cohen's of each pair, of ratings ICC(3,k) after
    z-scoring and the mean over pairs.
    """
    if key["kind"] == "likert":
        return _likert(rows, key)
    groups, tables = Groups(), Tables(votes=[], agreement=[])
    for row in rows:
        about = row["about"]
        for question, said in row["answers"].items():
            task, unit, criterion = about["task"], about["unit"], about.get("criterion", question)
            if side := about.get("first_run_is"):
                said = "tie" if said == "tie" else "win" if said == side else "loss"
            vote = {"task": task, "unit": unit, "criterion": criterion, "expert": row["form"], "said": said}
            tables["votes"].append(vote)
            if key["kind"] == "points":  # experts agree about the points of all cases
                task, unit = "all cases", f"{task}\t{unit}"
            if row["options"]:
                groups.setdefault((task, criterion), {}).setdefault(row["form"], {})[unit] = said
    for (task, criterion), by in groups.items():
        values = sorted({said for said_of in by.values() for said in said_of.values()})
        votes = {expert: {unit: values.index(said) for unit, said in of.items()} for expert, of in by.items()}
        for one in agree.kappas(votes, range(len(values))) if len(_by_unit(by)) > 1 else ():
            tables["agreement"].append({"task": task, "criterion": criterion, **one})
    if key["kind"] == "survey":
        return {**_survey(groups, key), **tables}
    shares = study(f"forms/kinds/{key['kind']}").get("shares")
    return {"rates": _rates(groups, shares), **tables} if shares else tables


def write_results(folder: Path, key: Mapping[str, Any], rows: Rows, missing: Any, tables: Tables) -> None:
    """TABLE.csv for each table, `results.json`, and of points `decisions.jsonl`, a case a line."""
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)
    if key["kind"] == "points":
        write_lines(folder / "decisions.jsonl", _decided(rows, key))
    about = {name: said for name, said in key.items() if name in _TOLD}
    experts = sorted({row["form"] for row in rows})
    write_json(folder / "results.json", {**about, "experts": experts, "missing": missing, **tables})


def _by_unit(by_expert: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    units = dict.fromkeys(unit for by in by_expert.values() for unit in by)
    return [[by[unit] for by in by_expert.values() if unit in by] for unit in units]


def _rates(groups: Groups, said: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    rates = []
    for (task, criterion), votes in groups.items():
        tables = {expert: {expert: by} for expert, by in sorted(votes.items())}
        for name, by_expert in {**tables, **({"mean": votes} if len(votes) > 1 else {})}.items():
            by_unit = _by_unit(by_expert)
            row = {"task": task, "criterion": criterion, "by": name, "documents": len(by_unit)}
            for share, which in said.items():
                hits = np.array([sum(map(of.count, which)) for of in by_unit])
                of_all = np.array([*map(len, by_unit)])
                around = of_shares(hits, of_all) if len(hits) > 1 else None
                row |= {share: float(hits.sum() / of_all.sum())}
                row |= {f"{share}_low": around and around.low, f"{share}_high": around and around.high}
            rates.append(row)
    return rates


def _decided(rows: Rows, key: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    excess = Counter[tuple[str, str]]()  # of experts for whom a point is met, over the others
    for row in rows:
        excess[row["about"]["task"], row["about"]["unit"]] += 1 if row["answers"]["decision"] == "met" else -1
    for case, points in key["cases"].items():
        met = {point: excess[case, point] > 0 if excess[case, point] else None for point in points}
        yield {"id": case, "points": [{"id": point, "met": said} for point, said in met.items()]}


def _likert(rows: Rows, key: Mapping[str, Any]) -> Tables:
    n = Counter((row["form"], row["about"]["task"], row["about"]["unit"]) for row in rows)
    given: dict[str, dict[str, dict[str, dict[str, float]]]] = {}  # task -> answer -> rater -> axis -> rating
    scores, found, lines = [], [], []
    for row in rows:
        about, rater, score = row["about"], row["form"], row["answers"]["rating"]
        task, unit, axis = about["task"], about["unit"], about["criterion"]
        if n[rater, task, unit] < len(key["tasks"][task]["axes"]):
            continue  # an answer counts where all of its axes are rated
        given.setdefault(task, {}).setdefault(unit, {}).setdefault(rater, {})[axis] = float(score)
        run, _, document = unit.partition("\t")
        line = {"task": task, "document": document, "rater": rater, "axis": axis, "score": score, "run": run}
        lines.append({**line, "response": about["response"]})
    for task, by_answer in given.items():
        axes = key["tasks"][task]["axes"]
        for name, members in {**{axis: [axis] for axis in axes}, COMPOSITE: axes}.items():
            rated = agree.composites(
                (answer, {rater: {axis: said[axis] for axis in members} for rater, said in by.items()})
                for answer, by in by_answer.items()
            )
            means: dict[str, list[float]] = {}
            for answer, mean in agree.mean_by_instance(rated).items():
                means.setdefault(answer.partition("\t")[0], []).append(mean)
            of = {"task": task, "axis": name}
            for run, values in means.items():
                sd = stdev(values) if len(values) > 1 else None
                scores.append({**of, "run": run, "mean": fmean(values), "sd": sd, "n": len(values)})
            together, pairs = agree.icc_of_raters(rated), agree.pairwise_baseline(rated)
            measures = {"ICC(3,k)": together, "mean of pairs' ICC": pairs} if len(rated) > 1 else {}
            found += [{**of, "measure": measure, **one._asdict()} for measure, one in measures.items()]
    return {"scores": scores, "ratings": lines, "agreement": found}


def _survey(groups: Groups, key: Mapping[str, Any]) -> Tables:
    suite, intended = key["suite"], key["intended"]
    right = {
        expert: {unit: str(said == intended[unit]) for unit, said in by.items()}
        for expert, by in groups.get((suite, "assignment"), {}).items()
    }
    stars = [int(by[""]) for by in groups.get((suite, "comprehensiveness"), {}).values()]
    sd = stdev(stars) if len(stars) > 1 else None
    return {
        "rates": _rates({(suite, "assignment"): right}, {"as_intended": ["True"]}) if right else [],
        "comprehensiveness": [{"mean": fmean(stars), "sd": sd, "n": len(stars)}] if stars else [],
    }
