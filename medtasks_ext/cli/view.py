"""`medtasks view`: every answer of any runs, in a browser."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.show import show
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def view(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... [TASK [DOCUMENT]]",
            help="Folders of runs, or of lm_eval --output_path --log_samples. With a task, and a document's "
            "key or place from 0: in the terminal.",
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any.")] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="With a document: print long texts whole.")] = False,
) -> int:
    """Show the report with every answer in a browser.

    The page of `report`, on this machine alone, with all answers: filters, search, two runs side by side,
    clusters of errors and confusion matrices. It is made anew while a run goes on.

    With a task, in the terminal: its errors, the score if each were mended, and the documents of each; with a
    document: prompt, response, readings, score.

    Example: medtasks view runs/A runs/B

    Example: medtasks view runs/MODEL bridge_mednli t3
    """
    paths, named = _runs_and_names(paths)
    if named:
        if len(paths) > 1 or len(named) > 2:
            raise MedtasksError(
                "one document of one run is shown at a time, in the terminal",
                where=" ".join([*paths, *named]),
                remedy="write: medtasks view RUN TASK DOCUMENT; and is each folder of a run there?",
            )
        show(paths[0], named[0], named[1] if len(named) > 1 else None, whole=whole)
    else:
        _serve(paths, port)
    return 0


def _runs_and_names(words: list[str]) -> tuple[list[str], list[str]]:
    n = 1
    while n < len(words) and (Path(words[n]).exists() or "/" in words[n]):
        n += 1
    return words[:n], words[n:]


def _serve(paths: Sequence[str], port: int) -> None:
    from medtasks_ext.report.answers.server import HOST, Viewed, ViewServer

    os.environ["HF_HUB_OFFLINE"] = "1"  # who watches a run downloads nothing
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # the run named what lacks data
    viewed = Viewed([Path(name) for name in paths], registry())
    for fault in viewed.report().faults:
        say(str(fault))
    with ViewServer(viewed, port) as server:
        say("open this address, Ctrl-C ends")
        typer.echo(server.url)
        number = server.server_address[1]
        say(f"From another machine: ssh -L {number}:{HOST}:{number} THIS_MACHINE, then the same address")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    say_next(f"medtasks report {' '.join(paths)} -o report")
