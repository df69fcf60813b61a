"""What is wrong with the texts of a file: characters, language, ends, placeholders, columns.

One odd row is no fault: a column is judged by the share of its texts that have one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters of a text that are looked at.
_HEAD = 4_000
_WORDS = 5  # blanks of a short text that is no code and no name
_FEWEST = 5  # rows by which a share is judged
_ENDED = 0  # in place of a size
_ENDS = (255, 256, 32_767)  # characters that a cell of a database or spreadsheet holds
_PROSE = 25  # characters of a text whose language can be told
_FILE_NAME = re.compile(r"\.(?:txt|ann|csv|json|xml|docx?|pdf)$", re.IGNORECASE)
_LANGUAGE_ROWS, _LANGUAGE_CHARACTERS = 200, 30_000
#: Languages that a short text may be taken for.
_ALIKE = ({"no", "nb", "nn", "da", "sv"}, {"es", "gl", "ca", "an", "pt"}, {"af", "nl"}, {"zh", "ja"})


class Fault(NamedTuple):
    """One thing that is wrong in several rows."""

    cause: str  # in words that hold for all of them
    remedy: str
    rows: list[str]  # their places; none: the set as a whole
    column: str | None = None


# ---------------------------------------------------------------------- characters

_BEYOND = re.compile(r"[^\x00-\x7f]{2,}")
_LATIN_RUN = re.compile("[\xa1-\xff]{3,}")
_LATIN = re.compile("[\xa1-\xff]")
_LOST = re.compile("[\ufffd\x80-\x9f\ue000-\uf8ff]")
_MARK_IN_WORD = re.compile(r"[^\W\d_]\?[a-zа-яß-ÿ]|\?{4,}")
_TWO_SCRIPTS = re.compile(r"[A-Za-z][а-яё]|[а-яё][A-Za-z]")
_ENTITY = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|[aeiou](?:acute|uml|grave)|#\d{2,5}|#x[0-9a-f]{2,4});", re.I
)
_MARKUP = re.compile(r"</?(?:html|body|p|br|div|span|td)\b[^>]{0,80}>|\{\\rtf\d", re.I)
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|[^\\]\\n", re.I)
#: Letters and marks of the languages that there are: chance gives others.
_WRITTEN = re.compile(
    "[\x20-\x7e\xa0-\u024f\u0370-\u04ff\u1e00-\u1eff\u2000-\u22ff\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]+"
)
#: Encodings in which UTF-8 is read by mistake.
_WRONG = ("cp1252", "latin-1", "mac-roman", "cp1251", "cp866", "gbk")


def is_misread(text: str) -> bool:
    """Whether most characters beyond ASCII are bytes of UTF-8 that were read in another encoding."""
    if text.isascii():
        return False
    runs = _BEYOND.findall(text[:_HEAD])[:40]
    wrong = sum(len(run) for run in runs if any(_decodes(run, name) for name in _WRONG))
    return bool(wrong) and wrong * 2 > sum(map(len, runs))


def _decodes(run: str, wrong: str) -> bool:
    try:
        bytes_ = run.encode(wrong)
    except UnicodeEncodeError:
        return False
    least = 4 if wrong == "gbk" else 2
    if len(run) < least:
        return False
    for end in range(len(bytes_), max(len(bytes_) - 3, 1), -1):  # the last character may be cut
        try:
            written = bytes_[:end].decode()
        except UnicodeDecodeError:
            continue
        return _WRITTEN.fullmatch(written) is not None
    return False


def is_legacy(text: str) -> bool:
    """Whether bytes of a Cyrillic, Chinese or Japanese encoding were read as Latin ones."""
    if text.isascii():
        return False
    head = text[:_HEAD]
    return sum(map(len, _LATIN_RUN.findall(head))) * 2 > len(_LATIN.findall(head)) > 5


def _has(pattern: re.Pattern[str], marks: str = "") -> Callable[[str], bool]:
    """What tells whether a text has a pattern.

    Args:
        pattern: the pattern.
        marks: characters of which each match has one; without any it has one beyond ASCII. Most texts have
            none of them, and need not be searched.
    """

    def holds(text: str) -> bool:
        possible = any(mark in text for mark in marks) if marks else not text.isascii()
        return possible and pattern.search(text, 0, _HEAD) is not None

    return holds


def _is_escaped(text: str) -> bool:
    head = text[:_HEAD] if "\\" in text else ""
    return "\\u" in head or ("\n" not in head and "\\n" in head) if _ESCAPED.search(head) else False


_AGAIN = "export the file again as UTF-8, or name its encoding: medtasks data import --encoding NAME"
#: (what is wrong, what has it, the share of texts from which on it is a fault, how it is mended)
_CHARACTERS: tuple[tuple[str, Callable[[str], bool], float, str], ...] = (
    ("is UTF-8 that was read in another encoding", is_misread, 0.2, _AGAIN),
    ("was read in a Latin encoding that is not its own", is_legacy, 0.2, _AGAIN),
    ("holds characters that could not be read", _has(_LOST), 0.2, _AGAIN),
    ("has question marks in place of letters", _has(_MARK_IN_WORD, "?"), 0.3, _AGAIN),
    ("mixes Latin and Cyrillic letters in one word", _has(_TWO_SCRIPTS), 0.5, _AGAIN),
    ("holds HTML entities", _has(_ENTITY, "&"), 0.5, "export plain text"),
    ("holds markup (HTML or RTF)", _has(_MARKUP, "<{"), 0.6, "export plain text"),
    ("has escapes such as \\n written out", _is_escaped, 0.5, "read the escapes before the export"),
)

# ---------------------------------------------------------------------- placeholders

#: What a spreadsheet writes where a formula failed: never a text.
_SHEET = re.compile(r"#(?:REF|N/A|VALUE|NAME|DIV/0|NULL|NUM)[!?]?")
_PLACEHOLDER = re.compile(
    r"n/?a|nan|null|undefined|tbd|todo|redacted|removed|anonymi[sz]ed|xxx+|lorem ipsum\b.*",
    re.IGNORECASE | re.DOTALL,
)
_SHORT = 24  # characters of a placeholder
_AROUND = " \t\r\n[](){}<>.*_-"


@lru_cache(maxsize=1_024)  # labels and questions of one form recur
def is_placeholder(text: str) -> bool:
    """Whether a text stands for another."""
    return len(text) < 400 and bool(_SHEET.fullmatch(text) or _PLACEHOLDER.fullmatch(text.strip(_AROUND)))


# ---------------------------------------------------------------------- columns


def leaves(value: Any) -> Iterator[str]:
    """The texts in a cell of any form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


