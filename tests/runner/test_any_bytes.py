"""Whatever bytes a server sends, the run can be continued, rescored, reported and verified."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import outcomes
from tests.engines.server import Reply, Server, chat, fair

TASK = "bridge_chip_ctc"
TYPES = ["application/json", "text/html", "text/event-stream", "application/octet-stream", ""]
#: Texts that a JSON file, a terminal, a table or a page could stumble over.
ODD = ["", "\ud83d", "\udc00x", "\x00", "\x1b[31m", "{{ 7 * 7 }}", "=1+1", "</script><b>", "NaN", "\u2028"]
TEXTS = st.sampled_from(ODD) | st.text(max_size=30)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def body(content: object) -> bytes:
    """JSON as servers write it, NaN and half surrogates included."""
    return json.dumps(content).encode()


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """One reply: bytes of any kind, or a completion of which a part is something else."""
    completion = chat(draw(TEXTS | ANYTHING))
    part = draw(st.sampled_from(["", "usage", "model", "id", "choices", "finish_reason", "message", "error"]))
    if part in ("finish_reason", "message"):
        completion["choices"][0][part] = draw(ANYTHING)
    elif part:
        completion[part] = draw(ANYTHING)
    made = body(completion)
    content = draw(
        st.sampled_from([made, made, made[: len(made) // 2], b"x" * 2**20, b"[" * 10_000, b"9" * 10_000])
        | st.binary(max_size=60)
        | st.builds(body, ANYTHING)
    )
    status = draw(st.sampled_from([200, 200, 200, 200, 204, 400, 413, 422]))
    return Reply(content, status, {"Content-Type": draw(st.sampled_from(TYPES))}, close=draw(st.booleans()))


@pytest.fixture
def hostile():
    with Server() as one:
        yield one


FOLDERS = itertools.count()


#: Examples are runs of eight replies each.
FEW = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
EIGHT = st.lists(replies(), min_size=8, max_size=8)


@FEW
@given(EIGHT)
def test_any_replies_leave_a_run_that_goes_on(medtasks, hostile, chip_ctc, tmp_path, given_replies):
    check(medtasks, hostile, tmp_path, given_replies)


@pytest.mark.nightly
@MANY
@given(EIGHT)
def test_many_replies_leave_a_run_that_goes_on(medtasks, hostile, chip_ctc, tmp_path, given_replies):
    check(medtasks, hostile, tmp_path, given_replies)


def check(medtasks, hostile, tmp_path, given_replies):
    """A run with those replies, and all that is done with a run afterwards."""
    folder, queue = f"run{next(FOLDERS)}", iter(given_replies)

    async def script(asked):
        return next(queue, None) or await fair(asked)

    hostile.script = script
    url = f"model=m,base_url={hostile.url}/chat/completions"
    command = ("run", "--tasks", TASK, "--model", "local-chat-completions", "--model_args", url,
               "--apply_chat_template", "--no-preflight", "--output_path", folder)  # fmt: skip
    first = medtasks(*command)
    assert first.code in (0, 1, 2) and "Traceback" not in first.text, first.text
    hostile.script = fair
    for step in (
        command,
        ("rescore", folder),
        ("report", folder, "-o", f"{folder}-report", "--published", "none"),
    ):
        done = medtasks(*step)
        assert done.code == 0, (first.text, step, done.text)
    answers = outcomes(tmp_path / folder, TASK)
    assert len(answers) == len({record["key"] for record in answers}) == 8
