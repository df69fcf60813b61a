"""Every view of the viewer beside its kept picture."""

import json
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.view.server import ViewServer
from medtasks_ext.report.view.viewer import Viewer
from tests.browser.looks import LOOKS, VIEWER, compare, pinned_browser, with_look
from tests.report.viewed import LABEL, make_runs

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = pinned_browser(tmp_path_factory.mktemp("looks"))
    yield started
    started.close()


@contextmanager
def served(runs):
    server = ViewServer(Viewer(list(runs), registry()))
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
    made = make_runs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield [run.relative_to(folder) for run in made]


@pytest.fixture(scope="module")
def finished(runs):
    with served(runs) as url:
        yield url


@pytest.fixture(scope="module")
def under_way(runs):
    """A run of which a task waits."""
    run = Path(shutil.copytree(runs[1], "run"))
    (run / f"samples_{LABEL}.jsonl").unlink()
    manifest = json.loads((run / "run.json").read_text())
    manifest["tasks"][LABEL]["state"] = "waiting"
    (run / "run.json").write_text(json.dumps(manifest))
    with served([run]) as url:
        yield url


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_answers_looks_as_it_did(browser, finished, under_way, width, dark):
    views = with_look(VIEWER, finished, width, dark)
    if "view-live" in views:
        views["view-live"] = under_way
    compare(browser, views, width, dark=dark)
