"""One file over HTTP: streamed to disk, taken up where it broke, asked for again after growing pauses.

All downloads but the hub's (huggingface_hub) and NLTK's own go through here.
"""

from __future__ import annotations

import http.client
import socket
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from filelock import FileLock

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.places import CACHE_REMEDY
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds without a byte after which a connection counts as broken.
TIMEOUT = 60.0
#: What helps where a source cannot be had.
OTHERWISE = "put the files below MEDTASKS_DATA_DIR"
#: How often a place is asked in all.
ATTEMPTS = 5
_LONGEST_PAUSE = 60.0
_PIECE = 1 << 20
_ANY = "*/*"  # a file, of which no page is taken; who asks for another type looks at it
_SNIFFED = 256  # bytes from which a web page is told
#: Bytes that no source comes near: a server that never ends would fill the disk.
_LARGEST = 64 << 30
_AGENT = f"medtasks/{__version__} (dataset download)"
#: Too early, too often, or a server that is busy: worth another attempt. 416: the part is not the file's.
_AGAIN = (408, 416, 425, 429, 500, 502, 503, 504)


class NotHereError(MedtasksError):
    """A file that is not on this machine and cannot be downloaded now."""


class _RefusedError(Exception):
    """What another attempt would not change: no broken connection."""


def public(url: str) -> str:
    """An address without the password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.netloc else url


def has_known_host(url: str) -> bool:
    """Whether the name of an address can be looked up: without a network none can, and asking takes long.

    A name is looked up once a minute; where a proxy is set, it does the look-ups.
    """
    parts = urlsplit(url)
    if parts.scheme in urllib.request.getproxies():
        return True
    return _is_known(parts.hostname or "", parts.port or parts.scheme, int(time.monotonic() // 60))


@lru_cache(maxsize=64)
def _is_known(host: str, port: int | str, _minute: int) -> bool:
    try:
        return bool(socket.getaddrinfo(host, port))
    except (OSError, UnicodeError):
        return False


def failed(error: Exception, where: str, otherwise: str = OTHERWISE) -> NotHereError:
    """The error for a download that failed; `otherwise`: what helps besides another try."""
    if isinstance(error, _RefusedError):
        return NotHereError(str(error), where=public(where), remedy=f"try again later, or {otherwise}")
    reason = str(getattr(error, "reason", None) or error).partition("\n")[0] or type(error).__name__
    remedy = f"check the connection, or {otherwise}"
    return NotHereError(f"download failed ({reason})", where=public(where), remedy=remedy)


@dataclass(frozen=True)
class Expected:
    """What a download is known to be, and how it is asked for."""

    otherwise: str = OTHERWISE  # what helps where it cannot be had, for the message
    accept: str = _ANY  # the type of content that is asked for
    largest: int | None = None  # bytes beyond which it is refused; by default more than any source has
    # whether its content is known: then the part of an earlier call is taken up, and a server need not say
    # how long it is. Otherwise an answer that ended early could not be told from a whole one; archives have
    # a mark at their end.
    known: bool = True
    attempts: int = ATTEMPTS  # how often it is asked for in all


def fetch(url: str, target: Path, check: Callable[[Path], object], expected: Expected = Expected()) -> Path:
    """A file, downloaded unless it is there. It takes its place only whole; processes wait for each other.

    `check` looks at the content before it goes there; raises where it is not the right one.
    """
    part = target.with_name(f".{target.name}.part")
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{part}.lock"):
        if target.is_file():  # another process was faster
            return target
        if not expected.known:
            part.unlink(missing_ok=True)
        download(url, part, expected)
        try:
            check(part)
        except MedtasksError:
            part.unlink(missing_ok=True)
            raise
        return part.replace(target)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, CACHE_REMEDY) from None


def download(url: str, part: Path, expected: Expected = Expected()) -> None:
    """Stream a file to disk. Proxies come from the environment (`HTTPS_PROXY`, `NO_PROXY`).

    What is in `part` already is taken up by a range request. Raises NotHereError: the last attempt failed,
    the server refuses the file, or it is too large.
    """
    if urlsplit(url).hostname and not has_known_host(url):
        unknown = OSError(f"no address is known for {urlsplit(url).hostname}")
        raise failed(unknown, url, expected.otherwise)
    for attempt in range(1, expected.attempts + 1):
        try:
            return _attempt(url, part, expected)
        except _RefusedError as error:
            part.unlink(missing_ok=True)
            raise failed(error, url, expected.otherwise) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            pause, is_final = 2.0 ** (attempt - 1), attempt == expected.attempts
            if isinstance(error, urllib.error.HTTPError):
                is_final = is_final or error.code not in _AGAIN
                if error.code == 416:
                    part.unlink(missing_ok=True)
                asked = error.headers.get("Retry-After") or ""
                pause = float(asked) if asked.isdigit() and int(asked) else pause
            if is_final:
                raise failed(error, url, expected.otherwise) from None
        time.sleep(min(pause, _LONGEST_PAUSE))
    return None


def _attempt(url: str, part: Path, expected: Expected) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise _RefusedError("is no web address")
    start, largest = part.stat().st_size if part.is_file() else 0, expected.largest or _LARGEST
    headers = {"User-Agent": _AGENT, "Accept": expected.accept, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    opener = urllib.request.build_opener()  # reads the proxies that hold now
    with opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        said = answer.headers.get("Content-Length") or ""
        length = start * resumed + int(said) if said.isdigit() else 0  # not resumed: all of it is sent
        with _writing(part):
            part.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("ab" if resumed else "wb")
        with file:
            while piece := answer.read1(_PIECE):  # as it comes: what a killed process had is kept
                if file.tell() + len(piece) > largest:
                    raise _RefusedError(f"sends more than {largest >> 20:,} MB")
                with _writing(part):
                    file.write(piece)
    if length > part.stat().st_size:
        raise http.client.IncompleteRead(b"", length - part.stat().st_size)
    if not (length or expected.known or zipfile.is_zipfile(part)):
        raise _RefusedError("does not say how long the file is, so an early end would not be seen")
    # a page where a file was asked for: a login, a captive portal, `too many requests`
    is_page = PurePosixPath(urlsplit(url).path).suffix.lower() in (".html", ".htm")
    if expected.accept == _ANY and not is_page:
        with part.open("rb") as content:
            head = content.read(_SNIFFED).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if head.startswith((b"<!doctype html", b"<html")):
            raise _RefusedError("sends a web page (HTML) in place of the file")
