"""Official prompts, held against hashes that the suites' own code made once (`tasks/SUITE/official.json`).

Each message list is made as a run makes it, by lm-eval, with turns in place of a chat template.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from medtasks_ext.harness import Task
from medtasks_ext.prompts.official.words import jury_words
from medtasks_ext.registry import Dataset, Registry, Suite
from medtasks_ext.rows.places import authors_of, data_folder
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.conftest import read_json, sample_rows

#: Where a suite's rows carry their instruction, the proof asks this one; to ask for reasoning, with the
#: suite's own sentence between the two lines.
_BEFORE, _AFTER = "Read the text.\n", "answer: text"
#: What judges are asked about. It holds what a renderer might take for slots.
_ANSWER = "An answer with {QUESTION}, $RESPONSE, {{ GOLD_RESPONSE }} and a \\ in it.\n"


class Verdict(NamedTuple):
    dataset: str
    same: int  # message lists that are identical
    n: int  # message lists that were compared
    same_jury: bool  # likewise of judges
    same_budget: bool | None  # None where the official code does not say
    same_stop: bool

    @property
    def ok(self) -> bool:
        return self.same == self.n and self.same_jury and self.same_budget is not False and self.same_stop


def verify(registry: Registry, suite: Suite, ways: Collection[str] = ()) -> Iterator[Verdict]:
    """Compare a suite's sample rows, in some ways of asking or in all."""
    for name, proof in read_json(suite.file.parent / "official.json")["tasks"].items():
        if (dataset := registry.dataset(f"{suite.id}/{name}")) is not None:
            yield _verdict(registry, dataset, proof, ways or proof["messages"])


def _verdict(registry: Registry, dataset: Dataset, proof: dict[str, Any], ways: Collection[str]) -> Verdict:
    same, n, same_jury, stop = 0, 0, True, list[str]()
    for way in ways:
        wanted, task = proof["messages"][way], _task(registry, dataset, way)
        asked = [digest(_messages(task, document)) for document in task.eval_docs]
        # runs of a dataset may stand in another order
        same, n = same + (Counter(asked) & Counter(wanted)).total(), n + max(len(asked), len(wanted))
        if jury := proof.get("jury"):
            judged = [digest(turns) for turns in _jury_messages(dataset, task.eval_docs)]
            same_jury &= Counter(judged) == Counter(jury)
        stop = list(task.config.generation_kwargs["until"])
    budget, stated = dataset.official_budget, proof.get("max_tokens")
    same_budget = None if stated is None else budget is not None and budget.at_most == stated
    return Verdict(dataset.id, same, n, same_jury, same_budget, stop == proof.get("stop", []))


def _jury_messages(dataset: Dataset, documents: Sequence[Any]) -> Iterator[list[dict[str, str]]]:
    """What judges are asked about one answer to each document, texts as they are."""
    judging = dataset_spec(dataset).judge
    assert judging is not None
    words = jury_words(dataset, judging, "official")
    assert words is not None
    for document in documents:
        texts = {"question": document["question"], "response": _ANSWER, "gold": document["target"]}
        yield [{"role": "user", "content": words.message({**texts, "context": document.get("context", "")})}]


def _task(registry: Registry, dataset: Dataset, way: str) -> Task:
    """The task of the sample rows in official words."""
    strategy = "zero_shot" if way == "no_system" else way
    settings = Settings(data="sample", prompts="official", system_role=way != "no_system")
    authors = authors_of(dataset, dataset_spec(dataset).rows)
    if authors is None:
        return build_task(registry, dataset.task(strategy), settings)
    sentence = f"{authors._sentences(must=True, fetch=True)[0][0]}\n" if way == "cot" else ""
    with tempfile.TemporaryDirectory() as root, data_folder(Path(root)):
        # the sample rows as the authors give rows out, each with the instruction
        for split, path in zip(("test", "fewshot"), authors.paths[0], strict=True):
            rows = [
                {**row, "_split": split, "instruction": f"{_BEFORE}{sentence}{_AFTER}"}
                for row in sample_rows(dataset.id, split)
            ]
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        return build_task(registry, dataset.task(strategy), replace(settings, data="local"))


def _messages(task: Task, document: Any) -> list[dict[str, str]]:
    """The message list of a document, as it is handed to a chat template."""
    taken: list[Sequence[dict[str, str]]] = []

    def template(turns: Sequence[dict[str, str]], **_: object) -> str:
        taken.append(turns)
        return ""

    rendered_prompt(task, document, Settings(apply_chat_template=True), template)
    return [{"role": turn["role"], "content": str(turn["content"])} for turn in taken[-1]]


def digest(turns: Sequence[dict[str, str]]) -> str:
    return sha256(json.dumps(turns, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]
