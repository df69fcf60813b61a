"""The files of the leaderboard: a front page, and a page for each suite, model and dataset."""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from string import Template
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import replaced_folder, write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, write_json
from medtasks_ext.offline_page import data_in_page, title_in_page
from medtasks_ext.registry.columns import BibEntry, cited_by, entries_of
from medtasks_ext.registry.metadata import terms_words
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.registry.tasks import rows_words, scored_by_words
from medtasks_ext.report.groups import axis_titles, title
from medtasks_ext.report.payload import PAGE, SHARED
from medtasks_ext.report.pictures import FONT, kinds, licences, themes, vendored
from medtasks_ext.report.site.boards import (
    BoardLine,
    Scores,
    Site,
    axis_title,
    facts_of_lines,
    front_board,
    suite_board,
    whole_of,
)
from medtasks_ext.report.submissions import levels_words, undetected
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Suite
    from medtasks_ext.results.experiments import Experiment

_LISTED = 30  # models on a page
_AXES = ("language", "task_type", "stage", "specialties", "document_types")


def dataset_pages(scores: Scores) -> dict[str, Json]:
    found: dict[tuple[str, str], list[tuple[BoardLine, int]]] = {}
    for line in scores.site.lines:
        for item in line.entry.experiments.values():
            firm = item.score is not None and line.is_proven(item) and not line.apart(item)
            if item.score is not None and firm and (line.published or not item.in_part):
                place = (item.dataset.id, item.strategy)
                found.setdefault(place, []).append((line, whole_of(item.score)))
    return {name: _page(scores, dataset, found) for name, dataset in scores.site.tasks.datasets.items()}


def index(pages: dict[str, Json]) -> Json:
    rows = []
    for name, page in pages.items():
        best = page["boards"][0]["best"][0][:3] if page["boards"] else None
        axes = [page["axes"][axis] for axis in _AXES[:4]]
        rows.append(
            [name, page["title"], page["suite"][1], *axes, page["access"], page["n"], best, page["ceiling"]]
        )
    return {"kind": "datasets", "title": "Datasets", "datasets": rows}


def _page(
    scores: Scores, dataset: Dataset, found: dict[tuple[str, str], list[tuple[BoardLine, int]]]
) -> Json:
    record, suite = dataset.metadata, dataset.suite
    loss = record.gold_loss
    unsettled = (
        f"A draft, in no group: {record.draft}" if record.draft else "",
        f"The official reader loses up to {loss:.0%} of the gold answers themselves." if loss else "",
    )
    return {
        **{"kind": "dataset", "id": dataset.id, "title": record.name},
        "summary": record.summary,
        "suite": [suite.id, suite.title],
        "axes": {axis: ", ".join(title(axis, value) for value in record.axis(axis)) for axis in _AXES},
        "own_axes": [
            [axis_title(suite.title_of(axis)), ", ".join(title(axis, value) for value in values)]
            for axis in suite.axes
            if (values := record.axis(axis))
        ],
        "access": record.access,
        "n": record.n_test,
        "ceiling": record.oracle_max if isinstance(record.oracle_max, float) else None,
        "facts": [
            ["Score", f"{record.primary_metric}{scored_by_words(dataset)}"],
            ["Version", dataset.version],
            ["Tokens of an answer in the suite", f"{budget:,}" if (budget := record.official_budget) else ""],
            ["Rows", "; ".join(rows_words(dataset)) or f"you bring them: {record.access}"],
            ["Where", record.url],
            ["Terms", terms_words(record)],
            ["Cite", "; ".join(entry.reference for entry in _cited([dataset], []))],
        ],
        "unsettled": [*filter(None, unsettled), *record.open_questions],
        "boards": [
            _board(strategy, some)
            for strategy in scores.strategies
            if (some := found.get((dataset.id, strategy)))
        ],
    }


def _board(strategy: str, some: list[tuple[BoardLine, int]]) -> Json:
    def of(line: BoardLine) -> list[Any]:
        return [*map(line.facts.get, ("size", "access")), int(line.published)]

    some = sorted(some, key=lambda pair: -pair[1])
    values = [score for _, score in some]
    best = [
        [line.title, line.page, score, 1 + values.index(score), *of(line)] for line, score in some[:_LISTED]
    ]
    return {"strategy": strategy_title(strategy), "n": len(some), "median": int(median(values)), "best": best}


