"""What maintainers work with: one version of each linter wherever it is named, forms that GitHub accepts."""

from __future__ import annotations

import re
from configparser import ConfigParser
from importlib.metadata import distribution

import pytest
import yaml

from medtasks_ext.hooks import GROUPS
from tests.conftest import ROOT

PIN = re.compile(r"([\w-]+)==([\w.]+)")
LINTERS = {"import-linter", "mypy", "ruff", "yamllint"}
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def pins(file: str) -> dict[str, str]:
    """Package -> version, of all exact versions that a file names."""
    found = PIN.findall((ROOT / file).read_text(encoding="utf-8"))
    assert len(set(found)) == len({name for name, _ in found}), "two versions of one package"
    return {name.lower(): version for name, version in found}


def test_linters_have_one_exact_version_each():
    declared, locked = pins("pyproject.toml"), {
        name.lower(): version
        for line in (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8").splitlines()
        for name, version in PIN.findall(line.partition(";")[0])
    }  # fmt: skip
    hooks = pins(".pre-commit-config.yaml")
    assert declared.keys() >= LINTERS
    assert {name: locked[name] for name in declared} == declared
    assert {name: declared[name] for name in hooks.keys() & declared.keys()} == {
        name: hooks[name] for name in ("ruff", "yamllint")
    }


def test_hooks_are_exact_packages_and_no_branch_of_a_repository():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [item["repo"] for item in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        assert [PIN.fullmatch(package) is not None for package in hook["additional_dependencies"]] == [True]


@pytest.mark.parametrize(
    "form", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.stem
)
def test_a_form_has_what_github_asks_of_one(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= content.keys()
    fields = [item for item in content["body"] if item["type"] != "markdown"]
    ids = [item["id"] for item in fields]
    assert len(set(ids)) == len(ids) and all(item["attributes"]["label"] for item in fields)
    assert any(item.get("validations", {}).get("required") for item in fields)
    text = form.read_text(encoding="utf-8")
    for page in set(re.findall(r"[\w/-]+\.md\b", text)) - {"medical-evaluation.md"}:
        assert (ROOT / page).is_file(), page


def test_the_installed_entry_points_are_those_of_the_sources():
    """An editable installation keeps those of its day: `pip install --no-deps -e .` renews them."""
    written: dict[str, dict[str, str]] = {}
    group = ""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found = re.fullmatch(r'\[project\.entry-points\."(.+)"\]', line)
            group = found[1] if found else ""
        elif group and " = " in line:
            name, _, value = line.partition(" = ")
            written.setdefault(group, {})[name.strip('"')] = value.strip('"')
    installed = ConfigParser(delimiters=("=",))
    installed.optionxform = str  # type: ignore[assignment, method-assign]
    installed.read_string(distribution("medtasks").read_text("entry_points.txt"))
    groups = [name for name in installed.sections() if name != "console_scripts"]
    assert {name: dict(installed[name]) for name in groups} == written
    assert set(written) <= set(GROUPS)
