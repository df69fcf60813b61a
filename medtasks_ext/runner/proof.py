"""Proof that official prompts are the suite's own: hashes of whole message lists, made once by its own code.

`official.json` beside a suite's file holds them, for the sample rows. Each list is made here as a run makes
it, by lm-eval, with turns in place of a chat template.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.juries import jury_words
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.folders import data_folder
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runner.evaluate import Settings, build_task
from medtasks_ext.runner.requests import rendered_prompt
from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.registry import Dataset, Registry, Suite
    from medtasks_ext.rows.authors import AuthorsFiles

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
        """Whether all that was compared is identical."""
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
    with tempfile.TemporaryDirectory() as root, data_folder(Path(root)), _unremarked():
        _write_official(Path(root), dataset, authors, f"{_BEFORE}{sentence}{_AFTER}")
        return build_task(registry, dataset.task(strategy), replace(settings, data="local"))


@contextmanager
def _unremarked() -> Iterator[None]:
    """Nothing is said of the number of rows: the proof's are the sample rows."""
    log = logging.getLogger("medtasks_ext.prompts.load")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


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
