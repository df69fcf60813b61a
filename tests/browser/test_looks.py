"""Every kind of page and view beside its kept picture; `make looks` takes these anew."""
# ruff: noqa: F811

import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.answers.server import Viewed, ViewServer
from tests.browser.looks import (
    KEPT,
    LOOKS,
    OWN_RUNS,
    PUBLISHED,
    VIEWER,
    compare,
    difference,
    name_of,
    pinned_browser,
    taken,
    with_look,
)  # fmt: skip
from tests.browser.test_published_report import made  # noqa: F401  (fixture)
from tests.browser.test_site import every_kind, site  # noqa: F401  (fixtures)
from tests.conftest import edited_json
from tests.report.viewed import LABEL, make_runs
from tests.run_files import samples_file

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = pinned_browser(tmp_path_factory.mktemp("looks"))
    yield started
    started.close()


def view_of(page):
    return "model" if page.startswith("models/") else page.removesuffix(".html").replace("/", "-")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_kind_of_page_looks_as_it_did(browser, site, every_kind, width, dark):
    compare(browser, {view_of(page): (site / page).as_uri() for page in every_kind}, width, dark=dark)


def test_a_small_change_of_a_page_is_seen_and_drawn(browser, site):
    page = (site / "about.html").as_uri()
    before = taken(browser, page, 768, dark=False)
    assert not difference(browser, before, taken(browser, page, 768, dark=False)).shows
    style = site / "assets" / "site.css"
    content = style.read_text()
    try:
        style.write_text(content + "\nmain h2 { margin-top: 2.2rem; }\n")
        found = difference(browser, before, taken(browser, page, 768, dark=False))
    finally:
        style.write_text(content)
    assert found.shows and found.drawn.startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_own_runs_looks_as_it_did(browser, report_file, width, dark):
    compare(browser, with_look(OWN_RUNS, report_file.as_uri(), width, dark), width, dark=dark)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_published_models_looks_as_it_did(browser, made, width, dark):
    page = (made / "report.html").as_uri()
    compare(browser, with_look(PUBLISHED, page, width, dark), width, dark=dark)


@contextmanager
def served(runs):
    server = ViewServer(Viewed(list(runs), registry()))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs, named as from the folder that they lie in: a path would stand on the pictures."""
    folder = tmp_path_factory.mktemp("viewed")
    runs_there = make_runs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield [run.relative_to(folder) for run in runs_there]


@pytest.fixture(scope="module")
def finished(runs):
    with served(runs) as url:
        yield url


@pytest.fixture(scope="module")
def under_way(runs):
    run = Path(shutil.copytree(runs[1], "run"))
    samples_file(run, LABEL).unlink()
    with edited_json(run / "run.json") as manifest:
        manifest["tasks"][LABEL]["state"] = "waiting"
    with served([run]) as url:
        yield url


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_answers_looks_as_it_did(browser, finished, under_way, width, dark):
    views = with_look(VIEWER, finished, width, dark)
    if "view-live" in views:
        views["view-live"] = f"{under_way}#tasks"
    compare(browser, views, width, dark=dark)


def test_every_kept_picture_is_of_a_view(every_kind):
    wanted = {name_of(view_of(page), *look) for page in every_kind for look in LOOKS}
    for views in (OWN_RUNS, PUBLISHED, VIEWER):
        wanted |= {name_of(name, *look) for name, (_, looks) in views.items() for look in looks}
    assert {path.name for path in KEPT.glob("*.webp")} == wanted
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < 3_000_000
