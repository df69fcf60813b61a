"""Pictures of pages: taken with pinned fonts, kept small, and compared with a tolerance."""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.browser.chromium import Chromium
from tests.conftest import read_json
from tests.report.viewed import EVENTS, LABEL

Looks = Sequence[tuple[int, bool]]
#: the window widths and colours in which every kind of page is kept
LOOKS = [(width, dark) for width in (1440, 768, 420) for dark in (False, True)]
#: those of a view whose colours and frame stand on another kept picture
FEW = [(1440, False), (420, False)]
#: Views of a report of own runs, of published models alone, and of the viewer: name -> address and looks.
OWN_RUNS = {
    "own-overview": ("overview", LOOKS), "own-leaderboard": ("leaderboard", FEW),
    "own-heatmap": ("heatmap", FEW), "own-profile": ("profile", FEW), "own-pairs": ("pairs", FEW),
    "own-models": ("models", FEW), "own-cost": ("models?against=cost", FEW),
    "own-strategies": ("strategies", FEW),
    "own-tasks": ("tasks", FEW),
    "own-model": ("model/google%2Fgemini-2.5-flash", FEW), "own-task": ("task/bridge_mie", FEW),
}  # fmt: skip
PUBLISHED = {
    "published-overview": ("overview", LOOKS),
    "published-cost": ("models?suite=medhelm&against=cost", FEW),
    "published-model": ("model/gemini-2.5-flash%20(published)", FEW),
}
VIEWER = {
    "view-start": ("tasks?suite=bridge", LOOKS),
    "view-dataset": (f"answers/{LABEL}", FEW),
    "view-errors": (f"answers/{LABEL}?part=errors", FEW),
    "view-confusion": (f"answers/{LABEL}?part=confusion", FEW),
    "view-answer": (f"answers/{EVENTS}?doc=t1", LOOKS),
    "view-live": ("tasks", FEW),
}
KEPT = Path(__file__).parent / "kept_looks"
#: what the kept pictures were taken with
MADE_WITH = KEPT / "made_with.json"
#: where pictures of differences are written
FOUND = Path("build", "looks").resolve()
#: what a view must be before its picture is taken
_DRAWN = """document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')
    && !!document.querySelector('main h2')"""
