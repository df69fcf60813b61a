"""`medtasks batch out`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.arguments import lm_eval_config, own_flags, quiet
from medtasks_ext.cli.batch import ForModel, say_written
from medtasks_ext.cli.model import create_model, output_folder
from medtasks_ext.cli.run import (
    ANSWERS,
    REFUSED,
    RunRequest,
    build_request,
    check_conversations,
    finish,
    fitted,
    open_run,
)
from medtasks_ext.cli.words import counted, say
from medtasks_ext.egress import addresses, is_loopback
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.prices import price_of
from medtasks_ext.runs.manifest import TaskState

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.models.api_models import TemplateAPI

    from medtasks_ext.engines.batch import WrittenCount
    from medtasks_ext.results.prices import Price
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runner.tally import Tally

_DESCRIPTION = """Write the requests of a run to files for a batch interface: OpenAI's and others' at half
price, `vllm run-batch`, Ray Data. Takes the flags and --config files of `medtasks run`, opens or continues
the same folder, and writes what has no answer there yet; `medtasks batch in` takes the results back. No
server is asked, so that neither its address nor a key is needed. Besides lm-eval's flags:

  -o FILE             requests.jsonl by default; above 50,000 requests or 200 MB several files,
                      FILE-00001-of-00003.jsonl and so on; those of an earlier call are replaced
  --strict            stop if the data of any task is missing
  --data ORIGIN, --drop-faulty  as for `medtasks run`
  --allow-host HOST   write gated or private text for a provider at this host, too

For models behind an interface: local-chat-completions, local-completions, openai-chat-completions,
openai-completions, anthropic-chat (Anthropic's format). Without --output_path the run is runs/MODEL.
"""
_EXAMPLE = "--tasks bridge_zh --model openai-chat-completions --model_args model=NAME --apply_chat_template"
#: Bytes of a prompt that count as one token in an estimate.
BYTES_PER_TOKEN = 4


def requests(context: typer.Context) -> int:
    """Write a run's requests to files for a batch interface.

    Example: medtasks batch out --tasks bridge_zh --model openai-chat-completions --model_args model=NAME
    --apply_chat_template -o requests.jsonl

    Exit code 1: requests cannot be put, or data is missing.
    """
    quiet()
    own, config = _parse(context.args)

    from medtasks_ext.engines.batch import BatchFiles
    from medtasks_ext.runner.batch import interface_of, write_requests
    from medtasks_ext.runner.requests import text_of
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.manifest import Batch
    from medtasks_ext.runs.seal import RunLease

    interface = interface_of(config.model)
    _check_model(config)
    wanted = build_request(own, config)
    check_conversations(config, wanted.settings)
    run = Run(output_folder(config), wanted.registry)
    with RunLease(run.folder, "medtasks batch out", private=wanted.private):
        waiting = open_run(run, wanted, config)
        if not waiting:
            return _nothing_left(run, wanted)
        model = create_model(config, asked=False).lm
        waiting, settings = fitted(run, model, waiting, wanted)
        if server := _server(config, model):
            wanted.egress.check(server, [text_of(task) for task in waiting.values()])
        with BatchFiles(Path(own.o)) as files:
            amount, tally = write_requests(run, model, waiting, settings, files)
            if amount.requests:  # noted before the files are there, so that the folder keeps its settings
                run.manifest.batches.append(Batch(file=own.o, requests=amount.requests))
                run.save()
        code = _say_missing(run, wanted, tally)
        if not files.written:
            return _nothing_left(run, wanted) or code
    what = (counted(amount.requests, "request"), counted(len(amount.tasks), "task"))
    price = price_of(config.metadata, "--config")
    written = ForModel(
        f"{' of '.join(what)} in {counted(len(files.written), 'file')}",
        files.written,
        interface.url,
        str(model.model),
        _server(config, model),
        cost=_price_words(amount, price) if price else "",
    )
    say_written([written], f"medtasks batch in {shlex.quote(str(run.folder))}")
    return code


def _nothing_left(run: Run, wanted: RunRequest) -> int:
    say("nothing is left to ask")
    return finish(run, len(wanted.missing))


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, EvaluatorConfig]:
    own_parser = own_flags()
    own_parser.add_argument("--prompts")
    own_parser.add_argument("--drop-faulty", action="store_true")
    own_parser.add_argument("-o", default="requests.jsonl")
    own_parser.set_defaults(ask=ANSWERS)  # files of a batch interface hold texts to answer
    own, rest = own_parser.parse_known_args(arguments)
    return own, lm_eval_config(rest, "batch out", _DESCRIPTION, _EXAMPLE, REFUSED, in_files=True)


def _check_model(config: EvaluatorConfig) -> None:
    if not (config.model_args.get("model") or config.model_args.get("pretrained")):
        raise MedtasksError(
            "no model is named, and every request names it",
            where="--model_args",
            remedy="add model=NAME, as the provider or `vllm run-batch --model` calls it",
        )


def _price_words(amount: WrittenCount, price: Price) -> str:
    """What the requests cost, four bytes of a prompt for one token."""
    tokens = amount.prompt_bytes / BYTES_PER_TOKEN
    prompts, most = price.of(tokens, 0), price.of(tokens, amount.most_tokens)
    halves = (price.in_batch(prompts), price.in_batch(most))
    batch = f"; as a batch {halves[0]:,.2f} and {halves[1]:,.2f} USD" if price.batch else ""
    return f"about {prompts:,.2f} USD for the prompts, at most {most:,.2f} USD with the answers{batch}"


def _server(config: EvaluatorConfig, model: TemplateAPI) -> str:
    """Address up to /v1 of the provider whose batch interface takes the files; empty for one's own model."""
    urls = addresses(config.model_args.get("base_url") or getattr(model, "base_url", None))
    root = "".join(urls[:1]).removesuffix("/completions").removesuffix("/chat")
    return "" if not root or is_loopback(root) else root


def _say_missing(run: Run, wanted: RunRequest, tally: Tally) -> int:
    """Name what could not be written; returns the exit code."""
    for (_, reason), n in tally.reasons.items():
        say(f"✗ {counted(n, 'request')} cannot be put: {reason}")
    states = {name: run.state(name) for name in wanted.built}
    failed = {name: entry for name, entry in states.items() if entry.state is TaskState.FAILED}
    for name, entry in failed.items():
        say(f"✗ {name}: {entry.error.splitlines()[0]} (details in {run.manifest_file})")
    return 1 if tally.reasons or failed or wanted.missing else 0
