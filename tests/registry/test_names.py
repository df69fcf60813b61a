"""Names and groups derived from metadata."""

import re

import pytest
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import STRATEGIES, SUFFIX, registry, vocabulary
from medtasks_ext.registry.strategies import LIKELIHOOD
from tools.catalogue import pages

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


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(MedtasksError, match="bridge_zh"):
        TASKS.resolve(["bridge_hz"])


def test_a_dataset_is_asked_in_its_own_strategies_alone(medtasks):
    """HealthBench's dialogues are asked as they are: nothing of ours stands before a patient's words."""
    for name in ("healthbench", "healthbench_professional", "healthbench_hard", "healthbench_consensus"):
        assert [TASKS.tasks[leaf][1] for leaf in TASKS.leaves(name)] == ["zero_shot"]
        assert not TASKS.knows(f"{name}_cot") and name.count("_") < 2
    assert "healthbench_full_cot" not in TASKS.tasks and "bridge_mie_cot" in TASKS.tasks
    refused = medtasks("preview", "healthbench_full_cot", "--data", "sample")
    assert refused.code == 2 and "did you mean: healthbench_full," in refused.err
    assert "1 dataset, each as TASK;" in medtasks("ls", "healthbench").out


PAGES = {name.removesuffix(".md"): text for name, text in pages(TASKS).items()}
SECTION = re.compile(
    r'<a id="([a-z0-9_]+)"></a>\n\n### (.*?)(?=\n<a id="[a-z0-9_]+"></a>\n\n###|\n## |\Z)', re.DOTALL
)
SECTIONS = {task: text for suite in TASKS.suites for task, text in SECTION.findall(PAGES[suite])}


@pytest.mark.parametrize("dataset", TASKS.datasets.values(), ids=list(TASKS.datasets))
def test_a_section_has_every_fact_of_the_metadata(dataset):
    record, text = dataset.metadata, SECTIONS[dataset.id]
    facts = [
        record.name, record.summary, f"`{dataset.id}`, version {dataset.version}", record.licence.title,
        f"use: {record.use}", f"text to a third party: {record.third_party_api}",
        *([f"<{record.licence.place}>"] if record.licence.evidence else []),
        f"<{record.url}>", f"score: `{record.primary_metric}`", f"test rows: {record.n_test:,}",
        f"access: {record.access}", *record.open_questions,
        vocabulary()["languages"][record.language], vocabulary()["task_types"][record.task_type],
        vocabulary()["stages"][record.stage],
        *(vocabulary()["specialties"][value] for value in record.specialties),
        *(vocabulary()["document_types"][value] for value in record.document_types),
        *(f"[{key}](#ref-{key})" for key in record.axis("citation")),
    ]  # fmt: skip
    assert [fact for fact in facts if fact not in text] == []
    assert ("scoreable" in text) == record.scoreable
    page = PAGES[record.suite]
    assert f"](#{dataset.id})" in page
    assert all(f'<a id="ref-{key}"></a>`{key}`: ' in page for key in record.axis("citation"))