#: Conditions that the table of tasks has in columns of their own.
_IN_COLUMNS = ("strategy", "n", "n_of_suite", "differs", "documents", "judged")
#: Ranks among fewer lines say nothing of single values.
_FEWEST_LINES = 5
#: Axes that people look for, in this order; those of a suite follow, others say nothing of models.
_RANKED_AXES = ("language", "task_type", "specialties", "stage")
_NO_AXES = ("suite", "access")


def model_page(scores: Scores, lines: Sequence[BoardLine]) -> Json:
    first = next((line for line in lines if not line.published), lines[0])
    return {
        "kind": "model",
        "title": first.entry.model,
        "facts": facts_of_lines(lines),
        "hub_id": next((hub for line in lines if (hub := line.entry.details.get("hub_id"))), None),
        "lines": [_line(scores, line) for line in lines],
    }


def _line(scores: Scores, line: BoardLine) -> Json:
    words: dict[str, int] = {"": 0}
    items = [item for item in line.entry.experiments.values() if item.score is not None]
    items.sort(key=lambda item: (item.dataset.suite.title, item.dataset.metadata.name, item.strategy))
    place, record = scores.site.lines.index(line), line.record
    if record is None:
        paper = scores.site.tasks.suites[line.entry.paper].title
        source = [["Source", f"published scores of {paper}"], *(["Note", note] for note in line.entry.notes)]
    else:
        trust = levels_words(line.checked.verdicts.values())
        source = [["Source", "submission"], ["Trust", trust], ["Submitted", record.date]]
        source += [["Confirmed", f"{task} by {site}"] for task, site in line.checked.confirmed]
    settings = {} if record is None else line.entry.words | dict(sorted(record.versions.items()))
    return {
        "label": line.title,
        "published": line.published,
        "source": source,
        "places": list(_places(scores, place)),
        "tasks": [_task(line, item, words) for item in items],
        "words": list(words),
        "settings": [*map(list, settings.items())],
    }


def _places(scores: Scores, place: int) -> Iterator[Json]:
    """Where it stands in each suite and strategy; by axis where it has a rank."""
    for suite, whole in scores.whole.items():
        for strategy in scores.strategies:
            if cell := scores.cells.get((place, strategy, whole)):
                row = {
                    **{"suite": suite, "title": scores.site.tasks.suites[suite].title},
                    **{"strategy": strategy_title(strategy), "score": cell.value, "interval": cell.interval},
                    **{"tasks": cell.tasks, "of": whole.n_tasks, "rank": cell.rank},
                    **{"otherwise": cell.apart, "unproven": not cell.proven},
                }
                enough = cell.rank and cell.rank[1] >= _FEWEST_LINES
                yield row | ({"axes": _axes(scores, place, suite, strategy)} if enough else {})


def _task(line: BoardLine, item: Experiment, words: dict[str, int]) -> list[Any]:
    """Its row; last come places in `words` of what differs from the paper, of trust and of conditions."""
    assert item.score is not None  # the caller looked
    interval, valid = item.intervals.get("score"), item.metrics.get("valid")
    conditions = "; ".join(
        f"{name.replace('_', ' ')}: {value}"
        for name, value in item.shown.items()
        if value not in (None, "", False) and name not in _IN_COLUMNS
    )
    said = line.apart(item), "" if line.published else line.checked.verdicts[item.task], conditions
    return [
        item.dataset.suite.title,
        item.dataset.metadata.name,
        strategy_title(item.strategy),
        whole_of(item.score),
        None if interval is None else [whole_of(interval.low), whole_of(interval.high)],
        item.n,
        item.dataset.n_documents,
        None if valid is None else whole_of(valid),
        item.dataset.id,
        *(words.setdefault(one, len(words)) for one in said),
    ]


