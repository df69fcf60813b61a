"""A suite is data: what `suite.yaml` may say, what follows from it, and that no code names a suite."""

import ast
import re
import shutil
from pathlib import Path

import pytest
import yaml

import medtasks_ext
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.registry.build import build, built_files
from medtasks_ext.registry.columns import references
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.registry.suites import function
from medtasks_ext.report.groups import group_scores, groups_of
from medtasks_ext.results.published import published_entries
from medtasks_ext.runner.validate import RunFolder
from tools.catalogue import pages

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


def test_no_code_names_a_suite_or_branches_on_one():
    name = re.compile(rf"({'|'.join(TASKS.suites)})([_/.]\S*)?")
    named = [
        f"{file}, line {node.lineno}: {node.value!r}"
        for package in (medtasks_ext,)
        for file in sorted(Path(package.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and name.fullmatch(node.value)
    ]
    assert not named, "say it in the suites' suite.yaml"


def test_all_functions_that_suites_name_are_there():
    for suite in TASKS.suites.values():
        published = suite.published
        named = [published.entries, published.costs] if published else []
        adapters = suite.official.adapters if suite.official else None
        for reference in filter(None, [*named, suite.leaderboard, suite.files, adapters and adapters.code]):
            assert callable(function(suite, reference))


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


def test_words_that_are_no_passage_need_code_that_the_suite_names(root, medtasks):
    file = root / "ward" / "falls" / "task.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"{text}official: {{adapter: falls, input: question}}\n", encoding="utf-8")
    outcome = medtasks("dev", "validate", "ward_falls")
    assert outcome.code == 1 and "official: needs `text`: suite.yaml names no code" in outcome.out
    suite = root / "ward" / "suite.yaml"
    words = {"words": {"file": "words.txt", "revision": "1", "package": "ward-words", "sha256": "0" * 64}}
    adapters = {"code": "medtasks_ext.suites.helm.AdapterWords", "artefact": "words"}
    said = yaml.safe_dump({"official": {"artefacts": words, "adapters": adapters}})
    suite.write_text(suite.read_text(encoding="utf-8") + said, encoding="utf-8")
    forget()
    assert "official" not in medtasks("dev", "validate", "ward_falls").out
    file.write_text(f"{text}official: {{adapter: falls, inputs: question}}\n", encoding="utf-8")
    forget()
    outcome = medtasks("dev", "validate", "ward_falls")
    assert "official.inputs: unknown key (did you mean input?)" in outcome.out


def test_a_dataset_of_a_fifth_suite_is_started_with_its_axes(root, medtasks):
    given = {
        "language": "ko", "task_type": "text_classification", "document_types": "general_ehr_note",
        "specialties": "geriatrics", "stage": "triage_and_referral",
        "access": "private",
    }  # fmt: skip
    arguments = ["--id", "ward_triage", "--kind", "label_word"]
    arguments += [f"{name}={value}" for name, value in given.items()]
    outcome = medtasks("data", "new", *arguments)
    assert (
        outcome.code == 2 and "ward: missing key (an axis of ward/suite.yaml): one of icu, er" in outcome.err
    )
    outcome = medtasks("data", "new", *arguments, "ward=er", "bed=monitored")
    assert outcome.code == 2 and "axes: bed: 'monitored' is no value of bed: waiting" in outcome.err
    medtasks.done("data", "new", *arguments, "ward=er", "bed=waiting")
    record = Registry(root).datasets["ward_triage"].metadata
    assert record.axes == {"ward": "er", "bed": "waiting"} and record.primary_metric == "acc"


def test_any_language_of_iso_639_has_its_name_and_strategy_lines(root, medtasks):
    shutil.rmtree(root / "ward" / "falls")
    own = {"axes": {"ward": "icu", "bed": "monitored"}, "source_terms": {}}
    add_dataset(root, "ward", "falls", {**own, "language": "yue"})
    lines = {"yue": {"answer": "淨係寫答案。", "reason": "Think."}}
    (root / "ward" / "suite.yaml").write_text(
        MINE + yaml.safe_dump({"strategy_lines": lines}, allow_unicode=True), encoding="utf-8"
    )
    forget()
    tasks = registry()
    assert tasks.leaves("ward_yue") == tasks.leaves("medtasks_yue") == ["ward_falls"]
    assert tasks.titles["language"]["yue"] == "Yue Chinese"
    assert "淨係寫答案。" in medtasks("preview", "ward_falls", "--data", "sample").out
    assert "language: Yue Chinese" in pages(tasks)["ward.md"]
    assert "| Yue Chinese |" in pages(tasks)["README.md"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: WardBench", "titel: WardBench", "titel: unknown key (did you mean title?)"),
        ("partition: [ward]", "partition: [wards]", "partition: 'wards' is no axis (did you mean ward?)"),
        ("partition: [ward]", "partition: [stage]", "partition: 'stage' has no groups"),
        ("sections: ward", "sections: bad", "sections: 'bad' is no axis (did you mean bed?)"),
        ("inside: [icu, er]", "inside: [icu, erx]", "sets.ward: 'erx' is no value of it (did you mean er?)"),
        ("short: {icu:", "short: {icux:", "short: 'icux' is no value of an axis (did you mean icu?)"),
        ("within: ward", "within: wart", "bed.within: 'wart' is no axis before it"),
        ("parts: {icu: {m", "parts: {icw: {m", "'icw' is no value of ward (did you mean icu?)"),
        ("  ward: {values", "  stage: {values", "stage is no name for an axis"),
        ("bed: bed_, language", 'bed: "", language', None),
        ("inside: [icu, er]", "open: [icu, er]", "groups: 'open' is of access and of sets.ward"),
        ("icu: intensive}", "icu: er}", "groups: 'er' is of ward and of ward"),
        ("access: {free: open}", "access: {free: opne}", "access (did you mean open?)"),
        ("geriatrics: Geriatrics", "general: General", "'general' is in vocabulary.yaml already"),
        ("assigned_by: medtasks", "assigned_by: us", "assigned_by"),
        ("[label_word]", "[label_wrd]", "answers: 'label_wrd' is no kind of answers (did you mean label_"),
        ("assigned_by: medtasks", "strategy_lines: {xx: {answer: a, reason: b}}",
         "strategy_lines: 'xx' is no code of ISO 639"),
        ("datasets: [falls]", "datasets: [fals]", "no dataset 'fals' in the folder (did you mean falls?)"),
        ("about: one ward's own questions\n", "", "about: missing key"),
        ("title: WardBench", "title: [", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_fault_in_the_file_of_a_suite_is_one_error_with_file_key_and_value(root, old, new, message):
    rewrite(root, old, new)
    if message is None:  # no fault: values of two axes without prefixes differ
        built_files(Registry(root))
        return
    with pytest.raises(MedtasksError, match="→") as error:
        built_files(Registry(root))
    assert "ward/suite.yaml" in str(error.value) and message in str(error.value)


def test_a_suite_without_datasets_or_without_a_file_is_refused(root):
    shutil.rmtree(root / "ward" / "falls")
    with pytest.raises(MedtasksError, match=r"ward/suite\.yaml: the suite has no dataset"):
        built_files(Registry(root))
    (root / "ward" / "suite.yaml").unlink()
    built_files(Registry(root))
    (root / "mlb" / "suite.yaml").unlink()
    with pytest.raises(MedtasksError, match="the suite mlb is not declared"):
        built_files(Registry(root))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"axes": {"ward": "icuu", "bed": "monitored"}},
            "axes: ward: 'icuu' is no value of ward (did you mean icu?): icu, er"
            " (a new one goes into ward/suite.yaml, under axes.ward)",
        ),
        ({"axes": {"ward": "er", "bed": "monitored"}}, "bed: 'monitored' is no value of bed: waiting"),
        ({"axes": {"ward": "icu"}}, "axes: bed: missing key (an axis of ward/suite.yaml)"),
        ({"axes": {"ward": "icu", "bed": "monitored", "domain": "x"}}, "domain: unknown axis"),
        ({"specialties": ["geriatric"]}, "did you mean geriatrics?"),
        ({"stage": "triage"}, "under vocabulary.stages"),
        (
            {"language": "kor"},
            "'kor' is no code of ISO 639, two letters where a language has them, else three",
        ),
        ({"language": "Korean"}, "(did you mean ko?)"),
        ({"language": "qq"}, "'qq' is no code of ISO 639"),
        ({"source_terms": {"access": "fre"}}, "'fre' is no word of the suite (did you mean free?)"),
        ({"benchmark": "ward"}, "benchmark: unknown key"),
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


def published_rows(tasks: Registry, suite: str) -> dict[tuple[str, str, str], tuple]:
    groups = tuple(group for group in groups_of(tasks) if group.suite == suite)
    entries = [entry for entry in published_entries(tasks) if entry.paper == suite]
    rows = [row for entry in entries for row in group_scores(entry, "zero_shot", groups)]
    return {
        (row.entry.label, row.group.axis, row.group.value): (row.score, row.scored, row.partial)
        for row in rows
    }


def test_datasets_that_join_a_suite_leave_published_rows_whole(tmp_path):
    root = tmp_path / "tasks"
    shutil.copytree(TASKS.root, root)
    for name in ("one", "two"):
        add_dataset(root, "clinicbench", name, {})
    before = published_rows(TASKS, "clinicbench")
    assert before and published_rows(Registry(root), "clinicbench") == before
