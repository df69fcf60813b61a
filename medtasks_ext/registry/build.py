"""What lm-eval's index needs and nobody writes by hand: a file for each variant, and groups.

These files follow from the hand-written ones, so they are built: into the wheel, for an editable installation
as files that include the hand-written ones, and in a checkout by `medtasks dev build`. Needs pydantic and
PyYAML.
"""

from __future__ import annotations

import os
from pathlib import Path

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.groups import Registry, check_suite, suite_of_group
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.registry.suites import NO_SUITE, no_suite, read_suite
from medtasks_ext.registry.tasks import TASK_FILE, Dataset
from medtasks_ext.strict import Config

#: Metrics of a group's row.
_OF_GROUPS = ("score", "SAMPLE_DATA")
_WRITTEN = "# built by medtasks from the hand-written task files\n"


def build(registry: Registry, folder: Path, *, tasks: str | None = None) -> list[str]:
    """Bring a folder that lm-eval can index up to date; returns the files written or deleted, relative to it.

    What is in it and does not belong there is deleted; files that stay as they are are not touched. `tasks`:
    the folder of the hand-written tasks as seen from the folder of a dataset in `folder`; by default its
    absolute path.
    """
    expected = built_files(registry, tasks=tasks)
    changed = stale(expected, folder)
    part = folder.with_name(f".{os.getpid()}.part")  # not in the folder, which lm-eval may be reading
    try:
        for name in changed:
            path = folder / name
            if name in expected:
                path.parent.mkdir(parents=True, exist_ok=True)
                part.write_text(expected[name], encoding="utf-8")
                part.replace(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder, error, "give write access to the folder") from None
    return changed


def stale(expected: dict[str, str], folder: Path) -> list[str]:
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    both = expected.keys() & there.keys()
    same = {name for name in both if there[name].read_text(encoding="utf-8") == expected[name]}
    return sorted((expected.keys() | there.keys()) - same)


def built_files(registry: Registry, *, tasks: str | None = None) -> dict[str, str]:
    """All files of the folder, path in it -> content."""
    check(registry)
    # beside tasks of one's own, the built-in ones are known to lm-eval: a second copy would clash
    datasets = [item for item in registry.datasets.values() if not registry.own or registry.is_own(item)]
    ways = {item: (*item.strategies, *([LIKELIHOOD] if item.is_closed else [])) for item in datasets}
    built = {dataset.task(way) for dataset, some in ways.items() for way in some}
    own = {suite.id for suite in registry.suites.values() if registry.is_own(suite)}
    files = {}
    for dataset in datasets:
        place = dataset.key
        written = f"{tasks}/{place}/{TASK_FILE}" if tasks else str(dataset.file.resolve())
        for way in ways[dataset]:
            name = TASK_FILE if way == "zero_shot" else f"{way}.yaml"
            named = f"task: {dataset.task(way)}\nstrategy: {way}\n" if way != "zero_shot" else ""
            files[f"{place}/{name}"] = f"{_WRITTEN}include: {written}\n{named}"
    for name, leaves in registry.listed.items():
        suite = suite_of_group(registry, name)
        if not built.isdisjoint(leaves) or (suite and suite.id in own):
            files[f"groups/{name}.yaml"] = _group_file(group_config(registry, name))
    return files


def group_config(registry: Registry, name: str) -> Config:
    """A group as lm-eval takes it; one whose score is no plain mean over tasks has none there."""
    parts, listed = registry.groups.get(name, []), registry.listed.keys()
    members = parts if parts and listed >= set(parts) else registry.leaves(name)
    metrics = _OF_GROUPS if registry.parts_of(name) is None else ()
    means = [{"metric": metric, "weight_by_size": False} for metric in metrics]
    config: Config = {"group": name, "task": members, "metadata": {"version": "1-A"}}
    return {**config, "aggregate_metric_list": means} if means else config


def _group_file(config: Config) -> str:
    lines = [f"group: {config['group']}", "task:", *(f"  - {member}" for member in config["task"])]
    if means := config.get("aggregate_metric_list"):
        lines.append("aggregate_metric_list:")
        lines += [f"  - {{metric: {mean['metric']}, weight_by_size: false}}" for mean in means]
    else:
        lines.append("# its score, if it has one, is no plain mean over tasks: `medtasks run` prints it")
    return _WRITTEN + "\n".join([*lines, "metadata: {version: 1-A}"]) + "\n"


def check(registry: Registry) -> None:
    for file in registry.suite_files:
        read_suite(file.parent)
    if registry.own:
        no_suite()  # with the vocabulary of these folders
    if registry.broken:
        folder, reason = next(iter(registry.broken.items()))
        remedy = "" if "→" in reason else "mend it"
        raise MedtasksError(reason, where=None if str(folder) in reason else folder, remedy=remedy)
    check_names(registry)  # of two datasets of one name the registry has one
    for file in registry.suite_files:
        check_suite(registry, file)


def check_names(registry: Registry) -> None:
    """Names are unique over tasks and groups; lm-eval drops or replaces clashing ones silently."""
    ids: dict[str, Path] = {}
    for file in registry.files:
        dataset = Dataset(file.parent)
        suite = dataset.suite.id
        if suite != NO_SUITE and not dataset.id.startswith(f"{suite}_"):
            what = f"task {dataset.id!r} does not begin with {suite}_"
            raise MedtasksError(what, where=file, remedy="rename it")
        for name in map(dataset.task, (*dataset.strategies, *([LIKELIHOOD] if dataset.is_closed else []))):
            if (other := ids.setdefault(name, file)) is not file:
                what = f"task {name!r} is also in {other}"
                raise MedtasksError(what, where=file, remedy="rename one of them")
    if both := registry.tasks.keys() & registry.groups.keys():
        raise MedtasksError(f"{min(both)!r} is both a task and a group", remedy="rename one of them")
