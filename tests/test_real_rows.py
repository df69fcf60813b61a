"""Real rows of openly published datasets through the whole path: oracle, wrong answers, and gold by hand.

`MEDTASKS_REAL_ROWS` names a folder of such rows in their original schema; without it these tests skip.
"""

import ast
import csv
import json
import os
import shutil
import xml.etree.ElementTree as ElementTree
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from medtasks_ext.models import Baseline, Oracle
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import STRATEGIES, registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from tests.conftest import write_jsonl

REAL_ROWS = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set"
)

TASKS = registry()
DRUGS = "clinicbench_new_tasks/Treatment-Recommendation.csv"
HEAD_QA = "headqa/HEAD_EN/test_HEAD_EN.json"
MEDEC = "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv"
_VALIDATION = "MEDIQA2019-Task2-RQE-ValidationSet-AMIA2016.xml"
_CANTEMIST = {"cantemist/dev-set1": "test-set", "cantemist/train-set": "train-set"}
#: dataset -> files as they lie in the folder -> where they go in the dataset's part of the data folder
FILES = {
    "bridge_dialmed": {"dialmed/test.txt": "test.jsonl", "dialmed/dev.txt": "fewshot.jsonl"},
    "bridge_cmedqa": {"cmedqa2/train.jsonl": "test.jsonl"},
    "medhelm_medqa": {"medqa_usmle/phrases_no_exclude_test.jsonl": "test.jsonl"},
    "medhelm_head_qa": {HEAD_QA: "test.json"},
    "medhelm_medbullets": {"medbullets/medbullets_op5.csv": "test.csv"},
    "medhelm_medmcqa": {"medmcqa/train.jsonl": "test.jsonl"},
    "medhelm_pubmedqa": {"pubmedqa/ori_pqal.json": "test.json"},
    "medhelm_medhallu": {"medhallu/pqa_labeled.jsonl": "test.jsonl"},
    "medhelm_medcalc_bench": {"medcalc_bench/test_data.csv": "test.csv"},
    "medhelm_medec": {MEDEC: "test.csv"},
    "medhelm_aci_bench": {
        "aci_bench/challenge_data/valid.csv": "test.csv",
        "aci_bench/challenge_data/train.csv": "fewshot.csv",
    },
    "medhelm_medication_qa": {"medicationqa/hf_train.jsonl": "test.jsonl"},
    "medhelm_mediqa": {"mediqa2019_qa/MEDIQA2019-Task3-QA-ValidationSet.xml": "test.xml"},
    "clinicbench_pubmedqa": {"pubmedqa/ori_pqal.json": "test.json"},
    "clinicbench_medqa": {"medqa_usmle/phrases_no_exclude_test.jsonl": "test.jsonl"},
    "clinicbench_medmcqa": {"medmcqa/train.jsonl": "test.jsonl"},
    "clinicbench_mmlu_med": {"mmlu_medical/hf_test.jsonl": "test.jsonl"},
    "clinicbench_treatment_recommendation": {DRUGS: "test.csv"},
    "mlb_cmexam": {"cmexam/val.csv": "test.csv"},
}
#: dataset -> files or folders as they lie there -> where they go below its `original` folder
ORIGINALS = {
    "bridge_ade_extraction": {"ade_corpus_v2/DRUG-AE.rel": "DRUG-AE.rel"},
    "bridge_cantemist_ner": _CANTEMIST,
    "bridge_cantemist_coding": _CANTEMIST,
    "bridge_cantemist_norm": {
        f"cantemist/{part}/cantemist-{files}": f"{name}/cantemist-norm"
        for part, name in (("dev-set1", "test-set"), ("train-set", "train-set"))
        for files in ("norm", "ner/*.txt")
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
#: dataset -> folder of reports, each a text file, that become its rows
REPORTS = {"medhelm_mtsamples": "mtsamples_processed", "medhelm_mtsamples_procedures": "mtsample_procedure"}
#: read where a download would lie, by each dataset's own `rows.download`
DOWNLOADED = (
    *("clinicbench_bc5_disease", "clinicbench_ncbi_disease", "clinicbench_ddi", "clinicbench_gad"),
    *("clinicbench_pharmacology_qa", "clinicbench_pharmacology_qa_shuffled", "clinicbench_drug_interaction"),
)
JUDGED = ("medhelm_aci_bench", "medhelm_medication_qa", "medhelm_mediqa", *REPORTS)
#: of 30 questions of HEAD-QA two have an image
DOCUMENTS = {
    "medhelm_head_qa": 28, "medhelm_medbullets": 30, "medhelm_medmcqa": 60, "medhelm_pubmedqa": 60,
    "medhelm_medhallu": 120, "medhelm_medcalc_bench": 47, "medhelm_medec": 60, "medhelm_mediqa": 25,
}  # fmt: skip


@pytest.fixture
def place(data_dir, tmp_path, monkeypatch):
    """Put a dataset's real rows where it reads them."""

    def put(name: str) -> str:
        suite, _, folder = name.partition("_")
        target = data_dir / suite / folder / ("original" if name in ORIGINALS else "")
        target.mkdir(parents=True)
        for source, copied in (FILES | ORIGINALS).get(name, {}).items():
            for path in REAL_ROWS.glob(source):
                copy(path, target / copied)
        if name in REPORTS:
            texts = sorted((REAL_ROWS / "mtsamples" / "docs" / REPORTS[name]).glob("*.txt"))
            rows = [{"file": text.name, "text": text.read_text("utf-8")} for text in texts]
            write_jsonl(target / "test.jsonl", rows)
        if name in DOWNLOADED:
            monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
            download = TASKS.datasets[name].blocks["rows"]["download"]
            for part, content in downloads(name, tmp_path).items():
                url = download[part][0].partition("!")[0].format(revision=download["revision"])
                kept = tmp_path / "cache" / sha256(url.encode()).hexdigest()[:16] / Path(url).name
                kept.parent.mkdir(parents=True)
                kept.write_bytes(content)
            load_documents.__globals__["_build"].cache_clear()  # the cache folder is no part of its key
        return name

    return put


def copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def downloads(name: str, folder: Path) -> dict[str, bytes]:
    """The files of a dataset of ClinicBench as its authors distribute them, cut in two where one is here."""
    match name.removeprefix("clinicbench_"):
        case "bc5_disease" | "ncbi_disease" as disease:
            found = "bc5cdr/BC5CDR-disease-IOB" if disease == "bc5_disease" else "ncbi_disease/conll"
            blocks = (REAL_ROWS / found / "devel.tsv").read_text(encoding="utf-8").strip().split("\n\n")
            half = len(blocks) // 2
            return {
                "test": "\n\n".join(blocks[:half]).encode(),
                "fewshot": "\n\n".join(blocks[half:]).encode(),
            }
        case "gad":
            rows = (REAL_ROWS / "gad" / "1" / "train.tsv").read_text(encoding="utf-8").strip().split("\n")
            numbered = [f"{number}\t{row}" for number, row in enumerate(rows)]
            return {
                part: "\n".join(["index\tsentence\tlabel", *numbered[start::2]]).encode()
                for part, start in (("test", 0), ("fewshot", 1))
            }
        case "ddi":
            return {"test": ddi_archive(folder)}
        case "drug_interaction":
            path = "Drug-Interaction-for-Emerging-Drugs.csv"
        case _:
            path = "Pharmacology-QA.xlsx"
    return {"test": (REAL_ROWS / "clinicbench_new_tasks" / path).read_bytes()}


def ddi_archive(folder: Path) -> bytes:
    """An archive laid out like the corpus: some documents as its test part, the others where they are."""
    path = folder / "corpus.zip"
    documents = sorted((REAL_ROWS / "ddi2013" / "DDICorpus" / "Train").rglob("*.xml"))
    with zipfile.ZipFile(path, "w") as archive:
        for number, file in enumerate(documents):
            part = "Test/Test for DDI Extraction task" if number % 2 else "Train"
            archive.write(file, f"DDICorpus/{part}/{file.parent.name}/{file.name}")
        # shots come from named documents of the training part, which the folder need not hold
        for name in TASKS.datasets["clinicbench_ddi"].blocks["rows"]["download"]["fewshot"]:
            member = f"DDICorpus/{name.partition('!')[2]}"
            if member not in archive.namelist():
                archive.writestr(
                    member,
                    '<document><sentence id="x" text="a and b"><entity id="e0" charOffset="0-0"/>'
                    '<entity id="e1" charOffset="6-6"/><pair id="p" e1="e0" e2="e1" ddi="false"/>'
                    "</sentence></document>",
                )
    return path.read_bytes()


class Wrong(Baseline):
    """The next answer of another document."""

    def answer(self, request, requests):
        targets = request.doc.loaded.targets
        place = targets.index(request.doc["target"])
        return next(text for text in targets[place:] + targets if text != request.doc["target"])


class Fixed(Baseline):
    def __init__(self, rule) -> None:
        super().__init__()
        self.rule = rule

    def answer(self, request, requests):
        return self.rule(request.doc)


def origin(name: str) -> str:
    return "hub" if name.removesuffix("_cot").removesuffix("_5shot") in DOWNLOADED else "local"


def metrics(task: str, model: Baseline) -> dict[str, float]:
    settings = Settings(data=origin(task))
    outcome = evaluate_task(model, build_task(TASKS, task, settings), settings)
    assert outcome is not None
    return outcome.metrics


def documents_of(task: str) -> list:
    return list(build_task(TASKS, task, Settings(data=origin(task))).eval_docs)


def table(source: str) -> list[dict]:
    with (REAL_ROWS / source).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if any(row.values())]


def lines(source: str) -> list[dict]:
    return [json.loads(line) for line in (REAL_ROWS / source).read_text(encoding="utf-8").splitlines()]


def are_some_of(found: list, rows: list) -> bool:
    """Whether they are among the rows, in the same order."""
    rest = iter(rows)
    return all(any(item == row for row in rest) for item in found)


def ceiling(name: str, documents: list) -> float:
    """That of the card; categories that HELM's MedCalc metric does not know count as wrong."""
    if name != "medhelm_medcalc_bench":
        return TASKS.datasets[name].metadata.oracle_max
    rows = table("medcalc_bench/test_data.csv")
    unknown = {row["Row Number"] for row in rows if row["Category"] in ("lab", "lab test", "dosage")}
    return sum(document["id"] not in unknown for document in documents) / len(documents)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", [*FILES, *ORIGINALS, *REPORTS, *DOWNLOADED])
def test_the_oracle_reaches_its_ceiling_and_wrong_answers_do_not(place, name, strategy):
    task = TASKS.datasets[place(name)].task(strategy)
    perfect, documents = metrics(task, Oracle()), documents_of(task)
    assert perfect["valid"] == 1 and "SAMPLE_DATA" not in perfect
    assert documents[0].loaded.record["rebuilt"] or name not in ORIGINALS
    if name in DOCUMENTS and strategy != "five_shot":
        assert len(documents) == DOCUMENTS[name]
    if name in JUDGED:
        assert perfect["rouge_1"] == perfect["rouge_l"] == 1
        assert perfect["scored"] == 0 and "score" not in perfect
    else:
        assert perfect["score"] == pytest.approx(ceiling(name, documents))
        # in MEDEC whoever reports any error has the flag right
        assert metrics(task, Wrong())["score"] < (0.5 if name != "medhelm_medec" else 0.7)


def test_gold_letters_of_clinicbench_are_those_of_the_rows(place):
    expected = {
        "medqa": [row["answer_idx"] for row in lines("medqa_usmle/phrases_no_exclude_test.jsonl")],
        "medmcqa": ["ABCD"[row["cop"]] for row in lines("medmcqa/train.jsonl")],
        # of the file of all subjects the suite takes one
        "mmlu_med": ["ABCD"[row["answer"]] for row in lines("mmlu_medical/hf_test.jsonl")
                     if row["subject"] == "professional_medicine"],
    }  # fmt: skip
    for name, letters in expected.items():
        golds = [document["gold"] for document in documents_of(place(f"clinicbench_{name}"))]
        assert are_some_of(golds, letters)
        assert len(golds) == len(letters) - 5  # without a pool, five rows are kept for shots


def test_recommended_drugs_are_those_of_the_rows_under_generic_names_or_brands(place):
    task = place("clinicbench_treatment_recommendation")
    rows = [ast.literal_eval(row["commonMedications"]) for row in table(DRUGS)]
    golds = [document["gold"] for document in documents_of(task)]
    assert are_some_of(golds, rows) and len(golds) == len(rows) - 5
    assert [document["gold"] for document in documents_of(f"{task}_5shot")] == golds
    generic = Fixed(lambda document: "\n".join(drug.split(" (")[0] for drug in document["gold"]))
    got = metrics(task, generic)
    assert got["micro_f1"] == got["micro_f1_substring"] == 1
    brands = Fixed(lambda document: "; ".join(drug.split("(")[-1].strip(")") for drug in document["gold"]))
    got = metrics(task, brands)
    assert got["micro_precision"] == 1
    assert got["micro_recall"] > 0.99  # a brand that two entries share is one name
    got = metrics(task, Fixed(lambda document: "I think so.\nFinal Answer: " + document["gold"][0]))
    assert got["micro_precision"] == got["list_length"] == 1
    assert got["micro_recall"] == pytest.approx(len(golds) / sum(map(len, golds)))


def test_medec_sentences_with_an_error_never_score(place):
    perfect = metrics(place("medhelm_medec"), Oracle())
    right = sum(row["Error Flag"] == "0" for row in table(MEDEC)) / len(table(MEDEC))
    assert perfect["medec_error_sentence_accuracy"] == pytest.approx(right)
    assert perfect["correction_rouge_avg"] == pytest.approx(1)


def test_gold_of_mediqa_is_the_answer_that_experts_ranked_first(place):
    root = ElementTree.parse(REAL_ROWS / "mediqa2019_qa" / "MEDIQA2019-Task3-QA-ValidationSet.xml").getroot()
    best = {
        question.get("QID"): answer.findtext("AnswerText").strip()
        for question in root.iter("Question")
        for answer in question.iter("Answer")
        if answer.get("ReferenceRank") == "1"
    }
    assert {doc["id"]: doc["gold"] for doc in documents_of(place("medhelm_mediqa"))} == best


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_cut_where_helm_cuts_them(place, name):
    cut = ["PLAN:"] if name == "medhelm_mtsamples" else ["PLAN:", "SUMMARY:", "FINDINGS:"]
    expected = {}
    for path in (REAL_ROWS / "mtsamples" / "docs" / REPORTS[name]).glob("*.txt"):
        text = note = path.read_text("utf-8").strip()
        marks = [mark for mark in ("PLAN:", "SUMMARY:", "FINDINGS:") if mark in text]
        gold = next(filter(None, (text.split(mark)[1].split("\n")[0].strip() for mark in marks)), None)
        for mark in cut:
            note = note.split(mark)[0].strip()
        late = name == "medhelm_mtsamples" and path.name > "Ophthalmology - Letter - 3.txt"
        if gold and not late and "#" not in path.name:
            expected[path.name] = (note, gold)
    documents = documents_of(place(name))
    assert {doc["id"]: (doc["question"], doc["gold"]) for doc in documents} == expected
    assert len(documents) > 5
