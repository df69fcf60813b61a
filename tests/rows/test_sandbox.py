"""Strangers' files: their Jinja ends with one message, and nothing outside the folders of tasks is read."""

import os
import tracemalloc

import pytest
from jinja2.exceptions import SecurityError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines, read_json
from medtasks_ext.prompts.template import rendering
from medtasks_ext.rows import sandbox
from medtasks_ext.rows.expressions import Expression, Template
from medtasks_ext.rows.files import open_archive, read_rows
from medtasks_ext.rows.sandbox import Declared
from medtasks_ext.strict import read_mapping, read_yaml

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
    "{{ '%1000000000d' % 1 }}": "width",
    "{{ '{:>1000000000}'.format(1) }}": "unsafe",
    "{{ '{a}'.format_map({'a': 1}) }}": "unsafe",
    "{{ 'x'.ljust(10**10) }}": "ljust",
    "{{ 'x' | center(10**10) }}": "center",
    "{{ ('y' * 9_000) | list | join('x' * 9_000) }}": "characters",
    "{{ 'x' | indent(10**10) }}": "indent",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x ~ n.x %}{% endfor %}": "characters",
    "{% set n = namespace(x=[1]) %}{% for i in r %}{% set n.x = [n.x, n.x] %}{% endfor %}": "characters",
    "{% set n = namespace(x=1) %}{% for i in r %}{% set n.x = {1: n.x, 2: n.x} %}{% endfor %}": "",
    "{% set n = namespace(x='xx') %}{% for i in r %}{% set n.x = n.x.replace('x', n.x) %}{% endfor %}": "",
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


READERS = {
    "rows": read_rows, "an archive": open_archive, "JSON": read_json,
    "lines": lambda path: list(numbered_lines(path, remedy="name it")), "YAML": read_mapping,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_pipe_and_a_device_are_refused_and_not_waited_for(tmp_path, reader):
    os.mkfifo(pipe := tmp_path / "sample.jsonl")
    (link := tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for path in (pipe, link):
        with pytest.raises(MedtasksError, match=r"no plain file|no file"):
            reader(path)


@pytest.mark.parametrize("name", ["{outside}/secret.yaml", "../../../secret.yaml"])
def test_an_include_stays_below_the_folders_of_tasks(tmp_path, name):
    tasks, outside = tmp_path / "tasks", tmp_path
    (outside / "secret.yaml").write_text("key: value\n")
    (tasks / "own" / "one").mkdir(parents=True)
    (tasks / "own" / "base.yaml").write_text("shared: 1\n")
    file = tasks / "own" / "one" / "task.yaml"
    file.write_text("include: ../base.yaml\n")
    assert read_yaml(file, (tasks,)) == {"shared": 1}
    file.write_text(f"include: {name.format(outside=outside)}\n")
    with pytest.raises(MedtasksError, match="outside the folders of tasks") as error:
        read_yaml(file, (tasks,))
    assert "key" not in error.value.what


#: A text of a quarter of a million characters, and what would make an object of each.
LONG = "{% set n = namespace(x='字,') %}{% for i in range(17) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
MAKES_OBJECTS = (
    "{{ n.x|list|length }}", "{{ n.x.split(',')|length }}", "{{ n.x|map('lower')|list|length }}",
    "{{ n.x.replace(',', '\n').splitlines()|length }}", "{{ n.x|sort|length }}",
    "{{ n.x|groupby(0)|length }}", "{{ ','.join(n.x) }}",
)  # fmt: skip


@pytest.mark.parametrize("template", MAKES_OBJECTS)
def test_a_template_that_makes_millions_of_objects_is_refused_before_they_are_there(template, monkeypatch):
    """With a tenth of the characters that a rendering may make: the trace of memory takes its time."""
    monkeypatch.setattr(sandbox, "CHARACTERS", sandbox.CHARACTERS // 10)
    environment = Declared({})
    tracemalloc.start()
    try:
        with pytest.raises(SecurityError, match="more than"):
            environment.from_string(LONG + template).render()
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
