"""Texts are folded from Python source without running it; what is not understood is named."""

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.folding import PythonSource
from medtasks_ext.registry.blocks import TextLocation
from medtasks_ext.suites.helm import read_adapter

SCENARIO = '''
from elsewhere.scenario import Framed
OUTER = "outer {name}"
TIDY = """
  tidy  """.strip()
FORM = """Case: [[case]]
Now: [[finding]]"""
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


def taken(source: PythonSource, take: str, slots: set[str], **more: object) -> str:
    return source.taken(TextLocation(**{"in": "make", "take": take, **more}), slots).shown()


@pytest.mark.parametrize(
    ("take", "slots", "nth", "text"),
    [
        # strings, sums, products and slots, which may be any expression
        ("prompt", {"counter", "question"}, None, "{counter} Answer: {question} now!---"),
        ("prompt", {"counter", "row['question']"}, None, "{counter} Answer: {row['question']} now!---"),
        # constructors of other files with their defaults
        ("framed", {"question"}, None, "H: Q: {question}\n."),
        # str.format, and what is handed to a call
        ("parts.append", {"name.lower()"}, 0, "You are {name.lower()}."),
        ("parts.append", {"question"}, 1, "Do: outer {question}"),
        # a text that is made of the one before it
        ("guide", set(), 0, "outer {name}"),
        ("guide", set(), 1, "{name}"),
        # a text that stands for a parameter that was not given
        ("given", set(), None, "plain"),
    ],
)
def test_a_text_is_put_together_as_the_source_would(source, take, slots, nth, text):
    assert taken(source, take, slots, **({} if nth is None else {"nth": nth})) == text


def test_a_value_of_a_dictionary_with_names_in_braces(source):
    place = TextLocation(**{"in": "make", "take": "return", "key": "example", "braces": True})
    template = source.taken(place, set())
    assert template.slots == {"{record}"} and template.shown() == "Record:\n{record}\n"


def test_a_text_of_the_module_in_which_the_names_of_slots_stand(source):
    template = source.taken(TextLocation(take="FORM", marks=True), {"[[case]]", "[[finding]]"})
    assert source.text("TIDY") == "tidy"
    assert template.filled({"[[case]]": "fever", "[[finding]]": "rash"}.get) == "Case: fever\nNow: rash"


def test_lists_and_tables_that_assignments_fill(source):
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
        taken(source, take, slots)
    assert said in str(error.value) and "→" in str(error.value)


def test_nothing_runs(tmp_path):
    mark = tmp_path / "ran"
    text = f'import pathlib\npathlib.Path({str(mark)!r}).touch()\ndef make():\n    prompt = "text"\n'
    assert (
        PythonSource(text, "x.py").taken(TextLocation(**{"in": "make", "take": "prompt"}), set()).text
        == "text"
    )
    assert not mark.exists()


def test_lists_that_are_assigned_twice():
    lines = PythonSource('A = ["one", "two"]\nEND = "!"\nA = [line + END for line in A]\n', "config.py")
    assert lines.texts("A") == ["one!", "two!"]


@pytest.mark.parametrize(
    ("name", "slots", "words", "prompt"),
    [
        ("choice", {"shown"}, ("Pick for a b.", "TEXT", ["yes", "no"]),
         "Pick for a b.\n\nTEXTA. yes\nB. no\nReply. :"),
        ("text", set(), ("Write.", "TEXT", []), "Write.\n\nFindings:\nTEXT\nImpression:"),
        ("bare", set(), ("", "TEXT", []), "TEXT\n"),
    ],
)  # fmt: skip
def test_an_adapter_puts_words_around_a_text(name, slots, words, prompt):
    assert read_adapter(PythonSource(SPECS, "specs.py"), name, slots).prompt(*words) == prompt


def test_a_run_spec_that_is_not_there():
    with pytest.raises(MedtasksError, match="no function that is registered as other"):
        read_adapter(PythonSource(SPECS, "specs.py"), "other", set())
