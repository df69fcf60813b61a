"""The section of a model card, in Markdown, and the file of details beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from medtasks_ext.errors import some
from medtasks_ext.registry.metadata import restrictions
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.card import DETAILS, SAMPLES_FILE, command, group_rows, scored
from medtasks_ext.report.groups import best_and_worst
from medtasks_ext.report.pictures import Value, picture, svg, themes
from medtasks_ext.report.standing import measured_words, quarters_of, range_words, standings, tasks_words
from medtasks_ext.results.conditions import confirmed_words, counted
from medtasks_ext.results.published import published_entries
from medtasks_ext.tables import table
from medtasks_ext.version import PACKAGE, REPOSITORY, __version__

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment


# Where a model stands among published ones, as a picture: SVG that a model card can hold.

_WIDTH = 720
_NAME = f"[medtasks]({REPOSITORY or PACKAGE})" if REPOSITORY or PACKAGE else "medtasks"
MADE_WITH = f"{_NAME} {__version__} on lm-evaluation-harness"


def card_standings(entry: Entry, tasks: Registry) -> tuple[list[Json], dict[str, str]]:
    """Rows of the frame `standings`, on suites with such models; label of a published model -> its name."""
    published = published_entries(tasks)
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    table = standings([entry, *published], tasks, [*strategies])
    return [row for row in table.to_pylist() if row["rivals"]], {item.label: item.model for item in published}


def picture_name(row: Json) -> str:
    return f"standing-{row['suite']}-{row['strategy']}.svg"


def drawn(row: Json, model: str, models: Mapping[str, str]) -> str:
    """Each published model a line on the scale of scores, the own score with its interval above them."""
    mine, colours, name = row["score_comparable"], themes()["light"], f"{model} {row['score_comparable']:.2f}"
    rivals = [(models[rival["entry"]], rival["score"]) for rival in row["rivals"]]
    scores = [score for _, score in rivals]
    place = (mine - min(scores)) / (max(scores) - min(scores) or 1)
    own: dict[str, Value] = {"role": "own", "value": mine, "low": row["low"], "high": row["high"]}
    rows = [{"role": "rival", "value": score, "tip": f"{of}\n{score:.3f}"} for of, score in rivals]
    spec = picture(
        "places",
        [*rows, {**own, "name": name, "tip": name}],
        width=_WIDTH,
        quarters=[dict(zip(("q1", "q2", "q3"), quarters_of(scores), strict=True))],
        align="left" if place < 0.25 else "right" if place > 0.75 else "center",
        own_fill=colours["own"] if row["ranked"] else colours["ground"],
    )
    return svg(spec)


SAMPLE_NOTE = (
    "> **SAMPLE DATA.** The rows behind these figures are synthetic. They show what a card looks like and "
    "say nothing about the model. Do not publish them."
)


#: Rows of the table on the card: with more, it would not fit on a screen of the hub.
_MOST_ROWS = 4
#: Groups that are named as the best ones, and as the worst.
_BEST = 2
SAFETY = "The score of a benchmark is no evidence that a model is safe in the care of patients."


def card_section(
    entry: Entry, tasks: Registry, left_out: Mapping[str, str], standings: Sequence[Json], *, pictures: bool
) -> str:
    """What stands on the card; `pictures` says whether files of these lie beside it."""
    means = group_rows(entry, tasks)
    rows = [row for row in means if row["axis"] == "suite"]
    lines = [f"## Medical evaluation ({entry.model})", ""]
    if rows:
        first = max(rows, key=lambda row: (row["tasks_scored"] / row["tasks"], row["tasks_scored"]))
        standing = next((item for item in standings if _place(item) == _place(first)), None)
        title = tasks.suites[first["suite"]].title
        measured = first["score"], first["tasks_scored"], title, first["tasks"], first["strategy"]
        ranked = standing and standing["ranked"]
        said = standing["sentence"] if standing and ranked else measured_words(*measured)
        best, worst = best_and_worst([row for row in means if _place(row) == _place(first)], _BEST)
        said_of = (("Best", best), ("Worst", worst))
        if groups := [f"{side}: {'; '.join(map(_group_words, some))}." for side, some in said_of if some]:
            lines += [" ".join(groups), ""]
    else:
        said, standing = f"{tasks_words(len(scored(entry)))} measured, each by a score of its own", None
    lines += [f"**{said}.**", "", f"{_settings(entry)} {_asked(scored(entry))}", ""]
    if standing and pictures:
        lines += [_picture(standing), ""]
    ranks = {
        _place(item): f"{range_words(*item['rank_range'])} of {len(item['rivals']) + 1}"
        if item["ranked"]
        else "not ranked"
        for item in standings
    }
    if rows:
        head: tuple[str, ...] = (*_OF_SUITES, "rank")
        cells = [(*_suite_cells(row, tasks), ranks.get(_place(row), "–")) for row in rows[:_MOST_ROWS]]
    else:  # of suites whose tasks have no mean, or of none
        head, cells = _OF_TASKS, _task_cells(entry)[:_MOST_ROWS]
    lines += [*table(head, cells), ""]
    if known := list(_known(entry, left_out, len(rows))):
        lines += [" ".join(known), ""]
    scale = "Suites' scores are means over their tasks, from 0 to 1. " if rows else ""
    lines += [
        f"{scale}{SAFETY} [{DETAILS}]({DETAILS}) has every "
        "task, means by language and kind of task, what to know, and the commands to repeat it. Made with "
        f"{MADE_WITH}."
    ]
    return "\n".join(lines) + "\n"


def card_details(
    entry: Entry, tasks: Registry, left_out: Mapping[str, str], standings: Sequence[Json], *, pictures: bool
) -> str:
    """The file beside the card: all ranks, suites, what to know, every task and how to repeat it."""
    lines = [f"# Medical evaluation of {entry.model}", ""]
    if entry.sample:
        lines += [SAMPLE_NOTE, ""]
    for item in standings:
        lines += [f"**{item['sentence']}.**", "", *([_picture(item), ""] if pictures else [])]
        lines += [*(f"- {line}" for line in item["remarks"]), ""]
    if unread := _unreadable(entry):
        named = [
            f"`{item.dataset.id}` ({strategy_title(item.strategy)}): {item.metrics['valid']:.1%}"
            for item in unread
        ]
        lines += [f"> **Read with care**: few answers could be read in {some(named, _MOST_NAMED, '; ')}.", ""]
    lines += [
        f"Evaluated with {MADE_WITH}. A suite's score is the "
        "mean over its tasks, on 0–1; in brackets the 95 % interval (1,000 bootstrap resamples of the "
        f"documents). {_asked(scored(entry))}",
        "",
    ]
    means = group_rows(entry, tasks)
    lines += table(_OF_SUITES, [_suite_cells(row, tasks) for row in means if row["axis"] == "suite"])
    lines += ["", "## What to know", "", *(f"- {line}" for line in _remarks(entry)), ""]
    what = "scored on a part of the rows or judgements"
    lines += _listed(f"left out: {what}", [f"`{name}` ({words})" for name, words in left_out.items()])
    lines += _listed(what, _on_a_part(entry))
    # tasks that are measured unlike each other have no mean, and a value with one of them would look like one
    axes = [row for row in means if row["axis"] != "suite" and tasks.suites[row["suite"]].averaged]
    cells = [(row["title"], _suite_cells(row, tasks)) for row in axes]
    if rows := [(f"{first}: {title}", *rest) for title, (first, *rest) in cells]:
        lines += [*_folded("Means by language, kind of task and other axes", table(_OF_SUITES, rows)), ""]
    lines += _folded("Every task", table(_OF_TASKS, _task_cells(entry)))
    if line := command(entry.manifest):
        lines += ["", "## How to repeat it", "", "```", line, "```", ""]
        lines += ["`medtasks-manifest.json` holds versions, revisions, prompt hashes and seeds.", ""]
        if SAMPLES_FILE in line:
            lines += [f"`{SAMPLES_FILE}` holds, for each task, the places under its `chosen` there.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _group_words(row: Json) -> str:
    ends = f"[{row['interval_low']:.2f}, {row['interval_high']:.2f}]"
    chance = "" if row["chance"] is None else f", chance {row['chance']:.2f}"
    return f"{row['title']} {row['score']:.2f} {ends} ({tasks_words(row['tasks_scored'])}{chance})"


def _place(row: Json) -> tuple[str, str]:
    return row["suite"], row["strategy"]


def _known(entry: Entry, left_out: Mapping[str, str], n_means: int) -> Iterator[str]:
    if unread := len(_unreadable(entry)):
        yield f"**Read with care: fewer than half of the answers could be read in {tasks_words(unread)}.**"
    if left_out:
        yield f"Left out: {tasks_words(len(left_out))} with a part of the rows or judgements."
    if partly := len(_on_a_part(entry)):
        yield f"Scores of {tasks_words(partly)} stand on a part of the rows or judgements."
    if n_means > _MOST_ROWS:
        yield f"The table shows {_MOST_ROWS} of {n_means} means."


def _picture(item: Json) -> str:
    return f"![{item['sentence']}]({picture_name(item)})"


def _suite_cells(row: Json, tasks: Registry) -> tuple[str, ...]:
    return (
        tasks.suites[row["suite"]].title + (" (partial)" if row["partial"] else ""),
        strategy_title(row["strategy"]),
        _score(row["score"], (row["interval_low"], row["interval_high"])),
        f"{row['tasks_scored']}/{row['tasks']}",
        f"{row['documents']:,}",
        _share(row["valid"]),
    )


#: Heads of the tables of suites and of tasks.
_OF_SUITES = ("suite", "strategy", "score [95 % interval]", "tasks", "documents", "readable")
_OF_TASKS = ("task", "strategy", "metric", "score [95 % interval]", "documents", "readable", "data", "prompt")


def _task_cells(entry: Entry) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    for item in scored(entry):
        interval = item.intervals.get("score")
        score = _score(item.score or 0.0, (interval.low, interval.high) if interval else (None, None))
        asked = (f"`{item.dataset.id}`", strategy_title(item.strategy), item.dataset.metadata.primary_metric)
        data = item.words["data"] + (", rebuilt" if item.conditions.source == "rebuilt" else "")
        shares = f"{item.n:,}", _share(item.metrics.get("valid"))
        cells.append((*asked, score, *shares, data, item.words["prompt"]))
    return cells


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _listed(what: str, names: Sequence[str]) -> list[str]:
    title = f"{tasks_words(len(names))} {what}"
    return [*_folded(title, [f"- {name}" for name in names]), ""] if names else []


def _score(score: float, ends: Sequence[float | None]) -> str:
    low, high = ends
    return f"{score:.4f}" + ("" if low is None else f" [{low:.3f}, {high:.3f}]")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _asked(items: Sequence[Experiment]) -> str:
    official = sum(item.conditions.wording == "official" for item in items)
    states = confirmed_words(counted(item.confirmed.state for item in items), len(items))
    return f"{official} of {len(items)} tasks had official prompts; {states}."


#: share of readable answers below which a score says more of the format than of the medicine
_READABLE = 0.5
_MOST_NAMED = 8


def _unreadable(entry: Entry) -> list[Experiment]:
    found = [item for item in scored(entry) if item.metrics.get("valid", 1.0) < _READABLE]
    return sorted(found, key=lambda item: item.metrics["valid"])


def _on_a_part(entry: Entry) -> list[str]:
    if entry.sample:
        return []
    return [f"`{item.task}` ({item.in_part})" for item in scored(entry) if item.in_part]


def _settings(entry: Entry) -> str:
    of_run = ("chat template", "system turn", "examples as turns", "generation settings", "model arguments")
    known = (*of_run, "documents")
    parts = [f"{name}: {entry.words[name]}" for name in known if entry.words.get(name)]
    for name, words in (("asked_with", "asked with"), ("jury", "judged by")):
        said = dict.fromkeys(item.words[name] for item in scored(entry) if name in item.words)
        parts += [f"{words} {one}" for one in said]
    return f"Conditions: {'; '.join(parts)}."


#: What a run counts of cut requests and answers.
_CUT = {
    "answers_cut": "Answers truncated at the token limit",
    "answers_filtered": "Answers filtered by the server, so that the model gave none",
    "inputs_cut": "Prompts truncated to fit the context",
    "shots_dropped": "Prompts with fewer examples than asked for, to fit the context",
}


def _remarks(entry: Entry) -> list[str]:
    items, lines = scored(entry), [_settings(entry)]
    asked = {} if entry.sample else {item.dataset.id: item.dataset.metadata.licence for item in items}
    if terms := restrictions(asked.items()):
        lines.append(f"{terms[0].upper()}{terms[1:]}.")
    if rebuilt := sum(item.conditions.source == "rebuilt" for item in items):
        lines.append(f"The rows of {tasks_words(rebuilt)} are rebuilt from the source, not the suite's own.")
    if unclosed := sum(item.metrics.get("unclosed_reasoning", 0) > 0 for item in items):
        lines.append(f"In {tasks_words(unclosed)} some reasoning never ended within the token budget.")
    for item in items:
        if any(value > 0 for name, value in item.metrics.items() if name.endswith("_not_decided")):
            lines.append(f"Some answers to {item.task} count as wrong because processes of scoring failed.")
    counts = {words: sum(item.cut.get(name, 0) for item in items) for name, words in _CUT.items()}
    lines += [f"{words}: {n:,}." for words, n in counts.items() if n]
    return [*lines, *entry.notes, SAFETY]
