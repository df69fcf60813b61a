"""`medtasks prompts candidates` and `choose`: which of several wordings is asked."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.app import Origin, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.studies import show_tables
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def candidates(
    file: Annotated[Path, typer.Argument(help="YAML file of the candidates.")],
    out: Annotated[str, out_option("Folder for their tasks and rows.")] = "candidates",
    data: Origin = None,
) -> int:
    """Write candidate wordings of a prompt as tasks.

    Each is asked the same rows of the few-shot pool, never test rows. Run them with several models, then
    `medtasks prompts choose`.

    Example: medtasks prompts candidates wordings.yaml -o candidates
    """
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.studies.prompts import CANDIDATES, MODELS, ROWS, read_candidates, write_candidates

    given, known = read_candidates(file), registry()
    dataset = known.datasets.get(given["task"])
    with private_files(dataset is not None and dataset.metadata.access != "open"):
        plan = write_candidates(Path(out), given, known, forced_origin(data))
    typer.echo(f"{len(plan['tasks'])} candidates on {plan['n']} rows of the few-shot pool's {plan['of']:,}")
    typer.echo(f"ClinicBench's protocol: {CANDIDATES} candidates, {ROWS} rows, {MODELS} models")
    where = shlex.quote(out)
    say_next(
        f"MEDTASKS_DATA_DIR={where}/data medtasks --tasks-dir {where}/tasks run "
        f"--tasks {','.join(plan['tasks'].values())} --output_path {where}/runs/MODEL --config MODEL",
        f"medtasks prompts choose {where} {where}/runs/*",
    )
    return 0


def choose(
    folder: Annotated[Path, typer.Argument(help="What `medtasks prompts candidates` wrote.")],
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs of the candidates, one a model.")
    ],
) -> int:
    """Choose the wording with the best mean over models.

    Example: medtasks prompts choose candidates candidates/runs/*
    """
    quiet()
    from medtasks_ext.registry.folders import add_own_folders
    from medtasks_ext.results.entries import read_results
    from medtasks_ext.studies.prompts import PLAN, select

    if not (folder / PLAN).is_file():
        raise MedtasksError(
            f"holds no {PLAN}", where=folder, remedy="`medtasks prompts candidates` writes it"
        )
    add_own_folders([str(folder / "tasks")])
    results = read_results(runs, registry())
    for fault in results.faults:
        say(str(fault))
    found = select(folder, results.entries)
    rows = [
        {"candidate": name, "model": model, "score": score}
        for name, mean in found["means"].items()
        for model, score in {"mean": mean, **found["scores"][name]}.items()
    ]
    table = {"frame": "rows", "title": "{task}: {rows_of_the_pool} rows of the few-shot pool",
             "columns": {"candidate": "{candidate}"}, "across": {"by": "model", "figure": "{score:.4f}"},
             "note": "chosen: {chosen}; these scores chose the prompt and are no results"}  # fmt: skip
    show_tables([table], {**found, "rows": rows}, sample=any(entry.sample for entry in results.entries))
    if found["tied"]:
        typer.echo(f"equal means: {', '.join(found['tied'])}; the first of the file is chosen")
    typer.echo(f"results: {folder}/selection.json")
    return 0
