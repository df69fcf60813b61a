"""What real servers say and want, through the command line: filters, refusals, answers in parts, gateways."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medtasks_ext.run.store import Answers
from medtasks_ext.runs.conditions import other_models
from tests.conftest import outcomes
from tests.engines.server import Reply, Server, chat, fair
from tests.run_files import result_of, samples_file

pytestmark = pytest.mark.long

TASK = "bridge_chip_ctc"
RIGHT = "clinical trial criterion: {}"


def error(status: int, message: str, **more: object) -> Reply:
    return Reply({"error": {"message": message, **more}}, status)


def choice(message: dict, finish: str = "stop") -> Reply:
    body = chat()
    body["choices"][0] |= {"message": {"role": "assistant", **message}, "finish_reason": finish}
    return Reply(body)


def text(words: str) -> dict:
    return {"type": "text", "text": words}


#: By document: what a server says, and the text that is scored.
SAID = [
    (error(400, "The response was filtered due to the prompt triggering Azure OpenAI's content management "
           "policy.", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}), ""),
    (choice({"content": None}, "content_filter"), ""),
    (error(400, "Output blocked by content filtering policy", type="invalid_request_error"), ""),
    (error(403, "Your chosen model requires moderation; your input was flagged", code=403), ""),
    (error(400, "Input data may contain inappropriate content.", code="data_inspection_failed"), ""),
    (choice({"content": None, "refusal": RIGHT.format("疾病")}), RIGHT.format("疾病")),
    (choice({"content": [{"type": "thinking", "thinking": [text("Let me "), text("see.")]},
                         text("clinical trial "), text("criterion: 护理")]}), RIGHT.format("护理")),
    (choice({"content": [{"type": "thinking", "thinking": "So."}, text(RIGHT.format("睡眠"))]}),
     RIGHT.format("睡眠")),
]  # fmt: skip


def flags(server: Server, kind: str = "local-chat-completions", model: str = "m-2026") -> tuple[str, ...]:
    settings = {"model": model, "base_url": f"{server.url}/chat/completions", "max_retries": 0}
    return ("run", "--tasks", TASK, "--model", kind, "--apply_chat_template", "--output_path", "run",
            "--model_args", ",".join(f"{name}={value}" for name, value in settings.items()))  # fmt: skip


def samples() -> dict[str, dict]:
    lines = samples_file("run", TASK).read_text(encoding="utf-8").splitlines()
    return {item["doc"]["id"]: item for item in map(json.loads, lines)}


def test_what_a_server_filters_is_no_answer_and_what_it_says_in_other_places_is_one(medtasks, chip_ctc):
    async def script(asked):
        return SAID[int(re.findall(r"入组标准第(\d)条", asked.prompt)[-1])][0]

    with Server(script) as server:
        done = medtasks(*flags(server), "--no-preflight")
        assert done.code == 0 and len(server.asked) == 8, done.text
    read = {name: item["resps"][0][0] for name, item in samples().items()}
    assert read == {f"test-{n}": said for n, (_, said) in enumerate(SAID)}
    assert "answers that the server filtered, so that the model gave none: 5" in done.text
    assert "chat template" not in done.err
    assert {item.get("reasoning", "") for item in outcomes("run", TASK)} == {"", "Let me see.", "So."}
    assert result_of("run", TASK)["metrics"]["score"] == 3 / 8
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    assert "server, so that the model gave none: 5." in Path("card/medical-evaluation.md").read_text("utf-8")


def test_a_wrong_name_of_a_model_is_one_message_and_the_corrected_call_takes_the_folder(medtasks, chip_ctc):
    async def script(asked):
        return await fair(asked) if asked.body["model"] == "right" else error(404, "no such model")

    with Server(script) as server:
        outcome = medtasks(*flags(server, model="wrong"))
        assert outcome.code == 2 and not outcome.out and outcome.err.count("has no model 'wrong'") == 1
        medtasks.done(*flags(server, model="right"))
        assert not Answers(Path("run"), write=False).faults  # nothing of the wrong name is shown any more
        (results,) = Path("run").glob("results_*.json")
        Path("run/answers.jsonl").unlink()
        assert medtasks(*flags(server, model="wrong")).code == 2 and results.is_file()


def test_a_limit_counts_what_calls_without_a_price_asked(medtasks, chip_ctc):
    async def script(asked):
        return Reply(chat(usage={"prompt_tokens": 10**6, "completion_tokens": 1}))

    Path("price.yaml").write_text("metadata: {price: {input: 1, output: 1}}")
    with Server(script) as server:
        medtasks.done(*flags(server), "--limit", "2")
        done = medtasks(*flags(server), "--config", "price.yaml", "--max-cost", "2")
        assert "--max-cost is reached" in done.err and len(server.asked) == 2


def test_a_gateways_name_of_a_model_that_reasons_is_asked_as_is_said(medtasks, chip_ctc, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")

    async def script(asked):
        if "max_tokens" in asked.body:
            said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use {} instead."
            return error(400, said.format("'max_completion_tokens'"), code="unsupported_parameter")
        if asked.body["stop"]:
            return error(400, "Unsupported parameter: 'stop' is not supported with this model.")
        if asked.body["temperature"] != 1:
            said = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1)"
            return error(400, f"{said} value is supported.", code="unsupported_value")
        return Reply(chat(RIGHT.format("疾病")))

    with Server(script) as server:
        first = medtasks(*flags(server))
        assert first.code == 1 and "ask with --model openai-chat-completions" in first.err
        assert "the length is max_gen_toks" not in first.err
        kind, said = "openai-chat-completions", []
        for more in ([], ["stop=None"], ["stop=None", "temperature=1"]):
            given = ("--gen_kwargs", *more) if more else ()
            done = medtasks(*flags(server, kind), *given, "--output_path", f"with{len(more)}")
            said.append(done.err)
    assert all("add --gen_kwargs temperature=1 stop=None" in one for one in said[:2])
    assert done.code == 0, done.text


@pytest.mark.parametrize(("served", "is_said"), [("gpt-5-other", True), ("gpt-4o-2024-08-06", False)])
def test_another_model_is_said_at_the_end_in_the_report_and_on_the_card(medtasks, chip_ctc, served, is_said):
    async def script(asked):
        return Reply(chat(RIGHT.format("疾病"), model=served if asked.number % 2 else asked.body["model"]))

    with Server(script) as server:
        done = medtasks.done(*flags(server, model="gpt-4o"))
    said = f"asked for gpt-4o, and the server answered as {served}"
    assert medtasks("report", "run", "-o", "report").code == 0
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    card = Path("card/medical-evaluation.md").read_text(encoding="utf-8")
    pages = "".join(path.read_text(encoding="utf-8") for path in Path("report").rglob("*.html"))
    assert [said in text for text in (done.err, pages, card)] == [is_said] * 3
    assert ("answered as" in done.err) is is_said


SAME = """
gpt-4o gpt-4o-2024-08-06
gpt-4o openai/gpt-4o
openai/gpt-4o:free openai/gpt-4o-2024-08-06 openrouter/openai/gpt-4o
gpt-4o-2024-08-06 gpt-4o
gemini-1.5-pro models/gemini-1.5-pro-002
gemini-2.5-pro-preview gemini-2.5-pro-preview-05-06
mistral-large-latest mistral-large-2411
llama3 llama3:latest
meta-llama/Llama-3.1-8B-Instruct:novita meta-llama/llama-3.1-8b-instruct
accounts/fireworks/models/llama-v3p1-8b-instruct llama-v3p1-8b-instruct
/models/x /models/x
"""
OTHER = """
m gpt-5-other
m xm
gpt-4 gpt-4-32k
gpt-4o gpt-4o-mini-2024-07-18
gpt-4o-2024-08-06 gpt-4o-2024-11-20
claude-3-5-sonnet claude-3-5-haiku-20241022
gpt-4-turbo gpt-4-0125-preview
qwen3-8b qwen3-32b
a/llama b/llama
"""


def test_a_date_an_edition_or_a_provider_in_a_name_is_no_other_model():
    alike, unlike = ([line.split() for line in table.split("\n") if line] for table in (SAME, OTHER))
    assert [pair for pair in alike if other_models(pair[0], pair[1:])] == []
    assert [pair for pair in unlike if not other_models(pair[0], pair[1:])] == []
    assert other_models("m", ["<b>x</b> `y`", "m"]) == ["?b?x?/b???y?"]


# Whatever bytes a server sends, the run can be continued, rescored, reported and verified.


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
    report = ("report", folder, "-o", f"{folder}-report", "--published", "none")
    for step in (command, ("rescore", folder), report):
        done = medtasks(*step)
        assert done.code == 0, (first.text, step, done.text)
    answers = outcomes(tmp_path / folder, TASK)
    assert len(answers) == len({record["key"] for record in answers}) == 8
