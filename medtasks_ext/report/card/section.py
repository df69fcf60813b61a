"""The section of a model card, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from medtasks_ext.registry.rights import restrictions
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.report.card.facts import SAMPLES_FILE, URL, command, group_rows, scored
from medtasks_ext.report.pictures.draw import svg
from medtasks_ext.report.pictures.spec import Value, picture, themes
from medtasks_ext.report.standing import ends_of, own_score, standings, strip_of
from medtasks_ext.results.confirmed import confirmed_words, counted
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.result_frame import result_parts
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment


# ----------------------------------------------------------------------
# Where a model stands among published ones, as a picture: SVG that a model card can hold.

_WIDTH = 720


def card_standings(entry: Entry, tasks: Registry) -> tuple[list[Json], dict[str, str]]:
    """Where an entry stands in the suites whose published models were asked the same tasks.

    Returns:
        Rows of the frame `standings`; label of each published model -> its name.
    """
    published = published_entries(tasks)
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    table = standings([entry, *published], tasks, [*strategies])
    return [row for row in table.to_pylist() if row["rivals"]], {item.label: item.model for item in published}


def picture_name(row: Json) -> str:
    """The file of its picture."""
    return f"standing-{row['suite']}-{row['strategy']}.svg"


def drawn(row: Json, model: str, models: Mapping[str, str]) -> str:
    """Each published model a line on the scale of scores, the own score with its interval above them.

    Args:
        row: of the frame `standings`.
        model: whose it is.
        models: label of a published model -> its name.

    Raises:
        MedtasksError: the extra `plots` is not installed.
    """
    scores, mine = sorted(rival["score"] for rival in row["rivals"]), own_score(row)
    first, middle, third = (scores[round(share * (len(scores) - 1))] for share in (0.25, 0.5, 0.75))
    place = (mine - scores[0]) / (scores[-1] - scores[0] or 1)
    colours = themes()["light"]
    rows: list[dict[str, Value]] = [
        {
            "role": "peer" if rival["entry"] in row["peers"] else "rival",
            "value": rival["score"],
            "tip": f"{models[rival['entry']]}\n{rival['score']:.3f}",
        }
        for rival in row["rivals"]
    ]
    name, (low, high) = f"{model} {mine:.2f}", ends_of(row) or (None, None)
    rows.append({"role": "own", "value": mine, "low": low, "high": high, "name": name, "tip": name})
    spec = picture(
        "places",
        rows,
        width=_WIDTH,
        quarters=[{"q1": first, "q2": middle, "q3": third}],
        align="left" if place < 0.25 else "right" if place > 0.75 else "center",
        own_fill=colours["own"] if row["placed"] else colours["ground"],
    )
    return svg(spec)


#: Columns of the frame `results` that the table of tasks shows.
_FIGURES = (
    *("dataset", "strategy", "value", "interval_low", "interval_high", "n", "valid", "data", "rebuilt"),
    "prompt",
)
SAMPLE_NOTE = (
    "> **SAMPLE DATA.** The rows behind these figures are synthetic. They show what a card looks like and "
    "say nothing about the model. Do not publish them."
)


def card_section(
    entry: Entry,
    tasks: Registry,
    left_out: Mapping[str, str],
    standings: Sequence[Json],
    *,
    pictures: bool,
) -> str:
    """The section: where the model stands, suites, what to know, then every task and how to repeat it.

    Args:
        entry: of one run.
        left_out: tasks whose scores stand on a part -> what is missing of them.
        standings: among published models, rows of the frame.
        pictures: whether files of their pictures lie beside it; else they are strips of characters.
    """
    lines = [f"## Medical evaluation ({entry.model})", ""]
    if entry.sample:
        lines += [SAMPLE_NOTE, ""]
    for item in standings:
        shown = f"![{item['sentence']}]({picture_name(item)})" if pictures else f"```\n{strip_of(item)}\n```"
        lines += [f"**{item['sentence']}.**", "", shown, "", *(f"- {line}" for line in item["remarks"]), ""]
    if warnings := _warnings(entry):
        lines += ["> **Read with care**", ">", *(f"> - {line}" for line in warnings), ""]
    lines += [
        f"Evaluated with [medtasks]({URL}) {__version__} on lm-evaluation-harness. A suite's score is the "
        "mean over its tasks, on 0–1; in brackets the 95 % interval (1,000 bootstrap resamples of the "
        f"documents). {_asked(scored(entry))}",
        "",
    ]
    lines += _table(
        ("suite", "strategy", "score [95 % interval]", "tasks scored", "documents", "readable answers"),
        [
            (
                tasks.suites[row["suite"]].title + (" (partial)" if row["partial"] else ""),
                strategy_title(row["strategy"]),
                _score(row, "score"),
                f"{row['tasks_scored']}/{row['tasks']}",
                f"{row['documents']:,}",
                _share(row["valid"]),
            )
            for row in group_rows(entry, tasks)
            if row["axis"] == "suite"
        ],
    )
    lines += ["", "### What to know", "", *(f"- {line}" for line in _remarks(entry, left_out))]
    lines += ["", "<details><summary>Every task</summary>", ""]
    lines += _table(
        ("task", "strategy", "metric", "score [95 % interval]", "documents", "readable", "data", "prompt"),
        [
            (
                f"`{row['dataset']}`",
                strategy_title(row["strategy"]),
                tasks.datasets[row["dataset"]].metadata.primary_metric,
                _score(row, "value"),
                f"{row['n']:,}",
                _share(row["valid"]),
                row["data"] + (", rebuilt" if row["rebuilt"] else ""),
                row["prompt"],
            )
            for row in _results(entry, tasks)
        ],
    )
    lines += ["", "</details>"]
    if line := command(entry.manifest):
        lines += ["", "### How to repeat it", "", "```", line, "```", ""]
        lines += ["`medtasks-manifest.json` holds versions, revisions, prompt hashes and seeds.", ""]
        if SAMPLES_FILE in line:
            lines += [f"`{SAMPLES_FILE}` holds, for each task, the places under its `chosen` there.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _results(entry: Entry, tasks: Registry) -> list[Json]:
    """Rows of the frame `results` with a score, in order of suite, dataset and strategy."""
    rows = result_parts([entry], tasks, metrics=("score",)).rows(_FIGURES)
    scores = [row for row in rows if row["value"] is not None]
    return sorted(scores, key=lambda row: (row["dataset"], strategy_order(row["strategy"])))


def _score(row: Json, name: str) -> str:
    """A score of a row with its interval, if it has one."""
    low, high = row["interval_low"], row["interval_high"]
    return f"{row[name]:.4f}" + ("" if low is None else f" [{low:.3f}, {high:.3f}]")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [line(head), "|" + " --- |" * len(head), *map(line, rows)]


def _asked(items: Sequence[Experiment]) -> str:
    """In whose words."""
    official = sum(item.facts.wording == "official" for item in items)
    states = confirmed_words(counted(item.confirmed.state for item in items), len(items))
    return f"{official} of {len(items)} tasks were asked in their suite's own words; {states}."


#: share of readable answers below which a score says more of the format than of the medicine
_READABLE = 0.5
_MOST_NAMED = 8


def _warnings(entry: Entry) -> list[str]:
    """Scores that a reader would misread."""
    unread = [item for item in scored(entry) if item.metrics.get("valid", 1.0) < _READABLE]
    lines = [
        f"`{item.dataset.id}` ({strategy_title(item.strategy)}): {item.metrics['valid']:.1%} of the answers "
        f"could be read; the score {item.score:.4f} is that of the suite's rule for the others."
        for item in sorted(unread, key=lambda item: item.metrics["valid"])
    ]
    if len(lines) > _MOST_NAMED:
        lines[_MOST_NAMED:] = [
            f"{len(lines) - _MOST_NAMED} more tasks have fewer than half of their answers read."
        ]
    return lines


def _remarks(entry: Entry, left_out: Mapping[str, str]) -> list[str]:
    """What a reader must know beside the scores."""
    known = ("chat template", "instruction in", "shots as turns", "decoding", "model arguments", "documents")
    lines = [
        "Settings: "
        + "; ".join(f"{name}: {entry.words[name]}" for name in known if entry.words.get(name))
        + "."
    ]
    experiments = scored(entry)
    for added in dict.fromkeys(
        item.words["asked_with"] for item in experiments if "asked_with" in item.words
    ):
        lines.append(f"Asked with {added}.")
    for jury in dict.fromkeys(item.words["jury"] for item in experiments if "jury" in item.words):
        lines.append(f"Judged by {jury}; other judges give other scores.")
    for name, words in left_out.items():
        lines.append(f"Left out, since its score stands on a part: {name} ({words}).")
    for item in experiments:
        if not item.coverage.whole and not entry.sample:
            lines.append(f"The score of {item.task} stands on a part: {item.coverage.words}.")
    if own := sum(item.words["prompt"].startswith("own") for item in experiments):
        lines.append(
            f"{own} of {len(experiments)} experiments use medtasks' own wording of the instructions, the "
            "others the suites' official wording; scores from other prompts are other scores."
        )
    asked = {} if entry.sample else {item.dataset.id: item.dataset.metadata.licence for item in experiments}
    if terms := restrictions(asked.items()):
        lines.append(f"{terms[0].upper()}{terms[1:]}.")
    if rebuilt := sum(item.rebuilt for item in experiments):
        lines.append(f"The rows of {rebuilt} experiments are rebuilt from the source, not the suite's own.")
    unclosed = [item for item in experiments if item.metrics.get("unclosed_reasoning", 0) > 0]
    if unclosed:
        lines.append(f"In {len(unclosed)} experiments some reasoning never ended within the token budget.")
    for item in experiments:
        if any(value > 0 for name, value in item.metrics.items() if name.endswith("_not_decided")):
            lines.append(f"Some answers to {item.task} count as wrong because processes of scoring failed.")
    if cut := sum(item.cut.get("answers_cut", 0) for item in experiments):
        lines.append(f"{cut:,} answer{' fills' if cut == 1 else 's fill'} the token budget.")
    if shortened := sum(item.cut.get("inputs_cut", 0) for item in experiments):
        lines.append(f"{shortened:,} input{'' if shortened == 1 else 's'} lost a part, to fit the context.")
    if fewer := sum(item.cut.get("shots_dropped", 0) for item in experiments):
        carry = "prompt carries" if fewer == 1 else "prompts carry"
        lines.append(f"{fewer:,} {carry} fewer examples than asked for, to fit the context.")
    lines += entry.notes
    if entry.root:
        lines.append(f"The run's folder has the root `{entry.root}` (`medtasks verify RUN --root`).")
    lines.append("The score of a benchmark is no evidence that a model is safe in the care of patients.")
    return lines
