"""`tasks.lock`: what scores of each task follow from, so that a change without a new version is seen.

For each sample row the lock holds three short hashes: of the row, with the answer that stands for a wrong
one; of its prompts; and of how a fixed set of responses to it is read and scored. All three follow from these
alone. Where a row is in the lock and still the same, so must prompts, readings and scores be, or the `N` of
the task's version `N-X` must be higher. New rows and datasets are no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from lm_eval.api.task import Task

from medtasks_ext.answers.formats import AnswerFormat, answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.prompts.documents import Document, document_key
from medtasks_ext.prompts.shots import after
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.strategies import shots_of
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.runner.evaluate import Reader, Settings, build_task

LOCK_FILE = "tasks.lock"
_HEAD = "# what scores follow from, by task; written by `medtasks dev lock`\n"
#: Of a row whose scores depend on language data that is not installed here.
_UNKNOWN = "-"
_LINE = re.compile(r"\w+ \d+-[A-Z](?: [0-9a-f]{8}:[0-9a-f]{8}:(?:[0-9a-f]{8}|-))*")
#: Written at the ends of numbers that summation order may change.
_DIGITS = 9


@dataclass(frozen=True)
class Locked:
    """One dataset."""

    version: str  # `N-X`
    #: hash of a row -> (hash of its prompts, hash of readings and scores)
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def number(self) -> str:
        """`N`: scores of different ones are not comparable."""
        return self.version.partition("-")[0]


def lock_of(registry: Registry, dataset: Dataset) -> Locked:
    """What scores of a dataset follow from now.

    Raises:
        MedtasksError: its sample rows cannot be read, or prompts cannot be rendered.
    """
    tasks = [
        build_task(registry, dataset.task(strategy), Settings(data="sample", prompts="own"))
        for strategy in dataset.strategies
        if not shots_of(strategy)  # shots are other rows' prompts
    ]
    splits_sentences = any(metric["metric"] == "bleu_4" for metric in dataset.metric_list)
    known = not splits_sentences or tokeniser(dataset.metadata.language) is not None
    rows, form = _test_rows(dataset.sample_file), answer_format(dataset.blocks["answer"], where=dataset.file)
    prompts: dict[str, list[str]] = {}
    scores: dict[str, list[Any]] = {}
    for task in tasks:
        documents = task.eval_docs
        reader = Reader(task)
        for place, document in enumerate(documents):
            other = documents[(place + 1) % len(documents)]
            number = int(document.row.partition(",")[0].rpartition(" ")[2])
            key = _short("\x1f".join([document_key(document), rows[number - 1], other["target"]]))
            prompts.setdefault(key, []).append(str(task.fewshot_context(document, num_fewshot=0)))
            if document.instruction:  # what its turn says after examples
                prompts[key].append(after(document, [document])["prompt"])
            alone = _alone(document, other, form)
            scores.setdefault(key, []).append(_scored(task, reader, alone, other["target"]))
    return Locked(
        dataset.version,
        {
            key: (
                _short(json.dumps(prompts[key])),
                _short(json.dumps(scores[key], sort_keys=True)) if known else _UNKNOWN,
            )
            for key in prompts
        },
    )


def _test_rows(path: Path) -> list[str]:
    """The lines of test rows, in order."""
    lines = filter(str.strip, path.read_text(encoding="utf-8").split("\n"))
    return [line for line in lines if json.loads(line).get(SPLIT_KEY) == "test"]


def _alone(document: Document, other: Document, form: AnswerFormat) -> Document:
    """The document as if only these two were there: labels are drawn from those of the gold of both."""
    copy = Document(document)
    copy.input, copy.row, copy.loaded = document.input, document.row, document.loaded
    if form.has_label_pool:
        golds = [item["gold"] for item in (document, other) if item["gold"] is not None]
        labels = sorted({label for gold in golds for label in form.labels_of(gold)})
        copy.loaded = replace(document.loaded, labels=labels)
    return copy


def responses(target: str, other: str) -> list[str]:
    """The fixed set: right, wrong, dressed up, broken and empty answers.

    Args:
        target: the gold answer as written.
    """
    half = len(target) // 2
    return [
        target,
        other,
        "",
        "◇◇◇",
        target[:half],
        f"{target}\n{other}",
        f"{other}\n\n{target}",
        f"<think>{other}</think>{target}",
        f"{other}</think>\n<think></think>{target}",
        f"{target}</think>{other}</think>{target}",
        f"<think>{other} {target}",
        f"Analysis:\n{other}\nResult:\n{target}",
        f"The answer is {target}.",
        f"答案：{target}",
        f"**{target}**",
        f"```json\n{target}\n```",
        f"```\n{target}\n```\nI hope this helps.",
        f" {target.upper()} ",
        target.lower(),
        re.sub(r"\s+", " ", target),
        target.replace(":", "：").replace(",", "，"),
        f"({target[:1]}) {target}",
        "\n".join(reversed(target.splitlines())),
    ]


def _scored(task: Task, reader: Reader, document: Any, other: str) -> list[Any]:
    """Readings and metrics of each response, and what aggregations make of all of them."""
    rows: list[Any] = []
    values: dict[str, list[Any]] = {}
    for text in responses(document["target"], other):
        parsed = reader.read(document, text)
        found = task.process_results(document, [parsed])
        rows.append([_plain(_readings(parsed)), {name: _plain(value) for name, value in found.items()}])
        for name, value in found.items():
            values.setdefault(name, []).append(value)
    aggregate = task.aggregation()
    return [
        rows,
        {name: _aggregated(aggregate[name], items) for name, items in values.items() if name in aggregate},
    ]


def _readings(parsed: Any) -> Any:
    """Both readings without the places and the reasons, from which no score follows."""
    if isinstance(parsed, dict):
        return {name: _readings(value) for name, value in parsed.items() if name not in ("span", "why")}
    return parsed


def _aggregated(function: Any, items: Sequence[Any]) -> Any:
    try:
        return _plain(function(items))
    except (ValueError, ZeroDivisionError, KeyError, IndexError) as error:  # some need other rows besides
        return type(error).__name__


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


# ---------------------------------------------------------------------- the file


def read_lock(path: Path, *, newest: bool = False) -> dict[str, Locked]:
    """The lock, dataset -> what is locked; empty where there is no file.

    Args:
        newest: take the line with the higher `N` where a dataset has two, as after a merge of two branches
            that raised versions; of two with one `N` the later.

    Raises:
        MedtasksError: a line is none of a lock, or a dataset has two.
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
        version, *rows = rest.split(" ")
        parts = [row.split(":") for row in rows]
        locked = Locked(version, {row: (prompts, scores) for row, prompts, scores in parts})
        if name not in found or int(found[name].number) <= int(locked.number):
            found[name] = locked
    return found


def lock_text(locked: dict[str, Locked]) -> str:
    """The lock as a file: one line a dataset, in the order of names."""
    lines = [
        " ".join(
            [name, item.version, *(":".join([row, *hashes]) for row, hashes in sorted(item.rows.items()))]
        )
        for name, item in sorted(locked.items())
    ]
    return _HEAD + "\n".join(lines) + "\n"


def broken(old: Locked, new: Locked) -> Iterator[str]:
    """What changed without a new `N`: `prompts`, `readings or scores`."""
    if old.number != new.number:
        return
    both = [(old.rows[row], new.rows[row]) for row in old.rows.keys() & new.rows.keys()]
    if any(before[0] != now[0] for before, now in both):
        yield "prompts"
    if any(before[1] != now[1] and _UNKNOWN not in (before[1], now[1]) for before, now in both):
        yield "readings or scores"


def merged(old: Locked | None, new: Locked) -> Locked:
    """What is written: hashes that cannot be computed here stay as they were."""
    rows = {
        row: (prompts, old.rows[row][1] if scores == _UNKNOWN and old and row in old.rows else scores)
        for row, (prompts, scores) in new.rows.items()
    }
    return Locked(new.version, rows)
