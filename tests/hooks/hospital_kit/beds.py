"""A command."""

import typer


def beds(wards: int = typer.Argument(help="Number of wards.")) -> int:
    """Count the beds of some wards.

    Example: medtasks beds 3
    """
    typer.echo(f"{wards * 12} beds")
    return 0
