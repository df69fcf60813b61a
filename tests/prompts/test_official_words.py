"""Official words are asked as the suites' own code asks them, and what stands against it is said."""

import json
import os
import re
import shutil
import zipfile
from collections import Counter
from hashlib import sha256
from pathlib import Path

import lm_eval.tasks
import pytest
import yaml
from lm_eval.utils import apply_template

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.fit import shared_characters
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.prompts.official.words import passage, prompt_source_of, words_in
from medtasks_ext.registry import registry
from medtasks_ext.registry.blocks import Passage
from medtasks_ext.runner.proof import digest, verify
from medtasks_ext.task import MedicalTask
from tests.conftest import read_json, sample_rows, sft_row, write_jsonl

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = ("zero_shot", "five_shot", "no_system")


def one_document(name: str, **named: object):
    dataset = registry().dataset(name)
    return load_documents(dataset, cot=False, origin="sample", **named)["test"][0]


def test_message_lists_of_all_37_are_those_of_helm(helm):
    verdicts = list(verify(registry(), registry().suites["medhelm"]))
    assert len(verdicts) == 37
    assert [verdict for verdict in verdicts if not verdict.ok] == []
    assert sum(verdict.n for verdict in verdicts) >= 37 and all(verdict.same_budget for verdict in verdicts)


@pytest.mark.parametrize("way", BRIDGE)
def test_turns_of_all_87_are_those_of_bridge(released, way):
    verdicts = list(verify(registry(), registry().suites["bridge"], [way]))
    assert len(verdicts) == 87
    assert [verdict for verdict in verdicts if not verdict.ok] == []


def test_reasoning_is_asked_for_in_bridges_words(released):
    if not list(released.glob("official/*/config.py")):
        pytest.skip("config.py of BRIDGE is not here: medtasks data fetch official")
    assert all(verdict.ok for verdict in verify(registry(), registry().suites["bridge"], ["cot"]))


def test_a_changed_word_is_found_by_the_proof(helm, tasks_of, monkeypatch):
    released = helm.parents[2]
    root = tasks_of("medhelm/medec")
    monkeypatch.setenv("MEDTASKS_CACHE", str(released))
    proof = read_json(ROOT / "tasks/medhelm/official.json")
    (root / "medhelm/official.json").write_text(json.dumps(proof))
    file = root / "medhelm/medec/task.yaml"
    file.write_text(file.read_text().replace("input: Sentences | trim", "input: Sentences | trim | upper"))
    (verdict,) = verify(registry(), registry().suites["medhelm"])
    assert (verdict.same, verdict.ok) == (0, False) and verdict.n > 0


def test_the_record_names_wording_artefact_and_revision(helm):
    record = one_document("medhelm/medcalc_bench").loaded.record
    assert record["instruction"] == "official" and record["artefact"] == helm.name
    assert record["artefact_revision"] == "0.5.16"


def test_own_words_are_asked_where_they_are_wanted_or_the_wheel_is_not_here(helm, monkeypatch, tmp_path):
    official = one_document("medhelm/medqa")
    own = one_document("medhelm/medqa", prompts="own")
    assert own.loaded.record["instruction"] == "own" and own["prompt"] != official["prompt"]
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "empty"))
    assert one_document("medhelm/medqa")["prompt"] == own["prompt"]
    with pytest.raises(MedtasksError, match="medtasks data fetch official DIR"):
        one_document("medhelm/medqa", prompts="official")


def test_another_wording_than_the_three_is_refused():
    with pytest.raises(MedtasksError, match="use one of: auto, official, own"):
        prompt_source_of("theirs")


@pytest.mark.parametrize("strategy", ["cot", "five_shot"])
def test_ways_of_asking_that_the_suite_does_not_have_are_ours(helm, strategy):
    dataset = registry().dataset("medhelm/medqa")
    task = MedicalTask.of(dataset, strategy, {"data": "sample"})
    assert task.eval_docs[0].loaded.record["instruction"] == "own"
    with pytest.raises(MedtasksError, match="there are no official prompts for"):
        MedicalTask.of(dataset, strategy, {"data": "sample", "prompts": "official"})


LONG = ("cdi_qa", "clinic_referral", "ehrshot", "ent_referral", "hospice_referral", "medalign")


@pytest.mark.parametrize("name", LONG)
def test_reasoning_about_a_long_record_is_asked_behind_the_same_words(helm, name):
    """An engine reads the record once. The line that asks at once is gone, ours stands in its place."""
    dataset, demand = registry().dataset(f"medhelm/{name}"), "Do not"
    direct, cot = (load_documents(dataset, cot=way, origin="sample")["test"] for way in (False, True))
    own = load_documents(dataset, cot=True, origin="sample", prompts="own")["test"]
    assert {item.loaded.record["instruction"] for item in cot} == {"official, own strategy line"}
    for one, other, ours in zip(direct, cot, own, strict=True):
        alike = shared_characters(one["prompt"], other["prompt"])
        after = other["prompt"][alike:]
        assert one.record in one["prompt"][:alike] and "reason step by step" in after and len(after) < 200
        assert demand not in after and "\0" not in other["prompt"]
        assert (demand in one["prompt"][alike:]) == (name != "medalign")
        assert "reason step by step" in ours["prompt"][:1500] and other["target"] == one["target"]
    with pytest.raises(MedtasksError, match="there are no official prompts for reasoning"):
        load_documents(dataset, cot=True, origin="sample", prompts="official")
    shots = MedicalTask.of(dataset, "cot", {"data": "sample"}).eval_docs
    assert shots[0]["prompt"] == cot[0]["prompt"]


