"""`medtasks run` and `medtasks rescore`."""

from __future__ import annotations

import argparse
import logging
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from medtasks_ext.cli.tables import print_rows
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from lm_eval.api.model import LM
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run

_DESCRIPTION = """Run tasks, groups or tags, any mix of names, with lm-eval's own flags and --config files.
The model is loaded once; tasks run one by one; every response is stored as it comes. The same
command continues an interrupted run. Besides lm-eval's flags:

  --strict            stop if the data of any task is missing
  --data ORIGIN       read data from: local, hub or sample (synthetic rows, marked everywhere)

Built-in models: oracle (answers with the gold), random-label, nearest-shot.
Without --output_path the run goes to runs/MODEL.
"""
#: lm-eval flags that have no meaning where every response is stored and tasks run one by one.
_REFUSED = {
    "use_cache": "responses are always stored and reused",
    "cache_requests": "prompts are built once per run",
    "check_integrity": "use `medtasks validate`",
    "write_out": "use the samples files of the run",
    "predict_only": "tasks without gold are predicted and not scored; others can be rescored",
    "wandb_args": "log results.json afterwards",
    "trackio_args": "log results.json afterwards",
}


def run_command(arguments: list[str]) -> int:
    """Run; returns the exit code (0 done, 1 a task failed or was missing)."""
    _quiet()
    own, config = _parse(arguments)
    tasks = registry(Path(config.include_path).resolve() if config.include_path else None)
    requested = [name.strip() for item in _names(config.tasks) for name in item.split(",") if name.strip()]
    if not requested:
        raise MedtasksError("no tasks given", where="--tasks", remedy="`medtasks ls --groups` lists groups")
    resolved = tasks.resolve(requested)
    leaves = list(dict.fromkeys(leaf for names in resolved.values() for leaf in names))

    from medtasks_ext.runner.run import Run, build_tasks, check_data, nothing_to_run

    settings = _settings(own, config)
    availability = check_data(tasks, leaves, settings)
    if availability.missing:
        _say_missing(availability.missing, len(leaves), strict=own.strict)
        if own.strict:
            raise MedtasksError("data is missing and --strict was given", remedy="see the list above")
    if not availability.present:
        raise nothing_to_run(tasks, leaves[0], settings)
    built, faults = build_tasks(tasks, availability.present, settings)
    for name, fault in faults.items():
        typer.echo(f"✗ {name}: {fault}", err=True)
    if faults and (own.strict or not built):
        raise MedtasksError(
            f"tasks that cannot be loaded: {len(faults)}", remedy="mend the files named above"
        )

    run = Run(_folder(config), tasks)
    run.open(_model_identity(config), settings, list(resolved), leaves)
    for name, reason in {
        **availability.missing,
        **{key: str(value) for key, value in faults.items()},
    }.items():
        run.manifest["tasks"][name] = {"state": "missing", "error": reason}
    waiting = {name: task for name, task in built.items() if not run.is_current(name, task)}
    if len(waiting) < len(built):
        typer.echo(
            f"{len(built) - len(waiting)} of {len(built)} tasks are done already in {run.folder}", err=True
        )
    if waiting:
        _execute(run, waiting, settings, config)
    return _finish(run, len(faults) + len(availability.missing))


def rescore_command(folder: str) -> int:
    """Rescore a run; returns the exit code."""
    _quiet()
    from medtasks_ext.runner.run import Run

    run = Run(Path(folder), registry())
    run.load()
    run.rescore(lambda task, what: typer.echo(f"{task}: {what}", err=True))
    return _finish(run, 0)


def _finish(run: Run, n_missing: int) -> int:
    run.write_results()
    results = run.results()
    failed = {name: state for name, state in run.manifest["tasks"].items() if state["state"] == "failed"}
    print_rows(run.rows(results), results)
    for name, state in failed.items():
        typer.echo(f"✗ {name}: {state['error'].splitlines()[0]} (details in {run.manifest_file})", err=True)
    if run.manifest.get("notes"):
        for note in run.manifest["notes"]:
            typer.echo(f"note: {note}", err=True)
    typer.echo(f"results: {run.folder / 'results.json'}", err=True)
    return 1 if failed or n_missing else 0


