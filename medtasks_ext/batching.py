"""How many questions a local model is asked at a time: by plain lm-eval one, unless it is told otherwise."""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache
from pathlib import Path

import yaml

#: Models of lm-eval that run vLLM in this process.
VLLM_MODELS = frozenset({"vllm", "vllm-vlm"})
#: Models of lm-eval that find the size of their batches themselves, and ask one by one unless told to.
BATCHING_MODELS = VLLM_MODELS | {"hf", "hf-auto", "huggingface", "hf-multimodal", "sglang"}

_LM_EVAL = frozenset({"lm_eval", "lm-eval"})
_DEFAULT_MODEL = "hf"  # of lm-eval


@cache
def say_batch_size() -> None:
    """Say once, if this process is a plain lm-eval that asks one by one, which flag changes that."""
    if asks_one_by_one(sys.argv) and os.environ.get("LOCAL_RANK", "0") == "0":
        print(
            "medtasks: lm-eval asks one question at a time unless told otherwise: add --batch_size auto",
            file=sys.stderr,
        )


def asks_one_by_one(argv: list[str]) -> bool:
    """lm-eval's own command line, with a local model and no batch size; never a script's call."""
    stated = _stated(argv)
    return stated is not None and stated[1] is None and stated[0] in BATCHING_MODELS


def model_of(argv: list[str]) -> str | None:
    stated = _stated(argv)
    return stated[0] if stated else None


def _stated(argv: list[str]) -> tuple[str, str | None] | None:
    arguments = _arguments_of_lm_eval(argv)
    if arguments is None:
        return None
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--model", "-M")
    parser.add_argument("--batch_size", "-b")
    parser.add_argument("--config", "-C")
    try:
        given, _ = parser.parse_known_args(arguments)
        stated = yaml.safe_load(Path(given.config).read_text(encoding="utf-8")) if given.config else {}
        model, batch_size = given.model or stated.get("model"), given.batch_size or stated.get("batch_size")
    except (argparse.ArgumentError, OSError, ValueError, yaml.YAMLError, AttributeError):
        return None  # lm-eval refuses it in its own words
    return model or _DEFAULT_MODEL, batch_size


def _arguments_of_lm_eval(argv: list[str]) -> list[str] | None:
    """What follows `lm_eval`, `lm_eval run` or `python -m lm_eval`; None of another program or subcommand."""
    program = Path(argv[0]) if argv else Path()
    name = program.parent.name if program.name == "__main__.py" else program.name.removesuffix(".exe")
    if name not in _LM_EVAL or argv[1:2] in (["ls"], ["validate"]):
        return None
    return argv[2:] if argv[1:2] == ["run"] else argv[1:]
