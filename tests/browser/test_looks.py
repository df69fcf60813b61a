"""Every kind of page and view beside its kept picture; `make looks` takes these anew."""

import shutil
from pathlib import Path

import pytest

from tests.browser.conftest import served
from tests.browser.looks import (
    KEPT,
    LOOKS,
    OWN_RUNS,
    PUBLISHED,
    VIEWER,
    compare,
    name_of,
    pinned_browser,
    with_look,
)  # fmt: skip
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


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_a_report_looks_as_it_did(browser, report_file, published_report, width, dark):
    for views, file in ((OWN_RUNS, report_file), (PUBLISHED, published_report / "report.html")):
        compare(browser, with_look(views, file.as_uri(), width, dark), width, dark=dark)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two runs, named as from the folder that they lie in: a path would stand on the pictures."""
    folder = tmp_path_factory.mktemp("viewed")
    runs = make_runs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with served([run.relative_to(folder) for run in runs]) as url:
            yield url


@pytest.fixture(scope="module")
def under_way(finished):
    run = Path(shutil.copytree("two", "run"))
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
