"""The ready files and README's commands with the real engine, as they stand.

A Hugging Face cache holds a tiny model under each id that the files name, so that nothing of a file has to be
changed: not the id, the context, the batch size, the decoding or the token budget. A form is the keys that a
file has and whether it samples. Every night one file of each form is run, and README's commands; every day
the file that the pages show, and one of each other type of model.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, outcomes
from tests.engine.conftest import MEDTASKS, called, serving
from tests.engine.tiny_model import TEMPLATE, TEMPLATE_WITHOUT_SYSTEM, make
from tests.run_files import results_of, samples_of

pytestmark = pytest.mark.engine

CONFIGS = ROOT / "model_configs"
FILES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for folder in (".", "open", "api")
    for path in sorted((CONFIGS / folder).glob("*.yaml"))
}
#: Files that no engine on this machine can run, and why.
LEFT_OUT = {
    "oracle": "has no engine; it answers with the gold",
    "demo": "test_run runs it",
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


def kind(name: str) -> str:
    return FILES[name]["model"] if name in FILES else "README"


def of(model: str) -> list[str]:
    return [name for name in RUN if kind(name) == model]


EVERY_DAY = (SHOWN, of("hf")[0], min(of("local-chat-completions"), key=effort))


def model_id(name: str) -> str:
    arguments = FILES[name]["model_args"]
    return arguments.get("pretrained") or arguments["model"]


def test_what_no_machine_of_tests_can_run_is_left_out_by_name():
    assert SHOWN in RUN and set(LEFT_OUT) <= set(FILES)
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


class Runner:
    """Runs README's commands and ready files, offline, each in a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def __call__(self, name: str) -> tuple[Path, str]:
        folder = self.folder / re.sub(r"\W+", "_", name)
        folder.mkdir()
        if name in README:
            lines = [line for line in README[name].splitlines() if not line.startswith("pip install ")]
            return folder, called(("bash", "-ec", "\n".join(lines)), folder, self.environment)
        command = (*MEDTASKS, "run", "--config", name, "--tasks", ",".join(TASKS), "--limit", LIMIT,
                   "--output_path", "run")  # fmt: skip
        settings = {}
        if kind(name) == "hf":
            # transformers tries batches of the whole context, 64 first, until the memory is used up; on a CPU
            # that is the machine's, and nothing says in time that it is
            command += ("--max_batch_size", "1")
        elif name != SHOWN and FILES[name]["model_args"].get("tensor_parallel_size", 1) == 1:
            # saves the time of importing everything in two more processes; what is asked stays the same
            settings = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        return folder, called(command, folder, {**self.environment, **settings})

    def served(self, names: list[str]) -> dict[str, tuple[Path, str]]:
        """Run the files that ask a server, on one that has the names of all."""
        commands = [FILES[name].get("metadata", {}).get("serve", "") for name in of("local-chat-completions")]
        (command, *_) = (line for line in commands if "--tensor-parallel-size 1 " in line)
        names_flag = ("--served-model-name", *map(model_id, names))
        log = self.folder / "server.log"
        with serving((*shlex.split(command), *names_flag), PORT, self.environment, log):
            return {name: self(name) for name in names}


@pytest.fixture(scope="module")
def finished(request, home, environment, tmp_path_factory) -> Iterator[Callable[[str], tuple[Path, str]]]:
    """Waits for a run: its folder, and what was said. All that the chosen tests need begin at once, two at a
    time: most of their time they import, on one core."""
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
        served: Future[dict[str, tuple[Path, str]]] = pool.submit(run.served, asking) if asking else Future()
        futures = {name: pool.submit(run, name) for name in chosen if name not in asking}
        try:
            yield lambda name: served.result()[name] if name in asking else futures[name].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def check(folder: Path, said: str, name: str) -> None:
    """Each document has its response, and what the file says was asked and written down."""
    assert "Traceback" not in said, said[-6000:]
    content, decoding = FILES[name], FILES[name].get("gen_kwargs", {})
    settings = json.loads((folder / "run.json").read_text())["identity"]["settings"]
    assert settings["gen_kwargs"] == decoding
    assert settings["apply_chat_template"] == content["apply_chat_template"]
    assert settings["system_role"] == content.get("metadata", {}).get("system_role", True)
    results = results_of(folder)["results"]
    for task in TASKS:
        assert results[task]["SAMPLE_DATA,answer"] == 1
        samples, responses = samples_of(folder, task), outcomes(folder, task)
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


@pytest.mark.nightly
@pytest.mark.parametrize("name", README)
def test_the_commands_of_the_readme_run_as_they_stand(finished, name):
    folder, said = finished(name)
    (names,) = re.findall(r"--tasks (\S+)", README[name])
    for row in SUITES if "medtasks run" in README[name] else names.split(","):
        assert re.search(rf"^\W*{row}\W", said, re.M), said[-3000:]
    if runs := list(folder.glob("runs/*/results_*.json")):
        (results,) = runs
        found = json.loads(results.read_text())["results"]
        assert len(found) > 50 and all(item["SAMPLE_DATA,answer"] == 1 for item in found.values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERY_DAY else pytest.mark.nightly) for name in RUN]
)
def test_a_file_of_each_form_runs_as_it_stands(finished, name):
    folder, said = finished(name)
    check(folder / "run", said, name)
