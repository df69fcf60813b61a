"""Names and groups derived from metadata."""

import csv
import json
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import STRATEGIES, SUFFIX, registry
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.report.groups import groups_of
from tests.report.made import write_run

TASKS = registry()
#: as the papers print them, of their own datasets
SIZES = {
    "bridge": {
        **{"en": 35, "zh": 16, "es": 14, "ja": 5, "de": 4, "ru": 4, "fr": 3, "no": 3, "pt": 3},
        "text_classification": 23, "event_extraction": 20, "named_entity_recognition": 19,
        "normalization_and_coding": 8, "question_answering": 5, "summarization": 5,
        "natural_language_inference": 4, "semantic_similarity": 3,
    },
    "medhelm": {
        **{"decision_support": 12, "notes": 6, "communication": 8, "research": 6, "admin": 5},
        **{"open": 16, "gated": 7, "private": 14},
    },
    "clinicbench": {"clinical": 6, "ml": 11, "reasoning": 6, "generation": 4, "understanding": 7},
    "mlb": {},
}  # fmt: skip
SUITES = {"bridge": 87, "medhelm": 37, "clinicbench": 17, "mlb": 22}


def size(group: str, strategy: str = "zero_shot") -> int:
    """How many of the papers' own datasets a group holds; a suite may have further ones."""
    leaves = TASKS.leaves(group + SUFFIX[strategy])
    return len({TASKS.tasks[leaf][0].id for leaf in leaves if TASKS.tasks[leaf][0].of_paper})


def test_lm_eval_sees_the_same_tasks_and_the_listed_groups(built_tasks):
    manager = TaskManager(include_defaults=False, include_path=str(built_tasks))
    closed = [dataset for dataset in TASKS.datasets.values() if dataset.is_closed]
    assert set(manager.all_subtasks) == {*TASKS.tasks, *(dataset.task(LIKELIHOOD) for dataset in closed)}
    assert not manager.all_tags
    assert set(manager.all_groups) == set(TASKS.listed)


def test_no_listed_group_has_one_task_or_those_of_another():
    assert {"bridge_zh_ll", "medhelm_ll", "medtasks_scoreable_ll", "bridge_app_phenotyping"} < set(
        TASKS.listed
    )
    assert all(leaves == TASKS.leaves(name) for name, leaves in TASKS.listed.items())
    others = [frozenset(leaves) for name, leaves in TASKS.listed.items() if name not in TASKS.suites]
    assert len(others) == len(set(others)) and min(map(len, others)) > 1
    assert not set(others) & {frozenset(TASKS.leaves(suite)) for suite in TASKS.suites}
    # whatever is left out, one that is listed has its tasks, or it is asked in another way
    ways = {frozenset(leaves) for leaves in TASKS.listed.values()}
    left_out = [name for name in TASKS.groups if name not in TASKS.listed and len(TASKS.leaves(name)) > 1]
    assert all(
        name.endswith(("_cot", "_5shot")) or frozenset(TASKS.leaves(name)) in ways for name in left_out
    )


@pytest.mark.parametrize("suffix", ["", "_cot", "_5shot"])
@pytest.mark.parametrize("suite", sorted(SUITES))
def test_an_umbrella_counts_each_task_equally_often(suite, suffix):
    """lm-eval averages over all leaves below a group, so each must occur the same number of times."""

    def occurrences(name):
        if name in TASKS.tasks:
            return [name]
        return [leaf for member in TASKS.groups[name] for leaf in occurrences(member)]

    leaves = occurrences(suite + suffix)
    counts = {leaf: leaves.count(leaf) for leaf in leaves}
    assert len(set(counts.values())) == 1
    assert set(counts) == {
        dataset.id + suffix
        for dataset in TASKS.datasets.values()
        if dataset.metadata.suite == suite and not dataset.metadata.control_of
    }


def test_the_control_of_a_dataset_is_a_task_that_counts_nowhere():
    controls = {name for name, dataset in TASKS.datasets.items() if dataset.metadata.control_of}
    assert "clinicbench_pharmacology_qa_shuffled" in controls
    grouped = {task for name in TASKS.groups for task in TASKS.leaves(name)}
    for name in controls:
        assert TASKS.datasets[name].metadata.control_of in TASKS.datasets
        names = [TASKS.datasets[name].task(strategy) for strategy in TASKS.datasets[name].strategies]
        assert [TASKS.leaves(task) for task in names] == [[task] for task in names]
        assert not {name, f"{name}_cot", f"{name}_5shot"} & grouped
    assert not any(TASKS.datasets[name].of_paper for name in controls)


@pytest.mark.parametrize("suite", SUITES)
def test_groups_have_the_sizes_that_the_papers_print(suite):
    assert {size(suite, strategy) for strategy in STRATEGIES} == {SUITES[suite]}
    assert {name: size(f"{suite}_{name}") for name in SIZES[suite]} == SIZES[suite]


def test_groups_of_small_parts_cover_their_suite():
    assert len({name for name in TASKS.groups if name.startswith("clinicbench_task_")}) == 3 * 11
    subcategories = TASKS.suites["medhelm"].axes["subcategory"].titles
    assert len(subcategories) == 22 and sum(size(f"medhelm_sub_{name}") for name in subcategories) == 37


