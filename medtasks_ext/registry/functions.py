"""The functions that YAML files may name: a catalogue, and those of installed packages that the user trusts.

A file of a stranger can so name what is there, and nothing else: no module beside the file is imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.families import families
from medtasks_ext.registry.folders import own_folders, tasks_folder

#: Variable that names installed packages whose functions YAML files may name, separated by commas.
TRUSTED_PACKAGES = "MEDTASKS_TRUSTED_PACKAGES"
#: What the key `class` of a task file names.
TASK_CLASS = "medtasks_ext.task.MedicalTask"
#: How YAML names a function; a file of a suite leaves the mark out.
MARK = "!function "
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
#: Keys whose texts lm-eval renders without a sandbox, as it renders each document.
_RENDERED = (
    "description", "doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_image", "doc_to_audio",
    "gen_prefix", "doc_to_decontamination_query", "fewshot_config", "target_delimiter",
)  # fmt: skip
_JINJA = ("{{", "{%", "{#")
_FILE = Path(__file__).with_name("functions.yaml")


@lru_cache(maxsize=1)
def catalogue() -> frozenset[str]:
    """The package's own functions that a YAML file may name, as `package.module.name`."""
    listed: list[str] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    named = [[family.process_results, *map(dict, family.metric_list)] for family in families()]
    return frozenset([*listed, *(name.removeprefix(MARK) for name in functions_of(named)), TASK_CLASS])


def trusted_packages() -> frozenset[str]:
    names = [name for name in re.split(r"[\s,]+", os.environ.get(TRUSTED_PACKAGES, "")) if name]
    for name in names:
        if not name.isidentifier():
            what = f"{name!r} is no name of a package"
            remedy = "write names as they are imported, with commas between: hospital_metrics"
            raise MedtasksError(what, where=TRUSTED_PACKAGES, remedy=remedy)
    return frozenset(names)


def check_function(reference: str, *, where: object = None) -> str:
    """The name behind `!function package.module.name`, if a YAML file may name it. Imports nothing."""
    name = reference.removeprefix(MARK)
    if name in catalogue() or (_NAME.fullmatch(name) and name.partition(".")[0] in trusted_packages()):
        return name
    raise MedtasksError(
        f"`{MARK}{name[:100]}` is not in the catalogue of functions",
        where=where,
        remedy="name one that a family of metrics uses (docs/add_a_dataset.md); or install the package that "
        f"holds it, and name the package in {TRUSTED_PACKAGES}",
    )


def unsafe_keys(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of a task file by which lm-eval would run what the file says, each with its remedy."""
    for key in _RENDERED:
        if any(mark in str(config.get(key)) for mark in _JINJA):
            what = f"{key}: lm-eval would render this Jinja without a sandbox"
            yield what, "write templates under `prompt` and `rows`"
    if config.get("use_prompt") is not None:
        what = "use_prompt: lm-eval would read another file with templates"
        yield what, "write templates under `prompt`"


def functions_of(config: Any) -> Iterator[str]:
    if isinstance(config, str):
        if config.startswith(MARK):
            yield config
    elif isinstance(config, Mapping | list):
        for part in config.values() if isinstance(config, Mapping) else config:
            yield from functions_of(part)


def function_named(reference: str, *, where: object = None) -> Any:
    name = check_function(reference, where=where)
    if name not in catalogue():
        _check_installed(name.partition(".")[0], where)
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        what = f"`{MARK}{name}` cannot be imported ({error})"
        raise MedtasksError(what, where=where, remedy="correct the name") from None


def _check_installed(package: str, where: object) -> None:
    """Refuse a package that only lies beside the files, in the current folder or with the tasks."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    beside = [folder.resolve() for folder in (Path.cwd(), tasks_folder(), *own_folders())]
    installed = Path(sys.prefix).resolve()
    for place in (Path(place).resolve() for place in places if place):
        if installed not in place.parents and any(folder in place.parents for folder in beside):
            places = []
    if not places:
        raise MedtasksError(
            f"the package {package} is not installed; a module in the current folder or beside tasks does "
            "not count",
            where=where or TRUSTED_PACKAGES,
            remedy=f"install it, or take it out of {TRUSTED_PACKAGES}",
        )
