"""Official prompts are asked as the suites' own code asks them, and what stands against it is said."""

import json
import os
import re
import shutil
import zipfile
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
import yaml
from lm_eval.utils import apply_template

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.fit import shared_characters
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import forget, registry
from medtasks_ext.task import MedicalTask
from tests.conftest import ROOT, read_json, sample_rows, sft_row, write_jsonl
from tests.prompts.official_proof import digest, verify


def one_document(name: str, **named: object):
    dataset = registry().dataset(name)
    return load_documents(dataset, cot=False, origin="sample", **named)["test"][0]


@pytest.mark.parametrize(
    ("suite", "way", "n", "needed"),
    [
        ("medhelm", None, 37, "crfm_helm-*.whl"),
        *(("bridge", way, 87, "") for way in ("zero_shot", "five_shot", "no_system")),
        ("bridge", "cot", 87, "config.py"),
        ("medmarks", None, 11, "careqa.py"),
    ],
)
def test_the_turns_of_every_dataset_are_those_of_the_official_code(released, suite, way, n, needed):
    if needed and not list(released.glob(f"official/*/{needed}")):
        pytest.skip(f"{needed} is not here: medtasks data fetch official")
    verdicts = list(verify(registry(), registry().suites[suite], [way] if way else []))
    assert len(verdicts) == n
    assert [verdict for verdict in verdicts if not verdict.ok] == []
    assert all(verdict.n for verdict in verdicts)
    assert suite != "medhelm" or all(verdict.same_budget for verdict in verdicts)


def test_a_changed_word_is_found_by_the_proof(helm, tasks_of, monkeypatch):
    root = tasks_of("medhelm/medec")
    monkeypatch.setenv("MEDTASKS_CACHE", str(helm.parents[2]))
    shutil.copy(ROOT / "tasks/medhelm/official.json", root / "medhelm")
    file = root / "medhelm/medec/task.yaml"
    file.write_text(file.read_text().replace("input: Sentences | trim", "input: Sentences | trim | upper"))
    (verdict,) = verify(registry(), registry().suites["medhelm"])
    assert (verdict.same, verdict.ok) == (0, False) and verdict.n > 0


def test_own_prompts_are_asked_where_they_are_wanted_or_the_official_ones_are_not_here(
    helm, monkeypatch, tmp_path
):
    official = one_document("medhelm/medqa")
    record = official.loaded.record
    named = record["instruction"], record["artefact"], record["artefact_revision"]
    assert named == ("official", helm.name, "0.5.16")
    own = one_document("medhelm/medqa", prompts="own")
    assert own.loaded.record["instruction"] == "own" and own["prompt"] != official["prompt"]
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "empty"))
    assert one_document("medhelm/medqa")["prompt"] == own["prompt"]
    with pytest.raises(MedtasksError, match="medtasks data fetch official DIR"):
        one_document("medhelm/medqa", prompts="official")


@pytest.mark.parametrize(
    ("name", "prompts", "said"),
    [
        ("bridge/mednli", "theirs", "use one of: auto, official, own"),
        ("mlb/maexam", "official", "MLB has published no prompt"),
        ("bridge/chip_ctc", "official", "the hub cannot be reached(.|\n)*→"),
    ],
)
def test_official_prompts_that_nobody_has_are_an_error(data_dir, released, name, prompts, said):
    with pytest.raises(MedtasksError, match=said):
        one_document(name, prompts=prompts)


@pytest.mark.parametrize("strategy", ["cot", "five_shot"])
def test_ways_of_asking_that_the_suite_does_not_have_are_ours(helm, strategy):
    dataset = registry().dataset("medhelm/medqa")
    task = MedicalTask.of(dataset, strategy, {"data": "sample"})
    assert task.eval_docs[0].loaded.record["instruction"] == "own"
    with pytest.raises(MedtasksError, match="there are no official prompts for"):
        MedicalTask.of(dataset, strategy, {"data": "sample", "prompts": "official"})


@pytest.mark.parametrize(
    "name", ["cdi_qa", "clinic_referral", "ehrshot", "ent_referral", "hospice_referral", "medalign"]
)
def test_reasoning_about_a_long_record_is_asked_behind_the_same_words(helm, name):
    """An engine reads the record once. The line that asks at once is gone, ours stands in its place."""
    dataset, demand = registry().dataset(f"medhelm/{name}"), "Do not"
    direct, cot = (load_documents(dataset, cot=way, origin="sample")["test"] for way in (False, True))
    assert {item.loaded.record["instruction"] for item in cot} == {"official, own strategy line"}
    for one, other in zip(direct, cot, strict=True):
        alike = shared_characters(one["prompt"], other["prompt"])
        after = other["prompt"][alike:]
        assert one.record in one["prompt"][:alike] and "reason step by step" in after and len(after) < 200
        assert demand not in after and "\0" not in other["prompt"]
        assert (demand in one["prompt"][alike:]) == (name != "medalign")


