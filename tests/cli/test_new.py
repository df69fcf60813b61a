"""`medtasks new`: a complete folder from a few answers, and nothing less."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from zlib import crc32

import pytest

from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.registry.families import families
from medtasks_ext.registry.new import PLACEHOLDER, Draft, draft, kinds, questions, templates
from medtasks_ext.runner.validate import checks_of
from tests.conftest import declare_suites, write_jsonl

ALL_KINDS = [(name, kind) for name, suite in registry().suites.items() for kind in kinds(suite)]
FLAGS = {
    "id": "falls_clinic",
    "suite": "medhelm",
    "kind": "exact_letter",
    "language": "en",
    "task-type": "text_classification",
    "document-types": "general_ehr_note",
    "specialties": "primary_care,general",
    "stage": "triage_and_referral",
    "access": "private",
    "category": "administration",
    "subcategory": "scheduling_resources_and_staff",
}


def as_arguments(flags: dict[str, str]) -> list[str]:
    axes = ("category", "subcategory", "dimension")
    return [
        part
        for name, value in flags.items()
        for part in (("--axis", f"{name}={value}") if name in axes else (f"--{name}", value))
    ]


def small_tree(root: Path) -> Path:
    """One dataset of each suite."""
    shutil.copytree(
        registry().root, root, ignore=lambda folder, names: [] if folder == str(registry().root) else
        [name for name in names if Path(folder).parent == registry().root
         and name not in ("mie", "hospice_referral", "pubmedqa", "maexam", "full", "sct_bench",
                          "crade", "m_arc", "chats")]
    )  # fmt: skip
    declare_suites(root)
    return root


@pytest.fixture
def tree(tmp_path, monkeypatch):
    root = small_tree(tmp_path / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    forget()
    yield root
    forget()


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Registry:
    """A tree with a new dataset of every template that fits a suite."""
    root = small_tree(tmp_path_factory.mktemp("new") / "tasks")
    tasks = Registry(root)
    for suite, kind in ALL_KINDS:
        answers: dict = {}
        for question in questions(tasks, answers):
            first = next(iter(question.choices)) if question.choices else "new_" + kind
            answers[question.key] = {"suite": suite, "kind": kind}.get(
                question.key, [first] if question.many else first
            )
        draft(tasks, answers).write()
    return Registry(root)


def of_every_day(suite: str, kind: str) -> bool:
    """Whether a hash draws the suite of those that have a kind of answers, or the kind of the suite's."""
    alike = ([pair for pair in ALL_KINDS if pair[at] == (suite, kind)[at]] for at in (0, 1))
    return (suite, kind) in [min(pairs, key=lambda pair: crc32(" ".join(pair).encode())) for pairs in alike]


@pytest.mark.parametrize(
    ("suite", "kind"),
    [pytest.param(*pair, marks=() if of_every_day(*pair) else pytest.mark.nightly) for pair in ALL_KINDS],
)
def test_a_new_folder_lacks_nothing_but_what_a_person_must_write(everything, suite, kind):
    dataset = everything.datasets[f"{suite}_new_{kind}"]
    problems = {check.what: check.problems for check in checks_of(everything, dataset) if check.problems}
    assert set(problems) == {"nothing is left to fill in"}
    (left,) = problems.values()
    assert sum(line.startswith(("task.yaml, line", "card.yaml, line")) for line in left) >= 7
    assert any(line.startswith("sample.jsonl: 11 of 11 rows are placeholders") for line in left)


