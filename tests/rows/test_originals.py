"""Sources as their authors distribute them: every format in invented files, and what can be wrong."""

import json
import random
import re
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.filters import spans
from medtasks_ext.rows.originals.build import drawn, n_drawn, pool
from medtasks_ext.rows.spec import Source, dataset_spec
from tests.conftest import sft_row, write_jsonl
from tests.rows.original_sources import SOURCES, parquet
from tests.rows.original_sources import put as written

pytestmark = pytest.mark.usefixtures("few_rows")

TASKS = {name: dataset for name, dataset in registry().datasets.items() if dataset.metadata.suite == "bridge"}
ROOT = Path(__file__).resolve().parents[2]


def put(data_dir: Path, task: str, files: dict) -> Path:
    """Write a source's files where they are looked for."""
    return written(data_dir / "bridge" / task / "original", files)


def load(task: str, **options):
    return load_documents(TASKS[f"bridge_{task}"], cot=False, **options)


def lines(document) -> list[str]:
    return document["target"].split("\n")


@pytest.mark.parametrize(
    ("n", "size"),
    [
        (4271, 428), (2507, 251), (2001, 201), (2000, 400), (1000, 200), (1001, 201), (999, 979), (477, 457),
        (213, 193),
    ],
)  # fmt: skip
def test_the_split_rule_gives_the_published_and_hand_counted_sizes(n, size):
    assert n_drawn(n) == size


@given(st.integers(21, 2600), st.randoms(use_true_random=False))
def test_a_draw_is_disjoint_of_the_right_size_and_the_same_in_any_order(n, shuffler):
    rows = [{"input": f"text {i}"} for i in range(n)]
    test, shots = drawn(rows, where="x")
    assert (len(test), len(shots)) == (n_drawn(n), 5)
    chosen = {row["input"] for row in test}
    assert len(chosen) == len(test) and not chosen & {row["input"] for row in shots}
    shuffler.shuffle(rows)
    again, shots_again = drawn(rows, where="x")
    assert {row["input"] for row in again} == chosen
    assert {row["input"] for row in shots_again} == {row["input"] for row in shots}


def test_drawn_rows_keep_the_order_of_the_source_and_are_not_simply_its_first():
    rows = [{"input": f"{random.Random(i).random()}", "place": i} for i in range(2100)]
    places = [row["place"] for row in drawn(rows, where="x")[0]]
    assert places == sorted(places) and places != list(range(len(places)))


def inputs(rows: list[dict]) -> list[str]:
    return [row["input"] for row in rows]


def test_the_pool_of_another_part_is_five_of_its_rows_or_all_it_has():
    rows = [{"input": str(i)} for i in range(50)]
    five = inputs(pool(50, rows.__getitem__, apart_from=[]))
    assert len(five) == 5 and five == sorted(five, key=int) != inputs(rows[:5])
    assert inputs(pool(50, rows.__getitem__, apart_from=[])) == five
    assert inputs(pool(3, rows.__getitem__, apart_from=[])) == ["0", "1", "2"]
    assert pool(0, rows.__getitem__, apart_from=[]) == []


def test_the_pool_holds_no_text_twice_none_of_the_test_part_and_nothing_without_an_answer():
    rows = [{"input": f"fever {i // 2}"} for i in range(18)]
    test = [{"input": "fever  2"}, {"input": "fever\n5"}]
    free = pool(18, lambda index: None if index < 4 else rows[index], apart_from=test)
    assert inputs(free) == [f"fever {i}" for i in (3, 4, 6, 7, 8)]


def cantemist(test: dict[str, tuple[str, str]] | None = None) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    for i in range(6):
        files[f"cantemist/train-set/cantemist-ner/cc_{i}.txt"] = f"Caso {i}: carcinoma."
        files[f"cantemist/train-set/cantemist-ner/cc_{i}.ann"] = "T1\tMORFOLOGIA_NEOPLASIA 8 17\tcarcinoma\n"
    for name, (text, marks) in (test or {"cc_90": ONE, "cc_91": TWO, "cc_92": NONE}).items():
        files[f"cantemist/test-set/cantemist-ner/{name}.txt"] = text
        files[f"cantemist/test-set/cantemist-ner/{name}.ann"] = marks
    return files


ONE = ("Metástasis óseas de un tumor.\n", "T1\tMORFOLOGIA_NEOPLASIA 0 16\tMetástasis óseas\n")
TWO = (
    "Sarcoma\nde partes blandas; tumor.",
    "T2\tMORFOLOGIA_NEOPLASIA 27 32\ttumor\nT1\tMORFOLOGIA_NEOPLASIA 0 7;8 25\tSarcoma de partes blandas\n"
    "#1\tAnnotatorNotes T1\t8800/3\n*\tEquiv T1 T2\n",
)
NONE = ("Sin hallazgos.", "")


