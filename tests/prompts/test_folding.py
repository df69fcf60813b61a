"""Texts are folded from Python source without running it; what is not understood is named."""

import re
import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.folding import PythonSource
from medtasks_ext.prompts.official.words import Held
from medtasks_ext.registry.blocks import Artefact, TextLocation
from medtasks_ext.suites.helm import AdapterWords, OfficialAdapter, read_adapter
from medtasks_ext.suites.medmarks import EnvironmentWords, OfficialEnvironment, aged

SCENARIO = '''
from elsewhere.scenario import Framed
OUTER = "outer {name}"
TIDY = """
  tidy  """.strip()
FORM = """Case: [[case]]
Now: [[finding]]"""
LINES = ["one", "two"]
END = "!"
LINES = [line + END for line in LINES]
TABLE = {"a": "first"}
TABLE["b"] = "second"

class Scenario:
    CHOICES = {"x": ["Doctor"]}

    def make(self, row, tone=None, loudness="soft"):
        question = row["question"]
        inner = f"Q: {question}\\n"
        prompt = (
            f"{counter} Answer: {question} "
            "now" + "!" + "-" * 3
        )
        framed = Framed(body=inner, head="H: ")
        parts = []
        parts.append("You are {role}.".format(role=name.lower()))
        parts.append("Do: " + OUTER.format(name=question))
        guide = OUTER
        if short:
            guide = guide.replace("outer ", "")
        loud = f"{question!r}"
        computed = question.upper()
        given = tone or "plain"
        fixed = loudness or "loud"
        either = counter or "none"
        return {"example": "Record:\\n{record}\\n"}

    def choices(self):
        return [f"Has {what}", "No"]
'''
ELSEWHERE = """
class Framed(Base):
    def __init__(self, body, head="", end="."):
        super().__init__(f"{head}{body}{end}")
"""
SPECS = """
@run_spec_function("choice")
def get_choice(condition):
    shown = condition.replace("_", " ")
    adapter_spec = get_multiple_choice_adapter_spec(
        method=JOINT, instructions=f"Pick for {shown}.", input_noun=None, output_noun="Reply. ",
    )

@run_spec_function("text")
def get_text():
    adapter_spec = get_generation_adapter_spec(
        instructions="Write.", input_noun="Findings", newline_after_input_noun=True, output_noun="Impression",
        newline_after_output_noun=True, max_tokens=128,
    )

@run_spec_function("bare")
def get_bare():
    adapter_spec = get_generation_adapter_spec(instructions="", input_noun=None, output_noun=None)
"""


@pytest.fixture
def source() -> PythonSource:
    return PythonSource(SCENARIO, "scenario.py", lambda module: PythonSource(ELSEWHERE, f"{module}.py"))


@pytest.mark.parametrize(
    ("take", "slots", "more", "text"),
    [
        # strings, sums, products and slots, which may be any expression
        ("prompt", {"counter", "row['question']"}, {}, "{counter} Answer: {row['question']} now!---"),
        # constructors of other files with their defaults
        ("framed", {"question"}, {}, "H: Q: {question}\n."),
        # str.format, and what is handed to a call
        ("parts.append", {"name.lower()"}, {"nth": 0}, "You are {name.lower()}."),
        ("parts.append", {"question"}, {"nth": 1}, "Do: outer {question}"),
        # a text that is made of the one before it
        ("guide", set(), {"nth": 1}, "{name}"),
        # a text that stands for a parameter that was not given
        ("given", set(), {}, "plain"),
        # a value of a dictionary with names in braces
        ("return", set(), {"key": "example", "braces": True}, "Record:\n{record}\n"),
    ],
)
def test_a_text_is_put_together_as_the_source_would(source, take, slots, more, text):
    assert source.taken(TextLocation(**{"in": "make", "take": take, **more}), slots).shown() == text


def test_texts_of_a_module_lists_and_tables(source):
    template = source.taken(TextLocation(take="FORM", marks=True), {"[[case]]", "[[finding]]"})
    assert template.filled({"[[case]]": "fever", "[[finding]]": "rash"}.get) == "Case: fever\nNow: rash"
    assert source.text("TIDY") == "tidy" and source.texts("LINES") == ["one!", "two!"]
    texts = source.listed(TextLocation(**{"in": "choices", "take": "return"}), {"what"})
    assert [text.shown() for text in texts] == ["Has {what}", "No"]
    assert source.table("TABLE") == {"a": "first", "b": "second"}
    assert source.table("CHOICES") == {"x": ["Doctor"]}


@pytest.mark.parametrize(
    ("take", "slots", "said"),
    [
        ("nothing", set(), "make, nothing: there is no such text"),
        ("parts.append", {"question"}, "2 texts; say which by `nth`"),
        ("prompt", {"question"}, "counter is neither one text nor a slot"),
        ("loud", {"question"}, "question is converted or formatted"),
        ("computed", {"question"}, "question.upper() is neither a text nor a slot"),
        ("fixed", set(), "neither a text nor a slot"),  # a parameter with a value, and no parameter
        ("either", set(), "neither a text nor a slot"),
    ],
)
def test_what_is_not_understood_is_named(source, take, slots, said):
    with pytest.raises(MedtasksError, match=r"scenario\.py") as error:
        source.taken(TextLocation(**{"in": "make", "take": take}), slots)
    assert said in str(error.value) and "→" in str(error.value)


