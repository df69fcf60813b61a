"""Where a model stands among published ones, as a picture: SVG that a model card can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.report.pictures.draw import svg
from medtasks_ext.report.pictures.spec import Value, picture, themes
from medtasks_ext.report.standing import Standing, standings
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry

_WIDTH = 720


def card_standings(entry: Entry, tasks: Registry) -> list[Standing]:
    """Where an entry stands in the suites whose published models were asked the same tasks."""
    published = published_entries(tasks)
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    found = standings([entry, *published], tasks, [*strategies])
    return [item for item in found if item.rivals]


def picture_name(item: Standing) -> str:
    """The file of its picture."""
    return f"standing-{item.suite.id}-{item.strategy}.svg"


def drawn(item: Standing) -> str:
    """Each published model a line on the scale of scores, the own score with its interval above them.

    Raises:
        MedtasksError: the extra `plots` is not installed.
    """
    scores = sorted(rival.score for rival in item.rivals)
    first, middle, third = (scores[round(share * (len(scores) - 1))] for share in (0.25, 0.5, 0.75))
    place = (item.marked - scores[0]) / (scores[-1] - scores[0] or 1)
    colours, peers = themes()["light"], {id(rival) for rival in item.peers}
    rows: list[dict[str, Value]] = [
        {
            "role": "peer" if id(rival) in peers else "rival",
            "value": rival.score,
            "tip": f"{rival.entry.model}\n{rival.score:.3f}",
        }
        for rival in item.rivals
    ]
    low, high = item.ends or (None, None)
    name = f"{item.entry.model} {item.marked:.2f}"
    rows.append({"role": "own", "value": item.marked, "low": low, "high": high, "name": name, "tip": name})
    spec = picture(
        "places",
        rows,
        width=_WIDTH,
        quarters=[{"q1": first, "q2": middle, "q3": third}],
        align="left" if place < 0.25 else "right" if place > 0.75 else "center",
        own_fill=colours["own"] if item.placed else colours["ground"],
    )
    return svg(spec)
