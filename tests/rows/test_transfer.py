"""Pinned files from servers that are slow, broken, redirecting, elsewhere, or send something else."""

import hashlib
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official import artefacts
from medtasks_ext.registry.blocks import Artefact
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import RemoteFile, git_blob, members_digest
from tests.conftest import ROOT
from tests.rows.hub_server import Hub

CONTENT = b"one line of rows\n" * 40
DIGEST = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
OWN, MIRROR = "/authors/rows.csv", "/mirror/rows.csv"


@pytest.fixture
def server(tmp_path, monkeypatch):
    hub = Hub()
    hub.files = {OWN: CONTENT, MIRROR: CONTENT}
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    yield hub
    hub.close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """The pauses between attempts, which nobody waits for."""
    found: list[float] = []
    monkeypatch.setattr(transfer.time, "sleep", found.append)
    return found


def file_at(server, digest: str | None = DIGEST, mirror: bool = False) -> RemoteFile:
    mirrors = (server.url + MIRROR,) if mirror else ()
    return RemoteFile(server.url + OWN, "1", digest=digest, mirrors=mirrors)


def fails(file: RemoteFile) -> str:
    with pytest.raises(MedtasksError) as error:
        file.get()
    assert error.value.remedy
    return str(error.value)


@pytest.mark.parametrize("fault", [None, "slow", "cut", "whole", ["cut", "whole"], [503, 429, 500, None]])
@pytest.mark.parametrize("digest", [DIGEST, None])
def test_a_file_arrives_whole_however_the_server_behaves(server, fault, digest):
    server.faults[OWN] = fault
    path = file_at(server, digest).get()
    assert path.read_bytes() == CONTENT
    assert [item.name for item in path.parent.iterdir() if item.suffix != ".lock"] == ["rows.csv"]
    assert file_at(server, digest).get() == path and sum(server.asked.values()) <= 4  # no second download


def test_a_connection_that_broke_is_taken_up_where_it_broke(server):
    server.faults[OWN] = "cut"
    file_at(server).get()
    assert [item.get("range") for item in server.headers] == [None, f"bytes={len(CONTENT) // 2}-"]
    assert server.headers[0]["user-agent"].startswith("medtasks/")


