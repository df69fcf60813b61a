"""YAML files as lm-eval reads them, without importing lm-eval: `!function` references stay strings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):
    """Safe YAML that keeps `!function` references as strings."""


def _function(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return f"!function {loader.construct_scalar(node)}"


_Loader.add_constructor("!function", _function)


def yaml_text(text: str) -> Any:
    """What a YAML text says; `!function` references are strings."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping, with `include` resolved as lm-eval does (top-level keys, local ones win).

    Raises:
        MedtasksError: the file is not valid YAML, not a mapping, or includes a missing file.
    """
    try:
        config = yaml_text(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise MedtasksError(
            f"not valid YAML ({problem})",
            where=f"{path}{line}",
            remedy="mend the indentation or quoting there",
        ) from None
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="check the `include:` that names it") from None
    except UnicodeDecodeError:
        raise MedtasksError("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None
    if not isinstance(config, dict):
        raise MedtasksError("expected a mapping of keys", where=path, remedy="start from another task's file")
    includes = config.pop("include", [])
    merged: dict[str, Any] = {}
    for name in includes if isinstance(includes, list) else [includes]:
        merged.update(read_yaml((path.parent / name).resolve()))
    return {**merged, **config}


def function_named(reference: str) -> Any:
    """The function behind `!function package.module.name`.

    Raises:
        MedtasksError: there is no such module, or no such function in it.
    """
    module, _, name = reference.removeprefix("!function ").rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise MedtasksError(
            "no such function", where=reference, remedy="name an installed module and a function in it"
        ) from None
