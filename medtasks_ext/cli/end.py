"""The end of a run: its table, what must be known of it, what is unfinished, and what comes next."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.cli.report_tables import print_run
from medtasks_ext.cli.tables import console
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.data.fetch import PUNKT_REMEDY, needs_punkt
from medtasks_ext.errors import some
from medtasks_ext.prompts.documents import row_counts_words
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.run.store import closed_text_in
from medtasks_ext.runs.conditions import served_note
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import TaskState
from medtasks_ext.runs.records import note_of_traces
from medtasks_ext.runs.settings import dropped_secrets, is_secret

if TYPE_CHECKING:
    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.records import TaskRecord

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
#: What is counted, and what is said of one and of several.
_CUT = {
    "answers_filtered": (
        "answer",
        "was filtered by the server: the model gave none there",
        "were filtered by the server: the model gave none there",
    ),
    "shots_dropped": (
        "prompt",
        "carries fewer shots than asked for, to fit the context",
        "carry fewer shots than asked for, to fit the context",
    ),
    "inputs_cut": ("prompt", "was truncated to fit the context", "were truncated to fit the context"),
}


# ---------------------------------------------------------------------- the first screen


def print_scores(run: Run, results: Mapping[str, TaskRecord]) -> None:
    """The first screen of the run, and what a reader must know beside it."""
    if results:
        print_run(run.folder)
    said = [*remarks(results)]
    if (shots := run.settings.num_fewshot) is not None:
        said.append(f"{counted(shots, 'example')} in each prompt (--num_fewshot)")
    said += [*_counts(run, results, len(waits_for_judges(results))), *_of_the_engine(results)]
    for line in said:
        console().print(line, markup=False)


def _of_the_engine(results: Mapping[str, TaskRecord]) -> Iterator[str]:
    """Tokens of prompts that the engine did not read anew, by its own counts, and answers that it ended."""
    counted_here = [tokens for item in results.values() if (tokens := item["tokens"]) and "cached" in tokens]
    if total := sum(tokens["input"] for tokens in counted_here):
        share = sum(tokens["cached"] for tokens in counted_here) / total
        of = "" if len(counted_here) == len(results) else f" of {counted(len(counted_here), 'task')}"
        yield f"prefix cache: {share:.0%} of {total:,} prompt tokens{of}"
    if n := sum(item["cut"].get("answers_looped", 0) for item in results.values()):
        yield f"{counted(n, 'answer')} ended since they repeated themselves (repetition_detection)"


def _counts(run: Run, results: Mapping[str, TaskRecord], judged: int) -> Iterator[str]:
    entries = run.manifest.tasks
    scored = sum("score" in item["metrics"] for item in results.values())
    blind = sum(
        "score" not in item["metrics"] and item["loaded"]["n_without_gold"] == item["loaded"]["n_test"]
        for item in results.values()
    )
    states = Counter(entry.state for entry in entries.values())
    parts = [
        (judged, "to be judged"),
        (blind, "without gold"),
        (len(results) - scored - judged - blind, "not computed"),
        (states[TaskState.MISSING], "without data"),
        (states[TaskState.FAILED], "failed"),
        (sum(states[state] for state in _UNFINISHED), "unfinished"),
    ]
    if others := ", ".join(f"{n:,} {what}" for n, what in parts if n > 0):
        yield f"{scored:,} of {counted(len(entries), 'task')} scored, {others}"


# ---------------------------------------------------------------------- what must be known of it


def remarks(results: Mapping[str, Any]) -> Iterator[str]:
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
    for key, (noun, one, several) in _CUT.items():
        counts = {name: item["cut"].get(key, 0) for name, item in results.items()}
        if total := sum(counts.values()):
            most = max(counts, key=counts.__getitem__)
            text = one if total == 1 else several
            yield f"{counted(total, noun)} {text} (most: {most}, {counts[most]:,})"
    loaded = {name: item["loaded"] for name, item in results.items()}
    held = [of["n_held_out"] for of in loaded.values() if of["n_held_out"] and "examples" not in of]
    if held:
        tasks = counted(len(held), "task")
        yield f"no few-shot pool in {tasks}: {max(held)} test rows of each serve as shots"
    yield from (f"{name}: {words}" for name, of in loaded.items() if (words := _pool(of)))
    drafts = {name: known[0].metadata.draft for name in results if (known := registry().asked(name))}
    yield from (f"{name} is a draft, in no group: {why}" for name, why in drafts.items() if why)
    datasets = registry().datasets
    if added := [
        name for name, of in loaded.items() if (own := datasets.get(of["task"])) and own.joined_later
    ]:
        yield (
            f"datasets that no suite's paper has: {', '.join(added)}; groups of their suite leave them out of"
            " the mean"
        )
    for name, of in loaded.items():
        if excluded := of.get("excluded"):
            yield f"{name}: {row_counts_words(excluded, of['n_source'])}"
        if faulty := of.get("n_faulty"):
            yield f"{name}: {faulty:,} of {faulty + of['n_test']:,} rows left out as faulty (--drop-faulty)"
        if alike := of.get("n_alike"):
            rows = counted(alike, "row")
            yield f"{name}: {rows} left out, since a later one asks the same, as the suite does"
        if recovered := of.get("recovered"):
            yield f"{name}: {recovered[0]:,} of {recovered[1]:,} official rows recovered"
    if rebuilt := [name for name, of in loaded.items() if of["rebuilt"]]:
        yield f"test rows rebuilt from the source, not the suite's own: {', '.join(rebuilt)}"


def _pool(loaded: LoadedRecord) -> str:
    shown = loaded.get("examples")
    whose = "examples of the authors" if shown == "authors" else "examples, by their name the authors'"
    said = []
    if n := loaded.get("n_overlap"):
        rows = f"{counted(n, 'row')} of the few-shot pool shared text with test rows"
        said.append(f"{rows}, and stayed: {whose}" if shown else f"{rows}, and left it")
    if shown and (n := loaded["n_held_out"]):
        said.append(f"{counted(n, 'test row')} not asked: among the {whose}")
    return "; ".join(said)


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
    how: str = SAME_COMMAND,
) -> int:
    """Name what failed, what must be known and what comes next; returns the exit code.

    `again`: arguments of the command that goes on; None where another command does. `how` the user gets what
    is missing.
    """
    failed, unfinished = [], []
    for name, entry in run.manifest.tasks.items():
        if entry.state is TaskState.FAILED:
            failed.append(f"{name}: {entry.error.splitlines()[0]} (details in {run.files.manifest})")
        elif entry.state in _UNFINISHED:
            n = sum(entry.faults.values())
            lack = f"{entry.reason} ({counted(n, 'request')} without an answer)"
            unfinished.append(f"{name}: {lack if n else 'not asked to the end'}; {how}")
    rest = f"failed, too (details in {run.files.manifest})"
    for lines, too in ((failed, rest), (unfinished, "unfinished, too")):
        shown = lines if len(lines) <= _NAMED + 1 else lines[:_NAMED]
        for line in shown:
            say(f"✗ {line}")
        if more := len(lines) - len(shown):
            say(f"✗ {counted(more, 'more task')} {too}")
    if cause is not None:
        say(f"✗ {cause}")
    results = run.results()
    for note in (*run.manifest.notes, *_not_decided(run, results), *_without_punkt(run, results)):
        say(f"note: {note}")
    conditions = [record["conditions"] for record in results.values() if record.get("conditions")]
    served = [item.get("served") or () for item in conditions]
    if other := served_note(run.manifest.identity.asked_name, served):
        say(f"! {other}")
    say_sent(run.folder)
    say(f"results: {run.files.results_file}")
    say_next(*_next(run, results, again if failed or unfinished or cause else None))
    return 1 if failed or unfinished or n_missing or cause else 0


def say_sent(folder: Path) -> None:
    """Say which hosts other than this machine got text that is not open."""
    for (host, way), names in closed_text_in(folder, RunFolder(folder).judgements).items():
        say(f"sent to {host} ({way}): text that is not open, of {some(names)}")


def _not_decided(run: Run, results: Mapping[str, TaskRecord]) -> Iterator[str]:
    for name, record in results.items():
        metrics = record.get("metrics", {})
        shares = (value for metric, value in metrics.items() if metric.endswith(_NOT_DECIDED))
        if n := round(max(shares, default=0.0) * record["n"]):
            yield (
                f"{name}: {counted(n, 'answer')} not decided and counted as wrong: a process of scoring "
                f"failed twice; `medtasks rescore {run.folder}` tries them again"
            )


def _without_punkt(run: Run, results: Mapping[str, TaskRecord]) -> Iterator[str]:
    """Tasks whose texts could not be divided into sentences or words, and so have no score or no BLEU."""
    needing = {
        name: record["metrics"]
        for name, record in results.items()
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
