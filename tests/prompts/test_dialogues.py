"""Prompts of several turns: what a model, a judge and an expert see of them, and what is no dialogue."""

from itertools import count
from types import SimpleNamespace

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import shown
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.registry import SUFFIX, forget, registry
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.conftest import ROOT, sample_rows, write_jsonl
from tests.report.made import held

NAME, CLASS = "night_line", "!function medtasks_ext.task.MedicalTask"
EXAMPLE = ROOT / "tests" / "own_tasks" / "allergie_farmaci"
TALK = [
    {"role": "user", "content": "My son is two years old and has had a fever since yesterday."},
    {"role": "assistant", "content": "How high is the fever, and is he drinking?"},
    {"role": "user", "content": "39.2 degrees. He drinks a little. Should I go to the clinic?"},
]
CAREFUL = {"role": "system", "content": "You answer the night line of a children's clinic."}
SCHEMA = {"columns": {"talk": "the dialogue", "ideal": "an answer"}, "types": {"talk": "objects"}}
TASK = {
    "class": CLASS,
    "task": NAME,
    "dataset": f"own/{NAME}",
    "rows": {"schemas": [SCHEMA], "identity": "talk"},
    "prompt": {
        "messages": "talk",
        "instruction": "{{ strategy }}",
        "instruction_role": "system",
        "target": "{{ ideal }}",
    },
    "answer": {"kind": "free_text", "marker": "Result"},
    "metadata": {"version": "1-A"},
}

ASKED = {"apply_chat_template": True}


@pytest.fixture
def line(tmp_path, monkeypatch):
    """Writes the dataset with the test dialogues that it is given, and gives a task of it."""
    written = count()
    about = yaml.safe_load((EXAMPLE / "task.yaml").read_text().replace("!function", "function"))["about"]

    def write(*talks, strategy="zero_shot", prompt=None, judge=None, answer=None, **settings):
        root = tmp_path / str(next(written))  # documents of a folder are made once
        (root / NAME).mkdir(parents=True)
        said = {
            **TASK,
            "about": {**about, "language": "en", "name": "Night line"},
            "prompt": {**TASK["prompt"], **(prompt or {})},
            "answer": answer or TASK["answer"],
            **({"judge": judge} if judge else {}),
        }
        text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
        (root / NAME / "task.yaml").write_text(text.replace(f"'{CLASS}'", CLASS))
        (root / NAME / "citation.bib").write_text((EXAMPLE / "citation.bib").read_text())
        asked = [{"talk": talk, "ideal": "Go now.", "_split": "test"} for talk in talks]
        shown = [[{"role": "user", "content": f"Question {n}?"}] for n in range(5)]
        shots = [{"talk": talk, "ideal": f"Answer {n}", "_split": "fewshot"} for n, talk in enumerate(shown)]
        rows = [{"id": f"{row['_split'][0]}{n}", **row} for n, row in enumerate(asked + shots)]
        write_jsonl(root / NAME / "sample.jsonl", rows)
        monkeypatch.setenv("MEDTASKS_TASKS", str(root))
        forget()
        return build_task(registry(), f"{NAME}{SUFFIX[strategy]}", Settings(data="sample", **settings))

    yield write
    forget()


def chat(task, **kwargs):
    got = []

    def template(turns, add_generation_prompt=True):
        got.extend(turns)
        return "prompt"

    shots = int(task.config.num_fewshot or 0)
    task.fewshot_context(task.eval_docs[0], shots, chat_template=template, **ASKED, **kwargs)
    return got


def test_a_model_gets_the_turns_of_the_dialogue(line):
    assert chat(line([CAREFUL, *TALK])) == [CAREFUL, *TALK]
    system, *rest = chat(line([CAREFUL, *TALK], strategy="cot"))
    assert rest == TALK
    assert system["content"].endswith(CAREFUL["content"]) and "step by step" in system["content"]


def test_shots_are_dialogues_that_were_answered(line):
    turns = chat(line([CAREFUL, *TALK], strategy="five_shot"), fewshot_as_multiturn=True)
    roles = ["system", *["user", "assistant"] * 5, "user", "assistant", "user"]
    assert [turn["role"] for turn in turns] == roles
    assert [turn["content"] for turn in turns[1:5]] == ["Question 0?", "Answer 0", "Question 1?", "Answer 1"]
    assert turns[-3:] == TALK


def test_a_template_without_a_turn_of_the_system_gets_its_text_in_the_first_turn(line):
    turns = chat(line([CAREFUL, *TALK], system_role=False))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[0]["content"] == f"{CAREFUL['content']}\n\n{TALK[0]['content']}"