def test_brat_documents_become_rows_that_are_marked_as_rebuilt(data_dir):
    put(data_dir, "cantemist_ner", cantemist())
    splits = load("cantemist_ner", shots=5)
    assert [document["id"] for document in splits["test"]] == ["cc_90", "cc_91"]  # no mention, no row
    assert [lines(document) for document in splits["test"]] == [
        ["entity: Metástasis óseas, type: tumor morphology;"],
        ["entity: Sarcoma de partes blandas, type: tumor morphology;",
         "entity: tumor, type: tumor morphology;"],
    ]  # fmt: skip
    assert len(splits["fewshot"]) == 5
    loaded = splits["test"][0].loaded.record
    assert (loaded["rebuilt"], loaded["origin"], loaded["n_held_out"]) == (True, "local", 0)
    assert loaded["rebuilt"] is True


def test_an_archive_need_not_be_unpacked_and_desktop_debris_is_passed_over(data_dir):
    files = cantemist()
    folder = put(data_dir, "cantemist_ner", {"README.txt": "by the authors"})
    with zipfile.ZipFile(folder / "cantemist.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
            archive.writestr(f"__MACOSX/{name}", b"\x00\x05")
    packed = [(d["id"], d["prompt"], d["gold"]) for d in load("cantemist_ner")["test"]]
    (folder / "cantemist.zip").unlink()
    put(data_dir, "cantemist_ner", files)
    load_documents.__globals__["_build"].cache_clear()
    assert packed == [(d["id"], d["prompt"], d["gold"]) for d in load("cantemist_ner")["test"]]


def test_a_damaged_archive_is_refused_with_the_name_of_its_member(data_dir):
    folder = put(data_dir, "cantemist_ner", {"README": "x"})
    with zipfile.ZipFile(folder / "cantemist.zip", "w") as archive:
        for name, content in cantemist().items():
            archive.writestr(name, content)
    content = (folder / "cantemist.zip").read_bytes()
    (folder / "cantemist.zip").write_bytes(content.replace("óseas de un".encode(), b"xxxxx de un."))
    with pytest.raises(MedtasksError, match=r"cannot be read.*CRC") as error:
        load("cantemist_ner")
    assert str(error.value.where).endswith("cantemist.zip!cantemist/test-set/cantemist-ner/cc_90.txt")


def test_a_cue_has_a_line_per_scope_and_none_where_the_source_has_no_scope(data_dir):
    text = "Paciente asintomático , no fiebre ."
    annotations = (
        "T1\tNegMorMarker 9 21\tasintomático\nT2\tNegSynMarker 24 26\tno\n"
        "T3\tDISO 27 33\tfiebre\nR1\tScope Arg1:T2 Arg2:T3\n"
    )
    put(
        data_dir, "nubes",
        {name: content for i in range(21) for name,
         content in ((f"NUBes/SAMPLE-001/s{i}.txt", text + f"\nCaso {i} ."),
         (f"NUBes/SAMPLE-001/s{i}.ann", annotations))},
    )  # fmt: skip
    (document,) = load("nubes")["test"]
    assert lines(document) == [
        "entity: asintomático, type: NegMorMarker, scope: None;",
        "entity: no, type: NegSynMarker, scope: fiebre;",
    ]


def test_lines_of_a_text_become_documents_with_their_own_relations(data_dir):
    texts, annotations, start = [], [], 0
    for i in range(21):
        line = f"Bror {i} frisk ."
        texts.append(line)
        annotations += [
            f"T{2 * i}\tFAMILY {start} {start + 4}\tBror",
            f"T{2 * i + 1}\tCONDITION {start + len(line) - 7} {start + len(line) - 2}\tfrisk",
            f"R{i}\tHolder Arg1:T{2 * i + 1} Arg2:T{2 * i}",
        ]
        start += len(line) + 2  # a blank line follows each
    files = {"x/pal_annotate/a.txt": "\n\n".join(texts), "x/pal_annotate/a.ann": "\n".join(annotations)}
    put(data_dir, "norsynthclinical_re", files)
    (document,) = load("norsynthclinical_re")["test"]
    assert lines(document) == ["entity_1: frisk, entity_2: Bror, relation: Holder;"]
    assert re.search(r"Bror \d+ frisk \.$", document["prompt"])


@given(st.lists(st.tuples(st.sampled_from(["O", "A", "B"]), st.integers(1, 4)), max_size=12))
def test_tags_made_of_segments_are_read_back_as_these_segments(segments):
    tokens, tags, expected = [], [], []
    for kind, length in segments:
        words = [f"w{len(tokens) + i}" for i in range(length)]
        if kind != "O":
            expected.append(
                {"type": kind, "text": " ".join(words), "start": len(tokens), "end": len(tokens) + length}
            )
        tags += ["O"] * length if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
        tokens += words
    assert spans(tokens, tags) == expected


@pytest.mark.parametrize(
    ("scheme", "tags", "found"),
    [
        ("iob", ["I-A", "I-A", "I-B", "O"], ["A 0-2", "B 2-3"]),  # a continuation of nothing begins
        ("iob", ["S-A", "E-A", "B-A", "E-A"], ["A 0-1", "A 1-2", "A 2-4"]),
        ("plain", ["A", "A", "B", "O"], ["A 0-2", "B 2-3"]),
        ("plain", ["A", "", "A", "A"], ["A 0-1", "A 2-4"]),
    ],
)
def test_other_ways_of_tagging(scheme, tags, found):
    words = ["a", "b", "c", "d"]
    assert [f"{s['type']} {s['start']}-{s['end']}" for s in spans(words, tags, scheme=scheme)] == found


#: tasks that have tests of their own above and below
ELSEWHERE = {"ade_identification", "cantemist_ner", "cantemist_norm", "nubes", "norsynthclinical_re"}


@pytest.mark.parametrize("task", SOURCES)
def test_a_source_in_its_own_format_gives_the_task_its_rows(data_dir, task):
    files, prompt, gold = SOURCES[task]
    put(data_dir, task, files() if callable(files) else files)
    splits = load(task, shots=5)
    document = splits["test"][0]
    assert re.search(f"(^|\n){prompt}$", document["prompt"])
    assert all(re.fullmatch(wanted, line) for wanted, line in zip(gold, lines(document), strict=True))
    assert document.loaded.record["rebuilt"] and document["gold"] is not None and len(splits["fewshot"]) == 5
    assert document.loaded.record["n_held_out"] == 0


def test_an_example_of_a_source_without_ids_is_called_by_its_place(data_dir):
    files = SOURCES["chip_ctc"][0]
    put(data_dir, "chip_ctc", files() if callable(files) else files)
    assert [shot["id"] for shot in load("chip_ctc", shots=5)["fewshot"]] == ["1", "2", "3", "5", "6"]


def test_every_task_with_a_source_is_covered_here():
    assert set(SOURCES) | ELSEWHERE == {
        dataset.folder.name for dataset in TASKS.values() if originals(dataset)
    }


def test_a_rebuilt_norm_row_pairs_each_mention_with_its_note(data_dir):
    files = {}
    for part, n in (("test", 1), ("train", 6)):
        for i in range(n):
            place = f"{part}-set/cantemist-norm/cc_{i}"
            files[f"{place}.txt"] = f"{part} {i}\n{TWO[0]}"
            start = len(part) + 3
            files[f"{place}.ann"] = (
                f"T1\tMORFOLOGIA_NEOPLASIA {start} {start + 7}\tSarcoma\n#1\tAnnotatorNotes T1\t8800/3\n"
            )
    put(data_dir, "cantemist_norm", files)
    assert lines(load("cantemist_norm")["test"][0]) == ["entity: Sarcoma, code: 8800/3;"]


def ade_rows() -> list[dict]:
    return [
        {"text": f"Rash after A {i}.", "drug": "A", "effect": effect}
        for i in range(30)
        for effect in ("Rash", f"E{i}")
    ]


def ade_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "train-00000-of-00001.parquet").write_bytes(parquet(ade_rows()))


