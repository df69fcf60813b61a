"""Prints the lines and files of each room beside its row in `budget.toml`; ends with 1 where one is above its
row."""

import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """The exit code."""
    rows = tomllib.loads((ROOT / "budget.toml").read_text())
    lines, files = Counter[str](), Counter[str]()
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        if "/vendor/" not in name and (row := next((row for row in rows if fnmatch(name, row)), "")):
            lines[row] += (ROOT / name).read_bytes().count(b"\n")
            files[row] += 1
    over = [row for row, most in rows.items() if lines[row] > most[0] or files[row] > most[1]]
    for row, most in rows.items():
        mark = "  above" if row in over else ""
        print(f"{row:32} {lines[row]:7,} of {most[0]:7,} lines {files[row]:5} of {most[1]:4} files{mark}")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
