"""Documents: what lm-eval evaluates, one per rendered prompt; and dialogues, prompts of several turns."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypedDict

from medtasks_ext.egress import UNKNOWN_TEXT, Text
from medtasks_ext.privacy import RowValueError, excerpt


class LoadedRecord(TypedDict, total=False):
    """What was loaded for a task, as results have it: what says something. Old results have fewer keys."""

    task: str  # dataset id
    language: str  # of the documents
    origin: str  # local, hub, release or sample
    where: str  # file or repository
    revision: str  # pinned revision of a download
    instruction: str  # official or own wording
    prompt_hash: str  # identifies the prompt templates; other prompts give other scores
    rows_hash: str  # identifies the rendered documents and their gold
    # the hash of local test rows that `data.lock` keeps of a suite's (`data.rowlock.folded`); none of so few
    # rows that are not open that it would give their answers away
    folded: str
    differs: bool  # local test rows are not those of the public file that `data.lock` knows
    rebuilt: bool  # test rows come from the source, not from the suite
    artefact: str  # the released file that holds the official words, where the rows do not carry them
    artefact_revision: str  # its version or commit
    recovered: list[int]  # official test rows that were found in the source, and all that there are
    database: str  # digest of the database on which answers are run
    n_test: int  # documents to evaluate
    n_fewshot: int  # rows in the few-shot pool
    n_held_out: int  # test rows moved to the pool because the source has none that can be shown
    n_overlap: int  # rows of the pool that hold a test row's text or stand in one, if any
    # whether the pool, which stands as it is, is the suite's own by its rows (`authors`) or name
    examples: Literal["authors", "named"]
    n_without_gold: int  # documents that can be predicted but not scored
    n_dropped: int  # test rows left out since their gold is blank, as officially done
    # reason -> test rows of the pinned download that the task's file excludes, if any
    excluded: dict[str, int]
    n_source: int  # its test rows before, where some are excluded
    n_faulty: int  # local test rows with faults that were left out (`--drop-faulty`), if any
    n_alike: int  # test rows left out since a later one asks the same, as the suite does, if any


@dataclass
class Loaded:
    """What was loaded for a task, which all its documents share."""

    record: LoadedRecord
    labels: list[str] = field(default_factory=list)  # distinct gold labels of the test file, sorted
    test: Sequence[Document] = ()
    database_file: str | None = None
    shots: Sequence[Document] = ()
    text: Text = UNKNOWN_TEXT  # whose text the documents hold

    @cached_property
    def label_space(self) -> frozenset[str]:
        return frozenset(self.labels)

    @cached_property
    def targets(self) -> list[str]:
        """Distinct gold answers of the test file as written, sorted."""
        return sorted({document["target"] for document in self.test if document["target"]})

    @property
    def exclusions(self) -> str | None:
        """What is excluded, for people: `6,800 of 6,811 rows (11 without an answer)`."""
        excluded, n_source = self.record.get("excluded"), self.record.get("n_source")
        return row_counts_words(excluded, n_source) if excluded and n_source else None


def without_places(loaded: LoadedRecord) -> LoadedRecord:
    """What was loaded, without the place where it lay: another checkout holds the same."""
    return {key: value for key, value in loaded.items() if key != "where"}  # type: ignore[return-value]


def row_counts_words(excluded: Mapping[str, int], n_source: int) -> str:
    """How many rows of a source are scored, and why the others are not."""
    why = "; ".join(f"{n:,} excluded: {reason}" for reason, n in excluded.items())
    return f"{n_source - sum(excluded.values()):,} of {n_source:,} rows ({why})"


class _Part:
    """A text of a document; of one that stands in its prompt, its place is kept and not the text again."""

    def __init__(self, at: str) -> None:
        self._at = at

    def __get__(self, document: Document, kind: type[Document]) -> str:
        text, start, end = getattr(document, self._at)
        part: str = text[start:end]
        return part

    def __set__(self, document: Document, part: str) -> None:
        prompt = document.get("prompt", "")
        start = prompt.find(part)
        text = prompt if start >= 0 else part
        setattr(document, self._at, (text, max(0, start), max(0, start) + len(part)))


class Document(dict[str, Any]):
    """One document as lm-eval logs it. Its attributes are not logged."""

    __slots__ = ("_input", "_record", "instruction", "keeps_end", "loaded", "question", "row")
    input = _Part("_input")  # the input text alone, without the instruction
    instruction: str  # with which its own turn begins, where it is in no other one
    keeps_end: bool  # whether the start of the record is cut, and not its end
    loaded: Loaded  # what was loaded for its task
    question: str  # what tells its row from others (`rows.identity`); only where rows are checked, or local
    #: the longest column of its row that stands in the prompt, where one turn holds instruction, input and
    #: cue: what is cut where the prompt does not fit
    record = _Part("_record")
    row: str  # which row of its file it is made of, such as `test row 5, item 2`


class Documents(list[Document]):
    """A split. A list shares its documents, where an Arrow table would decode them at every pass."""

    @property
    def features(self) -> dict[str, None]:
        """lm-eval asks for them as column names."""
        return dict.fromkeys(self[0]) if self else {}

    def at_rest(self, loaded: Loaded) -> Documents | PackedDocuments:
        """The same documents, of what was loaded; packed where their texts are long."""
        if sum(len(document["prompt"]) for document in self) > LONG_PROMPT * len(self):
            return PackedDocuments(self, loaded)
        for document in self:
            document.loaded = loaded
        return self


#: Mean characters of prompts from which on documents are packed: a run loads all its tasks before it asks,
#: and 140,000 documents of 9,000 characters would take more than a gigabyte.
LONG_PROMPT = 2000


class _Block(NamedTuple):
    size: int  # of its pickle
    packed: bytes


class PackedDocuments(Sequence[Document]):
    """A split whose documents are made anew from packed blocks, whenever they are read.

    Each reading gives objects of its own: what is changed in them is forgotten.
    """

    _N = 16  # documents of a block

    def __init__(self, documents: Documents, loaded: Loaded) -> None:
        self._loaded, self._len = loaded, len(documents)
        self._last: tuple[int, list[Document]] = (-1, [])
        starts = range(0, len(documents), self._N)
        self._blocks = [self._packed(documents[start : start + self._N]) for start in starts]

    @property
    def features(self) -> dict[str, None]:
        return dict.fromkeys(self[0])

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._len))]
        number, at = divmod(range(self._len)[place], self._N)
        known, documents = self._last
        if known != number:
            documents = self._block(number)
            self._last = number, documents
        return documents[at]

    @staticmethod
    def _packed(documents: list[Document]) -> _Block:
        import pyarrow as pa

        content = pickle.dumps(documents, pickle.HIGHEST_PROTOCOL)
        return _Block(len(content), pa.compress(content, "zstd", asbytes=True))

    def _block(self, number: int) -> list[Document]:
        import pyarrow as pa

        size, packed = self._blocks[number]
        documents: list[Document] = pickle.loads(pa.decompress(packed, size, "zstd", asbytes=True))
        for document in documents:
            document.loaded = self._loaded
        return documents


def document_key(document: Mapping[str, Any]) -> str:
    """Identifies a document within its task."""
    return f"{document['id']}#{document['trial']}" if "trial" in document else str(document["id"])


def repeat_key(document: str, draw: int) -> str:
    """Identifies a request about a document that is asked several times; the first has the document's key."""
    return f"{document} (repeat {draw + 1})" if draw else document


