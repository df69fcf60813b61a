"""YAML files as lm-eval reads them, without importing lm-eval: `!function` references stay strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: What a YAML file says, or the configuration of a task or model as lm-eval keeps it: keys are any.
Config: TypeAlias = dict[str, Any]
#: Bytes of a file, values in it (aliases count each time), keys of a mapping with merges, levels.
_BYTES, _VALUES, _MERGED, _DEPTH = 8 << 20, 1_000_000, 10_000, 100
#: Characters of a number, since 1:59:59 is a number to base 60; files of which each includes the next one.
_DIGITS, _INCLUDES = 300, 20


class _Loader(_Base):
    """Safe YAML that keeps `!function` references as strings, and refuses a key that is given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """The mapping; PyYAML would take the last of two equal keys without a word."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _refused(f"key {key.value!r} is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: Any) -> None:
        """Put what `<<` names in its place; a file whose merges double each other is refused."""
        super().flatten_mapping(node)
        if len(node.value) > _MERGED:
            raise _refused("too many keys", node)

    def construct_scalar(self, node: Any) -> Any:
        """The text; the value of a number takes the square of its length to work out."""
        if node.tag.endswith((":int", ":float")) and len(node.value) > _DIGITS:
            raise _refused(f"a number of more than {_DIGITS} characters", node)
        return super().construct_scalar(node)


def _refused(problem: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


_Loader.add_constructor("!function", lambda loader, node: f"!function {node.value}")


def yaml_text(text: str) -> Any:
    """What a YAML text says; `!function` references are strings."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path, below: Sequence[Path] = ()) -> Config:
    """One YAML mapping, with `include` resolved as lm-eval does (top-level keys, local ones win).

    `below`: folders that what is included lies in; none: it may lie anywhere. Raises MedtasksError: as for
    `read_mapping`; files that include each other, or one outside these folders.
    """
    return _resolved(path, (), tuple(folder.resolve() for folder in below), {})


def _resolved(
    path: Path, above: tuple[Path, ...], below: tuple[Path, ...], known: dict[Path, Config]
) -> Config:
    """The mapping with what it includes; each file is read once, and kept in `known`."""
    if path.resolve() in above:
        raise MedtasksError("include: the file includes itself", where=path, remedy="name another file there")
    if len(above) > _INCLUDES:
        what = f"include: more than {_INCLUDES} files include each other"
        raise MedtasksError(what, where=path, remedy="include fewer")
    config = read_mapping(path)
    includes = config.pop("include", [])
    merged: Config = {}
    wanted_files: dict[Path, None] = {}
    for name in includes if isinstance(includes, list) else [includes]:
        if not isinstance(name, str):
            what = f"include: {name!r} is no path"
            raise MedtasksError(what, where=path, remedy="write the path of a task file")
        wanted = (path.parent / name).resolve()
        if below and not any(wanted.is_relative_to(folder) for folder in below):
            what = f"include: {name!r} lies outside the folders of tasks"
            remedy = "include a file of this folder of tasks, or of the built-in ones"
            raise MedtasksError(what, where=path, remedy=remedy)
        wanted_files.pop(wanted, None)  # of a file that is named again, the last place counts
        wanted_files[wanted] = None
    for wanted in wanted_files:
        if wanted not in known:
            known[wanted] = _resolved(wanted, (*above, path.resolve()), below, known)
        merged.update(known[wanted])
    return {**merged, **config}


def read_mapping(path: Path) -> Config:
    """One YAML mapping, as it stands in the file.

    Raises MedtasksError: no such file, not valid YAML, a key that is given twice, not a mapping, or more than
    a file of its kind holds.
    """
    try:
        if path.exists() and not (path.is_file() and path.stat().st_size <= _BYTES):
            what = f"no file, or more than {_BYTES >> 20} MB"
            raise MedtasksError(what, where=path, remedy="name a YAML file written by hand")
        config = yaml_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="check the `include:` that names it") from None
    except OSError as error:  # a name that is too long, or a file of somebody else
        what, where = f"cannot be read: {error.strerror}", str(path)[:200]
        raise MedtasksError(what, where=where, remedy="name another file") from None
    except UnicodeDecodeError:
        raise MedtasksError("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None
    # a date that there is not, or `!!int ""`, is no error of YAML
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, LookupError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        what = f"not valid YAML ({getattr(error, 'problem', None) or error})"
        remedy = "mend the indentation or quoting there"
        raise MedtasksError(what, where=f"{path}:{mark.line + 1}" if mark else path, remedy=remedy) from None
    if not isinstance(config, dict):
        remedy = "start from another file of its kind"
        raise MedtasksError("expected a mapping of keys", where=path, remedy=remedy)
    # aliases may repeat each other: whoever walks through the values would not come to an end
    level, n, depth = [config], 0, 0
    while level:
        level = [item for item in level if isinstance(item, dict | list)]
        n, depth = n + sum(map(len, level)), depth + 1
        if n > _VALUES or depth > _DEPTH:
            what = f"more than {_VALUES:,} values, as aliases repeat them" if n > _VALUES else "too deep"
            raise MedtasksError(what, where=path, remedy="write what a person can read")
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return config
