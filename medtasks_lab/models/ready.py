"""Ready files of models: written from a repository, and held against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.models import known_models
from medtasks_ext.results.published import reference_folder

if TYPE_CHECKING:
    from medtasks_lab.models.facts import ModelFacts, Said
    from medtasks_lab.models.repository import Repository

#: The longest context that a ready file asks for.
MOST_CONTEXT = 131_072
#: Weights on one GPU of 80 GB.
_MOST_ON_A_GPU = 64
#: Tokens of an answer of a model that thinks; others have the tasks' own, up to this.
_THINKING, _ANSWER, _SHORT = 16_384, 4_000, 16_000
_SIXTEEN_BITS = ("bfloat16", "float16")


def ready_file(repository: Repository, facts: ModelFacts, today: date) -> str:
    """The text of a ready file, in which each value names the file that says it.

    Args:
        today: when the repository was looked at.
    """
    context = min(facts.context.value, MOST_CONTEXT) if facts.context else None
    thinks = thinks_by(facts)
    revision = repository.revision[:12] or "no revision"
    head = [
        f"# {repository.name}, {revision}, seen {today.isoformat()}. The keys: model_configs/README.md.",
        *(f"# {note[0].upper()}{note[1:]}." for note in facts.notes),
    ]
    if facts.stops:
        head.append(f"# It stops at {', '.join(facts.stops.value)} ({facts.stops.source}).")
    if facts.parser:
        serve = f"vllm serve {repository.name} --reasoning-parser {facts.parser.value}"
        head.append(f"# Served with its reasoning apart: {serve} ({facts.parser.source}).")
    if facts.sampling and not thinks:
        values = ", ".join(f"{key} {value}" for key, value in facts.sampling.value.items())
        head.append(f"# Its maker's sampling is not used: {values} ({facts.sampling.source}).")
    lines = [*head, "model: vllm", "model_args:", f"  pretrained: {repository.name}"]
    if repository.revision:
        lines.append(f"  revision: {repository.revision}")
    lines.append(_line("  dtype: auto", facts.weights, of=lambda said: f"{said.value}, "))
    if context:
        lines.append(_line(f"  max_model_len: {context}", facts.context, of=_cut_to(context)))
    lines.append(
        _line(
            f"  tensor_parallel_size: {_gpus(facts)}",
            facts.gigabytes,
            of=lambda said: f"{said.value:.1f} GB, ",
        )
    )
    lines.append(_line(f"apply_chat_template: {str(facts.template is not None).lower()}", facts.template))
    lines += ["batch_size: auto", "gen_kwargs:"]
    if facts.sampling and thinks:
        lines.append("  do_sample: true")
        lines += [_line(f"  {key}: {value}", facts.sampling) for key, value in facts.sampling.value.items()]
    else:
        lines += ["  do_sample: false", "  temperature: 0"]
    if context and (most := _most_tokens(context, thinks)):
        lines.append(f"  max_gen_toks: {most}")
    way = "unknown, see above" if _unknown(facts) else None
    lines += [
        "metadata:",
        f"  thinking: {str(thinks).lower()}" + (f"  # {way}" if way else f"  # {_shown(facts)}"),
    ]
    lines.append(f"  decoding: {'maker' if facts.sampling and thinks else 'greedy'}")
    if facts.system_turn and not facts.system_turn.value:
        lines.append(_line("  system_role: false", facts.system_turn, of=lambda said: "no system turn, "))
    return "\n".join(lines) + "\n"


def thinks_by(facts: ModelFacts) -> bool:
    """Whether the model thinks where lm-eval's vLLM model asks it; False where that is unknown."""
    return bool(facts.switch and facts.switch.value.under_lm_eval)


def _unknown(facts: ModelFacts) -> bool:
    return facts.switch is None or facts.switch.value.under_lm_eval is None


def _shown(facts: ModelFacts) -> str:
    assert facts.switch is not None  # else it is unknown
    switch = facts.switch.value
    if not switch.name:
        return f"{facts.switch.source}: it opens <think>"
    way = "on" if switch.under_lm_eval else "off"
    return f"{facts.switch.source}, rendered both ways: {switch.name} is {way}"


def _line(text: str, said: Said[Any] | None, of: Any = None) -> str:
    return f"{text}  # {of(said) if of else ''}{said.source}" if said else text


def _cut_to(context: int) -> Any:
    return lambda said: "" if said.value == context else f"{said.value}, "


def _gpus(facts: ModelFacts) -> int:
    gpus, size = 1, facts.gigabytes.value if facts.gigabytes else 0
    while size / gpus >= _MOST_ON_A_GPU:
        gpus *= 2
    return gpus


