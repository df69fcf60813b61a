"""The files of the leaderboard: a front page, a page for each suite and model, tables for programs."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import cannot_write, write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.citations import cited_by, entries_of
from medtasks_ext.version import __version__
from medtasks_lab.site.about import example, held
from medtasks_lab.site.boards import Scores, results_board, scores_of, suite_board
from medtasks_lab.site.datasets import dataset_pages
from medtasks_lab.site.datasets import index as dataset_index
from medtasks_lab.site.front import front_board
from medtasks_lab.site.mine import mine_page
from medtasks_lab.site.models import ModelPages
from medtasks_lab.site.page_files import put, write_assets
from medtasks_lab.site.pictures import blocks
from medtasks_lab.site.pictures import index as picture_index
from medtasks_lab.site.tables import TABLES, write_tables
from medtasks_lab.submissions.flags import undetected

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_lab.site.gather import Site

MARK = "medtasks-site.json"
#: Pages of suites, by their place in the site.
_ACROSS = "across"


def write_site(folder: Path, site: Site) -> list[Path]:
    """Write all files; those of an earlier site are replaced as a whole.

    Args:
        folder: empty, or of an earlier site.

    Returns:
        The pages that people open, and the tables.

    Raises:
        MedtasksError: the folder holds what no site wrote, or cannot be written.
    """
    _check(folder)
    made = folder.with_name(f".{folder.name}.made")
    try:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        names = _write(made, site)
        if folder.exists():
            shutil.rmtree(folder)
        made.replace(folder)
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise cannot_write(folder, error) from None
    return [folder / name for name in names]


def _check(folder: Path) -> None:
    remedy = "give another folder to -o"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise MedtasksError("is no folder", where=folder, remedy=remedy)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise MedtasksError("holds files that no site wrote", where=folder, remedy=remedy)
    if (folder / MARK).is_file():
        read_json(folder / MARK)


def _write(folder: Path, site: Site) -> list[str]:
    scores = scores_of(site)
    frame = _frame(site, scores)
    write_assets(folder / "assets")
    pages = [
        put(folder, "index.html", frame, {**front_board(scores), "kind": "front", "title": "Models"}),
        put(
            folder, "results.html", frame, {**results_board(scores), "kind": "board", "title": "All results"}
        ),
    ]
    for suite, name in _suites(scores).items():
        title = "All suites" if suite is None else site.tasks.suites[suite].title
        about = "" if suite is None else site.tasks.suites[suite].mean_rule
        content = {**suite_board(scores, suite), "kind": "board", "title": title, "about": about}
        pages.append(put(folder, f"{name}.html", frame, content))
    pages.append(
        put(
            folder,
            "about.html",
            frame,
            {
                **_about(site),
                "held": held(scores),
                "example": example(scores),
                "kind": "about",
                "title": "About and data",
            },
        )
    )
    pages.append(put(folder, "mine.html", frame, mine_page(scores)))
    models = ModelPages(scores)
    for name, lines in site.models.items():
        put(folder, f"models/{name}", frame, {**models.page(lines), "kind": "model"})
    papers = blocks(site.tasks)
    pages.append(put(folder, "pictures.html", frame, picture_index(papers, site.tasks)))
    for one in papers:
        put(folder, f"{one.file}.html", frame, one.page())
        write_text(folder / f"{one.file}.csv", one.csv)
    datasets = dataset_pages(scores)
    pages.append(put(folder, "datasets.html", frame, dataset_index(datasets)))
    for dataset, content in datasets.items():
        put(folder, f"datasets/{dataset}.html", frame, content)
    tables = write_tables(folder / "data", scores)
    # GitHub Pages would leave out what begins with an underscore
    (folder / ".nojekyll").touch()
    write_json(
        folder / MARK,
        {"schema": 1, "medtasks": __version__, "made": frame["made"], "files": [*pages, *tables]},
    )
    return [*pages, *tables]


def _suites(scores: Scores) -> dict[str | None, str]:
    """Suite that has scores -> the name of its page; None: the axes on which all suites lie."""
    used = {group.suite for group in scores.groups}
    return {suite: suite or _ACROSS for suite in [*scores.site.tasks.suites, None] if suite in used}


def _frame(site: Site, scores: Scores) -> Json:
    """What every page says."""
    links = [["index.html", "Models"]]
    for suite, name in _suites(scores).items():
        links.append([f"{name}.html", "All suites" if suite is None else site.tasks.suites[suite].title])
    links.append(["datasets.html", "Datasets"])
    links.append(["pictures.html", "Papers’ pictures"])
    links.append(["mine.html", "Your results"])
    links.append(["results.html", "All results"])
    links.append(["about.html", "About and data"])
    return {
        "made": time.strftime("%Y-%m-%d"),
        "version": __version__,
        "invented": site.invented,
        "published": sum(line.published for line in site.lines),
        "submitted": sum(not line.published for line in site.lines),
        "links": links,
    }


def _about(site: Site) -> Json:
    suites = list(site.tasks.suites.values())
    cited = cited_by([], suites)
    entries = entries_of([], suites)
    found = [entries[key] for key in cited if key in entries]
    return {
        "tables": [[f"data/{name}", what] for name, what in TABLES.items()],
        "references": [[entry.reference, entry.link or "", entry.text] for entry in found],
        "rules": [[suite.title, suite.mean_rule] for suite in suites if suite.mean_rule],
        "undetected": list(undetected().values()),
        "left_out": [[fault.where, fault.what] for fault in site.faults if fault.skipped],
        "unranked": [[fault.where, fault.what] for fault in site.faults if not fault.skipped],
    }
