"""`medtasks prompts candidates` and `choose`: which of several wordings is asked."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import Origin, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.tables import SAMPLE_DATA, figure, show, texts
from medtasks_ext.cli.words import counted, say
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_lab.studies.prompt_selection import Selection, SelectionPlan

FILE = "candidates.yaml"


def candidates(
    file: Annotated[str, typer.Argument(help="YAML file of the candidates.")],
    out: Annotated[str, out_option("Folder for their tasks and rows.")] = "candidates",
    data: Origin = None,
) -> int:
    """Write candidate wordings of a prompt as tasks.

    Each is asked the same rows of the few-shot pool, never test rows. Run them with several models, then
    `medtasks prompts choose`.

    Example: medtasks prompts candidates wordings.yaml -o candidates
    """
    from medtasks_ext.atomic import private_files
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_lab.studies.prompt_selection import read_candidates, write_candidates

    given, folder = read_candidates(Path(file)), Path(out)
    known = registry()
    dataset = known.datasets.get(given.task)
    with private_files(dataset is not None and dataset.metadata.access != "open"):
        plan = write_candidates(folder, given, known, forced_origin(data))
        (folder / FILE).write_bytes(Path(file).read_bytes())
    words = f"{counted(len(plan.tasks), 'candidate')} on {counted(plan.n, 'row')}"
    typer.echo(f"{words} of the few-shot pool's {plan.of:,}")
    _say_protocol(plan)
    where = shlex.quote(str(folder))
    typer.echo("next, with each model:")
    typer.echo(
        f"  MEDTASKS_DATA_DIR={where}/data medtasks --tasks-dir {where}/tasks run "
        f"--tasks {','.join(plan.tasks.values())} --output_path {where}/runs/MODEL --config MODEL"
    )
    typer.echo(f"then:\n  medtasks prompts choose {where} {where}/runs/*")
    return 0


def choose(
    folder: Annotated[str, typer.Argument(help="What `medtasks prompts candidates` wrote.")],
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs of the candidates, one for each model.")
    ],
) -> int:
    """Choose the wording with the best mean over models.

    Example: medtasks prompts choose candidates candidates/runs/*
    """
    quiet()
    from medtasks_ext.registry.folders import add_own_folders
    from medtasks_ext.results.entries import read_results
    from medtasks_lab.studies.prompt_selection import read_candidates, read_plan, select, write_selection

    place = Path(folder)
    plan = read_plan(place)
    given = {item.name: item.prompt for item in read_candidates(place / FILE).candidates}
    add_own_folders([str(place / "tasks")])
    results = read_results([Path(run) for run in runs], registry())
    for fault in results.faults:
        say(str(fault))
    selection = select(plan, results.entries)
    _print(selection, sample=any(entry.sample for entry in results.entries))
    typer.echo(str(write_selection(place, selection, given)))
    return 0


def _say_protocol(plan: SelectionPlan) -> None:
    from medtasks_lab.studies.prompt_selection import CANDIDATES, MODELS, ROWS

    if (len(plan.tasks), plan.n) != (CANDIDATES, ROWS):
        typer.echo(f"ClinicBench's protocol: {CANDIDATES} candidates, {ROWS} rows, {MODELS} models")


def _print(selection: Selection, *, sample: bool) -> None:
    from medtasks_lab.studies.prompt_selection import MODELS

    models = list(next(iter(selection.scores.values())))
    title = f"{selection.plan.task}: {counted(selection.plan.n, 'row')} of the few-shot pool"
    rows = [
        (
            f"{name} (chosen)" if name == selection.chosen else name,
            *(f"{score:.4f}" for score in (mean, *(selection.scores[name][model] for model in models))),
        )
        for name, mean in sorted(selection.means.items(), key=lambda item: -item[1])
    ]
    columns = [texts("candidate"), *map(figure, ("mean", *models))]
    show(rows, columns, f"{title}\n{SAMPLE_DATA}" if sample else title, pad_edge=False)
    if selection.tied:
        typer.echo(f"equal means: {', '.join(selection.tied)}; the first of the file is chosen")
    if len(models) != MODELS:
        typer.echo(f"{counted(len(models), 'model')}; ClinicBench's protocol takes {MODELS}")
    typer.echo("These scores chose the prompt and are no results.")
