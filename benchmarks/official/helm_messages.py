"""Hashes of HELM's own prompts for the sample rows, made by crfm-helm 0.5.16 itself.

Run in an environment of its own, where HELM's adapters import with torch and transformers stubbed:

    python -m venv /tmp/helm
    /tmp/helm/bin/pip install --no-deps crfm-helm==0.5.16
    /tmp/helm/bin/pip install zstandard dacite cattrs pyhocon sqlitedict bottle retrying Mako attrs \\
        colorlog pillow numpy pandas pyyaml requests tqdm docopt openpyxl pyarrow filelock python-docx
    /tmp/helm/bin/python benchmarks/official/helm_messages.py tasks/medhelm > tasks/medhelm/official.json

With a second folder, of real rows in the files of their authors, the same is done for these, for
`tests/prompts/real_rows.json`:

    /tmp/helm/bin/python benchmarks/official/helm_messages.py tasks/medhelm "$MEDTASKS_REAL_ROWS"

Each sample row is written as the file that a scenario reads, the scenario makes its instances of it, and the
adapter of the run spec makes the request. Where a run spec has a jury, its annotator makes the judges'
message about one invented answer. Only hashes are written.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import sys
import tempfile
import types
import xml.etree.ElementTree as ET
from pathlib import Path


class _Stub(types.ModuleType):
    """A heavy module of which nothing is used."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for _heavy in ("torch", "transformers", "tiktoken", "datasets"):
    sys.modules[_heavy] = _Stub(_heavy)


class _Tokens:
    """In place of a tokenizer, whose tokens of English have four characters in the mean.

    The longest record of the sample rows has two thirds as many of them as the limit.
    """

    def encode(self, text):
        return [text[start : start + 4] for start in range(0, len(text), 4)]

    def decode(self, tokens):
        return "".join(tokens)


sys.modules["tiktoken"].get_encoding = lambda name: _Tokens()
sys.modules["datasets"].load_dataset = None
sys.modules["torch"].cuda = types.SimpleNamespace(is_available=lambda: False)

import pandas as pd  # noqa: E402
from helm.benchmark.adaptation.adapters.generation_adapter import GenerationAdapter  # noqa: E402
from helm.benchmark.adaptation.adapters.multiple_choice_joint_adapter import (  # noqa: E402
    MultipleChoiceJointAdapter,
)
from helm.benchmark.run_specs import medhelm_run_specs as specs  # noqa: E402
from helm.benchmark.scenarios import (  # noqa: E402
    aci_bench_scenario,
    chw_care_plan_scenario,
    clear_scenario,
    dischargeme_scenario,
    ehr_sql_scenario,
    ehrshot_scenario,
    headqa_scenario,
    med_dialog_scenario,
    med_mcqa_scenario,
    med_qa_scenario,
    medalign_scenario,
    medalign_scenario_helper,
    medbullets_scenario,
    medcalc_bench_scenario,
    medec_scenario,
    medhallu_scenario,
    medi_qa_scenario,
    medication_qa_scenario,
    mental_health_scenario,
    mimic_bhc_scenario,
    mimic_rrs_scenario,
    mimiciv_billing_code_scenario,
    mtsamples_procedures_scenario,
    mtsamples_replicate_scenario,
    n2c2_ct_matching_scenario,
    pubmed_qa_scenario,
    race_based_med_scenario,
    shc_bmt_scenario,
    shc_cdi_scenario,
    shc_conf_scenario,
    shc_ent_scenario,
    shc_gip_scenario,
    shc_privacy_scenario,
    shc_proxy_scenario,
    shc_ptbm_scenario,
    shc_sei_scenario,
    shc_sequoia_scenario,
    starr_patient_instructions_scenario,
)
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference  # noqa: E402


class _WindowService:
    """Cuts nothing."""

    def fits_within_context_window(self, text, expected_completion_token_length=0):
        return True

    def truncate_from_right(self, text, expected_completion_token_length=0):
        return text


def _csv(path, rows, **kwargs):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), **kwargs)
        writer.writeheader()
        writer.writerows(rows)
    return path


def _quiet(module):
    """Nothing is downloaded."""
    for name in ("ensure_file_downloaded",):
        if hasattr(module, name):
            setattr(module, name, lambda **kwargs: None)


def _of_csv(scenario_class):
    def instances(rows, folder):
        path = _csv(folder / "rows.csv", rows)
        return scenario_class(data_path=str(path)).get_instances(str(folder))

    return instances


