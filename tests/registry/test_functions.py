"""What a YAML file may name as a function, and what lm-eval may render of it."""

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget
from medtasks_ext.registry.functions import catalogue, function_named
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


def test_every_function_of_the_catalogue_is_there():
    assert len(catalogue()) > 60
    for name in catalogue():
        assert callable(function_named(f"!function {name}"))


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
