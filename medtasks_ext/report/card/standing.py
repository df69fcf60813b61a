"""Where a model stands among published ones, as a picture: SVG that a model card can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.report.pictures.draw import svg
from medtasks_ext.report.pictures.spec import Value, picture, themes
from medtasks_ext.report.standing import ends_of, own_score, standings
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry

_WIDTH = 720


def card_standings(entry: Entry, tasks: Registry) -> tuple[list[Json], dict[str, str]]:
    """Where an entry stands in the suites whose published models were asked the same tasks.

    Returns:
        Rows of the frame `standings`; label of each published model -> its name.
    """
    published = published_entries(tasks)
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    found = standings([entry, *published], tasks, [*strategies])
    return [row for row in found.to_pylist() if row["rivals"]], {item.label: item.model for item in published}


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
