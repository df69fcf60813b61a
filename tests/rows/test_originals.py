"""Sources as their authors distribute them: every format in invented files, and what can be wrong."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.originals.build import drawn, n_drawn
from medtasks_ext.rows.spec import dataset_spec
from tests.conftest import read_json, sft_row, write_jsonl
from tests.rows.original_sources import SOURCES, parquet
from tests.rows.original_sources import put as written
from tests.run_files import result_of

pytestmark = pytest.mark.usefixtures("few_rows")

TASKS = {name: dataset for name, dataset in registry().datasets.items() if dataset.metadata.suite == "bridge"}


def put(data_dir: Path, task: str, files: dict) -> Path:
    """Write a source's files where they are looked for."""
    return written(data_dir / "bridge" / task / "original", files)


def load(task: str, **options):
    return load_documents(TASKS[f"bridge_{task}"], cot=False, **options)


def lines(document) -> list[str]:
    return document["target"].split("\n")


@pytest.mark.parametrize(
    ("n", "size"), [(4271, 428), (2507, 251), (2001, 201), (2000, 400), (1000, 200), (999, 979), (213, 193)]
)
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


def test_a_download_from_the_hub_is_read_through_the_source_and_split(tmp_path, monkeypatch):
    download = dataset_spec(TASKS["bridge_ade_extraction"]).rows.download
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path), raising=False)
    import huggingface_hub

    real = huggingface_hub.hf_hub_download
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *a, **k: real(*a, **k, cache_dir=tmp_path))
    snapshot = tmp_path / "datasets--ade-benchmark-corpus--ade_corpus_v2" / "snapshots" / download.revision
    rows = [
        {"text": f"Rash after A {i}.", "drug": "A", "effect": effect}
        for i in range(30)
        for effect in ("Rash", f"E{i}")
    ]
    place = "Ade_corpus_v2_drug_ade_relation/train-00000-of-00001.parquet"
    written(snapshot, {place: parquet(rows)})
    splits = load("ade_extraction", origin="hub")
    loaded = splits["test"][0].loaded.record
    assert (len(splits["test"]), len(splits["fewshot"])) == (10, 5)
    assert (loaded["origin"], loaded.get("revision"), loaded["rebuilt"]) == ("hub", download.revision, True)


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
    ({f"{PLACE}.ann": "T1\tX 0 16\tMetástasis óseas\nT2\tX 25 31\ttumor."}, "cc_90.ann, line 2",
     "outside the text of 30 char"),
    ({f"{PLACE}.ann": "T1\tX 1 16\tMetástasis óseas"}, "cc_90.ann, line 1",
     "the text has 'etástasis óseas' there"),
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
        ("ade_extraction", {"DRUG-AE.rel": "1|a|b|1|2|c|3|4\n"}, "original", "1 documents are too few"),
        ("norsynthclinical_phi", {"reference_standard_annotated.txt": "Ola\n<Age>4 år"}, ".txt",
         "line 2 has a tag without"),
        ("mie", {"test.json": '[[{"label": ["症状:心慌-状态:阳性"]}]]', "dev.json": "[]"},
         "test.json, record 1", "'utterances' is undefined"),
        ("cantemist_coding", {"test-set/cantemist-coding/t.tsv": "file\tcode\nx\t8\n",
         "train-set/cantemist-coding/t.tsv": "", "cantemist-ner/y.txt": ""}, "t.tsv, record 2",
         "there is no x.txt"),
        ("ade_extraction",
         {"Ade_corpus_v2_drug_ade_relation/a.parquet": parquet([{"sentence": "a", "drug": "b"}])},
         "a.parquet, record 1", "text is missing or not as expected (found: sentence, drug)"),
    ],
)  # fmt: skip
def test_an_unfit_source_gets_one_message_with_place_and_remedy(data_dir, task, files, file, message):
    put(data_dir, task, files)
    with pytest.raises(MedtasksError) as error:
        load(task)
    assert str(error.value.where).endswith(file), error.value.where
    assert message in error.value.what and error.value.remedy


COMMIT = "c" * 40
CHIP_CTC = registry().datasets["bridge_chip_ctc"].folder


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Write archives of BRIDGE-Open at one commit into the hub's cache: archive, member, rows."""
    repository = tmp_path / "hub" / "datasets--YLab-Open--BRIDGE-Open"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))  # what was found at first use
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def write(archive: str, member: str, rows: list[dict]) -> None:
        with zipfile.ZipFile(snapshot / archive, "w") as content:
            content.writestr(member, json.dumps(rows))

    write.snapshot = snapshot  # type: ignore[attr-defined]
    return write


