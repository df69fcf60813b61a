"""What the page asks for: the runs, a dataset, its rows, one document. Each answer is JSON."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.view.dataset_page import DatasetPage
from medtasks_ext.report.view.live import LiveRun, call_of
from medtasks_ext.report.view.runs import Answers, Viewed, chosen_answers, open_runs
from medtasks_ext.results.experiments import Fault
from medtasks_ext.run.store import files_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

#: Seconds that one answer may read on in a large file, before it says what it has.
STEP = 0.5
#: Datasets whose answers are kept in memory.
_KEPT = 4
#: Rows of the list that are asked for at once.
_MOST_ROWS = 200


class Viewer:
    def __init__(self, paths: Sequence[Path], registry: Registry, *, open_only: bool = False) -> None:
        self._paths, self._registry, self._open_only = list(paths), registry, open_only
        self._pages: OrderedDict[str, tuple[tuple[Any, ...], DatasetPage]] = OrderedDict()
        self._live: dict[str, LiveRun] = {}  # place of a run under way -> what follows it
        self.refresh()

    def refresh(self) -> None:
        self.faults: list[Fault] = []
        self.runs: list[Viewed] = open_runs(self._paths, self._registry, self.faults)
        self.withheld: list[str] = []
        if self._open_only:
            closed = {item.dataset.id for run in self.runs for item in run.answers if not item.is_open}
            self.withheld = sorted(closed)
            for run in self.runs:
                run.answers = [item for item in run.answers if item.is_open]
        self._looked = time.monotonic()

    @property
    def going_on(self) -> bool:
        return any(run.going_on for run in self.runs)

    @property
    def datasets(self) -> list[str]:
        ids = {item.dataset.id for run in self.runs for item in run.answers}
        order = dict.fromkeys(dataset.id for dataset, _ in self._registry.tasks.values())
        return [name for name in order if name in ids]

    def page(self, dataset: str) -> DatasetPage:
        """By id, or by the name of one of its tasks."""
        known = self.datasets
        if dataset not in known and dataset in self._registry.tasks:
            dataset = self._registry.tasks[dataset][0].id
        if dataset not in known:
            raise MedtasksError(
                f"no answers to {dataset!r}{near(dataset, known)}",
                where=", ".join(run.place for run in self.runs),
                remedy=f"name one of: {', '.join(known[:8])}{' …' if len(known) > 8 else ''}",
            )
        answers = list(chosen_answers(self.runs, dataset))
        state = tuple(map(_state, answers))
        kept = self._pages.get(dataset)
        if kept is None or kept[0] != state:
            kept = (state, DatasetPage(answers[0].dataset, answers, self.runs))
            self._pages[dataset] = kept
        self._pages.move_to_end(dataset)
        while len(self._pages) > _KEPT:
            self._pages.popitem(last=False)
        return kept[1]

    def overview(self, *, live: bool = False) -> Json:
        found: dict[str, list[Answers]] = {}
        for run in self.runs:
            for item in run.answers:
                found.setdefault(item.dataset.id, []).append(item)
        return {
            "live": self.going_on,
            "sample": any(item.sample for items in found.values() for item in items),
            "runs": [
                {
                    "label": run.label,
                    "place": run.place,
                    "going_on": run.going_on,
                    "tasks": len(run.answers),
                    "live": self._figures(run) if live else None,
                }
                for run in self.runs
            ],
            "datasets": [self._line(found[name]) for name in self.datasets],
            "faults": [item.record() for item in self.faults],
            "withheld": self.withheld,
        }

    def _figures(self, run: Viewed) -> Json | None:
        if not run.going_on or run.manifest is None:
            self._live.pop(run.place, None)
            return None
        known = self._live.get(run.place)
        if known is None or known.call != call_of(run.manifest):
            known = self._live[run.place] = LiveRun(Path(run.place), run.manifest, self._registry)
        known.look(run.manifest, STEP / sum(item.going_on for item in self.runs))
        return known.figures(
            {
                item.task: (item.result["valid"], item.result["n"])
                for item in run.answers
                if item.result and item.result["n"] and item.result["valid"] is not None
            }
        )

    def _line(self, items: Sequence[Answers]) -> Json:
        dataset = items[0].dataset
        return {
            "id": dataset.id,
            "name": dataset.metadata.name,
            "suite": dataset.suite.title,
            "language": dataset.metadata.language,
            "type": dataset.metadata.task_type,
            "metric": dataset.metadata.primary_metric,
            "sample": any(item.sample for item in items),
            "answers": [
                {
                    "run": item.run,
                    "strategy": strategy_title(item.strategy),
                    "task": item.task,
                    "score": item.score,
                    "low": (row := item.result or {}).get("interval_low"),
                    "high": row.get("interval_high"),
                    "rough": row.get("interval_rough") or False,
                    "valid": row.get("valid"),
                    "state": item.state,
                }
                for item in items
            ],
        }

    def answer(self, what: str, query: Mapping[str, str]) -> Any:
        """The answer to one question of the page.

        Args:
            what: `overview`, `dataset`, `progress`, `rows`, `document`, `errors`, `confusion` or
                `search`.
            query: `dataset`, and what the question needs besides.
        """
        if what == "overview":
            if self.going_on and time.monotonic() - self._looked > STEP:
                self.refresh()
            return self.overview(live=True)
        page = self.page(query.get("dataset", ""))
        if what != "rows" and (what != "document" or not page.keys):
            page.read(STEP)
        whole = {"progress": page.progress, "dataset": page.head, "errors": page.errors}
        if say := whole.get(what):
            return say()
        if what == "confusion":
            return page.confusion()
        if what == "search":
            return page.search(query.get("q", ""))
        if what == "rows":
            return [page.row(place) for place in _places(query.get("places", ""), len(page.keys))]
        if what == "document":
            return page.document(self.place(page, query.get("document", "")), whole="whole" in query)
        raise MedtasksError(f"no such question: {what}", where="medtasks view", remedy="reload the page")

    @staticmethod
    def place(page: DatasetPage, key: str) -> int:
        place = page.place_of(key)
        while place is None and not page.complete:
            page.read(STEP)
            place = page.place_of(key)
        if place is None and key.isdigit() and int(key) < len(page.keys):
            place = int(key)
        if place is None:
            raise MedtasksError(
                f"no document {key!r}{near(key, page.keys)}",
                where=page.dataset.id,
                remedy=f"there are {len(page.keys):,}, the first is {page.keys[0]}; a number counts from 0"
                if page.keys
                else "there is none yet",
            )
        return place


def _places(text: str, n: int) -> list[int]:
    found = [int(part) for part in text.split(",") if part.isdigit()]
    return [place for place in found if place < n][:_MOST_ROWS]


def _state(answers: Answers) -> tuple[Any, ...]:
    """What changes when a task has more answers than before."""
    try:
        stat = answers.samples.stat()
        return (answers.task, answers.run, answers.state, stat.st_mtime_ns, stat.st_size)
    except OSError:
        folder = answers.folder or answers.samples.parent
        sizes = tuple(path.stat().st_size for path in files_of(folder))
        return (answers.task, answers.run, answers.state, sizes)
