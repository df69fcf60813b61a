"""MedArabiQ: a reply that is an option without its letter is read, by the options in the question."""

import pytest

from medtasks_ext.prompts.documents import Document
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Reader, Settings, build_task

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
