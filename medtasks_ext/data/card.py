"""The data card of a dataset's rows: counts, labels, lengths, repeats, ids, an oracle's score. No text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from medtasks_ext.data.oracle import Oracle, oracle_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset


@dataclass(frozen=True)
class TextLengths:
    """Characters of texts."""

    shortest: int
    median: int
    longest: int


@dataclass(frozen=True)
class RowsCard:
    """What the rows of a dataset are like."""

    n_test: int  # questions that can be scored; one that is asked in several trials counts once
    n_paper: int  # as many has the suite's own test part
    labels: dict[str, int]  # gold label -> documents, where the answer format lists its labels
    prompt: TextLengths  # lengths of the prompts
    answer: TextLengths  # lengths of the gold answers
    n_repeated: int  # documents whose prompt an earlier one has
    n_personal_ids: int  # rows whose id looks like a name or a record number, where they are not open
    oracle: Oracle | None  # what the gold answers themselves score; None where judges give the score

    def notes(self) -> list[str]:
        """What is worth knowing before a run."""
        lines = []
        if self.n_test != self.n_paper:
            lines.append(f"{self.n_test:,} test rows; the suite's own test part has {self.n_paper:,}")
        if len(self.labels) == 1 and self.n_test > 1:
            lines.append(f"all gold answers are {next(iter(self.labels))}: any model that says so is right")
        if self.n_repeated:
            lines.append(f"{self.n_repeated:,} prompts are asked more than once")
        if self.n_personal_ids:
            lines.append(
                f"{self.n_personal_ids:,} ids look like names or record numbers; ids stay with the answers"
            )
        if (oracle := self.oracle) and oracle.is_lost_by_the_suite:
            answers = "1 gold answer" if oracle.n_lost == 1 else f"{oracle.n_lost:,} gold answers"
            lines.append(
                f"the suite's own reading loses a part of {answers}:"
                f" perfect answers score {oracle.score:.4f}, by the repaired reading {oracle.repaired:.4f}"
            )
        return lines

    def record(self) -> Json:
        """As JSON."""
        return asdict(self)


def card_of(dataset: Dataset, documents: Documents) -> RowsCard:
    """The card of documents as zero-shot prompts.

    Args:
        documents: at least one.
    """
    ids = {str(item.get("item", item["id"])) for item in documents}
    prompts = {hash((item["system"], item["prompt"])) for item in documents}
    golds = [item for item in documents if item["gold"] is not None]
    return RowsCard(
        n_test=len(ids),
        n_paper=dataset.metadata.n_test,
        labels=_labels(dataset, golds),
        prompt=_lengths(len(item["prompt"]) for item in documents),
        answer=_lengths(len(item["target"]) for item in documents),
        n_repeated=len(documents) - len(prompts),
        n_personal_ids=0 if dataset.metadata.access == "open" else sum(map(looks_personal, ids)),
        oracle=oracle_of(dataset, golds),
    )


def _lengths(sizes: Iterable[int]) -> TextLengths:
    ordered = sorted(sizes)
    return TextLengths(ordered[0], int(median(ordered)), ordered[-1])


def _labels(dataset: Dataset, golds: list[Any]) -> dict[str, int]:
    """Labels that the task file lists; others may be a row's text."""
    answer = dataset.blocks["answer"]
    listed = [*answer.get("letters", ()), *answer.get("labels", ())]
    counts = Counter(
        str(label)
        for item in golds
        for label in (item["gold"] if isinstance(item["gold"], list) else [item["gold"]])
        if isinstance(label, str)
    )
    return {str(label): counts[str(label)] for label in listed if counts[str(label)]}


# ---------------------------------------------------------------------- signs of who a patient is


#: A word for a record number and the number, or a number as long as one.
_RECORD_NUMBER = re.compile(r"(mrn|patient|pat_?id|ssn|fallnr|fallnummer)[ _.:#-]*\d|\d{7}", re.IGNORECASE)
#: A form of address and a name. An abbreviation such as `St. Martin` is none.
_NAME = re.compile(
    r"\b(?:Herr|Herrn|Frau|Hr\.|Fr\.|Mr\.?|Mrs\.?|Ms\.?|Miss|Mme|Monsieur|Madame|Sig\.(?:ra)?|Signora?|Sra?\.|"
    r"Señora?|Senhora?|Dhr\.|Mevr\.|Dr\.?|Prof\.)\s+(?:(?:med|von|van|de|di|da)\.?\s+)*[^\W\d_a-zß-ÿ][^\W\d_]+"
)
_BIRTH = re.compile(
    r"\b(?:geb\.?|geboren(?: am)?|dob|born(?: on)?|date of birth|n[ée]e? le|nat[oa] il|nacid[oa] el)"
    r"\W{0,3}\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}",
    re.IGNORECASE,
)
#: What a text may hold -> its sign.
SIGNS = {"a name": _NAME, "a record number": _RECORD_NUMBER, "a date of birth": _BIRTH}


def looks_personal(name: str) -> bool:
    """Whether an id looks like a name or a record number."""
    words = re.split(r"[ _,.-]+", name)
    names = [word for word in words if len(word) > 1 and word.isalpha() and word[0].isupper()]
    return len(names) > 1 or _RECORD_NUMBER.search(name) is not None


def signs_in(text: str) -> list[str]:
    """What a text may hold that tells who a patient is."""
    return [what for what, sign in SIGNS.items() if sign.search(text)]
