"""Nothing leaves the machine: which connections the commands open, seen from inside the interpreter.

Each command runs in an interpreter whose audit hook writes down every address that is looked up or
connected to, in its child processes, too, and refuses those that are not on this machine. Hugging Face's
offline switch is not set.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from medtasks_ext.cli.main import SWITCHES, switch_off_telemetry
from tests.conftest import ROOT, sft_row
from tests.run_files import results_file

pytestmark = pytest.mark.long

MARKER = "Zyxwv-Quastenflosser-4711"
WATCHER = """
import os, sys

LOCAL = ("127.0.0.1", "::1", "localhost", "", None)


def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        address = arguments[0], arguments[1] if len(arguments) > 1 else 0
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if not isinstance(address, tuple):  # a socket of this machine's file system
            return
    else:
        return
    host = address[0].decode() if isinstance(address[0], bytes) else address[0]
    with open(os.environ["WATCHED"], "a") as log:
        log.write(f"{host} {address[1]}\\n")
    if host not in LOCAL:
        raise OSError(f"no network: {host}")


sys.addaudithook(watch)
"""
COMMANDS = """
import json, sys
from medtasks_ext.cli.main import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["medtasks", *arguments]
    try:
        main()
    except SystemExit as stop:
        print("EXIT", arguments, stop.code or 0)
"""


@pytest.fixture
def watched(tmp_path):
    """Runs commands one after the other in a watched interpreter; gives what was printed and connected to."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCHER)
    (tmp_path / "home").mkdir()

    def call(*commands: list[object], **environment: object) -> tuple[str, list[str]]:
        log = tmp_path / "watched"
        log.write_text("")
        own = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "MEDTASKS"))}
        own |= {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}", "HOME": str(tmp_path / "home")}
        own |= {"WATCHED": str(log), **{key: str(value) for key, value in environment.items()}}
        called = json.dumps([list(map(str, command)) for command in commands])
        script = [sys.executable, "-c", COMMANDS, called]
        done = subprocess.run(script, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=300)
        return done.stdout + done.stderr, log.read_text().splitlines()

    return call


@pytest.fixture
def local_data(tmp_path) -> Path:
    folder = tmp_path / "data"
    labels = ["年龄", "疾病", "药物", "性别", "年龄", "疾病"]
    rows = [
        sft_row(i, f"{MARKER} {i}", f"clinical trial criterion: {label}") for i, label in enumerate(labels)
    ]
    (folder / "bridge").mkdir(parents=True)
    (folder / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows, ensure_ascii=False))
    return folder


def test_the_watcher_sees_a_download(watched, tmp_path):
    """Otherwise the tests below would prove nothing."""
    printed, seen = watched(["data", "fetch", "bridge_mie"], MEDTASKS_CACHE=tmp_path / "cache")
    assert {line.split()[0] for line in seen} == {
        "raw.githubusercontent.com", "cdn.jsdelivr.net", "archive.softwareheritage.org",
    }  # fmt: skip
    assert "0 of 1 datasets here" in printed


def test_no_command_opens_a_connection_unless_it_must(watched, local_data, tmp_path):
    # a task each with events, SQL in a child process, judges, ROUGE, BLEU and options
    tasks = "bridge_mie,medhelm_ehrsql,medhelm_aci_bench,bridge_mediqa_2023_sum_b,mlb_cmexam"
    files = "run --config openai --tasks bridge_chip_ctc --output_path for_files --to-batch requests.jsonl"
    commands = [
        ["ls"],
        ["data", "status"],
        ["data", "check", local_data],
        ["data", "status", "medhelm"],
        ["data", "template", "medhelm_clear", "-o", "own"],
        ["run", "--data", "sample", "--model", "oracle", "--tasks", tasks, "--output_path", "run"],
        ["run", "--model", "random-label", "--tasks", "bridge_chip_ctc", "--output_path", "own_run"],
        [*files.split(), "--allow-host", "api.openai.com"],
        ["rescore", "run"],
        ["dev", "validate", "bridge_mie"],
        ["card", "own_run", "--layout", "bridge", "-o", "submission", "--parts"],
    ]
    printed, seen = watched(*commands, MEDTASKS_DATA_DIR=local_data)
    ends = [line for line in printed.splitlines() if line.startswith("EXIT")]
    failed = [line for line in ends if not line.endswith(" 0")]
    assert len(ends) == len(commands) and not failed, printed
    assert seen == []
    assert MARKER not in printed


def test_a_model_behind_an_endpoint_is_all_that_is_talked_to(watched, local_data, tmp_path):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            content = json.dumps(
                {"choices": [{"index": 0, "message": {"content": "clinical trial criterion: 年龄"}}]}
            )
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    arguments = f"model=m,base_url=http://127.0.0.1:{port}/v1/chat/completions,num_concurrent=1,max_retries=1"
    printed, seen = watched(
        ["run", "--model", "local-chat-completions", "--model_args", arguments, "--apply_chat_template",
         "--tasks", "bridge_chip_ctc", "--output_path", "run"],
        MEDTASKS_DATA_DIR=local_data,
    )  # fmt: skip
    server.shutdown()
    assert results_file(tmp_path / "run").is_file(), printed
    assert sum(MARKER in json.loads(body)["messages"][-1]["content"] for body in asked) >= 6
    assert set(seen) == {f"127.0.0.1 {port}"}
    assert MARKER not in printed


def test_statistics_of_other_packages_are_off_before_they_are_imported():
    script = (
        "import sys; sys.argv = ['medtasks', '--version']\n"
        "from medtasks_ext.cli.main import main\n"
        "assert not {'huggingface_hub', 'datasets', 'transformers', 'vllm'} & set(sys.modules)\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import huggingface_hub.constants as hub, datasets.config as datasets\n"
        "assert hub.HF_HUB_DISABLE_TELEMETRY and not datasets.HF_UPDATE_DOWNLOAD_COUNTS\n"
    )
    clean = {
        key: value for key, value in os.environ.items() if key not in SWITCHES and not key.startswith("HF_")
    }
    subprocess.run([sys.executable, "-c", script], env=clean, cwd=ROOT, check=True, capture_output=True)


def test_what_the_user_has_set_is_left_alone(monkeypatch):
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    switch_off_telemetry()
    assert os.environ["DO_NOT_TRACK"] == "0" and os.environ["VLLM_NO_USAGE_STATS"] == "1"
