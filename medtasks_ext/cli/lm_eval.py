"""`medtasks lm_eval`."""

from __future__ import annotations

import sys

import typer

_DESCRIPTION = """usage: medtasks lm_eval --model medtasks-NAME --model_args run=FOLDER,… [options]

Call lm-eval itself, with models that remember every answer. A killed call goes on: each answer is kept
in the folder that run= names, as soon as it comes, and the same command asks only what has no answer
yet. NAME is any model of lm-eval's; medtasks-api takes the interface of a server from its address. A
folder holds the answers of one model. Tasks may be anybody's. Text that is not known to be open goes to
this machine and to MEDTASKS_TRUSTED_HOSTS only.
"""


def lm_eval(context: typer.Context) -> int:
    """Call lm-eval itself, with models that remember every answer.

    Example: medtasks lm_eval --model medtasks-vllm --model_args run=answers/MODEL,pretrained=ORG/MODEL
    --tasks arc_easy --batch_size auto
    """
    if context.args[:1] in ([], ["--help"], ["-h"]):
        typer.echo(_DESCRIPTION, nl=False)
        return 0
    from medtasks_ext.harness import cli_evaluate
    from medtasks_ext.run.lm import register

    register()
    sys.argv = ["lm_eval", *context.args]
    cli_evaluate()
    return 0