def test_every_kind_of_the_documentation_and_every_family_can_be_chosen(everything):
    text = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
    table = text.partition("## `answer` of a task file")[2].partition("\n### ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    titles = {"bridge": "BRIDGE", "medhelm": "MedHELM", "clinicbench": "ClinicBench", "mlb": "MLB"}
    documented = {
        (suite, cells[1].strip(" `"))
        for cells in rows
        for suite, title in titles.items()
        if title in cells[2]
    }
    # a suite that lists no kinds takes all of them, and has no rows of its own in the table
    listed = set(titles)
    assert listed < {name for name, suite in registry().suites.items() if suite.answers}
    assert documented == {(suite, templates()[name].kind) for suite, name in ALL_KINDS if suite in listed}
    used = {item.family.name for item in everything.datasets.values()}
    # families of several runs differ by `rows.runs` alone
    assert {family.name for family in families()} - used == {"letter_runs", "open_ended_runs"}


def test_flags_alone_make_a_folder_that_is_listed_and_in_groups(medtasks, tree):
    outcome = medtasks("new", *as_arguments(FLAGS), "--name", "Falls: a clinic", "--n-test", "200")
    assert outcome.code == 0, outcome.text
    folder = tree / "medhelm" / "falls_clinic"
    assert {file.name for file in folder.iterdir()} == {"task.yaml", "card.yaml", "sample.jsonl"}
    assert '"medhelm_falls_clinic"' in medtasks("ls", "--json", "category=administration").out
    record = Registry(tree).datasets["medhelm_falls_clinic"].metadata
    assert (record.name, record.n_test) == ("Falls: a clinic", 200)
    assert record.specialties == ["primary_care", "general"]
    assert "medhelm_falls_clinic_cot" in Registry(tree).leaves("medtasks_spec_primary_care_cot")
    outcome = medtasks("dev", "validate", "medhelm_falls_clinic")
    assert outcome.code == 1 and "card.yaml, line 1: TODO: one sentence" in outcome.out
    rows = [json.loads(line) for line in (folder / "sample.jsonl").read_text().splitlines()]
    assert all(any(PLACEHOLDER in str(value) for value in row.values()) for row in rows)


def test_what_no_paper_has_is_said_and_not_compared_with_published_scores(medtasks, tree, data_dir):
    assert medtasks("new", *as_arguments(FLAGS)).code == 0
    new = [{"question": f"Q{n}", "options": ["x", "y", "z"], "answer": "ABC"[n % 3]} for n in range(6)]
    own = [{"prompt": "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(6)]
    write_jsonl(data_dir / "medhelm" / "falls_clinic" / "test.jsonl", new)
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", own)
    outcome = medtasks("run", "--model", "oracle", "--tasks", "medhelm_admin", "--output_path", "run")
    assert outcome.code == 0
    assert (
        "datasets that no suite's paper has: medhelm_falls_clinic; groups of their suite leave them out"
        in outcome.out
    )
    assert medtasks("reproduce", "medhelm:edfig1", "run", "-o", "atlas").code == 0
    table = (tree.parent / "atlas" / "medhelm_edfig1.csv").read_text()
    assert table.count("oracle") == 1  # the subcategory of the paper's dataset alone


def test_languages_that_yaml_reads_as_something_else_are_quoted(medtasks, tree):
    assert medtasks("new", *as_arguments({**FLAGS, "language": "no"})).code == 0
    assert Registry(tree).datasets["medhelm_falls_clinic"].metadata.language == "no"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": "english"}, "unknown value 'english' (did you mean en?)"),
        ({"kind": "exact_leter"}, "unknown value 'exact_leter' (did you mean exact_letter?)"),
        ({"specialties": "general,cardio"}, "use any of: general, cardiology"),
        ({"category": "admin"}, "use one of: clinical_decision_support"),
        ({"subcategory": "planning_treatments"}, "use one of: scheduling_resources_and_staff"),
        ({"suite": "medhlm"}, "did you mean medhelm?"),
        ({"suite": "bridge", "id": "medhelm_falls"}, "begins with medhelm_"),
        ({"id": "Falls-Clinic"}, "use lower-case letters"),
        ({"id": "falls_cot"}, "use lower-case letters"),
        ({"id": "hospice_referral"}, "there is such a folder"),
        ({"id": "admin"}, "'medhelm_admin' is the name of a group"),
        ({"dimension": "medru"}, "medhelm datasets have no dimension"),
        ({"stage": ""}, "--stage: triage_and_referral, initial_assessment"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_is_right(medtasks, tree, change, message):
    before = sorted(tree.rglob("*"))
    outcome = medtasks("new", *as_arguments({**FLAGS, **change}))
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert sorted(tree.rglob("*")) == before


def test_all_that_is_missing_is_said_at_once(medtasks, tree):
    outcome = medtasks("new", "--id", "mlb_falls", "--kind", "marked_letters")
    assert outcome.code == 2
    for flag in ("language", "task-type", "document-types", "stage", "access"):
        assert f"--{flag}: " in outcome.err
    for axis in ("domain", "dimension", "tertiary"):
        assert f"--axis {axis}=: " in outcome.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_asks_and_takes_numbers_and_asks_again(medtasks, tree, monkeypatch):
    replies = ["falls_clinic", "2", "exact_leter", "exact_letter", "en", "1", "2, 5", "general"]
    replies += ["1", "private"]
    replies += ["administration", "scheduling_resources_and_staff", "Falls clinic", ""]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(replies) + "\n"))
    outcome = medtasks("new")
    assert outcome.code == 0, outcome.text
    assert "did you mean exact_letter?" in outcome.err
    record = Registry(tree).datasets["medhelm_falls_clinic"].metadata
    assert record.document_types == ["case_report", "general_ehr_note"]
    assert (record.name, record.summary) == (
        "Falls clinic",
        "TODO: one sentence: what goes in, what comes out",
    )


def test_a_question_is_asked_only_if_no_flag_answers_it(medtasks, tree, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("exact_letter\n\n\n"))
    given = {name: value for name, value in FLAGS.items() if name != "kind"}
    outcome = medtasks("new", *as_arguments(given))
    assert outcome.code == 0 and "Language" not in outcome.out


def test_a_question_is_explained_and_taken_back(medtasks, tree, monkeypatch):
    replies = [
        "<",
        "?",
        "wrong_name",
        "2",
        "<",
        "<",
        "medhelm_falls_clinic",
        "?",
        "",
        "exact_letter",
        "?",
        "de",
    ]
    replies += ["<", "en", "1", "1", "general", "1", "private"]
    replies += [
        "administration",
        "<",
        "administration",
        "scheduling_resources_and_staff",
        "?",
        "Falls",
        "",
        "",
    ]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(replies) + "\n"))
    outcome = medtasks("new")
    assert outcome.code == 0, outcome.text
    assert "? explains a question, < goes back to the one before" in outcome.err
    assert "  this is the first question" in outcome.err
    assert "  id: names the folder and the tasks;" in outcome.err
    assert "  kind: decides how answers are read" in outcome.err and "As a flag: --kind VALUE" in outcome.err
    assert "  this cannot wait; ? explains it" in outcome.err
    assert "  language: of the documents, a code of ISO 639." in outcome.err
    found = Registry(tree).datasets
    assert "medhelm_wrong_name" not in found
    record = found["medhelm_falls_clinic"].metadata
    assert (record.language, record.name) == ("en", "Falls")
    assert record.axes == {"category": "administration", "subcategory": "scheduling_resources_and_staff"}


