"""What says how to log in is recorded nowhere."""

import json
import socket
from pathlib import Path

import pytest

from medtasks_ext.runs.settings import dropped_secrets, is_secret

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
