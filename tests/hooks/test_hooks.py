"""Packages of strangers add a command, a kind of answers, tasks and a view; one that fails is named."""

import json
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.run_files import results_of

HERE = Path(__file__).parent
KIT = """\
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
"""
BROKEN = """\
[medtasks.commands]
wheel = broken_kit.command:wheel
study wheel = broken_kit.command:wheel

[medtasks.suites]
gone = broken_kit.nowhere

[medtasks.answers]
fog = broken_kit.command:Fog

[medtasks.metrics]
gone = broken_kit.nowhere

[medtasks.report_views]
fails = broken_kit.view:fails

[medtasks.labels]
gone = broken_kit.command:labels
"""


def install(place: Path, name: str, entry_points: str) -> None:
    """Make a wheel of a package beside this file, and install it into a folder; nothing else is needed."""
    wheel = place.parent / f"{name}-1.0-py3-none-any.whl"
    meta = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted((HERE / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(HERE))
        archive.writestr(f"{meta}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{meta}/entry_points.txt", entry_points)
        archive.writestr(f"{meta}/RECORD", "".join(f"{item},,\n" for item in archive.namelist()))
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
        subprocess.run([*command, str(place), str(wheel)], check=True)
    else:  # a pure wheel is installed by unpacking it
        zipfile.ZipFile(wheel).extractall(place)


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Calls `medtasks` in a process of its own, with packages that are installed for it alone."""
    base = tmp_path_factory.mktemp("hooks")
    places = {"hospital_kit": base / "kit" / "site", "broken_kit": base / "broken" / "site"}
    for (name, place), points in zip(places.items(), (KIT, BROKEN), strict=True):
        place.mkdir(parents=True)
        install(place, name, points)
    (base / "work").mkdir()

    def called(
        *arguments: object, packages=("hospital_kit",), **more: str
    ) -> subprocess.CompletedProcess[str]:
        import os

        path = os.pathsep.join([*(str(places[name]) for name in packages), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-m", "medtasks_ext", *map(str, arguments)],
            cwd=base / "work", env={**os.environ, "PYTHONPATH": path, **more}, capture_output=True, text=True,
        )  # fmt: skip

    called.folder = base / "work"
    return called


@pytest.fixture(scope="module")
def run(call):
    """The run of a task of one package beside another that fails."""
    task = ("--tasks", "pain", "--model", "oracle", "--data", "sample")
    done = call("run", *task, "--output_path", "run", packages=("hospital_kit", "broken_kit"))
    assert done.returncode == 0, done.stderr
    return call.folder / "run"


def test_a_package_adds_commands_with_a_panel_of_its_own(call):
    shown = call("--help").stdout
    assert "\nHospital:\n  beds " in shown and "Count the beds of some wards." in shown
    assert "Count the beds of some wards." in call("study", "--help").stdout
    for words in (("beds",), ("study", "beds")):
        done = call(*words, 3)
        assert (done.returncode, done.stdout, done.stderr) == (0, "36 beds\n", "")


def test_a_task_of_a_package_is_read_scored_and_reported_by_its_own_kind_of_answers(call, run):
    listed = json.loads(call("ls", "pain", "--json").stdout)
    assert [item["task"] for item in listed] == ["pain"]
    assert call("dev", "validate", "pain").returncode == 0
    found = results_of(run)["results"]["pain"]
    assert found["score,answer"] == found["nearness,answer"] == 1.0
    done = call("report", run, "--published", "none", "-o", "report")
    assert done.returncode == 0 and "wards.csv" in done.stderr
    assert (call.folder / "report" / "wards.csv").read_text().startswith("entry\noracle")


def test_a_hook_that_fails_is_named_with_its_package_and_the_command_goes_on(call, run):
    both = ("hospital_kit", "broken_kit")
    shown = call("--help", packages=both)
    assert shown.returncode == 0 and "Turn the wheel." in shown.stdout and not shown.stderr
    shown = call("study", "--help", packages=both)
    assert shown.returncode == 0 and "Turn the wheel." in shown.stdout
    done = call("wheel", packages=both)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "'wheel' of the package broken_kit cannot be imported" in done.stderr
    done = call("ls", "pain", packages=both)
    assert done.returncode == 0 and "pain" in done.stdout
    lines = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(lines) == 2 and all("of the package broken_kit" in line for line in lines)
    done = call("report", run, "--published", "none", "-o", "both", packages=both)
    assert done.returncode == 0 and (call.folder / "both" / "wards.csv").is_file()
    assert "left out: medtasks.report_views: 'fails' of the package broken_kit failed: " in done.stderr
    assert not (call.folder / "both" / "never.csv").exists()


def test_a_kind_of_answers_that_cannot_be_imported_is_named_where_a_task_asks_for_it(call, tmp_path):
    folder = tmp_path / "tasks" / "pain"
    shutil.copytree(HERE / "hospital_kit" / "tasks" / "pain", folder)
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8").replace("kind: pain_scale", "kind: fog")
    file.write_text(text.replace("task: pain", "task: fog"), encoding="utf-8")
    both = ("hospital_kit", "broken_kit")
    own = str(tmp_path / "tasks")
    done = call("dev", "validate", "pain", "fog", packages=both, MEDTASKS_TASKS=own)
    print(done.stdout, done.stderr)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "'fog' of the package broken_kit cannot be imported" in done.stdout