def _axes(scores: Scores, place: int, suite: str, strategy: str) -> list[Any]:
    """A line's ranks by axis of a suite."""
    titles, found = axis_titles(), dict[str, list[Any]]()
    for group in scores.groups:
        cell = scores.cells.get((place, strategy, group)) if group.suite == suite else None
        if cell and cell.rank and cell.rank[1] >= _FEWEST_LINES and group.axis not in _NO_AXES:
            middle = scores.ranked[strategy, group][1]
            row = [title(group.axis, group.value), cell.tasks, cell.value, middle, *cell.rank]
            found.setdefault(group.axis, []).append(row)
    shown = [axis for axis in dict.fromkeys([*_RANKED_AXES, *titles]) if axis in found]
    return [[axis_title(titles[axis]), found[axis]] for axis in shown]


MARK = "medtasks-site.json"
_HERE = Path(__file__).parent / "page"
#: Of the report and of this site, in the order in which they build on each other.
_OWN = ("marks", "board", "facts", "front", "model", "dataset", "about", "main")
_SCRIPTS = [_HERE / "state.js", *(PAGE / f"{name}.js" for name in SHARED)]
_SCRIPTS += [_HERE / f"{name}.js" for name in _OWN]


def write_site(folder: Path, site: Site) -> None:
    """Files of an earlier site are replaced as a whole."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        remedy = "give another folder to -o"
        raise MedtasksError("holds files that no site wrote", where=folder, remedy=remedy)
    scores = Scores(site)
    pages = {"index.html": {**front_board(scores), "kind": "front", "title": "Models"}}
    for suite in [suite for suite in site.tasks.suites.values() if suite.id in scores.whole]:
        about = {"kind": "board", "title": suite.title, "about": suite.mean_rule}
        pages[f"{suite.id}.html"] = suite_board(scores, suite.id) | about
    datasets = dataset_pages(scores)
    pages["datasets.html"] = index(datasets)
    pages["about.html"] = {**_about(site), "kind": "about", "title": "About and data"}
    n = sum(line.published for line in site.lines)
    frame = {
        **{"made": time.strftime("%Y-%m-%d"), "version": __version__},
        **{"published": n, "submitted": len(site.lines) - n},
        "links": [[name, page["title"]] for name, page in pages.items()],
    }
    models = {f"models/{name}": model_page(scores, lines) for name, lines in site.models.items()}
    of_data = {f"datasets/{name}.html": page for name, page in datasets.items()}
    with replaced_folder(folder) as made:
        for name, content in {**pages, **models, **of_data}.items():
            put(made, name, frame, content)
        _write_assets(made / "assets")
        # GitHub Pages would leave out what begins with an underscore
        (made / ".nojekyll").touch()
        write_json(made / MARK, {"medtasks": __version__, "made": frame["made"], "files": [*pages]})


def _about(site: Site) -> Json:
    found = _cited([], list(site.tasks.suites.values()))
    return {
        "references": [[entry.reference, entry.link or "", entry.text] for entry in found],
        "undetected": undetected(),
        "left_out": [[fault.where, fault.what] for fault in site.faults],
    }


def _cited(datasets: Sequence[Dataset], suites: Sequence[Suite]) -> list[BibEntry]:
    entries = entries_of(datasets, suites)
    return [entries[key] for key in cited_by(datasets, suites) if key in entries]


def _write_assets(folder: Path) -> None:
    folder.mkdir()
    pictures = json.dumps({"kinds": kinds(), "themes": themes(), "font": FONT}, separators=(",", ":"))
    first = f'"use strict";\nconst PICTURES = {pictures};'
    write_text(folder / "site.js", "\n".join([first, *map(_text, _SCRIPTS)]))
    write_text(folder / "site.css", "\n".join(map(_text, (PAGE / "report.css", _HERE / "site.css"))))
    write_text(folder / "pictures.js", "\n".join(map(_text, vendored())))
    write_text(folder / "pictures.LICENSES.txt", licences())


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def put(folder: Path, name: str, frame: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    home = "../" * name.count("/")
    said = data_in_page({**frame, **content, "home": home, "page": name})
    page = Template(_text(_HERE / "site.html")).substitute(
        home=home,
        title=title_in_page(f"{content['title']} · medtasks"),
        data=b64encode(gzip.compress(said.encode(), mtime=0)).decode(),
    )
    write_text(folder / name, page)
