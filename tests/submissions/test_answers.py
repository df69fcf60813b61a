"""The answers of a submission: what the file holds, and what the check makes of it."""

import dataclasses
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
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import RemoteFile
from medtasks_lab.submissions.answers import (
    FinalAnswer,
    answers_digest,
    described,
    final_answer,
    read_answers,
    write_answers,
)
from tests.conftest import ROOT, rewrite_answers, write_jsonl
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


def test_answers_to_open_data_alone_are_given_and_checked(medtasks, submission, tmp_path):
    found = dict(read_answers(tmp_path / ANSWERS))
    assert found.keys() == {OPEN_MEAN, OPEN_COUNTS}
    tasks = tasks_of(submission)
    levels = {name: item["trust"] for name, item in tasks.items()}
    assert [name for name, level in levels.items() if level == "answers checked"] == sorted(found)
    assert set(levels.values()) == {"answers checked", "self-reported"}
    assert all(len(found[name]) == tasks[name]["n"] for name in found)
    assert all(item.as_rendered and item.prompt for items in found.values() for item in items)
    checked = medtasks("submit", "--check", PLACE, "--answers", ANSWERS)
    assert checked.code == 0
    assert "answers checked in 2 of 4 tasks, self-reported in 2" in checked.out
    assert sum(file.stat().st_size for file in submission.iterdir()) < 2_000_000


def test_reasoning_is_left_out_and_its_length_stays(medtasks, run, tmp_path):
    folder = run(tasks=OPEN_MEAN)
    thought = f"I wonder about {SECRET_TEXT}."
    first = (folder / f"samples_{OPEN_MEAN}.jsonl").read_text().partition("\n")[0]
    document = document_key(json.loads(first)["doc"])
    rewrite_answers(folder, OPEN_MEAN, {document: f"<think>{thought}</think>\nB"})
    assert medtasks("rescore", "run").code == 0
    assert medtasks("submit", "run", "-o", PLACE).code == 0
    [(_, items)] = read_answers(tmp_path / ANSWERS)
    [item] = [one for one in items if one.document == document]
    assert item.answer == "<think></think>\nB"
    assert item.reasoning == len(thought) and len(item.reasoning_hash) == 32
    assert thought.encode() not in (tmp_path / ANSWERS).read_bytes()
    assert tasks_of(tmp_path / PLACE)[OPEN_MEAN]["trust"] == "answers checked"


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
    final, reasoning = final_answer(text)
    assert len(final) + len(reasoning) <= len(text) and final_answer(final)[0] == final
    assert unclosed_reasoning([text]) == unclosed_reasoning([final])
    document = {"options": ["one", "two"], "gold": "A", "target": "A", "cot": cot}
    if reader.has_released_reader(cot=cot):
        one, other = (reader.read(item, document, cot=cot) for item in (text, final))
        assert (one.answer, one.valid) == (other.answer, other.valid)
    one, other = (reader.read_repaired(item, document, cot=cot) for item in (text, final))
    assert one["answer"] == other["answer"]


# ---------------------------------------------------------------------- what does not fit


def rewritten(folder, file, change):
    """Another file of answers, which the record names with the right hash and digests: all but the truth."""
    found = {name: change(name, items) for name, items in read_answers(file)}
    write_answers(file, found.items())

    def name_it(content):
        content["answers"] = described(file, [ADDRESS]).model_dump()
        for name, items in found.items():
            content["tasks"][name]["answers"] = answers_digest(items)

    edited(folder, name_it)


def replaced(**changes):
    """A change of the first answer of each task."""
    from dataclasses import replace

    return lambda _, items: [replace(items[0], **changes), *items[1:]]


FORGED = {
    "an answer": (replaced(answer="none of them"), "the answers give other"),
    "a prompt": (replaced(prompt="0" * 32), "of 12 prompts are others here"),
    "a document": (replaced(document="elsewhere"), "answers are to documents that are not here"),
    "an answer less": (lambda _, items: items[1:], "answers to 11 documents, and the record says 12"),
    "another order": (lambda _, items: items[::-1], "stand in another order"),
    "prompts that were not sent": (replaced(as_rendered=False), "prompts were sent otherwise"),
}


@pytest.mark.parametrize("case", FORGED)
def test_answers_that_do_not_give_the_scores_prove_nothing(medtasks, submission, tmp_path, case):
    change, words = FORGED[case]
    rewritten(submission, tmp_path / ANSWERS, change)
    found = medtasks("submit", "--check", PLACE, "--answers", ANSWERS)
    assert found.code == 1, found.text
    assert words in found.out and f"tasks.{OPEN_MEAN}.trust: is answers checked, and the check" in found.out


def test_answers_that_cannot_be_had_or_are_another_file_are_named(
    medtasks, submission, tmp_path, carry_answers
):
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    other = medtasks("submit", "--check", PLACE, "--answers", "other.parquet")
    assert other.code == 1 and "is another file than the one that submission.json names" in other.out
    assert "no such file" in medtasks("submit", "--check", PLACE, "--answers", "gone.parquet").out
    carry_answers(tmp_path / ANSWERS).unlink()
    offline = medtasks("submit", "--check", PLACE)
    assert offline.code == 1 and "HF_HUB_OFFLINE is set" in offline.out
    edited(submission, lambda content: content["answers"].pop("addresses"))
    assert "no address says where the file is had" in medtasks("submit", "--check", PLACE).out
    assert len(tasks_of(submission)) == 4  # nothing is lost


