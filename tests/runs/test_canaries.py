"""Canaries: secrets wherever a user can put one, and every command, file and line that is printed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from pathlib import Path

import pytest
import yaml

from medtasks_ext import keys
from medtasks_ext.atomic import make_private
from medtasks_ext.engines import Answer
from medtasks_ext.jsonfile import write_json
from medtasks_ext.keys import MARK, Secrets, note
from medtasks_ext.registry import registry
from medtasks_ext.run.store import Answers
from medtasks_ext.runs.settings import dropped_secrets, is_secret
from tests.conftest import write_jsonl
from tests.engines.server import Reply, Server
from tests.engines.server import chat as chat_reply
from tests.run_files import without_result

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


SECRETS = {
    "api_key": "CANARY-1",
    "auth_token": "CANARY-2",
    "token": "CANARY-3",
    "password": 12345678,
    "header": {"Authorization": "Bearer CANARY-4", "X-Tenant": "CANARY-5"},
    "hf_token": "CANARY-6",
    "apiKey": "CANARY-7",
    "client_secret": "CANARY-8",
    "base_url": "https://user:CANARY-9@host.example:8443/v1/chat?key=CANARY-10#CANARY-11",
    "nested": [{"extra_headers": ["CANARY-12"]}, "see http://x:CANARY-13@y/z?q=CANARY-14 for more"],
    "proxy-authorization": "CANARY-15",
}
PLAIN = {
    "pretrained": "org/model",
    "tokenizer": "org/model",
    "think_end_token": "</think>",
    "add_bos_token": True,
    "prefix_token_id": 1,
    "max_gen_toks": 256,
    "eos_token": "</s>",
    "tokenized_requests": False,
    "tokenizer_backend": "huggingface",
    "monkey": "business",
    "base_url": "http://localhost:8000/v1/chat/completions",
}


def test_no_secret_is_left_at_any_depth():
    text = json.dumps(dropped_secrets(SECRETS))
    assert "CANARY" not in text and "12345678" not in text
    assert "host.example:8443/v1/chat" in text and "/z" in text


def test_what_is_no_secret_stays():
    assert dropped_secrets(PLAIN) == PLAIN


@pytest.mark.parametrize("name", ["API_KEY", "apikey", "X-Api-Key", "accessToken", "sig", "HTTP_COOKIE"])
def test_names_are_recognised_however_they_are_spelt(name):
    assert is_secret(name)


@pytest.fixture
def port():
    """A port on which something listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_message_shows_an_address_without_secrets(medtasks, chip_ctc):
    arguments = "base_url=http://me:CANARYU@localhost:1/v1?key=CANARYQ"
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--model_args", arguments)
    assert outcome.code == 2 and "http://localhost:1/v1 " in outcome.err and "CANARY" not in outcome.err


def test_a_run_records_no_secret_in_any_file(medtasks, chip_ctc, port, tmp_path):
    arguments = ",".join(
        f"{name}=CANARY{i}" for i, name in enumerate(["auth_token", "token", "api_key", "header"])
    )
    arguments += f",base_url=http://me:CANARYU@localhost:{port}/v1?key=CANARYQ,seed=7"
    run = ("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run")
    outcome = medtasks(*run, "--model_args", arguments, "--gen_kwargs", "extra_headers=CANARYG")
    assert outcome.code == 0, outcome.text
    for command in (
        ("report", "run", "-o", "report"),
        ("card", "run", "-o", "card", "--parts"),
        ("rescore", "run"),
    ):
        outcome = medtasks(*command)
        assert outcome.code in (0, 1), outcome.text
        assert "CANARY" not in outcome.text
    places = [path for path in tmp_path.rglob("*") if path.is_file() and "data" not in path.parts[:-1]]
    leaks = [str(path) for path in places if b"CANARY" in path.read_bytes()]
    assert not leaks
    manifest = json.loads(Path("run/run.json").read_text())
    assert manifest["identity"]["model"]["model_args"] == {"seed": 7}
    assert set(manifest["sessions"][0]["model_args"]) == {"base_url", "seed"}


