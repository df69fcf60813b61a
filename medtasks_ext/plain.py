"""Plain lm-eval: what it sends where, and how many questions a local model is asked at a time.

lm-eval asks servers itself, and calls nothing of ours before a request. So a task looks at the address when
its rows are loaded: in what lm-eval hands it (`base_url` among the model's arguments), or in the class of the
model that the command line names; and it holds lm-eval's clients to the addresses that were permitted.
`medtasks run` asks by engines, which look at every request (`egress`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.egress import SERVICES, TRUSTED_HOSTS, Egress, Text, addresses, hold
from medtasks_ext.errors import MedtasksError
from medtasks_ext.keys import shown_url

#: Models of lm-eval that run vLLM in this process.
VLLM_MODELS = frozenset({"vllm", "vllm-vlm"})
#: Models of lm-eval that find the size of their batches themselves, and ask one by one unless told to.
BATCHING_MODELS = VLLM_MODELS | {"hf", "hf-auto", "huggingface", "hf-multimodal", "sglang"}

_LM_EVAL = frozenset({"lm_eval", "lm-eval"})
_DEFAULT_MODEL = "hf"  # of lm-eval


def check_server(arguments: Mapping[str, Any], text: Text) -> None:
    """Refuse a text that the server of a plain lm-eval may not receive; a run of our own has no arguments."""
    if text.is_open:
        return
    given = arguments.get("base_url") or arguments.get("api_base") or _default_address()
    egress = Egress.of()
    for address in addresses(given):
        url = address if "//" in address else f"//{address}"
        place = egress.place(url)
        try:
            egress.check(url, [text])
        except MedtasksError as error:
            raise MedtasksError(
                error.what,
                where=shown_url(url),
                remedy="serve the model on this machine; or name the host or its network in "
                f"{TRUSTED_HOSTS}, if the institution runs it; or, if the data-use agreement permits this "
                "one host, use `medtasks run` with --allow-host",
            ) from None
        if place.by_address and find_spec("aiodns"):
            what = "aiodns looks up names past all that holds them to this machine or a trusted network"
            remedy = "pip uninstall aiodns, or use `medtasks run`"
            raise MedtasksError(what, where=shown_url(url), remedy=remedy)
        hold(place, egress)


def _default_address() -> str | None:
    """None of a model on this machine."""
    if (stated := _stated(sys.argv)) is None:
        return None
    from medtasks_ext.harness import get_model

    try:
        kind = get_model(stated[0])
    except (ImportError, KeyError, ValueError):
        return None  # lm-eval refuses it in its own words
    url = signature(kind.__init__).parameters.get("base_url")
    if url is not None and isinstance(url.default, str):
        return url.default
    modules = {base.__module__ for base in kind.__mro__}
    return next((address for module, address in SERVICES.items() if module in modules), None)


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


def _stated(argv: list[str]) -> tuple[str, str | None] | None:
    """Model and batch size of `lm_eval`, `lm_eval run` or `python -m lm_eval`; None of anything else."""
    program = Path(argv[0]) if argv else Path()
    name = program.parent.name if program.name == "__main__.py" else program.name.removesuffix(".exe")
    if name not in _LM_EVAL or argv[1:2] in (["ls"], ["validate"]):
        return None
    arguments = argv[2:] if argv[1:2] == ["run"] else argv[1:]
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
