"""`medtasks data status` and `medtasks data status`."""

import json

import pytest

from medtasks_ext.cli.data import has_terms
from medtasks_ext.registry import registry
from medtasks_ext.rows.originals.own import SHA256, URL
from medtasks_ext.rows.places import source_page
from medtasks_ext.rows.sources import source_of
from tests.conftest import ROOT, write_jsonl

pytestmark = pytest.mark.usefixtures("few_rows")

DATASETS = registry().datasets


@pytest.fixture(autouse=True)
def empty_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def line_of(outcome, name: str) -> list[str]:
    return next(line for line in outcome.out.splitlines() if line.startswith(f"{name} ")).split()


def test_every_dataset_has_a_line_and_the_sums_agree(medtasks):
    outcome = medtasks("data", "status")
    records = json.loads(medtasks("data", "status", "--json").out)
    assert outcome.code == 0 and [record["id"] for record in records] == list(DATASETS)
    downloads = sum(record["origin"] == "hub" for record in records)
    terms = sum(has_terms(dataset) for dataset in DATASETS.values())
    missing = sum(record["origin"] is None for record in records) - terms
    assert not any(record["here"] for record in records)
    assert f"{len(DATASETS)} datasets: 0 here; {downloads} to download" in outcome.out
    assert f"{missing} missing" in outcome.out and downloads + terms + missing == len(DATASETS)
    assert f"{terms} to download after you accept their terms" in outcome.out
    assert "MEDTASKS_DATA_DIR is not set" in outcome.out


def test_local_files_are_counted_and_checked(medtasks, chip_ctc):
    outcome = medtasks("data", "status", "bridge_zh")
    assert line_of(outcome, "bridge_chip_ctc")[1:6] == ["gated", "local", "8/6,080", "5", "passed"]
    assert line_of(outcome, "bridge_mie")[1:6] == ["open", "download", "–", "–", "–"]
    assert line_of(outcome, "bridge_chip_cdee")[1:] == ["gated", "missing", "–", "–", "–", "–"]
    (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text("[]")
    outcome = medtasks("data", "status", "bridge_chip_ctc")
    assert outcome.code == 0 and line_of(outcome, "bridge_chip_ctc")[5] == "failed"
    assert "not as they should be" in outcome.out


def test_a_cached_download_is_counted_with_its_pinned_revision(medtasks, tmp_path):
    download = source_of(DATASETS["medhelm_medqa"]).download
    snapshot = (
        tmp_path / "hub" / f"datasets--{download.repo.replace('/', '--')}" / "snapshots" / download.revision
    )
    row = {"sent1": "q", "label": 0, **{f"ending{k}": "abcd"[k] for k in range(4)}}
    for name, n in (("dev.json", 3), ("test.json", 4)):
        write_jsonl(snapshot / name, [{**row, "id": f"{name}{i}", "sent1": f"{name} {i}"} for i in range(n)])
    part = json.loads(medtasks("data", "status", "medhelm_medqa", "--json").out)[0]
    assert (part["origin"], part["here"], part["n_test"]) == ("hub", False, None)  # a file is not there yet
    write_jsonl(snapshot / "train.json", [{**row, "id": f"t{i}", "sent1": f"t {i}"} for i in range(6)])
    whole = json.loads(medtasks("data", "status", "medhelm_medqa", "--json").out)[0]
    assert (whole["here"], whole["n_test"], whole["n_fewshot"], whole["checks"]) == (True, 7, 6, "passed")
    assert whole["revision"] == download.revision and download.revision in whole["where"]


def test_names_are_joined_and_fields_narrow_them(medtasks):
    def ids(*words: str) -> list[str]:
        return [item["id"] for item in json.loads(medtasks("data", "status", "--json", *words).out)]

    assert ids("bridge_mie", "medhelm_clear", "bridge_mie_cot") == ["bridge_mie", "medhelm_clear"]
    assert ids("hospice") == ["medhelm_hospice_referral"]
    assert ids("bridge_zh", "access=open") == [
        name for name in ids("bridge_zh") if DATASETS[name].metadata.access == "open"
    ]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("bridge_mee", "did you mean: bridge_mie"),
        ("colour=red", "no metadata field"),
        ("language=xx", "no dataset has language=xx"),
    ],
)
def test_a_word_that_matches_nothing_is_refused(medtasks, word, message):
    for command in ("status", "fetch"):
        outcome = medtasks("data", command, word)
        assert outcome.code == 2 and message in outcome.err


