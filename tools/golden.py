"""Records what every command of medtasks says of a fixed set of runs, and compares two recordings.

    python tools/golden.py record OUT [--python BIN] [--runs EXISTING] [--only PATTERN]
    python tools/golden.py compare A B [--allow FILE] [--only PATTERN]

A recording is a folder: `items/` with a folder for each item (standard output and error, exit code, and the
files that a command wrote, without what says when and where), `index.json` with the command line of each,
and `runs/` with the folders of runs, which a later version of the program must still be able to read:
`--runs A/runs` makes no runs and reads those (with `record A`, it makes the items of A anew). An item's
name holds no word of a command, so that it stays when commands are named otherwise; `WORDS` knows these.

Everything happens on loopback and on synthetic rows, through the command line and files alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from golden_compare import compare, read_mends
from golden_server import Server
from golden_words import Words

#: name of an act -> its words, where these are others.
WORDS = {
    "gold": ("study", "gold"),
    "show": ("view",),
    "check": ("rescore", "--check"),
    "contamination": ("study", "contamination"),
    "difficulty": ("study", "difficulty"),
    "departments": ("study", "departments"),
    "sample": ("study", "sample"),
    "validate": ("dev", "validate"),
    "lock": ("dev", "lock"),
    "path": ("dev", "build"),
    "new": ("data", "new"),
    "site": ("dev", "site"),
    "reproduce": ("study", "reproduce"),
}
SECONDS = 240  # that a command may take
CHECKOUTS = "checkouts.txt"


class Program:
    """The installed commands of an environment."""

    def __init__(self, python: Path, folder: Path) -> None:
        """Start the process that starts them.

        Args:
            python: interpreter of the environment.
            folder: for home, cache and what commands print.
        """
        self.python, self.folder = python, folder
        for name in ("home", "cache", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.env = {
            "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "MEDTASKS_CACHE": str(folder / "cache"),
            "HF_HOME": str(folder / "home" / "hf"),
            "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "120", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1",
            "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false", "OPENAI_API_KEY": "none",
            "PYTHONHASHSEED": "0", "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "golden-bytecode")),
        }  # fmt: skip
        self._process = subprocess.Popen(
            [python, Path(__file__).with_name("golden_starter.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=folder,
        )

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def run(
        self,
        command: tuple[str, ...],
        cwd: Path,
        env: dict[str, str] | None = None,
        kill_at: threading.Event | None = None,
    ) -> tuple[int, str, str, float]:
        """Exit code, standard output and error, processor seconds.

        `kill_at`: a second after this event the command is killed.
        """
        files = [self.folder / name for name in ("out", "err")]
        wanted = {
            "command": command,
            "cwd": str(cwd),
            "env": {**self.env, "PWD": str(cwd), **(env or {})},
            "out": str(files[0]),
            "err": str(files[1]),
        }
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        child = json.loads(self._process.stdout.readline())["pid"]
        over = threading.Event()

        def guard() -> None:
            began = time.monotonic()
            while not over.wait(0.05):
                if kill_at is not None and kill_at.is_set():
                    over.wait(1)
                elif time.monotonic() - began < SECONDS:
                    continue
                if not over.is_set():
                    os.killpg(child, signal.SIGKILL)
                return

        guarding = threading.Thread(target=guard)
        guarding.start()
        end = json.loads(self._process.stdout.readline())
        over.set()
        guarding.join()
        out, err = (file.read_text(encoding="utf-8", errors="replace") for file in files)
        return end["code"], out, err, end["seconds"]


class Recorder:
    """Calls commands in `OUT/runs` and keeps what they say in `OUT/items`."""

    def __init__(self, out: Path, python: Path, server: Server, only: str, runs: Path | None = None) -> None:
        self.out, self.server, self.only = out, server, only
        self.runs, self.scratch = out / "runs", out / "scratch"
        for folder in (out / "items", self.runs, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        self.program = Program(python, out / "machine")
        root = Path(__file__).resolve().parents[1]
        environment = python.parent.parent
        if runs is not None and runs.resolve() != self.runs.resolve():
            shutil.copytree(runs, self.runs, dirs_exist_ok=True, symlinks=True)
        places = self.runs / CHECKOUTS  # of the versions that made the runs, which records of them name
        known = places.read_text().splitlines() if places.is_file() else []
        places.write_text("\n".join(dict.fromkeys([*known, str(environment.parent)])) + "\n")
        self.normal = Words(
            {
                out: "<out>",
                environment: "<environment>",
                environment.parent: "<checkout>",
                **dict.fromkeys(map(Path, known), "<checkout>"),
                root: "<checkout>",
                Path(sys.prefix): "<environment>",
            }
        )
        index = out / "index.json"
        self.index: dict[str, Any] = json.loads(index.read_text()) if index.exists() else {}

    def wants(self, name: str) -> bool:
        """Whether an item is asked for."""
        return fnmatchcase(name, self.only)

    def call(
        self,
        name: str,
        act: str,
        *arguments: object,
        made: bool = False,
        keep: tuple[Path | str, ...] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        script: str = "medtasks",
        kill_at: threading.Event | None = None,
    ) -> int:
        """Run a command and keep what it says under a name; its exit code.

        Args:
            name: of the item; no word of the command.
            act: a key of `WORDS`, or the command's words.
            arguments: the rest; a text may hold several, as in a shell. `{out}` is a new folder or
                file of the item, which is kept.
            made: whether this makes runs; it is then done whatever items are asked for.
            keep: more files and folders to keep; relative to `runs`.
        """
        if not made and not self.wants(name):
            return 0
        place = self.scratch / name
        if place.is_dir() and not made and cwd is None:
            shutil.rmtree(place)
        command = (script, *(WORDS.get(act, act.split()) if script == "medtasks" else ()))
        parts = (
            part for item in arguments for part in (shlex.split(item) if isinstance(item, str) else [item])
        )
        command = (*command, *(str(part).replace("{out}", str(place)) for part in parts))
        code, out, err, seconds = self.program.run(command, cwd or self.runs, env, kill_at)
        self.entry(name, command, code, made)
        self.text(name, "stdout", out)
        self.text(name, "stderr", err)
        for path in (place, *(self.runs / item for item in keep)):
            self.keep(name, path, path.name if path != place else "files")
        print(f"{name}: {code} ({seconds:.1f} s)", flush=True)
        return code

    def entry(self, name: str, command: tuple[str, ...], code: int, made: bool) -> None:
        """Begin an item."""
        folder = self.out / "items" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "exit.txt").write_text(f"{code}\n")
        self.index[name] = {"command": " ".join(command), "code": code, "made": made}
        text = json.dumps(dict(sorted(self.index.items())), indent=1, ensure_ascii=False)
        (self.out / "index.json").write_text(text + "\n", encoding="utf-8")

    def text(self, name: str, kind: str, text: str) -> None:
        """Keep what was printed, as JSON where it is."""
        file = self.out / "items" / name / kind
        try:
            value = self.normal.value(json.loads(text)) if text.lstrip()[:1] in ("{", "[") else None
        except ValueError:
            value = None
        if value is not None:
            file.with_suffix(".json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
        elif text:
            file.with_suffix(".txt").write_text(self.normal.text(text))

    def keep(self, name: str, source: Path, label: str) -> None:
        """Keep a file, or all files of a folder."""
        target = self.out / "items" / name / label
        if not source.exists():
            return
        files = [source] if source.is_file() else sorted(item for item in source.rglob("*") if item.is_file())
        for file in files:
            found = self.normal.file(file)
            if found is None:
                continue
            ending, text = found
            place = target if file == source else target / self.normal.text(str(file.relative_to(source)))
            place = place.with_name(
                place.name + (file.suffix if file == source and not place.suffix else "") + ending
            )
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")

    def value(self, name: str, value: Any, made: bool = False) -> None:
        """Keep a value that no command printed."""
        self.entry(name, (), 0, made)
        file = self.out / "items" / name / "value.json"
        file.write_text(json.dumps(self.normal.value(value), indent=1, ensure_ascii=False) + "\n")

    def asked(self, name: str, made: bool = False, item: str = "") -> None:
        """Keep what a server was asked since it was last told to forget."""
        self.value(item or f"asked.{name}", self.server.asked(name), made)
        self.server.forget(name)


def record(out: Path, python: Path, runs: Path | None, only: str) -> int:
    """Make a recording; 0."""
    from golden_items import make, read

    again = runs is not None and runs.resolve() == (out / "runs").resolve()
    if (out / "items").exists() and not again:
        raise SystemExit(f"{out}: there is a recording already; name a new folder, or --runs {out}/runs")
    out.mkdir(parents=True, exist_ok=True)
    out = out.resolve()
    began = time.monotonic()
    with Server() as server:
        recorder = Recorder(out, python, server, only, runs)
        try:
            if runs is None:
                make(recorder)
            read(recorder)
        finally:
            recorder.program.close()
    print(f"{len(recorder.index)} items in {time.monotonic() - began:.0f} s: {out}")
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="make a recording")
    recording.add_argument("out", type=Path)
    recording.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="of the environment to test"
    )
    recording.add_argument("--runs", type=Path, help="folder `runs` of an earlier recording; nothing is made")
    recording.add_argument("--only", default="*", help="pattern of items")
    comparing = commands.add_parser("compare", help="compare two recordings")
    comparing.add_argument("one", type=Path)
    comparing.add_argument("other", type=Path)
    comparing.add_argument("--allow", type=Path, help="YAML list of mends: item, path, why")
    comparing.add_argument("--only", default="*", help="pattern of items")
    comparing.add_argument("--most", type=int, default=12, help="differences to print of each item")
    given = parser.parse_args()
    if given.command == "record":
        return record(given.out, given.python.absolute(), given.runs, given.only)
    mends = read_mends(given.allow) if given.allow else []
    return compare(given.one, given.other, mends, given.only, given.most)


if __name__ == "__main__":
    sys.exit(main())
