"""What users write: YAML files, the base of their models, and what is wrong with them, in words.

YAML is read as lm-eval reads it, without importing lm-eval: `!function` references stay strings.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError

from medtasks_ext.errors import MedtasksError, near

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails

    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: What a YAML file says, or the configuration of a task or model as lm-eval keeps it: keys are any.
Config: TypeAlias = dict[str, Any]
#: Bytes of a file, values in it (aliases count each time), keys of a mapping with merges, levels.
_BYTES, _VALUES, _MERGED, _DEPTH = 8 << 20, 1_000_000, 10_000, 100
#: Characters of a number, whose value takes their square to work out; files that are read for one.
_DIGITS, _INCLUDES = 300, 20


class _Loader(_Base):
    """Safe YAML that keeps `!function` references as strings, and refuses a key that is given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _refused(f"key {key.value!r} is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: Any) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MERGED:
            raise _refused("too many keys", node)

    def construct_scalar(self, node: Any) -> Any:
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
    folders, n_read = [folder.resolve() for folder in below], 0

    def resolved(file: Path, above: tuple[Path, ...]) -> Config:
        nonlocal n_read
        n_read += 1
        config = read_mapping(file)
        includes, merged = config.pop("include", []), Config()
        for name in includes if isinstance(includes, list) else [includes]:
            wanted, fault = (file.parent / str(name)).resolve(), ""
            if not isinstance(name, str):
                fault, remedy = f"{name!r} is no path", "write the path of a task file"
            elif wanted in above:
                fault, remedy = "the file includes itself", "name another file there"
            elif n_read > _INCLUDES:
                fault, remedy = f"more than {_INCLUDES} files", "include fewer"
            elif folders and not any(wanted.is_relative_to(folder) for folder in folders):
                fault = f"{name!r} lies outside the folders of tasks"
                remedy = "include a file of this folder of tasks, or of the built-in ones"
            if fault:
                raise MedtasksError(f"include: {fault}", where=file, remedy=remedy)
            merged.update(resolved(wanted, (*above, wanted)))
        return {**merged, **config}

    return resolved(path, (path.resolve(),))


def read_mapping(path: Path) -> Config:
    """One YAML mapping, as it stands in the file, within limits."""
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
    level, n, depth = list[Any]([config]), 0, 0
    while level:
        n, depth = n + sum(map(len, level)), depth + 1
        if n > _VALUES or depth > _DEPTH:
            what = f"more than {_VALUES:,} values, as aliases repeat them" if n > _VALUES else "too deep"
            raise MedtasksError(what, where=path, remedy="write what a person can read")
        inner = (part for item in level for part in (item.values() if isinstance(item, dict) else item))
        level = [part for part in inner if isinstance(part, dict | list)]
    return config


MadeT = TypeVar("MadeT")


class Strict(BaseModel):
    """Refuses fields that it does not know, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """What editors and pages of reference say of a field is its comment `#:`, beside or above it."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for kind in reversed(cls.__mro__):  # a field of a parent has the parent's comment
            said = _comments(kind.__module__).get(kind.__name__, {}) if issubclass(kind, Strict) else {}
            for name in said.keys() & cls.model_fields.keys():
                properties[cls.model_fields[name].alias or name]["description"] = said[name]
        return schema


@cache
def _comments(module: str) -> dict[str, dict[str, str]]:
    source = inspect.getsource(sys.modules[module])
    lines, found = source.split("\n"), dict[str, dict[str, str]]()
    for made in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for node in made.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                said, place = [lines[(node.end_lineno or 0) - 1].partition("  #: ")[2]], node.lineno - 2
                while (above := lines[place].strip()).startswith("#: "):
                    said.insert(0, above[3:])
                    place -= 1
                if text := " ".join(filter(None, said)):
                    found.setdefault(made.name, {})[node.target.id] = text
    return found


#: what pydantic calls a fault -> what is wrong, in plain words
_FAULTS = {
    "missing": "missing key",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "bool_parsing": "should be true or false",
    "string_type": "should be a text (put it in quotes: YAML reads a bare no, a number or a date as such)",
    "list_type": "should be a list",
    "dict_type": "should be a mapping of keys",
    "model_type": "should be a mapping of keys",
}


def fault_of(error: ErrorDetails, root: str = "", known: Iterable[str] = ()) -> str:
    """As `root.path: message`, in plain words and without the value; near names are those of `known` keys."""
    path = ".".join(str(part) for part in (root, *error["loc"]) if part != "" and not _is_form(part))
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    message = _FAULTS.get(error["type"], message)
    if error["type"] == "extra_forbidden":
        message = f"unknown key{near(str(error['loc'][-1]), known)}"
    return f"{path}: {message}" if path else message


def faults_of(error: ValidationError, root: str = "", known: Iterable[str] = ()) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(fault_of(item, root, known) for item in nearest_faults(error)))


def nearest_faults(error: ValidationError) -> list[ErrorDetails]:
    """The faults; where a value may have several forms, those of the form that it comes nearest to."""
    faults: list[tuple[ErrorDetails, object]] = []
    deepest = dict[object, int]()
    for item in error.errors():
        place = item["loc"]
        at = next((place[:at] for at, part in enumerate(place) if _is_form(part)), None)
        faults.append((item, at))
        deepest[at] = max(len(place), deepest.get(at, 0))
    return [item for item, at in faults if at is None or len(item["loc"]) == deepest[at]]


def _is_form(part: int | str) -> bool:
    """Whether a part of a fault's place is the form that a value might have, as pydantic calls it."""
    return isinstance(part, str) and re.fullmatch(r"(list|dict)\[.*\]", part) is not None


def validated(
    make: Callable[[], MadeT],
    root: str = "",
    *,
    where: object,
    remedy: str = "",
    known: Iterable[str] = (),
) -> MadeT:
    """What is made of a user's content; MedtasksError with its faults, in plain words."""
    try:
        return make()
    except ValidationError as error:
        what = "; ".join(faults_of(error, root, known))
        raise MedtasksError(what, where=where, remedy=remedy) from None