def test_words_that_end_nowhere_are_an_error(helm, tasks_of, monkeypatch):
    released = helm.parents[2]
    root = tasks_of("medhelm/cdi_qa")
    monkeypatch.setenv("MEDTASKS_CACHE", str(released))
    file = root / "medhelm/cdi_qa/task.yaml"
    file.write_text(file.read_text().replace("reasoned: {after: context", "reasoned: {after: note"))
    with pytest.raises(MedtasksError, match=r"reasoned\.after: 'note' is no slot"):
        one_document("medhelm/cdi_qa")


def test_rows_are_numbered_before_any_is_drawn(helm, tasks_of, data_dir, monkeypatch):
    released = helm.parents[2]
    root = tasks_of("medhelm/ent_referral")
    monkeypatch.setenv("MEDTASKS_CACHE", str(released))
    file = root / "medhelm/ent_referral/task.yaml"
    file.write_text(file.read_text().replace("max_test: 1000", "max_test: 3"))
    rows = [{"prompt": f"question {n}", "context": "note", "label": "AB"[n % 2]} for n in range(1, 21)]
    write_jsonl(data_dir / "medhelm/ent_referral/test.jsonl", rows)
    dataset = registry().dataset("medhelm/ent_referral")
    documents = load_documents(dataset, cot=False, prompts="official")["test"]
    numbers = [re.findall(r"(\d+) Provide .*question (\d+)", document["prompt"]) for document in documents]
    assert len(documents) == 3
    assert all(number == asked for ((number, asked),) in numbers)


def test_line_ends_are_lf_where_the_official_code_reads_them_so(helm, data_dir):
    folder = data_dir / "medhelm/medec"
    folder.mkdir(parents=True)
    row = {"Text ID": "1", "Sentences": "0 One.\r\n1 Two.", "Error Flag": 0, "Error Sentence ID": "-1"}
    (folder / "test.jsonl").write_text(json.dumps({**row, "Corrected Sentence": "NA"}) + "\n")
    dataset = registry().dataset("medhelm/medec")
    (document,) = load_documents(dataset, cot=False, prompts="official")["test"]
    assert "0 One.\n1 Two." in document["prompt"] and "\r" not in document["prompt"]


PASSAGE = "Say which disease the patient has, given the findings {Findings}, and give one reason."


@pytest.fixture
def paper(tasks_of, monkeypatch, tmp_path):
    """ClinicBench with a passage of an invented paper. Gives the file of the task, and that of the text."""
    root = tasks_of("clinicbench/iu_xray", "clinicbench/medqa")
    for name in ("iu_xray", "medqa"):
        file = root / f"clinicbench/{name}/task.yaml"
        digest = sha256(PASSAGE.encode()).hexdigest()
        content = re.sub(
            r"text: \{artefact[^}]*\}",
            f"text: {{artefact: paper, words: {len(PASSAGE.split())}, sha256: {digest}}}",
            file.read_text(),
        )
        file.write_text(content)
    text = tmp_path / "cache/official/text/clinicbench.txt"
    text.parent.mkdir(parents=True)
    return text


def test_a_passage_is_found_however_the_text_was_made(paper):
    lines = PASSAGE.replace(" ", "\r\n   ")
    paper.write_bytes(f"\ufeffTable 8\r\n<b>Task</b> {lines}\tSource\r\nMore.".encode())
    document = one_document("clinicbench/iu_xray", prompts="official")
    findings = (
        document["prompt"].removeprefix(PASSAGE.partition("{")[0]).removesuffix(PASSAGE.partition("}")[2])
    )
    assert findings and findings in one_document("clinicbench/iu_xray", prompts="own")["prompt"]
    assert document.loaded.record["artefact"] == "clinicbench.txt"


def test_the_own_input_follows_a_passage(paper):
    task = ROOT / "tasks/clinicbench/medqa/task.yaml"
    paper.write_text(PASSAGE)
    assert "slots" not in task.read_text()
    prompt = one_document("clinicbench/medqa", prompts="official")["prompt"]
    assert prompt.startswith(f"{PASSAGE}\n\nQuestion: ")


def test_a_text_without_the_passage_is_an_error_or_asked_in_our_words(paper, caplog):
    paper.write_text(PASSAGE.replace("one reason", "two reasons"))
    said = r"clinicbench.txt: holds no passage of \d+ words.*\n  → make the text"
    with pytest.raises(MedtasksError, match=said):
        one_document("clinicbench/iu_xray", prompts="official")
    ours = one_document("clinicbench/iu_xray")
    assert ours["prompt"] == one_document("clinicbench/iu_xray", prompts="own")["prompt"]
    assert "our prompts are asked: clinicbench.txt holds no passage" in caplog.text


