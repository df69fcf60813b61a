"""`medtasks lm_eval`."""

from __future__ import annotations

import sys

import typer


def lm_eval(context: typer.Context) -> int:
    """lm-eval's own command, with models that remember: a killed run goes on.

    `--model medtasks-NAME` is lm-eval's model NAME. `run=FOLDER` among its arguments names the folder that
    keeps every answer as soon as it comes. The same command asks only what has no answer yet. Tasks may be
    anybody's.

    Example: medtasks lm_eval --model medtasks-vllm --model_args
    run=answers/mistral,pretrained=mistralai/Mistral-7B-v0.3 --tasks arc_easy --batch_size auto
    """
    from lm_eval.__main__ import cli_evaluate

    from medtasks_ext.run.registered import register

    register()
    sys.argv = ["lm_eval", *context.args]
    cli_evaluate()
    return 0