def _each(function):
    """One row at a time, each in a folder of its own."""

    def instances(rows, folder):
        made = []
        for number, row in enumerate(rows):
            place = folder / str(number)
            place.mkdir()
            made += function(row, place)
        return made

    return instances


def _clear(row, folder):
    pd.DataFrame([{"text": row["text"], "result_human": row["result_human"]}]).to_excel(
        folder / f"{row['condition']}.xlsx"
    )
    return clear_scenario.CLEARScenario(row["condition"], str(folder)).get_instances(str(folder))


def _ehrshot(row, folder):
    codes = row["codes"].splitlines() if isinstance(row["codes"], str) else row["codes"]
    prompt = ehrshot_scenario.lumia_prompt(
        row["subject"], ehrshot_scenario.CONFIG, [], {"ehr": [{"code": code} for code in codes]}
    )
    place = folder / row["subject"]
    place.mkdir()
    frame = pd.DataFrame([{"prompt": prompt, "boolean_value": bool(row["boolean_value"]), "split": "test"}])
    frame.to_parquet(place / "medhelm_prompts.parquet")
    return ehrshot_scenario.EHRSHOTScenario(row["subject"], "").get_instances(str(folder))


def _head_qa(rows, folder):
    headqa_scenario.load_dataset = lambda *args: {
        "test": [{**row, "image": row.get("image") or None} for row in rows]
    }
    return headqa_scenario.HeadQAScenario().get_instances(str(folder))


def _med_qa(rows, folder):
    _quiet(med_qa_scenario)
    place = folder / "data" / "data_clean" / "questions" / "US" / "4_options"
    place.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        lines = [json.dumps(row) for row in rows] if split == "test" else []
        (place / f"phrases_no_exclude_{split}.jsonl").write_text("\n".join(lines))
    return med_qa_scenario.MedQAScenario().get_instances(str(folder))


def _med_mcqa(rows, folder):
    _quiet(med_mcqa_scenario)
    (folder / "data").mkdir()
    (folder / "data" / "train.json").write_text("")
    lines = [json.dumps({**row, "cop": row["cop"] + 1}) for row in rows]
    (folder / "data" / "dev.json").write_text("\n".join(lines))
    return med_mcqa_scenario.MedMCQAScenario().get_instances(str(folder))


def _medalign(rows, folder):
    records = folder / "ehrs"
    records.mkdir()
    table = []
    for number, row in enumerate(rows):
        (records / f"{number}.xml").write_text(row["ehr"], encoding="utf-8")
        table.append({"instruction_id": number, "question": row["question"], "person_id": number})
    pd.DataFrame(table).to_csv(folder / "asked.tsv", sep="\t")
    frame = medalign_scenario_helper.preprocess_prompts(
        100000, 256, str(folder / "asked.tsv"), str(records), True, "tiktoken"
    )
    frame["clinician_response"] = [row["clinician_response"] for row in rows]
    return medalign_scenario.MedalignScenario(100000, "").process_tsv(frame)


def _dischargeme(row, folder):
    text = dischargeme_scenario.create_prompt(row["text"], row["radiology_report"], row["document"])
    reference = Reference(Output(text=row["target"]), tags=[CORRECT_TAG])
    return [Instance(input=Input(text=text), references=[reference], split=TEST_SPLIT)]


def _mimic_rrs(row, folder):
    for name, column in (("findings", "findings"), ("impression", "impression")):
        (folder / f"test.{name}.tok").write_text(row[column] + "\n", encoding="utf-8")
    return mimic_rrs_scenario.MIMICRRSScenario(str(folder)).get_instances(str(folder))


def _mimic_bhc(rows, folder):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return mimic_bhc_scenario.MIMICBHCScenario(str(path)).get_instances(str(folder))


def _noteextract(rows, folder):
    path = _csv(folder / "rows.csv", [{"MO Note": row["MO Note"]} for row in rows])
    return chw_care_plan_scenario.CHWCarePlanScenario(str(path)).get_instances(str(folder))


def _medication_qa(rows, folder):
    scenario = medication_qa_scenario.MedicationQAScenario()
    _quiet(medication_qa_scenario)
    pd.DataFrame(rows).to_excel(folder / scenario.FILENAME)
    return scenario.get_instances(str(folder))


def _med_dialog(row, folder):
    _quiet(med_dialog_scenario)
    place = folder / row["subset"]
    place.mkdir()
    (place / "test.json").write_text(json.dumps({"data": [row]}))
    return med_dialog_scenario.MedDialogScenario(row["subset"]).get_instances(str(folder))


