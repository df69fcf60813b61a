"""Roles that a chat template refuses, here or at a server: one message, and nothing else is lost."""

from __future__ import annotations

import json

import pytest

from medtasks_ext.engines import replies
from medtasks_ext.registry import registry
from tests.conftest import outcomes, write_jsonl
from tests.judge.server import Reply, Server
from tests.run_files import result_of

SAYS = "Only user, assistant and system roles are supported!"
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}{{ raise_exception('"
    + SAYS
    + "') }}{% endif %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"
)
TALK = [
    {"role": "user", "content": "Is my potassium of 5.9 dangerous?"},
    {"role": "assistant", "content": "Let me look at the result."},
    {"role": "tool", "content": "potassium 5.9 mmol/l"},
    {"role": "user", "content": "And now?"},
]


@pytest.fixture
def rows(data_dir):
    """Local dialogues of two tasks; the second of the first task has a turn of a tool."""
    dataset = registry().datasets["healthbench_full"]
    lines = [json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines()]
    good = [{**row} for row in lines if row.pop("_split") == "test"][:4]
    write_jsonl(data_dir / "healthbench/hard/test.jsonl", good)
    write_jsonl(data_dir / "healthbench/full/test.jsonl", [good[0], {**good[1], "prompt": TALK}, *good[2:]])


def refuses(asked, seen):
    if any(turn["role"] == "tool" for turn in asked.body["messages"]):
        return Reply(status=400, body=json.dumps({"error": {"message": SAYS, "type": "BadRequestError"}}))
    return Reply("Please call your doctor today.")


def test_a_servers_template_that_refuses_a_role_is_named_and_all_else_is_kept(
    medtasks, rows, tmp_path, monkeypatch
):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    with Server(refuses) as server:
        command = (
            "run", "--model", "local-chat-completions", "--apply_chat_template", "--output_path", "run",
            "--model_args", f"model=m,base_url={server.url}/chat/completions",
            "--tasks", "healthbench_full,healthbench_hard",
        )  # fmt: skip
        done = medtasks(*command)
        asked = len(server.asked)
        again = medtasks(*command)
    assert done.code == 1 and again.code == 1
    assert done.text.count("the model's chat template refuses the roles of the turns (HTTP 400") == 1
    assert "serve the model with a template that takes such roles" in done.text
    assert "potassium" not in done.text and "Traceback" not in done.text
    assert len(outcomes(tmp_path / "run", "healthbench_full")) == 3
    hard = result_of(tmp_path / "run", "healthbench_hard")
    assert hard["metrics"]["valid"] == 1
    assert len(server.asked) <= asked + 1  # the refused request alone


def test_a_template_is_tried_on_a_dialogue_before_any_run(medtasks, rows, tmp_path, monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    file = tmp_path / "chat.jinja"
    file.write_text(TEMPLATE)
    seen = medtasks("preview", "healthbench_full", "--document", "1", "--tokenizer", file)
    assert seen.code == 2 and seen.text.count("→") == 1
    assert f"the chat template refuses the turns of test row 2: {SAYS}" in seen.text
    assert "potassium" not in seen.text
    first = medtasks("preview", "healthbench_full", "--tokenizer", file)
    assert first.code == 0, first.text


def test_a_template_that_quotes_a_turn_is_not_quoted(medtasks, rows, tmp_path, monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    file = tmp_path / "chat.jinja"
    file.write_text(
        "{% for m in messages %}{% if m.role == 'tool' %}"
        "{{ raise_exception(m.content) }}{% endif %}{% endfor %}"
    )
    seen = medtasks("preview", "healthbench_full", "--document", "1", "--tokenizer", file)
    assert (
        seen.code == 2 and "refuses the turns of test row 2\n" in seen.text and "potassium" not in seen.text
    )


@pytest.mark.engine
def test_a_tokenizers_own_template_ends_its_task_alone(medtasks, rows, tmp_path):
    """Through transformers: a tiny model whose template refuses turns of tools."""
    from tests.engine.tiny_model import make

    model = make(tmp_path / "tiny", template=TEMPLATE, ends=True, layers=1)
    done = medtasks(
        "run", "--model", "hf", "--model_args", f"pretrained={model}", "--device", "cpu",
        "--apply_chat_template", "--gen_kwargs", "max_gen_toks=8", "--output_path", "run",
        "--tasks", "healthbench_full,healthbench_hard",
    )  # fmt: skip
    assert done.code == 1 and "Traceback" not in done.text
    assert f"the chat template refuses the turns of test row 2: {SAYS}" in done.text
    assert done.text.count("choose a template that takes such roles") == 1
    assert result_of(tmp_path / "run", "healthbench_hard")


@pytest.mark.parametrize(
    "says",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the optional system message, conversation roles must alternate user/assistant/...",
        "System role not supported",
        "Only user, assistant and system roles are supported!",
        "Unexpected role 'tool' after role 'user'",
        "Error applying chat template: …",
    ],
)
def test_what_servers_say_of_roles_is_understood(says):
    fault = replies.status_fault(
        400, {"error": {"message": says}}, replies.Server("http://127.0.0.1"), quote=False
    )
    assert fault.reason == "the model's chat template refuses the roles of the turns (HTTP 400)"


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "temperature must be positive"),
        (400, "x" * 200 + " roles must alternate"),
        (500, "roles must alternate"),
    ],
)
def test_other_refusals_keep_their_own_words(status, says):
    fault = replies.status_fault(
        status, {"error": {"message": says}}, replies.Server("http://127.0.0.1"), quote=False
    )
    assert "roles" not in fault.reason
