"""What judges said of cases, and tables of studies as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.judge.cases import requests_of
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.rows.spec import Judging
from medtasks_ext.tables import write_csv

if TYPE_CHECKING:
    from medtasks_ext.judge.cases import JudgedTask, JudgementStore
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.run import Run

#: (task, document) -> judge -> item -> rating
Said = dict[tuple[str, str], dict[str, dict[str, float]]]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


@lru_cache
def study(name: str) -> dict[str, Any]:
    """A study as its YAML has it: what is asked, and its tables (`cli.tables.show_tables`)."""
    path = Path(__file__).parent / f"{name}.yaml"
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def finished(folders: Sequence[str | Path], known: Registry, tasks: Sequence[str] = ()) -> list[Run]:
    """Runs of which each has the results of these tasks, or of some where none are named."""
    from medtasks_ext.runner.run import Run  # reports load no runner for what studies say

    runs = [Run(Path(folder), known) for folder in folders]
    for run in runs:
        run.load()
    names = tasks or list(dict.fromkeys(name for run in runs for name in run.results()))
    for name, run in product(names, runs):
        if name not in run.results():
            remedy = "`medtasks run` it to the end, or name other tasks (--tasks)"
            raise MedtasksError(f"{name} is not finished", where=run.folder, remedy=remedy)
    return runs


def rubric_of(name: str) -> Rubric:
    """What judges are asked in a study."""
    return Rubric(Judging(**study(name)["judging"]))


def said_of(jury: Jury, tasks: Sequence[JudgedTask], store: JudgementStore) -> Said:
    """The verdicts so far; no judge whose reply is missing or holds none."""
    said: Said = {}
    for task in tasks:
        for case in task.cases:
            done, _ = requests_of(task, case, jury, store)
            by_judge = said.setdefault((task.name, case.document), {})
            for (judge, _), ratings in done.items():
                by_judge.setdefault(judge, {}).update(ratings)
    return said


def write_tables(folder: Path, name: str, tables: Tables, **about: Any) -> None:
    """NAME_TABLE.csv for each table, and NAME.json with all of them."""
    for table, rows in tables.items():
        write_csv(folder / f"{name}_{table}.csv", rows)
    write_json(folder / f"{name}.json", {**about, **tables})