def test_rows_are_numbered_before_any_is_drawn(helm, tasks_of, data_dir, monkeypatch):
    root = tasks_of("medhelm/ent_referral")
    monkeypatch.setenv("MEDTASKS_CACHE", str(helm.parents[2]))
    file = root / "medhelm/ent_referral/task.yaml"
    file.write_text(file.read_text().replace("max_test: 1000", "max_test: 3"))
    rows = [{"prompt": f"question {n}", "context": "note", "label": "AB"[n % 2]} for n in range(1, 21)]
    write_jsonl(data_dir / "medhelm/ent_referral/test.jsonl", rows)
    documents = load_documents(registry().dataset("medhelm/ent_referral"), cot=False, prompts="official")
    numbers = [re.findall(r"(\d+) Provide .*question (\d+)", item["prompt"]) for item in documents["test"]]
    assert len(numbers) == 3
    assert all(number == asked for ((number, asked),) in numbers)


def test_line_ends_are_lf_where_the_official_code_reads_them_so(helm, data_dir):
    row = {"Text ID": "1", "Sentences": "0 One.\r\n1 Two.", "Error Flag": 0, "Error Sentence ID": "-1"}
    write_jsonl(data_dir / "medhelm/medec/test.jsonl", [{**row, "Corrected Sentence": "NA"}])
    (document,) = load_documents(registry().dataset("medhelm/medec"), cot=False, prompts="official")["test"]
    assert "0 One.\n1 Two." in document["prompt"] and "\r" not in document["prompt"]


PASSAGE = 'Say which "follow-up" the patient\'s disease needs, given the findings {Findings}, and why.'


@pytest.fixture
def paper(tasks_of):
    """ClinicBench with a passage of an invented paper. Gives the file of its text."""
    root = tasks_of("clinicbench/iu_xray", "clinicbench/medqa")
    pinned = f"words: {len(PASSAGE.split())}, sha256: {sha256(PASSAGE.encode()).hexdigest()}"
    for file in root.glob("clinicbench/*/task.yaml"):
        text = re.sub(
            r"text: \{artefact[^}]*\}", f"text: {{artefact: paper, {pinned}}}", file.read_text("utf-8")
        )
        file.write_text(text)
    text = root.parent / "cache/official/text/clinicbench.txt"
    text.parent.mkdir(parents=True)
    return text


def test_a_passage_is_found_however_the_text_was_made(paper):
    lines = (
        PASSAGE.replace(" ", "\r\n   ")
        .replace("follow-", "\u201cfollow-\n  ", 1)
        .replace('"\u201c', "\u201c")
    )
    paper.write_bytes(
        f"\ufeffTable 8\r\n<b>Task</b> {lines}\tSource\r\nMore.".replace("'", "\u2019").encode()
    )
    document = one_document("clinicbench/iu_xray", prompts="official")
    before, after = re.split(r"\{.*\}", PASSAGE)
    findings = document["prompt"].removeprefix(before).removesuffix(after)
    assert findings and findings in one_document("clinicbench/iu_xray", prompts="own")["prompt"]
    assert document.loaded.record["artefact"] == "clinicbench.txt"
    # where the passage has no slot, our own input follows
    prompt = one_document("clinicbench/medqa", prompts="official")["prompt"]
    assert prompt.startswith(f"{PASSAGE}\n\nQuestion: ")


def test_a_text_without_the_passage_is_an_error_or_asked_in_our_words(paper, caplog):
    paper.write_text(PASSAGE.replace("and why", "and when"))
    said = r"clinicbench.txt: holds no passage of \d+ words.*\n  → make the text"
    with pytest.raises(MedtasksError, match=said):
        one_document("clinicbench/iu_xray", prompts="official")
    ours = one_document("clinicbench/iu_xray")
    assert ours["prompt"] == one_document("clinicbench/iu_xray", prompts="own")["prompt"]
    assert "our prompts are asked: clinicbench.txt holds no passage" in caplog.text


