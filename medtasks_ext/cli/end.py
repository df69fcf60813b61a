"""The end of a run: its table, what is unfinished, and the commands that come next."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.cli.tables import Line, console, print_rows, waits_for_judges
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.data.punkt import PUNKT_REMEDY, needs_punkt
from medtasks_ext.errors import some
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.report.axes import axis_titles
from medtasks_ext.report.outline import OutlineBlock, outline
from medtasks_ext.run.store import closed_text_in
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import TaskState
from medtasks_ext.runs.secrets import dropped_secrets, is_secret
from medtasks_ext.runs.served import served_note

if TYPE_CHECKING:
    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.results.rollup import Row
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.records import TaskRecord

#: Rows of axes in all; what does not fit is in the report.
_AXIS_ROWS = 22
#: Tasks that are named one by one.
_NAMED = 5
#: Models that nobody publishes a card of.
_BUILT_IN = ("oracle", "random-label", "nearest-shot")
#: The jury of answers whose suite names none.
_JURY = "local"
#: How most commands get what is missing.
SAME_COMMAND = "the same command goes on"
#: How metrics end that count answers over which processes of scoring failed.
_NOT_DECIDED = "_not_decided"
#: Tasks that a call left without a score.
_UNFINISHED = (TaskState.WAITING, TaskState.INCOMPLETE, TaskState.ANSWERED)
_NAME_OF_VALUE = re.compile(r"([\w-]+)['\"]?\s*[=:]")


# ---------------------------------------------------------------------- the table


def print_scores(run: Run, results: Mapping[str, TaskRecord]) -> None:
    """What was asked for: tasks and small groups a row each, suites with their main axes."""
    plan = outline(run.registry, run.known_names())
    single = run.rows(results, plan.single)
    blocks = [(block, run.rows(results, block.names)) for block in plan.blocks]
    axes = _axes_that_fit(run, results, plan.blocks, {row.name for _, rows in blocks for row in rows})
    lines = [Line(row.name, row) for row in single]
    for place, (block, rows) in enumerate(blocks):
        lines += [Line(row.name, row) for row in rows]
        for axis, below in axes.get(place, {}).items():
            lines.append(Line(axis_titles()[axis].partition(" (")[0], depth=2))
            lines += [Line(block.axes[axis][row.name], row, depth=4) for row in below]
    print_rows(lines, results)
    if (shots := run.settings.num_fewshot) is not None:
        console().print(f"{counted(shots, 'example')} in each prompt (--num_fewshot)", markup=False)
    judged = waits_for_judges(results)
    if blocks:
        console().print(_counts(run, results, len(judged)), markup=False)
    elif judged:
        console().print(f"judges are still to score {counted(len(judged), 'task')}", markup=False)
    for line in (_cache_hits(results), *_ended(results)):
        if line:
            console().print(line, markup=False)
    if axes:
        console().print("specialties, stages and the other axes: `medtasks report`", markup=False)


def _axes_that_fit(
    run: Run, results: Mapping[str, TaskRecord], blocks: Sequence[OutlineBlock], shown: set[str]
) -> dict[int, dict[str, list[Row]]]:
    """Place of a block -> axis -> rows: the first axis of each block, then the second, while there is room.

    An axis of one row that stands above, or of about as many rows as there are tasks, says nothing more.
    """
    found: dict[int, dict[str, list[Row]]] = {}
    left = _AXIS_ROWS
    axes = [(rank, place, axis) for place, block in enumerate(blocks) for rank, axis in enumerate(block.axes)]
    for _, place, axis in sorted(axes):
        rows = [row for row in run.rows(results, blocks[place].axes[axis]) if row.n_documents]
        n_tasks = sum(row.n_scored for row in rows)
        if len(rows) <= left and 2 * len(rows) <= n_tasks and not {row.name for row in rows} <= shown:
            found.setdefault(place, {})[axis] = rows
            left -= len(rows)
    return found


def _cache_hits(results: Mapping[str, TaskRecord]) -> str:
    """How many tokens of prompts the engine did not read anew, by its own counts; empty where none says."""
    counted_here = [tokens for item in results.values() if (tokens := item["tokens"]) and "cached" in tokens]
    if not (total := sum(tokens["input"] for tokens in counted_here)):
        return ""
    share = sum(tokens["cached"] for tokens in counted_here) / total
    some = "" if len(counted_here) == len(results) else f" of {counted(len(counted_here), 'task')}"
    return f"prefix cache: {share:.0%} of {total:,} prompt tokens{some}"


def _ended(results: Mapping[str, TaskRecord]) -> Iterator[str]:
    if n := sum(item["cut"].get("answers_looped", 0) for item in results.values()):
        yield f"{counted(n, 'answer')} ended since they repeated themselves (repetition_detection)"


def _counts(run: Run, results: Mapping[str, TaskRecord], judged: int) -> str:
    entries = run.manifest.tasks
    scored = sum("score" in item["metrics"] for item in results.values())
    blind = sum(_without_gold(item) for item in results.values())
    states = Counter(entry.state for entry in entries.values())
    parts = [
        (judged, "to be judged"),
        (blind, "without gold"),
        (len(results) - scored - judged - blind, "not computed"),
        (states[TaskState.MISSING], "without data"),
        (states[TaskState.FAILED], "failed"),
        (sum(states[state] for state in _UNFINISHED), "unfinished"),
    ]
    others = ", ".join(f"{n:,} {what}" for n, what in parts if n > 0)
    return f"{scored:,} of {counted(len(entries), 'task')} scored" + (f", {others}" if others else "")


def _without_gold(record: TaskRecord) -> bool:
    return (
        "score" not in record["metrics"] and record["loaded"]["n_without_gold"] == record["loaded"]["n_test"]
    )


# ---------------------------------------------------------------------- what is left to do


def say_end(
    run: Run,
    n_missing: int,
    *,
    again: Sequence[str] | None,
    cause: MedtasksError | None = None,
    how: str = SAME_COMMAND,
) -> int:
    """Name what failed, what must be known and what comes next; returns the exit code.

    `again`: arguments of the command that goes on; None where another command does. `how` the user gets what
    is missing.
    """
    failed, unfinished = list(_failed(run)), list(_unfinished(run, how))
    _say_some(failed, f"failed, too (details in {run.manifest_file})")
    _say_some(unfinished, "unfinished, too")
    if cause is not None:
        say(f"✗ {cause}")
    for note in run.manifest.notes:
        say(f"note: {note}")
    for note in (*_not_decided(run), *_without_punkt(run)):
        say(f"note: {note}")
    if other := _served(run):
        say(f"! {other}")
    say_sent(run.folder)
    say(f"results: {run.files.results_file}")
    commands = list(_next(run, again if failed or unfinished or cause else None))
    say_next(*commands)
    return 1 if failed or unfinished or n_missing or cause else 0


def say_sent(folder: Path) -> None:
    """Say which hosts other than this machine got text that is not open."""
    for (host, way), names in closed_text_in(folder, RunFolder(folder).judgements).items():
        say(f"sent to {host} ({way}): text that is not open, of {some(names)}")


def _served(run: Run) -> str:
    conditions = [record["conditions"] for record in run.results().values() if record.get("conditions")]
    return served_note(run.manifest.identity.asked_name, [item.get("served") or () for item in conditions])


def _not_decided(run: Run) -> Iterator[str]:
    for name, record in run.results().items():
        shares = (
            value for metric, value in record.get("metrics", {}).items() if metric.endswith(_NOT_DECIDED)
        )
        if n := round(max(shares, default=0.0) * record["n"]):
            yield (
                f"{name}: {counted(n, 'answer')} not decided and counted as wrong: a process of scoring "
                f"failed twice; `medtasks rescore {run.folder}` tries them again"
            )


def _without_punkt(run: Run) -> Iterator[str]:
    """Tasks whose texts could not be divided into sentences or words, and so have no score or no BLEU."""
    needing = {
        name: record["metrics"]
        for name, record in run.results().items()
        if name in run.registry.tasks
        and needs_punkt(run.registry.tasks[name][0])
        and not any(metric.startswith("bleu_4") for metric in record["metrics"])
        and record["loaded"]["n_without_gold"] < record["loaded"]["n_test"]
    }
    if needing:
        bare = [name for name, metrics in needing.items() if "score" not in metrics]
        less = len(needing) - len(bare)
        parts = [f"no score in {some(bare)}"] * bool(bare)
        parts += [f"no bleu_4 in {counted(less, 'task')}"] * bool(less)
        yield (
            f"NLTK's Punkt data is not on this machine: {', '.join(parts)}; {PUNKT_REMEDY}, "
            f"then `medtasks rescore {shlex.quote(str(run.folder))}`"
        )


def _failed(run: Run) -> Iterator[str]:
    for name, entry in run.manifest.tasks.items():
        if entry.state is TaskState.FAILED:
            yield f"{name}: {entry.error.splitlines()[0]} (details in {run.manifest_file})"


def _unfinished(run: Run, how: str) -> Iterator[str]:
    for name, entry in run.manifest.tasks.items():
        if entry.state in _UNFINISHED:
            n = sum(entry.faults.values())
            why = (
                f"{entry.reason} ({counted(n, 'request')} without an answer)" if n else "not asked to the end"
            )
            yield f"{name}: {why}; {how}"


def _say_some(lines: Sequence[str], rest: str) -> None:
    shown = lines if len(lines) <= _NAMED + 1 else lines[:_NAMED]
    for line in shown:
        say(f"✗ {line}")
    if more := len(lines) - len(shown):
        say(f"✗ {counted(more, 'more task')} {rest}")


def _next(run: Run, again: Sequence[str] | None) -> Iterator[str]:
    if again is not None:
        yield shown_command(["run", *again])
    results = run.results()
    folder = shlex.quote(str(run.folder))
    waiting = [name for name in waits_for_judges(results) if name in run.registry.tasks]
    yield from _judging(run, waiting, folder)
    if results:
        yield f"medtasks report {folder} -o report"
        yield f"medtasks view {folder}"
    scored = any("score" in item["metrics"] and _all_rows(item) for item in results.values())
    sample = any("SAMPLE_DATA" in item["metrics"] for item in results.values())
    if scored and not sample and run.manifest.identity.model["model"] not in _BUILT_IN:
        yield f"medtasks card {folder} -o card"


def _all_rows(record: TaskRecord) -> bool:
    """Whether the rows that were asked are at least as many as the suite states; a card takes no others."""
    loaded = record["loaded"]
    stated = record["conditions"].get("n_of_suite") or 0
    aside = loaded.get("n_held_out", 0) + loaded.get("n_dropped", 0)
    return bool(record["n"] == loaded["n_test"] and record["n"] + aside >= stated)


def _judging(run: Run, waiting: Sequence[str], folder: str) -> Iterator[str]:
    """Suites name the juries of their answers; where several juries wait, suites are named."""
    juries: dict[str, dict[str, None]] = {}
    for name in waiting:
        dataset, strategy = run.registry.tasks[name]
        jury = dataset.suite.jury or _JURY
        juries.setdefault(jury, {})[dataset.suite.id + SUFFIX[strategy]] = None
    for jury, suites in juries.items():
        only = f" --tasks {','.join(suites)}" if len(juries) > 1 else ""
        yield f"medtasks judge {folder} --jury {jury}{only} --dry-run"


def shown_command(arguments: Sequence[str]) -> str:
    """A command of medtasks as it can be typed; its name alone where an argument says how to log in."""
    if any(_says_login(argument) for argument in arguments):
        return f"medtasks {arguments[0]} … (the same command)"
    return shlex.join(["medtasks", *arguments])


def _says_login(argument: str) -> bool:
    names = _NAME_OF_VALUE.findall(argument)
    return any(map(is_secret, names)) or dropped_secrets(argument) != argument
