"""`medtasks study contamination`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

import typer

from medtasks_ext.cli.arguments import (
    available,
    lm_eval_config,
    own_flags,
    quiet,
    requested_tasks,
    say_faults,
)
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.model import (
    Loaded,
    check_address,
    check_one_process,
    create_model,
    model_name,
    output_folder,
)
from medtasks_ext.cli.run import check_fields
from medtasks_ext.cli.tables import console
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.egress import Egress, hold
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import what_happened
from medtasks_ext.results.prices import price_of
from medtasks_ext.runner.charge import check_limit
from medtasks_ext.runs.lease import Lease
from medtasks_ext.runs.manifest import identity_of
from medtasks_ext.runs.sent import SentLog
from medtasks_lab.cli.jury_study import show_tables
from medtasks_lab.judge.study import study_file

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.results.prices import Price
    from medtasks_lab.studies.contamination.folder import ProbeFolder, Probes

AFTER_INTERRUPT = "goes on"

_DESCRIPTION = """Does a model continue the inputs of a task word for word? BRIDGE's contamination probe: each
test input is cut at tokens 10, 15, 20, 25 and 30; it counts as leaked when at least three times the next
five tokens are predicted exactly. Takes lm-eval's flags that name a model, tasks and an output folder. The
same command continues an interrupted probe. Besides:

  --strict            stop if the data of any task is missing
  --data ORIGIN       read data from: local, hub, release or sample (synthetic rows, to try the command)
  --allow-host HOST   send text that is gated or private to this host, too; repeatable
  --max-cost USD      stop before all calls on the folder have cost more; needs the model's price
  --table DIR …       print finished probes side by side, without a model

