"""Jinja of task files, official blocks and chat templates ends with one message, whatever it does."""

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.words import _compiled
from medtasks_ext.prompts.template import rendering
from medtasks_ext.rows.expressions import Expression, Template
from medtasks_ext.rows.expressions import _compiled as jinja_of
from medtasks_ext.rows.sandbox import Declared

#: What a template may not do -> a word of the message.
ENDLESS = {
    "{% for i in range(10**12) %}{% endfor %}": "range",
    "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}": "passes",
    "{% for i in range(9) recursive %}{{ loop(range(9)) }}{% endfor %}": "",
    "{% for i in r recursive %}{% if loop.depth < 15 %}{{ loop(r) }}{% endif %}{% endfor %}": "passes",
    "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}": "",
    "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(40) }}": "passes",
    "{{ 'x' * 10**10 }}": "characters",
    "{{ ([1] * 10**10) | length }}": "characters",
    "{{ 2 ** (10**8) }}": "digits",
    "{{ 9 ** (9 ** 9) }}": "digits",
    "{{ '%1000000000d' % 1 }}": "width",
    "{{ '%*d' % (1000000000, 1) }}": "width",
    "{{ '{:>1000000000}'.format(1) }}": "unsafe",
    "{{ '{a}'.format_map({'a': 1}) }}": "unsafe",
    "{{ 'x'.ljust(10**10) }}": "ljust",
    "{{ 'x'.zfill(10**10) }}": "zfill",
    "{{ 'x' | center(10**10) }}": "center",
    "{{ 'yyyyyyyyyy' | list | join('x' * 6_000_000) }}": "characters",
    "{{ 'x' | indent(10**10) }}": "indent",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x ~ n.x %}{% endfor %}": "characters",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x + n.x %}{% endfor %}": "characters",
    "{% set n = namespace(x=[1]) %}{% for i in r %}{% set n.x = [n.x, n.x] %}{% endfor %}": "characters",
    "{% set n = namespace(x=1) %}{% for i in r %}{% set n.x = {1: n.x, 2: n.x} %}{% endfor %}": "",
    "{% set n = namespace(x=1) %}{% for i in r %}{% set n.x = dict(a=n.x, b=n.x) %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x.replace('x', n.x) %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x|replace('x', n.x) %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = [n.x, n.x]|join %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x.join([n.x, n.x]) %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x %}{{n.x}}{{n.x}}{% endset %}{% endfor %}": "",
    "{{ ''.__class__.__mro__ }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "unsafe",
    "{{ [].append(1) }}": "unsafe",
}
NO_JINJA = ["{{ " + "9" * 5000 + " }}", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "{% for %}",
            "".join("{% for i in [1] %}" for _ in range(40)) + "{% endfor %}" * 40]  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS, ids=range(len(ENDLESS)))
def test_a_template_of_a_task_ends(text):
    with pytest.raises(MedtasksError) as error:
        Template(text, "task.yaml").render({"r": range(99)})
    assert ENDLESS[text] in str(error.value) and "task.yaml: " in str(error.value)


@pytest.mark.parametrize("text", [text for text in ENDLESS if text.startswith("{{")])
def test_an_expression_of_a_task_ends(text):
    with pytest.raises(MedtasksError):
        Expression(text[2:-2], "task.yaml").value({})


def test_a_template_of_an_official_block_ends(tmp_path):
    with pytest.raises(Exception, match="passes"):
        _compiled(
            "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
            tmp_path,
            Declared({}),
        )({})


@pytest.mark.parametrize(
    "text", [text for text, word in ENDLESS.items() if word in ("passes", "range", "digits")]
)
def test_a_chat_template_ends(text):
    with pytest.raises(MedtasksError, match="does what it may not"):
        rendering(text, {"r": range(99)}, "layout")([{"role": "user", "content": "x"}])


@pytest.mark.parametrize("text", NO_JINJA, ids=range(len(NO_JINJA)))
def test_what_cannot_be_compiled_is_said(text):
    for use in (lambda: Template(text, "f"), lambda: rendering(text, {}, "f")):
        with pytest.raises(MedtasksError):
            use()


def test_each_text_has_a_whole_budget_and_loops_know_their_length():
    template = Template(
        "{% for x in rows %}{{ loop.index }}/{{ loop.length }}{{ '' if loop.last else ', ' }}{% endfor %}",
        "f",
    )
    long = Template("{% for x in range(9000) %}{% for y in range(100) %}{% endfor %}{% endfor %}done", "f")
    for _ in range(3):
        assert long.render({}) == "done"
    assert template.render({"rows": iter("ab")}) == "1/2, 2/2"
    assert (
        Template("{% for a, b in rows.items() %}{{ a ~ b }}{% else %}none{% endfor %}", "f").render(
            {"rows": {}}
        )
        == "none"
    )


def test_objects_of_rows_that_refer_to_each_other_can_be_picked_and_held():
    row = {"id": 1, "text": "x" * 1000}
    row["parts"] = [dict(row, of=row) for _ in range(40)]
    for part in row["parts"]:
        part["beside"] = row["parts"]
    assert Expression("[row, row.parts] | length", "f").value({"row": row}) == 2
    assert Expression("row.parts | map(attribute='of.id') | list | length", "f").value({"row": row}) == 40


def test_what_task_files_use_is_as_it_was():
    def shown(text, **values):
        return Expression(text, "f").value(values)

    assert shown("a ~ 1 ~ [2]", a="x") == "x1[2]"
    assert shown("'%s of %03d' % ('a', 7)") == "a of 007" and shown("7 % 4") == 3
    assert shown("'ab' * 2 + 'c'") == "ababc" and shown("[1] + [2]") == [1, 2] and shown("2 ** 10") == 1024
    assert shown("x.replace('a', 'b') | replace('c', 'dd')", x="ac") == "bdd"
    assert shown("','.join(x | map('upper'))", x=["a"]) == "A"
    assert shown("x | join(', ', attribute='n')", x=[{"n": 1}, {"n": 2}]) == "1, 2"
    assert shown("{'1': 'A'}[x]", x="1") == "A" and shown("dict(a=1)") == {"a": 1}
    tree = [{"n": 1, "c": [{"n": 2, "c": []}]}]
    text = "{% for x in t recursive %}{{ x.n }}{{ loop(x.c) }}{% endfor %}"
    assert Template(text, "f").render({"t": tree}) == "12"


# ---------------------------------------------------------------------- templates of names and constant text


TEMPLATES = [
    "{{ a }}", "{{ a }}\n{{ b }}\n", "{{ a }}\n\n", "x {{ a }}{# no #}: {{ b }}", "", "constant\n",
    "a }} {{ a }}\r\n", "{{ none }}", "{{ true }}{{ a }}", "{{ range }}", "{{ self }}{{ a }}",
]  # fmt: skip
VALUES = st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.lists(st.text()), st.booleans())


def outcome(render, values):
    try:
        return render(values)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("text", TEMPLATES)
@given(values=st.dictionaries(st.sampled_from(["a", "b", "range", "none", "true"]), VALUES))
def test_values_of_any_kind_are_shown_or_refused_as_jinja_does(text, values):
    jinja = outcome(jinja_of(text).render, values)
    if "self" in text and isinstance(jinja, str):  # prints an address
        return
    assert outcome(Template(text, "task.yaml").render, values) == jinja


def test_a_missing_value_is_named():
    with pytest.raises(jinja2.UndefinedError, match="'b' is undefined"):
        Template("{{ a }} {{ b }}", "task.yaml").render({"a": "x"})
