"""The end of a run: its table, what must be known of it, what is unfinished, and what comes next."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.cli.report import print_run
from medtasks_ext.cli.tables import console
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.data.fetch import PUNKT_REMEDY, needs_punkt
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.prompts.documents import row_counts_words
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.run.store import closed_text_in
from medtasks_ext.runs.conditions import served_note
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import TaskState
from medtasks_ext.runs.records import TaskRecord, note_of_traces
from medtasks_ext.runs.settings import dropped_secrets, is_secret

if TYPE_CHECKING:
    from medtasks_ext.runner.run import Run

#: Tasks that are named one by one.
_NAMED = 5
#: Models that nobody publishes a card of.
_BUILT_IN = ("oracle", "random-label")
#: The jury of answers whose suite names none.
_JURY = "local"
#: Tasks that a call left without a score.
_UNFINISHED = (TaskState.WAITING, TaskState.INCOMPLETE)
_NAME_OF_VALUE = re.compile(r"([\w-]+)['\"]?\s*[=:]")
#: What is counted of prompts and answers, in words.
_CUT = {
    "answers_filtered": "answers that the server filtered, so that the model gave none",
    "shots_dropped": "prompts that carry fewer shots than asked for, to fit the context",
    "inputs_cut": "prompts truncated to fit the context",
}


def print_scores(run: Run, results: Mapping[str, TaskRecord]) -> None:
    """The first screen of the run, and what a reader must know beside it."""
    if results:
        print_run(run.folder)
    for line in (*_remarks(results), *_counts(run, results)):
        console().print(line, markup=False)


def _counts(run: Run, results: Mapping[str, TaskRecord]) -> Iterator[str]:
    entries, judged = run.manifest.tasks, len(waits_for_judges(results))
    others = [item["loaded"] for item in results.values() if "score" not in item["metrics"]]
    blind = sum(loaded["n_without_gold"] == loaded["n_test"] for loaded in others)
    states = Counter(entry.state for entry in entries.values())
    parts = {
        "to be judged": judged,
        "without gold": blind,
        "not computed": len(others) - judged - blind,
        "without data": states[TaskState.MISSING],
        "failed": states[TaskState.FAILED],
        "unfinished": sum(states[state] for state in _UNFINISHED),
    }
    if said := ", ".join(f"{n:,} {what}" for what, n in parts.items() if n > 0):
        yield f"{len(results) - len(others):,} of {counted(len(entries), 'task')} scored, {said}"


def _remarks(results: Mapping[str, Any]) -> Iterator[str]:
    """What a reader must know beside the scores: traces that never closed, rows held out, rebuilt rows."""
    unclosed = {name: item["metrics"].get("unclosed_reasoning", 0) for name, item in results.items()}
    if worst := {name: share for name, share in unclosed.items() if share > 0}:
        name = max(worst, key=worst.__getitem__)
        yield (
            f"reasoning that never ended in {counted(len(worst), 'task')} (most: {name}, {worst[name]:.1%}):"
            " raise max_gen_toks"
        )
    if unknown := note_of_traces(results.values()):
        yield unknown
    for key, what in _CUT.items():
        counts = {name: item["cut"].get(key, 0) for name, item in results.items()}
        if total := sum(counts.values()):
            most = max(counts, key=counts.__getitem__)
            yield f"{what}: {total:,} (most: {most}, {counts[most]:,})"
    loaded = {name: item["loaded"] for name, item in results.items()}
    held = [of["n_held_out"] for of in loaded.values() if of["n_held_out"] and "examples" not in of]
    if held:
        tasks = counted(len(held), "task")
        yield f"no few-shot pool in {tasks}: {max(held)} test rows of each serve as shots"
    of_own = {name: registry().datasets.get(of["task"]) for name, of in loaded.items()}
    if added := [name for name, dataset in of_own.items() if dataset and dataset.joined_later]:
        what = f"datasets that no suite's paper has: {', '.join(added)}"
        yield f"{what}; groups of their suite leave them out of the mean"
    for name, of in loaded.items():
        if excluded := of.get("excluded"):
            yield f"{name}: {row_counts_words(excluded, of['n_source'])}"
        if n := of.get("n_faulty"):
            yield f"{name}: {n:,} of {n + of['n_test']:,} rows left out as faulty (--drop-faulty)"
        if n := of.get("n_overlap"):
            yield f"{name}: {counted(n, 'row')} of the few-shot pool shared text with test rows"
        if n := of.get("n_alike"):
            yield f"{name}: {counted(n, 'row')} left out, since a later one asks the same, as the suite does"
        if recovered := of.get("recovered"):
            yield f"{name}: {recovered[0]:,} of {recovered[1]:,} official rows recovered"
    if rebuilt := [name for name, of in loaded.items() if of["rebuilt"]]:
        yield f"test rows rebuilt from the source, not the suite's own: {', '.join(rebuilt)}"


def waits_for_judges(results: Mapping[str, Any]) -> list[str]:
    """Tasks whose answers are there, and whose score judges have to give."""
    return [
        name
        for name, item in results.items()
        if "score" not in item["metrics"] and item["config"].get("judge") is not None
    ]


# ---------------------------------------------------------------------- what is left to do


def say_end(
    run: Run,
    n_missing: int,
    *,
    again: Sequence[str] | None,
    cause: MedtasksError | None = None,
    how: str = "the same command goes on",
) -> int:
    """Name what failed, what must be known and what comes next; returns the exit code.

    `again`: arguments of the command that goes on; None where another command does. `how` the user gets what
    is missing.
    """
    lines = []
    for name, entry in run.manifest.tasks.items():
        if entry.state is TaskState.FAILED:
            lines.append(f"{name}: {entry.error.splitlines()[0]} (details in {run.files.manifest})")
        elif entry.state in _UNFINISHED:
            n = sum(entry.faults.values())
            faults = f"{entry.reason} ({counted(n, 'request')} without an answer)"
            lines.append(f"{name}: {faults if n else 'not asked to the end'}; {how}")
    more = len(lines[_NAMED:])
    named = lines[:_NAMED] + [f"{counted(more, 'more task')}, in {run.files.manifest}"] * bool(more)
    for line in (*named, *([cause] if cause else [])):
        say(f"✗ {line}")
    results = run.results()
    for note in (*run.manifest.notes, *_lost(run, results)):
        say(f"note: {note}")
    served = [(record.get("conditions") or {}).get("served") or () for record in results.values()]
    if other := served_note(run.manifest.identity.model_name, served):
        say(f"! {other}")
    say_sent(run.folder)
    say(f"results: {run.files.results_file}")
    say_next(*_next(run, results, again if lines or cause else None))
    return 1 if lines or n_missing or cause else 0


def say_sent(folder: Path) -> None:
    """Say which hosts other than this machine got text that is not open."""
    for (host, way), names in closed_text_in(folder, RunFolder(folder).judgements).items():
        say(f"sent to {host} ({way}): text that is not open, of {some(names)}")


def _lost(run: Run, results: Mapping[str, TaskRecord]) -> Iterator[str]:
    """What could not be computed of answers that are there: processes or data of scoring were missing."""
    again = f"`medtasks rescore {shlex.quote(str(run.folder))}`"
    bare, less = list[str](), 0
    for name, record in results.items():
        metrics, loaded = record["metrics"], record["loaded"]
        shares = (value for metric, value in metrics.items() if metric.endswith("_not_decided"))
        if n := round(max(shares, default=0.0) * record["n"]):
            what = f"{counted(n, 'answer')} not decided and counted as wrong"
            yield f"{name}: {what}: a process of scoring failed twice; {again} tries them again"
        known = run.registry.tasks.get(name)
        gold, bleu = loaded["n_without_gold"] < loaded["n_test"], any(m.startswith("bleu_4") for m in metrics)
        if known and gold and not bleu and needs_punkt(known[0]):
            bare += [name] if "score" not in metrics else []
            less += "score" in metrics
    parts = [f"no score in {some(bare)}"] * bool(bare)
    parts += [f"no bleu_4 in {counted(less, 'task')}"] * bool(less)
    if parts:
        what = f"NLTK's Punkt data is not on this machine: {', '.join(parts)}"
        yield f"{what}; {PUNKT_REMEDY}, then {again}"


def _next(run: Run, results: Mapping[str, TaskRecord], again: Sequence[str] | None) -> Iterator[str]:
    if again is not None:
        yield shown_command(["run", *again])
    folder = shlex.quote(str(run.folder))
    juries: dict[str, dict[str, None]] = {}
    for name in waits_for_judges(results):
        if name in run.registry.tasks:
            dataset, strategy = run.registry.tasks[name]
            waiting = juries.setdefault(dataset.suite.jury or _JURY, {})
            waiting[dataset.suite.id + SUFFIX[strategy]] = None
    for jury, suites in juries.items():  # where several juries wait, suites are named
        only = f" --tasks {','.join(suites)}" if len(juries) > 1 else ""
        yield f"medtasks judge {folder} --jury {jury}{only} --dry-run"
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


def shown_command(arguments: Sequence[str]) -> str:
    """A command of medtasks as it can be typed; its name alone where an argument says how to log in."""
    for argument in arguments:
        if any(map(is_secret, _NAME_OF_VALUE.findall(argument))) or dropped_secrets(argument) != argument:
            return f"medtasks {arguments[0]} … (the same command)"
    return shlex.join(["medtasks", *arguments])
