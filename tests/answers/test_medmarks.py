"""Letters as others' own code reads them: Medmarks', by what it said of replies, and lm-eval's KorMedMCQA."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import yaml
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.answers import answer_format
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from tests.conftest import sample_rows, write_jsonl

BLOCKS = {
    name: item.blocks["answer"]
    for name, item in sorted(registry().datasets.items())
    if item.blocks["answer"].get("kind") == "verified_letter"
}
#: For each dataset: four verdicts on 500 replies in each hexadecimal digit.
VERDICTS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("medmarks_verdicts.yaml").read_text(encoding="utf-8")
)
# fmt: off
WORDS = [
    *"ABCDEJk", "1", "12", "10", "the answer is", "Answer:", "final answer", "not", "isn't", "isn\u2019t",
    ". ", "! ", "? ", "\n", "\n\n", "(", ")", "**", "`", "\\boxed{", "}", "{", "\\text{B}", "$C$", "%",
    "is incorrect", "is wrong", "not correct", "therefore", "so", "I choose", "option", "Option C",
    "most likely", "<answer>", "</answer>", "<think>", "</think>", "\uff21", "\u2013", "-", "+", "/",
    "C. difficile", "vitamin D", "blood group A", "50% of", "x_1", "\\alpha", "\u03b2", "because", "1. ",
    "> ", "~", "&", "#", "\\", "^{2}", "$", "'",
]
# fmt: on


def replies(name: str, n: int = 500) -> Iterator[tuple[str, dict[str, object]]]:
    """Invented replies to the rows of a dataset, and the rows."""
    rng = random.Random(name)
    documents = load_documents(registry().datasets[name], cot=False, origin="sample")["test"]
    part, words_before = BLOCKS[name].get("part", "boxed"), BLOCKS[name].get("announced_by")
    for number in range(n):
        row = documents[number % len(documents)]
        words = [rng.choice(WORDS) for _ in range(int(rng.random() * 10))]
        if rng.random() < 0.3:
            words.insert(int(rng.random() * (len(words) + 1)), str(rng.choice(row["options"])))
        text = ("" if rng.random() < 0.3 else " ").join(words)
        if rng.random() < 0.6:
            text = {"boxed": f"x \\boxed{{{text}}}", "tag": f"x <answer>{text}</answer>"}.get(part, text)
        if words_before and rng.random() < 0.6:
            text = f"{text} {words_before} {rng.choice(WORDS)} {rng.choice(WORDS)}"
        yield text, {"options": row["options"], "gold": row["gold"]}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_verdict_is_that_of_the_code_of_medmarks(name: str) -> None:
    form = answer_format(BLOCKS[name])
    bits = [form.read(text, row, cot=False).answer == row["gold"] for text, row in replies(name)]
    four = [bits[n : n + 4] for n in range(0, len(bits), 4)]
    assert VERDICTS[name] == "".join(f"{sum(bit << at for at, bit in enumerate(part)):x}" for part in four)
    assert any(bits) and not all(bits)


NAME = "commons_kormedmcqa"
#: how replies are written: the letter, and what is around it
FORMS = ("{}", "정답: {}", "정답은 {}입니다.", "{}. ", "({})", " {}\n", "{} 입니다")


class Scripted(LM):
    """Replies by the question that a prompt ends with."""

    def __init__(self, replies: dict[str, str]) -> None:
        super().__init__()
        self.replies = replies

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        prompts = [request.args[0] for request in requests]
        return [self.replies[max(self.replies, key=prompt.rfind)] for prompt in prompts]

    loglikelihood = loglikelihood_rolling = None


def theirs(folder: Path) -> Path:
    """lm-eval's own task of physicians, with our invented rows in place of the hub's."""
    source = Path(lm_eval.__file__).parent / "tasks" / "kormedmcqa"
    splits = ("test", "fewshot")
    files = {name: str(write_jsonl(folder / f"{name}.jsonl", sample_rows(NAME, name))) for name in splits}
    (folder / "utils.py").write_bytes((source / "utils.py").read_bytes())
    template = (source / "_template_yaml").read_text(encoding="utf-8")
    template = template.replace("dataset_path : sean0042/KorMedMCQA", "dataset_path: json")
    said = json.dumps({"data_files": files})
    (folder / "theirs.yaml").write_text(f"{template}task: theirs\ndataset_kwargs: {said}\n", encoding="utf-8")
    return folder


def test_the_same_answers_get_the_score_of_lm_evals_own_task(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    asked = sample_rows(NAME)
    letters = ["ABCDE"[(row["answer"] - 1 + place % 3) % 5] for place, row in enumerate(asked)]
    said = [FORMS[place % len(FORMS)].format(letter) for place, letter in enumerate(letters)]
    model = Scripted({row["question"]: text for row, text in zip(asked, said, strict=True)})
    paths = [str(theirs(tmp_path / "theirs")), str(registry().root)]
    tasks = TaskManager(include_defaults=False, include_path=paths, metadata={"data": "sample"})
    settings = {"task_manager": tasks, "bootstrap_iters": 0, "log_samples": False}
    found = simple_evaluate(model, tasks=["theirs"], num_fewshot=0, **settings)["results"]["theirs"]
    ours = simple_evaluate(model, tasks=[NAME], **settings)["results"][NAME]
    right = sum(letter == "ABCDE"[row["answer"] - 1] for row, letter in zip(asked, letters, strict=True))
    assert found["exact_match,extract_answer"] == ours["score,answer"] == right / len(asked)
    assert 0 < right < len(asked)
