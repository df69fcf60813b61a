"""A suite is data: what `suite.yaml` may say, what follows from it, and that no code names a suite."""

import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.registry.build import build, built_files
from medtasks_ext.registry.columns import references
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.registry.suites import function
from medtasks_ext.runner.validate import RunFolder

TASKS = registry()
MINE = """
title: WardBench
about: one ward's own questions
citation: bedi2026medhelm
axes:
  ward: {values: {icu: Intensive care, er: Emergency room}}
  bed: {within: ward, parts: {icu: {monitored: {title: Monitored}}, er: {waiting: {title: Waiting}}}}
groups: {ward: "", bed: bed_, language: ""}
short: {icu: intensive}
sets: {ward: {inside: [icu, er]}}
partition: [ward]
main_axes: [ward]
sections: ward
assigned_by: medtasks
access: {free: open}
vocabulary: {specialties: {geriatrics: Geriatrics}}
answers: [label_word]
datasets: [falls]
"""


def test_a_function_that_is_not_there_is_named_with_the_file():
    with pytest.raises(MedtasksError, match=r"mlb/suite.yaml: `!function medtasks_ext.nowhere.x` is not in"):
        function(TASKS.suites["mlb"], "medtasks_ext.nowhere.x")


def add_dataset(root: Path, suite: str, name: str, facts: dict) -> Path:
    """A dataset like PubMedQA in a suite, with other facts, in one file."""
    folder = root / suite / name
    shutil.copytree(TASKS.datasets["clinicbench_pubmedqa"].folder, folder)
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8")
    for old in ("clinicbench_pubmedqa", "clinicbench/pubmedqa"):
        text = text.replace(old, old.replace("clinicbench", suite).replace("pubmedqa", name))
    said = yaml.safe_load(text.replace("!function ", ""))
    del said["official"]  # no suite but the source's has these words
    record = {name: said.pop(name) for name in TaskFacts.model_fields if name in said}
    card = folder / "card.yaml"
    record |= yaml.safe_load(card.read_text(encoding="utf-8"))
    said["about"] = {**record, "name": name.capitalize(), **facts}
    said["class"] = "!function medtasks_ext.task.MedicalTask"
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
    file.write_text(
        text.replace("'!function medtasks_ext.task.MedicalTask'", said["class"]), encoding="utf-8"
    )
    card.unlink()
    return folder


@pytest.fixture
def root(tasks_of):
    """A tasks folder with a suite that nothing in the package knows, and one dataset of another suite."""
    root = tasks_of("clinicbench/pubmedqa", "mlb/maexam")
    (root / "ward").mkdir()
    (root / "ward" / "suite.yaml").write_text(MINE, encoding="utf-8")
    add_dataset(root, "ward", "falls", {
        "axes": {"ward": "icu", "bed": "monitored"}, "specialties": ["geriatrics"], "language": "ko",
        "source_terms": {},
    })  # fmt: skip
    forget()
    return root


def rewrite(root: Path, old: str, new: str) -> None:
    file = root / "ward" / "suite.yaml"
    assert MINE.count(old) == 1
    file.write_text(MINE.replace(old, new), encoding="utf-8")


