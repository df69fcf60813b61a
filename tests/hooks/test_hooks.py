"""Packages of strangers add a command, a kind of answers, tasks and a view; one that fails is named."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.run_files import results_of

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
POINTS = {
    "hospital_kit": """\
[medtasks.commands]
beds = hospital_kit.beds:beds
study beds = hospital_kit.beds:beds
[medtasks.suites]
hospital = hospital_kit.tasks
[medtasks.answers]
pain_scale = hospital_kit.scale:PainScale
[medtasks.metrics]
hospital = hospital_kit.families
[medtasks.report_views]
wards = hospital_kit.view:wards
""",
    "broken_kit": """\
[medtasks.commands]
wheel = broken_kit.command:wheel
[medtasks.suites]
gone = broken_kit.nowhere
[medtasks.answers]
fog = broken_kit.command:Fog
[medtasks.metrics]
gone = broken_kit.nowhere
[medtasks.report_views]
fails = broken_kit.view:fails
""",
}


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Calls `medtasks` in a process of its own, with packages that are installed for it alone."""
    base = tmp_path_factory.mktemp("hooks")
    for name, points in POINTS.items():
        shutil.copytree(HERE / name, base / name / name)
        meta = base / name / f"{name}-1.0.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(points)

    def called(*arguments: object, packages=("hospital_kit",), **more: str):
        path = os.pathsep.join([*(str(base / name) for name in packages), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-m", "medtasks_ext", *map(str, arguments)],
            cwd=base, env={**os.environ, "PYTHONPATH": path, **more}, capture_output=True, text=True,
        )  # fmt: skip

    called.folder = base
    return called


BOTH = {"packages": tuple(POINTS)}


def test_a_package_adds_commands_with_a_panel_of_its_own(call):
    shown = call("--help").stdout
    assert "\nhospital_kit:\n  beds " in shown and "Count the beds of some wards." in shown
    for words in (("beds",), ("study", "beds")):
        done = call(*words, 3)
        assert (done.returncode, done.stdout, done.stderr) == (0, "36 beds\n", "")
    shown = call("--help", **BOTH)
    assert shown.returncode == 0 and "Turn the wheel." in shown.stdout and not shown.stderr
    done = call("wheel", **BOTH)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "'wheel' of the package broken_kit cannot be imported" in done.stderr


def test_a_task_of_a_package_is_read_scored_and_reported_beside_a_package_that_fails(call):
    """Each hook that fails is named with its package, and the command goes on."""
    done = call("ls", "pain", "--json", **BOTH)
    assert [item["task"] for item in json.loads(done.stdout)] == ["pain"]
    lines = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(lines) == 2 and all("of the package broken_kit" in line for line in lines)
    task = ("--tasks", "pain", "--model", "oracle", "--data", "sample")
    done = call("run", *task, "--output_path", "run", **BOTH)
    assert done.returncode == 0, done.stderr
    found = results_of(call.folder / "run")["results"]["pain"]
    assert found["score,answer"] == found["nearness,answer"] == 1.0
    done = call("report", "run", "--published", "none", "-o", "report", **BOTH)
    assert done.returncode == 0 and "wards.csv" in done.stderr
    assert (call.folder / "report" / "wards.csv").read_text().startswith("entry\noracle")
    assert "left out: medtasks.report_views: 'fails' of the package broken_kit failed: " in done.stderr


def test_a_kind_of_answers_that_cannot_be_imported_is_named_where_a_task_asks_for_it(call, tmp_path):
    folder = tmp_path / "pain"
    shutil.copytree(HERE / "hospital_kit" / "tasks" / "pain", folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8").replace("kind: pain_scale", "kind: fog")
    (folder / "task.yaml").write_text(text.replace("task: pain", "task: fog"), encoding="utf-8")
    done = call("dev", "validate", "pain", "fog", **BOTH, MEDTASKS_TASKS=str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "'fog' of the package broken_kit cannot be imported" in done.stdout
