"""Downloads whose terms a user accepts once: nothing is fetched before, and the answer is recorded."""

import io
import json

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.sources import source_of
from tests.conftest import read_json
from tests.rows.hub_server import Hub
from tests.rows.original_sources import parquet

pytestmark = pytest.mark.usefixtures("few_rows")

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


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_nothing_is_fetched_or_recorded_where_terms_are_refused(medtasks, hub, says, answer):
    says(answer)
    outcome = medtasks("data", "fetch", "--accept", AREA)
    assert outcome.code == 1 and not hub.asked and not (cache_dir() / "accepted.json").exists()
    assert "to download after you accept their terms (--accept NAME): 1" in outcome.out


def test_a_name_alone_fetches_nothing_that_has_terms(medtasks, hub):
    outcome = medtasks("data", "fetch", AREA)
    assert outcome.code == 2 and not hub.asked
    assert "before its terms are accepted" in outcome.err
    assert f"medtasks data fetch --accept {AREA}" in outcome.err


def test_a_dataset_without_terms_cannot_be_accepted(medtasks, hub):
    outcome = medtasks("data", "fetch", "--accept", "medhelm_clear")
    assert outcome.code == 2 and "its owner gives access" in outcome.err


def test_status_where_and_run_name_the_way(medtasks, hub, data_dir):
    assert "1 to download after you accept their terms" in medtasks("data", "status", AREA).out
    where = medtasks("data", "status", "mlb_cmeee").out
    assert "a public copy by Aunderline on the hub, not the owner's" in where
    assert "medtasks data fetch --accept mlb_cmeee" in where
    outcome = medtasks("run", "--tasks", AREA, "--model", "oracle", "--output_path", "run")
    assert outcome.code != 0 and f"medtasks data fetch --accept {AREA}" in outcome.err


def test_the_papers_datasets_that_anyone_can_have(medtasks, hub):
    """As counted by `medtasks data status`: by themselves, or after terms are accepted."""
    found = {item["id"]: item for item in json.loads(medtasks("data", "status", "--json").out)}
    suites = ("bridge", "medhelm", "clinicbench", "mlb")
    papers = [item for item in registry().datasets.values() if item.of_paper and item.suite.id in suites]
    sources = {dataset.id: source_of(dataset).download for dataset in papers}
    by_themselves = [name for name, item in sources.items() if item and not item.terms]
    after_terms = [name for name, item in sources.items() if item and item.terms]
    assert len(papers) == 163 and len(by_themselves) + len(after_terms) >= 76
    assert all(found[name]["origin"] == "hub" for name in by_themselves)
    assert all(found[name]["origin"] is None for name in after_terms)
