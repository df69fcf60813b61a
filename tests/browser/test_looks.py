"""Every kind of page of the leaderboard beside its kept picture; `make looks` takes these anew."""

import json
import os

import pytest

from tests.browser.looks import FOUND, KEPT, LOOKS, MADE_WITH, browser_with_fonts, difference, taken, tools
from tests.browser.test_site import every_kind, site  # noqa: F401  (fixtures)

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = browser_with_fonts(tmp_path_factory.mktemp("looks"))
    yield started
    started.close()


def name_of(page, width, dark):
    kind = "model" if page.startswith("models/") else page.removesuffix(".html").replace("/", "-")
    return f"{kind}-{width}-{'dark' if dark else 'light'}.webp"


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_kind_of_page_looks_as_it_did(browser, site, every_kind, width, dark):  # noqa: F811
    keep = os.environ.get("MEDTASKS_LOOKS") == "keep"
    changed = []
    for page in every_kind:
        name, now = name_of(page, width, dark), taken(browser, site / page, width, dark=dark)
        if keep:
            KEPT.mkdir(exist_ok=True)
            (KEPT / name).write_bytes(now)
            MADE_WITH.write_text(json.dumps(tools(browser), indent=1) + "\n")
            continue
        found = difference(browser, (KEPT / name).read_bytes(), now)
        if found.shows:
            FOUND.mkdir(parents=True, exist_ok=True)
            (FOUND / f"{name}.png").write_bytes(found.drawn)
            changed.append(f"{page}: {found.share:.2%} of its pixels, drawn in {FOUND / name}.png")
    made_with = json.loads(MADE_WITH.read_text())
    assert not changed, (changed, f"kept with {made_with}, taken with {tools(browser)}; meant? make looks")


def test_a_small_change_of_a_page_is_seen_and_drawn(browser, site):  # noqa: F811
    page = site / "about.html"
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


def test_every_kept_picture_is_of_a_view(every_kind):  # noqa: F811
    wanted = {name_of(page, *look) for page in every_kind for look in LOOKS}
    assert {path.name for path in KEPT.glob("*.webp")} == wanted
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < 3_000_000
