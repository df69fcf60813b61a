"""The browser, and the forms of the other tests."""

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.site.boards import gather_site
from medtasks_ext.report.site.write import write_site
from tests.browser.chromium import Chromium
from tests.browser.report_page import (  # noqa: F401  (fixtures)
    browser,
    report,
    report_file,
    report_folder,
    show,
)
from tests.human.conftest import export, made_runs, queue, runs  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def published_site(made_once):
    """The site of all published models: tests read it, and change nothing."""

    def fill(folder):
        write_site(folder / "site", gather_site(registry(), None))

    return made_once("published-site", fill) / "site"


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
