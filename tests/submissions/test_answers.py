"""The answers of a submission: what the file holds, and what the check makes of it."""

import functools
import http.server
import json
import shutil
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.normalise import unclosed_reasoning
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions.answers import FinalAnswer, final_answer, read_answers, write_answers
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import RemoteFile
from tests.conftest import rewrite_answers
from tests.submissions.conftest import (
    ADDRESS,
    ANSWERS,
    CLOSED_COUNTS,
    OPEN_COUNTS,
    OPEN_MEAN,
    PLACE,
    SECRET_TEXT,
)
from tests.submissions.test_check import edited


def tasks_of(folder):
    return json.loads((folder / "submission.json").read_text())["tasks"]


def levels(medtasks, *more):
    """What the check says of the submission."""
    found = medtasks("submit", "--check", PLACE, *more)
    assert found.code == 0, found.text
    return found.out


def test_answers_to_open_data_alone_are_given_and_checked(medtasks, submission, tmp_path):
    found = dict(read_answers(tmp_path / ANSWERS))
    assert found.keys() == {OPEN_MEAN, OPEN_COUNTS}
    tasks = tasks_of(submission)
    assert all(len(found[name]) == tasks[name]["n"] for name in found)
    assert all(item.prompt for items in found.values() for item in items)
    said = levels(medtasks, "--answers", ANSWERS)
    assert "answers checked: 2 of 4, self-reported: 2 of 4" in said and "its data is not open" in said


def test_reasoning_is_left_out(medtasks, run, tmp_path):
    folder = run(tasks=OPEN_MEAN)
    thought = f"I wonder about {SECRET_TEXT}."
    first = (folder / f"samples_{OPEN_MEAN}.jsonl").read_text().partition("\n")[0]
    document = document_key(json.loads(first)["doc"])
    rewrite_answers(folder, OPEN_MEAN, {document: f"<think>{thought}</think>\nB"})
    assert medtasks("rescore", "run").code == 0
    written = medtasks("submit", "run", "-o", PLACE)
    assert written.code == 0 and "trust: answers checked: 1 of 1" in written.out
    [(_, items)] = read_answers(tmp_path / ANSWERS)
    [item] = [one for one in items if one.document == document]
    assert item.answer == "<think></think>\nB"
    assert thought.encode() not in (tmp_path / ANSWERS).read_bytes()


_PIECES = st.sampled_from(
    ["<think>", "</think>", "</THINK>", "<THINK>", "＜/think＞", "A", " B", "\n", "Result: ", "yes", "İ",
     "assistantfinal", "</thinking>", "answer: no", "．", "[/THINK]", "42"]
)  # fmt: skip
_FORMATS = [
    {"kind": "exact_letter", "letters": ["A", "B"]},
    {"kind": "option_letter", "letters": ["A", "B"]},
    {"kind": "label", "prefix": "answer", "labels": ["yes", "no"], "longest_first": False},
    {"kind": "text"},
    {"kind": "free_text"},
]


@given(st.lists(_PIECES, max_size=9).map("".join), st.sampled_from(_FORMATS), st.booleans())
def test_an_answer_without_its_reasoning_is_read_as_the_whole_is(text, form, cot):
    reader = answer_format(form)
    final = final_answer(text)
    assert len(final) <= len(text) and final_answer(final) == final
    assert unclosed_reasoning([text]) == unclosed_reasoning([final])
    document = {"options": ["one", "two"], "gold": "A", "target": "A", "cot": cot}
    if reader.has_released_reader(cot=cot):
        one, other = (reader.read(item, document, cot=cot) for item in (text, final))
        assert (one.answer, one.valid) == (other.answer, other.valid)
    one, other = (reader.read_repaired(item, document, cot=cot) for item in (text, final))
    assert one["answer"] == other["answer"]


def test_answers_that_cannot_be_had_or_are_another_file_are_named(
    medtasks, submission, tmp_path, carry_answers
):
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    other = medtasks("submit", "--check", PLACE, "--answers", "other.parquet")
    assert other.code == 0 and "is another file than the one that submission.json names" in other.out
    assert "no such file" in medtasks("submit", "--check", PLACE, "--answers", "gone.parquet").out
    carry_answers(tmp_path / ANSWERS).unlink()
    offline = medtasks("submit", "--check", PLACE)
    assert "self-reported: 4 of 4" in offline.out and "HF_HUB_OFFLINE is set" in offline.out
    edited(submission, lambda content: content["answers"].pop("address"))
    assert "no address says where the file is had" in medtasks("submit", "--check", PLACE).out


