"""What opens a file to write, or a connection, or imports lm-eval: each place is known, with the reason.

A new one fails here until somebody has looked whether it may hold text that is not open, and whether the
policy of who may receive text applies. What is taken from lm-eval stands in one module.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import medtasks_ext
from medtasks_ext import harness

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
    "medtasks_ext/cli/arguments.py": "a model's configuration, and whether a server is there: no text leaves",
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


@pytest.mark.parametrize("name", harness.NAMES)
def test_lm_eval_has_each_name_that_is_taken(name):
    if package := {"VLLM": "vllm", "clear_torch_cache": "torch"}.get(name):
        pytest.importorskip(package)
    assert getattr(harness, name) is not None