def test_two_layouts_of_a_source_give_the_same_rows(data_dir):
    folder = put(data_dir, "ade_extraction", {})
    ade_files(folder / "Ade_corpus_v2_drug_ade_relation")
    documents = load("ade_extraction")["test"]
    assert len(documents) == 10
    other = "".join(
        f"1|{row['text']}|{row['effect']}|0|1|{row['drug']}|2|3\n" for row in reversed(ade_rows())
    )
    (folder / "Ade_corpus_v2_drug_ade_relation" / "train-00000-of-00001.parquet").unlink()
    put(data_dir, "ade_extraction", {"DRUG-AE.rel": other})
    load_documents.__globals__["_build"].cache_clear()
    again = load("ade_extraction")["test"]
    assert {d["prompt"]: sorted(d["gold"]) for d in documents} == {
        d["prompt"]: sorted(d["gold"]) for d in again
    }


def test_repeated_inputs_count_once(data_dir):
    rows = [{"text": f"Case {i % 25}.", "label": i % 2} for i in range(100)]
    put(data_dir, "ade_identification", {"Ade_corpus_v2_classification/x.parquet": parquet(rows)})
    documents = load("ade_identification")["test"]
    assert len(documents) == 5 and len({document["prompt"] for document in documents}) == 5


def test_a_download_from_the_hub_is_read_through_the_source_and_split(tmp_path, monkeypatch):
    download = dataset_spec(TASKS["bridge_ade_extraction"]).rows.download
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path), raising=False)
    import huggingface_hub

    real = huggingface_hub.hf_hub_download
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *a, **k: real(*a, **k, cache_dir=tmp_path))
    snapshot = tmp_path / "datasets--ade-benchmark-corpus--ade_corpus_v2" / "snapshots" / download.revision
    ade_files(snapshot / "Ade_corpus_v2_drug_ade_relation")
    splits = load("ade_extraction", origin="hub")
    loaded = splits["test"][0].loaded.record
    assert (len(splits["test"]), len(splits["fewshot"])) == (10, 5)
    assert (loaded["origin"], loaded.get("revision"), loaded["rebuilt"]) == ("hub", download.revision, True)


