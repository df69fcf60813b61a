"""The papers' figures in these pages: python docs/pictures/papers.py (needs the extra `plots`)."""

from __future__ import annotations

from pathlib import Path

from medtasks_ext.registry import registry
from medtasks_ext.report.pictures.draw import svg
from medtasks_lab.atlas.cells import Data
from medtasks_lab.atlas.models import published_models
from medtasks_lab.atlas.picture import drawn
from medtasks_lab.atlas.spec import atlases
from medtasks_lab.atlas.statistics import cells_of

#: file -> suite, block of `medtasks reproduce`, and which of its pictures
PICTURES = {
    "size": ("bridge", "fig3b", "size"),
    "map": ("bridge", "map", ""),
    "win_rates": ("medhelm", "table1", ""),
    "cost": ("medhelm", "fig5", ""),
    "dimensions": ("mlb", "table4", ""),
}


def main() -> None:
    """Draw each picture beside this script."""
    tasks = registry()
    for file, (suite, block, name) in PICTURES.items():
        item = atlases()[suite].items[block]
        [how] = [one for one in item.pictures if one.name == name]
        data = Data(tasks, tasks.suites[suite], published_models(tasks, tasks.suites[suite]))
        [(_, spec)] = drawn(item, how, cells_of(item, data))
        Path(__file__).with_name(f"{file}.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
