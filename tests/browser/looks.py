"""Pictures of pages: taken with pinned fonts, kept small, and compared with a tolerance."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.browser.chromium import Chromium, find_chromium

#: the window widths and colours in which every view is kept
LOOKS = [(width, dark) for width in (1440, 768, 420) for dark in (False, True)]
KEPT = Path(__file__).parent / "kept_looks"
#: what the kept pictures were taken with
MADE_WITH = KEPT / "made_with.json"
#: where pictures of differences are written
FOUND = Path("build", "looks")
_TALL = 1200  # pixels of a page that are kept, from its top
_SCALE = 0.5  # kept pixels for one of the page
_QUALITY = 50  # of WebP
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


@dataclass(frozen=True)
class Difference:
    """How far two pictures differ."""

    share: float  # of the pixels
    drawn: bytes  # a PNG: grey where they are alike, red where not

    @property
    def shows(self) -> bool:
        """Whether it is more than the tolerance."""
        return self.share > _SHARE


def browser_with_fonts(folder: Path) -> Chromium:
    """A browser that knows the fonts of `$MEDTASKS_FONTS` alone; without the variable the test is skipped.

    Args:
        folder: for its files.
    """
    fonts = os.environ.get("MEDTASKS_FONTS")
    if not fonts:
        pytest.skip("no pinned fonts here: `make fonts`, and MEDTASKS_FONTS=build/fonts")
    if find_chromium() is None:
        pytest.skip("no Chromium here: install the package `chromium`, or name one in MEDTASKS_CHROMIUM")
    rules = folder / "fonts.conf"
    named = escape(str(Path(fonts).resolve()))
    rules.write_text(_FONTS.format(fonts=named, cache=escape(str(folder / "cache"))), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTCONFIG_FILE", str(rules))
        return Chromium(folder / "profile", folder / "downloads")


def taken(browser: Chromium, page: Path, width: int, *, dark: bool) -> bytes:
    """A picture of a page from its top, as WebP; the day and the version stand on none."""
    browser.screen(width, _TALL, dark=dark, phone=width < 600)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    browser.js("document.querySelector('#top .facts-line').textContent = 'day and version'")
    clip = {"x": 0, "y": 0, "width": width, "height": _TALL, "scale": _SCALE}
    shot = browser.call("Page.captureScreenshot", format="webp", quality=_QUALITY, clip=clip)
    return base64.b64decode(shot["data"])


def difference(browser: Chromium, before: bytes, now: bytes) -> Difference:
    """Compare two pictures, in the browser, which can read them."""
    browser.call("Page.navigate", url="about:blank")
    said = ", ".join(json.dumps(base64.b64encode(one).decode()) for one in (before, now))
    share, drawn = browser.js(f"{_COMPARE}({said}, {_STEPS})")
    return Difference(share, base64.b64decode(drawn))


def tools(browser: Chromium) -> dict[str, str]:
    """With what pictures are taken."""
    return {"chromium": browser.call("Browser.getVersion")["product"], "fonts": "dejavu-fonts-ttf 2.37.3"}
