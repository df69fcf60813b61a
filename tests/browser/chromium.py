"""A real Chromium, driven over the DevTools protocol through a pipe: no driver and no network needed."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0  # seconds that anything may take
#: without these the browser only reports the key to scripts, and does nothing itself
_VIRTUAL_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowRight": 39}

#: a page is there when its own scripts have drawn it
THERE = "document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')"


#: a report is there
_READY = "document.readyState === 'complete' && !!document.querySelector('main h2')"


def _program() -> str:
    """$MEDTASKS_CHROMIUM, else what the system has; without one the test is skipped."""
    named = os.environ.get("MEDTASKS_CHROMIUM")
    found = (shutil.which(name) for name in (named, "chromium", "chromium-browser", "google-chrome") if name)
    if path := next(filter(None, found), None):
        return path
    pytest.skip("no Chromium here: install the package `chromium`, or name one in MEDTASKS_CHROMIUM")


class Chromium:
    """One browser with one page.

    Args:
        profile: folder of the profile; what pages store stays there.
        downloads: folder for what pages download.
    """

    def __init__(self, profile: Path, downloads: Path) -> None:
        program = _program()
        self.downloads = downloads
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # the browser reads from 3 and writes to 4: both ends move out of the way first
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_browser, from_browser)]
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={profile}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", *command], pass_fds=ends,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (*ends, to_browser, from_browser):
            os.close(end)
        self._buffer, self._number, self.events = b"", 0, []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    # ------------------------------------------------------------------ the protocol

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Browser.", "Target.")):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], PATIENCE)[0], "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    # ------------------------------------------------------------------ what a person does

    def open(self, page: Path) -> None:
        self.call("Page.navigate", url=page.as_uri())
        self.wait(THERE)

    def show(self, url: str, *, width: int = 1440, dark: bool = False, there: str = _READY) -> None:
        """Open a page that knows nothing of the one before, in a window of this width."""
        self.call("Emulation.setEmulatedMedia", media="")
        self.screen(width, 900, dark=dark, phone=width < 600)
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait(there)

    def reload(self) -> None:
        """Load the page anew; what it stored is with the browser by then, which may start another process."""
        self.js("window.before = true; new Promise((done) => setTimeout(done, 300))")
        self.call("Page.reload")
        self.wait(f"!window.before && {THERE}")

    def js(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.js(condition))
        except AssertionError as error:
            if "Inspected target navigated" not in str(error):
                raise
            return False  # the page that was asked is gone, and the next one comes

    def go(self, address: str) -> None:
        """Change the part of the URL behind its `#`, until the page has taken it up."""
        self.js(
            "new Promise((done) => { const before = location.hash; "
            "addEventListener('hashchange', () => done(), { once: true }); "
            f"location.hash = {json.dumps(address)}; if (location.hash === before) done(); }})"
        )

    def click(self, selector: str) -> None:
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _middle(self, selector: str) -> tuple[float, float]:
        """Pixels of an element's middle, which is scrolled into sight."""
        x, y = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return x, y

    def press(self, *keys: str) -> None:
        """Press keys, named as in `KeyboardEvent.key`."""
        for key in keys:
            text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            known = {"key": key, "code": _code(key), "windowsVirtualKeyCode": _VIRTUAL_KEYS.get(key, 0)}
            self.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def choose_file(self, selector: str, file: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def screen(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # else a picture may be of a transition
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def requests(self) -> list[str]:
        """Addresses that the page asked for, files and its own blobs aside."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "blob:", "data:", "about:"))]

    def complaints(self) -> list[str]:
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
        return found

    def close(self) -> None:
        """End the browser in an orderly way, so that the profile is complete."""
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


def _code(key: str) -> str:
    return f"Digit{key}" if key.isdigit() else {" ": "Space"}.get(key, key)
