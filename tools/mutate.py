"""Whether tests see a fault: each mutation of `tests/mutations.yaml` in a copy of the tree, under its tests.

    python tools/mutate.py                  all of them
    python tools/mutate.py 'medtasks_ext/metrics/*'     those of some files

A line for each says `killed`, `survived` or `error` (its tests could not run). The exit code is 1 where one
survived or could not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
MUTATIONS = ROOT / "tests" / "mutations.yaml"


def copy_of_the_tree(folder: Path) -> None:
    """Copy the files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def outcome_of(mutation: dict[str, str], folder: Path) -> str:
    """Run the tests of a mutation on a copy of the tree, which is afterwards as it was."""
    file = folder / mutation["file"]
    text = file.read_text(encoding="utf-8")
    if text.count(mutation["old"]) != 1:
        return f"error: `old` stands {text.count(mutation['old'])} times in the file"
    file.write_text(text.replace(mutation["old"], mutation["new"]), encoding="utf-8")
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += mutation["tests"].split()
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    finally:
        file.write_text(text, encoding="utf-8")
    known = {0: "survived", 1: "killed"}
    return known.get(done.returncode) or f"error: pytest ended with {done.returncode}: {done.stdout[-300:]}"


def main() -> int:
    pattern = sys.argv[1] if len(sys.argv) > 1 else "*"
    mutations = yaml.safe_load(MUTATIONS.read_text(encoding="utf-8"))
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy_of_the_tree(Path(folder))
        for mutation in mutations:
            if fnmatch(mutation["file"], pattern):
                outcomes.append(outcome_of(mutation, Path(folder)))
                print(f"{outcomes[-1]}: {mutation['file']}: {mutation['new']}", flush=True)
    print(f"{outcomes.count('killed')} of {len(outcomes)} killed")
    return int(outcomes.count("killed") < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