#: the day and the version stand on no picture
_SAME_EVERY_DAY = "document.querySelector('#top .facts-line').textContent = 'day and version';"
_TALL = 1200  # pixels of a page that are kept, from its top
_SCALE = 0.5  # kept pixels for one of the page
_QUALITY = 45  # of WebP
#: Steps of 255 by which a colour may differ, and the share of pixels that may differ by more.
_STEPS, _SHARE = 48, 0.0005
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir>
<alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>"""
_COMPARE = """(async (one, other, steps) => {
    const pixels = async (kept) => {
        const image = await createImageBitmap(await (await fetch("data:image/webp;base64," + kept)).blob());
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
    };
    const [before, now] = [await pixels(one), await pixels(other)];
    const [width, height] = [Math.max(before.width, now.width), Math.max(before.height, now.height)];
    const canvas = new OffscreenCanvas(width, height);
    const drawn = new ImageData(width, height);
    let n = 0;
    for (let y = 0; y < height; y += 1)
        for (let x = 0; x < width; x += 1) {
            const at = (image) => (x < image.width && y < image.height ? 4 * (y * image.width + x) : null);
            const [a, b, to] = [at(before), at(now), 4 * (y * width + x)];
            const differs = a === null || b === null
                || [0, 1, 2].some((part) => Math.abs(before.data[a + part] - now.data[b + part]) > steps);
            n += differs;
            const grey = b === null ? 255 : 192 + now.data[b + 1] / 4;
            drawn.data.set(differs ? [200, 0, 0, 255] : [grey, grey, grey, 255], to);
        }
    canvas.getContext("2d").putImageData(drawn, 0, 0);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({type: "image/png"})).arrayBuffer());
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return [n / (width * height), btoa(text)];
})"""


def pinned_browser(folder: Path) -> Chromium:
    """The browser `$MEDTASKS_PINNED_CHROMIUM`, which knows the fonts of `$MEDTASKS_FONTS` alone.

    Without fonts the test is skipped. A browser of another version than that of the kept pictures is refused:
    each draws text and curves a little differently.

    Args:
        folder: for its files.
    """
    fonts = os.environ.get("MEDTASKS_FONTS")
    if not fonts:
        pytest.skip("no pinned fonts here: `make fonts`, and MEDTASKS_FONTS=build/fonts")
    rules = folder / "fonts.conf"
    named = escape(str(Path(fonts).resolve()))
    rules.write_text(_FONTS.format(fonts=named, cache=escape(str(folder / "cache"))), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTCONFIG_FILE", str(rules))
        if named := os.environ.get("MEDTASKS_PINNED_CHROMIUM"):
            patch.setenv("MEDTASKS_CHROMIUM", str(Path(named).resolve()))
        browser = Chromium(folder / "profile", folder / "downloads")
    if not _keeps() and (kept := read_json(MADE_WITH)) != tools(browser):
        found = tools(browser)
        browser.close()
        pytest.fail(
            f"kept pictures are of {kept}, here is {found}: `make pinned-chromium`, and"
            " MEDTASKS_PINNED_CHROMIUM=build/chromium/chromium; or `make looks` with another browser"
        )
    return browser


def _keeps() -> bool:
    return os.environ.get("MEDTASKS_LOOKS") == "keep"


def name_of(view: str, width: int, dark: bool) -> str:
    return f"{view}-{width}-{'dark' if dark else 'light'}.webp"


def compare(browser: Chromium, views: Mapping[str, str], width: int, *, dark: bool) -> None:
    """Compare views with their kept pictures, or keep them with `$MEDTASKS_LOOKS=keep`.

    Args:
        views: name -> URL.
    """
    changed = []
    for view, url in views.items():
        name, now = name_of(view, width, dark), taken(browser, url, width, dark=dark)
        if _keeps():
            KEPT.mkdir(exist_ok=True)
            (KEPT / name).write_bytes(now)
            MADE_WITH.write_text(json.dumps(tools(browser), indent=1) + "\n")
            continue
        share, drawn = difference(browser, (KEPT / name).read_bytes(), now)
        if share > _SHARE:
            FOUND.mkdir(parents=True, exist_ok=True)
            (FOUND / f"{name}.png").write_bytes(drawn)
            changed.append(f"{view}: {share:.2%} of its pixels, drawn in {FOUND / name}.png")
    assert not changed, (changed, "meant? make looks")


def with_look(views: Mapping[str, tuple[str, Looks]], base: str, width: int, dark: bool) -> dict[str, str]:
    """Of some views those that are kept in a look: name -> URL."""
    return {name: f"{base}#{address}" for name, (address, looks) in views.items() if (width, dark) in looks}


def taken(browser: Chromium, url: str, width: int, *, dark: bool) -> bytes:
    """A picture of a page from its top, as WebP."""
    browser.screen(width, _TALL, dark=dark, phone=width < 600)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=url)
    browser.wait(_DRAWN)
    browser.js(_SAME_EVERY_DAY)
    clip = {"x": 0, "y": 0, "width": width, "height": _TALL, "scale": _SCALE}
    shot = browser.call("Page.captureScreenshot", format="webp", quality=_QUALITY, clip=clip)
    return base64.b64decode(shot["data"])


def difference(browser: Chromium, before: bytes, now: bytes) -> tuple[float, bytes]:
    """The share of pixels that differ, and a PNG of these in red: the browser can read pictures."""
    browser.call("Page.navigate", url="about:blank")
    said = ", ".join(json.dumps(base64.b64encode(one).decode()) for one in (before, now))
    share, drawn = browser.js(f"{_COMPARE}({said}, {_STEPS})")
    return share, base64.b64decode(drawn)


def tools(browser: Chromium) -> dict[str, str]:
    return {"chromium": browser.call("Browser.getVersion")["product"], "fonts": "dejavu-fonts-ttf 2.37.3"}