def test_mmlus_prompt_is_that_of_the_installed_lm_eval(tasks_of):
    """Description, question and options, to the letter."""
    folder = Path(lm_eval.tasks.__file__).parent / "mmlu/default"
    description = yaml.safe_load((folder / "mmlu_anatomy.yaml").read_text())["description"]
    template = yaml.safe_load((folder / "_default_template_yaml").read_text())["doc_to_text"]
    root = tasks_of("open_medical_llm/mmlu_anatomy")
    shutil.copy(ROOT / "tasks/open_medical_llm/mmlu.yaml", root / "open_medical_llm")
    dataset = registry().dataset("open_medical_llm/mmlu_anatomy")
    expected = {description + apply_template(template, row) for row in sample_rows(dataset.id)}
    documents = load_documents(dataset, cot=False, origin="sample")["test"]
    assert {document["prompt"] for document in documents} == expected
    assert documents[0].loaded.record["artefact"] == "lm_eval"
    file = root / "open_medical_llm/mmlu_anatomy/task.yaml"
    file.write_text(file.read_text().replace("words: 10", "words: 9"))
    forget()
    with pytest.raises(MedtasksError, match=r"holds no passage of 9 words.*\n.*--prompts own"):
        one_document("open_medical_llm/mmlu_anatomy")


def official_rows(folder: Path, instructions: list[str]) -> None:
    row = {"task": "CHIP-CTC", "language": "zh", "task type": "Text Classification", "split": "test"}
    rows = [
        {**row, "id": n, "instruction": text, "input": f"年龄{n}", "output": "clinical trial criterion: 年龄"}
        for n, text in enumerate(instructions)
    ]
    (folder / "bridge").mkdir()
    (folder / "bridge/CHIP-CTC.SFT.json").write_text(json.dumps(rows, ensure_ascii=False))


def test_rows_of_a_file_carry_one_instruction(data_dir, released):
    official_rows(data_dir, ["Name it.", "Name it.", "Name it now."])
    dataset = registry().dataset("bridge/chip_ctc")
    said = r"test row 1 and test row 3 carry different instructions(.|\n)*--prompts own"
    with pytest.raises(MedtasksError, match=said):
        load_documents(dataset, cot=False)
    (document, *_) = load_documents(dataset, cot=False, prompts="own")["test"]
    assert document.loaded.record["instruction"] == "own"


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfName it.\r\nThen stop.", b"Name it.\nThen stop.\n"])
def test_an_instruction_file_holds_what_models_see(data_dir, content):
    official_rows(data_dir, ["Name it."])
    (data_dir / "bridge/chip_ctc").mkdir()
    (data_dir / "bridge/chip_ctc/instruction.txt").write_bytes(content)
    (document, *_) = load_documents(registry().dataset("bridge/chip_ctc"), cot=False)["test"]
    assert document["system"] == "Name it.\nThen stop."


def release(data_dir: Path, instructions: list[str]) -> Path:
    """BRIDGE's release as it is carried to a machine without internet."""
    folder = data_dir / "fetched/hub/YLab-Open/BRIDGE-Open/main"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": n, "instruction": text, "input": "年龄", "output": ""} for n, text in enumerate(instructions)
    ]
    with zipfile.ZipFile(folder / "Dataset.zip", "w") as archive:
        archive.writestr("Dataset/CHIP-CTC.SFT.json", json.dumps(rows, ensure_ascii=False))
    return folder


def test_rows_without_an_instruction_get_that_of_the_release(data_dir, released):
    release(data_dir, ["Name the criterion.", "Name the criterion."])
    document = one_document("bridge/chip_ctc")
    assert document["system"] == "Name the criterion." and document["gold"] is not None
    record = document.loaded.record
    assert record["instruction"] == "official" and record["artefact"] == "YLab-Open/BRIDGE-Open/Dataset.zip"
    assert record["artefact_revision"].startswith("unpinned")
    assert one_document("bridge/chip_ctc", prompts="own").loaded.record["instruction"] == "own"
    assert one_document("bridge/mednli").loaded.record["instruction"] == "own"  # the release does not hold it