def test_a_base_model_gets_a_transcript_of_which_the_oldest_turns_give_way(line):
    task = line([CAREFUL, *TALK])
    (document,) = task.eval_docs
    whole = task.fewshot_context(document, 0)
    assert whole == (
        f"{CAREFUL['content']}\n\nUser: {TALK[0]['content']}\n\nAssistant: {TALK[1]['content']}\n\n"
        f"User: {TALK[2]['content']}\n\nAssistant:"
    )
    for room, kept in ((len(whole), TALK), (len(whole) - 1, TALK[1:]), (len(whole) - 80, TALK[2:])):
        model = SimpleNamespace(tokenizer=object(), tok_encode=list, max_length=room)
        text, cut = PromptFitter(model).fitted(document, 0, 0, task.fewshot_context)
        assert text.startswith(CAREFUL["content"]) and text.endswith(f"{TALK[2]['content']}\n\nAssistant:")
        assert [turn for turn in TALK if turn["content"] in text] == kept
        assert cut == ("" if kept == TALK else "input")


def test_a_judge_and_a_reader_see_the_transcript(line):
    judge = {"protocol": "likert_jury", "role": "a doctor", "axes": {"safety": "Is the advice safe?"}}
    document, short = line([CAREFUL, *TALK], TALK[:1], judge=judge).eval_docs
    names = ("User", "Assistant", "User")
    said = [f"{name}: {turn['content']}" for name, turn in zip(names, TALK, strict=True)]
    assert document["question"] == shown(document) == document.input == "\n\n".join(said)
    assert shown(short) == TALK[0]["content"] and "before" not in short


@pytest.mark.parametrize(
    ("talk", "what"),
    [
        (TALK[:2], "the last turn is the assistant's"),
        ([], "the dialogue has no turns"),
        ([{"role": "nurse", "content": "Yes?"}], "role of turn 1 is 'nurse'"),
        ([{"role": "user", "content": "  "}], "turn 1 has no text"),
        ([TALK[0], CAREFUL, TALK[2]], "turn 2 is the system's"),
    ],
)
def test_what_is_no_dialogue_is_named(line, talk, what):
    with pytest.raises(MedtasksError) as caught:
        line(TALK, talk)
    assert what in str(caught.value) and "sample.jsonl" in str(caught.value)
    assert TALK[0]["content"] not in str(caught.value)


def test_a_dialogue_ends_with_what_an_answer_by_likelihood_begins_with(line):
    answer = {"kind": "label", "prefix": "urgency", "labels": ["clinic", "home"]}
    line([CAREFUL, *TALK], prompt={"target": "urgency: clinic"}, answer=answer)
    task = build_task(registry(), f"{NAME}_ll", Settings(data="sample"))
    given = {"num_fewshot": 0, "gen_prefix": task.doc_to_prefix(task.eval_docs[0])}
    assert task.fewshot_context(task.eval_docs[0], **given).endswith("\n\nAssistant:\nurgency:")
    given["chat_template"] = lambda turns, **_: f"{len(turns)} turns, then "
    assert task.fewshot_context(task.eval_docs[0], **given, **ASKED) == "4 turns, then urgency:"


HOSTILE = "</script><img src=x onerror=alert(1)> my feet were swollen"


def test_people_are_shown_all_turns_as_text(medtasks, data_dir, tmp_path):
    """By `view`, the page of a report and the forms of experts."""
    task = "healthbench_full"
    parts = {split: sample_rows(task, split) for split in ("test", "fewshot")}
    row = next(row for row in parts["test"] if len(row["prompt"]) > 1)
    row["prompt"][0]["content"] = HOSTILE
    for split, rows in parts.items():
        write_jsonl(data_dir / registry().datasets[task].key / f"{split}.jsonl", rows)
    medtasks.done("run", "--model", "oracle", "--tasks", task, "--output_path", "run")
    shown = medtasks.done("view", "run", task, row["prompt_id"]).out
    assert f"User: {HOSTILE}" in " ".join(shown.split()) and "Assistant:" in shown
    medtasks.done("report", "run", "--answers", "-o", "report")
    assert "<img src=x" not in (tmp_path / "report/report.html").read_text("utf-8")
    texts = held((tmp_path / f"report/answers/{task}-0.js").read_text("utf-8"))
    assert "my feet were swollen" in str(texts)
    medtasks.done("study", "forms", task, "--kind", "review", "-o", "forms")
    (form,) = tmp_path.glob("forms/expert_1.*")
    assert "my feet were swollen" in form.read_text("utf-8")
