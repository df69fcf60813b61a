"""Letters as Medmarks' own code compares them: `medmarks_verdicts.yaml` has what it said of replies."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import lm_eval
import pytest
import yaml
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.prompts import load_documents
from medtasks_ext.prompts.documents import Document
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Reader, Settings, build_task

if TYPE_CHECKING:
    from collections.abc import Iterator


KIND = "verified_letter"
NAMES = sorted(
    name for name, item in registry().datasets.items() if item.blocks["answer"].get("kind") == KIND
)
#: For each dataset: four verdicts on 500 replies in each hexadecimal digit.
VERDICTS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("medmarks_verdicts.yaml").read_text(encoding="utf-8")
)
WORDS = [
    *"ABCDEJk",
    *(
        "1",
        "12",
        "10",
        "the answer is",
        "Answer:",
        "final answer",
        "not",
        "isn't",
        "isn\u2019t",
        ". ",
        "! ",
        "? ",
    ),
    *(
        "\n",
        "\n\n",
        "(",
        ")",
        "**",
        "`",
        "\\boxed{",
        "}",
        "{",
        "\\text{B}",
        "$C$",
        "%",
        "is incorrect",
        "is wrong",
    ),
    *(
        "not correct",
        "therefore",
        "so",
        "I choose",
        "option",
        "Option C",
        "most likely",
        "<answer>",
        "</answer>",
    ),
    *("<think>", "</think>", "\uff21", "\u2013", "-", "+", "/", "C. difficile", "vitamin D", "blood group A"),
    *("50% of", "x_1", "\\alpha", "\u03b2", "because", "1. ", "> ", "~", "&", "#", "\\", "^{2}", "$", "'"),
]


def replies(name: str, n: int = 500) -> Iterator[tuple[str, dict[str, object]]]:
    """Invented replies to the rows of a dataset, and the rows."""
    rng = random.Random(name)
    documents = load_documents(registry().datasets[name], cot=False, origin="sample")["test"]
    answer = registry().datasets[name].blocks["answer"]
    part, words_before = answer.get("part", "boxed"), answer.get("announced_by")
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


def verdicts(name: str) -> str:
    form = answer_format(registry().datasets[name].blocks["answer"])
    bits = [form.read(text, row, cot=False).answer == row["gold"] for text, row in replies(name)]
    return "".join(
        f"{sum(bit << at for at, bit in enumerate(bits[n : n + 4])):x}" for n in range(0, len(bits), 4)
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_verdict_is_that_of_the_code_of_medmarks(name: str) -> None:
    assert verdicts(name) == VERDICTS[name]
    assert 0 < VERDICTS[name].count("0") < 125  # some replies are right and some are not


OPTIONS = ["Heparin", "Do not resuscitate", "Acute  kidney injury", "Oxygen"]


@pytest.mark.parametrize(
    ("text", "gold", "read"),
    [
        ("B", "B", "B"),
        ("x \\boxed{A} then \\boxed{\\text{C}}", "C", "C"),
        ("b) since it is so", "B", "B"),
        ("The answer is not B", "B", None),
        ("I choose C. D is wrong", "D", "C"),
        ("C is incorrect, D", "C", "D"),
        ("acute kidney\ninjury", "C", "C"),
        ("do not resuscitate", "B", "B"),
        ("not heparin", "A", None),
        ("A or B", "A", "A"),
        ("A or B", "B", "B"),
        ("50% of patients: B", "B", None),
        ("<think>A</think>D", "D", "D"),
        ("", "A", None),
        ("\\boxed{", "A", None),
    ],
)
def test_replies_that_show_the_rules(text: str, gold: str, read: str | None) -> None:
    form = answer_format({"kind": KIND, "letters": list("ABCD")})
    assert form.read(text, {"options": OPTIONS, "gold": gold}, cot=False).answer == read


@pytest.mark.parametrize(
    ("part", "text", "read"),
    [
        ("tag", "B", None),
        ("tag", "<answer> C </answer> <answer>D</answer>", "C"),
        ("all", "\\boxed{C} A", "A"),
        ("first", "The answer is C", "A"),
        ("first", "(d)", "D"),
        ("first", "no idea? why", "D"),
    ],
)
def test_the_part_that_counts(part: str, text: str, read: str | None) -> None:
    form = answer_format({"kind": KIND, "letters": list("ABCD"), "part": part})
    assert form.read(text, {"options": OPTIONS, "gold": "B"}, cot=False).answer == read


def test_a_gold_answer_is_written_as_the_prompt_asks() -> None:
    row = {"options": OPTIONS}
    boxed, tag = (
        answer_format({"kind": KIND, "letters": list("ABCDEF"), "part": part}) for part in ("boxed", "tag")
    )
    assert (
        boxed.read_gold("\\boxed{C}", row)
        == boxed.read_gold("C", row)
        == tag.read_gold("<answer>C</answer>", row)
    )
    with pytest.raises(GoldError, match="not one of the letters A, B, C, D"):
        boxed.read_gold("\\boxed{E}", row)


# KorMedMCQA: lm-eval's own task and ours score the same answers to the same rows alike, to the digit.


NAME = "commons_kormedmcqa"
#: how replies are written: the letter, and what is around it
FORMS = ("{}", "정답: {}", "정답은 {}입니다.", "{}. ", "({})", " {}\n", "{} 입니다")


class Scripted(LM):
    """Replies by the question that a prompt ends with."""

    def __init__(self, replies: dict[str, str]) -> None:
        super().__init__()
        self.replies = replies

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [self._reply(str(request.args[0])) for request in requests]

    def _reply(self, prompt: str) -> str:
        last = max(self.replies, key=prompt.rfind)
        assert last in prompt
        return self.replies[last]

    loglikelihood = loglikelihood_rolling = None


def rows() -> list[dict]:
    lines = registry().datasets[NAME].sample_file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def theirs(folder: Path) -> Path:
    """lm-eval's own task of physicians, with the rows of a file in place of the hub's."""
    source = Path(lm_eval.__file__).parent / "tasks" / "kormedmcqa"
    for split in ("test", "fewshot"):
        part = [{k: v for k, v in row.items() if k != "_split"} for row in rows() if row["_split"] == split]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    files = {split: str(folder / f"{split}.jsonl") for split in ("test", "fewshot")}
    (folder / "utils.py").write_text((source / "utils.py").read_text(encoding="utf-8"), encoding="utf-8")
    template = (source / "_template_yaml").read_text(encoding="utf-8")
    template = template.replace("dataset_path : sean0042/KorMedMCQA", "dataset_path: json")
    said = yaml.safe_dump({"task": "theirs", "dataset_kwargs": {"data_files": files}})
    (folder / "theirs.yaml").write_text(template + said, encoding="utf-8")
    return folder


@pytest.mark.parametrize("seed", range(3))
def test_the_same_answers_get_the_same_score(tmp_path, monkeypatch, seed):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    asked = [row for row in rows() if row["_split"] == "test"]
    replies = {
        row["question"]: FORMS[(place + seed) % len(FORMS)].format(
            "ABCDE"[(row["answer"] + (place + seed) % 3) % 5]
        )
        for place, row in enumerate(asked)
    }
    model = Scripted(replies)
    folder = tmp_path / "theirs"
    folder.mkdir()
    with_theirs = TaskManager(
        include_defaults=False,
        include_path=[str(theirs(folder)), str(registry().root)],
        metadata={"data": "sample"},
    )
    said = {"task_manager": with_theirs, "bootstrap_iters": 0, "log_samples": False}
    found = simple_evaluate(model, tasks=["theirs"], num_fewshot=0, **said)["results"]["theirs"]
    ours = simple_evaluate(model, tasks=[NAME], **said)["results"][NAME]
    right = sum(
        reply.strip(" \n.()정답은입니다:") == "ABCDE"[row["answer"] - 1]
        for row, reply in zip(asked, replies.values(), strict=True)
    )
    assert found["exact_match,extract_answer"] == ours["score,answer"] == right / len(asked)


# MedArabiQ: a reply that is an option without its letter is read, by the options in the question.


TASK = "commons_medarabiq_mcq"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("{option}", True),
        ("الإجابة: {option}", True),
        ("الإجابة الصحيحة هي {option}", True),
        ("{letter}. {option}", True),
        ("{other}", False),
    ],
)
def test_an_option_without_its_letter_is_read(reply, answer):
    tasks = registry()
    task = build_task(tasks, tasks.datasets[TASK].task("zero_shot"), Settings(data="sample", prompts="own"))
    reader = Reader(task)
    for document in task.eval_docs:
        assert isinstance(document, Document)
        place = "أبجده".index(document["target"])
        text = reply.format(
            option=document["options"][place], letter=document["target"], other=document["options"][place - 1]
        )
        found = task.process_results(document, [reader.read(document, text)])
        assert (found["acc"] == 1) is answer, text