def test_a_downloaded_archive_is_read_where_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path))
    url = "https://zenodo.org/records/3978041/files/cantemist.zip"
    place = tmp_path / sha256(url.encode()).hexdigest()[:16] / "cantemist.zip"
    place.parent.mkdir()
    with zipfile.ZipFile(place, "w") as archive:
        for name, content in cantemist().items():
            archive.writestr(name, content)
    documents = load("cantemist_ner", origin="hub")["test"]
    assert [document["id"] for document in documents] == ["cc_90", "cc_91"]
    assert documents[0].loaded.record["rebuilt"]


def test_official_and_general_files_come_before_the_source(data_dir):
    put(data_dir, "cantemist_ner", cantemist())
    official = sft_row(1, "Caso oficial.", "entity: tumor, type: tumor morphology;", task="Cantemis-NER")
    row = {**official, "language": "es"}
    write_jsonl(data_dir / "bridge" / "cantemist_ner" / "test.jsonl", [{**row, "input": "Caso general."}])
    assert load("cantemist_ner")["test"][0]["prompt"].endswith("Caso general.")
    (data_dir / "bridge" / "Cantemis-NER.SFT.json").write_text(json.dumps([row]))
    load_documents.__globals__["_build"].cache_clear()
    document = load("cantemist_ner")["test"][0]
    assert document["prompt"].endswith("Caso oficial.") and not document.loaded.record["rebuilt"]