def test_where_names_files_that_the_loader_then_finds(medtasks, data_dir):
    """Every path that is told is one that works."""
    for name in ("bridge_chip_ctc", "medhelm_clear", "mlb_marecord", "clinicbench_mimic_cxr"):
        told = [line.strip().split(",")[0] for line in medtasks("data", "status", name).out.splitlines()]
        paths = [line for line in told if line.endswith((".SFT.json", "test.jsonl"))]
        assert paths
        for path in paths:
            file = write_jsonl(data_dir / path, [{"a": 1}])
            record = json.loads(medtasks("data", "status", name, "--json").out)[0]
            assert (record["origin"], record["where"]) == ("local", str(file))
            file.unlink()


def test_where_tells_access_licence_page_and_pinned_files(medtasks):
    outcome = medtasks("data", "status", "medhelm_ehrshot", "medhelm_medqa", "medhelm_clear")
    assert "docs/sources/redivis.md" in outcome.out and "medhelm/ehrshot/original/" in outcome.out
    download = source_of(DATASETS["medhelm_medqa"]).download
    assert f"hf.co/datasets/{download.repo}@{download.revision}/test.json" in outcome.out
    assert "medtasks data fetch medhelm_medqa" in outcome.out
    assert "medtasks data template medhelm_clear" in outcome.out
    for name in ("medhelm_ehrshot", "medhelm_medqa", "medhelm_clear"):
        record = DATASETS[name].metadata
        assert record.licence.title in outcome.out and record.licence.place in outcome.out
        assert record.url in outcome.out and f"text to a third party: {record.third_party_api}" in outcome.out


def test_every_dataset_that_is_not_open_has_a_page():
    closed = [item for item in DATASETS.values() if item.metadata.access != "open"]
    assert all(source_page(item) for item in closed)
    assert not any(source_page(item) for item in DATASETS.values() if item not in closed)


@pytest.mark.parametrize(
    ("task", "page"),
    [
        ("bridge_mimic_iv_bhc", "physionet"), ("medhelm_ehrshot", "redivis"), ("medhelm_medalign", "redivis"),
        ("bridge_n2c2_2010_relation", "n2c2"), ("medhelm_clear", "README"),
    ],
)  # fmt: skip
def test_the_page_of_a_dataset_is_that_of_its_holder(task, page):
    found = source_page(DATASETS[task])
    assert found is not None and found.stem == page


def test_every_page_of_a_holder_is_that_of_a_dataset_and_the_index_names_it():
    folder = ROOT / "docs" / "sources"
    used = {page.stem for item in DATASETS.values() if (page := source_page(item))}
    assert {path.stem for path in folder.glob("*.md")} == used
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in index for name in used - {"README"})


def test_the_vocabulary_that_counts_tokens_can_be_found_and_checked():
    text = (ROOT / "docs" / "sources" / "redivis.md").read_text(encoding="utf-8")
    assert URL in text and SHA256 in text


def test_sample_rows_are_called_so(medtasks, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    outcome = medtasks("data", "status", "bridge_mie")
    assert line_of(outcome, "bridge_mie")[2] == "SAMPLE"


def test_rows_that_did_not_change_are_not_read_again(medtasks, data_dir, monkeypatch):
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "0")  # what quotes rows is not kept
    file = data_dir / "medhelm" / "hospice_referral" / "test.jsonl"
    rows = [{"prompt": "Q?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(6)]
    write_jsonl(file, rows)
    first = medtasks("data", "status", "hospice")

    def never(*_):
        raise AssertionError("rows were read")

    with monkeypatch.context() as patched:
        patched.setattr("medtasks_ext.prompts.load.check_rows", never)
        assert medtasks("data", "status", "hospice").out == first.out
    rows[2]["label"] = "C"
    write_jsonl(file, rows)
    again = medtasks("data", "status", "hospice")
    assert line_of(again, "medhelm_hospice_referral")[-2] == "failed"
    assert medtasks("data", "status", "hospice").out == again.out
