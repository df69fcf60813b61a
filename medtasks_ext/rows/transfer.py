"""One file over HTTP: streamed to disk, taken up where it broke, asked for again after growing pauses."""

from __future__ import annotations

import http.client
import logging
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtasks_ext.atomic import cannot_write
from medtasks_ext.rows.folders import CACHE_REMEDY
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from email.message import Message

log = logging.getLogger(__name__)

#: Seconds without a byte after which a connection counts as broken.
TIMEOUT = 60.0
#: How often a place is asked in all.
ATTEMPTS = 5
_LONGEST_PAUSE = 60.0
#: From how many seconds on a user is told that a server asks to wait.
_TOLD_FROM = 5.0
_PIECE = 1 << 20
#: Bytes that no source comes near: a server that never ends would fill the disk.
_LARGEST = 64 << 30
_AGENT = f"medtasks/{__version__} (dataset download)"
#: Too early, too often, or a server that is busy: worth another attempt. 416: the part is not the file's.
_AGAIN = (408, 416, 425, 429, 500, 502, 503, 504)

#: What a download fails with: HTTP statuses, connections, answers that are no HTTP.
FAILURES = (OSError, http.client.HTTPException)


class TooLargeError(OSError):
    """A file beyond the limit of size: no broken connection, so it is not asked for again."""


def download(url: str, part: Path) -> None:
    """Stream a file to disk. Proxies come from the environment (`HTTPS_PROXY`, `NO_PROXY`).

    Args:
        url: where it lies; redirects are followed.
        part: receives the content; what is there already is taken up by a range request.

    Raises:
        MedtasksError: the disk is full, or the folder cannot be written.
        TooLargeError: the file is larger than any source.
        OSError: the last of several attempts failed, or the server refuses the file.
        HTTPException: likewise.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _attempt(url, part)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                part.unlink(missing_ok=True)
            if error.code not in _AGAIN or attempt == ATTEMPTS:
                raise
            asked = _asked_pause(error.headers)
            pause = asked or 2.0 ** (attempt - 1)
            if asked and asked >= _TOLD_FROM:
                host, seconds = urlsplit(url).hostname, min(asked, _LONGEST_PAUSE)
                log.warning(
                    "%s asks to wait %s s (HTTP %d); it is asked again in %.0f s",
                    host, f"{asked:,.0f}", error.code, seconds,
                )  # fmt: skip
        except TooLargeError:
            part.unlink(missing_ok=True)
            raise
        except FAILURES:
            if attempt == ATTEMPTS:
                raise
            pause = 2.0 ** (attempt - 1)
        time.sleep(min(pause, _LONGEST_PAUSE))
    return None


def _attempt(url: str, part: Path) -> None:
    start = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    opener = urllib.request.build_opener()  # reads the proxies that hold now
    with opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        if not resumed:
            start = 0  # the server sends all of it
        length = answer.headers.get("Content-Length")
        if length and length.isdigit() and start + int(length) > _LARGEST:
            raise _too_large()
        _write(answer, part, "ab" if resumed else "wb")
    missing = start + int(length) - part.stat().st_size if length and length.isdigit() else 0
    if missing > 0:
        raise http.client.IncompleteRead(b"", missing)


def _too_large() -> TooLargeError:
    return TooLargeError(f"sends more than {_LARGEST >> 30} GB")


def _write(answer: http.client.HTTPResponse, part: Path, mode: str) -> None:
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open(mode)
    except OSError as error:
        raise cannot_write(part, error, CACHE_REMEDY) from None
    with file:
        while piece := answer.read(_PIECE):
            if file.tell() + len(piece) > _LARGEST:
                raise _too_large()
            try:
                file.write(piece)
            except OSError as error:
                raise cannot_write(part, error, CACHE_REMEDY) from None


def _asked_pause(headers: Message) -> float | None:
    asked = headers.get("Retry-After") or ""
    return float(asked) if asked.isdigit() else None
