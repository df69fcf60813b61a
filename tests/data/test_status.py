"""`medtasks data status` and `medtasks data status`."""

import io
import json

import pytest

from medtasks_ext.cli.data import has_terms
from medtasks_ext.registry import registry
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.sources import source_of
from tests.conftest import read_json, write_jsonl
from tests.rows.hub_server import Hub
from tests.rows.original_sources import parquet

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


AREA, BLOCK = "bridge_cares_area", "bridge_cares_icd10_block"


def reports(n: int, what: str) -> bytes:
    return parquet([{"full_text": f"{what} {i}", "area": ["Neuro"], "general": ["M47"]} for i in range(n)])


@pytest.fixture
def hub(tmp_path, monkeypatch):
    server = Hub()
    server.take_place(monkeypatch, tmp_path)
    download = source_of(registry().datasets[AREA]).download
    revision = download.revision.replace("/", "%2F")
    for name, n in ((download.test[0], 6), (download.fewshot[0], 7)):
        server.put(download.repo, revision, name, reports(n, name))
    yield server
    server.close()


@pytest.fixture
def says(monkeypatch):
    def answer(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return answer


def test_terms_are_shown_asked_for_once_and_recorded(medtasks, hub, says):
    says("y\n")
    outcome = medtasks.done("data", "fetch", "--accept", AREA)
    assert "Owner: the authors of CARES" in outcome.out and "run `hf auth login`" in outcome.out
    assert outcome.out.count("Do you accept these terms?") == 1 and f"✓ {AREA}" in outcome.out
    kept = list(read_json(cache_dir() / "accepted.json").values())
    assert len(kept) == 1 and kept[0]["owner"].startswith("the authors of CARES") and kept[0]["accepted"]
    says("")
    outcome = medtasks("data", "fetch", "--accept", BLOCK)  # the same terms
    assert outcome.code == 0 and "accept" not in outcome.out and f"✓ {BLOCK}" in outcome.out
    outcome = medtasks("data", "status", AREA)
    assert "fetched" in outcome.out and "6" in outcome.out


def test_nothing_is_fetched_or_recorded_before_terms_are_accepted(medtasks, hub, says):
    outcome = medtasks("data", "fetch", AREA)
    assert outcome.code == 2 and f"medtasks data fetch --accept {AREA}" in outcome.err
    says("\n")
    outcome = medtasks("data", "fetch", "--accept", AREA)
    assert outcome.code == 1 and not hub.asked and not (cache_dir() / "accepted.json").exists()
    assert "to download after you accept their terms (--accept NAME): 1" in outcome.out


def test_status_where_and_run_name_the_way(medtasks, hub, data_dir):
    assert "1 to download after you accept their terms" in medtasks("data", "status", AREA).out
    where = medtasks("data", "status", "mlb_cmeee").out
    assert "a public copy by Aunderline on the hub, not the owner's" in where
    assert "medtasks data fetch --accept mlb_cmeee" in where
    outcome = medtasks("run", "--tasks", AREA, "--model", "oracle", "--output_path", "run")
    assert outcome.code != 0 and f"medtasks data fetch --accept {AREA}" in outcome.err
