"""`tools/golden.py compare`: a difference is found, a named mend explains it, a stale one is said."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

Items = dict[str, dict[str, Any]]


@pytest.fixture
def compared(tmp_path):
    """Compare two recordings (item -> file -> content; of `made` runs were made), with or without mends."""

    def record(name: str, items: Items, made: tuple[str, ...]) -> None:
        for item, files in items.items():
            for file, content in files.items():
                path = tmp_path / name / "items" / item / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        index = {item: {"command": "x", "code": 0, "made": item in made} for item in items}
        (tmp_path / name / "index.json").write_text(json.dumps(index))

    def call(one: Items | None, other: Items | None, mends: Any = None, made: tuple[str, ...] = ()):
        for name, items in (("a", one), ("b", other)):
            if items is not None:
                record(name, items, made)
        options = []
        if mends is not None:
            (tmp_path / "mends.yaml").write_text(json.dumps(mends))
            options = ["--allow", tmp_path / "mends.yaml"]
        command = [sys.executable, ROOT / "tools/golden.py", "compare", tmp_path / "a", tmp_path / "b"]
        return subprocess.run([*command, *options], capture_output=True, text=True)

    return call


SCORES = {"tasks": [{"score": 0.30000000000000004, "n": 2}], "made": "<made>"}
LESS = {"tasks": [{"score": 0.3, "n": 2}], "made": "<made>"}
LINES = {"stdout.txt": "a\nb\nc\n", "exit.txt": "0\n", "old.csv": "1\n"}
CODE = {"exit.txt": "0\n"}
A_B, WORD = {"stdout.txt": "a\nb\n"}, {"stdout.txt": "a\nc\n"}
BETTER = {"item": "x", "path": "stdout.txt:*", "why": "a better word", "one": "b", "other": "c"}
TASKS, ANEW = ("a_qa", "a_qa_cot", "a_qa_two"), {"item": "x", "path": "*", "why": "asked anew"}
SOME, OTHERS = ({f"tasks/{name}.json": {"score": score} for name in TASKS} for score in (1, 0))
TABLE = " task   score  interval\n ─────────────\n medqa  0.50   [0.1, 0.9]\n"
INTERVALS = {"item": "x", "path": "stdout.txt:*", "why": "intervals", "without": r"\[[^]]*\]~?"}
STALE = {"item": "no-such", "path": "*", "why": "long ago"}
MOMENT = {"began": "2026-11-24T02:13:48", "at": 1.5, "chain": "aa", "host": "a", "text": "127.0.0.1:1234"}
LATER = {"began": "2027-01-02T12:00:00", "at": 2.5, "chain": "bb", "host": "b", "text": "127.0.0.1:80"}
#: files of the item `x` in both, mends -> exit code, what is said
CASES = {
    "equal": (SCORES, SCORES, None, 0, ["1 items equal, 0 differ in 0 places"]),
    "the last digit of a float": (SCORES, LESS, None, 1, [
        "f.json:/tasks/0/score\n    - 0.30000000000000004\n    + 0.3\n", "1 differ in 1 places"]),
    "no float any more": ({"a": 1.0}, {"a": 1}, None, 1, ["f.json:/a\n"]),
    "a key": ([{"a": 1, "b": 2}], [{"a": 1}], None, 1, ["f.json:/0/b\n"]),
    "the order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, None, 1, ["f.json:/(order of keys)\n"]),
    "a length": ({"a": [1]}, {"a": []}, None, 1, ["f.json:/a/(length)\n"]),
    "a kind": ({"a": [1]}, {"a": None}, None, 1, ["f.json:/a\n"]),
    "lines, files and exit codes": (LINES, {"stdout.txt": "a\nB\nc\nd\n", "exit.txt": "2\n"}, None, 1, [
        "4 places", "stdout.txt:2\n    - b\n    + B", "+ d", "exit.txt:1\n    - 0\n    + 2",
        "old.csv\n    - a file"]),
    "a named mend": (A_B, WORD, [BETTER], 0, ["1 differences are named mends"]),
    "a mend of another word": (A_B, WORD, [{**BETTER, "other": "e"}], 1, ["x: 1 differences"]),
    "a mend of some tasks": (SOME, OTHERS, [{**ANEW, "tasks": ["a_qa"]}], 1, ["x: 1 diff", "a_qa_two"]),
    "a mend of all": (SOME, OTHERS, [{**ANEW, "tasks": ["a_qa", "a_qa_two"]}], 0, []),
    "intervals are mended": (TABLE, TABLE.replace("[0.1, 0.9]", "[0.2, 0.8]~"), [INTERVALS], 0, []),
    "their width is": (TABLE, TABLE.replace("─\n", "──\n").replace("0.1,", "0.10,"), [INTERVALS], 0, []),
    "a score is not": (TABLE, TABLE.replace("0.50 ", "0.51 "), [INTERVALS], 1, []),
    "beside an interval neither": (TABLE, TABLE.replace("0.50   [0.1", "0.51   [0.2"), [INTERVALS], 1, []),
    "spaces": ("a b\n", "a  b\n", [INTERVALS], 1, ["stdout.txt:1 layout"]),
    "spaces, named": ("a b\n", "a  b\n", [{"item": "x", "path": "*layout", "why": "wider"}], 0, []),
    "a stale mend": (SCORES, SCORES, [STALE], 0, ["nothing is mended by: no-such * (long ago)"]),
    "times and places in JSON": (MOMENT, LATER, None, 0, []),
    "times in lines": ("took 3 s, 2026-11-24\n", "took 41 s, 2027-01-02\n", None, 0, []),
    "a mend without a path": (CODE, CODE, [{"item": "x"}], 1, ["entry 0: give item, path and why"]),
    "a mend that is a word": (CODE, CODE, ["x"], 1, ["entry 0: give item, path and why"]),
    "an unknown key": (CODE, CODE, [{**STALE, "kind": "z"}], 1, ["entry 0: give item, path and why"]),
}  # fmt: skip


def files(content: Any) -> dict[str, Any]:
    """Files by name, the content of one JSON file, or the lines of one command."""
    if isinstance(content, str):
        return {"stdout.txt": content}
    named = isinstance(content, dict) and all("." in name for name in content)
    return content if named else {"f.json": content}


@pytest.mark.parametrize(("one", "other", "mends", "code", "said"), CASES.values(), ids=CASES)
def test_what_differs_is_named_unless_a_mend_explains_it(compared, one, other, mends, code, said):
    done = compared({"x": files(one)}, {"x": files(other)}, mends)
    assert done.returncode == code, done.stdout
    assert [text for text in said if text not in done.stdout + done.stderr] == []


def test_a_mend_explains_its_own_item_alone(compared):
    one, other = {"x": A_B, "y": {"stdout.txt": "a\n"}}, {"x": WORD, "y": {"stdout.txt": "d\n"}}
    done = compared(one, other, [BETTER])
    assert done.returncode == 1 and "x:" not in done.stdout and "y:" in done.stdout


def test_an_item_that_is_gone_is_a_difference_but_not_the_making_of_runs_that_were_there(compared, tmp_path):
    full = {"x": CODE, "y": CODE, "made": CODE}
    assert compared(full, {"x": CODE, "y": CODE}, made=("made",)).returncode == 0
    (tmp_path / "b/items/y/exit.txt").unlink()
    done = compared(None, {"x": CODE}, made=("made",))
    assert done.returncode == 1 and "y: 1 differences" in done.stdout


def test_a_folder_that_is_no_recording_is_named(compared):
    done = compared(None, None)
    assert done.returncode == 1 and "no recording; make one" in done.stderr