def words(value: object) -> str:
    """A value as text in which only words count."""
    return " ".join(str(value).split())


def digest(texts: Iterable[str]) -> str:
    hasher = sha256()
    for text in texts:
        hasher.update(text.encode(errors="surrogatepass") + b"\x1e")
    return hasher.hexdigest()[:12]


#: Roles of turns, and how a transcript names them.
ROLES = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}
_FIRST = ("system", "developer")


class Turn(TypedDict):
    role: str
    content: str


class DialogueError(RowValueError):
    """Turns that are no dialogue; the message says why."""


@dataclass(frozen=True)
class Dialogue:
    system: str  # what stands before the first turn of the two; may be empty
    before: tuple[Turn, ...]  # all turns between
    last: str  # the user's last turn

    @property
    def transcript(self) -> str:
        """The dialogue as one text, the system's turn left out."""
        return transcript([*self.before, {"role": "user", "content": self.last}])


def read_dialogue(value: Any) -> Dialogue:
    """A dialogue from a list of {role, content}; other keys of a turn are left out.

    Raises DialogueError: no list of turns, an unknown role, a turn without text, a system turn between
    others, or the last turn is not the user's.
    """
    if not isinstance(value, list) or not value:
        raise DialogueError("the dialogue has no turns")
    turns = [_turn(item, place) for place, item in enumerate(value, start=1)]
    n_first = next((place for place, turn in enumerate(turns) if turn["role"] not in _FIRST), len(turns))
    first, rest = turns[:n_first], turns[n_first:]
    if late := next((place for place, turn in enumerate(rest) if turn["role"] in _FIRST), None):
        raise DialogueError(f"turn {n_first + late + 1} is the system's, and stands between other turns")
    if not rest or rest[-1]["role"] != "user":
        last = ROLES[(rest or first)[-1]["role"]].lower()
        raise DialogueError(f"the last turn is the {last}'s: there is no user's turn to answer")
    system = "\n\n".join(turn["content"] for turn in first)
    return Dialogue(system, tuple(rest[:-1]), rest[-1]["content"])


def _turn(item: Any, place: int) -> Turn:
    if not isinstance(item, Mapping):
        raise DialogueError(f"turn {place} is no object with role and content")
    role, content = item.get("role"), item.get("content")
    if role not in ROLES:
        raise DialogueError(f"the role of turn {place} is {excerpt(role)}; there is: {', '.join(ROLES)}")
    if not isinstance(content, str) or not content.strip():
        raise DialogueError(f"turn {place} has no text")
    return {"role": str(role), "content": content}


def own_turns(document: Mapping[str, Any]) -> list[Turn]:
    """The turns of a document, without those of the system: one, unless it is a dialogue."""
    return [*document.get("before", ()), {"role": "user", "content": document["prompt"]}]


def shown(document: Mapping[str, Any]) -> str:
    """What people see as the prompt of a document, the system's turn left out: of a dialogue, all turns."""
    return transcript(own_turns(document)) if "before" in document else str(document["prompt"])


def transcript(turns: Iterable[Turn]) -> str:
    return "\n\n".join(f"{ROLES[turn['role']]}: {turn['content']}" for turn in turns)


def as_text(messages: Sequence[Turn]) -> str:
    """Messages for a model without a chat template, and the line from which it goes on."""
    system = [turn["content"] for turn in messages if turn["role"] in _FIRST]
    said = [turn for turn in messages if turn["role"] not in _FIRST]
    return "\n\n".join([*system, transcript(said), f"{ROLES['assistant']}:"])
