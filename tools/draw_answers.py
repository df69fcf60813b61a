"""Draw answers of real models for a person to read, by a seed and spread over kinds of answers and suites.

    python tools/draw_answers.py OUT --n 200 --seed 1 > drawn.yaml

OUT is what `tools/real_answers.py` wrote. What is printed says of each answer to which task and document it
belongs and what the model wrote, and nothing of how a reader reads it: somebody fills in `said`, from the
prompt. Free texts are left out: there the whole reply is the answer.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import yaml

from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import registry
from medtasks_ext.runs.samples import iter_samples

#: Kinds whose answer is the whole reply.
WHOLE = ("free_text", "text", "passages")
#: Answers of each kind in each suite, at least, where there are so many.
LEAST = 5


@dataclass(frozen=True)
class Drawn:
    """An answer.

    Attributes:
        kind: of answers.
        suite: of its dataset.
        task: that was asked.
        document: key of its row.
        asked: the pass: strategy and temperature.
        response: what the model wrote.
    """

    kind: str
    suite: str
    task: str
    document: str
    asked: str
    response: str


def answers(out: Path) -> list[Drawn]:
    """All answers of all passes that have to be read."""
    found = []
    for run in sorted((out / "runs").iterdir()):
        for file in sorted(run.glob("samples_*.jsonl")):
            name = file.stem.removeprefix("samples_")
            dataset, _ = registry().tasks[name]
            kind = dataset.blocks["answer"]["kind"]
            if kind in WHOLE:
                continue
            suite = dataset.metadata.suite
            for sample in iter_samples(file):
                key, text = document_key(sample["doc"]), sample["resps"][0][0]
                found.append(Drawn(kind, suite, name, key, run.name, text))
    return found


def drawn(pool: list[Drawn], n: int, seed: int) -> list[Drawn]:
    """So many of them: some of each kind in each suite, the rest as often as there are answers."""
    strata: dict[tuple[str, str], list[Drawn]] = defaultdict(list)
    for item in pool:
        strata[item.kind, item.suite].append(item)
    dice = random.Random(seed)
    chosen: list[Drawn] = []
    rest: list[Drawn] = []
    for _, items in sorted(strata.items()):
        dice.shuffle(items)
        chosen += items[:LEAST]
        rest += items[LEAST:]
    chosen += dice.sample(rest, max(0, min(len(rest), n - len(chosen))))
    return sorted(chosen, key=lambda item: (item.kind, item.suite, item.task, item.document, item.asked))


def main() -> int:
    """Print what was drawn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = drawn(answers(given.out), given.n, given.seed)
    listed = [
        {"task": i.task, "document": i.document, "asked": i.asked, "response": i.response, "said": "?"}
        for i in chosen
    ]
    yaml.safe_dump(listed, sys.stdout, allow_unicode=True, sort_keys=False, width=1000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