PLACE = "cantemist/test-set/cantemist-ner/cc_90"
#: what differs from a sound source, the place that is named, and what is said
DAMAGED_BRAT = [
    ({f"{PLACE}.ann": None}, "cc_90.txt", "has no cc_90.ann beside it"),
    ({f"{PLACE}.txt": None}, "cc_90.ann", "has no cc_90.txt beside it"),
    ({f"{PLACE}.ann": "T1\tX 0 16\tMetástasis óseas\nT2\tX 25 31\ttumor."}, "cc_90.ann, line 2",
     "outside the text of 30 char"),
    ({f"{PLACE}.ann": "T1\tX 1 16\tMetástasis óseas"}, "cc_90.ann, line 1",
     "the text has 'etástasis óseas' there"),
    ({f"{PLACE}.ann": "T1\tX 0 óseas"}, "cc_90.ann, line 1", "is not a brat annotation"),
    ({f"{PLACE}.ann": "T1\tX 0 5\tMetás\nR1\tY Arg1:T1 Arg2:T7"}, "cc_90.ann, line 2", "refers to 'T7'"),
    ({f"{PLACE}.ann": "T1\tX 0 5\tMetás\nR1\tY Arg1:T1"}, "cc_90.ann, line 2",
     "a relation needs two arguments"),
    ({f"{PLACE}.txt": "Metástasis óseas".encode("latin-1")}, "cc_90.txt", "is not utf-8 text (byte 3)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "files", "file", "message"),
    [
        *(("cantemist_ner", {**cantemist(), **change}, *said) for change, *said in DAMAGED_BRAT),
        ("ade_extraction", {"OTHER.rel": "x"}, "original",
         "the source's files are not all there: Ade_corpus_v2"),
        ("ade_extraction", {"DRUG-AE.rel": "1|a|b|1|2|c|3\n"}, "DRUG-AE.rel", "line 1 has 7 cells, not 8"),
        ("ade_extraction", {"DRUG-AE.rel": b"1|caf\xe9|b|1|2|c|3|4\n"}, "DRUG-AE.rel",
         "is not utf-8-sig text"),
        ("ade_extraction", {"DRUG-AE.rel": "1|a|b|1|2|c|3|4\n"}, "original", "1 documents are too few"),
        ("ade_extraction", {"DRUG-AE.rel": "\n"}, "original", "no document with an answer"),
        ("cantemist_ner", {"cantemist.zip": b"no"}, "cantemist.zip", "is not a zip archive"),
        ("jp_sts", {"dataset_JA_Clinical_STS.xlsx": b"no"}, ".xlsx", "is no Excel workbook that can be read"),
        ("jp_sts", {"dataset_JA_Clinical_STS.xls": b"no"}, ".xls", "is no Excel workbook that can be read"),
        ("norsynthclinical_phi", {"reference_standard_annotated.txt": "Ola\n<Age>4 år"}, ".txt",
         "line 2 has a tag without"),
        ("mie", {"test.json": '[[{"label": ["症状:心慌-状态:阳性"]}]]', "dev.json": "[]"},
         "test.json, record 1", "'utterances' is undefined"),
        ("mie", {"test.json": '[[{"utterances": ["a"], "label": ["病:x-状态:y"]}]]', "dev.json": "[]"},
         "record 1", "no attribute '病'"),
        ("imcs_v2_dac", {"dev.json": '{"1": {"report": []}}', "train.json": "{}"}, "record 1",
         "dialogue is missing or not as expected"),
        ("imcs_v2_ner",
         {"dev.json": '{"1": {"dialogue": [{"sentence": "ab", "BIO_label": "O"}]}}', "train.json": "{}"},
         "record 1, dialogue 1", "2 tokens have 1 tags"),
        ("mediqa_2019_rqe", {"MEDIQA2019-Task2-RQE-TestSet-wLabels.xml": "<a>",
         "MEDIQA2019-Task2-RQE-ValidationSet-AMIA2016.xml": ""}, "wLabels.xml", "is not valid XML"),
        ("cantemist_coding", {"test-set/cantemist-coding/t.tsv": "file\tcode\nx\t8\n",
         "train-set/cantemist-coding/t.tsv": "", "cantemist-ner/y.txt": ""}, "t.tsv, record 2",
         "there is no x.txt"),
        ("ade_extraction",
         {"Ade_corpus_v2_drug_ade_relation/a.parquet": parquet([{"sentence": "a", "drug": "b"}])},
         "a.parquet, record 1", "text is missing or not as expected (found: sentence, drug)"),
        ("ade_extraction", {"Ade_corpus_v2_drug_ade_relation/a.parquet": b"no"}, "a.parquet",
         "not a Parquet file"),
        ("imcs_v2_dac", {"dev.json": '{"1": {"dialogue": ["a"]}}', "train.json": "{}"}, "record 1",
         "dialogue is missing or not as expected"),
    ],
)  # fmt: skip
def test_an_unfit_source_gets_one_message_with_place_and_remedy(data_dir, task, files, file, message):
    put(data_dir, task, files)
    with pytest.raises(MedtasksError) as error:
        load(task)
    assert str(error.value.where).endswith(file), error.value.where
    assert message in error.value.what and error.value.remedy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fewshot": ["x"]}, "takes its few-shot rows from the files under"),
        ({"texts": ["x"]}, "`texts` needs `group`"),
        ({"reader": {"kind": "pickle"}}, "pickle"),
        ({"reader": {"kind": "brat", "separator": ","}}, "separator"),
    ],
)
def test_a_source_that_is_not_described_well_is_refused(change, message):
    layout = {
        "reader": {"kind": "rows"}, "test": ["a"], "split": "drawn", "input": "x", "output": "y", **change,
    }  # fmt: skip
    with pytest.raises(ValidationError, match=message):
        Source(official_name="X", original=[layout])


def originals(dataset) -> list:
    return dataset_spec(dataset).rows.original


def test_the_documentation_names_the_files_of_every_source():
    text = (ROOT / "docs" / "keys.md").read_text()
    documented = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    for dataset in (dataset for dataset in TASKS.values() if originals(dataset)):
        patterns = [pattern for layout in originals(dataset) for pattern in layout.patterns]
        assert all(f"`{pattern}`" in documented[dataset.id] for pattern in patterns)