def test_a_file_of_answers_is_fetched_and_held_against_its_hash(medtasks, submission, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    (tmp_path / "served").mkdir()
    shutil.copy(tmp_path / ANSWERS, tmp_path / "served" / "a.parquet")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    serve = functools.partial(Quiet, directory=tmp_path / "served")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        here = f"http://127.0.0.1:{server.server_port}"
        moved = property(lambda file: [file.name.replace("https://example.org", here)])
        monkeypatch.setattr(RemoteFile, "urls", moved)
        monkeypatch.setattr(transfer, "WEB", rf"{here}/\S+")
        address = "https://example.org/a.parquet"
        edited(submission, lambda content: content["answers"].update(address=address))
        assert "answers checked: 2 of 4" in medtasks("submit", "--check", PLACE).out
        content = bytearray((tmp_path / ANSWERS).read_bytes())
        content[40] ^= 1
        (tmp_path / "served" / "b.parquet").write_bytes(content)
        other = address.replace("a.parquet", "b.parquet")
        edited(submission, lambda content: content["answers"].update(address=other))
        assert "sends other content than is pinned" in medtasks("submit", "--check", PLACE).out
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_of_answers_that_is_none_is_said(tmp_path):
    from medtasks_ext.errors import MedtasksError

    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MedtasksError, match="is no table"):
        list(read_answers(tmp_path / "a.parquet"))
    file = tmp_path / "b.parquet"
    write_answers(file, [("one", [FinalAnswer("d", "p", "a")])])
    table = parquet.read_table(file).drop_columns(["prompt"])
    parquet.write_table(table, file)
    with pytest.raises(MedtasksError, match="has other columns"):
        list(read_answers(file))


@pytest.mark.parametrize(
    "address",
    ["http://example.org/a", "https://127.0.0.1/a", "https://localhost/a", "https://example.org:8080/a",
     "https://user:key@example.org/a", "file:///etc/passwd", "https://[::1]/a", "https://10.0.0.1/a"],
)  # fmt: skip
def test_an_address_leads_to_the_web_and_not_into_the_network_of_who_checks(medtasks, submission, address):
    edited(submission, lambda content: content["answers"].update(address=address))
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1 and "answers.address" in found.out


@pytest.fixture
def lm_eval(rows, built_tasks, monkeypatch):
    """Plain `lm_eval` on these rows, into the folder `plain`, without an index of its own tasks."""
    from lm_eval import tasks
    from lm_eval.__main__ import cli_evaluate

    import medtasks_ext.models  # noqa: F401  # `random-label`

    monkeypatch.setattr(tasks, "TaskManager", functools.partial(tasks.TaskManager, include_defaults=False))

    def ask(*names: str) -> None:
        arguments = ["lm_eval", "--model", "random-label", "--tasks", ",".join(names),
                     "--model_args", "pretrained=Org/random-label", "--include_path",
                     str(built_tasks), "--output_path", "plain", "--log_samples"]  # fmt: skip
        monkeypatch.setattr("sys.argv", arguments)
        cli_evaluate()

    return ask


def test_samples_of_plain_lm_eval_are_taken(medtasks, lm_eval):
    lm_eval(OPEN_MEAN, CLOSED_COUNTS)
    written = medtasks("submit", "plain", "-o", PLACE, "--address", ADDRESS)
    assert written.code == 0, written.text
    said = levels(medtasks, "--answers", "plain.answers.parquet")
    assert "answers checked: 1 of 2, self-reported: 1 of 2" in said


def test_likelihoods_of_options_are_no_answers(medtasks, run):
    run("run", "--ask", "likelihood", tasks=OPEN_MEAN, model="oracle")
    written = medtasks("submit", "run", "-o", PLACE.replace("random-label", "oracle"))
    assert written.code == 0 and "trust: self-reported: 1 of 1" in written.out