def test_rows_that_are_others_here_prove_nothing(medtasks, submission, data_dir):
    from medtasks_ext.prompts import load

    rows = data_dir / "medhelm" / "medqa" / "test.jsonl"
    rows.write_text(rows.read_text().replace('"answer_idx": "A"', '"answer_idx": "C"'))
    load._build.cache_clear()
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1 and "other documents: rows" in found.out
    assert OPEN_COUNTS not in found.out


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
        edited(submission, lambda content: content["answers"].update(addresses=[address]))
        assert "answers checked in 2 of 4" in medtasks("submit", "--check", PLACE).out
        content = bytearray((tmp_path / ANSWERS).read_bytes())
        content[40] ^= 1
        (tmp_path / "served" / "b.parquet").write_bytes(content)
        other = address.replace("a.parquet", "b.parquet")
        edited(submission, lambda content: content["answers"].update(addresses=[other]))
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
    write_answers(file, [("one", [FinalAnswer("d", "p", True, "a")])])
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
    edited(submission, lambda content: content["answers"].update(addresses=[address]))
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1 and "answers.addresses.0" in found.out


# ---------------------------------------------------------------------- who gives none


def test_answers_may_be_kept_and_old_submissions_have_none(medtasks, run, tmp_path):
    run()
    written = medtasks("submit", "run", "-o", PLACE, "--no-answers")
    assert written.code == 0 and "trust: self-reported" in written.out
    assert not (tmp_path / ANSWERS).exists()
    edited(tmp_path / PLACE, lambda content: content.update(schema=2))
    edited(tmp_path / PLACE, lambda content: [item.pop("trust") for item in content["tasks"].values()])
    old = medtasks("submit", "--check", PLACE)
    assert old.code == 0 and "self-reported" in old.out


def test_what_has_no_rank_is_said_when_it_is_submitted(medtasks, run):
    run()
    written = medtasks("submit", "run", "-o", PLACE).out
    assert "no rank: 4 tasks" in written and "on a part of its rows or judgements" in written


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


def test_samples_of_plain_lm_eval_are_taken(medtasks, lm_eval, tmp_path):
    lm_eval(OPEN_MEAN, CLOSED_COUNTS)
    written = medtasks("submit", "plain", "-o", PLACE, "--address", ADDRESS)
    assert written.code == 0, written.text
    levels = {name: item["trust"] for name, item in tasks_of(tmp_path / PLACE).items()}
    assert levels == {OPEN_MEAN: "answers checked", CLOSED_COUNTS: "self-reported"}
    assert medtasks("submit", "--check", PLACE, "--answers", "plain.answers.parquet").code == 0


@pytest.fixture
def by_likelihood(rows):
    """Names of tasks by likelihood; the score of the second one's written answers is a micro F1."""
    sample = (ROOT / "tasks/clinicbench/gad/sample.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line) for line in sample]
    test = [item for item in items if item.pop("_split") == "test"]
    write_jsonl(rows / "clinicbench/gad/test.jsonl", test)
    return f"{OPEN_MEAN}_ll", "clinicbench_gad_ll"


def test_likelihoods_of_options_are_checked_as_answers_are(medtasks, lm_eval, by_likelihood, tmp_path):
    lm_eval(*by_likelihood)
    written = medtasks("submit", "plain", "-o", PLACE, "--address", ADDRESS)
    assert written.code == 0, written.text
    levels = {name: item["trust"] for name, item in tasks_of(tmp_path / PLACE).items()}
    assert levels == dict.fromkeys(by_likelihood, "answers checked")
    check = ("submit", "--check", PLACE, "--answers", "plain.answers.parquet")
    checked = medtasks(*check)
    assert checked.code == 0 and "all scores follow; answers checked" in checked.out, checked.text


def test_likelihoods_of_a_run_are_checked_as_well(medtasks, run, by_likelihood, tmp_path):
    run("run", "--ask", "likelihood", tasks=OPEN_MEAN, model="oracle")
    assert medtasks("submit", "run", "-o", PLACE.replace("random-label", "oracle")).code == 0
    levels = {
        task: item["trust"]
        for task, item in tasks_of(tmp_path / PLACE.replace("random-label", "oracle")).items()
    }
    assert levels == {by_likelihood[0]: "answers checked"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("[[-1.0, false]]", "possible answers, and 1 are stored"),
        ("-1", "answers that are no likelihoods"),
        ('[["x", false], [1, 2]]', "answers that are no likelihoods"),
        ("[[NaN, false], [-1.0, true]]", "answers that are no likelihoods"),
    ],
)
def test_likelihoods_that_are_none_are_named(medtasks, lm_eval, by_likelihood, tmp_path, answer, said):
    lm_eval(by_likelihood[1])
    assert medtasks("submit", "plain", "-o", PLACE, "--address", ADDRESS).code == 0
    file = tmp_path / "plain.answers.parquet"
    answers = dict(read_answers(file))
    first, *others = answers[by_likelihood[1]]
    digests = write_answers(file, [(by_likelihood[1], [dataclasses.replace(first, answer=answer), *others])])

    def renamed(content):
        content["answers"].update(described(file, [ADDRESS]).model_dump(mode="json"))
        content["tasks"][by_likelihood[1]]["answers"] = digests[by_likelihood[1]]

    edited(tmp_path / PLACE, renamed)
    found = medtasks("submit", "--check", PLACE, "--answers", str(file))
    assert found.code == 1 and said in found.out, found.text