def _pubmed_qa(rows, folder):
    _quiet(pubmed_qa_scenario)
    (folder / "data").mkdir()
    named = {str(number): row for number, row in enumerate(rows)}
    (folder / "data" / "test_set.json").write_text(json.dumps(named))
    return pubmed_qa_scenario.PubMedQAScenario().get_instances(str(folder))


def _race(rows, folder):
    table = [
        {"Question": row["Question"], "Response": row["Response"], "True/False": str(row["label"]).title()}
        for row in rows
    ]
    _csv(folder / "race_based.csv", table)
    return race_based_med_scenario.RaceBasedMedScenario().get_instances(str(folder))


def _medhallu(rows, folder):
    medhallu_scenario.load_dataset = lambda *args, **kwargs: rows
    return medhallu_scenario.MedHalluScenario().get_instances(str(folder))


def _billing(rows, folder):
    pd.DataFrame([{"text": row["text"], "target": row["target"]} for row in rows]).to_feather(
        folder / "rows.feather"
    )
    scenario = mimiciv_billing_code_scenario.MIMICIVBillingCodeScenario(str(folder / "rows.feather"))
    return scenario.get_instances(str(folder))


def _mtsamples(module, scenario_class):
    def instances(row, folder):
        scenario = scenario_class()
        (folder / "note.txt").write_text(row["text"], encoding="utf-8")
        scenario.fetch_file_list = lambda: ["note.txt"]
        scenario.download_file = lambda name, place: str(folder / name)
        return scenario.get_instances(str(folder))

    return _each(instances)


def _n2c2(row, folder):
    made = []
    root = ET.Element("PatientMatching")
    ET.SubElement(root, "TEXT").text = row["text"]
    tags = ET.SubElement(root, "TAGS")
    for name, met in row["tags"].items():
        ET.SubElement(tags, name, met=met)
    place = folder / "test"
    place.mkdir()
    ET.ElementTree(root).write(place / "1.xml", encoding="utf-8", xml_declaration=True)
    for criterion in ("ABDOMINAL", "ADVANCED-CAD", "CREATININE"):
        scenario = n2c2_ct_matching_scenario.N2C2CTMatchingScenario(str(folder), criterion)
        made += scenario.get_instances(str(folder))
    return made


def _ehr_sql(rows, folder, database):
    scenario = ehr_sql_scenario.EhrSqlScenario()
    (folder / "rows.json").write_text(json.dumps(rows))
    return scenario.process_json(
        str(folder / "rows.json"), scenario.extract_schema(str(database)), TEST_SPLIT
    )


def _aci(rows, folder):
    data = {"data": [{"src": row["dialogue"], "tgt": row["note"]} for row in rows]}
    (folder / "rows.json").write_text(json.dumps(data))
    return aci_bench_scenario.ACIBenchScenario().process_json(str(folder / "rows.json"), TEST_SPLIT)


def _by_csv(scenario):
    return lambda rows, folder: scenario.process_csv(str(_csv(folder / "rows.csv", rows)), TEST_SPLIT)


def _by_rows(scenario):
    return lambda rows, folder: scenario.process_csv(rows, TEST_SPLIT)


