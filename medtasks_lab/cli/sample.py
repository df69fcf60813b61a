"""`medtasks study sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry import registry
from medtasks_ext.seed import SEED
from medtasks_lab.studies.difficulty import Grading, read_grading
from medtasks_lab.studies.sample import DrawnSample, PoolItem, draw, parse_ratio, strata_of

EXACT, INEXACT = 0, 1


def sample(
    files: Annotated[
        list[str], typer.Argument(metavar="LEVELS...", help="Files TASK.json of `medtasks study difficulty`.")
    ],
    size: Annotated[int, typer.Option("-n", "--size", min=1, help="Questions to draw from each.")],
    ratio: Annotated[str, typer.Option(help="HARD:MEDIUM:EASY.")] = "3:5:2",
    by: Annotated[
        str | None, typer.Option(help="Draw in proportion over this column, e.g. department.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="File with columns id and --by; else the task's own rows.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides which questions are drawn.")] = SEED,
    out: Annotated[str, out_option("List for --samples; tasks already in it are kept.")] = "samples.json",
) -> int:
    """Draw a sample with a mix of difficulty levels.

    Stratified, as MLB does.

    Example: medtasks study sample difficulty/mlb_maguidance.json --size 300 --by department -o samples.json

    Exit code 1: the mix is not met.
    """
    shares = parse_ratio(ratio)
    if rows and (len(files) > 1 or not by):
        raise MedtasksError(
            "belongs to one task and a column", where="--rows", remedy="name one file of levels, and --by"
        )
    gradings = [read_grading(Path(file)) for file in files]
    path = Path(out)
    report_path = path.with_suffix(".report.json")
    lists, reports = _former(path), _former(report_path)
    drawn = {}
    for grading in gradings:
        strata = _strata(grading, by, rows)
        pool = [PoolItem(item.id, item.level, strata.get(item.id, "")) for item in grading.questions]
        drawn[grading.task] = sample = draw(pool, size, shares, seed)
        chosen = set(sample.ids)
        # in the order of the documents: lm-eval pairs the list with them one by one
        places = sorted(place for item in grading.questions if item.id in chosen for place in item.documents)
        lists.update(dict.fromkeys(grading.same_documents, places))
        reports[grading.task] = {
            "size": size, "ratio": ratio, "by": by, "seed": seed,
            "origin": grading.origin, "rows_hash": grading.rows_hash, "tasks": grading.same_documents,
            "levels": {name: count._asdict() for name, count in sample.levels.items()},
            "strata": {name: count._asdict() for name, count in sample.strata.items()} if by else {},
            "swapped": sample.swapped, "ids": sample.ids,
        }  # fmt: skip
    write_json(path, lists)
    write_json(report_path, reports)
    for grading in gradings:
        _print(grading, drawn[grading.task], by)
    typer.echo(f"{path}: for --samples; {report_path}: what was aimed at and drawn")
    model = "--model vllm --model_args pretrained=ORG/MODEL"
    say_next(f"medtasks run {','.join(drawn)} --samples {path} {model}")
    missed = any(count.drawn != count.wanted for sample in drawn.values() for count in sample.levels.values())
    return INEXACT if missed else EXACT


def _former(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise MedtasksError("is not what `medtasks study sample` writes", where=path, remedy="use another -o")
    return content


def _strata(grading: Grading, by: str | None, rows: str | None) -> dict[str, str]:
    if by is None:
        return {}
    tasks = registry().tasks
    if grading.task not in tasks:
        raise MedtasksError(
            f"unknown task {grading.task}", where="--by", remedy="`medtasks ls` lists the datasets"
        )
    return strata_of(grading, tasks[grading.task][0], by, Path(rows) if rows else None)


def _print(grading: Grading, sample: DrawnSample, by: str | None) -> None:
    mark = " (SAMPLE DATA: synthetic rows)" if grading.origin == "sample" else ""
    typer.echo(f"{grading.task}{mark}: {len(sample.ids):,} of {len(grading.questions):,} questions")
    columns = [texts("level"), *map(figure, ("pool", "wanted", "by coverage alone", "drawn"))]
    rows = [(level, *(f"{number:,}" for number in count)) for level, count in sample.levels.items()]
    show(rows, columns, pad_edge=False)
    for level, count in sample.levels.items():
        if count.drawn < count.wanted:
            typer.echo(
                f"not met: {count.wanted} {level} wanted, the pool has {count.pool}; "
                "other levels make up the size"
            )
    if not by:
        return
    off = {name: count for name, count in sample.strata.items() if count.drawn != count.wanted}
    typer.echo(
        f"{by}: {len(sample.strata)} strata, {len(sample.strata) - len(off)} with exactly their share;"
        f" {sample.swapped} questions swapped for the mix of levels"
    )
    for name, count in sorted(off.items(), key=lambda item: item[1].drawn - item[1].wanted):
        typer.echo(f"  {name}: {count.drawn} drawn, its share is {count.wanted} (pool {count.pool})")