@dataclass
class _Column:
    """What is kept of a column."""

    n: int = 0  # texts
    n_looked_at: int = 0
    total: int = 0  # characters
    sizes: Counter[int] = field(default_factory=Counter)  # of distinct texts that may be cut
    #: of distinct short texts of several words: size, or `_ENDED` behind a mark, where no text is cut
    short: Counter[int] = field(default_factory=Counter)
    n_at_end: int = 0  # texts as long as a database or spreadsheet lets them be
    n_ellipsis: int = 0
    n_long: int = 0
    values: Counter[int] = field(default_factory=Counter)  # hashes, up to a thousand different ones
    odd: dict[int, list[str]] = field(default_factory=dict)  # number in `_CHARACTERS` -> rows
    placeholders: list[str] = field(default_factory=list)
    language: list[str] = field(default_factory=list)  # texts by which the language is told


class Columns:
    """The columns of the test rows of a dataset, seen row by row.

    Args:
        language: ISO 639 code of the dataset.
        right: rows that are right, such as the bundled ones: what their columns have is no fault.
        lengths: whether their texts are as long as those of others are.
    """

    def __init__(
        self, language: str, right: Iterable[Mapping[str, Any]] = (), *, lengths: bool = True
    ) -> None:
        self.language = language
        self.expected: dict[str, float] = {}  # column -> mean characters of its texts
        self.usual: set[tuple[str, int | None]] = set()  # column, and what of `_CHARACTERS`, or placeholders
        totals: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for row in right:
            for name, cell in row.items():
                if text := "\n".join(leaves(cell)):
                    totals[name] += len(text)
                    counts[name] += 1
                    if is_placeholder(text):
                        self.usual.add((name, None))
                    self.usual |= {(name, n) for n, (_, has, _, _) in enumerate(_CHARACTERS) if has(text)}
        self.expected = {name: totals[name] / counts[name] for name in counts} if lengths else {}
        self.columns: dict[str, _Column] = {}
        self.n_rows = 0

    def look(self, cells: Iterable[tuple[str, Any]], place: str, prompt: str) -> None:
        """See one row.

        Args:
            cells: column and cell.
            place: which row it is.
            prompt: what is asked about it.
        """
        self.n_rows += 1
        sampled = self.n_rows <= 500 or self.n_rows % 20 == 0
        for name, cell in cells:
            text = cell if isinstance(cell, str) else "\n".join(leaves(cell))
            if not text:
                continue
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = _Column()
            self._keep(column, cell, text, place, prompt, sampled)

    def _keep(self, column: _Column, cell: Any, text: str, place: str, prompt: str, sampled: bool) -> None:
        column.n += 1
        size = len(text)
        column.total += size
        if (size < _SHORT or text.startswith(("Lorem", "lorem"))) and is_placeholder(text):
            column.placeholders.append(place)
        if not sampled:
            return
        column.n_looked_at += 1
        known = hash(text)
        if known in column.values or len(column.values) < 1_000:
            column.values[known] += 1
        column.n_at_end += size in _ENDS
        if (
            isinstance(cell, str)
            and 40 <= size < 100
            and column.values[known] <= 1
            and text.count(" ") >= _WORDS
        ):
            column.short[size if text[-1].isalnum() or text[-1].isspace() else _ENDED] += 1
        if isinstance(cell, str) and size >= 100 and column.values[known] <= 1:
            column.n_long += 1
            column.sizes[size] += 1
            column.n_ellipsis += text.endswith(("...", "…"))
        for number, (_, holds, _, _) in enumerate(_CHARACTERS):
            if holds(text):
                column.odd.setdefault(number, []).append(place)
        if len(column.language) < _LANGUAGE_ROWS:
            prose = [part for part in leaves(cell) if _is_prose(part) and part.strip()[:_PROSE] in prompt]
            column.language += [part[:1_000] for part in prose[:3]]

    # ------------------------------------------------------------------ what is wrong

    def faults(self, *, large: bool = False) -> Iterator[Fault]:
        """What is wrong with the columns; `large`: the rows fill the memory."""
        languages = self._languages(large=large)
        for name, column in self.columns.items():
            named = f"column {name}"
            damaged = False
            for number, rows in column.odd.items():
                what, _, share, remedy = _CHARACTERS[number]
                if (name, number) not in self.usual and len(rows) >= max(2, share * column.n_looked_at):
                    damaged = damaged or number < 5
                    yield Fault(f"{named} {what}", remedy, rows, name)
            n_odd = len(column.placeholders)
            if n_odd > 0.005 * column.n and (name, None) not in self.usual:
                yield Fault(
                    f"{named} holds a placeholder in place of a text",
                    "fill the cell, or take the row out",
                    column.placeholders,
                    name,
                )
            if not damaged:
                yield from self._language(name, languages.get(name))
            yield from self._cut(name, column)
        yield from self._swapped()

    def _languages(self, *, large: bool) -> dict[str, str | None]:
        """Column -> the language of its texts, of columns with some."""
        texts = {
            name: " \n".join(dict.fromkeys(column.language))[:_LANGUAGE_CHARACTERS]
            for name, column in self.columns.items()
            if len(column.language) >= 3
        }
        told = languages_elsewhere if large else languages_of
        return dict(zip(texts, told([*texts.values()]), strict=True))

    def _language(self, name: str, language: str | None) -> Iterator[Fault]:
        if language and not _alike(language, self.language):
            yield Fault(
                f"column {name} is in language {language!r}, the task in {self.language!r}",
                "put the task's own file there",
                [],
                name,
            )

    def _cut(self, name: str, column: _Column) -> Iterator[Fault]:
        n, of = column.n_long, column.n_looked_at
        size, alike = column.short.most_common(1)[0] if column.short else (_ENDED, 0)
        n_short, longest = column.short.total(), max(column.sizes, default=0)
        at_end = column.sizes[longest]
        if (cut := column.n_at_end) >= max(3, 0.2 * of):
            where = "at 255, 256 or 32,767 characters"
        elif size != _ENDED and n_short >= _FEWEST and alike >= 0.8 * n_short > n:
            cut, of, where = alike, n_short, f"at exactly {size} characters"
        elif n < 4:
            return
        elif at_end >= 3 and at_end >= 0.15 * n:
            cut, of, where = at_end, n, f"at exactly {longest:,} characters"
        elif column.n_ellipsis >= max(4, 0.7 * n):
            cut, of, where = column.n_ellipsis, n, "in an ellipsis"
        else:
            return
        what = f"column {name} has {cut:,} of {of:,} texts that end {where}: they were cut"
        yield Fault(what, "export the whole texts", [], name)

    def _swapped(self) -> Iterator[Fault]:
        """Columns whose lengths are those of each other."""
        means = {name: column.total / column.n for name, column in self.columns.items() if column.n}
        names = [name for name in means if self.expected.get(name, 0) > 0]
        for index, one in enumerate(names):
            for other in names[index + 1 :]:
                short, long = sorted((one, other), key=lambda name: self.expected[name])
                if self.expected[long] < 2.5 * self.expected[short] or self.columns[long].n < _FEWEST:
                    continue
                if means[short] > 1.5 * means[long] and means[short] > 0.5 * self.expected[long]:
                    yield Fault(
                        f"columns {short} and {long} seem to be swapped: by their lengths each holds the"
                        " texts of the other",
                        "exchange their names",
                        [],
                        long,
                    )