def test_names_are_unique_and_groups_hold_one_strategy():
    assert not TASKS.tasks.keys() & TASKS.groups.keys()
    for name in TASKS.groups:
        assert len({TASKS.tasks[leaf][1] for leaf in TASKS.leaves(name)}) == 1
    assert set(TASKS.leaves("medtasks_scoreable")) <= set(TASKS.leaves("medtasks_open"))


def test_the_taxonomy_has_5_categories_22_subcategories_and_121_tasks():
    categories = TASKS.suites["medhelm"].axes["subcategory"].parts
    parts = [part for entry in categories.values() for part in entry.values()]
    assert (len(categories), len(parts), sum(len(part.tasks) for part in parts)) == (5, 22, 121)
    assert len({task for part in parts for task in part.tasks}) == 121


def test_the_table_in_the_readme_counts_what_is_there():
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    for suite, n in SUITES.items():
        assert f"| {TASKS.suites[suite].title} | {n} | " in text


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(MedtasksError, match="bridge_zh"):
        TASKS.resolve(["bridge_hz"])


def test_globs_resolve_to_all_matching_names():
    assert {"bridge_mie", "bridge_mie_cot"} <= set(TASKS.resolve(["bridge_mie*"]))


def test_a_dataset_is_asked_in_its_own_strategies_alone(medtasks):
    """HealthBench's dialogues are asked as they are: nothing of ours stands before a patient's words."""
    for name in ("healthbench", "healthbench_professional", "healthbench_hard", "healthbench_consensus"):
        assert [TASKS.tasks[leaf][1] for leaf in TASKS.leaves(name)] == ["zero_shot"]
        assert not TASKS.knows(f"{name}_cot") and name.count("_") < 2
    assert "healthbench_full_cot" not in TASKS.tasks and "bridge_mie_cot" in TASKS.tasks
    refused = medtasks("preview", "healthbench_full_cot", "--data", "sample")
    assert refused.code == 2 and "did you mean: healthbench_full," in refused.err
    assert "1 dataset, each as TASK;" in medtasks("ls", "healthbench").out
    assert "(1 have fewer)" in medtasks("ls", "healthbench", "medhelm_medqa").out


@pytest.mark.parametrize(
    "given", [[], ["cot"], ["zero_shot", "zero_shot"], ["five_shot", "zero_shot"], ["likelihood"]]
)
def test_strategies_of_a_task_file_are_checked(tasks_of, medtasks, given):
    folder = tasks_of("healthbench/full")
    file = folder / "healthbench/full/task.yaml"
    file.write_text(
        file.read_text("utf-8").replace("strategies: [zero_shot]", f"strategies: {given}"), "utf-8"
    )
    outcome = medtasks("dev", "validate", "healthbench_full")
    assert outcome.code == 1 and "strategies" in outcome.text


DRAFTS = {name: item for name, item in registry().datasets.items() if item.metadata.draft}
DRAFT = "medhelm_live_healthqa_br"


def test_a_draft_is_in_no_group():
    tasks = registry()
    assert DRAFT in DRAFTS
    held = {tasks.tasks[leaf][0].id for name in tasks.groups for leaf in tasks.leaves(name)}
    assert not held & DRAFTS.keys()
    assert not {name for group in groups_of(tasks) for name in group.datasets} & DRAFTS.keys()
    assert not [name for name, item in DRAFTS.items() if item.joined_later or item.of_paper]


@pytest.mark.parametrize("name", DRAFTS)
def test_every_command_says_that_it_is_a_draft(medtasks, tmp_path, name):
    why = DRAFTS[name].metadata.draft
    for words in (("ls", name), ("dev", "validate", name), ("preview", name, "--data", "sample")):
        outcome = medtasks(*words)
        assert outcome.code == 0 and "draft" in outcome.out.lower() and why in outcome.out, words
    assert json.loads(medtasks("ls", "--json", name).out)[0]["draft"] == why
    done = medtasks("run", "--model", "oracle", "--tasks", name, "--data", "sample", "--output_path", "run")
    assert done.code == 0 and f"{name} is a draft, in no group" in " ".join(done.out.split())


def test_a_report_shows_a_draft_and_counts_it_nowhere(medtasks, tmp_path):
    write_run(tmp_path / "run", "m", {DRAFT: [1.0, 0.0], "bridge_mednli": [1.0, 1.0]})
    outcome = medtasks("report", "run", "-o", "report")
    assert outcome.code == 0 and f"{DRAFT} is a draft, in no group" in " ".join(outcome.out.split())
    rows = list(csv.DictReader((tmp_path / "report" / "results.csv").open(encoding="utf-8")))
    drafts = {row["dataset"]: row["draft"] for row in rows}
    assert drafts[DRAFT] == DRAFTS[DRAFT].metadata.draft and not drafts["bridge_mednli"]
    groups = list(csv.DictReader((tmp_path / "report" / "groups.csv").open(encoding="utf-8")))
    assert {row["suite"] for row in groups} == {"", "bridge"}
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "HealthQA-BR (draft)" in page
