"""What proves that prompts and scores stay the same: `tasks.lock`, and hashes made by the suites' own code.

For each sample row the lock holds two short hashes: of the row, with the answer that stands for a wrong one,
and of its prompts. For each dataset it holds one more: of how the replies of `replies.yaml` to its first row
are read and scored. Where a row is in the lock and still the same, so must its prompts be, and readings and
scores where the replies are the same, too; or the `N` of the task's version `N-X` must be higher. New rows,
replies, datasets and metrics are no change.

`official.json` beside a suite's file holds hashes of whole message lists for the sample rows, made once by
the suite's own code. Each list is made here as a run makes it, by lm-eval, with turns in place of a chat
template.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from medtasks_ext.answers.formats import AnswerFormat, answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import Task
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.prompts.documents import Document, document_key
from medtasks_ext.prompts.official.words import jury_words
from medtasks_ext.prompts.shots import after
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.strategies import shots_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.places import authors_of, data_folder
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runner.evaluate import Reader, Settings, build_task, rendered_prompt
from medtasks_ext.runs.records import quiet_log
from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.registry import Dataset, Registry, Suite
    from medtasks_ext.rows.places import AuthorsFiles

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


PROOF_FILE = "official.json"
#: Where a suite's rows carry their instruction, the proof asks this one; to ask for reasoning, with the
#: suite's own sentence between the two lines.
_BEFORE, _AFTER = "Read the text.\n", "answer: text"
#: What judges are asked about. It holds what a renderer might take for slots.
_ANSWER = "An answer with {QUESTION}, $RESPONSE, {{ GOLD_RESPONSE }} and a \\ in it.\n"


class _Proof(Strict):
    """What the official code made of one dataset."""

    #: strategy, or `no_system` for zero-shot without a system turn -> hash of each message list
    messages: dict[str, list[str]]
    jury: list[str] = []  # hash of the message list that judges get about one invented answer to each row
    max_tokens: int | None = None  # budget of the requests; None where the official code does not say
    stop: list[str] = []  # their stop sequences


class _Proofs(Strict):
    """The file: what made the hashes, and those of each dataset."""

    made_by: dict[str, str]
    tasks: dict[str, _Proof]


@dataclass(frozen=True)
class Verdict:
    """How a dataset's prompts compare with the official ones."""

    dataset: str  # its id
    same: int = 0  # message lists that are identical
    n: int = 0  # message lists that were compared
    same_jury: int = 0  # message lists of judges that are identical, without the fences around texts
    n_jury: int = 0  # message lists of judges that were compared
    #: whether the budget is the official one; None where the official code does not say
    same_budget: bool | None = None
    same_stop: bool = True  # whether the stop sequences are
    why: str = ""  # why nothing was compared; else nothing

    @property
    def ok(self) -> bool:
        same = self.same == self.n and self.same_jury == self.n_jury
        return not self.why and same and self.same_budget is not False and self.same_stop


def proof_of(suite: Suite) -> _Proofs | None:
    """The suite's hashes; None where it has none."""
    file = suite.file.parent / PROOF_FILE
    if not file.is_file():
        return None
    try:
        return _Proofs.model_validate_json(file.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError):
        raise MedtasksError(
            "is damaged", where=file, remedy="get it anew: it comes with the package"
        ) from None


def verify(registry: Registry, suite: Suite, ways: Collection[str] = ()) -> Iterator[Verdict]:
    """Compare the official prompts of a suite's sample rows with what its own code made of them.

    `ways`: of asking that are compared; by default all.
    """
    proofs = proof_of(suite)
    for name, proof in (proofs.tasks if proofs else {}).items():
        dataset = registry.dataset(f"{suite.id}/{name}")
        if dataset is not None:
            try:
                yield _verdict(registry, dataset, proof, ways or proof.messages)
            except MedtasksError as error:
                yield Verdict(dataset.id, why=error.what)


def _verdict(registry: Registry, dataset: Dataset, proof: _Proof, ways: Collection[str]) -> Verdict:
    same = n = same_jury = n_jury = 0
    stop: list[str] = []
    for way in ways:
        wanted = proof.messages[way]
        task = _task(registry, dataset, way)
        settings = Settings(apply_chat_template=True)
        shots = int(task.config.num_fewshot or 0)
        asked = [digest(messages(task, document, settings, shots)) for document in task.eval_docs]
        same, n = same + _alike(asked, wanted), n + max(len(asked), len(wanted))
        if proof.jury:
            judged = [digest(turns) for turns in _jury_messages(dataset, task.eval_docs)]
            same_jury, n_jury = _alike(judged, proof.jury), max(len(judged), len(proof.jury))
        stop = list(task.config.generation_kwargs["until"])
    budget = dataset.official_budget
    said = None if proof.max_tokens is None else budget is not None and budget.at_most == proof.max_tokens
    return Verdict(dataset.id, same, n, same_jury, n_jury, said, stop == proof.stop)


def _alike(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many are in both; runs of a dataset may stand in another order."""
    return (Counter(found) & Counter(wanted)).total()


def _jury_messages(dataset: Dataset, documents: Iterable[Any]) -> Iterator[list[dict[str, str]]]:
    """What judges are asked about one answer to each document, texts as they are."""
    judging = dataset_spec(dataset).judge
    words = jury_words(dataset, judging, "official") if judging else None
    assert words is not None  # the proof has hashes of them
    for document in documents:
        texts = {"question": document["question"], "response": _ANSWER, "gold": document["target"]}
        texts["context"] = document.get("context", "")
        yield [{"role": "user", "content": words.message(texts)}]


def _task(registry: Registry, dataset: Dataset, way: str) -> Task:
    """The task of the sample rows in official words."""
    strategy = "zero_shot" if way == "no_system" else way
    settings = Settings(data="sample", prompts="official", system_role=way != "no_system")
    authors = authors_of(dataset, dataset_spec(dataset).rows)
    if authors is None:
        return build_task(registry, dataset.task(strategy), settings)
    sentence = f"{authors.direct_sentence()}\n" if way == "cot" else ""
    quiet = quiet_log("medtasks_ext.prompts.load")  # the number of rows is that of the sample rows
    with tempfile.TemporaryDirectory() as root, data_folder(Path(root)), quiet:
        _write_official(Path(root), dataset, authors, f"{_BEFORE}{sentence}{_AFTER}")
        return build_task(registry, dataset.task(strategy), replace(settings, data="local"))


def _write_official(root: Path, dataset: Dataset, authors: AuthorsFiles, instruction: str) -> None:
    """The sample rows as the authors give rows out, each with the instruction."""
    rows = read_rows(dataset.sample_file)
    for split, path in zip(("test", "fewshot"), authors.paths[0], strict=True):
        part = [{**row, "instruction": instruction} for row in rows if row.get(SPLIT_KEY) == split]
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(part, ensure_ascii=False), encoding="utf-8")


def messages(task: Task, document: Any, settings: Settings, shots: int) -> list[dict[str, str]]:
    """The message list of a document, as it is handed to a chat template."""
    taken: list[Sequence[dict[str, str]]] = []

    def template(turns: Sequence[dict[str, str]], **_: object) -> str:
        taken.append(turns)
        return ""

    rendered_prompt(task, document, settings, template, shots)
    return [{"role": turn["role"], "content": str(turn["content"])} for turn in taken[-1]]


def digest(turns: Sequence[dict[str, str]]) -> str:
    """The hash of a message list, its first 16 digits."""
    return sha256(json.dumps(turns, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]
