"""`medtasks batch`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.arguments import hide_bars, lm_eval_config, own_flags, quiet
from medtasks_ext.cli.model import create_model, output_folder
from medtasks_ext.cli.run import (
    ANSWERS,
    REFUSED,
    build_request,
    check_conversations,
    finish,
    fitted,
    open_run,
    say_damaged,
)
from medtasks_ext.cli.words import counted, say
from medtasks_ext.egress import addresses
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

_DESCRIPTION = """Write the requests of a run that have no answer yet to a file in OpenAI's batch format,
which `vllm run-batch`, Ray Data and most providers take; `medtasks batch in` takes the results back. Takes
the flags and --config files of `medtasks run`. No server is asked, so no key is needed. Besides lm-eval's
flags:

  -o FILE             requests.jsonl by default; FILE-2 and on hold what is over 50,000 requests or 200 MB
  --strict            stop if the data of any task is missing
  --data ORIGIN, --drop-faulty  as for `medtasks run`
  --allow-host HOST   write gated or private text for a provider at this host, too
"""
_EXAMPLE = "--tasks bridge_zh --model openai-chat-completions --model_args model=NAME --apply_chat_template"


def out(context: typer.Context) -> int:
    """Write a run's requests to a file for a batch interface.

    Example: medtasks batch out --tasks bridge_zh --model openai-chat-completions --model_args model=NAME
    --apply_chat_template -o requests.jsonl

    Exit code 1: requests cannot be put, or data is missing.
    """
    quiet()
    own_parser = own_flags()
    own_parser.add_argument("--prompts")
    own_parser.add_argument("--drop-faulty", action="store_true")
    own_parser.add_argument("-o", default="requests.jsonl")
    own_parser.set_defaults(ask=ANSWERS)  # files of a batch interface hold texts to answer
    own, rest = own_parser.parse_known_args(context.args)
    config = lm_eval_config(rest, "batch out", _DESCRIPTION, _EXAMPLE, REFUSED, in_files=True)

    from medtasks_ext.run.outcomes import working_in
    from medtasks_ext.runner.batch import interface_of, write_requests
    from medtasks_ext.runner.requests import text_of
    from medtasks_ext.runner.run import Run

    interface_of(config.model)
    if not (config.model_args.get("model") or config.model_args.get("pretrained")):
        raise MedtasksError(
            "no model is named, and every request names it", where="--model_args", remedy="add model=NAME"
        )
    if (file := Path(own.o)).exists():
        raise MedtasksError("is there already", where=file, remedy="name another file: -o FILE")
    wanted = build_request(own, config)
    check_conversations(config, wanted.settings)
    run, files = Run(output_folder(config), wanted.registry), dict[Path, int]()
    with working_in(run.folder, "medtasks batch out", private=wanted.private) as run.answers:
        if waiting := open_run(run, wanted, config):
            model = create_model(config, asked=False).lm
            waiting, settings = fitted(run, model, waiting, wanted)
            for server in addresses(config.model_args.get("base_url") or getattr(model, "base_url", None))[
                :1
            ]:
                wanted.egress.check(server, [text_of(task) for task in waiting.values()])
            files, tally = write_requests(run, model, waiting, settings, file)
            for (_, reason), n in tally.reasons.items():
                say(f"✗ {counted(n, 'request')} cannot be put: {reason}")
        code = int(bool(wanted.missing or (waiting and tally.reasons)))
        if not files:
            say("nothing is left to ask")
            return finish(run, len(wanted.missing)) or code
    typer.echo("\n".join(f"{path}: {counted(n, 'request')} to {model.model}" for path, n in files.items()))
    typer.echo(f"next: medtasks batch in {shlex.quote(str(run.folder))} RESULTS.jsonl")
    return code


def into(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of the run.")],
    files: Annotated[
        list[str], typer.Argument(metavar="RESULTS...", help="Files of results and errors, in any order.")
    ],
) -> int:
    """Take the results of a batch back, and score what is complete.

    Example: medtasks batch in runs/MODEL results.jsonl errors.jsonl

    Exit code 1: answers are missing, or lines hold no result of this run.
    """
    quiet()
    hide_bars("")
    from medtasks_ext.run.outcomes import working_in
    from medtasks_ext.runner.batch import take_results
    from medtasks_ext.runner.run import Run

    run = Run(Path(folder), registry())
    run.load()
    with working_in(run.folder, "medtasks batch in") as run.answers:
        say_damaged(run)
        run.note_session({})
        sound = take_results(run, [Path(name) for name in files], say)
        code = finish(run, 0, how="the same `medtasks batch out` command writes them again")
    return code if sound else 1