Needs a model that continues plain text and whose tokenizer is known: hf, vllm, local-completions.
Without --output_path the results go to runs/MODEL.
"""
_EXAMPLE = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
#: lm-eval flags that would change what is asked, or what is kept.
_REFUSED = {
    "apply_chat_template": "the model continues plain text",
    "system_instruction": "the model sees the input alone",
    "fewshot_as_multiturn": "the model sees the input alone",
    "num_fewshot": "the model sees the input alone",
    "gen_kwargs": "decoding is greedy, and as long as the rule says",
    "samples": "use --limit",
    "seed": "nothing is drawn",
    "use_cache": "responses are always stored and reused",
    "cache_requests": "responses are always stored and reused",
    "log_samples": "texts are kept out of the results",
    "check_integrity": "use `medtasks dev validate`",
    "write_out": "texts are kept out of the results",
    "predict_only": "nothing is scored",
    "wandb_args": "log contamination.json afterwards",
    "trackio_args": "log contamination.json afterwards",
}


def contamination(context: typer.Context) -> int:
    """Probe whether a model knows test inputs by heart.

    Resumable.

    Example: medtasks study contamination --tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL

    Exit code 1: a task failed, or its data is missing.
    """
    quiet()
    own_parser = own_flags(asks=True)
    own_parser.add_argument("--table", nargs="+", type=Path)
    own, rest = own_parser.parse_known_args(context.args)
    if own.table:
        return _compare(own.table, [*rest, *(["--data"] if own.data else [])])
    return _probe(
        own, lm_eval_config(rest, "study contamination", _DESCRIPTION, _EXAMPLE, _REFUSED, keys=own.allow_key)
    )


def _probe(own: argparse.Namespace, config: EvaluatorConfig) -> int:
    price = price_of(config.metadata, "--config")
    check_one_process()
    check_limit(own.max_cost, price)
    check_fields(own, config)
    tasks, resolved = requested_tasks(config)
    _refuse_chat(config)

    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.requests import dataset_text
    from medtasks_lab.studies.contamination.ask import inputs_of
    from medtasks_lab.studies.contamination.folder import ProbeFolder

    # the strategies of a dataset share its inputs
    names = list(dict.fromkeys(tasks.tasks[leaf][0].id for leaves in resolved.values() for leaf in leaves))
    availability = available(tasks, names, Settings(data=forced_origin(own.data)), strict=own.strict)
    documents, faults = inputs_of(
        [tasks.datasets[name] for name in availability.present], own.data, config.limit
    )
    say_faults(faults, stop=own.strict or not documents)
    probe = ProbeFolder(output_folder(config))
    given = (dataset_text(tasks.datasets[name], items[0].loaded) for name, items in documents.items())
    private = not all(item.is_open for item in given)
    with Lease(probe.folder, "medtasks study contamination", private=private):
        egress = Egress.of(own.allow_host).recording(SentLog(probe.folder).add)
        asking = _Asking(config, egress, price, own.max_cost)
        return _probe_in(probe, tasks, documents, asking, n_failed=len(faults) + len(availability.missing))


class _Asking(NamedTuple):
    """How the model is asked."""

    config: EvaluatorConfig
    egress: Egress
    price: Price | None
    limit: float | None  # US dollars of all calls on the folder


def _probe_in(
    probe: ProbeFolder,
    tasks: Registry,
    documents: dict[str, list[Document]],
    asking: _Asking,
    *,
    n_failed: int,
) -> int:
    from medtasks_lab.studies.contamination.folder import Probes

    config = asking.config
    probe.open(model_name(config), identity_of(config.model, config.model_args, {}))
    waiting = {
        name: items
        for name, items in documents.items()
        if not probe.is_current(name, items[0].loaded, len(items))
    }
    if len(waiting) < len(documents):
        say(f"{len(documents) - len(waiting)} of {len(documents)} tasks are done already in {probe.folder}")
    failed = _ask_all(probe, tasks, waiting, asking) if waiting else {}
    done = [name for name in documents if name in probe.tasks and name not in failed]
    _print(Probes.of(probe, done))
    for name, error in failed.items():
        say(f"✗ {name}: {error}")
    say_sent(probe.folder)
    if done:
        say(f"results: {probe.file} and {probe.folder / 'contamination.csv'}")
        say_next(f"medtasks report RUN --by {probe.folder}")
    return 1 if failed or n_failed else 0


def _refuse_chat(config: EvaluatorConfig) -> None:
    address = str(config.model_args.get("base_url") or "")
    if "chat" in config.model or address.rstrip("/").endswith("/chat/completions"):
        raise MedtasksError(
            "a chat endpoint answers a text and does not continue it",
            where=f"--model {config.model}",
            remedy="use hf, vllm, or local-completions: base_url=…/v1/completions,tokenizer=ORG/MODEL",
        )


def _model(config: EvaluatorConfig) -> tuple[Loaded, Config]:
    """The model, and generation settings that make it greedy."""
    is_api = "completions" in config.model
    if is_api:
        # the server splits the text as its model needs it, beginning-of-text token included
        config.model_args.setdefault("tokenized_requests", False)
    try:
        loaded = create_model(config)
    except MedtasksError as error:
        if is_api and "tokenizer" not in config.model_args and error.where == "--model_args":
            raise MedtasksError(
                error.what, where=error.where, remedy="name the tokenizer: tokenizer=ORG/MODEL"
            ) from None
        raise
    # hf would take a repetition penalty from the model's own defaults; servers need not know the name
    return loaded, {
        "do_sample": False,
        "temperature": 0.0,
        **({} if is_api else {"repetition_penalty": 1.0}),
    }


def _ask_all(
    probe: ProbeFolder,
    tasks: Registry,
    waiting: dict[str, list[Document]],
    asking: _Asking,
) -> dict[str, str]:
    """Probe the tasks that are not done; returns those that failed, with the reason."""
    from medtasks_ext.cli.progress import Progress, say_unpriced
    from medtasks_ext.engines.budget import budget_of
    from medtasks_ext.engines.stream import Stream
    from medtasks_ext.runner.charge import Charge, paid
    from medtasks_ext.runner.requests import dataset_text
    from medtasks_ext.runner.tally import Tally
    from medtasks_ext.runner.trouble import stopped
    from medtasks_lab.studies.contamination.ask import NoAnswerError, ProbedAnswers, ProbePlanner
    from medtasks_lab.studies.contamination.probe import CUTS, FILE, ModelTokenizer

    texts = {name: dataset_text(tasks.datasets[name], items[0].loaded) for name, items in waiting.items()}
    check_address(asking.config, asking.egress, texts.values())
    loaded, fixed = _model(asking.config)
    tokenizer, engine = ModelTokenizer(loaded.lm), loaded.engine(say=say, egress=asking.egress)
    engine.check(texts.values())
    if tokenizer.is_remote:  # the server is given the texts before they are cut
        place = asking.egress.place(engine.address)
        hold(place, asking.egress)
        for item in texts.values():
            asking.egress.record(place, item)
    charge = Charge(asking.price) if asking.price and (asking.limit is not None or not engine.local) else None
    budget = budget_of(asking.limit, *paid(asking.limit, charge, probe.responses, tasks.datasets))
    say_unpriced(budget)
    probe.save()
    failed, ends = dict[str, str](), set[str]()
    read, write = map(resolve_name, (study_file(FILE).reader, study_file(FILE).writer))
    tally = Tally(
        {name: len(items) * len(CUTS) for name, items in waiting.items()}, budget=budget if charge else None
    )

    def ended(name: str, result: Callable[[], ProbedAnswers]) -> None:
        ends.add(name)
        try:
            asked = result()
        except Exception as error:  # any fault of one task must not cost the others
            reason = str(error) if isinstance(error, NoAnswerError) else what_happened(error)
            failed[name] = reason.splitlines()[0]
            progress.say_task(name, "failed")
            return
        probe.keep(tasks.datasets[name], waiting[name][0].loaded, read(asked.verdicts), asked.n_cuts_moved)
        row = probe.tasks[name]
        write(probe)
        progress.say_task(name, f"{row['n_leaked']:,} of {row['n_probed']:,} leaked")

    with Progress(tally) as progress:
        planner = ProbePlanner(
            probe.responses,
            {name: (items, texts[name]) for name, items in waiting.items()},
            tokenizer,
            identity=probe.identity.digest,
            fixed=fixed,
            watcher=progress,
            ended=ended,
            charge=charge,
        )
        try:
            Stream([planner], {"": engine}, budget=budget, say=progress.say).go()
        finally:
            progress.say_money(budget)
    if planner.trouble.cause is not None:
        raise stopped(planner.trouble.cause)
    return failed | {name: "not asked to the end" for name in waiting if name not in ends}


_SAMPLE = "SAMPLE DATA: synthetic rows. This says nothing about the leakage of a benchmark."


def _compare(folders: list[Path], rest: list[str]) -> int:
    from medtasks_lab.studies.contamination.folder import Probes, read_probes, unlike_rows

    if rest:
        raise MedtasksError(
            f"--table only takes folders, not {rest[0]}",
            where="medtasks study contamination",
            remedy="leave it out",
        )
    probes = read_probes(folders)
    _print(Probes.compared(probes))
    if unlike := unlike_rows(probes):
        console().print(f"not comparable, since models saw different rows: {', '.join(unlike)}")
    say_next(f"medtasks report RUN --by {probes[0].folder}")
    return 0


def _print(probes: Probes) -> None:
    from medtasks_lab.studies.contamination.probe import FILE

    if any(row["data"] == "sample" for row in (*probes.tasks, *probes.models)):
        console().print(_SAMPLE, style="bold")
    show_tables(study_file(FILE).tables, probes)
