"""The papers' figures in these pages: python docs/pictures/papers.py (needs the extra `plots`)."""

from __future__ import annotations

from pathlib import Path

from medtasks_ext.registry import registry
from medtasks_ext.report.pictures import svg
from medtasks_ext.studies.figures import Data, cells_of, figures_of_suites
from medtasks_ext.studies.pictures import drawn

#: file -> suite, block of `medtasks study reproduce`, and which of its pictures
PICTURES = {
    "size": ("bridge", "fig3b", "size"),
    "win_rates": ("medhelm", "table1", ""),
    "cost": ("medhelm", "fig5", ""),
    "dimensions": ("mlb", "table4", ""),
}


def main() -> None:
    """Draw each picture beside this script."""
    tasks = registry()
    for file, (suite, block, name) in PICTURES.items():
        item = figures_of_suites()[suite].items[block]
        [how] = [one for one in item.pictures if one.name == name]
        image = svg(*drawn(item, how, cells_of(item, Data.of(tasks, tasks.suites[suite]))))
        Path(__file__).with_name(f"{file}.svg").write_text(image, encoding="utf-8")


if __name__ == "__main__":
    main()
