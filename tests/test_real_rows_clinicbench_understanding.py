"""Rows of ClinicBench's understanding sets as their authors distribute them, through the whole path.

`MEDTASKS_REAL_ROWS` names a folder of such rows; without it these tests skip. The files stand in the cache
as if they had been downloaded, so that each dataset's own `rows.download` reads them.
"""

import random
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from medtasks_ext.models.baselines import Baseline, Oracle
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import STRATEGIES
from tests.test_real_rows import REAL_ROWS, TASKS, metrics, real_rows_only

pytestmark = real_rows_only


def tagged(folder: str) -> tuple[bytes, bytes]:
    blocks = (REAL_ROWS / folder / "devel.tsv").read_text(encoding="utf-8").strip().split("\n\n")
    half = len(blocks) // 2
    return tuple("\n\n".join(part).encode() for part in (blocks[:half], blocks[half:]))  # type: ignore[return-value]


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


def gad() -> tuple[bytes, bytes]:
    rows = (REAL_ROWS / "gad" / "1" / "train.tsv").read_text(encoding="utf-8").strip().split("\n")
    numbered = [f"{number}\t{row}" for number, row in enumerate(rows)]
    return tuple(
        "\n".join(["index\tsentence\tlabel", *part]).encode() for part in (numbered[::2], numbered[1::2])
    )  # type: ignore[return-value]


def files(name: str, folder: Path) -> tuple[bytes, bytes | None]:
    """Test file and few-shot file of a dataset, None where there is none or it is the same."""
    match name:
        case "bc5_disease":
            return tagged("bc5cdr/BC5CDR-disease-IOB")
        case "ncbi_disease":
            return tagged("ncbi_disease/conll")
        case "ddi":
            return ddi_archive(folder), None
        case "gad":
            return gad()
        case "drug_interaction":
            path = "Drug-Interaction-for-Emerging-Drugs.csv"
        case _:
            path = "Pharmacology-QA.xlsx"
    return (REAL_ROWS / "clinicbench_new_tasks" / path).read_bytes(), None


NAMES = ["bc5_disease", "ncbi_disease", "ddi", "gad", "pharmacology_qa", "pharmacology_qa_shuffled",
         "drug_interaction"]  # fmt: skip


@pytest.fixture(params=NAMES)
def downloaded(request, tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    name = f"clinicbench_{request.param}"
    download = TASKS.datasets[name].blocks["rows"]["download"]
    contents = files(request.param, tmp_path)
    for part, content in zip(("test", "fewshot"), contents, strict=True):
        if content is not None:
            url = download[part][0].partition("!")[0].format(revision=download["revision"])
            place = tmp_path / "cache" / sha256(url.encode()).hexdigest()[:16] / Path(url).name
            place.parent.mkdir(parents=True)
            place.write_bytes(content)
    load_documents.__globals__["_build"].cache_clear()  # the cache folder is no part of its key
    return name


class Wrong(Baseline):
    def answer(self, request, requests):
        others = [target for target in request.doc.loaded.targets if target != request.doc["target"]]
        return random.Random(request.doc["id"]).choice(others)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_oracle_reaches_1_and_wrong_answers_do_not(downloaded, strategy):
    name = TASKS.datasets[downloaded].task(strategy)
    perfect = metrics(name, Oracle(), "hub")
    assert perfect["score"] == perfect["valid"] == 1 and "SAMPLE_DATA" not in perfect
    assert metrics(name, Wrong(), "hub")["score"] < 0.5


def test_rows_have_gold_and_prompts_show_them(downloaded):
    splits = load_documents(TASKS.datasets[downloaded], cot=False, origin="hub")
    documents = splits["test"]
    assert len(documents) >= 25 and len(splits["fewshot"]) >= 5
    assert len({document["id"] for document in documents}) == len(documents)
    for document in documents:
        match downloaded:
            case "clinicbench_bc5_disease" | "clinicbench_ncbi_disease":
                lines = document["target"].split("\n")
                assert lines == ["None"] or all(line in document["prompt"] for line in lines)
            case "clinicbench_ddi":
                text = document.input
                assert text.count("@DRUG$") == 2 or text.count("@DRUG-DRUG$") == 1
            case "clinicbench_gad":
                assert "@GENE$" in document.input and "@DISEASE$" in document.input
            case "clinicbench_pharmacology_qa" | "clinicbench_pharmacology_qa_shuffled":
                assert len(set(document["options"])) == 4
