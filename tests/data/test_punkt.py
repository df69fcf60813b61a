"""`data fetch` brings NLTK's Punkt data where a metric needs it; a server on loopback stands for GitHub."""

import hashlib
import io
import zipfile
from dataclasses import replace

import pytest

from medtasks_ext.data import fetch
from medtasks_ext.data.fetch import fetch_punkt, needs_punkt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.rows import transfer
from tests.rows.hub_server import Hub


@pytest.fixture
def served(monkeypatch, tmp_path):
    server, packed = Hub(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for language in ("english", "french"):
            archive.writestr(f"punkt_tab/{language}/collocations.tab", "")
    content = packed.getvalue()
    server.files["/punkt_tab.zip"] = content
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    file = replace(fetch.PUNKT, name=f"{server.url}/punkt_tab.zip", digest=digest, size=len(content))
    monkeypatch.setattr(fetch, "PUNKT", file)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path / "home")])
    monkeypatch.setattr(
        "nltk.downloader.Downloader.default_download_dir", lambda self: str(tmp_path / "home")
    )
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    yield server
    server.close()


def test_it_is_fetched_once_to_the_folder_that_is_carried(served, tmp_path):
    assert (
        fetch_punkt(tmp_path / "stick") == fetch_punkt(tmp_path / "stick") == tmp_path / "stick" / "nltk_data"
    )
    assert (tmp_path / "stick/nltk_data/tokenizers/punkt_tab/french/collocations.tab").is_file()
    assert served.asked["/punkt_tab.zip"] == 1


def test_without_a_folder_it_goes_where_nltk_looks(served, tmp_path):
    assert fetch_punkt(None) == tmp_path / "home"
    assert (tmp_path / "home/tokenizers/punkt_tab/english").is_dir()


def test_it_comes_through_a_proxy(served, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", served.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(fetch, "PUNKT", replace(fetch.PUNKT, name="http://data.invalid/punkt_tab.zip"))
    assert (fetch_punkt(tmp_path / "stick") / "tokenizers/punkt_tab/english").is_dir()
    assert served.asked["/punkt_tab.zip"] == 1


@pytest.mark.parametrize("fault", [500, "corrupt", "cut for good"])
def test_a_server_that_fails_is_one_error_and_leaves_nothing_for_nltk(served, tmp_path, fault):
    served.faults["/punkt_tab.zip"] = fault
    with pytest.raises(MedtasksError, match="could not be fetched") as error:
        fetch_punkt(tmp_path / "stick")
    assert "the same command" in error.value.remedy and not (tmp_path / "stick").exists()
    served.faults.clear()
    assert fetch_punkt(tmp_path / "stick")


def test_it_is_pinned():
    assert fetch.PUNKT.is_pinned and fetch.PUNKT.size and len(fetch.PUNKT.urls) > 1


def test_it_is_needed_for_sentences_of_languages_with_blanks_alone():
    needing = {item.id for item in registry().datasets.values() if needs_punkt(item)}
    assert needing
    assert all(registry().datasets[name].metadata.language not in ("zh", "ja") for name in needing)
    assert "medhelm_medqa" not in needing