def test_rows_without_examples_of_the_authors_get_the_five_of_the_release(data_dir, released):
    """A test row that is one of the suite's own examples gives way."""
    archive = release(data_dir, ["Name the criterion."]) / "Example.zip"
    shots = [sft_row(100 + n, f"示例{n}", "clinical trial criterion: 性别") for n in range(5)]
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("Example/CHIP-CTC.example.json", json.dumps(shots, ensure_ascii=False))
    rows = [sft_row(n, f"输入{n}", "clinical trial criterion: 年龄") for n in range(7)]
    rows.append(sft_row(8, "示例2", "clinical trial criterion: 性别"))
    (data_dir / "bridge").mkdir()
    (data_dir / "bridge/CHIP-CTC.SFT.json").write_text(json.dumps(rows, ensure_ascii=False))
    dataset = registry().dataset("bridge/chip_ctc")
    found = load_documents(dataset, cot=False, shots=5)
    assert [shot["prompt"] for shot in found["fewshot"]] == [f"示例{n}" for n in range(5)]
    assert "示例2" not in [document["prompt"] for document in found["test"]]
    record = found["test"][0].loaded.record
    assert (record["n_test"], record["n_held_out"], record["instruction"]) == (7, 1, "official")
    assert record["examples"] == "authors"
    own = load_documents(dataset, cot=False, shots=5, prompts="own")
    assert all(shot["prompt"].startswith(("输入", "示例2")) for shot in own["fewshot"])


#: A folder of real rows in the files of their authors; `real_rows.json` holds hashes of HELM's message lists
#: of them (benchmarks/official/helm_messages.py).
REAL_ROWS = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))
PROOFS = read_json(Path(__file__).parent / "real_rows.json")


@pytest.mark.skipif(not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set")
@pytest.mark.parametrize("name", PROOFS)
def test_prompts_of_real_rows_are_those_of_helm(name, helm, data_dir):
    source = REAL_ROWS / PROOFS[name]["file"]
    folder = data_dir / "medhelm" / name
    folder.mkdir(parents=True)
    shutil.copy(source, folder / f"test{source.suffix}")
    dataset = registry().dataset(f"medhelm/{name}")
    documents = load_documents(dataset, cot=False, prompts="official")["test"]
    found = [digest([{"role": "user", "content": document["prompt"]}]) for document in documents]
    assert Counter(found) == Counter(PROOFS[name]["messages"])


#: what own prompts state of what the official ones state, item by item, and what they add
_SAID: dict[str, list[Any]] = yaml.safe_load((Path(__file__).parent / "items.yaml").read_text("utf-8"))


def _item(said: Any) -> tuple[str | None, str | None]:
    """Patterns of the official prompt and of ours, None where the item is not there."""
    if isinstance(said, dict):
        assert said["because"]
        return said.get("official"), said.get("ours")
    return (said, said) if isinstance(said, str) else tuple(said)


ITEMS = {key: [_item(item) for item in said] for key, said in _SAID.items() if not key.startswith("_")}


def lacking(patterns: list[str | None], key: str, prompts: str) -> list[str]:
    """The patterns that the zero-shot prompt of the first bundled row does not hold."""
    dataset = registry().dataset(key)
    document = load_documents(dataset, cot=False, origin="sample", prompts=prompts)["test"][0]
    prompt = f"{document['system']}\n{document['prompt']}"
    return [text for text in patterns if text and not re.search(text, prompt, re.IGNORECASE)]


def test_every_dataset_whose_prompt_is_own_has_items():
    suites = ("medhelm", "clinicbench", "medhelm_live", "medmarks", "open_medical_llm")
    every = {item.key for item in registry().datasets.values() if item.suite.id in suites}
    # no prompt of these is released; what they are asked is said in their cards
    none = {
        "medhelm_live/healthqa_br", "medhelm_live/mmlu_clinical_af", "medmarks/med_halt",
        "open_medical_llm/medmcqa", "open_medical_llm/medqa", "open_medical_llm/pubmedqa",
    }  # fmt: skip
    assert every - none == set(ITEMS)
    patterns = [text for items in ITEMS.values() for item in items for text in item if text]
    assert max(len(part.split()) for text in patterns for part in re.split(r"\.\*|\\n|\|", text)) <= 8


@pytest.mark.parametrize("key", ITEMS)
def test_each_item_stands_in_our_prompt(key):
    assert lacking([ours for _, ours in ITEMS[key]], key, "own") == []


@pytest.mark.parametrize("key", ITEMS)
def test_each_item_is_of_the_official_prompt_where_it_is_here(released, key):
    try:
        assert lacking([official for official, _ in ITEMS[key]], key, "official") == []
    except MedtasksError as error:
        pytest.skip(error.what[:90])  # not released, or not on this machine: medtasks data fetch official
    left_out = [official for official, ours in ITEMS[key] if ours is None]
    added = [ours for official, ours in ITEMS[key] if official is None]
    assert lacking(left_out, key, "own") == left_out
    assert lacking(added, key, "official") == added
