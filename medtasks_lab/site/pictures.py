"""The papers' tables and pictures as pages: what each shows, how far it comes out, its figures as CSV."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from medtasks_lab.atlas.cells import Data
from medtasks_lab.atlas.models import published_models
from medtasks_lab.atlas.picture import Drawing, drawn
from medtasks_lab.atlas.spec import atlases
from medtasks_lab.atlas.statistics import cells_of, checked
from medtasks_lab.atlas.write import best, cells_csv, check_words, decimals, text, wide
from medtasks_lab.site.page_files import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_lab.atlas.cells import Cell
    from medtasks_lab.atlas.spec import AtlasItem

#: The item whose picture the index opens with.
_FIRST = "map"


@dataclass(frozen=True)
class Block:
    """A table, figure or set of claims of a paper."""

    suite: str
    suite_title: str
    name: str
    item: AtlasItem
    cells: list[Cell]

    @property
    def key(self) -> str:
        """As `medtasks reproduce` names it."""
        return f"{self.suite}:{self.name}"

    @property
    def file(self) -> str:
        """Of its page and its table, without the ending."""
        return f"pictures/{file_name(self.key)}"

    @cached_property
    def drawings(self) -> list[Drawing]:
        """Its pictures; none where these are of own runs."""
        return [one for how in self.item.pictures for _, one in drawn(self.item, how, self.cells)]

    @property
    def csv(self) -> str:
        """All figures, printed and recomputed."""
        return cells_csv(self.cells)

    def page(self) -> Json:
        """What its page holds."""
        columns, rows = wide(self.cells)
        digits = {column: decimals(best(found.get(column)) for found in rows.values()) for column in columns}
        return {
            "kind": "picture",
            "title": self.item.title,
            "key": self.key,
            "suite": [self.suite, self.suite_title],
            "source": self.item.source,
            "state": self.item.state,
            "check": check_words(checked(self.item, self.cells), self.cells) if self.cells else "",
            "note": self.item.note,
            "csv": f"{self.file}.csv",
            "wanted": len(self.item.pictures),
            "drawings": [_drawing(one) for one in self.drawings],
            "columns": columns,
            "rows": [
                [name, *(text(best(found.get(column)), digits[column]) for column in columns)]
                for name, found in rows.items()
            ],
        }


@lru_cache(maxsize=1)
def blocks(tasks: Registry) -> tuple[Block, ...]:
    """All blocks of the papers of known suites, worked out of published data alone."""
    return tuple(_blocks(tasks))


def _blocks(tasks: Registry) -> Iterator[Block]:
    for suite, atlas in atlases().items():
        if suite not in tasks.suites:
            continue
        of_suite = tasks.suites[suite]
        data = Data(tasks, of_suite, published_models(tasks, of_suite))
        for name, item in atlas.items.items():
            yield Block(suite, of_suite.title, name, item, cells_of(item, data))


def index(found: Sequence[Block], tasks: Registry) -> Json:
    """The page that lists them."""
    first = next((one for one in found if one.name == _FIRST), None)
    return {
        "kind": "pictures",
        "title": "Tables and pictures of the papers",
        "first": [first.file, *first.drawings[0].words["caption"], _drawing(first.drawings[0])]
        if first
        else None,
        "blocks": [
            [
                one.suite_title,
                one.item.title,
                one.item.source,
                f"{one.file}.html",
                one.item.state,
                len(one.drawings),
                len(one.item.pictures),
            ]
            for one in found
        ],
        "left_out": [
            [tasks.suites[suite].title, name, reason]
            for suite, atlas in atlases().items()
            if suite in tasks.suites
            for name, reason in atlas.left_out.items()
        ],
    }


def _drawing(one: Drawing) -> Json:
    """Kind, rows and words; colours are those of the page's theme."""
    return {
        "kind": one.kind,
        "says": one.says,
        "rows": one.rows,
        "words": {name: value for name, value in one.words.items() if name not in ("colours", "shapes")},
    }
