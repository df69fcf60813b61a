"""`medtasks dev validate --static` reads a stranger's files: nothing they name is imported or rendered."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.rows.sandbox import Bounded
from tests.conftest import ROOT

SOURCE = ROOT / "tests/own_tasks/allergie_farmaci"
EVIL = "from pathlib import Path\nPath({!r}).touch()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A stranger's dataset folder, with a module beside the file; templates must not be compiled."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a template was compiled")

    monkeypatch.setattr(Bounded, "compile", refuse)
    place = tmp_path / "theirs" / "allergie_farmaci"
    shutil.copytree(SOURCE, place)
    return place


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


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
    (folder / "evil.py").write_text(EVIL.format(str(folder / "ran")))
    done = medtasks("dev", "validate", "--static", str(folder))
    assert done.code == 1 and HOSTILE[text] in " ".join(done.out.split()), done.text
    assert not (folder / "ran").exists()


def test_files_that_are_no_part_of_a_dataset_are_named(medtasks, folder):
    (folder / "evil.py").write_text(EVIL.format(str(folder / "ran")))
    (folder / "linked.jsonl").symlink_to("/etc/hostname")
    done = medtasks("dev", "validate", "--static", str(folder))
    assert done.code == 1 and not (folder / "ran").exists()
    assert "evil.py: no file of a dataset folder" in done.out
    assert "linked.jsonl: no file of a dataset folder" in done.out


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


@pytest.mark.parametrize("line", ["{", "[1]", "[" * 100_000, "9" * 5000, '{"_split": "test"'])
def test_sample_rows_that_are_none_are_named(medtasks, folder, line):
    with (folder / "sample.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    done = medtasks("dev", "validate", "--static", str(folder))
    assert done.code == 1 and "no JSON object" in done.out


def test_functions_of_a_suites_file_are_checked(medtasks, tmp_path, monkeypatch):
    root = tmp_path / "tasks"
    shutil.copytree(ROOT / "tests/own_tasks/wards", root / "wards")
    with (root / "wards/suite.yaml").open("a", encoding="utf-8") as file:
        file.write("leaderboard: os.system\n")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    done = medtasks("dev", "validate", "--static")
    assert done.code == 1 and "`!function os.system` is not in the catalogue" in done.out


def test_neither_the_task_class_nor_a_module_beside_the_file_is_imported(folder):
    (folder / "evil.py").write_text(EVIL.format(str(folder / "ran")))
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


def test_the_pull_request_workflow_reads_before_it_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    static, *others = [workflow["jobs"].pop("static"), *workflow["jobs"].values()]
    assert {job["needs"] for job in others} == {"static"} and workflow["permissions"] == {"contents": "read"}
    base, head = [step["with"] for step in static["steps"] if "checkout" in step.get("uses", "")]
    assert "base.sha" in base["ref"] and base["path"] == "base" and "ref" not in head
    commands = [step["run"] for step in static["steps"] if "run" in step]
    assert commands == ["python -m pip install ./base", "medtasks dev validate --static"]
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        assert "pull_request_target:" not in file.read_text(encoding="utf-8")
