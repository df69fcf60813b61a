"""Two recordings side by side: what is equal, what differs, and which differences are named mends."""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from golden_words import Words

SHORT = 160
_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
    ".csv": lambda text: list(csv.DictReader(io.StringIO(text, newline=""))),
}
_NONE = "(nothing)"
_NEEDED = {"item", "path", "why"}  # keys of a mend
_MORE = ("one", "other", "without", "tasks")
_NUMBER = re.compile(r"[-+]?[\d.]*(e[-+]?\d+)?")
_WORD = re.compile(r"\[[^\]]*\]\S*|\S+")  # an interval is one


@dataclass(frozen=True)
class Difference:
    """One value that is another.

    Attributes:
        item: name of what was recorded.
        path: file of the item, and the place in it: `stdout.json:/tasks/0/score`, `stdout.txt:12`,
            `stdout.txt:12 layout` where lines have the same words, otherwise spaced or broken.
        one, other: the two values as text; words or lines of a text.
    """

    item: str
    path: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"  {self.path}\n    - {_short(self.one)}\n    + {_short(self.other)}"


@dataclass
class Mend:
    """A difference that is expected.

    Attributes:
        item, path, one, other: patterns as of a shell; `one` and `other` are the two values.
        why: the reason, for readers.
        without: regular expression; what it finds is taken out of both values, which must then be equal.
        tasks: names of tasks, one of which the path or a value names, whatever its strategy.
        met: how many differences it explains.
    """

    item: str
    path: str
    why: str
    one: str = "*"
    other: str = "*"
    without: str = ""
    tasks: tuple[str, ...] = ()
    met: int = field(default=0)

    def explains(self, difference: Difference) -> bool:
        """Whether a difference is this mend."""
        if not all(
            fnmatchcase(getattr(difference, name), getattr(self, name))
            for name in ("item", "path", "one", "other")
        ):
            return False
        texts = (difference.path, difference.one, difference.other)
        if self.tasks and not any(map(self._names_a_task, texts)):
            return False
        if not self.without:
            return True
        rest = [re.sub(self.without, "", text) for text in texts[1:]]
        return rest[0].split() == rest[1].split() and tuple(rest) != texts[1:]

    def _names_a_task(self, text: str) -> bool:
        names = "|".join(self.tasks)
        return bool(re.search(rf"(?<![a-z0-9_])({names})(_cot|_5shot|_ll)?(?![a-z0-9_])", text))


def read_mends(path: Path) -> list[Mend]:
    """The named mends of a YAML list; keys: item, path, why, and if need be one, other, without, tasks.

    Raises:
        SystemExit: for an entry that is none.
    """
    mends = []
    for place, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")) or []):
        keys = set(entry) if isinstance(entry, dict) else set()
        if not _NEEDED <= keys <= {*_NEEDED, *_MORE}:
            raise SystemExit(
                f"{path}: entry {place}: give item, path and why, and if need be {', '.join(_MORE)}"
            )
        tasks = tuple(entry.pop("tasks", ()))
        mends.append(Mend(**{key: str(value) for key, value in entry.items()}, tasks=tasks))
    return mends


def index_of(folder: Path) -> dict[str, Any]:
    """item -> what is known of it: `made` (whether it tells of the making of runs), `words`, `code`.

    Raises:
        SystemExit: if the folder is no recording.
    """
    file = folder / "index.json"
    if not file.is_file():
        raise SystemExit(f"{folder}: no recording; make one: python tools/golden.py record {folder}")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def compare(one: Path, other: Path, mends: list[Mend], only: str = "*", most: int = 12) -> int:
    """Print what differs; 1 if there is a difference that no mend explains, else 0."""
    indices = index_of(one), index_of(other)
    # a recording of earlier runs tells nothing of their making
    made = all(any(entry["made"] for entry in index.values()) for index in indices)
    names = sorted({*indices[0], *indices[1]})
    equal, bad, mended = 0, Counter[str](), 0
    for name in names:
        entries = [index[name] for index in indices if name in index]
        if not fnmatchcase(name, only) or (not made and any(entry["made"] for entry in entries)):
            continue
        found = list(differences(name, *(folder / "items" / name for folder in (one, other))))
        rest = [item for item in found if not _explained(item, mends)]
        mended += len(found) - len(rest)
        if not found:
            equal += 1
        if rest:
            bad[name] = len(rest)
            print(f"{name}: {len(rest)} differences")
            show(rest, most)
    for mend in mends:
        if not mend.met:
            print(f"nothing is mended by: {mend.item} {mend.path} ({mend.why})")
    places = f"{len(bad)} differ in {sum(bad.values())} places"
    print(f"{equal} items equal, {places}, {mended} differences are named mends")
    return 1 if bad else 0


def _like(path: str) -> str:
    """A path without its numbers: places that differ alike are told together."""
    return re.sub(r"\d+", "#", path)