def test_an_interrupted_question_leaves_nothing(medtasks, tree, monkeypatch):
    before = sorted(tree.rglob("*"))
    monkeypatch.setattr(sys, "stdin", Terminal("falls_clinic\n2\n"))  # then the input ends
    assert medtasks("new").code == 130
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError("no space left on device")])
def test_a_folder_is_there_as_a_whole_or_not_at_all(medtasks, tree, monkeypatch, stop):
    before, write, written = sorted(tree.rglob("*")), Path.write_text, []

    def interrupted(self, *arguments, **options):
        written.append(self)
        if len(written) == 2:
            raise stop
        return write(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", interrupted)
    outcome = medtasks("new", *as_arguments(FLAGS))
    assert outcome.code == (130 if stop is KeyboardInterrupt else 2)
    assert len(written) == 2 and sorted(tree.rglob("*")) == before


def test_an_existing_folder_is_never_touched(tree):
    folder = tree / "medhelm" / "hospice_referral"
    before = {file: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(Exception, match="there is such a folder"):
        Draft("medhelm_hospice_referral", folder, {"task.yaml": ""}).write()
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_the_tasks_of_an_installed_package_are_left_alone(medtasks, tmp_path, monkeypatch):
    import medtasks_ext.registry.new as module

    root = small_tree(tmp_path / "medtasks_ext" / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "medtasks_ext")
    outcome = medtasks("new", *as_arguments(FLAGS))
    assert outcome.code == 2
    assert "export MEDTASKS_TASKS=my_tasks" in outcome.err and "--suite own" in outcome.err
