"""`medtasks view`: every answer of any runs, in a browser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.show import show
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.report.view.viewer import Viewer


def view(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... [TASK [DOCUMENT]]",
            help="Folders of runs, or of lm_eval --output_path --log_samples. With a task, and a document's "
            "key or place from 0: in the terminal.",
        ),
    ],
    out: Annotated[str | None, out_option("Write the pages to this folder; start no server.")] = None,
    include_text: Annotated[
        bool,
        typer.Option("--include-text", help="With -o: gated and private data, too, in a folder of your own."),
    ] = False,
    documents: Annotated[
        int | None, typer.Option("--documents", min=1, help="With -o: documents of a dataset at most (500).")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any.")] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="With a document: print long texts whole.")] = False,
) -> int:
    """Show every answer, and why it is not right, in a browser.

    A page on this machine alone, with filters, search, two runs side by side, clusters of errors and
    confusion matrices. It looks again while a run goes on. With -o the same as files, of open data.

    With a task, in the terminal: its errors, the score if each were mended, and the documents of each; with a
    document: prompt, response, readings, score.

    Example: medtasks view runs/A runs/B

    Example: medtasks view runs/MODEL bridge_mednli t3
    """
    from medtasks_ext.report.view.viewer import Viewer

    paths, named = _runs_and_names(paths)
    if named:
        if out or include_text or documents or len(paths) > 1 or len(named) > 2:
            raise MedtasksError(
                "one document of one run is shown at a time, in the terminal",
                where=" ".join([*paths, *named]),
                remedy="write: medtasks view RUN TASK DOCUMENT; and is each folder of a run there?",
            )
        show(paths[0], named[0], named[1] if len(named) > 1 else None, whole=whole)
        return 0
    for name, given in (("--include-text", include_text), ("--documents", documents)):
        if given and not out:
            raise MedtasksError(
                "is for files alone: the page on this machine shows everything",
                where=name,
                remedy="add -o FOLDER",
            )
    viewer = Viewer([Path(name) for name in paths], registry(), open_only=bool(out) and not include_text)
    for fault in viewer.faults:
        say(str(fault))
    if out:
        return _write(viewer, Path(out), documents, include_text)
    return _serve(viewer, paths, port)


def _runs_and_names(words: list[str]) -> tuple[list[str], list[str]]:
    n = 1
    while n < len(words) and (Path(words[n]).exists() or "/" in words[n]):
        n += 1
    return words[:n], words[n:]


def _write(viewer: Viewer, folder: Path, documents: int | None, include_text: bool) -> int:
    from medtasks_ext.report.view.server import DOCUMENTS, write_bundle

    if viewer.withheld:
        say(f"left out, since their data are not open: {some(viewer.withheld)}; --include-text shows them")
    if not viewer.datasets:
        raise MedtasksError(
            "no answers to open data",
            where=folder,
            remedy="allow others: --include-text, for a folder of your own",
        )
    if include_text:
        say("--include-text: the files hold text of gated and private data, as confidential as they are")
    files = write_bundle(folder, viewer, documents=documents or DOCUMENTS, private=include_text)
    say(f"{counted(len(viewer.datasets), 'dataset')}, {counted(len(files), 'file')}")
    typer.echo(str(files[0]))
    say_next("open this file in a browser")
    return 0


def _serve(viewer: Viewer, paths: Sequence[str], port: int) -> int:
    from medtasks_ext.report.view.server import HOST, ViewServer

    os.environ["HF_HUB_OFFLINE"] = "1"  # who watches a run downloads nothing
    with ViewServer(viewer, port) as server:
        datasets, runs = counted(len(viewer.datasets), "dataset"), counted(len(viewer.runs), "run")
        say(f"{datasets} of {runs}; open this address, Ctrl-C ends")
        typer.echo(server.url)
        number = server.server_address[1]
        say(f"From another machine: ssh -L {number}:{HOST}:{number} THIS_MACHINE, then the same address")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    say_next(f"medtasks report {' '.join(paths)} -o report")
    return 0
