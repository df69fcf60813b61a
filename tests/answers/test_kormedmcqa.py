"""KorMedMCQA: lm-eval's own task and ours score the same answers to the same rows alike, to the digit."""

from __future__ import annotations

import json
from pathlib import Path

import lm_eval
import pytest
import yaml
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.registry import registry

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

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


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
