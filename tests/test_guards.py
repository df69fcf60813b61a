"""What opens a file to write, reads one, or opens a connection: each place is known, with the reason.

A new one fails here until somebody has looked whether it may hold text that is not open, whether a stranger
chooses what is read, and whether the policy of who may receive text applies.
"""

from __future__ import annotations

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
    "medtasks_ext/studies/contamination.py": "what a model wrote, under the umask of a lease",
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

#: Whoever reads a path by itself.
READS = re.compile(
    r"""\.read_text\(|\.read_bytes\(|\.open\(\s*(?:["']rb?["']|encoding|newline)|(?:path|file)\.open\(\)|\bParquetFile\("""
    r"""|\.read_table\(|\bnp\.load\(|load_workbook\(|read_csv\("""
)
_BUNDLED, _OF_RUN = "files of the package", "of a run or store, whose folder was looked through"
_OF_USER, _LOOKS = "a file that the command line names, or that this program wrote", "looks (`check_regular`)"
READERS = {
    "medtasks_ext/answers/reader/reply.py": _BUNDLED,
    "medtasks_ext/answers/reader/words.py": _BUNDLED,
    "medtasks_ext/batching.py": _OF_USER,
    "medtasks_ext/cli/arguments.py": _OF_USER,
    "medtasks_ext/cli/commands.py": _BUNDLED,
    "medtasks_ext/cli/data.py": _BUNDLED,
    "medtasks_ext/csvfile.py": _LOOKS,
    "medtasks_ext/data/bring.py": _OF_USER,
    "medtasks_ext/data/declared.py": _LOOKS,
    "medtasks_ext/data/fetch.py": "a download",
    "medtasks_ext/data/status.py": "this program's cache",
    "medtasks_ext/jsonfile.py": _LOOKS,
    "medtasks_ext/offline_page.py": _BUNDLED,
    "medtasks_ext/prompts/official/artefacts.py": "a download",
    "medtasks_ext/registry/build.py": _BUNDLED,
    "medtasks_ext/registry/citations.py": _LOOKS,
    "medtasks_ext/registry/datalock.py": _LOOKS,
    "medtasks_ext/registry/functions.py": _BUNDLED,
    "medtasks_ext/registry/model_configs.py": _BUNDLED,
    "medtasks_ext/registry/rights.py": _BUNDLED,
    "medtasks_ext/registry/suites.py": _BUNDLED,
    "medtasks_ext/registry/tasks.py": "a task file that was read before",
    "medtasks_ext/registry/yamlfile.py": "looks whether it is a file, and its size",
    "medtasks_ext/report/pictures/spec.py": _BUNDLED,
    "medtasks_ext/report/view/column.py": _OF_RUN,
    "medtasks_ext/results/document_scores.py": _OF_RUN,
    "medtasks_ext/results/prices.py": _BUNDLED,
    "medtasks_ext/results/published.py": _BUNDLED,
    "medtasks_ext/results/resampled.py": _OF_RUN,
    "medtasks_ext/rows/databases.py": _LOOKS,
    "medtasks_ext/rows/digests.py": "of a file that its reader looks at",
    "medtasks_ext/rows/files.py": _LOOKS,
    "medtasks_ext/rows/sources.py": _LOOKS,
    "medtasks_ext/rows/transfer.py": "a download",
    "medtasks_ext/runner/batch.py": _LOOKS,
    "medtasks_ext/runner/chat.py": _OF_USER,
    "medtasks_ext/runner/lock.py": _BUNDLED,
    "medtasks_ext/runner/plan_model.py": "a model's configuration",
    "medtasks_ext/runner/proof.py": "this program's cache",
    "medtasks_ext/runner/requests.py": _OF_RUN,
    "medtasks_ext/run/lock.py": "of a run, or of the system",
    "medtasks_ext/run/store.py": _LOOKS,
    "medtasks_ext/runs/chain.py": _OF_RUN,
    "medtasks_ext/runs/lease.py": "of a run, or of the system",
    "medtasks_ext/runs/outcomes.py": _OF_RUN,
    "medtasks_ext/runs/samples.py": _LOOKS,
    "medtasks_ext/runs/sums.py": _OF_RUN,
    "medtasks_ext/suites/bridge.py": "this program's cache",
    "medtasks_ext/studies/contamination.py": "what this program appended",
    "medtasks_ext/studies/forms/__init__.py": _BUNDLED,
    "medtasks_ext/studies/said.py": _BUNDLED,
    "medtasks_ext/rows/originals/ehrshot.py": "an owner's file that `originals.tree` found to be one",
    "medtasks_ext/rows/originals/readers.py": "an owner's file that `originals.tree` found to be one",
    "medtasks_ext/rows/originals/tree.py": "an owner's file, of those that are files",
    "medtasks_ext/report/site/write.py": _BUNDLED,
    "medtasks_ext/report/submissions/record.py": _LOOKS,
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
    """Modules in whose code a pattern occurs."""
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            lines = (line.partition("  # ")[0] for line in path.read_text(encoding="utf-8").splitlines())
            if any(pattern.search(line) for line in lines if not line.lstrip().startswith("#")):
                yield path.relative_to(package.parent).as_posix()


@pytest.mark.parametrize(
    ("pattern", "known"),
    [(WRITES, WRITERS), (READS, READERS), (ASKS, CONNECTIONS)],
    ids=["writers", "readers", "connections"],
)
def test_each_place_is_known(pattern, known):
    found = set(found_by(pattern))
    assert found - known.keys() == set(), "new: use atomic_file, read_json and the policy, or say why not"
    assert known.keys() - found == set(), "gone: take the line away"


def test_whoever_is_said_to_look_does():
    for name, why in READERS.items():
        if why == _LOOKS:
            text = (PACKAGES[0].parent / name).read_text(encoding="utf-8")
            assert "check_regular(" in text or "read_json(" in text, name


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (WRITES, 'with open(path, "w") as file:'),
        (WRITES, 'with path.open("wb") as file:'),
        (WRITES, "frame.to_csv(path)"),
        (WRITES, 'path.write_text("text")'),
        (READS, "text = path.read_text()"),
        (READS, 'with path.open("rb") as file:'),
        (READS, "with path.open() as file:"),
        (ASKS, "urllib.request.urlopen(url)"),
        (ASKS, "import requests"),
    ],
)
def test_the_patterns_see_what_they_are_for(pattern, line):
    assert pattern.search(line)
