"""Honest submissions of invented models on invented rows, in a small registry whose rows are pinned."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from medtasks_ext.data.rowlock import lock_of_rows
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.datalock import DataLock, Seen
from medtasks_ext.rows.remote import RemoteFile
from medtasks_lab.submissions.record import read_record
from tests.conftest import ROOT, command, declare_suites, write_jsonl
from tests.forgeries.forgery import Forgery

LABELS, TEXTS, CLOSED = "bridge_mediqa_2019_rqe", "bridge_mediqa_2023_sum_b", "medhelm_hospice_referral"
N = 120  # documents of each task
MODELS = tuple(f"Lab-{number}/Model-{number}" for number in range(10))
DATE = "2026-05-01"
_WORDS = [
    "patient",
    "reports",
    "mild",
    "steady",
    "pain",
    "left",
    "right",
    "knee",
    "shoulder",
    "cough",
    "fever",
    "since",
    "Monday",
    "denies",
    "nausea",
    "takes",
    "ibuprofen",
    "daily",
    "sleeps",
    "badly",
    "walks",
    "slowly",
    "returns",
    "Thursday",
    "wound",
    "clean",
    "dry",
    "pressure",
    "stable",
    "follows",
    "diet",
]


@dataclass(frozen=True)
class Base:
    """Where everything lies.

    Attributes:
        run: folder of a run whose submission the honest ones are made of.
        honest: folder of submissions, ten honest ones.
        downloads: the data folder, where files of answers are found that a download would bring.
    """

    run: Path
    honest: Path
    downloads: Path

    def submission(self, model: str) -> Path:
        """The folder of an honest submission."""
        return self.honest / model / DATE

    def read(self, model: str) -> Forgery:
        """An honest submission with its answers."""
        said = read_record(self.submission(model)).answers
        assert said is not None
        file = RemoteFile(said.addresses[0], "").get()
        return Forgery.read(self.submission(model), file, registry())


def small_registry(root: Path) -> None:
    """Two open datasets whose rows are pinned, and one that is private; the suites have no others."""
    for name in ("bridge/mediqa_2019_rqe", "bridge/mediqa_2023_sum_b", "medhelm/hospice_referral"):
        shutil.copytree(ROOT / "tasks" / name, root / name)
        card = root / name / "card.yaml"
        content = yaml.safe_load(card.read_text(encoding="utf-8"))
        card.write_text(yaml.safe_dump({**content, "n_test": N}, allow_unicode=True), encoding="utf-8")
        task = root / name / "task.yaml"
        content = task.read_text(encoding="utf-8").split("  download:\n")
        if len(content) == 2:  # nothing is downloaded
            after = content[1].partition("\n\n")[2]
            task.write_text(f"{content[0]}\n{after}", encoding="utf-8")
        for lock in ("data.lock", "documents.lock"):
            (root / name / lock).unlink(missing_ok=True)
    declare_suites(root)
    forget()


def write_rows(data: Path) -> None:
    """Invented rows: pairs of questions, dialogues with summaries, notes."""
    chance = random.Random(7)

    def text(n: int) -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(n))

    def rows(name: str, split: str, output: str) -> list[dict[str, str]]:
        return [
            {"task": name, "language": "en", "task type": "x", "id": f"{split}-{n}", "split": split,
             "instruction": f"Do what {name} asks.", "input": f"Number {n}. {text(12)}",
             "output": f"answer: {chance.choice(['true', 'false'])}" if output == "answer" else
             f"summary: {text(14)}."}
            for n in range(N if split == "test" else 6)
        ]  # fmt: skip

    folder = data / "bridge"
    (folder / "example").mkdir(parents=True)
    for name, output in (("MEDIQA 2019-RQE", "answer"), ("MEDIQA 2023-sum-B", "summary")):
        (folder / f"{name}.SFT.json").write_text(json.dumps(rows(name, "test", output)), encoding="utf-8")
        pool = rows(name, "train", output)
        (folder / "example" / f"{name}.example.json").write_text(json.dumps(pool), encoding="utf-8")
    notes = [{"prompt": f"{n}?", "context": text(9), "label": "AB"[chance.randrange(2)]} for n in range(N)]
    write_jsonl(data / "medhelm" / "hospice_referral" / "test.jsonl", notes)


def pin_rows(words: dict[str, str]) -> None:
    """Lock the rows that are here as the suite's own, and the hash of its words."""
    seen = Seen(day="2026-05-01", by="a test")
    for name in (LABELS, TEXTS):
        dataset = registry().datasets[name]
        rows, lines = lock_of_rows(dataset, check_rows(dataset), seen)
        lock = DataLock(rows=rows)
        (dataset.folder / "data.lock").write_text(lock.text, encoding="utf-8")
        (dataset.folder / "documents.lock").write_text("".join(f"{line}\n" for line in lines))
    forget()


def make_base(folder: Path, patch: pytest.MonkeyPatch) -> Base:
    """Run a baseline, and make ten honest submissions of models that are more and less good."""
    from medtasks_ext.prompts import load

    data = folder / "data"
    for name, value in {
        "MEDTASKS_TASKS_DIR": folder / "tasks",
        "MEDTASKS_DATA_DIR": data,
        "MEDTASKS_CACHE": folder / "cache",
    }.items():
        patch.setenv(name, str(value))
    write_rows(data)
    small_registry(folder / "tasks")
    command("run", "--model", "random-label", "--tasks", f"{LABELS},{TEXTS},{CLOSED}",
          "--output_path", folder / "first")  # fmt: skip
    records = {
        name: json.loads((folder / "first" / "tasks" / f"{name}.json").read_text())
        for name in (LABELS, TEXTS)
    }
    pin_rows({name: item["loaded"]["prompt_hash"] for name, item in records.items()})
    load._build.cache_clear()
    run = folder / "run"
    command("run", "--model", "random-label", "--tasks", f"{LABELS},{TEXTS},{CLOSED}",
          "--output_path", run)  # fmt: skip
    first = folder / "made" / "Lab/random-label" / DATE
    command("submit", run, "-o", first)
    base = Base(run, folder / "honest", data)
    for number, model in enumerate(MODELS):
        forgery = Forgery.read(first, run.with_name("run.answers.parquet"), registry())
        forgery.model, forgery.date = model, DATE
        chance = random.Random(f"honest {number}")
        for task in (LABELS, TEXTS):
            answered(forgery, task, chance, 0.45 + 0.04 * number)
        forgery.score_again()
        forgery.write(base.honest, base.downloads)
    return base


def answered(forgery: Forgery, task: str, chance: random.Random, right: float) -> None:
    """Let a model answer a task that is right as often as that; scores stay."""
    say = _label if task == LABELS else _summary
    forgery.answer(task, lambda gold: say(gold, chance, right))


def _label(gold: str, chance: random.Random, right: float) -> str:
    other = "answer: false" if "true" in gold else "answer: true"
    return gold if chance.random() < right else other


def _summary(gold: str, chance: random.Random, right: float) -> str:
    """Some words of the gold answer among others, in another order."""
    words = gold.removeprefix("summary: ").rstrip(".").split()
    kept = [word for word in words if chance.random() < right / 2]
    made = kept + [chance.choice(_WORDS) for _ in range(len(words) - len(kept))]
    chance.shuffle(made)
    return f"summary: {' '.join(made)}"
