"""The ready files and README's commands with the real engine, as they stand.

A Hugging Face cache holds a tiny model under each id that the files name, so that nothing of a file has to be
changed: not the id, the context, the batch size, the decoding or the token budget. A form is the keys that a
file has and whether it samples. Every night one file of each form is run, and README's commands; every day
as few files as together have all keys.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import outcomes
from tests.engine.server import serving
from tests.engine.tiny_model import TEMPLATE, TEMPLATE_WITHOUT_SYSTEM, make
from tests.run_files import results_of, samples_file

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "model_configs"
FILES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for folder in (".", "open", "api")
    for path in sorted((CONFIGS / folder).glob("*.yaml"))
}
#: Files that no engine on this machine can run, and why.
LEFT_OUT = {
    "oracle": "has no engine; it answers with the gold",
    "demo": "its own test runs it (`test_demo_model`)",
    "AntAngelMed": "runs four processes, and no smaller file has its settings",
    "anthropic": "asks a provider",
    "azure": "asks a provider",
    "deepseek": "asks a provider",
    "google": "asks a provider",
    "openai": "asks a provider",
    "openai_reasoning": "asks a provider",
    "openrouter": "asks a provider",
}
#: the file that README and the pages show, run without anything that shortens its start
SHOWN = "Qwen3-8B-Thinking"
#: more processes than this do not share two cores in bearable time
MOST_GPUS = 2
PORT = 8000

TASKS = ("medhelm_hospice_referral", "bridge_mednli")
LIMIT = 2
CONTEXT = 131072
#: writes down which switches of a file reached the template
SWITCHES = (
    "{% if enable_thinking is defined and enable_thinking is false %}<|enable_thinking: False|>{% endif %}"
    "{% if thinking_mode is defined %}<|thinking_mode: {{ thinking_mode }}|>{% endif %}"
)
#: a model whose code is its repository's
OWN_CODE = """
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own"

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""

