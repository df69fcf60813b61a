"""The `medtasks` command: one module per subcommand, imported when it is called."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from medtasks_ext import __version__
from medtasks_ext.errors import MedtasksError

BAD_INPUT, INTERRUPTED = 2, 130

app = typer.Typer(
    name="medtasks",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Medical LLM benchmarks (BRIDGE, MedHELM, ClinicBench, MLB) on lm-evaluation-harness.",
    epilog="Exit codes: 0 done; 1 something failed or is not valid; 2 bad input; 130 interrupted.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"medtasks {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version.")] = False,
) -> None:
    """Options of the command itself."""


@app.command("ls")
def ls(
    filters: Annotated[
        list[str] | None, typer.Argument(help="KEY=VALUE on any metadata field, or part of a name.")
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="List groups and how many tasks they hold.")
    ] = False,
    tags: Annotated[bool, typer.Option("--tags", help="List tags and how many tasks they hold.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List datasets and whether their data is at hand.

    Example: medtasks ls language=zh access=open
    """
    from medtasks_ext.cli.ls import list_datasets, list_names

    if groups or tags:
        list_names("groups" if groups else "tags", filters or [], as_json=json)
    else:
        list_datasets(filters or [], as_json=json)


@app.command(
    "run",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def run(context: typer.Context) -> None:
    """Run tasks with lm-eval's own flags; resumable.

    Example: medtasks run --tasks bridge_zh,medhelm_admin --model vllm --model_args pretrained=ORG/MODEL
    --apply_chat_template
    """
    from medtasks_ext.cli.run import run_command

    raise typer.Exit(run_command(context.args))


@app.command("rescore")
def rescore(
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
) -> None:
    """Compute every metric again from stored responses, without a model."""
    from medtasks_ext.cli.run import rescore_command

    raise typer.Exit(rescore_command(folder))


@app.command("export")
def export(
    suite: Annotated[str, typer.Argument(help="bridge: the folder that the BRIDGE leaderboard takes.")],
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
    out: Annotated[str, typer.Option("-o", "--out", help="Where the folder `result` goes.")] = ".",
) -> None:
    """Write a run's responses in the layout that a leaderboard takes.

    Example: medtasks export bridge runs/MODEL -o submission
    """
    from medtasks_ext.cli.export import export_command

    raise typer.Exit(export_command(suite, folder, out))


@app.command("validate")
def validate(
    names: Annotated[list[str] | None, typer.Argument(help="Dataset ids or folders; all by default.")] = None,
) -> None:
    """Check dataset folders: schema, prompts, sample rows, an oracle, garbage."""
    from medtasks_ext.cli.validate import validate_command

    raise typer.Exit(validate_command(names or []))


@app.command("sync")
def sync(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a file is stale.")] = False,
) -> None:
    """Write tags, variants and groups from the metadata of the task files."""
    from medtasks_ext.cli.sync import sync_command

    raise typer.Exit(sync_command(check=check))


@app.command("path")
def path() -> None:
    """Print the folder of the tasks, for lm-eval's --include_path."""
    from medtasks_ext.registry import tasks_folder

    typer.echo(tasks_folder())


@app.command("doctor")
def doctor() -> None:
    """Check the installation: lm-eval, copies of the tasks, names, data folder."""
    from medtasks_ext.cli.doctor import doctor_command

    raise typer.Exit(doctor_command())


def main() -> None:
    """Entry point: user errors become one message, exit code 2."""
    try:
        app(standalone_mode=True)
    except MedtasksError as error:
        typer.echo(f"medtasks: {error}", err=True)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        typer.echo("medtasks: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
