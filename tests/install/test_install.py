"""Plain and editable installation, upgrade of lm-eval, uninstallation: in environments of their own.

The environments see this one's packages through a `.pth` file, so that only the packages under
test are installed into them.
"""

import shutil

import pytest

from tests.conftest import ROOT
from tests.install.environment import Environment
from tests.transcripts.console import PAGES, check, fresh

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, so that builds leave nothing in the checkout."""
    folder = tmp_path_factory.mktemp("checkout") / "medtasks"
    folder.mkdir()
    folders = ("medtasks_ext", "tasks", "model_configs", "results", "docs")
    for name in (*folders, "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    return folder


def test_a_plain_installation_works_survives_an_upgrade_of_lm_eval_and_leaves_nothing(tmp_path, checkout):
    environment = Environment(tmp_path)
    environment.pip("install", "--quiet", "--no-deps", checkout)
    assert "bridge_zh" in environment.lm_eval_names()
    assert str(environment.site) in environment.medtasks("dev", "build")
    asked = ("run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_mie", "--config", "oracle")
    assert "1.0000" in environment.medtasks(*asked)
    environment.pip("install", "--quiet", "--no-deps", "--force-reinstall", "lm-eval==0.4.13")
    assert "bridge_zh" in environment.lm_eval_names()
    shutil.rmtree(environment.site / "lm_eval" / "tasks" / "medtasks")
    assert "1.0000" in environment.medtasks(*asked)  # without the copy inside lm-eval, too
    environment.pip("uninstall", "--yes", "--quiet", "medtasks")
    assert environment.leftovers() == []


def test_an_editable_installation_works_and_finds_what_was_added(tmp_path, checkout):
    environment = Environment(tmp_path)
    environment.pip("install", "--quiet", "--no-deps", "-e", checkout)
    assert "bridge_zh" in environment.lm_eval_names()
    assert environment.medtasks("dev", "build").splitlines()[0] == str(checkout / "build" / "tasks")
    assert str(checkout / "tasks/bridge/mie/task.yaml") in environment.medtasks("ls", "bridge_mie", "--json")
    copied = checkout / "tasks" / "bridge" / "added"
    shutil.copytree(checkout / "tasks" / "bridge" / "mie", copied)
    text = (copied / "task.yaml").read_text().replace("bridge_mie", "bridge_added").replace("/mie", "/added")
    (copied / "task.yaml").write_text(text)
    try:
        assert "bridge_added" in environment.lm_eval_names(
            environment.medtasks("dev", "build").splitlines()[0]
        )
    finally:
        shutil.rmtree(copied)
    environment.pip("uninstall", "--yes", "--quiet", "medtasks")
    assert environment.leftovers() == []


@pytest.mark.parametrize("page", ["hospital", "contributor", "researcher"])
def test_a_page_of_first_hours_shows_what_its_commands_print(page, tmp_path):
    check(PAGES / f"{page}.md", fresh(tmp_path))
