"""`tools/golden.py compare`: a difference is found, a named mend explains it, a stale one is said."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SCORES = {"stdout.json": {"tasks": [{"score": 0.30000000000000004, "n": 2}], "made": "<made>"}}


@pytest.fixture
def recording(tmp_path):
    """Write a recording: item -> files -> content."""

    def write(name, items, made=()):
        folder = tmp_path / name
        for item, files in items.items():
            for file, content in files.items():
                path = folder / "items" / item / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        index = {item: {"command": "x", "code": 0, "made": item in made} for item in items}
        (folder / "index.json").write_text(json.dumps(index))
        return folder

    return write


@pytest.fixture
def compared(tmp_path):
    """Compare two recordings, with or without mends."""

    def call(one, other, mends=None):
        options = []
        if mends is not None:
            (tmp_path / "mends.yaml").write_text(json.dumps(mends))
            options = ["--allow", tmp_path / "mends.yaml"]
        command = [sys.executable, ROOT / "tools" / "golden.py", "compare", one, other, *options]
        return subprocess.run(command, capture_output=True, text=True)

    return call


def test_equal_recordings_are_equal(recording, compared):
    both = {"scores": SCORES, "words": {"stdout.txt": "one\ntwo\n"}}
    done = compared(recording("a", both), recording("b", both))
    assert done.returncode == 0 and "2 items equal, 0 differ in 0 places" in done.stdout


def test_a_float_that_is_another_in_its_last_digit_is_a_difference(recording, compared):
    other = {"stdout.json": {"tasks": [{"score": 0.3, "n": 2}], "made": "<made>"}}
    done = compared(recording("a", {"scores": SCORES}), recording("b", {"scores": other}))
    assert done.returncode == 1
    assert "stdout.json:/tasks/0/score\n    - 0.30000000000000004\n    + 0.3\n" in done.stdout
    assert "1 differ in 1 places" in done.stdout


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"tasks": [{"score": 1, "n": 2}]}, "/tasks/0/score"),  # no float any more
        ({"tasks": [{"score": 1.0}]}, "/tasks/0/n"),
        ({"tasks": [{"n": 2, "score": 1.0}]}, "/tasks/0/(order of keys)"),
        ({"tasks": []}, "/tasks/(length)"),
        ({"tasks": None}, "/tasks"),
    ],
)
def test_whatever_differs_in_json_is_named_with_its_path(recording, compared, other, path):
    one = {"tasks": [{"score": 1.0, "n": 2}]}
    done = compared(recording("a", {"x": {"f.json": one}}), recording("b", {"x": {"f.json": other}}))
    assert done.returncode == 1 and f"f.json:{path}\n" in done.stdout, done.stdout


def test_lines_files_and_exit_codes_differ(recording, compared):
    one = recording("a", {"x": {"stdout.txt": "a\nb\nc\n", "exit.txt": "0\n", "old.csv": "1\n"}})
    other = recording("b", {"x": {"stdout.txt": "a\nB\nc\nd\n", "exit.txt": "2\n"}})
    done = compared(one, other)
    assert done.returncode == 1 and "4 places" in done.stdout
    for text in (
        "stdout.txt:2\n    - b\n    + B",
        "+ d",
        "exit.txt:1\n    - 0\n    + 2",
        "old.csv\n    - a file",
    ):
        assert text in done.stdout


def test_an_item_that_is_gone_is_a_difference_but_not_the_making_of_runs_that_were_there(recording, compared):
    one = {"x": {"exit.txt": "0\n"}, "y": {"exit.txt": "0\n"}}
    full = recording("a", {**one, "made": {"exit.txt": "0\n"}}, made=("made",))
    assert compared(full, recording("b", one)).returncode == 0
    done = compared(full, recording("c", {"x": one["x"]}))
    assert done.returncode == 1 and "y: 1 differences" in done.stdout


def test_a_named_mend_explains_its_difference_alone(recording, compared):
    one = recording("a", {"x": {"stdout.txt": "a\nb\n"}, "y": {"stdout.txt": "a\n"}})
    other = recording("b", {"x": {"stdout.txt": "a\nc\n"}, "y": {"stdout.txt": "d\n"}})
    mend = {"item": "x", "path": "stdout.txt:*", "why": "a better word", "one": "b", "other": "c"}
    done = compared(one, other, [mend])
    assert done.returncode == 1 and "x:" not in done.stdout and "1 differences are named mends" in done.stdout
    assert compared(one, other, [mend, {"item": "y", "path": "*", "why": "as well"}]).returncode == 0
    assert compared(one, other, [{**mend, "other": "e"}]).returncode == 1


def test_a_mend_of_some_tasks_explains_no_difference_of_another(recording, compared):
    def files(score):
        return {
            f"tasks/{name}.json": json.dumps({"score": score}) for name in ("a_qa", "a_qa_cot", "a_qa_two")
        }

    pair = recording("a", {"x": files(1)}), recording("b", {"x": files(0)})
    mend = {"item": "x", "path": "*", "why": "asked anew", "tasks": ["a_qa"]}
    done = compared(*pair, [mend])
    assert done.returncode == 1 and "x: 1 differences" in done.stdout and "a_qa_two" in done.stdout
    assert compared(*pair, [{**mend, "tasks": ["a_qa", "a_qa_two"]}]).returncode == 0


TABLE = " task   score  interval\n ─────────────\n medqa  0.50   [0.1, 0.9]\n"
MEND = {"item": "x", "path": "stdout.txt:*", "why": "intervals", "without": r"\[[^]]*\]~?"}


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (TABLE.replace("[0.1, 0.9]", "[0.2, 0.8]~"), 0),
        (TABLE.replace("0.50 ", "0.51 "), 1),
        (TABLE.replace("0.50   [0.1, 0.9]", "0.51   [0.2, 0.8]"), 1),
        (TABLE.replace("─\n", "──\n").replace("[0.1, 0.9]", "[0.10, 0.9]"), 0),
    ],
)
def test_a_mend_of_words_leaves_the_rest_of_a_line_to_be_compared(recording, compared, other, code):
    pair = [recording(name, {"x": {"stdout.txt": text}}) for name, text in (("a", TABLE), ("b", other))]
    assert compared(*pair, [MEND]).returncode == code


def test_lines_that_are_spaced_otherwise_differ_in_layout(recording, compared):
    pair = [recording(name, {"x": {"stdout.txt": f"a{gap}b\n"}}) for name, gap in (("c", " "), ("d", "  "))]
    assert "stdout.txt:1 layout" in compared(*pair, [MEND]).stdout
    assert compared(*pair, [{"item": "x", "path": "*layout", "why": "wider"}]).returncode == 0


def test_a_mend_that_explains_nothing_is_said(recording, compared):
    folder = recording("a", {"x": SCORES})
    done = compared(folder, folder, [{"item": "no-such", "path": "*", "why": "long ago"}])
    assert done.returncode == 0 and "nothing is mended by: no-such * (long ago)" in done.stdout


@pytest.mark.parametrize(
    "mends", [[{"item": "x"}], ["x"], [{"item": "x", "path": "*", "why": "y", "kind": "z"}]]
)
def test_a_list_of_mends_that_is_none_is_refused(recording, compared, mends):
    folder = recording("a", {"x": SCORES})
    done = compared(folder, folder, mends)
    assert done.returncode == 1 and "entry 0: give item, path and why" in done.stderr


def test_times_places_and_secrets_of_a_moment_are_no_difference(recording, compared):
    one = {"began": "2026-11-24T02:13:48", "at": 1.5, "chain": "aa", "host": "a", "text": "127.0.0.1:1234"}
    other = {"began": "2027-01-02T12:00:00", "at": 2.5, "chain": "bb", "host": "b", "text": "127.0.0.1:80"}
    lines = ("took 3 s, 2026-11-24\n", "took 41 s, 2027-01-02\n")
    first = recording("a", {"x": {"f.json": one, "stdout.txt": lines[0]}})
    second = recording("b", {"x": {"f.json": other, "stdout.txt": lines[1]}})
    assert compared(first, second).returncode == 0


def test_a_folder_that_is_no_recording_is_named(compared, tmp_path):
    done = compared(tmp_path / "a", tmp_path / "b")
    assert done.returncode == 1 and "no recording; make one" in done.stderr
