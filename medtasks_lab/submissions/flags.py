"""What a person looks at before a submission has a rank: copies, scores too good, the gold's own words.

A flag is no proof of anything. Until a maintainer has cleared it (`register.yaml`) nothing of the submission
is ranked. Of two submissions with the same answers or scores the later one waits; of the same day both do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.registry.yamlfile import read_mapping
from medtasks_ext.results.published import published_entries
from medtasks_lab.submissions.record import FlagKind

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.documents import PublicScores
    from medtasks_lab.submissions.record import Submission
    from medtasks_lab.submissions.rescored import Rebuilt

#: Characters from which on a text is not written twice by chance.
LONG = 40
#: Documents with the same scores, or long texts that are the same, from which on a person looks.
FEWEST = 50
#: Share of long answers of another submission, or in the gold's own words, from which on a person looks.
COPIED, IN_GOLD = 0.2, 0.02
#: Gold answers to the letter, from which on a person looks.
FEWEST_IN_GOLD = 5
#: How far above the best published score one is whose interval does not hold that, in what share of tasks.
ABOVE, OF_TASKS = 0.1, 0.05


@dataclass(frozen=True)
class Flag:
    """Why a person looks at a submission."""

    kind: FlagKind
    words: str  # what was found
    waits: bool = True  # whether it has no rank until it is cleared

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


@dataclass
class Evidence:
    """What a submission is compared by.

    Attributes:
        name: ORG/MODEL/DATE.
        scores: task of open data -> digest of its documents' scores, where these are not all the same.
        n: task -> its documents.
        answers: task -> digest of its answers.
        long: hashes of (document, answer) of long answers to open data.
        in_gold: gold answers that answers repeat to the letter, and all; of long ones that no prompt holds.
    """

    name: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    n: dict[str, int] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    long: set[int] = field(default_factory=set)
    in_gold: tuple[int, int] = (0, 0)

    @classmethod
    def of(
        cls, name: str, record: Submission, documents: Mapping[str, PublicScores], tasks: Registry
    ) -> Evidence:
        """That of a record and of its documents; answers are added with `look`."""
        found = cls(name)
        for task, item in record.tasks.items():
            asked = tasks.asked(task)
            found.n[task] = item.n
            if item.answers:
                found.answers[task] = item.answers
            if asked and asked[0].metadata.access == "open" and documents[task].sums is None:
                values = documents[task].scores.scores
                if len(np.unique(values[~np.isnan(values)])) > 1:
                    found.scores[task] = sha256(values.tobytes()).hexdigest()
        return found

    def look(self, task: str, found: Rebuilt) -> None:
        """Add the answers to a task, whose gold is known here."""
        repeated, golds = self.in_gold
        free = str(found.dataset.config["answer"]["kind"]) in ("free_text", "prose", "text")
        for sample in found.samples:
            answer = _words(str(sample["resps"][0][0]))
            if len(answer) >= LONG:
                text = f"{found.dataset.id}\x1f{sample['doc']['id']}\x1f{answer}"
                self.long.add(int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big"))
            gold = _words(str(sample["target"]))
            if free and len(gold) >= LONG and gold not in _words(str(sample["doc"]["prompt"])):
                golds += 1
                repeated += gold in answer
        self.in_gold = (repeated, golds)

    @property
    def model(self) -> str:
        """ORG/MODEL, as names are compared."""
        return self.name.rpartition("/")[0].casefold()

    @property
    def date(self) -> str:
        """Of the submission."""
        return self.name.rpartition("/")[2]


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def flags_of(
    record: Submission, mine: Evidence, others: Iterable[Evidence], tasks: Registry
) -> Iterator[Flag]:
    """What a person should look at.

    Args:
        mine: evidence of the record.
        others: of other submissions.
    """
    for other in others:
        if other.model != mine.model:
            yield from _alike(mine, other)
    if found := _far_above(record, tasks):
        yield found
    repeated, golds = mine.in_gold
    if repeated >= FEWEST_IN_GOLD and repeated >= IN_GOLD * golds:
        words = f"{repeated:,} answers hold one of {golds:,} long gold answers to the letter"
        yield Flag("answers in the gold's own words", words)


def _alike(mine: Evidence, other: Evidence) -> Iterator[Flag]:
    waits = other.date <= mine.date  # the earlier one does not wait for its copies
    pairs: list[tuple[FlagKind, dict[str, str], dict[str, str]]] = [
        ("answers of another submission", mine.answers, other.answers),
        ("scores of another submission", mine.scores, other.scores),
    ]
    for kind, one, two in pairs:
        same = [task for task, digest in one.items() if two.get(task) == digest and task in mine.scores]
        n = sum(mine.n[task] for task in same)
        if n >= FEWEST:
            tasks = f"{len(same)} task{'s' * (len(same) != 1)}"
            yield Flag(kind, f"{n:,} documents of {tasks} have those of {other.name}", waits)
            return
    shared = len(mine.long & other.long)
    if shared >= FEWEST and shared >= COPIED * len(mine.long):
        words = f"{shared:,} of {len(mine.long):,} long answers are those of {other.name}"
        yield Flag("answers of another submission", words, waits)


def _far_above(record: Submission, tasks: Registry) -> Flag | None:
    best, compared, above = _best_published(tasks), 0, []
    for name, item in record.tasks.items():
        if (known := best.get(name)) is not None and item.score is not None:
            compared += 1
            low = item.score if item.spread is None else item.spread.low
            if item.score > known + ABOVE and low > known:
                above.append(name)
    if not above or len(above) < OF_TASKS * compared:
        return None
    words = f"{len(above)} of {compared} tasks lie more than {ABOVE:g} above it"
    return Flag("far above the best published", f"{words} (first: {above[0]})")


@lru_cache(maxsize=4)
def _best_published(tasks: Registry) -> dict[str, float]:
    """Task -> the best score that a paper prints."""
    found: dict[str, float] = {}
    for entry in published_entries(tasks):
        for name, item in entry.experiments.items():
            if item.score is not None:
                found[name] = max(found.get(name, 0.0), item.score)
    return found


def waiting(flags: Sequence[Flag]) -> str:
    """Why a submission has no rank yet, by its flags; empty where none waits."""
    return "; ".join(str(flag) for flag in flags if flag.waits)


def undetected() -> dict[str, str]:
    """Kinds of forgeries that no check can tell from honest work -> words for readers."""
    said = read_mapping(Path(__file__).with_name("undetected.yaml"))
    return {str(name): str(words) for name, words in said.items()}
