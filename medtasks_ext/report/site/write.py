"""The files of the leaderboard: a front page, and a page for each suite, model and dataset."""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import replaced_folder, write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.offline_page import data_in_page, title_in_page
from medtasks_ext.registry.columns import cited_by, entries_of
from medtasks_ext.report import page as report_page
from medtasks_ext.report.pictures.spec import FONT, kinds, licences, themes, vendored
from medtasks_ext.report.site.boards import front_board, scores_of, suite_board
from medtasks_ext.report.site.datasets import dataset_pages, index
from medtasks_ext.report.site.models import model_page
from medtasks_ext.report.submissions.check import undetected
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.site.gather import Site

MARK = "medtasks-site.json"
_HERE, _REPORT = Path(__file__).parent / "page", Path(report_page.__file__).parent
#: Of the report and of this site, in the order in which they build on each other.
_OWN = ("marks", "board", "facts", "front", "model", "dataset", "about", "main")
_SCRIPTS = [_HERE / "state.js", *(_REPORT / f"{name}.js" for name in report_page.SHARED)]
_SCRIPTS += [_HERE / f"{name}.js" for name in _OWN]
#: Characters of data beyond which a page holds it packed.
_LONGEST_PLAIN = 30_000


def write_site(folder: Path, site: Site) -> None:
    """Files of an earlier site are replaced as a whole."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        remedy = "give another folder to -o"
        raise MedtasksError("holds files that no site wrote", where=folder, remedy=remedy)
    with replaced_folder(folder) as made:
        _write(made, site)


def _write(folder: Path, site: Site) -> None:
    scores = scores_of(site)
    pages = {"index.html": {**front_board(scores), "kind": "front", "title": "Models"}}
    for suite in [suite for suite in site.tasks.suites.values() if suite.id in scores.whole]:
        about = {"kind": "board", "title": suite.title, "about": suite.mean_rule}
        pages[f"{suite.id}.html"] = suite_board(scores, suite.id) | about
    datasets = dataset_pages(scores)
    pages["datasets.html"] = index(datasets)
    pages["about.html"] = {**_about(site), "kind": "about", "title": "About and data"}
    n = sum(line.published for line in site.lines)
    frame = {
        "made": time.strftime("%Y-%m-%d"),
        "version": __version__,
        "published": n,
        "submitted": len(site.lines) - n,
        "links": [[name, page["title"]] for name, page in pages.items()],
    }
    models = {f"models/{name}": model_page(scores, lines) for name, lines in site.models.items()}
    of_data = {f"datasets/{name}.html": page for name, page in datasets.items()}
    for name, content in {**pages, **models, **of_data}.items():
        put(folder, name, frame, content)
    _write_assets(folder / "assets")
    # GitHub Pages would leave out what begins with an underscore
    (folder / ".nojekyll").touch()
    write_json(folder / MARK, {"medtasks": __version__, "made": frame["made"], "files": [*pages]})


def _about(site: Site) -> Json:
    suites = list(site.tasks.suites.values())
    entries = entries_of([], suites)
    found = [entries[key] for key in cited_by([], suites) if key in entries]
    return {
        "references": [[entry.reference, entry.link or "", entry.text] for entry in found],
        "undetected": undetected(),
        "left_out": [[fault.where, fault.what] for fault in site.faults],
    }


def _write_assets(folder: Path) -> None:
    folder.mkdir()
    pictures = json.dumps({"kinds": kinds(), "themes": themes(), "font": FONT}, separators=(",", ":"))
    first = f'"use strict";\nconst PICTURES = {pictures};'
    write_text(folder / "site.js", "\n".join([first, *map(_text, _SCRIPTS)]))
    write_text(folder / "site.css", "\n".join(map(_text, (_REPORT / "report.css", _HERE / "site.css"))))
    write_text(folder / "pictures.js", "\n".join(map(_text, vendored())))
    write_text(folder / "pictures.LICENSES.txt", licences())


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def put(folder: Path, name: str, frame: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    home = "../" * name.count("/")
    said = data_in_page({**frame, **content, "home": home, "page": name})
    packed = len(said) > _LONGEST_PLAIN
    page = Template(_text(_HERE / "site.html")).substitute(
        home=home,
        title=title_in_page(f"{content['title']} · medtasks"),
        form=" data-packed" if packed else "",
        data=b64encode(gzip.compress(said.encode(), mtime=0)).decode() if packed else said,
    )
    write_text(folder / name, page)
