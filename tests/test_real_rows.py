"""Real rows of openly published datasets through the whole path: oracle and wrong answers.

`MEDTASKS_REAL_ROWS` names a folder of such rows in their original schema; without it these tests skip.
"""

import os
import shutil
from pathlib import Path

import pytest

from medtasks_ext.models.baselines import Baseline, NearestShot, Oracle
from medtasks_ext.registry import STRATEGIES, registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from tests.conftest import read_json

REAL_ROWS = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))
real_rows_only = pytest.mark.skipif(
    not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set"
)
pytestmark = real_rows_only

#: task -> files as they lie in the folder -> where they go in the data folder
FILES = {
    "bridge_dialmed": {"dialmed/test.txt": "test.jsonl", "dialmed/dev.txt": "fewshot.jsonl"},
    "bridge_cmedqa": {"cmedqa2/train.jsonl": "test.jsonl"},
    "medhelm_medqa": {"medqa_usmle/phrases_no_exclude_test.jsonl": "test.jsonl"},
    "clinicbench_pubmedqa": {"pubmedqa/ori_pqal.json": "test.json"},
    "mlb_cmexam": {"cmexam/val.csv": "test.csv"},
}
_VALIDATION = "MEDIQA2019-Task2-RQE-ValidationSet-AMIA2016.xml"
_CANTEMIST = {"cantemist/dev-set1": "test-set", "cantemist/train-set": "train-set"}
#: task -> files or folders as they lie there -> where they go below its `original` folder
ORIGINALS = {
    "bridge_ade_extraction": {"ade_corpus_v2/DRUG-AE.rel": "DRUG-AE.rel"},
    "bridge_cantemist_ner": _CANTEMIST,
    "bridge_cantemist_coding": _CANTEMIST,
    "bridge_cantemist_norm": {
        **{
            f"cantemist/{part}/cantemist-norm": f"{name}/cantemist-norm"
            for part, name in (("dev-set1", "test-set"), ("train-set", "train-set"))
        },
        **{
            f"cantemist/{part}/cantemist-ner/*.txt": f"{name}/cantemist-norm"
            for part, name in (("dev-set1", "test-set"), ("train-set", "train-set"))
        },
    },
    "bridge_meddocan": {"meddocan/corpus/test": "meddocan/test", "meddocan/corpus/dev": "meddocan/train"},
    "bridge_nubes": {"nubes/NUBes": "NUBes"},
    "bridge_clinpt_ner": {"clinpt_ner/docs": "repository"},
    "bridge_rudrec_ner": {"rudrec/rudrec_annotated.json": "rudrec_annotated.json"},
    "bridge_jp_sts": {"japanese_clinical_sts/dataset_JA_Clinical_STS.xlsx": "dataset_JA_Clinical_STS.xlsx"},
    "bridge_norsynthclinical_ner": {
        "norsynthclinical/all_sentences.vert.entity": "all_sentences.vert.entity"
    },
    "bridge_norsynthclinical_re": {"norsynthclinical/pal_annotate": "pal_annotate"},
    "bridge_norsynthclinical_phi": {
        "norsynthclinical_phi/reference_standard_annotated.txt": "reference_standard_annotated.txt"
    },
    "bridge_mediqa_2019_rqe": {
        f"mediqa2019_rqe/{_VALIDATION}": "MEDIQA2019-Task2-RQE-TestSet-wLabels.xml",
        f"mediqa2019_rqe/./{_VALIDATION}": _VALIDATION,
    },
}
TASKS = registry()


class Wrong(Baseline):
    def answer(self, request, requests):
        targets = request.doc.loaded.targets
        return targets[(targets.index(request.doc["target"]) + 1) % len(targets)]


@pytest.fixture(params=[*FILES, *ORIGINALS])
def real(request, data_dir) -> str:
    suite, _, folder = request.param.partition("_")
    target = data_dir / suite / folder / ("original" if request.param in ORIGINALS else "")
    target.mkdir(parents=True)
    for source, name in (FILES | ORIGINALS)[request.param].items():
        for path in REAL_ROWS.glob(source):
            copy(path, target / name)
    return request.param


def copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


class Fixed(Baseline):
    def __init__(self, rule) -> None:
        super().__init__()
        self.rule = rule

    def answer(self, request, requests):
        return self.rule(request.doc)


def metrics(name: str, model: Baseline, data: str = "local") -> dict[str, float]:
    """Of a task: its name, or that of a dataset and a strategy with a blank between."""
    dataset, _, strategy = name.partition(" ")
    task = TASKS.datasets[dataset].task(strategy) if strategy else name
    settings = Settings(data=data)
    outcome = evaluate_task(model, build_task(TASKS, task, settings), settings)
    assert outcome is not None
    return outcome.metrics


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_oracle_reaches_its_ceiling_and_wrong_answers_do_not(real, strategy):
    name = TASKS.datasets[real].task(strategy)
    perfect, wrong = metrics(name, Oracle()), metrics(name, Wrong())
    assert perfect["score"] == pytest.approx(TASKS.datasets[real].metadata.oracle_max)
    assert perfect["valid"] == 1 and "SAMPLE_DATA" not in perfect
    assert wrong["score"] < 0.5
    if real in ORIGINALS:
        assert build_task(TASKS, name, Settings(data="local")).test_docs()[0].loaded.record["rebuilt"]


def test_a_floor_that_reads_the_input_is_below_the_ceiling(real):
    assert metrics(TASKS.datasets[real].task("five_shot"), NearestShot())["score"] < 0.7


def test_labels_of_dialmed_are_those_of_its_authors():
    labels = read_json(REAL_ROWS / "dialmed" / "label.json")
    answer = TASKS.datasets["bridge_dialmed"].blocks["answer"]
    assert set(answer["labels"]) == set(labels)
