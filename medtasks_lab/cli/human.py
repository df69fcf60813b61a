"""`medtasks human`: forms for experts, and what the filled ones say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.app import command_app, out_option
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.words import names_in, say, say_changed, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.seed import SEED

if TYPE_CHECKING:
    from medtasks_lab.human.forms import Export
    from medtasks_lab.human.pairs import DrawnPairs

PANEL = "Judges"

app = command_app()

_Tasks = Annotated[str | None, typer.Option(help="Tasks, groups or tags that the runs have finished.")]
_Documents = Annotated[
    int | None, typer.Option("-n", "--documents", min=1, help="Documents per task.  [default: 100]")
]


@app.callback()
def human() -> None:
    """Blinded forms for experts, and their votes."""


@app.command("export")
def export(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Runs; for points one JSONL file of cases, for review tasks, for survey a suite.",
        ),
    ],
    out: Annotated[str, out_option("Folder for forms and key.")],
    kind: Annotated[
        str,
        typer.Option(
            help="pairwise: answers of two runs, four questions; points: one answer, its scoring points; "
            "likert: answers of runs, rated on the axes of their jury; review: test items, five criteria; "
            "survey: a suite's taxonomy."
        ),
    ] = "pairwise",
    tasks: _Tasks = None,
    documents: _Documents = None,
    experts: Annotated[
        int | None,
        typer.Option(min=1, max=99, help="Forms.  [default: 3; points 1; likert, review 2; survey 1]"),
    ] = None,
    raters: Annotated[
        int | None, typer.Option(min=1, help="likert: experts who rate an answer.  [default: all]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw, the orders and the sides.")] = SEED,
) -> None:
    """Write the forms of experts.

    One HTML page and one CSV per expert, and the key that stays with you.

    Example: medtasks human export runs/MODEL runs/GPT4 --tasks clinicbench_patient_education -o forms
    """
    from medtasks_lab.human.forms import write_forms

    if kind not in _KINDS:
        raise MedtasksError(f"no kind {kind!r}", where="--kind", remedy=f"use {', '.join(_KINDS)}")
    if raters and kind != "likert":
        raise MedtasksError("every expert rates all", where="--raters", remedy="leave it out")
    say_changed(map(Path, sources))
    made = _KINDS[kind](_Request(sources, tasks, documents, experts, raters, seed))
    with private_files(True):  # forms quote answers and rows, and the key undoes the blinding
        paths = write_forms(made, Path(out))
    for path in paths:
        typer.echo(f"wrote {path}")
    _say_export(made, Path(out))


@app.command("ingest")
def ingest(
    files: Annotated[list[str], typer.Argument(metavar="FORM.csv...", help="Filled forms.")],
    key_file: Annotated[str, typer.Option("--key", help="key.json of the export.")],
    out: Annotated[str, out_option("Folder for the results.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Take complete rows although others are missing.")
    ] = False,
) -> None:
    """Read filled forms.

    They are checked against the key; then rates, intervals and agreement are computed.

    Example: medtasks human ingest forms/*.csv --key forms/key.json -o results
    """
    from medtasks_lab.cli.human_tables import TAKEN, say_read
    from medtasks_lab.human.forms import read_key
    from medtasks_lab.human.ingest import ingest as read_filled
    from medtasks_lab.human.results import check_earlier

    key, folder = read_key(Path(key_file)), Path(out)
    if folder.resolve() == Path(key_file).resolve().parent:
        raise MedtasksError(
            "results name the runs and do not belong beside the forms",
            where=out,
            remedy="name another folder",
        )
    with private_files(True):
        out_folder(folder)
        read = read_filled([Path(file) for file in files], key, partial=partial)
        check_earlier(folder, read, key)
        say_read(read, key)
        TAKEN[key["kind"]](folder, read, key)
    typer.echo(f"results: {folder}")


# ---------------------------------------------------------------------- export


@dataclass(frozen=True)
class _Request:
    """What is to be exported, as given."""

    sources: list[str]
    tasks: str | None
    documents: int | None
    experts: int | None
    raters: int | None
    seed: int


def _pairwise(request: _Request) -> Export:
    from medtasks_lab.human.pairs import EXPERTS, pairwise_export

    drawn = _drawn(request.sources, request.tasks, request.documents, request.seed)
    return pairwise_export(drawn, experts=request.experts or EXPERTS)


def _points(request: _Request) -> Export:
    from medtasks_lab.human.points import points_export

    if len(request.sources) != 1 or request.tasks or request.documents:
        raise MedtasksError(
            "points come from one JSONL file of cases, all of which are asked",
            where="--kind points",
            remedy="medtasks human export --kind points QUEUE.jsonl -o DIR",
        )
    return points_export(Path(request.sources[0]), experts=request.experts or 1, seed=request.seed)


def _likert(request: _Request) -> Export:
    names = _names(request.tasks)
    from medtasks_ext.registry import registry
    from medtasks_lab.human.likert import RATERS, likert_export
    from medtasks_lab.human.pairs import DOCUMENTS

    return likert_export(
        [Path(folder) for folder in request.sources],
        names,
        registry(),
        documents=request.documents or DOCUMENTS,
        experts=request.experts or max(RATERS, request.raters or 0),
        raters=request.raters,
        seed=request.seed,
    )


def _review(request: _Request) -> Export:
    _no_tasks(request, "review", "TASK")
    from medtasks_ext.cli.arguments import quiet

    quiet()
    from medtasks_ext.registry import registry
    from medtasks_lab.human.pairs import DOCUMENTS
    from medtasks_lab.human.review import PHYSICIANS, review_export

    return review_export(
        [name for source in request.sources for name in names_in(source)],
        registry(),
        documents=request.documents or DOCUMENTS,
        experts=request.experts or PHYSICIANS,
        seed=request.seed,
    )


def _survey(request: _Request) -> Export:
    _no_tasks(request, "survey", "SUITE")
    if len(request.sources) != 1 or request.documents:
        raise MedtasksError(
            "a survey is about the taxonomy of one suite, as a whole",
            where="--kind survey",
            remedy="medtasks human export --kind survey SUITE -o DIR",
        )
    from medtasks_ext.registry import registry
    from medtasks_lab.human.survey import survey_export

    return survey_export(request.sources[0], registry(), experts=request.experts or 1, seed=request.seed)


def _no_tasks(request: _Request, kind: str, source: str) -> None:
    if request.tasks:
        raise MedtasksError(
            f"names what runs have finished, and --kind {kind} is about no run",
            where="--tasks",
            remedy=f"medtasks human export --kind {kind} {source} -o DIR",
        )


_KINDS: Mapping[str, Callable[[_Request], Export]] = {
    "pairwise": _pairwise,
    "points": _points,
    "likert": _likert,
    "review": _review,
    "survey": _survey,
}


def _names(tasks: str | None) -> list[str]:
    from medtasks_ext.cli.arguments import quiet

    names = names_in(tasks)
    if not names:
        raise MedtasksError(
            "no tasks given", where="--tasks", remedy="name tasks that the runs have finished"
        )
    quiet()
    return names


def _drawn(sources: Sequence[str], tasks: str | None, documents: int | None, seed: int) -> DrawnPairs:
    from medtasks_ext.registry import registry

    if len(sources) != 2:
        raise MedtasksError(
            f"{len(sources)} folders given", where="medtasks human", remedy="name two runs: RUN_A RUN_B"
        )
    names = _names(tasks)
    from medtasks_lab.human.pairs import DOCUMENTS, draw_pairs

    folders = (Path(sources[0]), Path(sources[1]))
    return draw_pairs(folders, names, registry(), documents=documents or DOCUMENTS, seed=seed)


def _say_export(made: Export, folder: Path) -> None:
    from medtasks_ext.cli.tables import SAMPLE_DATA
    from medtasks_lab.human.forms import KEY_FILE, LONGEST_CELL

    for task, counts in made.record.get("tasks", {}).items():
        typer.echo(f"{task}: {counts['documents']} of {counts['of']} documents")
    long = {text for items in made.forms.values() for item in items for text in item.texts.values()}
    if n_long := sum(len(text) > LONGEST_CELL for text in long):
        say(f"{n_long} texts are too long for a cell of a spreadsheet: have the HTML page filled")
    if "sample" in made.notices:
        say(SAMPLE_DATA)
    if "gated" in made.notices:
        say("the forms hold the texts: hand them only to people whom the agreement for the data permits")
    typer.echo(f"keep {folder / KEY_FILE} to yourself: it says which answer is whose")
    filled = f"medtasks human ingest {folder}/*.csv --key {folder / KEY_FILE} -o {folder}_results"
    say_next("have the forms filled", filled)
