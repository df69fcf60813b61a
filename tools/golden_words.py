"""What may differ between two recordings of one program, and is put in other words before it is kept."""

from __future__ import annotations

import base64
import csv
import gzip
import html
import io
import json
import re
from pathlib import Path
from typing import Any

#: Keys of JSON whose values tell when and where, or follow from it.
VOLATILE = frozenset({
    "at", "chain", "head", "heads", "salt", "secret", "seconds", "started", "ended", "made", "host", "pid",
    "bytes", "took", "elapsed", "duration", "created", "retrieved_timestamp", "evaluation_timestamp",
    "total_evaluation_time_seconds", "start_time", "end_time", "git_hash", "pretty_env_info",
    "upper_git_hash", "date", "mtime", "inode", "free", "wall", "opened", "closed", "rate",
})  # fmt: skip
_RUN = re.compile(r"[0-9a-f]{12}")  # of a store: follows from a run's folder and salt
_VERSIONS = re.compile(r"versions?$")
_TEXTS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (
        re.compile(r"(?<!\d)20\d\d-\d\d-\d\d[T ]\d\d[:-]\d\d(?:[:-]\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    (re.compile(r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)? (s|ms|seconds|documents/s|requests/s|tokens/s)\b"), r"<n> \1"),
    (re.compile(r"\b\d+:\d\d(?::\d\d)? (left|to go)\b"), r"<n> \1"),
    (re.compile(r"\b\d+(?:\.\d+)? [GMT]i?B (are )?free\b"), "<n> free"),
    (re.compile(r"(\.py\"?), line \d+"), r"\1, line <n>"),
    (re.compile(r"(?:/[\w.-]+)+(?=/runs/)"), "<out>"),
    (re.compile(r"\b1[789]\d{8}(\.\d+)?\b"), "<time>"),  # seconds since 1970
    (re.compile(r"\bmt[0-9a-f]{10}\b"), "<export>"),  # of forms: random, and what is signed with it
    (re.compile(r"\bh[0-9a-f]{32}\b"), "<digest>"),
    (re.compile(r"\broot: [0-9a-f]{64}\b"), "root: <root>"),
    (re.compile(r"[\d,.]+ answers/s( \([\d,.]+ since the start\))?"), "<n> answers/s"),
    (re.compile(r"\.[0-9a-f]{8}\.part\b"), ".part"),
    (re.compile(r"(?m)^(asked: .*|[\d,]+ of [\d,]+ (judgements|answers)\b.*)\n"), ""),  # how far it is
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
)
_PAGE = re.compile(r"<script type=\"application/json\"([^>]*)>(.*?)</script>", re.DOTALL)
_NO_TEXT = re.compile(r"<(script|style|svg)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class Words:
    """Puts texts and values in words that two recordings share.

    Attributes:
        places: folder -> its name in a recording, longest first.
    """

    def __init__(self, places: dict[Path, str]) -> None:
        texts = {str(form): name for path, name in places.items() for form in (path, path.resolve())}
        self.places = sorted(texts.items(), key=lambda item: -len(item[0]))

    def text(self, text: str) -> str:
        """A text without places and times; spaces at the ends of lines go, too."""
        for place, name in self.places:
            text = text.replace(place, name)
        for pattern, word in _TEXTS:
            text = pattern.sub(word, text)
        return "\n".join(line.rstrip() for line in text.replace("\r", "\n").split("\n"))

    def value(self, value: Any, key: str = "") -> Any:
        """A JSON value in the same way."""
        if key in VOLATILE and value is not None:
            return f"<{key}>" if not isinstance(value, bool) else value
        if isinstance(value, dict):
            if _VERSIONS.search(key) and all(isinstance(item, str) for item in value.values()):
                return dict.fromkeys(value, "<version>")
            return {self.text(name): self.value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if key == "run" and isinstance(value, str) and _RUN.fullmatch(value):
            return "<run>"
        return self.text(value) if isinstance(value, str) else value

    def file(self, path: Path) -> tuple[str, str] | None:
        """What is kept of a file: the ending of its copy (after its own name) and the text; None: nothing."""
        kind = path.suffix
        if kind == ".parquet":
            return ".json", _dump(self.value(_parquet(path)))
        if kind == ".npy":
            return ".json", _dump(_array(path))
        if kind in (".png", ".gz", ".zip", ".pyc", ".woff2", ".ico"):
            return ".txt", f"{kind} file"
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            return ".txt", "binary file"
        if kind == ".html":
            pages = [self.value(_page_data(*found)) for found in _PAGE.findall(text)]
            if pages:
                return ".json", _dump(pages)
            words = html.unescape(_TAG.sub("\n", _NO_TEXT.sub("", text)))
            return ".txt", self.text(re.sub(r"\n\s*\n+", "\n", words))
        if kind == ".json":
            return "", _dump(self.value(json.loads(text)))
        if kind == ".jsonl":
            return "", _lines(self.value(json.loads(line)) for line in text.splitlines() if line.strip())
        return "" if kind in (".csv", ".txt", ".md", ".yaml") else ".txt", self.text(text)


def _page_data(attributes: str, content: str) -> Any:
    """The data of a page; long ones stand there as gzip in base64."""
    packed = "data-packed" in attributes
    return json.loads(gzip.decompress(base64.b64decode(content)) if packed else content)


def _dump(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _lines(values: Any) -> str:
    """JSON lines, sorted: which answer came first says nothing."""
    return "".join(sorted(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


def _parquet(path: Path) -> Any:
    from pyarrow import parquet

    table = parquet.read_table(path)
    columns = [f"{field.name}: {field.type}" for field in table.schema]
    rows = [[json.loads(json.dumps(cell, default=str)) for cell in row.values()] for row in table.to_pylist()]
    return {"columns": columns, "rows": [dict(zip(table.column_names, row, strict=True)) for row in rows]}


def _array(path: Path) -> Any:
    import numpy as np

    array = np.load(path)
    return {"shape": list(array.shape), "type": str(array.dtype), "values": array.tolist()}


def csv_rows(path: Path) -> list[list[str]]:
    """The cells of a CSV file."""
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
