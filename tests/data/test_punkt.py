"""`data fetch` brings NLTK's Punkt data where a metric needs it; a server on loopback stands for NLTK's."""

import hashlib
import io
import zipfile
from urllib.request import urlopen

import pytest

from medtasks_ext.data.punkt import fetch_punkt, needs_punkt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from tests.rows.hub_server import Hub


@pytest.fixture
def nltk_server(monkeypatch, tmp_path):
    server, packed = Hub(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for language in ("english", "french"):
            archive.writestr(f"punkt_tab/{language}/collocations.tab", "")
    content = packed.getvalue()
    server.files["/punkt_tab.zip"] = content
    server.files["/index.xml"] = (
        f'<nltk_data><packages><package id="punkt_tab" name="Punkt" subdir="tokenizers" unzip="1" '
        f'size="{len(content)}" unzipped_size="0" checksum="{hashlib.md5(content).hexdigest()}" '
        f'sha256_checksum="{hashlib.sha256(content).hexdigest()}" '
        f'url="{server.url}/punkt_tab.zip"/></packages>'
        "<collections/></nltk_data>"
    ).encode()
    monkeypatch.setattr("nltk.downloader.Downloader.DEFAULT_URL", f"{server.url}/index.xml")
    monkeypatch.setattr("nltk.downloader.urlopen", urlopen)  # NLTK refuses loopback
    monkeypatch.setattr("nltk.data.path", [str(tmp_path / "home")])
    monkeypatch.setattr(
        "nltk.downloader.Downloader.default_download_dir", lambda self: str(tmp_path / "home")
    )
    yield server
    server.close()


def test_it_is_fetched_once_to_the_folder_that_is_carried(nltk_server, tmp_path):
    assert (
        fetch_punkt(tmp_path / "stick") == fetch_punkt(tmp_path / "stick") == tmp_path / "stick" / "nltk_data"
    )
    assert (tmp_path / "stick/nltk_data/tokenizers/punkt_tab/french/collocations.tab").is_file()
    assert nltk_server.asked["/punkt_tab.zip"] == 1


def test_without_a_folder_it_goes_where_nltk_looks(nltk_server, tmp_path):
    assert fetch_punkt(None) == tmp_path / "home"
    assert (tmp_path / "home/tokenizers/punkt_tab/english").is_dir()


def test_a_server_that_fails_is_one_error_with_the_remedy(nltk_server, tmp_path):
    nltk_server.faults["/punkt_tab.zip"] = 500
    with pytest.raises(MedtasksError, match="could not be fetched") as error:
        fetch_punkt(tmp_path / "stick")
    assert "python -m nltk.downloader punkt_tab" in error.value.remedy


def test_it_is_needed_for_sentences_of_languages_with_blanks_alone():
    needing = {item.id for item in registry().datasets.values() if needs_punkt(item)}
    assert needing and all(
        registry().datasets[name].metadata.language not in ("zh", "ja") for name in needing
    )
    assert "medhelm_medqa" not in needing