#: dataset -> (run spec, its arguments, maker of instances)
TASKS = {
    "aci_bench": (specs.get_aci_bench_run_spec, {}, _aci),
    "adhd_behavior": (specs.get_shc_ptbm_spec, {}, _of_csv(shc_ptbm_scenario.SHCPTBMMedScenario)),
    "adhd_medeffects": (specs.get_shc_sei_spec, {}, _of_csv(shc_sei_scenario.SHCSEIMedScenario)),
    "bmt_status": (specs.get_shc_bmt_spec, {}, _of_csv(shc_bmt_scenario.SHCBMTMedScenario)),
    "cdi_qa": (specs.get_shc_cdi_spec, {}, _of_csv(shc_cdi_scenario.SHCCDIMedScenario)),
    "clear": (specs.get_clear_spec, {}, _each(_clear)),
    "clinic_referral": (specs.get_shc_sequoia_spec, {}, _of_csv(shc_sequoia_scenario.SHCSequoiaMedScenario)),
    "dischargeme": (specs.get_dischargeme_spec, {}, _each(_dischargeme)),
    "ehrshot": (specs.get_ehrshot_spec, {"subject": ""}, _each(_ehrshot)),
    "ehrsql": (specs.get_ehr_sql_run_spec, {}, _ehr_sql),
    "ent_referral": (specs.get_shc_ent_spec, {}, _of_csv(shc_ent_scenario.SHCENTMedScenario)),
    "head_qa": (specs.get_head_qa_run_spec, {}, _head_qa),
    "hospice_referral": (specs.get_shc_gip_spec, {}, _of_csv(shc_gip_scenario.SHCGIPMedScenario)),
    "med_dialog": (specs.get_med_dialog_spec, {"subset": ""}, _each(_med_dialog)),
    "medalign": (specs.get_medalign_spec, {}, _medalign),
    "medbullets": (specs.get_medbullets_run_spec, {}, _by_csv(medbullets_scenario.MedBulletsScenario())),
    "medcalc_bench": (
        specs.get_medcalc_bench_spec,
        {},
        _by_rows(medcalc_bench_scenario.MedCalcBenchScenario()),
    ),
    "medconfinfo": (specs.get_shc_conf_spec, {}, _of_csv(shc_conf_scenario.SHCCONFMedScenario)),
    "medec": (specs.get_medec_run_spec, {}, _by_csv(medec_scenario.MedecScenario())),
    "medhallu": (specs.get_medhallu_spec, {}, _medhallu),
    "medication_qa": (specs.get_medication_qa_spec, {}, _medication_qa),
    "mediqa": (specs.get_medi_qa_spec, {}, _by_rows(medi_qa_scenario.MediQAScenario())),
    "medmcqa": (specs.get_medhelm_med_mcqa_spec, {}, _med_mcqa),
    "medqa": (specs.get_medhelm_med_qa_spec, {}, _med_qa),
    "mental_health": (
        specs.get_mental_health_spec,
        {},
        lambda rows, folder: mental_health_scenario.MentalHealthScenario("").process_dialogue_data(
            pd.DataFrame(rows)
        ),
    ),
    "mimic_bhc": (specs.get_mimic_bhc_spec, {}, _mimic_bhc),
    "mimic_iv_billing_code": (specs.get_mimiciv_billing_code_spec, {}, _billing),
    "mimic_rrs": (specs.get_mimic_rrs_spec, {}, _each(_mimic_rrs)),
    "mtsamples": (
        specs.get_mtsamples_spec,
        {},
        _mtsamples(mtsamples_replicate_scenario, mtsamples_replicate_scenario.MTSamplesReplicateScenario),
    ),
    "mtsamples_procedures": (
        specs.get_mtsamples_procedures_spec,
        {},
        _mtsamples(mtsamples_procedures_scenario, mtsamples_procedures_scenario.MTSamplesProceduresScenario),
    ),
    "n2c2_ct": (specs.get_n2c2_ct_matching_spec, {"subject": ""}, _each(_n2c2)),
    "noteextract": (specs.get_chw_care_plan_run_spec, {}, _noteextract),
    "patient_instruct": (
        specs.get_starr_patient_instructions_run_spec,
        {},
        _of_csv(starr_patient_instructions_scenario.StarrPatientInstructionsScenario),
    ),
    "privacy_detection": (
        specs.get_shc_privacy_spec,
        {},
        _of_csv(shc_privacy_scenario.SHCPRIVACYMedScenario),
    ),
    "proxy_sender": (specs.get_shc_proxy_spec, {}, _of_csv(shc_proxy_scenario.SHCPROXYMedScenario)),
    "pubmedqa": (specs.get_pubmed_qa_spec, {}, _pubmed_qa),
    "race_bias": (specs.get_race_based_med_spec, {}, _race),
}


def requests(spec, instances):
    """What the adapter of a run spec asks for each instance."""
    made = (
        MultipleChoiceJointAdapter
        if spec.adapter_spec.method == "multiple_choice_joint"
        else GenerationAdapter
    )
    adapter = made.__new__(made)
    adapter.adapter_spec, adapter.window_service = spec.adapter_spec, _WindowService()
    return [adapter.generate_requests(instance, 0, [])[0].request for instance in instances]


def message_list(request):
    """The message list of a request, as HELM's clients of chat models send it."""
    return [{"role": "user", "content": request.prompt}]


