"""What opens a file to write, or a connection: each place is known, with the reason.

A new one fails here until somebody has looked whether it may hold text that is not open, and whether the
policy of who may receive text applies.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import medtasks_ext

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
    "medtasks_ext/run/lock.py": "who writes answers",
    "medtasks_ext/run/store.py": "answers, appended",
    "medtasks_ext/runs/chain.py": "the one writer of appended files; makes the folder's check",
    "medtasks_ext/runs/lease.py": "who works in a folder",
    "medtasks_ext/rows/transfer.py": "a part of a public download",
    "medtasks_ext/cli/build.py": _OWN_TEXT,
    "medtasks_ext/registry/build.py": _OWN_TEXT,
    "medtasks_ext/registry/new.py": _OWN_TEXT,
    "medtasks_ext/cli/main.py": "the device that takes what is left of a closed pipe",
    "medtasks_ext/data/punkt.py": "a public download",
    "medtasks_ext/data/fetch.py": "a public download, by `atomic_file`",
    "medtasks_ext/metrics/sql_worker.py": "opened to read alone",
    "medtasks_ext/prompts/official/artefacts.py": "a public download",
    "medtasks_ext/rows/databases.py": "synthetic rows; a database is opened to read alone",
    "medtasks_ext/runner/proof.py": _TEMPORARY,
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
    "medtasks_ext/runner/plan_model.py": "a model's configuration from the hub: no text leaves",
    "medtasks_ext/cli/model.py": "whether a server is there: no text leaves",
}


def found_by(pattern: re.Pattern[str]) -> Iterator[str]:
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            lines = (line.partition("  # ")[0] for line in path.read_text(encoding="utf-8").splitlines())
            if any(pattern.search(line) for line in lines if not line.lstrip().startswith("#")):
                yield path.relative_to(package.parent).as_posix()


@pytest.mark.parametrize(
    ("pattern", "known"), [(WRITES, WRITERS), (ASKS, CONNECTIONS)], ids=["writers", "connections"]
)
def test_each_place_is_known(pattern, known):
    found = set(found_by(pattern))
    assert found - known.keys() == set(), "new: use atomic_file and the policy, or say why not"
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
    ],
)
def test_the_patterns_see_what_they_are_for(pattern, line):
    assert pattern.search(line)