def test_a_fifth_suite_needs_no_code(root, medtasks):
    assert medtasks("dev", "build").code == 0
    tasks = Registry(root)
    assert list(tasks.suites) == ["clinicbench", "mlb", "ward"]
    for group in ("ward", "ward_intensive", "ward_bed_monitored", "ward_ko", "ward_inside", "medtasks_ko"):
        assert tasks.leaves(group) == ["ward_falls"], group
    assert "ward_falls" in tasks.leaves("medtasks_spec_geriatrics")
    outcome = medtasks("ls", "ward=icu", "suite=ward", "specialty=geriatrics")
    assert outcome.code == 0 and "ward_falls" in outcome.out and "1 dataset," in outcome.out
    medtasks.done("run", "--model", "oracle", "--tasks", "ward", "--data", "sample", "--output_path", "run")
    outcome = medtasks("report", "run", "-o", "out")
    written = [Path("out", name).read_text(encoding="utf-8") for name in ("report.html", "groups.csv")]
    assert outcome.code == 0 and "WardBench" in written[0] and "Intensive care" in written[1]
    header = (Path("out") / "results.csv").read_text(encoding="utf-8").splitlines()[0]
    assert ",ward,bed," in header
    assert "wardbench" not in medtasks("report", "run", "--published", "all").err.lower()
    assert "% the suite ward" in references([registry().datasets["ward_falls"]])
    assert medtasks("dev", "validate", "ward_falls").code == 0
    file = root / "ward" / "falls" / "task.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("language: ko", "language: en"), encoding="utf-8"
    )
    forget()
    medtasks.done("dev", "validate", "ward_falls")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: WardBench", "titel: WardBench", "titel: unknown key (did you mean title?)"),
        ("partition: [ward]", "partition: [wards]", "partition: 'wards' is no axis (did you mean ward?)"),
        ("inside: [icu, er]", "inside: [icu, erx]", "sets.ward: 'erx' is no value of it (did you mean er?)"),
        ("within: ward", "within: wart", "bed.within: 'wart' is no axis before it"),
        ("  ward: {values", "  stage: {values", "stage is no name for an axis"),
        ("inside: [icu, er]", "open: [icu, er]", "groups: 'open' is of access and of sets.ward"),
        ("access: {free: open}", "access: {free: opne}", "access (did you mean open?)"),
        ("[label_word]", "[label_wrd]", "answers: 'label_wrd' is no kind of answers (did you mean label_"),
        ("assigned_by: medtasks", "strategy_lines: {xx: {answer: a, reason: b}}",
         "strategy_lines: 'xx' is no code of ISO 639"),
        ("about: one ward's own questions\n", "", "about: missing key"),
    ],
)  # fmt: skip
def test_a_fault_in_the_file_of_a_suite_is_one_error_with_file_key_and_value(root, old, new, message):
    rewrite(root, old, new)
    with pytest.raises(MedtasksError, match="→") as error:
        built_files(Registry(root))
    assert "ward/suite.yaml" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"axes": {"ward": "icuu", "bed": "monitored"}},
            "axes: ward: 'icuu' is no value of ward (did you mean icu?): icu, er"
            " (a new one goes into ward/suite.yaml, under axes.ward)",
        ),
        ({"axes": {"ward": "icu", "bed": "monitored", "domain": "x"}}, "domain: unknown axis"),
        ({"stage": "triage"}, "under vocabulary.stages"),
        ({"source_terms": {"access": "fre"}}, "'fre' is no word of the suite (did you mean free?)"),
    ],
)
def test_a_value_that_the_suite_does_not_have_is_refused_by_build_and_validate(root, facts, message):
    shutil.rmtree(root / "ward" / "falls")
    own = {"axes": {"ward": "icu", "bed": "monitored"}, "source_terms": {}}
    folder = add_dataset(root, "ward", "falls", {**own, **facts})
    tasks = Registry(root)
    with pytest.raises(MedtasksError) as error:
        built_files(tasks)
    assert f"{folder}/task.yaml: about." in str(error.value)
    assert message in str(error.value)
    task_file, *_ = RunFolder(tasks, next(item for item, reason in tasks._scan if reason)).checks()
    assert any(message in problem for problem in task_file.problems)


def test_the_suites_own_groups_are_means_over_the_papers_datasets(root):
    for name, ward, bed in (("later", "icu", "monitored"), ("new", "er", "waiting")):
        add_dataset(root, "ward", name, {"axes": {"ward": ward, "bed": bed}, "source_terms": {}})
    tasks = Registry(root)
    build(tasks, root.with_name("built"))
    assert set(tasks.leaves("ward")) == {"ward_falls", "ward_later", "ward_new"}
    assert tasks.parts("ward") == tasks.parts("ward_inside") == [["ward_falls"]]
    assert tasks.parts("ward_intensive_cot") == [["ward_falls_cot"]]
    assert tasks.parts("ward_er") == [["ward_new"]]  # it holds nothing else
    assert set(tasks.parts("medtasks_en")[0]) >= {"ward_later", "ward_new"}
    text = (root.with_name("built") / "groups" / "ward.yaml").read_text(encoding="utf-8")
    assert "no plain mean over tasks" in text and "aggregate_metric_list" not in text