BLOCKS = re.findall(r"^```\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
#: README's blocks of commands that start vLLM, by the first word after the installation
README = {
    f"README: {command}": block
    for block in BLOCKS
    for command in ("medtasks", "lm_eval")
    if re.search(rf"^{command} .*--model vllm", block, re.M)
}


#: rows of the table at the end of `medtasks run` over all of them
SUITES = ("bridge", "medhelm", "clinicbench", "mlb")


def form(content: dict[str, Any]) -> tuple:
    """The keys of a file, and the two switches whose values change what is done."""
    decoding = content.get("gen_kwargs", {})
    return (
        content["model"],
        frozenset(content) - {"metadata"},
        frozenset(content.get("model_args", {})),
        frozenset(decoding),
        content.get("apply_chat_template"),
        decoding.get("do_sample"),
    )


def effort(name: str) -> tuple:
    """Order of files of one form: the cheapest first, then one that also moves the system turn."""
    arguments, metadata = FILES[name]["model_args"], FILES[name].get("metadata", {})
    gpus = arguments.get("tensor_parallel_size", 1)
    context = arguments.get("max_model_len") or arguments.get("max_length") or 0
    return name != SHOWN, gpus, "system_role" not in metadata, context, name


FORMS = {form(content) for name, content in FILES.items() if name not in LEFT_OUT}
#: for each form the file that is run
RUN = sorted(
    min((name for name in FILES if name not in LEFT_OUT and form(FILES[name]) == one), key=effort)
    for one in FORMS
)


def parts(name: str) -> set[object]:
    """What a file's form consists of, and whether the system turn is moved."""
    model, keys, arguments, decoding, *switches = form(FILES[name])
    moved = FILES[name].get("metadata", {}).get("system_role", True)
    return {model, *keys, *arguments, *decoding, *enumerate([*switches, moved])}


#: each of them has something that none before it has
EVERY_DAY: list[str] = []
for each in sorted(RUN, key=effort):
    if not parts(each) <= set().union(*map(parts, EVERY_DAY)):
        EVERY_DAY.append(each)


def kind(name: str) -> str:
    return FILES[name]["model"] if name in FILES else "README"


def of(model: str) -> list[str]:
    return [name for name in RUN if kind(name) == model]


def marked(names: Iterable[str]) -> list[Any]:
    """The names, those `nightly` that are not of every day."""
    return [
        pytest.param(name, marks=() if name in EVERY_DAY else pytest.mark.nightly, id=name) for name in names
    ]


def model_id(name: str) -> str:
    arguments = FILES[name]["model_args"]
    return arguments.get("pretrained") or arguments["model"]


def test_each_form_is_run_by_a_test_of_this_file():
    assert SHOWN in RUN and set(LEFT_OUT) <= set(FILES)
    tested = {SHOWN, *of("vllm"), *of("hf"), *of("local-chat-completions")}
    assert tested == set(RUN), "files of a model type that no test runs"
    for name in RUN:
        arguments = FILES[name]["model_args"]
        assert arguments.get("tensor_parallel_size", 1) <= MOST_GPUS, f"{name} must be left out by name"
        address = arguments.get("base_url", f"http://localhost:{PORT}/v1/chat/completions")
        assert address == f"http://localhost:{PORT}/v1/chat/completions", name
    assert len(README) == 2, "README's commands for vLLM are not where they were"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A Hugging Face home whose cache has a tiny model for each file."""
    folder = tmp_path_factory.mktemp("hugging_face")
    chat = TEMPLATE + SWITCHES
    plain = make(folder / "plain", template=chat, context=CONTEXT, ends=True)
    base = make(folder / "base", template="", context=CONTEXT, ends=True)
    strict = make(folder / "strict", template=TEMPLATE_WITHOUT_SYSTEM, context=CONTEXT, ends=True)
    # without layers: transformers' search for a batch size computes the whole context again and again
    own = make(folder / "own", template=chat, context=CONTEXT, ends=True, layers=0)
    (own / "modeling_own.py").write_text(OWN_CODE)
    config = json.loads((own / "config.json").read_text())
    classes = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    (own / "config.json").write_text(json.dumps({**config, "model_type": "own", "auto_map": classes}))
    for name in RUN:
        content = FILES[name]
        if content["model_args"].get("trust_remote_code"):
            model = own
        elif not content.get("apply_chat_template"):
            model = base
        elif content.get("metadata", {}).get("system_role") is False:
            model = strict
        else:
            model = plain
        repository = folder / "hub" / f"models--{model_id(name).replace('/', '--')}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("0" * 40)
        (repository / "snapshots").mkdir()
        (repository / "snapshots" / ("0" * 40)).symlink_to(model)
    return folder


@dataclass(frozen=True)
class Done:
    """A command that has ended, in a folder of its own."""

    folder: Path
    code: int
    out: str
    err: str

    def check(self) -> None:
        assert self.code == 0, self.out[-3000:] + self.err[-6000:]
        assert "Traceback" not in self.err, self.err[-6000:]


@dataclass(frozen=True)
class Runner:
    """Runs README's commands and ready files, offline."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, name: str) -> Done:
        folder = self.folder / re.sub(r"\W+", "_", name)
        folder.mkdir()
        if name in README:
            lines = [line for line in README[name].splitlines() if not line.startswith("pip install ")]
            return self._call(["bash", "-ec", "\n".join(lines)], folder, {"MEDTASKS_DATA": "sample"})
        command = ["medtasks", "run", "--config", name, "--tasks", ",".join(TASKS), "--data", "sample",
                   "--limit", str(LIMIT), "--output_path", "run"]  # fmt: skip
        settings = {}
        if kind(name) == "hf":
            # transformers tries batches of the whole context, 64 first, until the memory is used up; on a CPU
            # that is the machine's, and nothing says in time that it is
            command += ["--max_batch_size", "1"]
        elif name != SHOWN and FILES[name]["model_args"].get("tensor_parallel_size", 1) == 1:
            # saves the time of importing everything in two more processes; what is asked stays the same
            settings = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        return self._call(command, folder, settings)

    def _call(self, command: list[str], folder: Path, settings: dict[str, str]) -> Done:
        done = subprocess.run(
            command, cwd=folder, env={**self.environment, **settings}, capture_output=True, text=True,
            errors="replace",
        )  # fmt: skip
        return Done(folder, done.returncode, done.stdout, done.stderr)

    def served(self, names: list[str]) -> dict[str, Done]:
        """Run the files that ask a server, on one that has the names of all."""
        commands = [FILES[name].get("metadata", {}).get("serve", "") for name in of("local-chat-completions")]
        (command, *_) = (line for line in commands if "--tensor-parallel-size 1 " in line)
        called = ["--served-model-name", *map(model_id, names)]
        log = self.folder / "server.log"
        with serving([*shlex.split(command), *called], PORT, self.environment, log):
            return {name: self(name) for name in names}


@pytest.fixture(scope="module")
def finished(request, home, environment, tmp_path_factory) -> Iterator[Callable[[str], Done]]:
    """Waits for a run. All that the chosen tests need begin at once, two at a time: most of their time they
    import, on one core."""
    chosen = list(dict.fromkeys(
        item.callspec.params["name"] for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ))  # fmt: skip
    settings = {
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        # what vLLM's own tests set on CPUs: the model is traced, and no C++ is compiled from it
        "VLLM_CPU_CI_ENV": "1",
    }
    run = Runner(tmp_path_factory.mktemp("ready"), {**environment, **settings})
    asking = [name for name in chosen if kind(name) == "local-chat-completions"]
    with ThreadPoolExecutor(2) as pool:
        served: Future[dict[str, Done]] = pool.submit(run.served, asking) if asking else Future()
        futures = {name: pool.submit(run, name) for name in chosen if name not in asking}
        try:
            yield lambda name: served.result()[name] if name in asking else futures[name].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def recorded(folder: Path) -> dict[str, Any]:
    """The settings that a run wrote down."""
    return json.loads((folder / "run.json").read_text())["identity"]["settings"]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check(done: Done, name: str) -> None:
    """Each document has its response, and what the file says was asked and written down."""
    done.check()
    content, folder = FILES[name], done.folder / "run"
    decoding = content.get("gen_kwargs", {})
    settings = recorded(folder)
    assert settings["gen_kwargs"] == decoding
    assert settings["apply_chat_template"] == content["apply_chat_template"]
    assert settings["system_role"] == content.get("metadata", {}).get("system_role", True)
    results = results_of(folder)["results"]
    for task in TASKS:
        assert results[task]["SAMPLE_DATA,answer"] == 1
        samples = rows(samples_file(folder, task))
        responses = outcomes(folder, task)
        assert len(samples) == len(responses) == LIMIT
        assert {item["document"] for item in responses} == {sample["doc"]["id"] for sample in samples}
        assert all(item["key"] and item["text"].strip() for item in responses)
        for sample in samples:
            prompt, asked = sample["arguments"]["gen_args_0"].values()
            assert decoding.items() <= asked.items()
            check_prompt(json.dumps(prompt, ensure_ascii=False), content)


def check_prompt(prompt: str, content: dict[str, Any]) -> None:
    """The chat template was used as the file says, with the switches of the file."""
    arguments = content["model_args"]
    if content["model"] != "local-chat-completions":  # a server has the template
        assert ("<|user|>" in prompt) is content["apply_chat_template"]
    switches = dict(arguments.get("chat_template_args", {}))
    if "enable_thinking" in arguments:
        switches["enable_thinking"] = arguments["enable_thinking"]
    written = dict(re.findall(r"<\|(\w+): (\w+)\|>", prompt))
    assert written == {key: str(value) for key, value in switches.items()}


@pytest.mark.parametrize("name", marked(README))
def test_the_commands_of_the_readme_run_as_they_stand(finished, name):
    done = finished(name)
    done.check()
    (names,) = re.findall(r"--tasks (\S+)", README[name])
    rows = SUITES if "medtasks run" in README[name] else names.split(",")
    for row in rows:
        assert re.search(rf"^\W*{row}\W", done.out, re.M), done.out[-3000:]
    if runs := list(done.folder.glob("runs/*/results_*.json")):
        (results,) = runs
        found = json.loads(results.read_text())["results"]
        assert len(found) > 50 and all(item["SAMPLE_DATA,answer"] == 1 for item in found.values())


@pytest.mark.parametrize("name", [SHOWN])
def test_the_file_that_the_pages_show_runs_to_the_letter(finished, name):
    check(finished(name), name)


@pytest.mark.parametrize("name", marked(name for name in of("vllm") if name != SHOWN))
def test_a_file_of_each_form_runs_on_vllm(finished, name):
    check(finished(name), name)


@pytest.mark.parametrize("name", marked(of("hf")))
def test_a_file_of_each_form_runs_on_transformers(finished, name):
    check(finished(name), name)


@pytest.mark.parametrize("name", marked(of("local-chat-completions")))
def test_a_file_of_each_form_asks_the_server_that_its_command_starts(finished, name):
    check(finished(name), name)
