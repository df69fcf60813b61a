"""Where the answers of a report lie, and the files that its page loads when they are opened.

A dataset has one file for its list of documents, and one for the texts of each hundred. Each is a script that
gives the page its data packed, since a page that was opened as a file may load scripts alone.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.offline_page import data_in_page
from medtasks_ext.report.answers.column import Column, Flag, Source, outcomes_in
from medtasks_ext.report.answers.dataset import DatasetAnswers
from medtasks_ext.report.privacy import is_open
from medtasks_ext.results.entries import runs_below
from medtasks_ext.results.experiments import Fault
from medtasks_ext.results.reading import asked_task, run_folder
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.records import RESCORE, task_of_samples

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.gather import Report
    from medtasks_ext.results.experiments import Entry

#: The folder beside the page.
FOLDER = "answers"
#: Answers that a report holds, spread evenly over its runs and tasks; of one run of one task at least.
MOST, LEAST = 10_000, 20
_QUICK = 5  # level of packing: a third larger than the best, in a third of its time


Sources: TypeAlias = "dict[str, list[Source]]"


def sources_of(entries: Sequence[Entry], tasks: Registry, paths: Sequence[Path] = ()) -> Sources:
    """Dataset -> where its answers lie, in the registry's order; answers by likelihood are no texts.

    `paths`: of runs whose answers to tasks without a score count, too.
    """
    found: Sources = {name: [] for name in tasks.datasets}
    for entry in entries:
        for item in entry.experiments.values():
            if item.samples is not None and item.task in tasks.tasks:
                folder = item.samples.parent if entry.kind == "medtasks" else None
                task = task_of_samples(item.samples) if folder else item.task
                where = item.samples, folder, item.sample
                source = Source(entry.label, task, item.dataset, item.strategy, *where, item)
                found[item.dataset.id].append(source)
    for folder, manifest in runs_of(paths):
        for name in outcomes_in(folder).asked:
            entered = manifest.tasks.get(name)
            if name in tasks.tasks and entered and entered.state is not TaskState.DONE:
                dataset, strategy = asked_task(tasks, name, {})
                sample = manifest.identity.settings.get("data") == "sample"
                where = RunFolder(folder).samples_file(name), folder, sample
                found[dataset.id].append(
                    Source(manifest.identity.model_name, name, dataset, strategy, *where)
                )
    return {name: sources for name, sources in found.items() if sources}


def sources_named(found: Sources, name: str, tasks: Registry) -> list[Source]:
    """By the dataset's id, or by the name of one of its tasks."""
    dataset = name if name in found or name not in tasks.tasks else tasks.tasks[name][0].id
    if dataset not in found:
        raise MedtasksError(
            f"no answers to {name!r}{near(name, found)}",
            remedy=f"name one of: {', '.join([*found][:8])}{' …' if len(found) > 8 else ''}"
            if found
            else "look again when a task has answers",
        )
    return found[dataset]


def runs_of(paths: Iterable[Path]) -> Iterator[tuple[Path, Manifest]]:
    """The runs of medtasks that paths name, those that can be read."""
    for path in paths:
        own = run_folder(path)
        for folder in [own] if own else runs_below(path):
            with suppress(MedtasksError):  # who reads the results names it
                yield folder, Manifest.read(folder)


def columns_of(sources: Sequence[Source], faults: list[Fault], first: int | None = None) -> list[Column]:
    """Those that can be read; what cannot is added to the faults."""
    found = []
    for source in sources:
        try:
            found.append(column := Column(source, first))
        except MedtasksError as error:
            faults.append(Fault(source.task, f"no answers: {error.what}", error.remedy, skipped=False))
            continue
        if damaged := sum(bool(row.flags & Flag.DAMAGED) for row in column.rows):
            what = f"{damaged:,} of {len(column.rows):,} records of {source.samples.name} are damaged"
            faults.append(Fault(source.task, what, RESCORE, skipped=False))
    return found


def write_answers(folder: Path, report: Report, *, closed: bool) -> Json:
    """Write the files, and return what the page says of them.

    What cannot be read is added to the report's faults. `closed`: also of data that are not open.
    """
    every = sources_of(report.own, report.tasks)
    found = {
        name: [item for item in sources if closed or is_open(item.dataset, sample=item.sample)]
        for name, sources in every.items()
    }
    withheld = [name for name, sources in found.items() if not sources]
    each = max(LEAST, MOST // max(1, sum(map(len, found.values()))))
    most = max(1, MOST // (each * max(1, len(found) - len(withheld))))
    held = []
    for name, sources in found.items():
        if columns := columns_of(sources[:most], report.faults, each):
            held.append(name)
            named = all(is_open(item.dataset, sample=item.sample) for item in sources)
            answers = DatasetAnswers(columns, named=named)
            _write(folder / f"{name}.js", answers.head())
            for number in range(answers.parts):
                _write(folder / f"{name}-{number}.js", answers.part(number))
    return {"held": held, "withheld": withheld}


def _write(path: Path, content: Any) -> None:
    path.write_text(script(path.stem, content), encoding="ascii")  # its folder takes its place as a whole


def script(name: str, content: Any) -> str:
    """What gives the page its data; nothing in it is a program."""
    packed = gzip.compress(data_in_page(content).encode(), _QUICK, mtime=0)
    return f'answered("{name}", "{b64encode(packed).decode()}");\n'