OPEN, PRIVATE = "medhelm_medqa", "medhelm_hospice_referral"


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022, "a command left another umask"


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder.parent)): oct(stat.S_IMODE(path.stat().st_mode))[2:]
        for path in (folder, *folder.rglob("*"))
    }


def are_private(folder: Path) -> bool:
    return all(
        mode == ("700" if Path(folder.parent, name).is_dir() else "600")
        for name, mode in modes(folder).items()
    )


@pytest.fixture
def medqa(data_dir):
    place = data_dir / "medhelm/medqa/test.jsonl"
    place.parent.mkdir(parents=True)
    shutil.copy(registry().datasets[OPEN].sample_file, place)


@pytest.fixture
def hospice(data_dir):
    rows = [{"prompt": "?", "context": f"note {i}", "label": "AB"[i % 2]} for i in range(6)]
    write_jsonl(data_dir / "medhelm/hospice_referral/test.jsonl", rows)


def test_open_texts_are_as_the_umask_says(medtasks, medqa, tmp_path):
    assert medtasks("run", "--model", "oracle", "--tasks", OPEN, "--output_path", "run").code == 0
    found = modes(tmp_path / "run")
    assert found["run"] == "755" and {mode for name, mode in found.items() if "." in name} == {"644"}


def test_what_is_written_beside_private_texts_is_its_owners_alone(medtasks, hospice, tmp_path):
    run = tmp_path / "run"
    command = ("run", "--model", "random-label", "--tasks", PRIVATE, "--output_path", "run")
    assert medtasks(*command).code == 0 and are_private(run)
    assert medtasks("rescore", "run").code == 0 and are_private(run)
    assert medtasks("report", "run", "--published", "none", "--answers", "-o", "shown").code == 0
    files = [path for path in (tmp_path / "shown").rglob("*") if path.is_file()]
    assert files and {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert medtasks("report", "run", "--published", "none", "-o", "plain").code == 0
    assert modes(tmp_path / "plain")["plain/report.html"] == "644"


def test_a_folder_that_gets_private_texts_later_becomes_private_and_stays_so(
    medtasks, medqa, hospice, tmp_path
):
    command = ("run", "--model", "oracle", "--output_path", "run", "--tasks")
    assert medtasks(*command, OPEN).code == 0 and not are_private(tmp_path / "run")
    assert medtasks(*command, f"{OPEN},{PRIVATE}").code == 0 and are_private(tmp_path / "run")
    without_result(tmp_path / "run", OPEN)
    assert medtasks(*command, OPEN).code == 0 and are_private(tmp_path / "run")
    synthetic = ("--data", "sample", "--output_path", "synthetic")
    assert medtasks(*command[:3], *synthetic, "--tasks", PRIVATE).code == 0
    assert modes(tmp_path / "synthetic")["synthetic"] == "755"


def test_files_of_requests_with_private_texts_are_their_owners_alone(medtasks, hospice, tmp_path):
    flags = ("--model", "local-chat-completions", "--model_args", "model=m", "--apply_chat_template")
    out = ("--output_path", "run", "--to-batch", "asked.jsonl")
    made = medtasks("run", "--tasks", PRIVATE, *flags, *out)
    assert made.code == 0, made.text
    assert stat.S_IMODE((tmp_path / "asked.jsonl").stat().st_mode) == 0o600 and are_private(tmp_path / "run")


def test_what_a_leaderboard_gets_of_a_private_run_is_its_owners_alone(medtasks, chip_ctc, tmp_path):
    task = "bridge_chip_ctc"
    assert medtasks("run", "--model", "random-label", "--tasks", task, "--output_path", "run").code == 0
    make_private(tmp_path / "run")
    assert medtasks("card", "run", "--layout", "bridge", "--parts", "-o", "sent").code == 0
    assert are_private(tmp_path / "sent/result")
