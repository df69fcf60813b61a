"""Every kind of page of the leaderboard beside its kept picture; `make looks` takes these anew."""

import pytest

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
)  # fmt: skip
from tests.browser.test_site import every_kind, site  # noqa: F401  (fixtures)

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = pinned_browser(tmp_path_factory.mktemp("looks"))
    yield started
    started.close()


def view_of(page):
    return "model" if page.startswith("models/") else page.removesuffix(".html").replace("/", "-")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_kind_of_page_looks_as_it_did(browser, site, every_kind, width, dark):  # noqa: F811
    compare(browser, {view_of(page): (site / page).as_uri() for page in every_kind}, width, dark=dark)


def test_a_small_change_of_a_page_is_seen_and_drawn(browser, site):  # noqa: F811
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


def test_a_browser_of_another_version_is_refused(tmp_path, monkeypatch):
    """It would draw other pictures."""
    monkeypatch.delenv("MEDTASKS_LOOKS", raising=False)
    kept = tmp_path / "made_with.json"
    kept.write_text('{"chromium": "Chrome/1.0.0.0", "fonts": "none"}')
    monkeypatch.setattr("tests.browser.looks.MADE_WITH", kept)
    with pytest.raises(pytest.fail.Exception, match=r"Chrome/1\.0\.0\.0.*make pinned-chromium"):
        pinned_browser(tmp_path)


def test_every_kept_picture_is_of_a_view(every_kind):  # noqa: F811
    wanted = {name_of(view_of(page), *look) for page in every_kind for look in LOOKS}
    for views in (OWN_RUNS, PUBLISHED, VIEWER):
        wanted |= {name_of(name, *look) for name, (_, looks) in views.items() for look in looks}
    assert {path.name for path in KEPT.glob("*.webp")} == wanted
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < 3_000_000