def show(found: list[Difference], most: int) -> None:
    """Print differences, those at places alike together: how many, and the first of them."""
    alike: dict[str, list[Difference]] = {}
    for item in found:
        alike.setdefault(_like(item.path), []).append(item)
    for items in list(alike.values())[:most]:
        shown = items[: 4 if ".txt:" in items[0].path else 1]  # each line of a text says something else
        print(*map(str, shown), sep="\n")
        if len(items) > len(shown):
            print(f"    and {len(items) - len(shown)} alike")
    if len(alike) > most:
        print(f"  … {len(alike) - most} kinds more")


def _explained(difference: Difference, mends: list[Mend]) -> bool:
    for mend in mends:
        if mend.explains(difference):
            mend.met += 1
            return True
    return False


def differences(item: str, one: Path, other: Path) -> Iterator[Difference]:
    """What differs between the files of an item."""
    names = [{str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()} for f in (one, other)]
    for name in sorted(names[0] | names[1]):
        if name not in names[0]:
            yield Difference(item, name, _NONE, "a file")
        elif name not in names[1]:
            yield Difference(item, name, "a file", _NONE)
        else:
            texts = [(f / name).read_text(encoding="utf-8") for f in (one, other)]
            if texts[0] != texts[1]:
                yield from _unlike(item, name, texts[0], texts[1])


def _unlike(item: str, name: str, one: str, other: str) -> Iterator[Difference]:
    read = _READERS.get(Path(name).suffix)
    # once more, for recordings that knew fewer words for times and places
    words = Words({})
    if read:
        for path, left, right in _values(words.value(read(one)), words.value(read(other)), ""):
            yield Difference(item, f"{name}:{path}", left, right)
        return
    lines = words.text(one).splitlines(), words.text(other).splitlines()
    matcher = difflib.SequenceMatcher(None, *lines, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            for left, right in _lines(lines[0][a:b], lines[1][c:d]):
                same = left.split() == right.split()
                yield Difference(item, f"{name}:{a + 1}{' layout' * same}", left, right)


def _lines(one: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """What differs between some lines: words of as many lines, and of lines that begin alike; else lines."""
    if len(one) == len(other):
        yield from _words(one, other)
        return
    begin = [[(line.split() or [""])[0] for line in lines] for lines in (one, other)]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *begin, autojunk=False).get_opcodes():
        if kind == "equal":
            for left, right in zip(one[a:b], other[c:d], strict=True):
                if left != right:
                    yield from _words([left], [right])
        else:
            yield from ((line, _NONE) for line in one[a:b])
            yield from ((_NONE, line) for line in other[c:d])


def _words(one: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """The words in which some lines differ; all of them where only their spaces, ends and rules do."""
    found = [(word for line in lines for word in _WORD.findall(line)) for lines in (one, other)]
    texts = [[word for word in words if word.strip("─")] for words in found]
    if texts[0] == texts[1]:
        yield " ".join(texts[0]), " ".join(texts[1])
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if kind != "equal":
            yield " ".join(texts[0][a:b]) or _NONE, " ".join(texts[1][c:d]) or _NONE


def _values(one: Any, other: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Places where two JSON values are unlike; floats are compared exactly, 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                yield f"{path}/{key}", _text(one, key), _text(other, key)
            else:
                yield from _values(one[key], other[key], f"{path}/{key}")
        if list(one) != list(other) and set(one) == set(other):
            yield f"{path}/(order of keys)", ", ".join(one), ", ".join(other)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _values(left, right, f"{path}/{place}")
    elif isinstance(one, list) and isinstance(other, list):
        names = [[_name(item) for item in items] for items in (one, other)]
        yield f"{path}/(length)", str(len(one)), str(len(other))
        for kind, a, b, c, d in difflib.SequenceMatcher(None, *names, autojunk=False).get_opcodes():
            if kind == "equal":
                for place, (left, right) in enumerate(zip(one[a:b], other[c:d], strict=True), start=a):
                    yield from _values(left, right, f"{path}/{place}")
            else:
                texts = [
                    " ".join(json.dumps(item, sort_keys=True) for item in items) or _NONE
                    for items in (one[a:b], other[c:d])
                ]
                yield f"{path}/{a}", *texts
    elif type(one) is not type(other) or (
        one != other and not (one != one and other != other)
    ):  # not a number
        yield path, json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)


def _name(item: Any) -> str:
    """What a member of a list is called: the words of a row, or all of another value."""
    if not isinstance(item, dict) or not item:
        return json.dumps(item, sort_keys=True)
    words = (value for value in item.values() if isinstance(value, str) and not _NUMBER.fullmatch(value))
    return "\t".join(words)


def _text(content: dict[str, Any], key: str) -> str:
    return json.dumps(content[key], ensure_ascii=False) if key in content else _NONE


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 40]} … {text[-36:]}"