@pytest.mark.parametrize(
    ("name", "slots", "words", "prompt"),
    [
        ("text", set(), ("Write.", "TEXT", []), "Write.\n\nFindings:\nTEXT\nImpression:"),
        ("bare", set(), ("", "TEXT", []), "TEXT\n"),
    ],
)  # fmt: skip
def test_an_adapter_puts_words_around_a_text(name, slots, words, prompt):
    assert read_adapter(PythonSource(SPECS, "specs.py"), name, slots).prompt(*words) == prompt


def test_reasoning_is_asked_behind_the_slot_that_the_block_names(tmp_path):
    with zipfile.ZipFile(tmp_path / "helm.whl", "w") as wheel:
        wheel.writestr("helm/benchmark/run_specs/medhelm_run_specs.py", SPECS)
    block = {"adapter": "choice", "slots": {"shown": "topic"}, "input": "note", "references": ["yes", "no"]}
    block["reasoned"] = {"after": "shown", "then": "{{ strategy }}"}
    held = Held(Artefact(file="helm.whl", revision="1", installed="written_here"), tmp_path / "helm.whl")
    words = AdapterWords(OfficialAdapter.model_validate(block), {"wheel": held}, tmp_path / "task.yaml")
    row = {"topic": "a cough", "note": "TEXT", "strategy": "Think."}
    direct, reasoned = (words.turn(row, "row 1", str, reasons=asked).text for asked in (False, True))
    assert direct == "Pick for a cough.\n\nTEXTA. yes\nB. no\nReply. :"
    assert reasoned == "Pick for a cough\n\nThink."


ENVIRONMENT = '''
raise SystemExit("this file was run")
TASK = """Case: {case}
{form}"""

def _ask(text, listed):
    return f"Q: {text}\\n{listed}"

def load_environment(system_prompt=None):
    chosen = system_prompt or "Be brief."
    def _map(row):
        asked = _ask(row["q"], "")
        return {"question": "Now.\\n" + asked + "\\nReply:"}
'''
CALLED = {
    "user": {"artefact": "environment", "in": "load_environment", "take": "return", "key": "question"},
    "system": {"in": "load_environment", "take": "chosen"},
    "pieces": {"again": {"in": "_ask", "take": "return"}},
    "slots": {"asked": "again()", "text": "question", "listed": "options | lettered('AB', ') ')"},
}
TEMPLATE = {
    "user": {"artefact": "environment", "take": "TASK", "braces": True},
    "pieces": {"form": {"artefact": "shared", "take": "FORM"}},
    "slots": {"{case}": "question | trim", "{form}": "form()"},
}


@pytest.fixture
def environment(tmp_path):
    """The prompts of an environment whose code would make them, by the block of a task file."""

    def made(block: dict) -> EnvironmentWords:
        held = {}
        for name, text in {"environment": ENVIRONMENT, "shared": 'FORM = "One letter."\n'}.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text, encoding="utf-8")
            held[name] = Held(Artefact(file=path.name, revision="1", installed="written_here"), path)
        return EnvironmentWords(OfficialEnvironment.model_validate(block), held, tmp_path / "task.yaml")

    return made


@pytest.mark.parametrize(
    ("block", "turns"),
    [
        # what functions return; the system turn stands apart
        (CALLED, ("Be brief.", "Now.\nQ:  A cough? \nA) Flu\nB) Gout\nReply:")),
        # a template, which takes a sentence of another file
        (TEMPLATE, ("", "Case: A cough?\nOne letter.")),
    ],
)
def test_turns_of_an_environment_are_those_that_its_code_would_make(environment, block, turns):
    turn = environment(block).turn({"question": " A cough? ", "options": ["Flu", "Gout"]}, "row 1", str)
    assert (turn.system, turn.text) == turns


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({**TEMPLATE, "slots": {"{form}": "form()"}}, "'{case}' is not filled"),
        ({**CALLED, "slots": {**CALLED["slots"], "more": "1"}}, "'more' is in none of the texts"),
        ({**CALLED, "system": {"take": "MISSING"}}, "MISSING: there is no such text"),
    ],
)
def test_another_file_than_the_block_is_of_is_named(environment, block, said):
    with pytest.raises(MedtasksError, match=re.escape(said)):
        environment(block)


def test_ages_are_a_little_higher_and_the_same_each_time():
    said = "A 58-year-old man and a 3 year old, 40 years married, 7yo."
    found = [float(number) for number in re.findall(r"([\d.]+) year-old", aged(said, 4))]
    assert [int(number) for number in found] == [58, 3, 7]
    assert all(0 <= number - int(number) <= 0.04 for number in found)
    assert aged(said, 4) == aged(said, 4) != aged(said, 5)
    assert "40 years married" in aged(said, 4)