def test_a_server_that_falls_silent_is_asked_again(server, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", 0.2)
    server.faults[OWN] = "stall"
    assert file_at(server).get().read_bytes() == CONTENT and server.asked[OWN] == 2


def test_pauses_grow_and_a_server_may_name_its_own(server, pauses, caplog):
    server.faults[OWN] = 503
    fails(file_at(server))
    assert pauses == [1, 2, 4, 8] and server.asked[OWN] == transfer.ATTEMPTS
    pauses.clear()
    server.asked.clear()
    server.faults[OWN] = [429, None]
    file_at(server).get()
    assert pauses == [7] and "asks to wait 7 s (HTTP 429); it is asked again in 7 s" in caplog.text


def test_a_part_that_an_earlier_call_left_is_taken_up(server):
    server.faults[OWN] = "cut for good"
    fails(file_at(server))
    part = next(Path(os.environ["MEDTASKS_CACHE"]).rglob("*.part"))
    assert 0 < part.stat().st_size < len(CONTENT)
    server.faults.clear()
    assert file_at(server).get().read_bytes() == CONTENT
    assert server.headers[-1]["range"]


@pytest.mark.parametrize("left", [CONTENT, CONTENT + b"and more", b"something else " * 200])
def test_a_part_that_is_not_the_files_is_thrown_away(server, left):
    """The server answers 416 to a range behind the end."""
    server.faults[OWN] = "cut for good"
    fails(file_at(server))
    next(Path(os.environ["MEDTASKS_CACHE"]).rglob("*.part")).write_bytes(left)
    server.faults.clear()
    assert file_at(server).get().read_bytes() == CONTENT


def test_redirects_are_followed(server):
    server.faults[OWN] = f"to {server.url}{MIRROR}"
    assert file_at(server).get().read_bytes() == CONTENT


@pytest.mark.parametrize("fault", [404, 403, 410, "corrupt", "cut for good", 503])
def test_a_mirror_helps_where_the_own_place_does_not(server, fault):
    server.faults[OWN] = fault
    assert file_at(server, mirror=True).get().read_bytes() == CONTENT
    assert server.asked[OWN] == (transfer.ATTEMPTS if fault in ("cut for good", 503) else 1)


def test_the_own_place_comes_first(server):
    file_at(server, mirror=True).get()
    assert dict(server.asked) == {OWN: 1}


def test_content_that_is_not_the_pinned_one_is_refused_everywhere(server):
    server.faults = {OWN: "corrupt", MIRROR: 404}
    text = fails(file_at(server, mirror=True))
    assert server.asked[OWN] == 1  # what is wrong once is wrong again
    assert "2 places" in text and "sends other content than is pinned" in text and "Not Found" in text
    assert not list(Path(os.environ["MEDTASKS_CACHE"]).rglob("rows.csv"))


def test_a_git_blob_id_is_a_digest(server, tmp_path):
    (tmp_path / "rows").write_bytes(CONTENT)
    assert file_at(server, f"git:{git_blob(tmp_path / 'rows')}").get()
    assert (
        git_blob(tmp_path / "rows")
        == subprocess.run(
            ["git", "hash-object", str(tmp_path / "rows")], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


def zipped(path: Path, members: dict[str, str], level: int) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text * 50)
    return path.read_bytes()


def test_an_archive_is_known_by_the_members_that_are_read(server, tmp_path):
    members = {"repo-1/notes/a.txt": "a", "repo-1/notes/b.txt": "b", "repo-1/models/x.bin": "x"}
    path = tmp_path / "source.zip"
    zipped(path, members, 1)
    digest = f"members:{members_digest(path, ['notes/*.txt'])}"

    def archive() -> RemoteFile:
        return RemoteFile(server.url + OWN, "1", digest=digest, members=("notes/*.txt",))

    for same in (dict(reversed(members.items())), {**members, "repo-1/models/x.bin": "another"}):
        server.files[OWN] = zipped(path, same, 9)
        archive().get().unlink()
    for other in ({**members, "repo-1/notes/a.txt": "c"}, {"repo-1/notes/a.txt": "a"}):
        server.files[OWN] = zipped(path, other, 9)
        assert "other content than is pinned" in fails(archive())
    server.files[OWN] = b"no archive"
    assert "other content than is pinned" in fails(archive())


def test_files_of_github_are_asked_for_at_other_servers_by_what_they_are():
    commit = "a" * 40
    raw = f"https://raw.githubusercontent.com/owner/name/{commit}/data/rows.csv"
    assert RemoteFile(raw, commit, digest="git:" + "b" * 40, mirrors=("https://elsewhere.org/x",)).urls == [
        raw,
        f"https://cdn.jsdelivr.net/gh/owner/name@{commit}/data/rows.csv",
        f"https://archive.softwareheritage.org/api/1/content/sha1_git:{'b' * 40}/raw/",
        "https://elsewhere.org/x",
    ]
    packed = f"https://github.com/owner/name/archive/{commit}.zip"
    assert RemoteFile(packed, commit).urls[1:] == [f"https://codeload.github.com/owner/name/zip/{commit}"]


def test_a_proxy_of_the_environment_is_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    server.files["/rows.csv"] = CONTENT
    assert RemoteFile("http://data.invalid/rows.csv", "1", digest=DIGEST).get().read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert "MEDTASKS_CACHE" in fails(file_at(server))


def test_another_hub_is_asked_where_the_environment_names_one(server, tmp_path):
    server.files.clear()
    server.put("owner/set", "c" * 40, "rows.jsonl", CONTENT)
    code = (
        "from medtasks_ext.rows.remote import RemoteFile\n"
        "print(RemoteFile('rows.jsonl', 'c' * 40, 'owner/set').get().read_bytes().decode(), end='')"
    )
    environment = {**os.environ, "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == CONTENT


@pytest.mark.parametrize("fault", [None, "unsaid"])
def test_a_server_that_sends_without_end_does_not_fill_the_disk(server, monkeypatch, pauses, fault):
    """A file beyond the limit is no broken connection: it is named at once."""
    monkeypatch.setattr(transfer, "_PIECE", 64)
    monkeypatch.setattr(transfer, "_LARGEST", len(CONTENT) // 2)
    server.faults[OWN] = fault
    text = fails(file_at(server))
    assert "sends more than" in text and "connection" not in text
    assert server.asked[OWN] == 1 and not pauses
    folder = Path(os.environ["MEDTASKS_CACHE"])
    assert not list(folder.rglob("rows.csv")) and not list(folder.rglob("*.part"))
    monkeypatch.setattr(transfer, "_LARGEST", len(CONTENT))
    assert file_at(server).get().read_bytes() == CONTENT


def test_an_artefact_beyond_its_size_is_refused(server, monkeypatch):
    """What prompts' own words are read from is small."""
    words = Artefact(file="w.csv", revision="1", url=server.url + OWN, sha256=DIGEST.removeprefix("sha256:"))
    monkeypatch.setattr(artefacts, "_EXPECTED", transfer.Expected(largest=len(CONTENT) - 1))
    with pytest.raises(MedtasksError, match="more than") as error:
        artefacts.fetched_artefact(words)
    monkeypatch.setattr(artefacts, "_EXPECTED", transfer.Expected(largest=len(CONTENT)))
    assert artefacts.fetched_artefact(words).read_bytes() == CONTENT
    assert error.value.remedy


def test_what_is_no_web_address_is_not_read(server, tmp_path):
    (tmp_path / "rows.csv").write_bytes(CONTENT)
    file = RemoteFile((tmp_path / "rows.csv").as_uri(), "1", digest=DIGEST)
    assert "is no web address" in fails(file)


@pytest.fixture
def no_names(monkeypatch) -> list[str]:
    """Looks up no name, as a machine without a network; the names that were looked up."""
    asked: list[str] = []

    def look_up(host, *_: object, **__: object):
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(transfer, "_UNKNOWN", {})
    monkeypatch.setattr(transfer.socket, "getaddrinfo", look_up)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return asked


def test_a_host_without_an_address_is_looked_up_once_without_waits(no_names, pauses, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path))
    for name in ("a.csv", "b.csv"):
        message = fails(RemoteFile(f"https://rows.example/{name}", "1"))
        assert "no address is known for rows.example" in message and "MEDTASKS_DATA_DIR" in message
    assert no_names == ["rows.example"] and not pauses

    # the network is back
    transfer._UNKNOWN["rows.example"] -= transfer._UNKNOWN_FOR
    fails(RemoteFile("https://rows.example/a.csv", "1"))
    assert no_names == ["rows.example"] * 2


def test_a_hub_without_an_address_is_not_asked_again_and_again(no_names, pauses, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert "the hub cannot be reached" in fails(RemoteFile("a.csv", "main", "org/rows"))
    no_names.clear()  # the hub's library may look it up once more, for a list of its own
    assert "the hub cannot be reached" in fails(RemoteFile("b.csv", "main", "org/rows"))
    assert not no_names and not pauses


def test_a_proxy_looks_names_up_itself(no_names, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert transfer.has_known_host("https://rows.example/a.csv") and not no_names
