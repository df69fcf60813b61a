"""`medtasks data new`: a dataset folder from what flags say, for the columns of a file if one is given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from medtasks_ext.cli.words import names_in, pairs, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.load import check_loaded_rows
from medtasks_ext.registry import Dataset, forget, registry
from medtasks_ext.registry.build import check_names
from medtasks_ext.registry.new import of_columns, suite_of, template_of, write
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.row import Rows

_Axes = typer.Option(metavar="NAME=VALUE", help="A value on an axis of the suite's own.")
_Map = typer.Option(
    "--map", metavar="OURS=THEIRS", help="A column of the kind, and the file's; of a list A,B."
)


def new(
    id: Annotated[str | None, typer.Option(help="SUITE_DATASET.")] = None,
    kind: Annotated[str | None, typer.Option(help="Answer kind (docs/keys.md).")] = None,
    language: Annotated[str | None, typer.Option(help="Of the documents: en, zh, …")] = None,
    task_type: Annotated[str | None, typer.Option(help="What is done with a document.")] = None,
    document_types: Annotated[str | None, typer.Option(help="Kinds of documents: A,B.")] = None,
    specialties: Annotated[str | None, typer.Option(help="Medical specialties: A,B.")] = None,
    stage: Annotated[str | None, typer.Option(help="Clinical stage.")] = None,
    access: Annotated[str | None, typer.Option(help="open, gated, private.")] = None,
    axis: Annotated[list[str] | None, _Axes] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="File of rows that the task is for.")
    ] = None,
    columns: Annotated[list[str] | None, _Map] = None,
) -> int:
    """Start a dataset folder.

    What is left to write is marked TODO. --from shows three rows as they are asked, and copies none.

    Example: medtasks data new --from exam.csv --id own_exam --kind choice --map question=stem
    --map options=A,B,C,D
    """
    rows = read_rows(Path(source).expanduser()) if source else []
    tasks = registry(empty=True)
    check_names(tasks)  # a registry that cannot be read is mended first
    said: dict[str, Any] = {
        "id": id or "", "language": language or "", "task_type": task_type or "", "stage": stage or "",
        "document_types": names_in(document_types) or [""],
        "specialties": names_in(specialties) or [""],
        "access": access or "", "axes": pairs(axis, "--axis", "NAME=VALUE"),
    }  # fmt: skip
    joined = suite_of(tasks, said["id"])
    template = template_of(joined, kind)
    named = {ours: names_in(theirs) for ours, theirs in pairs(columns, "--map", "OURS=THEIRS").items()}
    if absent := [name for names in named.values() for name in names if rows and name not in rows[0]]:
        what, known = f"the file has no column {absent[0]}", ", ".join(rows[0])
        raise MedtasksError(what, where="--map", remedy=f"name one of: {known}")
    if named:
        template = of_columns(template, named)
    folder = write(tasks, joined, said, template)
    forget()
    dataset = Dataset(folder)
    typer.echo(f"wrote {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}")
    if rows:
        _preview(dataset, Rows("local", rows, [], str(source)))
    if joined.datasets and tasks.is_own(dataset):
        typer.echo(f"means of {joined.id} leave it out until `datasets` in {joined.file} lists it")
    typer.echo("replace all that is marked TODO in its files")
    steps = [f"medtasks preview {dataset.id} --data sample", f"medtasks dev validate {dataset.id}"]
    if source:
        data = f"$MEDTASKS_DATA_DIR/{joined.id}/{folder.name}"
        steps.append(f"mkdir -p {data}; cp {source} {data}/test{Path(source).suffix}; medtasks data check")
    say_next(*steps)
    return 0


def _preview(dataset: Dataset, rows: Rows) -> None:
    """Three rows as they are asked, and what keeps others from it."""
    n, checked = len(rows.test), check_loaded_rows(dataset, rows)
    for document in checked.test[:3]:
        text = "\n\n".join(filter(None, (document["system"], shown(document))))
        typer.echo(f"\n── {document.row} ──\n{text}\n── gold ──\n{document['target']}")
    asked = len({document.row.partition(",")[0] for document in checked.test})
    typer.echo(f"\n{asked:,} of {n:,} rows can be asked as the new task file says")
    if checked.faults:
        remedy = f"correct {dataset.file}, then `medtasks preview`"
        typer.echo(f"note: {checked.faults[0].what} → --map names columns; {remedy}")
