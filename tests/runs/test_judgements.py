"""What judges said, on disk: one chained file a task, total on every string."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.engines import Fault, FaultKind, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runs import About, Intent, Judgement, OutcomeLog, Stored
from medtasks_ext.runs.chain import sealed_head
from medtasks_ext.runs.outcomes import judged_files

TASK = "medhelm_mediqa"
USAGE = Usage(100, 20, prompt_bytes=380)
VERDICT = Judgement({"accuracy": 4.0}, {"accuracy": {"score": 4, "explanation": "so"}}, USAGE, 0.25, 1)
FAILURE = Fault(FaultKind.UNREADABLE, "no JSON object in the reply", usage=USAGE, cost=0.25)

halves = st.text(st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF), max_size=2)
any_text = st.lists(st.one_of(st.text(max_size=20), halves), max_size=4).map("".join)
money = st.floats(0, 1e6)
tokens = st.integers(0, 9)
usages = st.builds(Usage, tokens, tokens, counted=st.booleans(), prompt_bytes=tokens)
abouts = st.builds(About, any_text, any_text, any_text, any_text, response_hash=any_text)
ratings = st.dictionaries(any_text, st.floats(0, 5), max_size=3)
verdicts = st.dictionaries(any_text, any_text, max_size=3)
judgements = st.builds(
    Judgement, ratings, verdicts, st.none() | usages, st.none() | money, st.integers(0, 9), any_text
)
failures = st.builds(
    Fault,
    st.sampled_from(FaultKind),
    any_text,
    usage=st.none() | usages,
    cost=st.none() | money,
    request_id=any_text,
)
entries = st.one_of(judgements, failures, st.builds(Intent, money))
settled = st.none() | money


def line(entry, settles=None, key="k"):
    return Stored(key, "d", entry, about=About("one"), settles=settles)


def opened(folder):
    return OutcomeLog(folder, TASK)


def log_of(folder, *items):
    log = opened(folder)
    log.load()
    for item in items:
        log.append(item)
    log.close()
    return log


def read(folder):
    return list(opened(folder).read())


def again(stored):
    """As JSON has it: two halves that meet in a text are one character after reading."""
    return Stored.read(json.loads(json.dumps(stored.record())))


@given(st.lists(st.builds(Stored, any_text, any_text, entries, money, abouts, settled), max_size=5))
def test_whatever_was_stored_is_read_again(tmp_path_factory, items):
    folder = tmp_path_factory.mktemp("judgements")
    log_of(folder, *items)
    assert read(folder) == [again(item) for item in items]
    if items:
        for line in (folder / f"{TASK}.jsonl").read_bytes().splitlines():
            assert isinstance(json.loads(line.decode("utf-8")), dict)


def test_a_line_says_what_it_is(tmp_path):
    log_of(tmp_path, line(Intent(0.5)), line(VERDICT, 0.5), line(FAILURE, key="k2"))
    intent, verdict, failure = map(json.loads, (tmp_path / f"{TASK}.jsonl").read_bytes().splitlines())
    assert intent["intent"] == 0.5 and "ratings" not in intent
    assert verdict["ratings"] == {"accuracy": 4} and verdict["verdict"]["accuracy"]["explanation"] == "so"
    assert verdict["cost"] == 0.25 and verdict["settles"] == 0.5
    assert failure["fault"] == "no_verdict" and failure["reason"] and "ratings" not in failure


@pytest.mark.parametrize(
    ("lines", "unsure"),
    [
        ([line(Intent(0.5))], 0.5),
        ([line(Intent(0.5)), line(VERDICT, 0.5)], 0),
        ([line(Intent(0.5)), line(FAILURE, 0.5), line(Intent(0.5)), line(VERDICT, 0.5)], 0),
        # the first process was killed: what its request may have cost stays
        ([line(Intent(0.5)), line(Intent(0.5)), line(VERDICT, 0.5)], 0.5),
        # a reply to a judge whose price is not named any more settles nothing
        ([line(Intent(0.5)), line(Judgement({"accuracy": 4.0}, usage=Usage(1, 1)))], 0.5),
        ([line(Intent(0.5)), line(Fault(FaultKind.TIMEOUT, "no reply within 300 s"))], 0.5),
        ([line(Intent(0.5), key="other"), line(VERDICT, 0.5)], 0.5),
    ],
)
def test_an_intent_that_nothing_settles_counts(tmp_path, lines, unsure):
    log = log_of(tmp_path, *lines)
    assert log.unsure == unsure
    after = opened(tmp_path)
    after.load()
    assert after.unsure == unsure


CHANGES = {
    "another rating": lambda found: [found[0].replace(b"4.0", b"5.0"), *found[1:]],
    "a line taken out": lambda found: [found[0], *found[2:]],
    "a line put in twice": lambda found: [found[0], *found],
    "no chain in the middle": lambda found: [found[0], b'{"key": "k"}\n', *found[1:]],
    "no chain at the beginning": lambda found: [b'{"key": "k"}\n', *found[1:]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_that_is_not_the_one_that_was_written_is_named(tmp_path, change):
    log_of(tmp_path, *(line(VERDICT, key=f"k{i}") for i in range(4)))
    path = tmp_path / f"{TASK}.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(MedtasksError, match=r"line \d is damaged") as error:
        read(tmp_path)
    assert error.value.where == path


def test_a_chained_line_that_says_nothing_is_named(tmp_path):
    log = log_of(tmp_path, line(VERDICT))
    log._file.add({"key": "k", "judge": "one", "document": "d", "ratings": "high"})
    log.close()
    with pytest.raises(MedtasksError, match="line 2 is no outcome of a request"):
        read(tmp_path)


def test_a_sealed_file_shows_lines_that_are_missing_at_its_end(tmp_path):
    path = tmp_path / f"{TASK}.jsonl"
    seal = log_of(tmp_path, *(line(VERDICT, key=f"k{i}") for i in range(3))).seal
    assert seal.lines == 3 and sealed_head(path, seal)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert len(read(tmp_path)) == 2 and not sealed_head(path, seal)


def test_what_waits_for_a_physician_is_no_judgement(tmp_path):
    log_of(tmp_path, line(VERDICT))
    (tmp_path / f"disputed_{TASK}.jsonl").write_text("{}\n")
    assert judged_files(tmp_path) == [TASK]
