"""What proves that prompts and scores stay the same: `tasks.lock`.

For each sample row the lock holds two short hashes: of the row, with the answer that stands for a wrong one,
and of its prompts. For each dataset it holds one more: of how the replies of `replies.yaml` to its first row
are read and scored. Where a row is in the lock and still the same, so must its prompts be, and readings and
scores where the replies are the same, too; or the `N` of the task's version `N-X` must be higher. New rows,
replies, datasets and metrics are no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.answers.formats import AnswerFormat, answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.prompts.documents import Document, document_key
from medtasks_ext.prompts.shots import after
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.strategies import shots_of
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.runner.evaluate import Reader, Settings, build_task

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry

LOCK_FILE = "tasks.lock"
_HEAD = "# what scores follow from, by task; written by `medtasks dev lock`\n"
#: Of a row whose scores depend on language data that is not installed here.
_UNKNOWN = "-"
_LINE = re.compile(r"\w+ \d+-[A-Z](?: [0-9a-f]{8}=(?:[0-9a-f]{8}|-))?(?: [0-9a-f]{8}:[0-9a-f]{8})*")
#: Written at the ends of numbers that summation order may change.
_DIGITS = 9


@dataclass(frozen=True)
class Locked:
    """One dataset.

    Attributes:
        version: `N-X`.
        rows: hash of a row -> hash of its prompts.
        read: hash of the row to which the replies were read, and of the replies.
        readings: hash of how they are read and scored.
    """

    version: str
    rows: dict[str, str] = field(default_factory=dict)
    read: str = ""
    readings: str = _UNKNOWN

    @property
    def number(self) -> str:
        """`N`: scores of different ones are not comparable."""
        return self.version.partition("-")[0]


def lock_of(registry: Registry, dataset: Dataset) -> Locked:
    """What scores of a dataset follow from now."""
    tasks = [
        build_task(registry, dataset.task(strategy), Settings(data="sample", prompts="own"))
        for strategy in dataset.strategies
        if not shots_of(strategy)  # shots are other rows' prompts
    ]
    splits_sentences = any(metric["metric"] == "bleu_4" for metric in dataset.metric_list)
    known = not splits_sentences or tokeniser(dataset.metadata.language) is not None
    lines = filter(str.strip, dataset.sample_file.read_text(encoding="utf-8").split("\n"))
    rows = [line for line in lines if json.loads(line).get(SPLIT_KEY) == "test"]
    form = answer_format(dataset.blocks["answer"], where=dataset.file)
    prompts: dict[str, list[str]] = {}
    found: list[Any] = []
    for task in tasks:
        documents = task.eval_docs
        for place, document in enumerate(documents):
            other = documents[(place + 1) % len(documents)]
            number = int(document.row.partition(",")[0].rpartition(" ")[2])
            key = _short("\x1f".join([document_key(document), rows[number - 1], other["target"]]))
            prompts.setdefault(key, []).append(str(task.fewshot_context(document, num_fewshot=0)))
            if document.instruction:  # what its turn says after examples
                prompts[key].append(after(document, [document])["prompt"])
        if documents and known:
            first, second = documents[0], documents[1 % len(documents)]
            alone, reader = _alone(first, second, form), Reader(task)
            read = [reader.read(alone, text) for text in replies(alone["target"], second["target"])]
            scores = [task.process_results(alone, [parsed]).get("score") for parsed in read]
            found.append(
                [
                    [_plain(parsed["answer"]), parsed["valid"], _plain(score)]
                    for parsed, score in zip(read, scores, strict=True)
                ]
            )
    return Locked(
        dataset.version,
        {key: _short(json.dumps(said)) for key, said in prompts.items()},
        _short(f"{next(iter(prompts))}{_forms()}") if prompts else "",
        _short(json.dumps(found, sort_keys=True)) if known else _UNKNOWN,
    )


def _alone(document: Document, other: Document, form: AnswerFormat) -> Document:
    """The document as if only these two were there: labels are drawn from those of the gold of both."""
    copy = Document(document)
    copy.input, copy.row, copy.loaded = document.input, document.row, document.loaded
    if form.has_label_pool:
        golds = [item["gold"] for item in (document, other) if item["gold"] is not None]
        labels = sorted({label for gold in golds for label in form.labels_of(gold)})
        copy.loaded = replace(document.loaded, labels=labels)
    return copy


@lru_cache(maxsize=1)
def _forms() -> tuple[str, ...]:
    """The replies of `replies.yaml`, with places for answers."""
    said = yaml.safe_load(Path(__file__).with_name("replies.yaml").read_text(encoding="utf-8"))
    announced = [f"{form}{more}" for form in said["announcements"] for more in ("", *said["rationales"])]
    return (*announced, *said["corrections"], *said["others"])


def replies(target: str, other: str) -> list[str]:
    """The fixed set.

    `target`: the gold answer as written. other: another row's.
    """
    return [form.replace("{x}", target).replace("{y}", other) for form in _forms()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(_plain(item)) for item in value)
    if hasattr(value, "item"):  # a number of numpy
        return _plain(value.item())
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _short(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


# ---------------------------------------------------------------------- the file of the lock


def read_lock(path: Path, *, newest: bool = False) -> dict[str, Locked]:
    """The lock, dataset -> what is locked; empty where there is no file.

    `newest`: take the line with the higher `N` where a dataset has two, as after a merge of two branches that
    raised versions; of two with one `N` the later.
    """
    found: dict[str, Locked] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if not _LINE.fullmatch(line):
            raise MedtasksError(
                "not a line of a lock",
                where=f"{path}:{number}",
                remedy="delete the line; `medtasks dev lock` writes what is missing",
            )
        if name in found and not newest:
            raise MedtasksError(
                f"a second line of {name}, as a merge leaves it",
                where=f"{path}:{number}",
                remedy=f"call `medtasks dev lock {name}`, which keeps the newest",
            )
        version, *parts = rest.split(" ")
        row, _, readings = parts.pop(0).partition("=") if parts and "=" in parts[0] else ("", "", _UNKNOWN)
        rows = dict(part.split(":") for part in parts)
        locked = Locked(version, rows, row, readings)
        if name not in found or int(found[name].number) <= int(locked.number):
            found[name] = locked
    return found


def lock_text(locked: dict[str, Locked]) -> str:
    """The lock as a file: one line a dataset, in the order of names."""
    lines = []
    for name, item in sorted(locked.items()):
        read = [f"{item.read}={item.readings}"] if item.read else []
        lines.append(" ".join([name, item.version, *read, *map(":".join, sorted(item.rows.items()))]))
    return _HEAD + "\n".join(lines) + "\n"


def broken(old: Locked, new: Locked) -> Iterator[str]:
    """What changed without a new `N`: `prompts`, `readings or scores`."""
    if old.number != new.number:
        return
    if any(old.rows[row] != new.rows[row] for row in old.rows.keys() & new.rows.keys()):
        yield "prompts"
    same_row = old.read == new.read and _UNKNOWN not in (old.readings, new.readings)
    if same_row and old.readings != new.readings:
        yield "readings or scores"


def merged(old: Locked | None, new: Locked) -> Locked:
    """What is written: hashes that cannot be computed here stay as they were."""
    if new.readings == _UNKNOWN and old and old.read == new.read:
        return replace(new, readings=old.readings)
    return new