@pytest.mark.parametrize("whole", ["follow-up", "followup"])
def test_a_word_that_is_divided_at_a_lines_end_is_one(whole):
    said = f"Say what the {whole} shows."
    wanted = Passage(artefact="paper", words=len(said.split()), sha256=sha256(said.encode()).hexdigest())
    assert passage("First. Say what the follow-\n  up shows. Last.", wanted, where=Path("x")) == said


@pytest.mark.parametrize("subject", ["anatomy", "college_biology", "professional_medicine"])
def test_mmlus_prompt_is_that_of_the_installed_lm_eval(subject):
    """Description, question and options, to the letter."""
    folder = Path(lm_eval.tasks.__file__).parent / "mmlu/default"
    description = yaml.safe_load((folder / f"mmlu_{subject}.yaml").read_text())["description"]
    template = yaml.safe_load((folder / "_default_template_yaml").read_text())["doc_to_text"]
    dataset = registry().dataset(f"open_medical_llm/mmlu_{subject}")
    expected = {description + apply_template(template, row) for row in sample_rows(dataset.id)}
    documents = load_documents(dataset, cot=False, origin="sample")["test"]
    assert {document["prompt"] for document in documents} == expected
    assert documents[0].loaded.record["artefact"] == "lm_eval"
    assert one_document(f"open_medical_llm/mmlu_{subject}", prompts="own")["prompt"] not in expected


def test_a_release_of_lm_eval_with_another_sentence_is_an_error(tasks_of):
    root = tasks_of("open_medical_llm/mmlu_anatomy")
    shutil.copy(ROOT / "tasks/open_medical_llm/mmlu.yaml", root / "open_medical_llm")
    file = root / "open_medical_llm/mmlu_anatomy/task.yaml"
    file.write_text(file.read_text().replace("words: 10", "words: 9"))
    with pytest.raises(MedtasksError, match=r"holds no passage of 9 words.*\n.*--prompts own"):
        one_document("open_medical_llm/mmlu_anatomy")


def test_quotation_marks_and_ligatures_are_plain():
    assert words_in("\u201cﬁnd\u201d it\u2019s") == ['"find"', "it's"]


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
    with pytest.raises(
        MedtasksError, match="test row 1 and test row 3 carry different instructions"
    ) as error:
        load_documents(dataset, cot=False)
    assert "--prompts own" in str(error.value)
    (document, *_) = load_documents(dataset, cot=False, prompts="own")["test"]
    assert document.loaded.record["instruction"] == "own"


def test_official_words_that_nobody_published_are_an_error(data_dir, released):
    dataset = registry().dataset("mlb/maexam")
    with pytest.raises(MedtasksError, match="MLB has published no prompt"):
        load_documents(dataset, cot=False, origin="sample", prompts="official")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xef\xbb\xbfName it.", "a byte-order mark"),
        (b"Name it.\r\nThen stop.", "CR LF line ends"),
        (b"Name \xff it.", "not UTF-8 text"),
    ],
)
def test_an_instruction_file_holds_what_models_see(data_dir, content, said):
    official_rows(data_dir, ["Name it."])
    (data_dir / "bridge/chip_ctc").mkdir()
    (data_dir / "bridge/chip_ctc/instruction.txt").write_bytes(content)
    with pytest.raises(MedtasksError, match=said) as error:
        load_documents(registry().dataset("bridge/chip_ctc"), cot=False)
    assert "instruction.txt" in str(error.value) and "save it as UTF-8" in str(error.value)


def release(data_dir: Path, instructions: list[str]) -> None:
    """BRIDGE's release as it is carried to a machine without internet."""
    folder = data_dir / "fetched/hub/YLab-Open/BRIDGE-Open/main"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": n, "instruction": text, "input": "年龄", "output": ""} for n, text in enumerate(instructions)
    ]
    with zipfile.ZipFile(folder / "Dataset.zip", "w") as archive:
        archive.writestr("Dataset/CHIP-CTC.SFT.json", json.dumps(rows, ensure_ascii=False))


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
    release(data_dir, ["Name the criterion."])
    archive = data_dir / "fetched/hub/YLab-Open/BRIDGE-Open/main/Example.zip"
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


def test_another_text_than_at_first_use_is_an_error(data_dir, released, tmp_path, monkeypatch):
    release(data_dir, ["Name the criterion."])
    assert one_document("bridge/chip_ctc").loaded.record["instruction"] == "official"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(other))
    release(other, ["Name it."])
    with pytest.raises(MedtasksError, match="another one than at first use") as error:
        one_document("bridge/chip_ctc")
    assert "release.json" in str(error.value)


def test_two_instructions_in_the_release_are_an_error(data_dir, released):
    release(data_dir, ["Name the criterion.", "Name it."])
    with pytest.raises(MedtasksError, match="2 different instructions"):
        one_document("bridge/chip_ctc")


def test_a_release_that_must_be_had_and_cannot(data_dir, released):
    with pytest.raises(MedtasksError, match="the hub cannot be reached") as error:
        one_document("bridge/chip_ctc", prompts="official")
    assert "→" in str(error.value)


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
