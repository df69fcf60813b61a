"""Plain and editable installation, upgrade of lm-eval, uninstallation: in environments of their own.

The environments see this one's packages through a `.pth` file, so that only the packages under
test are installed into them.
"""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.install


def run(*command: object, cwd: Path, ok: bool = True) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert (done.returncode == 0) is ok, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def without_medtasks(packages: Path, folder: Path) -> Path:
    """The same packages through links, without medtasks and its copy inside lm-eval."""
    (folder / "lm_eval" / "tasks").mkdir(parents=True)
    for place in ("", "lm_eval", "lm_eval/tasks"):
        for item in (packages / place).iterdir():
            link = folder / place / item.name
            if "medtasks" not in item.name and not link.exists():
                link.symlink_to(item)
    return folder


class Environment:
    """A virtual environment with its own lm-eval (unless layered), and everything else borrowed."""

    def __init__(self, folder: Path, *, layered: bool = False) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
        self.python = folder / "venv" / "bin" / "python"
        self.site = Path(
            run(self.python, "-c", "import site; print(site.getsitepackages()[0])", cwd=folder).strip()
        )
        borrowed = [path for path in map(Path, site.getsitepackages()) if path.is_dir()]
        if layered:
            borrowed = [without_medtasks(path, folder / "layer") for path in borrowed]
        (self.site / "zz_borrowed.pth").write_text("\n".join(map(str, borrowed)) + "\n")
        if not layered:
            self.pip("install", "--quiet", "--no-deps", "--force-reinstall", "lm-eval==0.4.13")

    def pip(self, *arguments: object) -> str:
        return run(self.python, "-m", "pip", "--disable-pip-version-check", *arguments, cwd=self.folder)

    def medtasks(self, *arguments: object, ok: bool = True) -> str:
        return run(self.python, "-m", "medtasks_ext", *arguments, cwd=self.folder, ok=ok)

    def lm_eval_names(self) -> str:
        """What lm-eval's own scan finds, without --include_path."""
        code = "from lm_eval.tasks import TaskManager; print(*TaskManager().all_tasks)"
        return run(self.python, "-c", code, cwd=self.folder)

    def leftovers(self) -> list[str]:
        return [
            str(path)
            for path in (self.site / "medtasks_ext", self.site / "lm_eval" / "tasks" / "medtasks")
            if path.exists()
            and any(item.is_file() for item in path.rglob("*") if "__pycache__" not in item.parts)
        ]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, so that builds leave nothing in the checkout."""
    folder = tmp_path_factory.mktemp("checkout") / "medtasks"
    keep = ("medtasks_ext", "tasks", "model_configs", "results", "pyproject.toml", "README.md", "LICENSE")
    folder.mkdir()
    for name in keep:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    return folder


def test_a_plain_installation_works_survives_an_upgrade_of_lm_eval_and_leaves_nothing(tmp_path, checkout):
    environment = Environment(tmp_path)
    environment.pip("install", "--quiet", "--no-deps", checkout)
    assert "bridge_zh" in environment.lm_eval_names()
    assert "✗" not in environment.medtasks("doctor")
    assert str(environment.site) in environment.medtasks("path")
    assert "1.0000" in environment.medtasks(
        "run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_mie", "--config", "oracle"
    )
    environment.pip("install", "--quiet", "--no-deps", "--force-reinstall", "lm-eval==0.4.13")
    assert "bridge_zh" in environment.lm_eval_names()
    environment.pip("uninstall", "--yes", "--quiet", "medtasks")
    assert environment.leftovers() == []


def test_an_editable_installation_works_and_its_stale_copy_is_named(tmp_path, checkout):
    environment = Environment(tmp_path)
    environment.pip("install", "--quiet", "--no-deps", "-e", checkout)
    assert "bridge_zh" in environment.lm_eval_names()
    assert environment.medtasks("path").strip() == str(checkout / "tasks")
    assert "✗" not in environment.medtasks("doctor")
    sample = checkout / "tasks" / "bridge" / "mie" / "sample.jsonl"
    content = sample.read_text()
    sample.write_text(content + "\n")
    try:
        report = environment.medtasks("doctor", ok=False)
    finally:
        sample.write_text(content)
    assert "stale (bridge/mie/sample.jsonl)" in report and "--include_path" in report
    environment.pip("uninstall", "--yes", "--quiet", "medtasks")
    assert environment.leftovers() == []


def test_without_the_copy_doctor_says_how_lm_eval_finds_the_tasks(tmp_path, checkout):
    environment = Environment(tmp_path)
    environment.pip("install", "--quiet", "--no-deps", checkout)
    shutil.rmtree(environment.site / "lm_eval" / "tasks" / "medtasks")
    assert "--include_path" in environment.medtasks("doctor", ok=False)
    assert "1.0000" in environment.medtasks(
        "run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_mie", "--output_path", "run"
    )


def test_a_layered_lm_eval_is_named_and_the_command_works_all_the_same(tmp_path, checkout):
    environment = Environment(tmp_path, layered=True)
    environment.pip("install", "--quiet", "--no-deps", checkout)
    report = environment.medtasks("doctor", ok=False)
    assert "another layer" in report and "--include_path" in report
    assert "1.0000" in environment.medtasks(
        "run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_mie", "--output_path", "run"
    )
