"""What is built for lm-eval: variants and groups follow from the hand-written files."""

import shutil
from pathlib import Path

import pytest
import yaml
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import build
from medtasks_ext.registry.folders import FROM_INSTALLED
from medtasks_ext.strict import yaml_text
from tests.conftest import declare_suites

TASKS = registry()


@pytest.fixture
def own(tmp_path):
    root = tmp_path / "tasks"
    for name in ("bridge/mie", "bridge/mednli"):
        shutil.copytree(TASKS.root / name, root / name)
    declare_suites(root)
    return root


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "built" / "tasks"


def copied(root: Path, name: str = "added", task: str = "bridge_added") -> Path:
    """One more dataset folder, made of MIE's."""
    folder = root / "bridge" / name
    shutil.copytree(TASKS.root / "bridge" / "mie", folder)
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8").replace("task: bridge_mie\n", f"task: {task}\n")
    text = text.replace("dataset: bridge/mie\n", f"dataset: bridge/{name}\n")
    # it is none of the paper's, so its file says what rows it has
    file.write_text(text.replace("rows:\n", "rows:\n  official_name: MIE\n"), encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_text(encoding="utf-8"), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_second_build_touches_nothing(own, folder):
    written = build(Registry(own), folder)
    before = content(folder)
    assert written == sorted(before)
    assert {name for name in before if not name.startswith("groups/")} == {
        *(f"bridge/{name}/{file}.yaml" for name in ("mie", "mednli") for file in ("task", "cot",
         "five_shot")),
        "bridge/mednli/likelihood.yaml",  # whose answers can be listed
    }  # fmt: skip
    assert build(Registry(own), folder) == [] and content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["tasks"]


def test_a_file_that_differs_is_written_and_one_that_does_not_belong_is_deleted(own, folder):
    build(Registry(own), folder)
    before = content(folder)
    (folder / "bridge" / "mie" / "cot.yaml").write_text("task: [")
    (folder / "groups" / "orphan.yaml").write_text("group: orphan")
    (folder / "bridge" / "gone").mkdir()
    (folder / "bridge" / "gone" / "task.yaml").write_text("task: bridge_gone")
    assert build(Registry(own), folder) == [
        "bridge/gone/task.yaml", "bridge/mie/cot.yaml", "groups/orphan.yaml",
    ]  # fmt: skip
    assert {name: text for name, (text, _) in content(folder).items()} == {
        name: text for name, (text, _) in before.items()
    }


def test_a_new_dataset_appears_with_the_second_build_and_joins_its_groups(own, folder, monkeypatch):
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(own))
    build(Registry(own), folder)
    copied(own)
    changed = build(Registry(own), folder)
    new = {name for name in changed if not name.startswith("groups/")}
    assert new == {f"bridge/added/{file}.yaml" for file in ("task", "cot", "five_shot")}
    manager = TaskManager(include_defaults=False, include_path=str(folder), metadata={"data": "sample"})
    assert {"bridge_added", "bridge_added_cot"} < set(Registry(own).tasks)
    assert set(manager.all_subtasks) == {*Registry(own).tasks, "bridge_mednli_ll"}
    group = manager.load(["bridge_zh"])["groups"]["bridge_zh"]
    assert {task.task_name for task in group.get_all_tasks()} == {"bridge_added", "bridge_mie"}
    shutil.rmtree(own / "bridge" / "added")
    assert build(Registry(own), folder) == changed
    assert not list((folder / "bridge" / "added").iterdir())


def test_in_an_installed_package_it_includes_the_package_s_own_copy(own, tmp_path):
    site = tmp_path / "site"
    shutil.copytree(own, site / "medtasks_ext" / "tasks")
    folder = site / "lm_eval" / "tasks" / "medtasks"
    build(Registry(own), folder, tasks=FROM_INSTALLED)
    moved = site.rename(tmp_path / "moved")  # nothing is said of where it was built
    shutil.rmtree(own)
    for file in (moved / "lm_eval" / "tasks" / "medtasks").glob("*/*/*.yaml"):
        include = yaml_text(file.read_text(encoding="utf-8"))["include"]
        target = (file.parent / include).resolve()
        assert target == moved / "medtasks_ext" / "tasks" / "bridge" / file.parent.name / "task.yaml"
        assert target.is_file()


def test_a_group_that_is_no_plain_mean_leaves_the_mean_out(built_tasks):
    said = {file.stem: yaml.safe_load(file.read_text()) for file in (built_tasks / "groups").iterdir()}
    assert set(said) == set(TASKS.listed)
    assert "aggregate_metric_list" not in said["mlb"] and said["bridge_zh"]["aggregate_metric_list"]
    for name, group in said.items():
        plain = len(TASKS.parts(name)) == 1 and TASKS.parts(name)[0] == TASKS.leaves(name)
        assert ("aggregate_metric_list" in group) == plain, name


def test_two_datasets_of_one_name_are_one_error_and_nothing_is_written(own, folder):
    other = copied(own, task="bridge_mie")
    with pytest.raises(MedtasksError, match="task 'bridge_mie' is also in") as error:
        build(Registry(own), folder)
    files = {str(other / "task.yaml"), str(own / "bridge" / "mie" / "task.yaml")}
    assert all(file in str(error.value) for file in files)
    assert not folder.exists()


@pytest.mark.parametrize(("name", "kind"), [("bridge_en", "group"), ("bridge_mie_cot", "task")])
def test_a_task_that_is_named_as_something_else_is_one_error(own, folder, name, kind):
    copied(own, task=name)
    with pytest.raises(MedtasksError, match=f"'{name}' is (both a|also)") as error:
        build(Registry(own), folder)
    assert kind in str(error.value) and "→" in str(error.value)
