"""Canaries: secrets wherever a user can put one, and every command, file and line that is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from medtasks_ext import keys
from medtasks_ext.engines import Answer
from medtasks_ext.jsonfile import write_json
from medtasks_ext.keys import MARK, Secrets, note
from medtasks_ext.run.store import Answers
from tests.engines.server import Reply, Server
from tests.engines.server import chat as chat_reply

CANARY = "canary-{}-0a1b2c3d4e"
TASK = "bridge_chip_ctc"
JUDGED = "medhelm_medication_qa"


@pytest.fixture(autouse=True)
def nothing_noted():
    keys.forget()
    yield
    keys.forget()


@pytest.fixture
def canaries(monkeypatch) -> list[str]:
    """Secrets of the environment; those of arguments are in the tests."""
    names = ["OPENAI_API_KEY", "HF_TOKEN", "JUDGE_API_KEY", "MY_ACCESS_TOKEN", "DB_PASSWORD"]
    for name in names:
        monkeypatch.setenv(name, CANARY.format(name.lower()))
    monkeypatch.setenv("OF_JUDGE", CANARY.format("judge"))  # by no name that says so
    return names


def leaks(folder: Path) -> list[str]:
    """Files that hold a canary; texts in Parquet are compressed."""
    import pyarrow.parquet as parquet

    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.name in ("own.yaml", "jury.yaml"):
            continue
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += json.dumps(parquet.read_table(path).to_pylist(), default=str).encode()
        if b"canary-" in content:
            found.append(str(path.relative_to(folder)))
    return found


async def echo(asked) -> Reply:
    """A server that says in each answer by what it was asked."""
    return Reply(chat_reply(f"Yes. You are {dict(asked.headers)} {CANARY.format('openai_api_key')}"))


@pytest.fixture
def model_server():
    with Server(echo) as one:
        yield one


def test_no_command_writes_or_prints_a_secret(
    medtasks, canaries, chip_ctc, model_server, tmp_path, monkeypatch
):
    port = model_server.port
    url = f"http://127.0.0.1:{port}/v1/chat/completions?key={CANARY.format('query')}"
    with_user = url.replace("//", f"//me:{CANARY.format('user')}@")
    names = ("api_key", "auth_token", "token", "password", "client_secret")
    own = {
        "model": "local-chat-completions",
        "model_args": {
            "model": "m", "base_url": url, "header": {"Authorization": f"Bearer {CANARY.format('header')}"},
            **{name: CANARY.format(name) for name in names[1:]},
        },
        "metadata": {"note_token": CANARY.format("metadata")},
        "apply_chat_template": True,
    }  # fmt: skip
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    given = ",".join(f"{name}={CANARY.format(name)}" for name in names[1:])
    monkeypatch.setenv("MEDTASKS_KEYS", "OF_JUDGE@127.0.0.1")
    flags = ("--model", "local-chat-completions", "--apply_chat_template", "--model_args",
             f"model=m,base_url={url},{given}")  # fmt: skip
    jury = {"judges": [{"name": "one", "model": "one", "base_url": f"http://127.0.0.1:{port}/v1",
                        "api_key_env": "OF_JUDGE"}]}  # fmt: skip
    (tmp_path / "jury.yaml").write_text(yaml.safe_dump(jury))
    rows = ("--data", "sample", "--limit", "2")
    commands = [
        ("plan", "m", "--tasks", TASK),
        ("preview", TASK, "--data", "sample"),
        ("run", "--tasks", TASK, *flags, "--output_path", "run"),
        ("run", "--tasks", TASK, "--config", "own.yaml", "--output_path", "other"),
        ("run", "--tasks", TASK, *flags, "--output_path", "run"),
        (
            "run",
            "--tasks",
            TASK,
            *flags,
            "--model_args",
            f"model=m,base_url={with_user}",
            "--output_path",
            "user",
        ),
        ("run", "--tasks", f"{JUDGED},{TASK}", *flags, *rows, "--output_path", "judged"),
        ("run", "--tasks", TASK, *flags, "--model_args", "model=x,nonsense=1", "--output_path", "bad"),
        ("run", "--tasks", TASK, *flags, "--output_path", "asked", "--to-batch", "asked.jsonl"),
        ("judge", "judged", "--jury", "jury.yaml", "--dry-run"),
        ("judge", "judged", "--jury", "jury.yaml"),
        ("rescore", "run"),
        ("report", "run", "other", "judged", "-o", "report", "--published", "none"),
        ("compare", "run", "other", "-o", "compare"),
        ("card", "run", "-o", "card"),
        ("card", "run", "-o", "card", "--parts"),
        ("card", "--layout", "medtasks", "run", "-o", "submissions/ORG/MODEL/2026-01-02"),
        ("card", "run", "--layout", "bridge", "-o", "export", "--parts"),
        ("study", "forms", "run", "judged", "-o", "human"),
        ("study", "difficulty", "run", "other"),
        ("study", "sample", f"difficulty/{TASK}.json", "-n", "2"),
        ("study", "contamination", "--tasks", TASK, *flags[:2], *flags[3:], "--output_path", "probe"),
    ]
    done_well = set()
    for command in commands:
        done = medtasks(*command)
        done_well |= {*command[:2]} if done.code == 0 else set()
        assert "canary-" not in done.text, (command, done.text)
        assert not leaks(tmp_path), command
    wanted = {"preview", "run", "judge", "rescore", "report", "card"}
    assert done_well >= wanted | {"difficulty"} and (tmp_path / "asked.jsonl").is_file()
    assert b"canary-" in b"".join(str(asked.headers).encode() for asked in model_server.asked)
    stored = (tmp_path / "run/answers.jsonl").read_text()
    assert MARK in stored


def test_the_files_of_a_stranger_send_no_variable_anywhere(
    medtasks, canaries, chip_ctc, model_server, tmp_path, monkeypatch
):
    """A jury file and a configuration name variables and a server; the user has bound none of them to it."""
    own = f"http://127.0.0.1:{model_server.port}/v1"
    config = {"model": "local-chat-completions", "apply_chat_template": True,
              "model_args": {"model": "m", "base_url": f"{own}/chat/completions"}}  # fmt: skip
    (tmp_path / "base_url.yaml").write_text(yaml.safe_dump(config))
    run = ("run", "--tasks", JUDGED, "--config", "base_url.yaml", "--data", "sample", "--limit", "2")
    done = medtasks(*run, "--output_path", "judged")
    assert done.code == 0 and "OPENAI_API_KEY is not sent to 127.0.0.1" in done.err
    asked = len(model_server.asked)
    for name in (*canaries, "OF_JUDGE", "HOME"):
        monkeypatch.setenv(name, CANARY.format(name.lower()))
        judge = {"name": "one", "model": "one", "base_url": own, "api_key_env": name}
        (tmp_path / "jury.yaml").write_text(yaml.safe_dump({"judges": [judge]}))
        done = medtasks("judge", "judged", "--jury", "jury.yaml")
        assert done.code == 2 and f"MEDTASKS_KEYS={name}@127.0.0.1" in done.err
        assert "canary-" not in done.text
    assert len(model_server.asked) == asked
    assert "canary-" not in str([one.headers for one in model_server.asked])
    assert not leaks(tmp_path)
    monkeypatch.setenv("MEDTASKS_KEYS", "OPENAI_API_KEY@127.0.0.1")
    assert medtasks(*run, "--output_path", "other").code == 0
    assert "Bearer canary-openai" in str([one.headers for one in model_server.asked])


def test_a_message_that_quotes_what_was_given_shows_no_secret(medtasks, canaries, monkeypatch):
    for shown in ("0", "1"):
        monkeypatch.setenv("MEDTASKS_SHOW_TEXT", shown)
        assert "canary" not in medtasks("plan", "--tasks", CANARY.format("hf_token")).text


@pytest.mark.parametrize("secret", ['quo"te\\d-1234567', "ampers&nd-1234567", "ümläut-12345678"])
def test_a_secret_is_found_as_json_html_and_urls_write_it(secret, tmp_path):
    import html
    from urllib.parse import quote

    note(secret)
    for text in (secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")):
        assert Secrets.known().hidden(f"x{text}y".encode()) == f"x{MARK}y".encode()
    write_json(tmp_path / "file.json", {"text": secret})
    assert json.loads((tmp_path / "file.json").read_text()) == {"text": MARK}
    answers = Answers(tmp_path / "run")
    answers.put("1" * 32, Answer(f"the key is {secret}"), "task", "1")
    answers.close()
    assert Answers(tmp_path / "run", write=False).known(["1" * 32])["1" * 32].text == f"the key is {MARK}"


@pytest.mark.parametrize(
    "value", ["EMPTY", "none", "sk-1", "not-needed", "/home/me/.ssh/id_1", "two words 12"]
)
def test_values_that_are_no_secrets_are_left_alone(value, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", value)
    note(value)
    assert not [known for known in Secrets.known().values if known in value]
    write_json(tmp_path / "file.json", [f"{value} twice {value}"])
    assert json.loads((tmp_path / "file.json").read_text()) == [f"{value} twice {value}"]
    assert "two" not in repr(Secrets(("two",)))
