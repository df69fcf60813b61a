"""Invented sources of BRIDGE tasks in small, each in the format and layout of the real one."""

import csv
import io
import json
from collections.abc import Mapping
from math import nan
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq


def put(folder: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Write a source's files into a folder; those that are None are left out."""
    for name, content in files.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def parquet(columns: dict | list[dict]) -> bytes:
    table = pa.table(columns) if isinstance(columns, dict) else pa.Table.from_pylist(columns)
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


def jsonl(rows: list[dict]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: list[dict]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def workbook(rows: list[list[str]]) -> bytes:
    """An .xlsx file whose empty cells are left out, as spreadsheet programs do."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([text or None for text in row])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def many(make) -> list:
    """21 of a kind, of which the rule takes one as test row."""
    return [make(i) for i in range(21)]


def clinpt() -> dict[str, str | bytes]:
    def case(i):
        return workbook(
            [["Homem", "N", "homem", "O"], ["de", "", "", "O"], [str(i), "Z", "", "B-V"],
             ["anos", "N", "ano", "I-V"], ["sem", "P", "", "B-N"], ["febre", "N", "", "B-C"]],
        )  # fmt: skip

    return {f"Texts SPN 1 Labeled English/CC{i}.xlsx": case(i) for i in range(21)}


def imcs() -> dict[str, str | bytes]:
    def dialogue(i, act="Request-Symptom"):
        return {
            "self_report": f"宝宝咳嗽{i}天",
            "dialogue": [{"speaker": "医生", "sentence": f"发热吗{i}", "dialogue_act": act,
             "BIO_label": "B-Symptom I-Symptom O" + " O" * len(str(i))}, {"speaker": "患者", "sentence": "嗯",
             "dialogue_act": "Other", "BIO_label": "O"}],
            "report": [{"主诉": "咳嗽", "建议": f"复诊{i}"}, {"主诉": "其他", "建议": "无"}],
            "implicit_info": {"Symptom": {"发热": "0", "咳嗽": "1", "皮疹": "2"}},
        }  # fmt: skip

    parts = {
        "dev": {"7": dialogue(7), "8": dialogue(8, "Diagnose")},
        "train": {str(i): dialogue(i) for i in range(10, 18)},
    }
    return {f"dataset/{name}.json": json.dumps(part, ensure_ascii=False) for name, part in parts.items()}


def chip(name: str, rows: list[dict], suffix: str = "json") -> dict[str, str | bytes]:
    text = jsonl(rows)
    train = jsonl([{**row, "text": f"训练{i}"} for i, row in enumerate(rows * 6)])
    return {f"{name}_dev.{suffix}": text, f"{name}_train.{suffix}": train}


def cas(text: str) -> str:
    """A CAS with one annotation of the second word's first six letters, and one of another type."""
    phi = {"%TYPE": "webanno.custom.PHI", "begin": 5, "end": 11, "kind": "NAME_PATIENT"}
    token = {"%TYPE": "Token", "begin": 0, "end": 4}
    return json.dumps({"%FEATURE_STRUCTURES": [{"%TYPE": "uima.cas.Sofa", "sofaString": text}, phi, token]})


def codiesp() -> dict[str, str | bytes]:
    table = "caso1\tDIAGNOSTICO\tr50.9\tfiebre\t0 6\ncaso1\tPROCEDIMIENTO\tbw03zzz\tplaca\t9 14\n"
    files = {"v4/test/testX.tsv": table, "v4/test/text_files/caso1.txt": "Fiebre y placa."}
    files["v4/train/trainX.tsv"] = "".join(table.replace("caso1", f"t{i}") for i in range(6))
    return {**files, **{f"v4/train/text_files/t{i}.txt": f"Fiebre {i} y placa." for i in range(6)}}


def pairs(*numbers: int) -> str:
    inner = "".join(
        f'<pair pid="{i}" value="{str(i % 2 == 0).lower()}">'
        f"<chq>Is it flu {i}?</chq><faq>What is &lt;flu&gt;?</faq></pair>\n"
        for i in numbers
    )
    return f'<?xml version="1.0"?>\n<T>{inner}</T>'


def window(i: int) -> dict:
    labels = [f"症状:心慌-状态:{status}" for status in ("阳性", "医生阴性")]
    return {"utterances": ["", f"患者:心慌{i}天", "医生:无碍"], "label": [*labels, "一般信息:睡眠-状态:未知"]}


def review(i: int) -> dict:
    entities = [
        {"start": at, "end": at + len(text), "entity_type": kind, "entity_text": text, "concept_name": nan}
        for at, kind, text in ((8, "Drugname", "Икс"), (0, "ADR", "Сыпь"))
    ]
    return {"file_name": "1.tsv", "sentence_id": i, "text": f"Сыпь от Икс {i}.\n", "entities": entities}


def event(name: str, tendency: str, *character: str) -> dict:
    return {"core_name": name, "tendency": tendency, "character": [*character], "anatomy_list": []}


def painful(i: int) -> str:
    """An annotated text in brat's form; the line end of its last annotation cuts the line there."""
    named = "T1\tSymptom 0 4\tБоль\nT2\tBody_location 7 12\tспине\nT3\tReference 0 4\tБоль\n"
    return f"{named}T4\tSymptom 13 {22 + len(str(i))}\t{i}\nи кашель\n"


def chat(i: int, part: str) -> dict:
    named = [{"mention": "咳嗽", "attr": "阳性"}, {"mention": "嗽", "attr": ""}]
    asked = {"sender": "患者", "text": f"咳嗽{i}{part}", "ner": named}
    return {"dialog_id": i, "dialog_info": [asked, {"sender": "医生", "text": "好的", "ner": []}]}


TAGGED = "# sent_id = \nBror\tFAMILY\ner\tO\n{}\tAGE\når\tAGE\ni\tTEMPORAL\ndag\tTEMPORAL\nNN\tYEAR\n.\tO \n"
#: task -> its source in small, the text that the prompt must end in, the gold lines of that row
SOURCES = {
    "ade_extraction": (
        {"DRUG-AE.rel": "".join(f"{i}|Rash and itch after A {i}.|{effect}|1|5|A|6|7\n"
                                for i in range(21) for effect in ("itch", "Rash"))},
        r"Rash and itch after A \d+\.",
        ["drug: A, adverse effect: itch;", "drug: A, adverse effect: Rash;"],
    ),
    "codiesp_icd10_cm": (codiesp, "Fiebre y placa.", ["diagnosis: fiebre, ICD-10-CM: r50.9;"]),
    "mediqa_2019_rqe": (
        {"MEDIQA2019-Task2-RQE-TestSet-wLabels.xml": pairs(1),
         "MEDIQA2019-Task2-RQE-ValidationSet-AMIA2016.xml": pairs(*range(2, 9))},
        r"Question A: Is it flu 1\?\nQuestion B: What is <flu>\?",
        ["answer: false"],
    ),
    "rudrec_ner": (
        {"rudrec_annotated.json": jsonl(many(review))},
        r"Сыпь от Икс \d+\.",
        ["entity: Сыпь, type: Adverse Drug Reaction;", "entity: Икс, type: Drugname;"],
    ),
    "clinpt_ner": (
        clinpt,
        r"Homem de \d+ anos sem febre",
        [r"entity: \d+ anos, type: value;", "entity: sem, type: negation;",
         "entity: febre, type: condition;"],
    ),
    "norsynthclinical_ner": (
        {"all_sentences.vert.entity": "\n".join(many(TAGGED.format))},
        r"Bror er \d+ år i dag NN \.",
        ["entity: Bror, type: FAMILY;", r"entity: \d+ år, type: AGE;", "entity: i dag, type: EMPORAL;"],
    ),
    "norsynthclinical_phi": (
        {"reference_standard_annotated.txt": "\ufeffIngen opplysninger.\n"
         + "\n".join(many("<First_Name>Ola</First_Name> er <Age>{} år</Age>.".format))},
        r"Ola er \d+ år\.",
        ["entity: Ola, type: First_Name;", r"entity: \d+ år, type: Age;"],
    ),
    "clinicalnotes_upmc": (
        {"Annotations-1-120-random.txt": "".join(
            many('{0}\tfever\t"Denies ""FEVER"", case {0}."\tNegated\n'.format))},
        r'Denies "FEVER", case \d+\.',
        ["affirmed: No"],
    ),
    "mie": (
        {"data/test.json": json.dumps([[window(1)], [window(2)]]),
         "data/dev.json": json.dumps([[window(i) for i in range(3, 10)]])},
        r"患者:心慌1天\n医生:无碍",
        ["entity: 心慌, type: symptom, status: 病人-阳性;", "entity: 心慌, type: symptom, status: 医生-阴性;",
         "entity: 睡眠, type: general information, status: 未知;"],
    ),
    "jp_sts": (
        lambda: {"dataset_JA_Clinical_STS.xlsx": workbook(many(lambda i: [f"発熱{i}日", "熱", "4.0"]))},
        r"Sentence A: 発熱\d+日\nSentence B: 熱",
        ["similarity score: 4"],
    ),
    "imcs_v2_dac": (imcs, "发热吗7", ["dialogue act: 提问-症状"]),
    "imcs_v2_ner": (imcs, "发热吗7", ["entity: 发热, type: symptom;"]),
    "imcs_v2_sr": (
        imcs,
        "患者：宝宝咳嗽7天\n医生：发热吗7\n患者：嗯",
        ["symptom: 发热, status: negative;", "symptom: 咳嗽, status: positive;",
         "symptom: 皮疹, status: uncertain;"],
    ),
    "imcs_v2_mrg": (imcs, "患者：宝宝咳嗽7天\n医生：发热吗7\n患者：嗯", ["主诉: 咳嗽", "建议: 复诊7"]),
    "cblue_cdn": (
        chip("CHIP-CDN", [{"text": "冠心病房颤", "normalized_result": "冠心病##心房颤动"}]),
        "冠心病房颤",
        ["Normalized terms: 冠心病, 心房颤动"],
    ),
    "chip_ctc": (
        chip("CHIP-CTC", [{"text": "哺乳期", "label": "Pregnancy-related Activity"},
                          {"text": "其他", "label": "Multiple"}]),
        "哺乳期",
        ["clinical trial criterion: 怀孕相关"],
    ),
    "chip_cdee": (
        chip("CHIP-CDEE", [{"text": "头痛，无发热",
                            "event": [event("头痛", "", "剧烈", "阵发"), event("发热", "否定 ")]}]),
        "头痛，无发热",
        [r"subject: 头痛, description: \[剧烈, 阵发\], location: \[\], status: 肯定;",
         r"subject: 发热, description: \[\], location: \[\], status: 否定;"],
    ),
    "chip_mdcfnpc": (
        {f"CHIP-MDCFNPC_{part}.jsonl": jsonl([chat(i, part) for i in range(n)])
         for part, n in (("dev", 1), ("train", 6))},
        "患者：咳嗽0dev",
        ["findings: 咳嗽, status: 阳性;", "findings: 嗽, status: 不标注;"],
    ),
    "cmedqa": (
        {"question.csv": "question_id,content\n" + "".join(f"{i},问题{i}\n" for i in range(8)),
         "answer.csv": "ans_id,question_id,content\n"
         + "".join(f'{i}{k},{i},"回答{i}{k}，好"\n' for i in range(8) for k in range(2)),
         "test_candidates.txt": "question_id,ans_id,cnt,label\n7,70,0,1\n7,71,1,1\n7,10,2,0\n",
         "dev_candidates.txt": "question_id,ans_id,cnt,label\n"
         + "".join(f"{i},{i}0,0,1\n" for i in range(7))},
        "问题7",
        ["回答70，好"],
    ),
    "grassco_phi": (
        {f"annotation/Fall{i}.txt_phi.json": cas(f"Frau Meier{i}\nist {i} Jahre alt.") for i in range(21)},
        r"Frau Meier\d+\nist \d+ Jahre alt\.",
        [r"entity: Meier\d*, type: NAME_PATIENT;"],
    ),
    "ruccon": (
        {f"RUCCON/{'main/0' if i else 'main3'}/{i}.{kind}": text for i in range(21)
         for kind, text in (("txt", f"Боль в спине {i}\nи кашель"), ("ann", painful(i)))},
        r"Боль в спине \d+\nи кашель",
        ["entity: Боль, type: Symptom;", "entity: спине, type: Body location;",
         r"entity: \d+ и кашель, type: Symptom;"],
    ),
}  # fmt: skip