def _execute(run: Run, waiting: dict[str, Any], settings: Settings, config: EvaluatorConfig) -> None:
    from medtasks_ext.cli.progress import Progress
    from medtasks_ext.runner.run import build_tasks
    from medtasks_ext.runner.store import StoringLM

    model = _create_model(config)
    _check_budget(model, waiting)
    if settings.apply_chat_template and not _takes_system_turn(model):
        note = "the chat template refuses or drops a system turn: instructions go into the first user turn"
        typer.echo(f"note: {note}", err=True)
        run.manifest["notes"] = list(dict.fromkeys([*run.manifest.get("notes", []), note]))
        settings = replace(settings, system_role=False)
        waiting, _ = build_tasks(run.registry, waiting, settings)
    total = sum(_size(task, settings) for task in waiting.values())
    with Progress(len(waiting), total) as progress:
        run.execute(StoringLM(model, progress.advance), waiting, settings, progress.task_finished)


def _size(task: Any, settings: Settings) -> int:
    if settings.samples and task.task_name in settings.samples:
        return len(settings.samples[task.task_name])
    n = len(task.eval_docs)
    if settings.limit is None:
        return n
    return min(n, int(settings.limit) if settings.limit >= 1 else -(-n * settings.limit // 1))  # type: ignore[return-value]


def _quiet() -> None:
    """One progress display instead of one per library."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a failed request is reported with its task


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, EvaluatorConfig]:
    own_parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own_parser.add_argument("--strict", action="store_true")
    own_parser.add_argument("--data")
    own, rest = own_parser.parse_known_args(arguments)

    from lm_eval._cli.run import Run as LmEvalRun
    from lm_eval.config.evaluate_config import EvaluatorConfig

    parser = argparse.ArgumentParser(
        prog="medtasks", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    lm_eval_run = LmEvalRun(parser.add_subparsers())
    lm_eval_run._parser.prog = "medtasks run"
    lm_eval_run._parser.usage = (
        "medtasks run --model MODEL --model_args ARG=VALUE,… --tasks NAME,NAME,… [options]"
    )
    lm_eval_run._parser.description = _DESCRIPTION
    lm_eval_run._parser.epilog = (
        "Example: medtasks run --tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    )
    namespace, unknown = parser.parse_known_args(["run", *_with_config(rest)])
    if unknown:
        raise MedtasksError(
            f"unknown: {' '.join(unknown)}",
            where="medtasks run",
            remedy="`medtasks run --help` lists the flags",
        )
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        config = EvaluatorConfig.from_cli(namespace)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise MedtasksError(
            str(error), where="medtasks run", remedy="`medtasks run --help` lists the flags"
        ) from None
    for name, why in _REFUSED.items():
        if getattr(config, name):
            raise MedtasksError(f"--{name} is not for `medtasks run`: {why}", remedy="leave it out")
    return own, config


def _with_config(arguments: list[str]) -> list[str]:
    """`--config NAME` may name one of the configurations that come with medtasks."""
    arguments = list(arguments)
    if "--config" in arguments[:-1]:
        place = arguments.index("--config") + 1
        arguments[place] = str(find_config(arguments[place]))
    return arguments


def find_config(name: str) -> Path:
    """The file of a configuration given by path or by the name of a bundled one.

    Raises:
        MedtasksError: there is no such file.
    """
    package = Path(__file__).resolve().parents[1]
    folders = (package.parent / "model_configs", package / "model_configs")
    for candidate in (Path(name), *(folder / f"{name}.yaml" for folder in folders)):
        if candidate.is_file():
            return candidate
    bundled = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    raise MedtasksError(
        "no such file or bundled configuration",
        where=f"--config {name}",
        remedy=f"bundled: {', '.join(bundled)}",
    )


def _settings(own: argparse.Namespace, config: EvaluatorConfig) -> Settings:
    from medtasks_ext.data.load import _flag
    from medtasks_ext.data.sources import forced_origin
    from medtasks_ext.runner.evaluate import Settings

    # lm-eval merges model arguments into metadata: only what no model argument says is ours
    ours = {key: value for key, value in config.metadata.items() if key not in config.model_args}
    return Settings(
        num_fewshot=config.num_fewshot,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        system_instruction=config.system_instruction,
        system_role=_flag(ours.get("system_role", True), "system_role"),
        data=forced_origin(own.data or ours.get("data")),
        limit=config.limit,
        samples=config.samples if isinstance(config.samples, dict) else None,
        gen_kwargs=config.gen_kwargs or {},
        seed=config.seed[3] if isinstance(config.seed, list) else None,
    )


def _names(tasks: str | list[str] | None) -> list[str]:
    return [tasks] if isinstance(tasks, str) else list(tasks or [])


def _model_identity(config: EvaluatorConfig) -> dict[str, Any]:
    return {"model": config.model, "model_args": config.model_args}


def _folder(config: EvaluatorConfig) -> Path:
    if config.output_path:
        return Path(config.output_path)
    name = str(config.model_args.get("pretrained") or config.model_args.get("model") or config.model)
    return Path("runs") / "".join(char if char.isalnum() or char in "-._" else "_" for char in name).strip(
        "._"
    )


def _say_missing(missing: dict[str, str], n_all: int, *, strict: bool) -> None:
    lines = list(dict.fromkeys(missing.values()))
    typer.echo(f"no data for {len(missing)} of {n_all} tasks:", err=True)
    for line in lines:
        typer.echo(f"  {line}", err=True)
    root = os.environ.get("MEDTASKS_DATA_DIR")
    typer.echo(
        f"  (folder: {'MEDTASKS_DATA_DIR=' + root if root else 'MEDTASKS_DATA_DIR is not set'})", err=True
    )
    if not strict and len(missing) < n_all:
        typer.echo("going on with the others; --strict stops instead", err=True)


def _create_model(config: EvaluatorConfig) -> LM:
    import lm_eval.models  # noqa: F401  registers lm-eval's own models
    from lm_eval.api.registry import get_model

    import medtasks_ext.models  # noqa: F401  registers the built-in ones

    try:
        kind = get_model(config.model)
    except (KeyError, ValueError) as error:
        raise MedtasksError(
            f"unknown model type {config.model!r}", where="--model", remedy=str(error).strip("'\"")
        ) from None
    except ImportError as error:
        raise MedtasksError(
            f"model type {config.model!r} needs a package that is not installed ({error})",
            where="--model",
            remedy=f"pip install 'medtasks[{'api' if 'completions' in config.model else config.model}]'",
        ) from None
    _check_endpoint(config.model_args.get("base_url"))
    extra = {
        "batch_size": config.batch_size,
        "max_batch_size": config.max_batch_size,
        "device": config.device,
    }
    try:
        return kind.create_from_arg_obj(config.model_args, extra)
    except (ImportError, ModuleNotFoundError) as error:
        raise MedtasksError(
            f"model type {config.model!r} needs a package that is not installed ({error})",
            where="--model",
            remedy=f"pip install 'medtasks[{'api' if 'completions' in config.model else config.model}]'",
        ) from None
    except (OSError, TypeError, ValueError) as error:
        raise MedtasksError(
            f"the model cannot be loaded: {error}",
            where="--model_args",
            remedy="check the name, path and arguments",
        ) from None


def _check_endpoint(url: str | None) -> None:
    """Say at once that no server answers, rather than once per task after all retries."""
    if not url:
        return
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except OSError as error:
        raise MedtasksError(
            f"no server answers at {url} ({error.strerror or error})",
            where="--model_args base_url",
            remedy="start the server, or correct the address; it ends in /v1/chat/completions",
        ) from None


def _takes_system_turn(model: LM) -> bool:
    turns = [{"role": "system", "content": "system probe"}, {"role": "user", "content": "user probe"}]
    try:
        return "system probe" in str(model.apply_chat_template(turns))
    except Exception:  # templates refuse in their own ways
        return False


def _check_budget(model: LM, tasks: dict[str, Any]) -> None:
    """Refuse a token budget that leaves no room for the prompt; vLLM would cut the prompt away."""
    longest = getattr(model, "max_length", None)
    if not isinstance(longest, int):
        return
    budget = max(int(task.config.generation_kwargs.get("max_gen_toks") or 0) for task in tasks.values())
    if budget >= longest:
        raise MedtasksError(
            f"the answer budget of {budget} tokens leaves no room in a context of {longest}",
            where="--gen_kwargs max_gen_toks",
            remedy=f"lower it, for example --gen_kwargs max_gen_toks={longest // 4}, or raise max_model_len",
        )
