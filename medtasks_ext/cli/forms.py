"""`medtasks study forms`: forms for experts, and what the filled ones say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import out_folder, quiet
from medtasks_ext.cli.studies import show_tables
from medtasks_ext.cli.words import names_in, say, say_changed, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def forms(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Runs; points: a JSONL file; review: tasks; survey: a suite. With --key: filled forms.",
        ),
    ],
    out: Annotated[str, out_option("Folder for forms and key, or for the results.")],
    kind: Annotated[
        str,
        typer.Option(
            help="pairwise: answers of two runs, four questions; points: one answer, its scoring points; "
            "likert: answers of runs, rated on the axes of their jury; review: test items, five criteria; "
            "survey: a suite's taxonomy."
        ),
    ] = "pairwise",
    tasks: Annotated[str | None, typer.Option(help="What of the runs: tasks or groups.")] = None,
    documents: Annotated[int, typer.Option("-n", "--documents", min=1, help="Documents per task.")] = 100,
    experts: Annotated[int | None, typer.Option(min=1, max=99, help="By default as in the paper.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="key.json of the forms: read the filled ones, *.csv.")
    ] = None,
) -> int:
    """Write blinded forms for experts, or read the filled ones.

    One HTML page per expert, and the key that stays with you. With --key, what the pages exported is checked
    against the key; then rates, intervals and agreement are computed, of complete rows.

    Example: medtasks study forms runs/MODEL runs/GPT4 --tasks clinicbench_patient_education -o forms

    Example: medtasks study forms filled/*.csv --key forms/key.json -o results
    """
    quiet()
    if key is not None:
        return _read([Path(name) for name in sources], key, out)
    from medtasks_ext.studies.forms.export import KINDS, Wanted
    from medtasks_ext.studies.forms.sheet import write_forms
    from medtasks_ext.studies.said import study

    if kind not in KINDS:
        raise MedtasksError(f"no kind {kind!r}", where="--kind", remedy=f"use {', '.join(KINDS)}")
    of_runs, n = kind in ("pairwise", "likert"), experts or study(f"forms/kinds/{kind}")["experts"]
    if of_runs != bool(tasks) or (kind in ("points", "survey") and len(sources) > 1):
        what = "--tasks names what of runs is shown" if of_runs or tasks else "takes one source"
        remedy = "`medtasks study forms --help` says what each kind takes"
        raise MedtasksError(what, where=f"--kind {kind}", remedy=remedy)
    names = registry().leaves_of(names_in(",".join(sources) if kind == "review" else tasks))
    if of_runs:
        say_changed(map(Path, sources))
    made = KINDS[kind](Wanted(sources, names, registry(), documents, n))
    with private_files(True):  # forms quote answers and rows, and the key undoes the blinding
        *pages, written = write_forms(made, kind, Path(out))
    typer.echo("\n".join(f"wrote {path}" for path in pages))
    if "gated" in made["notices"]:
        say("the forms hold the texts: hand them only to people whom the agreement for the data permits")
    typer.echo(f"keep {written} to yourself: it says which answer is whose")
    say_next("have them filled", f"medtasks study forms *.csv --key {written} -o {out}_results")
    return 0


def _read(files: list[Path], key_file: Path, out: str) -> int:
    from medtasks_ext.studies.forms.results import tables_of, write_results
    from medtasks_ext.studies.forms.sheet import read_forms, read_key
    from medtasks_ext.studies.said import study

    key = read_key(key_file)
    rows, missing = read_forms(files, key)
    tables, kind = tables_of(rows, key), study(f"forms/kinds/{key['kind']}")
    with private_files(True):
        write_results(out_folder(out), key, rows, missing, tables)
    for form, some_rows in missing.items():
        say(f"{form}: {len(some_rows)} of {len(key['forms'][form])} rows are missing from all figures")
    show_tables(kind["tables"], tables, sample=bool(key.get("SAMPLE_DATA")))
    typer.echo(f"results: {out}")
    say_next(kind["next"].format(out=out, runs=" ".join(run["folder"] for run in key.get("runs", ()))))
    return 0
