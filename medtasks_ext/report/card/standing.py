"""Where a model stands among published ones, as a picture: SVG that a model card can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from medtasks_ext.report.standing import Standing, standings
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry

_WIDTH, _HEIGHT, _EDGE = 720, 96, 24
#: of both a light and a dark ground
_INK, _FAINT, _OWN = "#6b7684", "#9aa5b1", "#c2480b"


def card_standings(entry: Entry, tasks: Registry) -> list[Standing]:
    """Where an entry stands in the suites whose published models were asked the same tasks."""
    draws = {
        name: item.read_resampled() for name, item in entry.experiments.items() if item.score is not None
    }
    known = {name: values for name, values in draws.items() if values is not None}
    published = published_entries(tasks)
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    found = standings([entry, *published], [known, *({} for _ in published)], tasks, [*strategies])
    return [item for item in found if item.rivals]


def picture_name(item: Standing) -> str:
    """The file of its picture."""
    return f"standing-{item.suite.id}-{item.strategy}.svg"


def picture(item: Standing) -> str:
    """Each published model a line on the scale of scores, the own score with its interval above them."""
    scores = [rival.score for rival in item.rivals]
    ends = [item.low, item.high] if item.low is not None and item.high is not None else []
    least, most = min(*scores, item.on_alike, *ends), max(*scores, item.on_alike, *ends)

    def at(score: float) -> str:
        return f"{_EDGE + (score - least) / (most - least or 1) * (_WIDTH - 2 * _EDGE):.1f}"

    image = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_WIDTH} {_HEIGHT}",
            "role": "img",
            "font-family": "system-ui, sans-serif",
            "font-size": "13",
        },
    )
    ElementTree.SubElement(image, "title").text = item.sentence

    def line(x1: str, y1: str, x2: str, y2: str, colour: str, width: str) -> None:
        ElementTree.SubElement(
            image, "line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": colour, "stroke-width": width}
        )

    def words(x: str, y: str, anchor: str, colour: str, said: str) -> None:
        place = {"x": x, "y": y, "text-anchor": anchor, "fill": colour}
        ElementTree.SubElement(image, "text", place).text = said

    line(str(_EDGE), "60", str(_WIDTH - _EDGE), "60", _FAINT, "1")
    for score in scores:
        line(at(score), "48", at(score), "60", _FAINT, "1.5")
    if ends:
        line(at(ends[0]), "36", at(ends[1]), "36", _OWN, "3")
    own = {"cx": at(item.on_alike), "cy": "36", "r": "6", "stroke": _OWN, "stroke-width": "2"}
    ElementTree.SubElement(image, "circle", own | {"fill": _OWN if item.placed else "none"})
    side = "end" if float(at(item.on_alike)) > _WIDTH / 2 else "start"
    words(at(item.on_alike), "20", side, _OWN, f"{item.entry.model} {item.on_alike:.2f}")
    words(str(_EDGE), "80", "start", _INK, f"{least:.2f}")
    words(str(_WIDTH - _EDGE), "80", "end", _INK, f"{most:.2f}")
    words(str(_WIDTH // 2), "80", "middle", _INK, f"{len(scores)} published models, {item.suite.title}")
    return ElementTree.tostring(image, encoding="unicode") + "\n"
