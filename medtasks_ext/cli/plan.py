"""`medtasks plan`: what a run will take, before it begins."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from medtasks_ext.cli.arguments import find_config, quiet
from medtasks_ext.cli.progress import duration
from medtasks_ext.cli.tables import console
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.model_size import Size
    from medtasks_ext.runner.plan import OutputRule, TaskPlan
    from medtasks_ext.runner.prompts import ChatTemplate, Counter

DEFAULT = "medtasks_scoreable"
#: Tasks that are listed one by one; more are summed by suite.
_LISTED = 20


@dataclass(frozen=True)
class Options:
    """What the user gave besides the model."""

    tasks: str | None = None
    suite: str | None = None
    open: bool = False
    strategy: str | None = None
    max_gen_toks: int | None = None
    thinking: bool | None = None
    gpus: int | None = None
    gpu_hour_price: float | None = None
    throughput: float | None = None
    as_json: bool = False


@dataclass(frozen=True)
class PlannedModel:
    """A model as a plan knows it.

    Attributes:
        name: on the hub, of the provider, or a path.
        config: `--config` that names it, if one was given.
        content: of that file.
    """

    name: str
    config: str | None
    content: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The file's `model_args`."""
        return self.content.get("model_args") or {}

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's `metadata`."""
        return self.content.get("metadata") or {}

    @property
    def folder(self) -> Path | None:
        """Where it lies, if it is local."""
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    @property
    def provider(self) -> bool:
        """Whether tokens are paid for rather than GPUs."""
        served_here = "serve" in self.metadata or "localhost" in str(self.arguments.get("base_url"))
        return "completions" in str(self.content.get("model")) and not served_here

    @property
    def gpus(self) -> int | None:
        """GPUs that the file asks for."""
        served = re.findall(r"(?:tensor|pipeline)-parallel-size (\d+)", str(self.metadata.get("serve")))
        gpus = self.arguments.get("tensor_parallel_size")
        for n in served:
            gpus = (gpus or 1) * int(n)
        return gpus


def plan_command(model: str, options: Options) -> int:
    """Print a plan; returns the exit code (1 where a task's own data is malformed)."""
    quiet()
    tasks = registry()
    names = _chosen(tasks, options)
    planned = find_model(model)

    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.plan import OutputRule, plan_task

    counted = _Tokenizer.of(planned)
    settings = Settings(
        apply_chat_template=counted.template is not None,
        system_role=counted.takes_system and planned.metadata.get("system_role", True),
    )
    budget = options.max_gen_toks or (planned.content.get("gen_kwargs") or {}).get("max_gen_toks")
    thinks = options.thinking if options.thinking is not None else planned.metadata.get("thinking", False)
    rule = OutputRule(bool(thinks), budget)
    plans, faults = [], {}
    for name in names:
        try:
            plans.append(plan_task(tasks, name, settings, counted.count, counted.template, rule))
        except MedtasksError as error:
            faults[name] = error
    for name, error in faults.items():
        typer.echo(f"✗ {name}: {error}", err=True)
    if not plans:
        raise MedtasksError(f"tasks that cannot be loaded: {len(faults)}", remedy="mend the files named above")
    estimate = _Estimate.of(planned, plans, options, counted.size)
    lines = _explained(planned, plans, rule, settings, counted, estimate)
    if options.as_json:
        typer.echo(json.dumps(_record(planned, plans, estimate, lines), ensure_ascii=False, indent=1))
    else:
        _print(planned, plans, estimate, lines, _command(planned, options, counted))
    return 1 if faults else 0


def _chosen(tasks: Registry, options: Options) -> list[str]:
    """The tasks to plan, each once."""
    given = [flag for flag in ("tasks", "suite", "open") if getattr(options, flag)]
    if len(given) > 1:
        raise MedtasksError(
            "choose the tasks in one way", where=" ".join(f"--{flag}" for flag in given), remedy="keep one"
        )
    if options.strategy is not None and options.strategy not in SUFFIX:
        raise MedtasksError(
            f"unknown strategy {options.strategy!r}",
            where="--strategy",
            remedy=f"use {', '.join(SUFFIX)}",
        )
    names = [name.strip() for name in _selection(options).split(",") if name.strip()]
    suites = sorted({dataset.metadata.benchmark for dataset in tasks.datasets.values()})
    if options.suite is not None and options.suite not in suites:
        raise MedtasksError(
            f"unknown suite {options.suite!r}", where="--suite", remedy=f"use {', '.join(suites)}"
        )
    leaves = dict.fromkeys(leaf for group in tasks.resolve(names).values() for leaf in group)
    if options.strategy is None:
        return list(leaves)
    return list(dict.fromkeys(tasks.tasks[leaf][0].task(options.strategy) for leaf in leaves))