def without_gold(texts: list[str]) -> list[dict]:
    rows = [sft_row(n, text, "") for n, text in enumerate(texts)]
    return [{key: value for key, value in row.items() if key != "output"} for row in rows]


@pytest.fixture
def hub(released, data_dir):
    """A release with one task in it; the folder of its files."""
    shots = [sft_row(n, f"示例{n}", "clinical trial criterion: 年龄", split="train") for n in range(5)]
    test = without_gold([f"入组标准{n}" for n in range(6)])
    released("Dataset.zip", "dataset_raw/chip_ctc.SFT.json", test)
    released("Example.zip", "CHIP-CTC.example.json", shots)
    return released.snapshot


def test_inputs_are_read_without_gold_and_the_commit_is_recorded(hub):
    splits = load_documents(Dataset(CHIP_CTC), cot=False, shots=5, origin="release")
    assert [document["gold"] for document in splits["test"]] == [None] * 6
    assert len(splits["fewshot"]) == 5
    loaded = splits["test"][0].loaded.record
    assert (loaded["origin"], loaded.get("revision"), loaded["n_without_gold"]) == ("release", COMMIT, 6)


def test_a_run_says_before_it_starts_that_there_is_no_gold_and_prints_no_score(hub, medtasks, tmp_path):
    outcome = medtasks.done(
        "run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--data", "release", "--output_path", "run"
    )
    assert "no gold answers for 1 of 1 tasks (bridge_chip_ctc)" in outcome.err
    assert "`medtasks card --layout bridge` writes the leaderboard's files" in outcome.err
    metrics = result_of(tmp_path / "run", "bridge_chip_ctc")["metrics"]
    assert "score" not in metrics and "acc" not in metrics and metrics["scored"] == 0
    outcome = medtasks("card", "run", "--layout", "bridge", "-o", "out", "--parts")
    written = list((tmp_path / "out").rglob("*.result.json"))
    assert outcome.code == 0 and len(read_json(written[0])) == 6


#: official test rows are found in a rebuilt source, by the inputs that the suite has released
ADE = registry().datasets["bridge_ade_drug_dosage"]
N = 40


def released_doses(released, inputs: list[str]) -> None:
    released("Dataset.zip", "dataset_raw/ADE-Drug dosage.SFT.json", without_gold(inputs))


@pytest.fixture
def source(data_dir):
    """Forty sentences with a dose each, of which the suite's rule would take twenty."""
    folder = data_dir / "bridge" / "ade_drug_dosage" / "original"
    folder.mkdir(parents=True)
    lines = [f"{i}|Drug{i} was given at  {i} mg.|Drug{i}|0|5|{i} mg|20|25" for i in range(N)]
    (folder / "DRUG-DOSE.rel").write_text("\n".join(lines))


def loaded(shots: int = 0):
    return load_documents(ADE, cot=False, shots=shots, origin="local")


def sentence(i: int) -> str:
    return f"Drug{i} was given at {i} mg."


def test_official_rows_are_found_by_their_words_and_have_their_gold(source, released):
    released_doses(released, [sentence(i) for i in (31, 2, 17)])
    splits = loaded(shots=5)
    assert [" ".join(document.input.split()) for document in splits["test"]] == [
        sentence(i) for i in (31, 2, 17)
    ]
    assert all(document["gold"] for document in splits["test"])
    record = splits["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (3, [3, 3], False)
    shown = {document.input for document in splits["fewshot"]}
    assert len(shown) == 5 and not shown & {document.input for document in splits["test"]}


def test_the_result_says_how_many_were_found(source, released, medtasks, data_dir):
    released_doses(released, [sentence(4), sentence(5), "Something that the source does not have."])
    outcome = medtasks.done(
        "run", "--tasks", ADE.id, "--model", "oracle", "--data", "local", "--output_path", "run"
    )
    assert f"{ADE.id}: 2 of 3 official rows recovered" in outcome.text
    assert "test rows rebuilt from the source" not in outcome.text


def test_a_source_with_few_of_the_official_rows_is_drawn_by_the_rule(source, released):
    released_doses(released, [sentence(4), "Another.", "A third."])
    record = loaded()["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (N - 20, None, True)
