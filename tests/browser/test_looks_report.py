"""Every view of reports, of own runs and of published models, beside its kept picture."""

import pytest

from tests.browser.looks import LOOKS, OWN_RUNS, PUBLISHED, compare, pinned_browser, with_look
from tests.browser.test_published_report import made  # noqa: F401  (fixture)

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = pinned_browser(tmp_path_factory.mktemp("looks"))
    yield started
    started.close()


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_own_runs_looks_as_it_did(browser, report_file, width, dark):
    compare(browser, with_look(OWN_RUNS, report_file.as_uri(), width, dark), width, dark=dark)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_view_of_published_models_looks_as_it_did(browser, made, width, dark):  # noqa: F811
    page = (made / "report.html").as_uri()
    compare(browser, with_look(PUBLISHED, page, width, dark), width, dark=dark)
