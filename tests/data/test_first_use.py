"""Answers that are no data set: none is accepted, nothing of them stays, and the next host is asked."""

import gzip
import io
import json
import shutil
import zipfile

import pytest

from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import source_of
from tests.conftest import read_json, sample_rows
from tests.rows.hub_server import Hub
from tests.rows.original_sources import jsonl

URL, HUB = "medhelm_live_sct_bench", "clinicbench_medqa"
N = 40
HTML = b"<!DOCTYPE html>\n<html><head><title>Too many requests</title></head><body>wait</body></html>"
MIRROR = "/mirror/rows.csv"


def sct(n=N, name="question"):
    row = sample_rows(URL)[-1]
    text = next(key for key in row if isinstance(row[key], str) and len(row[key]) > 40)
    lines = [",".join(row)]
    for i in range(n):
        made = {**row, text: f"{name} {i}, whose text has no end of its own", "question_id": f"q{i}"}
        lines.append(",".join('"' + str(value).replace('"', '""') + '"' for value in made.values()))
    return ("\n".join(lines) + "\n").encode()


def medqa(n, name):
    options = dict(zip("ABCD", ("one", "two", "three", "four"), strict=True))
    rows = [
        {"question": f"{name} {i}?", "options": options, "answer_idx": "ABCD"[i % 4], "answer": "one"}
        for i in range(n)
    ]
    return jsonl(rows).encode()


@pytest.fixture
def served(tmp_path, monkeypatch, tasks_of):
    """A hub, a web server and a mirror; both data sets have 40 rows, and nobody has pinned them."""
    root = tasks_of("medhelm_live/sct_bench", "clinicbench/medqa")
    server = Hub()
    for key in ("medhelm_live/sct_bench", "clinicbench/medqa"):
        folder = root / key
        (folder / "documents.lock").unlink(missing_ok=True)
        card = (folder / "card.yaml").read_text(encoding="utf-8")
        n = registry().datasets[key.replace("/", "_")].metadata.n_test
        assert f"n_test: {n}" in card
        (folder / "card.yaml").write_text(card.replace(f"n_test: {n}", f"n_test: {N}"), encoding="utf-8")
        lock = read_json(folder / "data.lock")
        (folder / "data.lock").write_text(json.dumps({"revision": lock["revision"]}))
    file = root / "medhelm_live/sct_bench/task.yaml"
    text = file.read_text(encoding="utf-8").replace("https://raw.githubusercontent.com", server.url)
    download = next(line for line in text.splitlines() if server.url in line)
    name = download[download.index(server.url) :].split('"')[0].split("]")[0]
    text = text.replace(
        "  download: {", f'  download: {{digests: {{"{name}": {{hosts: ["{server.url}{MIRROR}"]}}}}, '
    )
    file.write_text(text, encoding="utf-8")
    forget()
    server.take_place(monkeypatch, tmp_path)
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    server.own = remote_files(source_of(registry().datasets[URL]))[0].name.removeprefix(server.url)
    hub = source_of(registry().datasets[HUB]).download
    server.test = server.put(hub.repo, hub.revision, hub.test[0], medqa(N, "test"))
    server.put(hub.repo, hub.revision, hub.fewshot[0], medqa(20, "train"))
    server.files |= {server.own: sct(), MIRROR: sct()}
    yield server
    server.close()


def kept(tmp_path):
    folders = [tmp_path / "cache", tmp_path / "hub"]
    names = ("sct_cleaned_full.csv", "phrases_no_exclude_test.jsonl")
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.name in names or path.parent.name in ("blobs", "first_use")
    ]


