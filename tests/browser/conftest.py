"""One browser, and one page or site of each kind, which tests read and do not change."""

import threading
from contextlib import contextmanager

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.answers.server import Viewed, ViewServer
from medtasks_ext.report.gather import gather
from medtasks_ext.report.payload import render
from medtasks_ext.report.site.boards import BoardLine, gather_site
from medtasks_ext.report.site.write import write_site
from medtasks_ext.report.write import write_report
from medtasks_ext.results.conditions import Confirmed
from medtasks_ext.results.experiments import Experiment
from tests.browser.chromium import Chromium
from tests.browser.report_payload import made_report
from tests.conftest import command
from tests.report.viewed import HOSTILE, make_runs
from tests.submissions.conftest import write_submission

SITE_PAGES = (
    "index.html", "bridge.html", "mlb.html", "datasets.html", "datasets/bridge_mednli.html", "about.html",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The one of all tests that keep nothing in it; its downloads go to `browser.downloads`."""
    folder = tmp_path_factory.mktemp("browser")
    started = Chromium(folder / "profile", folder / "downloads")
    yield started
    started.close()


@pytest.fixture
def browse(tmp_path):
    """Start browsers: `browse("profile")`. Their downloads go to `downloads`."""
    started = []
    (tmp_path / "downloads").mkdir()

    def start(profile: str = "profile") -> Chromium:
        started.append(Chromium(tmp_path / profile, tmp_path / "downloads"))
        return started[-1]

    yield start
    for one in started:
        if one.running:
            one.close()


@pytest.fixture(scope="session")
def report():
    """Three own runs, the third of them partial, beside some published models of each suite."""
    return made_report()


@pytest.fixture(scope="session")
def report_file(report, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(report), encoding="utf-8")
    return file


@pytest.fixture
def show(browser, report_file, tmp_path):
    """Open a report at an address: `show("leaderboard?suite=mlb")`; another payload with `of`."""

    def open_at(address, *, of=None, width=1300, dark=False):
        file = report_file
        if of is not None:
            file = tmp_path / "other.html"
            file.write_text(render(of), encoding="utf-8")
        browser.show(f"{file.as_uri()}#{address}", width=width, dark=dark)
        return browser

    return open_at


@pytest.fixture(scope="session")
def published_report(made_once):
    """The folder of a report of all published models."""

    def fill(folder):
        command("report", "--published", "all", "-o", folder / "out")

    return made_once("published", fill) / "out"


@pytest.fixture(scope="session")
def published_site(made_once):
    """The site of all published models."""

    def fill(folder):
        write_site(folder / "site", gather_site(registry(), None))

    return made_once("published-site", fill) / "site"


@pytest.fixture(scope="session")
def site(made_once):
    """Published models, and submissions: as the paper asked, in own words, on a part, with hostile words."""
    return made_once("browser-site", fill_site) / "out"


def fill_site(root):
    write_submission(root / "in", "Org/Best-8B", 0.9)
    write_submission(root / "in", "Org/Middle-70B", 0.3)
    write_submission(root / "in", "Org/Own-Words-A", 0.95, wording="own", prompt="p1")
    write_submission(root / "in", "Org/Part-3B", 0.99, first=10)
    write_submission(root / "in", "Org/Unproven-9B", 0.99)
    half = write_submission(root / "in", "Org/Half-Proven-7B", 0.8)
    other = write_submission(root / "other", "Org/Half-Proven-7B", 0.99, suite="medhelm")
    both = half.model_copy(update={"tasks": {**half.tasks, **other.tasks}})
    both.write(root / "in" / "Org" / "Half-Proven-7B" / "2026-05-01", {})
    record = write_submission(root / "in", "Org/Hostile-1B", 0.5)
    about = record.about.model_copy(update={"license": HOSTILE})
    hostile = record.model_copy(update={"about": about, "versions": {HOSTILE: HOSTILE}})
    hostile.write(root / "in" / "Org" / "Hostile-1B" / "2026-05-01", {})
    with pytest.MonkeyPatch.context() as patch:  # as if somebody else had checked these invented scores
        patch.setattr(BoardLine, "is_proven", is_proven)
        patch.setattr(Experiment, "confirmed", Confirmed("confirmed", "confirmed", None))
        write_site(root / "out", gather_site(registry(), root / "in"))


def is_proven(line, item):
    half = "Half-Proven" in line.entry.model and item.dataset.metadata.suite == "medhelm"
    return line.published or not (half or "Unproven" in line.entry.model)


@pytest.fixture(scope="session")
def every_kind(site):
    """The names of a page of each kind of the site."""
    return (*SITE_PAGES, f"models/{next((site / 'models').glob('org-best-8b-*')).name}")


@pytest.fixture(scope="session")
def answered(tmp_path_factory):
    """Two runs whose answers went wrong in all ways."""
    return make_runs(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="session")
def answers_file(answered, tmp_path_factory):
    """The report of these runs, with the files of their answers beside it."""
    folder = tmp_path_factory.mktemp("page")
    write_report(folder, gather(list(answered), registry()))
    return folder / "report.html"


@contextmanager
def served(runs):
    """The address of the viewer of some runs."""
    server = ViewServer(Viewed(list(runs), registry()))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def viewer(answered):
    with served(answered) as url:
        yield url
