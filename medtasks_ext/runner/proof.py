"""What proves that prompts and scores stay the same: `tasks.lock`.

The lock holds hashes of each sample row and of its prompts, and one of how the replies of `replies.yaml` to a
dataset's first row are read and scored. What a row or reply had, it must still have, or the `N` of the task's
version `N-X` must be higher. New rows, replies, datasets and metrics are no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from medtasks_ext.answers.formats import AnswerFormat, answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.prompts.documents import Document, document_key
from medtasks_ext.prompts.shots import after
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.strategies import shots_of
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.runner.evaluate import Settings, build_task, reader_of
from medtasks_ext.strict import read_yaml

LOCK_FILE = "tasks.lock"
_HEAD = "# what scores follow from, by task; written by `medtasks dev lock`\n"
#: Of a row whose scores depend on language data that is not installed here.
_UNKNOWN = "-"
_LINE = re.compile(r"(\w+) (\d+-[A-Z])(?: ([0-9a-f]{8})=([0-9a-f]{8}|-))?((?: [0-9a-f]{8}:[0-9a-f]{8})*)")
#: Written at the ends of numbers that summation order may change.
_DIGITS = 9


@dataclass(frozen=True)
class Locked:
    """One dataset."""

    version: str  # `N-X`
    rows: dict[str, str]  # hash of a row -> hash of its prompts
    read: str  # hash of the row to which the replies were read, and of the replies
    readings: str  # hash of how they are read and scored

    @property
    def number(self) -> int:
        """`N`: scores of different ones are not comparable."""
        return int(self.version.partition("-")[0])


def lock_of(registry: Registry, dataset: Dataset, old: Locked | None) -> Locked:
    """What scores of a dataset follow from now; what cannot be computed here stays as it was."""
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
            alone, reader = _alone(first, second, form), reader_of(task)
            replies = (text.replace("{x}", alone["target"]) for text in _forms())
            read = [reader(alone, text.replace("{y}", second["target"])) for text in replies]
            scored = [(one, task.process_results(alone, [one]).get("score")) for one in read]
            found.append([[one["answer"], one["valid"], score] for one, score in scored])
    row = _short(f"{next(iter(prompts))}{_forms()}") if prompts else ""
    readings = _short(json.dumps(_plain(found), sort_keys=True)) if known else _UNKNOWN
    if not known and old and old.read == row:
        readings = old.readings
    rows_locked = {key: _short(json.dumps(said)) for key, said in prompts.items()}
    return Locked(dataset.version, rows_locked, row, readings)


def _alone(document: Document, other: Document, form: AnswerFormat) -> Document:
    """The document as if only these two were there: labels are drawn from those of the gold of both."""
    alone = copy(document)
    if form.has_label_pool:
        golds = [item["gold"] for item in (document, other) if item["gold"] is not None]
        labels = sorted({label for gold in golds for label in form.labels_of(gold)})
        alone.loaded = replace(document.loaded, labels=labels)
    return alone


@lru_cache(maxsize=1)
def _forms() -> tuple[str, ...]:
    """The replies of `replies.yaml`, with places for answers."""
    said = read_yaml(Path(__file__).with_name("replies.yaml"))
    announced = [f"{form}{more}" for form in said["announcements"] for more in ("", *said["rationales"])]
    return (*announced, *said["corrections"], *said["others"])


def _plain(value: Any) -> Any:
    """As JSON has it; a set is sorted."""

    def of(item: Any) -> Any:
        if isinstance(item, set | frozenset):
            return sorted(map(str, item))
        return item.item() if hasattr(item, "item") else str(item)  # a number of numpy

    return json.loads(json.dumps(value, default=of), parse_float=lambda text: round(float(text), _DIGITS))


def _short(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


def read_lock(path: Path) -> dict[str, Locked]:
    """The lock, dataset -> what is locked; empty where there is no file."""
    found: dict[str, Locked] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[1] in found:
            what = "not a line of a lock" if match is None else f"a second line of {match[1]}"
            remedy = "delete the line; `medtasks dev lock` writes what is missing"
            raise MedtasksError(what, where=f"{path}:{number}", remedy=remedy)
        rows = dict(part.split(":") for part in match[5].split())
        found[match[1]] = Locked(match[2], rows, match[3] or "", match[4] or _UNKNOWN)
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
    if old.read == new.read and old.readings not in (_UNKNOWN, new.readings):
        yield "readings or scores"