def digest(messages):
    """The hash of a message list, its first 16 digits."""
    return hashlib.sha256(json.dumps(messages, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


#: As in `medtasks_ext/runner/proof.py`. It holds what a renderer might take for slots.
ANSWER = "An answer with {QUESTION}, $RESPONSE, {{ GOLD_RESPONSE }} and a \\ in it.\n"


def jury_messages(spec, instances):
    """The message lists that judges would get about one answer to each instance; none without a jury."""
    made = []
    for annotator in spec.annotators or []:
        module, _, name = annotator.class_name.rpartition(".")
        asking = getattr(importlib.import_module(module), name)
        if not hasattr(asking, "_interpolate_prompt"):  # no jury
            continue
        asking = asking(auto_client=None, annotator_models={})
        for instance in instances:
            result = types.SimpleNamespace(completions=[types.SimpleNamespace(text=ANSWER)])
            state = types.SimpleNamespace(instance=instance, result=result)
            made.append([{"role": "user", "content": asking._interpolate_prompt(state)}])
    return made


def of_task(name, rows, folder, database):
    """Hashes of the message lists of one dataset, its budget and its stop sequences."""
    make_spec, arguments, make_instances = TASKS[name]
    code = make_spec.__code__
    wanted = dict(arguments)
    if "data_path" in code.co_varnames[: code.co_argcount]:
        wanted["data_path"] = str(folder)
    more = [database] if name == "ehrsql" else []
    instances = make_instances(rows, folder, *more)
    spec = make_spec(**({"condition": "", "data_path": ""} if name == "clear" else wanted))
    if name == "clear":
        asked = []
        for row, instance in zip(rows, instances, strict=True):
            asked += requests(make_spec(condition=row["condition"], data_path=""), [instance])
    else:
        asked = requests(spec, instances)
    jury = [digest(messages) for messages in jury_messages(spec, instances)]
    return {
        "messages": {"zero_shot": [digest(message_list(request)) for request in asked]},
        **({"jury": jury} if jury else {}),
        "max_tokens": asked[0].max_tokens,
        "stop": asked[0].stop_sequences,
    }


def _table(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _questions(path):
    exams = json.loads(path.read_text(encoding="utf-8"))["exams"]
    keys = ("qid", "name", "category", "year")  # which the hub adds, and no prompt shows
    return [{**dict.fromkeys(keys), **row} for exam in exams.values() for row in exam["data"]]


def _as_file(scenario):
    """Scenarios that read the authors' own file get that file."""
    return lambda path: scenario.process_csv(str(path), TEST_SPLIT)


#: dataset -> file of real rows, and how rows, or instances, are read from it
REAL = {
    "aci_bench": ("aci_bench/challenge_data/valid.csv", _table),
    "head_qa": ("headqa/HEAD_EN/test_HEAD_EN.json", _questions),
    "medbullets": ("medbullets/medbullets_op5.csv", _as_file(medbullets_scenario.MedBulletsScenario())),
    "medcalc_bench": ("medcalc_bench/test_data.csv", _table),
    "medec": (
        "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv",
        _as_file(medec_scenario.MedecScenario()),
    ),
    "medhallu": ("medhallu/pqa_labeled.jsonl", _lines),
    "medication_qa": ("medicationqa/hf_train.jsonl", _lines),
    "medmcqa": ("medmcqa/train.jsonl", _lines),
    "medqa": ("medqa_usmle/phrases_no_exclude_test.jsonl", _lines),
    "pubmedqa": ("pubmedqa/ori_pqal.json", lambda path: list(json.loads(path.read_text()).values())),
}


def of_real_rows(root):
    """Hashes of the message lists of real rows, by dataset."""
    found = {}
    for name, (file, read) in REAL.items():
        rows = read(root / file)
        with tempfile.TemporaryDirectory() as folder:
            instances = rows if isinstance(rows[0], Instance) else TASKS[name][2](rows, Path(folder))
        asked = requests(TASKS[name][0](), instances)
        found[name] = {"file": file, "messages": [digest(message_list(request)) for request in asked]}
    return found


def main():
    """Hashes of the message lists of all datasets, as JSON."""
    root, found = Path(sys.argv[1]), {}
    out, sys.stdout = sys.stdout, sys.stderr
    if len(sys.argv) > 2:
        lines = ",\n".join(
            f" {json.dumps(k)}: {json.dumps(v)}" for k, v in of_real_rows(Path(sys.argv[2])).items()
        )
        out.write(f"{{\n{lines}\n}}\n")
        return
    for name in sorted(TASKS):
        lines = (root / name / "sample.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        rows = [
            {key: value for key, value in row.items() if key != "_split"}
            for row in rows
            if row["_split"] == "test"
        ]
        with tempfile.TemporaryDirectory() as folder:
            found[name] = of_task(name, rows, Path(folder), root / name / "sample_db.sql")
    made_by = {"package": "crfm-helm", "version": "0.5.16"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(proof)}" for name, proof in found.items())
    out.write(f'{{"made_by": {json.dumps(made_by)},\n "tasks": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
