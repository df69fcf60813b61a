"""Pages of docs/first_hours as scripts: their commands are run, and must print what the page shows.

A page's `console` blocks hold commands after `$ ` and what they printed. Numbers, hashes and widths of
tables are not compared; a line `...` stands for any lines. `python -m tests.transcripts.console PAGE`
writes what the commands print now, in an environment of its own, wherever the page shows something else.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.install.environment import Environment

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "first_hours"
WIDTH = 100
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)
#: commands that the test's environment stands in for
GIVEN = re.compile(r"^(python3? -m venv|pip install \"?(\./)?medtasks)")
#: installing a clone: other packages are there already
FROM_CLONE = re.compile(r"^pip install (-e )?\"?\.(\[.*\])?\"?$")
#: from a checkout of any commit, whoever owns it
CLONE = "git -c advice.detachedHead=false -c safe.directory='*' clone -q"


@dataclass
class Step:
    """One command of a page, and what the page says it prints."""

    command: str
    shown: list[str]


def steps(page: str) -> list[Step]:
    """The commands of a page in order; a backslash continues a line."""
    found: list[Step] = []
    for block in BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            elif found and not found[-1].shown and found[-1].command.endswith("\\"):
                found[-1].command = found[-1].command[:-1].rstrip() + " " + line.strip()
            else:
                found[-1].shown.append(line)
    return found


class Shell:
    """Runs commands one after the other in one folder; folder and exports carry over."""

    def __init__(self, folder: Path, binaries: Path, settings: dict[str, str] | None = None) -> None:
        self.folder, self.binaries, self.state = folder, binaries, folder / ".state"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEDTASKS_")}
        self.environment = {
            **kept,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(folder),
            "COLUMNS": str(WIDTH),
            "HF_HUB_OFFLINE": "1",
            "PYTHONWARNINGS": "ignore",
            **(settings or {}),
        }
        self.state.write_text(f"cd {folder}\n")

    def run(self, command: str) -> tuple[str, int]:
        """What a command prints on both streams, and its exit code."""
        if GIVEN.match(command):
            return "", 0
        command = re.sub(r"git clone \S+", f"{CLONE} {ROOT}", command)
        if clone := FROM_CLONE.match(command):
            command = f"python -m pip install --quiet --no-deps {clone.group(1) or ''}."
        keep = f"(export -p; echo cd \"'$PWD'\") > {self.state}"
        script = f". {self.state}\n{command}\ncode=$?\n{keep}\nexit $code"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        printed = done.stdout.replace(str(self.folder), "~")
        return printed.replace(str(self.binaries.parent), "~/venv"), done.returncode


def fresh(folder: Path) -> Shell:
    """A shell in a folder, with an environment of its own into which pages install their clone."""
    return Shell(folder, Environment(folder).python.parent)


def masked(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{12,}\b|[\d.,]*\d%?", "#", line)
    return re.sub(r"[─━═-]{3,}", "—", re.sub(r"\s+", " ", line)).strip()


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether a page shows what was printed, wherever lines are broken."""
    text = " ".join(filter(None, map(masked, printed)))
    parts = [re.escape(masked(line)) if line.strip() != "..." else ".*?" for line in shown]
    pattern = "[ ]?".join(part for part in parts if part)
    return re.fullmatch(pattern, text) is not None


def check(page: Path, shell: Shell) -> None:
    """Run the commands of a page, in order.

    Raises:
        AssertionError: one prints something other than the page shows.
    """
    for step in steps(page.read_text(encoding="utf-8")):
        printed, _ = shell.run(step.command)
        if GIVEN.match(step.command) or FROM_CLONE.match(step.command):
            continue
        lines = printed.splitlines()
        shown = "\n".join(step.shown)
        assert agrees(step.shown, lines), (
            f"{page.name} no longer shows what this prints (python -m tests.transcripts.console {page}):\n"
            f"$ {step.command}\n--- printed\n{printed}\n--- shown\n{shown}"
        )


def rewrite(page: Path, shell: Shell) -> None:
    """Put what the commands of a page print now below each of them."""

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        for step in steps(f"```console\n{match.group()}```\n"):
            printed = shell.run(step.command)[0].rstrip().splitlines()
            lines += [f"$ {step.command}", *(step.shown if agrees(step.shown, printed) else printed)]
            print(f"$ {step.command}", *printed, sep="\n", file=sys.stderr)
        return "\n".join(line.rstrip() for line in lines) + "\n"

    page.write_text(BLOCK.sub(block, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        if not any(FROM_CLONE.match(step.command) for step in steps(page.read_text(encoding="utf-8"))):
            raise SystemExit(f"{page} installs no clone: only its test prepares what it needs")
        with tempfile.TemporaryDirectory() as folder:
            rewrite(page, fresh(Path(folder)))