def _is_prose(text: str) -> bool:
    """Whether a text can be of a language: the name of a file is of none."""
    return len(text) >= _PROSE and not _FILE_NAME.search(text, len(text) - 6)


def _alike(language: str, wanted: str) -> bool:
    return language == wanted or any({language, wanted} <= group for group in _ALIKE)


_LETTERS = re.compile(r"[^\W\d_]")
_CYRILLIC, _HAN, _KANA = re.compile("[Ѐ-ӿ]"), re.compile("[\u3400-\u9fff]"), re.compile("[\u3040-\u30ff]")


def languages_of(texts: Sequence[str]) -> list[str | None]:
    """The languages of texts, as `language_of`."""
    return [language_of(text) for text in texts]


def languages_elsewhere(texts: Sequence[str]) -> list[str | None]:
    """The same, told by a process of its own: py3langid's model takes 0.1 GB, which large files need.

    Texts go to it through a pipe, and nowhere else.
    """
    call = "import json, sys; from medtasks_ext.data.texts import languages_of as told; "
    call += "json.dump(told(json.load(sys.stdin)), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", call], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    if done.returncode:  # no process may be started here
        return languages_of(texts)
    languages: list[str | None] = json.loads(done.stdout)
    return languages


def language_of(text: str) -> str | None:
    """The ISO 639 code of a text; None where it cannot be told.

    The script decides between Chinese, Japanese and others; py3langid tells Latin and Cyrillic ones.
    """
    letters = len(_LETTERS.findall(text))
    if letters < 40:
        return None
    if len(_KANA.findall(text)) > 0.05 * letters:
        return "ja"
    if len(_HAN.findall(text)) > 0.3 * letters:
        return "zh"
    import py3langid

    code: str = py3langid.classify(text)[0]
    code = {"nb": "no", "nn": "no"}.get(code, code)
    if code == "zxx":  # ISO 639: no words of a language
        return None
    if code in ("zh", "ja", "ko") or (code == "ru") != (len(_CYRILLIC.findall(text)) > 0.4 * letters):
        return code if code == "ru" and _CYRILLIC.search(text) else None
    return code
