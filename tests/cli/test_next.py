"""A command ends with the command that makes sense next: beside what is printed, never in it."""

import json
import re
import shlex

import pytest

from tests.test_docs import check_line

RUN = ("run", "--data", "sample", "--tasks", "bridge_chip_ctc,medhelm_mediqa", "--output_path", "a")

FORMS = ("study", "forms", "a", "--kind", "likert", "--tasks", "medhelm_mediqa", "-o", "forms")


def suggested(text: str) -> list[str]:
    """The commands after `next:`, one in its line or several below it."""
    lines = text.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("next:")]
    if one := lines[place].removeprefix("next:").strip():
        return [one]
    return [line.strip() for line in lines[place + 1 :] if line.startswith("  ")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Whether the run was made; all tests of this file read it."""
    return tmp_path_factory.mktemp("ran")


@pytest.fixture
def run(medtasks, ran, monkeypatch):
    monkeypatch.chdir(ran)
    if not (ran / "a").exists():
        assert medtasks(*RUN, "--model", "random-label").code == 0
    return ran


@pytest.mark.parametrize(
    ("command", "then"),
    [
        (("ls", "bridge_zh"), "medtasks preview"),
        (("preview", "bridge_chip_ctc", "--data", "sample"), "medtasks run"),
        (("report", "a", "--published", "none"), "medtasks report a -o report"),
        (("report", "a", "--published", "none", "-o", "page"), "medtasks view a"),
        (("rescore", "a"), "medtasks report a"),
        (("view", "a", "bridge_chip_ctc"), "medtasks view a bridge_chip_ctc DOCUMENT"),
        (("judge", "a", "--jury", "local", "--dry-run"), "the same command without --dry-run"),
        (FORMS, "medtasks study forms"),
        (("dev", "validate", "bridge_chip_ctc"), "medtasks preview bridge_chip_ctc"),
        (("dev", "validate", "--static", "bridge_chip_ctc"), "medtasks dev validate bridge_chip_ctc"),
        (("data", "status", "bridge_mednli"), "medtasks data"),
        (("data", "template", "bridge_mednli", "-o", "own"), "medtasks data check own"),
        (("data", "status", "official"), "medtasks data fetch official"),
        (("data", "status", "bridge_zh"), "medtasks data"),
        (("ls", "--groups", "bridge"), "medtasks ls NAME"),
        (("study", "reproduce", "bridge:tables3"), "medtasks study reproduce bridge:tables3 -o figures"),
        (("study", "reproduce", "bridge:tables3", "-o", "figures"), "medtasks study reproduce"),
        (("study", "reproduce",), "medtasks study reproduce NAME"),
    ],
    ids=lambda part: " ".join(part)[:40] if isinstance(part, tuple) else "",
)  # fmt: skip
def test_a_command_names_the_next_one(medtasks, run, command, then):
    outcome = medtasks.done(*command)
    assert "next:" not in outcome.out, "what is piped stays whole"
    commands = suggested(outcome.err)
    assert any(line.startswith(then) for line in commands)
    for line in commands:
        words = shlex.split(line.replace("[RUN...]", "a").replace("…", "oracle"))
        if words[0] == "medtasks":
            check_line(words)


@pytest.mark.parametrize("command", [("ls", "bridge_zh"), ("report", "a", "--published", "none")])
def test_json_is_followed_by_nothing(medtasks, run, command):
    outcome = medtasks(*command, "--json")
    assert json.loads(outcome.out) and "next:" not in outcome.text


@pytest.mark.parametrize("command", [("ls",), ("data", "status")])
def test_no_row_of_a_list_breaks_at_80_columns(medtasks, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [line for line in medtasks(*command, "bridge_zh").out.splitlines() if line.startswith("bridge_")]
    assert len(rows) == 16 and max(map(len, rows)) <= 80
    monkeypatch.delenv("COLUMNS")
    assert max(map(len, medtasks("ls", "bridge_zh").out.splitlines())) > 80


@pytest.mark.parametrize("columns", ["70", "80"])
def test_lists_of_names_fit_the_terminal(medtasks, monkeypatch, columns):
    whole = medtasks("ls", "--groups")
    monkeypatch.setenv("COLUMNS", columns)
    narrow = medtasks("ls", "--groups")
    lines = narrow.out.splitlines()
    assert whole.code == narrow.code == 0 and max(map(len, lines)) <= int(columns)
    assert set(re.sub(r"\S*…\S*", "", narrow.out).split()) <= set(whole.out.split())
    assert "…" not in whole.out and ("…" in narrow.out) == ("a wider terminal" in narrow.err)
