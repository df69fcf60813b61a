"""What maintainers work with: one version of each linter wherever it is named, forms that GitHub accepts."""

import re
from configparser import ConfigParser
from importlib.metadata import distribution

from medtasks_ext.hooks import GROUPS
from tests.conftest import ROOT

PIN = re.compile(r"([\w-]+)==([\w.]+)")
LINTERS = {"import-linter", "mypy", "ruff", "yamllint"}


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