def bad_rows():
    """Name -> what a server sends in place of the rows, with status 200."""
    good = sct()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.html", HTML)
    return {
        "a page": HTML,
        "a page in capitals": b"\xef\xbb\xbf\r\n <HTML><BODY>login</BODY></HTML>",
        "nothing": b"",
        "one line": good.split(b"\n")[0] + b"\n",
        "half, cut in a line": good[: len(good) // 2],
        "half, cut at a line's end": good[: good.index(b"\n", len(good) // 2) + 1],
        "two thirds": b"\n".join(good.split(b"\n")[: 2 * N // 3]) + b"\n",
        "twice": good + good.partition(b"\n")[2],
        "JSON that says no": b'{"error": "rate limit exceeded"}',
        "XML of a store": b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
        "gzip": gzip.compress(good),
        "a zip of a page": packed.getvalue(),
        "zeros": bytes(len(good)),
        "another table": b"a,b,c\n" + b"1,2,3\n" * N,
        "plain words": b"404: Not Found",
    }


@pytest.mark.parametrize(
    "name",
    [
        "a page", "a page in capitals", "nothing", "one line", "half, cut in a line",
        "half, cut at a line's end", "two thirds", "twice", "JSON that says no", "XML of a store", "gzip",
        "a zip of a page", "zeros", "another table", "plain words",
    ],
)  # fmt: skip
def test_what_is_no_dataset_leaves_nothing_and_the_next_host_is_asked(medtasks, served, tmp_path, name):
    served.files[served.own] = served.files[MIRROR] = bad_rows()[name]
    outcome = medtasks("data", "fetch", URL)
    assert outcome.code == 1 and "✓" not in outcome.out, outcome.text
    assert served.asked[MIRROR] >= 1 and not kept(tmp_path), kept(tmp_path)
    served.asked.clear()
    again = medtasks("data", "fetch", URL)  # the same command asks again
    assert again.code == 1 and served.asked[served.own] >= 1
    served.files[MIRROR] = sct()
    mended = medtasks("data", "fetch", URL)
    assert mended.code == 0 and f"{N} rows" in mended.out, mended.text
    assert len(kept(tmp_path)) == 2  # the file, and its record


@pytest.mark.parametrize("fault", ["unsaid", "cut for good", 403, 429, "to /nowhere"])
def test_an_answer_that_is_none_is_taken_from_the_next_host(medtasks, served, tmp_path, fault):
    served.faults[served.own] = fault
    outcome = medtasks("data", "fetch", URL)
    assert outcome.code == 0 and served.asked[MIRROR] == 1, outcome.text


@pytest.mark.parametrize(
    "content",
    [HTML, b"", medqa(9, "few"), medqa(N, "cut")[:-700], b'{"error": "gated"}'],
    ids=["a page", "nothing", "few rows", "cut", "no rows"],
)
def test_a_hub_that_sends_something_else_leaves_nothing_either(medtasks, served, tmp_path, content):
    right = served.files[served.test]
    served.files[served.test] = content
    outcome = medtasks("data", "fetch", HUB)
    assert outcome.code == 1 and "✓" not in outcome.out
    assert not [path for path in kept(tmp_path) if path.name == "phrases_no_exclude_test.jsonl"]
    assert not list((tmp_path / "cache").glob("first_use/*"))
    served.files[served.test] = right
    assert medtasks("data", "fetch", HUB).code == 0


def test_a_run_is_as_careful_as_a_fetch(medtasks, served, tmp_path):
    served.files[served.own] = served.files[MIRROR] = HTML
    words = ("run", "--model", "oracle", "--tasks", URL, "--output_path")
    assert medtasks(*words, "first").code != 0 and not kept(tmp_path)
    _build.cache_clear()
    served.files[MIRROR] = sct()
    assert medtasks(*words, "second").code == 0


def test_what_a_killed_process_left_is_looked_at_before_it_is_used(medtasks, served, tmp_path):
    file = remote_files(source_of(registry().datasets[URL]))[0]
    file._cached.parent.mkdir(parents=True)
    file._cached.write_bytes(HTML)
    assert medtasks("data", "fetch", URL).code == 0
    assert file._cached.read_bytes() == sct()


def test_with_a_digest_forged_rows_are_refused_wherever_they_come_from(medtasks, served, tmp_path):
    assert medtasks("dev", "lock", "--data", HUB).code == 0
    forget()
    right = dict(served.files)
    shutil.rmtree(tmp_path / "hub")
    served.files[served.test] = medqa(N, "forged")
    refused = medtasks("data", "fetch", HUB)
    assert refused.code == 1 and "other content than is pinned" in refused.err
    served.files = right
    assert medtasks("data", "fetch", HUB).code == 0
    assert json.loads(medtasks("data", "status", HUB, "--json").out)[0]["pinned"] is True
