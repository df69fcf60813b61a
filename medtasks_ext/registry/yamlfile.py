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
    """Safe YAML that keeps `!function` references as strings, and refuses a key that is given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """The mapping; PyYAML would take the last of two equal keys without a word."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _function(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return f"!function {loader.construct_scalar(node)}"


_Loader.add_constructor("!function", _function)


def yaml_text(text: str) -> Any:
    """What a YAML text says; `!function` references are strings."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping, with `include` resolved as lm-eval does (top-level keys, local ones win).

    Raises:
        MedtasksError: as for `read_mapping`; files that include each other.
    """
    return _resolved(path, ())


def _resolved(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in above:
        raise MedtasksError("include: the file includes itself", where=path, remedy="name another file there")
    config = read_mapping(path)
    includes = config.pop("include", [])
    merged: dict[str, Any] = {}
    for name in includes if isinstance(includes, list) else [includes]:
        if not isinstance(name, str):
            raise MedtasksError(
                f"include: {name!r} is no path", where=path, remedy="write the path of a task file"
            )
        merged.update(_resolved((path.parent / name).resolve(), (*above, path.resolve())))
    return {**merged, **config}


def read_mapping(path: Path) -> dict[str, Any]:
    """One YAML mapping, as it stands in the file.

    Raises:
        MedtasksError: no such file, not valid YAML, a key that is given twice, or not a mapping.
    """
    try:
        config = yaml_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="check the `include:` that names it") from None
    except UnicodeDecodeError:
        raise MedtasksError("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:  # a date that there is not is no error of YAML
        mark = getattr(error, "problem_mark", None)
        raise MedtasksError(
            f"not valid YAML ({getattr(error, 'problem', None) or error})",
            where=f"{path}:{mark.line + 1}" if mark else path,
            remedy="mend the indentation or quoting there",
        ) from None
    if not isinstance(config, dict):
        raise MedtasksError(
            "expected a mapping of keys", where=path, remedy="start from another file of its kind"
        )
    return config


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
