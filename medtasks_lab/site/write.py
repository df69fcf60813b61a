"""The files of the leaderboard: a front page, a page for each suite and model, tables for programs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import cannot_write, write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.offline_page import offline_page
from medtasks_ext.registry.citations import cited_by, entries_of
from medtasks_ext.report import page as report_page
from medtasks_ext.report.pictures.spec import vendored
from medtasks_ext.version import __version__
from medtasks_lab.site.boards import Scores, results_board, scores_of, suite_board
from medtasks_lab.site.front import front_board
from medtasks_lab.site.models import ModelPages
from medtasks_lab.site.tables import TABLES, write_tables
from medtasks_lab.submissions.flags import undetected

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_lab.site.gather import Site

MARK = "medtasks-site.json"
_HERE = Path(__file__).parent
_REPORT = Path(report_page.__file__).parent
#: Scripts of all pages, some of them the report's, in the order in which they build on each other;
#: before the last one come those of the kind of page.
_SCRIPTS = (
    _HERE / "page" / "state.js",
    *(_REPORT / f"{name}.js" for name in ("colours", "dom", "table")),
    *(_HERE / "page" / f"{name}.js" for name in ("frame", "main")),
)
#: Kind of page -> its scripts.
_OF_KIND = {
    "front": (
        *vendored(),
        *(_REPORT / f"{name}.js" for name in ("picture", "frontier")),
        *(_HERE / "page" / f"{name}.js" for name in ("board", "front")),
    ),
    **{name: (_HERE / "page" / f"{name}.js",) for name in ("board", "model", "about")},
}
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
    pages = [
        _put(folder, "index.html", frame, {**front_board(scores), "kind": "front", "title": "Models"}),
        _put(
            folder, "results.html", frame, {**results_board(scores), "kind": "board", "title": "All results"}
        ),
    ]
    for suite, name in _suites(scores).items():
        title = "All suites" if suite is None else site.tasks.suites[suite].title
        about = "" if suite is None else site.tasks.suites[suite].mean_rule
        content = {**suite_board(scores, suite), "kind": "board", "title": title, "about": about}
        pages.append(_put(folder, f"{name}.html", frame, content))
    pages.append(
        _put(folder, "about.html", frame, {**_about(site), "kind": "about", "title": "About and data"})
    )
    models = ModelPages(scores)
    for name, lines in site.models.items():
        _put(folder, f"models/{name}", frame, {**models.page(lines), "kind": "model"})
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


def _put(folder: Path, name: str, frame: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    path = folder / name
    home = "../" * name.count("/")
    page = offline_page(
        _HERE / "page" / "site.html",
        style=[_REPORT / "report.css", _HERE / "page" / "site.css"],
        scripts=[*_SCRIPTS[:-1], *_OF_KIND[content["kind"]], _SCRIPTS[-1]],
        data={**frame, **content, "home": home, "page": name},
        language="en",
        title=f"{content['title']} · medtasks",
    )
    write_text(path, page)
    return name
