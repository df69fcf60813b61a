"""What a YAML file may name as a function, and what lm-eval may render of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget
from medtasks_ext.registry.functions import TASK_CLASS, catalogue, function_named
from medtasks_ext.rows.sandbox import Bounded
from tests.conftest import ROOT

EVIL = "from pathlib import Path\nPath({marker!r}).touch()\n\n\ndef f(*given, **named):\n    return {{}}\n"
#: Names that a stranger's file could try.
REFUSED = [
    "evil.f", "os.system", "subprocess.run", "builtins.eval", "medtasks_ext.metrics.sql_worker.main",
    "medtasks_ext.metrics.common.json.loads", "medtasks_ext.task.MedicalTask.of",
    "medtasks_ext.task.MedicalTask ", "", ".", "..os.system", "lm_eval.api.metrics.mean",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_outside_the_catalogue_is_refused_before_anything_is_imported(name):
    catalogue()  # read once, with the standard library's reader of what is installed
    before = set(sys.modules)
    with pytest.raises(MedtasksError, match="not in the catalogue of functions"):
        function_named(f"!function {name}", where="task.yaml")
    assert set(sys.modules) == before


@pytest.fixture
def marker(tmp_path) -> Path:
    return tmp_path / "executed"


@pytest.fixture
def task(tmp_path, marker, monkeypatch) -> Path:
    """A dataset of one's own, with a module beside its file."""
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "tests/own_tasks/allergie_farmaci", folder / "allergie_farmaci")
    (folder / "allergie_farmaci/evil.py").write_text(EVIL.format(marker=str(marker)))
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    forget()
    yield folder / "allergie_farmaci/task.yaml"
    forget()


def changed(file: Path, **keys: object) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "".join(f"{key}: {value}\n" for key, value in keys.items()), encoding="utf-8")
    forget()


@pytest.mark.parametrize(
    "keys",
    [
        {"process_results": "!function evil.f"},
        {"process_results": "!function os.system"},
        {"process_results": "!function medtasks_ext.metrics.labels.process_label",
         "metric_list": "[{metric: score, aggregation: !function evil.f, higher_is_better: true}]"},
    ],
)  # fmt: skip
def test_no_module_beside_a_file_is_imported_by_any_command(medtasks, task, marker, keys, monkeypatch):
    monkeypatch.syspath_prepend(str(task.parent))
    changed(task, **keys)
    name = "allergie_farmaci"
    run = ("run", "--model", "oracle", "--data", "sample", "--tasks", yaml_name(task))
    check, preview = ("data", "check", name), ("preview", yaml_name(task), "--data", "sample")
    for command in (("dev", "validate", name), preview, check, ("ls",), run):
        medtasks(*command)
        assert not marker.exists(), command
    done = medtasks(*run)
    assert done.code and "is not in the catalogue of functions" in done.text
    checked = medtasks("dev", "validate", str(task.parent))
    assert checked.code == 1 and "catalogue of functions" in checked.text


def yaml_name(file: Path) -> str:
    text = file.read_text(encoding="utf-8").replace("!function", "!!str")
    return yaml.safe_load(text)["task"]


@pytest.mark.parametrize(
    "keys",
    [
        {"doc_to_text": "\"{{ cycler.__init__.__globals__.os.system('true') }}\""},
        {"description": "'{% for i in range(10**12) %}{% endfor %}'"},
        {"fewshot_config": "{doc_to_text: '{{ 1 }}'}"},
        {"use_prompt": "evil.yaml:x"},
    ],
)
def test_what_lm_eval_would_render_without_a_sandbox_is_refused(medtasks, task, keys):
    changed(task, **keys)
    done = medtasks("run", "--model", "oracle", "--data", "sample", "--tasks", yaml_name(task))
    assert done.code and "lm-eval would" in done.text


SOURCE = ROOT / "tests/own_tasks/allergie_farmaci"
TOUCH = "from pathlib import Path\nPath({!r}).touch()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A stranger's dataset folder, with a module beside the file; templates must not be compiled."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a template was compiled")

    monkeypatch.setattr(Bounded, "compile", refuse)
    place = tmp_path / "theirs" / "allergie_farmaci"
    shutil.copytree(SOURCE, place)
    return place


def add(folder: Path, text: str) -> None:
    with (folder / "task.yaml").open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_sound_folder_and_all_bundled_ones_pass(medtasks, folder):
    done = medtasks.done("dev", "validate", "--static", str(folder))
    assert "✓ sample rows are JSON objects" in done.out and "1 checked, 0 with problems" in done.out
    medtasks.done("dev", "validate", "--static")


HOSTILE = {
    "process_results: !function evil.f\n": "`!function evil.f` is not in the catalogue",
    "metric_list: [{metric: score, aggregation: !function os.system}]\n": "`!function os.system` is not in",
    "filter_list: [{name: a, filter: [{function: !function evil.f}]}]\n": "`!function evil.f` is not in",
    "doc_to_text: '{{ 1 }}'\n": "lm-eval would render this Jinja without a sandbox",
    "use_prompt: evil.yaml:x\n": "lm-eval would read another file",
    "surprise: 1\n": "surprise: unknown key",
    "include: /dev/zero\n": "lies outside the folders of tasks",
    "include: ../../../../../../../../../../etc/hosts\n": "lies outside the folders of tasks",
    "a: [\n": "not valid YAML",
    "task_alias: !!python/object/apply:os.system ['true']\n": "not valid YAML",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_task_file_may_not_say_is_named(medtasks, folder, text):
    add(folder, text)
    (folder / "evil.py").write_text(TOUCH.format(str(folder / "ran")))
    done = medtasks("dev", "validate", "--static", str(folder))
    assert done.code == 1 and HOSTILE[text] in " ".join(done.out.split()), done.text
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("jinja", "message"),
    [
        ("{{ cycler.__init__.__globals__.os.system('touch ran') }}", ""),
        ("{% for i in range(10**12) %}{% endfor %}", ""),
        ("{% for %}", "prompt.input: no valid Jinja"),
        ("{{ testo | center(9) }}", "prompt.input: no filter 'center' in task files"),
    ],
)
def test_templates_are_parsed_and_never_rendered(medtasks, folder, jinja, message):
    said = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8").replace("!function", "!!str"))
    said["class"] = f"!function {TASK_CLASS}"
    said["prompt"]["input"] = jinja
    (folder / "task.yaml").write_text(yaml.safe_dump(said, allow_unicode=True), encoding="utf-8")
    done = medtasks("dev", "validate", "--static", str(folder))
    assert message in done.out and done.code == bool(message), done.text
    assert not Path("ran").exists()


def test_neither_the_task_class_nor_a_module_beside_the_file_is_imported(folder):
    (folder / "evil.py").write_text(TOUCH.format(str(folder / "ran")))
    add(folder, "process_results: !function evil.f\n")
    code = (
        "import sys; from medtasks_ext.cli.main import app; app(standalone_mode=False);"
        "bad = [m for m in sys.modules if m in ('medtasks_ext.task', 'evil', 'lm_eval.api.task')]; print(bad)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}
    done = subprocess.run(
        [sys.executable, "-c", code, "dev", "validate", "--static", str(folder)],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "catalogue" in done.stdout and not (folder / "ran").exists(), done.stderr