def _selection(options: Options) -> str:
    return options.tasks or options.suite or ("medtasks_open" if options.open else DEFAULT)


def find_model(name: str) -> PlannedModel:
    """A model by the name of a configuration, the path of one, a folder, or its id on the hub.

    Raises:
        MedtasksError: it is none of these.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return PlannedModel(name, None, {})
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None and not path.is_file()
    if on_hub:
        return PlannedModel(name, None, {})
    try:
        file = find_config(name)
    except MedtasksError as error:
        raise MedtasksError(
            "is no folder, no configuration and no ORG/MODEL of the hub", where=name, remedy=error.remedy
        ) from None
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        arguments = content.get("model_args") or {}
        called = arguments.get("pretrained") or arguments["model"]
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError):
        raise MedtasksError(
            "is no configuration that names a model", where=file, remedy="see model_configs/README.md"
        ) from None
    return PlannedModel(str(called), name, content)


# ---------------------------------------------------------------------- tokenizer and size


@dataclass(frozen=True)
class _Tokenizer:
    """How tokens are counted, and what else the model's files say.

    Attributes:
        count: texts -> tokens.
        template: the chat template; None where none is applied or known.
        why_not: why the model's own tokenizer is not used; empty where it is.
        takes_system: whether the template shows a system turn.
        size: parameters, if known.
    """

    count: Counter
    template: ChatTemplate | None
    why_not: str
    takes_system: bool
    size: Size | None

    @classmethod
    def of(cls, model: PlannedModel) -> _Tokenizer:
        from medtasks_ext.runner.model_size import size_of
        from medtasks_ext.runner.plan import count_by_script
        from medtasks_ext.runner.prompts import counter_of, takes_system_turn

        if model.provider:
            why = "a provider's tokenizer is not read here"
            return cls(count_by_script, None, why, True, None)
        counted = None if model.folder else _hub_parameters(model.name)
        size = size_of(model.folder.resolve().name if model.folder else model.name, model.folder, counted)
        tokenizer, why = _load_tokenizer(model)
        count = counter_of(tokenizer)
        if count is None:
            return cls(count_by_script, None, why, True, size)
        template = _template(model, tokenizer)
        return cls(count, template, "", template is None or takes_system_turn(template), size)


def _hub_parameters(name: str) -> int | None:
    """Parameters as the hub counts them; None where it cannot be asked.

    Raises:
        MedtasksError: the hub knows no such model.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        found = HfApi().model_info(name, timeout=10, expand=["safetensors"]).safetensors
        return found.total if found else None
    except GatedRepoError:
        return None
    except RepositoryNotFoundError:
        raise MedtasksError(
            "the hub has no such model, or it is private",
            where=name,
            remedy="correct the name, run `hf auth login`, or name a folder or a file of model_configs",
        ) from None
    except Exception:  # no connection, offline by choice, an answer that cannot be read
        return None


