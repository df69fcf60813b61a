"""Filled forms: what is accepted, what is refused, and that nothing is lost."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_lab.human.forms import read_key
from medtasks_lab.human.ingest import ingest
from tests.human.conftest import MODELS, TASK, N, asked, fill, key_of, read, write

EXPERTS = ("expert_1", "expert_2")


@pytest.fixture
def forms(export):
    """Two forms, filled in."""
    folder = export("--experts", 2)
    for expert in EXPERTS:
        fill(
            folder / f"{expert}.csv",
            lambda row, question: ("A", "tie", "B")[(len(question) + int(row[3:])) % 3],
        )
    return folder


@pytest.fixture
def take_in(forms, medtasks):
    """Ingest forms, all of the folder unless some are named."""

    def call(*files, options=()):
        files = files or sorted(forms.glob("*.csv"))
        return medtasks("human", "ingest", *files, "--key", forms / "key.json", "-o", "out", *options)

    return call


def results(forms):
    """Everything that was written, without what says when."""
    return {path.name: path.read_text() for path in (forms.parent / "out").iterdir()}


# ---------------------------------------------------------------------- what is accepted


def semicolons(path, table):
    write(path, table, delimiter=";")


def tabs(path, table):
    write(path, table, delimiter="\t")


def all_quoted_unix(path, table):
    write(path, table, quoting=1, lineterminator="\n")


def no_mark(path, table):
    write(path, table)
    path.write_bytes(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))


def sloppy(path, table):
    questions = [place for place, _ in asked(table[0])]
    write(
        path,
        [
            table[0],
            *[[f" {c.lower()} " if i in questions else c for i, c in enumerate(row)] for row in table[1:]],
        ],
    )


def blank_lines(path, table):
    write(path, [*table, [""] * len(table[0]), []])


def without_texts(path, table):
    write(path, [[c for i, c in enumerate(row) if i not in (3, 4, 5)] for row in table])


def sorted_with_remarks(path, table):
    write(path, [[*table[0], "remarks"], *[[*row, "hm"] for row in sorted(table[1:], reverse=True)]])


def line_breaks_changed(path, table):
    write(path, [[c.replace("\n", "\r\n") + " " for c in row] for row in table])


@pytest.mark.parametrize(
    "save",
    [
        semicolons, tabs, all_quoted_unix, no_mark, sloppy, blank_lines, without_texts, sorted_with_remarks,
        line_breaks_changed,
    ],
)  # fmt: skip
def test_what_a_spreadsheet_makes_of_the_file_changes_nothing(forms, take_in, save):
    assert take_in().code == 0
    before = results(forms)
    for expert in EXPERTS:
        save(forms / f"{expert}.csv", read(forms / f"{expert}.csv"))
    done = take_in()
    assert done.code == 0, done.text
    assert results(forms) == before


def test_the_empty_form_beside_the_filled_one_is_left_aside(forms, take_in):
    assert take_in().code == 0
    before = results(forms)
    (forms / "expert_1.csv").rename(forms / "downloaded.csv")
    fill_empty = read(forms / "downloaded.csv")
    write(
        forms / "expert_1.csv", [row if i == 0 else [*row[:6], *[""] * 4] for i, row in enumerate(fill_empty)]
    )
    done = take_in()
    assert done.code == 0 and "no answers in it" in done.err and results(forms) == before


# ---------------------------------------------------------------------- what is refused


def cell(column, value):
    def edit(table):
        place = table[0].index(column)
        table[4][place] = value(table[4][place]) if callable(value) else value

    return edit


def sides_swapped(table):
    a, b = table[0].index("answer_a"), table[0].index("answer_b")
    table[4][a], table[4][b] = table[4][b], table[4][a]


def digests_swapped(table):
    table[4][2], table[5][2] = table[5][2], table[4][2]


def row_twice(table):
    table.append(list(table[4]))


FAULTS = [
    (
        cell("digest", lambda old: old[:-1] + ("0" if old[-1] != "0" else "1")),
        "digest was changed",
        "as it was exported",
    ),
    (cell("row", "E1R999"), "no such row", "as it was exported"),
    (cell("row", ""), "no such row", "as it was exported"),
    (cell("form", "mt0000000000/expert_1"), "another export", "its own export"),
    (cell("form", lambda old: old.replace("expert_1", "expert_2")), "no such row", "as it was exported"),
    (cell("answer_a", "Something better."), "text answer_a was changed", "as it was exported"),
    (cell("question", lambda old: old + "!"), "text question was changed", "as it was exported"),
    (sides_swapped, "text answer_a was changed", "as it was exported"),
    (digests_swapped, "digest was changed", "as it was exported"),
    (cell("safety [A|tie|B]", "C"), "safety is 'C'", "write one of: A, tie, B"),
    (cell("safety [A|tie|B]", "1"), "safety is '1'", "write one of: A, tie, B"),
]


@pytest.mark.parametrize(("edit", "what", "remedy"), FAULTS)
def test_a_tampered_form_gets_one_message_and_nothing_is_lost(forms, take_in, edit, what, remedy):
    assert take_in().code == 0
    before, path = results(forms), forms / "expert_1.csv"
    table = read(path)
    edit(table)
    write(path, table)
    given = path.read_bytes()
    done = take_in()
    assert done.code == 2 and done.err.count("medtasks:") == 1
    assert f"{path}, row 5" in done.err and what in done.err and remedy in done.err
    assert results(forms) == before and path.read_bytes() == given


def test_a_row_that_is_given_twice_is_refused_with_both_places(forms, take_in):
    path = forms / "expert_1.csv"
    table = read(path)
    row_twice(table)
    write(path, table)
    done = take_in()
    assert (
        done.code == 2 and f"{path}, row {N + 2} ({table[4][1]})" in done.err and f"{path}, row 5" in done.err
    )
    assert not (forms.parent / "out").exists()


def test_a_form_that_is_given_twice_is_refused_but_naming_a_file_twice_is_not(forms, take_in):
    one, two = (forms / f"{expert}.csv" for expert in EXPERTS)
    shutil.copy(one, forms / "copy.csv")
    done = take_in(one, two, forms / "copy.csv")
    assert done.code == 2 and "is also in" in done.err and f"(and {N - 1} more rows alike)" in done.err
    assert take_in(one, two, one).code == 0


def test_forms_of_another_export_are_refused(forms, export, take_in):
    other = export("--experts", 1, out="other")
    fill(other / "expert_1.csv", lambda row, question: "A")
    done = take_in(other / "expert_1.csv", forms / "expert_2.csv")
    assert (
        done.code == 2 and "belongs to another export" in done.err and str(other / "expert_1.csv") in done.err
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no column form, row, digest"),
        (b"a,b\n1,2\n", "no column form, row, digest"),
        ("form,row,digest,größe\n".encode("cp1252"), "CSV UTF-8"),
        (b'form,row,digest,factuality,completeness,preference,safety\n"open', "not a CSV file"),
    ],
)
def test_a_file_that_is_no_form_is_named(forms, take_in, content, message):
    (forms / "stray.csv").write_bytes(content)
    done = take_in()
    assert done.code == 2 and str(forms / "stray.csv") in done.err and message in done.err


def test_a_changed_or_foreign_key_is_refused(forms, medtasks):
    file = forms / "expert_1.csv"
    key = key_of(forms)
    row = next(iter(key["forms"]["expert_1"].values()))
    row["about"]["first_run_is"] = "B" if row["about"]["first_run_is"] == "A" else "A"
    (forms / "other.json").write_text(json.dumps(key))
    (forms / "list.json").write_text("[]")
    (forms / "broken.json").write_text("{")
    for name, message in (
        ("other.json", "row E1R001 of expert_1 was changed"),
        ("list.json", "not the key"),
        ("broken.json", "damaged"),
        ("none.json", "no such file"),
    ):
        done = medtasks("human", "ingest", file, "--key", forms / name, "-o", "out")
        assert done.code == 2 and message in done.err and name in done.err


def test_results_do_not_go_beside_the_forms(forms, medtasks):
    done = medtasks("human", "ingest", forms / "expert_1.csv", "--key", forms / "key.json", "-o", forms)
    assert done.code == 2 and "another folder" in done.err and not (forms / "results.json").exists()


# ---------------------------------------------------------------------- what is missing


def blank(path, rows, columns):
    table = read(path)
    for row in rows:
        for column in columns:
            table[row][column] = ""
    write(path, table)


def test_missing_answers_are_listed_and_complete_rows_taken_on_demand(forms, take_in):
    blank(forms / "expert_1.csv", rows=[2], columns=[9])
    blank(forms / "expert_2.csv", rows=[3, 4], columns=[6, 7, 8, 9])
    done = take_in()
    assert done.code == 2 and not (forms.parent / "out").exists()
    assert "expert_1: 1 of 12 rows are filled in part (E1R002)" in done.err
    assert "expert_2: 2 of 12 rows have no answer (E2R003, E2R004)" in done.err and "--partial" in done.err
    done = take_in(options=["--partial"])
    assert done.code == 0 and "expert_1: 11 of 12 rows" in done.err and "expert_2: 10 of 12 rows" in done.err
    written = json.loads(results(forms)["results.json"])
    assert (written["rows"], written["rows_missing"]) == (21, 3)
    assert written["missing"] == {
        "absent": {"expert_2": ["E2R003", "E2R004"]}, "incomplete": {"expert_1": ["E1R002"]},
    }  # fmt: skip


def test_a_form_that_did_not_come_back_is_missing(forms, take_in):
    done = take_in(forms / "expert_1.csv")
    assert done.code == 2 and "expert_2: 12 of 12 rows have no answer" in done.err
    assert take_in(forms / "expert_1.csv", options=["--partial"]).code == 0


def test_a_deleted_row_is_missing(forms, take_in):
    path = forms / "expert_1.csv"
    table = read(path)
    del table[5]
    write(path, table)
    done = take_in()
    assert done.code == 2 and "expert_1: 1 of 12 rows have no answer (E1R005)" in done.err


def test_empty_forms_alone_are_no_results(export, medtasks):
    folder = export("--experts", 1)
    for options in ((), ("--partial",)):
        done = medtasks(
            "human", "ingest", folder / "expert_1.csv", "--key", folder / "key.json", "-o", "out", *options
        )
        assert done.code == 2 and "no row has all its answers" in done.err


# ---------------------------------------------------------------------- whatever is changed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    row=st.integers(1, N),
    column=st.integers(0, 5),
    value=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
)
def test_no_cell_but_an_answer_can_be_changed(forms, row, column, value):
    key, path = read_key(forms / "key.json"), forms / "try.csv"
    table = read(forms / "expert_1.csv")
    same = (
        "".join(value.split()).lstrip("'").casefold()
        == "".join(table[row][column].split()).lstrip("'").casefold()
    )
    table[row][column] = value
    write(path, table)
    given_files = [path, forms / "expert_2.csv"]
    if (same and column > 2) or value.strip() == read(forms / "expert_1.csv")[row][column]:
        ingest(given_files, key)
    else:
        with pytest.raises(MedtasksError, match=f"row {row + 1} "):
            ingest(given_files, key)


def test_the_example_of_the_help_works(forms, medtasks):
    files = sorted(str(path.relative_to(forms.parent)) for path in forms.glob("*.csv"))
    done = medtasks("human", "ingest", *files, "--key", "forms/key.json", "-o", "results")
    assert done.code == 0 and f"{MODELS[0]} against {MODELS[1]}" in done.out and TASK in done.out
