"""Pinned files from servers that are slow, broken, redirecting, elsewhere, or send something else."""

import hashlib
import os
import socket
import zipfile
from pathlib import Path

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import RemoteFile, members_digest
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


def test_pauses_grow_and_a_server_may_name_its_own(server, pauses):
    server.faults[OWN] = 503
    fails(file_at(server))
    assert pauses == [1, 2, 4, 8] and server.asked[OWN] == transfer.ATTEMPTS
    pauses.clear()
    server.asked.clear()
    server.faults[OWN] = [429, None]
    file_at(server).get()
    assert pauses == [7]


@pytest.mark.parametrize("left", [None, CONTENT + b"and more", b"something else " * 200])
def test_a_part_that_an_earlier_call_left_is_taken_up_or_thrown_away(server, left):
    """The server answers 416 to a range behind the end."""
    server.faults[OWN] = "cut for good"
    fails(file_at(server))
    part = next(Path(os.environ["MEDTASKS_CACHE"]).rglob("*.part"))
    assert 0 < part.stat().st_size < len(CONTENT)
    if left:
        part.write_bytes(left)
    server.faults.clear()
    assert file_at(server).get().read_bytes() == CONTENT


@pytest.mark.parametrize("fault", [404, "corrupt", "cut for good", 503])
def test_a_mirror_helps_where_the_own_place_does_not(server, fault):
    server.faults[OWN] = fault
    assert file_at(server, mirror=True).get().read_bytes() == CONTENT
    assert server.asked[OWN] == (transfer.ATTEMPTS if fault in ("cut for good", 503) else 1)


def test_content_that_is_not_the_pinned_one_is_refused_everywhere(server):
    server.faults = {OWN: "corrupt", MIRROR: 404}
    text = fails(file_at(server, mirror=True))
    assert server.asked[OWN] == 1  # what is wrong once is wrong again
    assert "2 places" in text and "sends other content than is pinned" in text and "Not Found" in text
    assert not list(Path(os.environ["MEDTASKS_CACHE"]).rglob("rows.csv"))


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


@pytest.fixture
def no_names(monkeypatch) -> list[str]:
    """Looks up no name, as a machine without a network; the names that were looked up."""
    asked: list[str] = []

    def look_up(host, *_: object, **__: object):
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    transfer._is_known.cache_clear()
    monkeypatch.setattr(transfer.time, "monotonic", lambda: 0.0)
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

    # a minute later
    monkeypatch.setattr(transfer.time, "monotonic", lambda: 60.0)
    fails(RemoteFile("https://rows.example/a.csv", "1"))
    assert no_names == ["rows.example"] * 2