def _load_tokenizer(model: PlannedModel) -> tuple[Any, str]:
    """The tokenizer, or None and why."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None, "transformers is not installed (pip install 'medtasks[hf]')"
    trusted = bool(model.arguments.get("trust_remote_code", False))
    try:
        return AutoTokenizer.from_pretrained(model.name, trust_remote_code=trusted), ""
    except Exception as error:  # each tokenizer fails in its own way
        if model.folder:
            raise MedtasksError(
                f"holds no tokenizer that can be loaded ({str(error).splitlines()[0]})",
                where=model.name,
                remedy="put the tokenizer's files beside the weights (tokenizer.json, tokenizer_config.json)",
            ) from None
        return None, "it is not in the local cache, and the hub cannot be reached or refuses it"


def _template(model: PlannedModel, tokenizer: Any) -> ChatTemplate | None:
    """The chat template as a run would apply it."""
    if not getattr(tokenizer, "chat_template", None) or not model.content.get("apply_chat_template", True):
        return None
    switches = dict(model.arguments.get("chat_template_args") or {})
    if "enable_thinking" in model.arguments:
        switches["enable_thinking"] = model.arguments["enable_thinking"]

    def apply(turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
            **switches,
        )

    return apply


# ---------------------------------------------------------------------- hours and money


@dataclass(frozen=True)
class _Estimate:
    """What a plan comes to; None where it is not known.

    Attributes:
        gpus: that work together.
        gpu_hours: of all of them.
        hours: from beginning to end.
        cost: US dollars, of the GPUs or of the provider's tokens.
        most_cost: of a provider, if every answer filled its budget.
        explained: how these came about.
    """

    gpus: int | None
    gpu_hours: float | None
    hours: float | None
    cost: float | None
    most_cost: float | None
    explained: list[str]

    @classmethod
    def of(
        cls, model: PlannedModel, plans: Sequence[TaskPlan], options: Options, size: Size | None
    ) -> _Estimate:
        prompt, output, most = (
            sum(getattr(plan, name) for plan in plans)
            for name in ("prompt_tokens", "output_tokens", "most_output_tokens")
        )
        hours = (prompt + output) / options.throughput / 3600 if options.throughput else None
        if model.provider:
            return cls._of_tokens(model, prompt, output, most, hours)
        return cls._of_gpus(model, prompt, output, hours, options, size)

    @classmethod
    def _of_tokens(
        cls, model: PlannedModel, prompt: int, output: int, most: int, hours: float | None
    ) -> _Estimate:
        price = model.metadata.get("price")
        if not price:
            why = "cost: no price is known; put metadata.price into a copy of the file"
            return cls(None, None, hours, None, None, [why])
        cost, highest = (
            (prompt * price["input"] + n * price["output"]) / 1e6 for n in (output, most)
        )
        how = (
            f"cost: {price['input']:g} USD per million prompt tokens, {price['output']:g} per million output "
            f"tokens ({model.config}); at most {highest:,.2f} USD, if every answer filled its budget"
        )
        return cls(None, None, hours, cost, highest, [how])

    @classmethod
    def _of_gpus(
        cls,
        model: PlannedModel,
        prompt: int,
        output: int,
        hours: float | None,
        options: Options,
        size: Size | None,
    ) -> _Estimate:
        from medtasks_ext.runner.plan import gpu_hours, gpus_for

        gpus = options.gpus or model.gpus or (gpus_for(size) if size else 1)
        if hours is not None:
            total = hours * gpus
            how = (
                f"GPU hours: prompt and output tokens over {options.throughput:,.0f} tokens per second of "
                f"{_n_gpus(gpus)}, as given"
            )
        elif size is not None:
            total = gpu_hours(size, prompt, output)
            hours, how = total / gpus, _gpu_rule(size)
        else:
            how = "GPU hours: the size of the model is not known; give --throughput, tokens per second"
            return cls(gpus, None, None, None, None, [how])
        price = options.gpu_hour_price
        return cls(gpus, total, hours, None if price is None else total * price, None, [how])


def _gpu_rule(size: Size) -> str:
    from medtasks_ext.runner.plan import OUTPUT_SHARE, PEAK, PROMPT_SHARE

    active = "" if size.active == size.total else f", {size.active / 1e9:,.3g} billion active"
    return (
        f"GPU hours: {size.total / 1e9:,.3g} billion parameters{active} ({size.source}), 2 operations for each "
        f"active one and token, on an H100 ({PEAK / 1e12:.0f} TFLOPS in BF16, its data sheet) of which full "
        f"batches are assumed to reach {PROMPT_SHARE:.0%} on prompts and {OUTPUT_SHARE:.0%} on output. The "
        "shares are assumptions, not measurements: expect a factor of two or three either way, more for mixtures "
        "of experts, and loading to come on top. Measure tokens per second (vllm bench throughput) and give "
        "--throughput"
    )


def _n_gpus(gpus: int) -> str:
    return "1 GPU" if gpus == 1 else f"{gpus} GPUs"


# ---------------------------------------------------------------------- in words


def _explained(
    model: PlannedModel,
    plans: Sequence[TaskPlan],
    rule: OutputRule,
    settings: Settings,
    counted: _Tokenizer,
    estimate: _Estimate,
) -> list[str]:
    """The rules that the figures follow, those that matter here."""
    from medtasks_ext.runner.plan import CHARACTERS_PER_TOKEN, DRAWN, FREE_TEXT, STEP_BY_STEP, TRACE

    template = "chat template applied" if settings.apply_chat_template else "no chat template applied"
    if counted.why_not:
        rates = ", ".join(f"{rate:g} in {script}" for script, rate in CHARACTERS_PER_TOKEN.items())
        tokens = (
            f"tokens: by characters per token ({rates}), since the model's tokenizer is not at hand: "
            f"{counted.why_not}. Other tokenizers differ by a fifth and more"
        )
    else:
        tokens = f"tokens: counted with the model's tokenizer, {template}"
    lines = [f"{tokens}; on up to {DRAWN} documents of each task, scaled"]
    if absent := [plan for plan in plans if not plan.at_hand]:
        lines.append(
            f"~: rows of {len(absent)} of {len(plans)} tasks are not on this machine. Their documents are the "
            "suite's number, their texts those of the bundled sample rows, which real texts often exceed; "
            "`medtasks run` fetches what is open"
        )
    cot = any(plan.strategy == "cot" for plan in plans)
    before = f"{TRACE:,} of reasoning" if rule.reasons else f"{STEP_BY_STEP} under cot" if cot else ""
    budget = max(plan.most_output_tokens // plan.documents for plan in plans)
    lines.append(
        f"output: the gold answer's tokens, {FREE_TEXT} for free text without one"
        + (f", and before them {before}" if before else "")
        + f"; at most {budget:,} an answer, {_tokens(sum(plan.most_output_tokens for plan in plans))} if all "
        "filled it"
    )
    return [*lines, *estimate.explained]


def _tokens(n: float) -> str:
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if n >= size:
            return f"{n / size:,.3g} {unit}"
    return f"{n:,.0f}"


def _print(
    model: PlannedModel, plans: Sequence[TaskPlan], estimate: _Estimate, lines: Iterable[str], command: str
) -> None:
    sample = any(plan.sample for plan in plans)
    if sample:
        console().print("SAMPLE DATA: synthetic rows, not a benchmark", style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{model.name}: an estimate", title_justify="left")
    one_by_one = len(plans) <= _LISTED
    table.add_column("task" if one_by_one else "suite, strategy", overflow="fold")
    for name in ("tasks", "documents", "prompt tokens", "output tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    key = (lambda plan: plan.task) if one_by_one else (lambda plan: f"{plan.suite}, {plan.strategy}")
    for name, rows in groupby(sorted(plans, key=key), key=key):
        table.add_row(name, *_row(list(rows)))
    table.add_section()
    table.add_row("all", *_row(plans), style="bold")
    console().print(table, markup=False)
    console().print(_come_to(estimate), style="bold", markup=False)
    for line in lines:
        console().print(f"- {line}", markup=False)
    console().print(f"\nto run it: {command}", markup=False, soft_wrap=True)


def _row(plans: Sequence[TaskPlan]) -> list[str]:
    mark = "" if all(plan.at_hand for plan in plans) else "~"
    documents, prompt, output = (
        sum(getattr(plan, name) for plan in plans) for name in ("documents", "prompt_tokens", "output_tokens")
    )
    return [f"{len(plans)}", f"{mark}{documents:,}", f"{mark}{_tokens(prompt)}", f"{mark}{_tokens(output)}"]


def _come_to(estimate: _Estimate) -> str:
    parts = []
    if estimate.gpu_hours is not None and estimate.gpus is not None:
        digits = ".2g" if estimate.gpu_hours < 100 else ",.0f"
        parts.append(f"about {estimate.gpu_hours:{digits}} GPU hours")
    if estimate.hours is not None:
        on = f" on {_n_gpus(estimate.gpus)}" if estimate.gpus else ""
        parts.append(f"{duration(estimate.hours * 3600)}{on}")
    parts.append("cost not known" if estimate.cost is None else f"about {estimate.cost:,.2f} USD")
    return ", ".join(parts)


def _command(model: PlannedModel, options: Options, counted: _Tokenizer) -> str:
    names = _selection(options)
    suffix = SUFFIX[options.strategy] if options.strategy and not options.tasks else ""
    tasks = f"--tasks {names}{suffix}"
    if model.config:
        return f"medtasks run {tasks} --config {model.config}"
    chat = " [--apply_chat_template]" if counted.why_not else " --apply_chat_template" if counted.template else ""
    return f"medtasks run {tasks} --model vllm --model_args pretrained={model.name}{chat}"


def _record(
    model: PlannedModel, plans: Sequence[TaskPlan], estimate: _Estimate, lines: list[str]
) -> dict[str, Any]:
    totals = ("documents", "prompt_tokens", "output_tokens", "most_output_tokens")
    figures = {key: value for key, value in asdict(estimate).items() if key != "explained"}
    return {
        "model": model.name,
        "config": model.config,
        "estimate": True,
        "total": {"tasks": len(plans), **{key: sum(getattr(plan, key) for plan in plans) for key in totals}},
        **figures,
        "rules": lines,
        "tasks": [asdict(plan) for plan in plans],
    }