def _most_tokens(context: int, thinks: bool) -> int | None:
    if thinks:
        return min(_THINKING, context // 2)
    return min(_ANSWER, context // 4) if context < _SHORT else None


# ---------------------------------------------------------------------- the registry of models


def registry_row(repository: Repository, facts: ModelFacts) -> str:
    """What the repository says of the model itself, as an entry of the registry of models."""
    lines, seen = [f"{repository.name}:", "  access: open"], repository.revision[:12] or "a local folder"
    if (
        facts.gigabytes
        and not facts.quantised
        and facts.weights
        and facts.weights.value.rpartition(".")[2] in _SIXTEEN_BITS
    ):
        size = float(f"{facts.gigabytes.value / 2:.3g}")
        lines.append(f"  parameters_b: {size:g}  # {facts.gigabytes.source}, {seen}")
    if facts.switch and facts.switch.value.default is not None:
        answer = '"yes"' if facts.switch.value.default else '"no"'
        lines.append(f"  reasoning: {answer}  # {facts.switch.source}, {seen}")
    if facts.licence:
        lines.append(f"  licence: {facts.licence.value}  # {facts.licence.source}, {seen}")
    return "\n".join(lines) + "\n"


def add_to_registry(name: str, row: str) -> Path | None:
    """Put an entry into the registry of models, in the order of names; None where the model is there."""
    if name in known_models():
        return None
    file = reference_folder() / "models.yaml"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    place = next(
        (
            number
            for number, line in enumerate(lines)
            if line[:1] not in (" ", "#", "\n") and line.partition(":")[0].casefold() > name.casefold()
        ),
        len(lines),
    )
    with atomic_file(file) as written:
        written.write("".join([*lines[:place], row, *lines[place:]]).encode())
    known_models.cache_clear()
    return file


# ---------------------------------------------------------------------- a ready file against its repository


@dataclass(frozen=True)
class Finding:
    """One thing about a ready file: it is wrong, or cannot be known."""

    kind: Literal["wrong", "unknown"]
    what: str


def named_model(file: Path) -> str:
    """The model that a ready file names.

    Raises:
        MedtasksError: it names none.
    """
    arguments = read_yaml(file).get("model_args") or {}
    name = arguments.get("pretrained") or arguments.get("model")
    if not name:
        raise MedtasksError("names no model", where=file, remedy="write model_args.pretrained")
    return f"{name}@{arguments['revision']}" if arguments.get("revision") else str(name)


def findings(file: Path, facts: ModelFacts) -> Iterator[Finding]:
    """What a ready file says against its model's repository, and what the repository leaves open."""
    content = read_yaml(file)
    arguments, metadata = content.get("model_args") or {}, content.get("metadata") or {}
    context = arguments.get("max_model_len") or arguments.get("max_length")
    if facts.context and isinstance(context, int) and context > facts.context.value:
        yield Finding(
            "wrong", f"a context of {context}, and {facts.context.source} says {facts.context.value}"
        )
    applied = bool(content.get("apply_chat_template"))
    if applied and facts.template is None:
        yield Finding("wrong", "apply_chat_template, and the repository has no template")
    if not applied and facts.template is not None and not metadata.get("layout"):
        yield Finding("wrong", f"no chat template is applied, and {facts.template.source} holds one")
    if (
        applied
        and facts.system_turn
        and not facts.system_turn.value
        and metadata.get("system_role") is not False
    ):
        yield Finding(
            "wrong", f"{facts.system_turn.source} shows no system turn: write metadata.system_role: false"
        )
    said = _thinks(arguments, facts)
    if said is not None and "thinking" in metadata and bool(metadata["thinking"]) is not said:
        assert facts.switch is not None  # it said so
        yield Finding(
            "wrong",
            f"thinking is {str(metadata['thinking']).lower()}, and by {facts.switch.source} it is"
            f" {'on' if said else 'off'}",
        )
    if arguments.get("trust_remote_code") and not any("code of its own" in note for note in facts.notes):
        yield Finding("wrong", "trust_remote_code, and the repository has no code of its own")
    for note in facts.notes:
        yield Finding("unknown", note)


def _thinks(arguments: dict[str, Any], facts: ModelFacts) -> bool | None:
    if facts.switch is None:
        return None
    switch = facts.switch.value
    said = (arguments.get("chat_template_args") or {}).get(switch.name)
    if switch.name == "enable_thinking":
        said = arguments.get("enable_thinking")
    return bool(said) if switch.name and said is not None else switch.under_lm_eval
