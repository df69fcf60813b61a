"""Only plain files are read; a stranger's task file reads nothing outside the folders of tasks."""

import os
import tracemalloc

import pytest
from jinja2.exceptions import SecurityError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines, read_json
from medtasks_ext.rows import sandbox
from medtasks_ext.rows.files import open_archive, read_rows
from medtasks_ext.rows.sandbox import Declared
from medtasks_ext.strict import read_mapping, read_yaml

READERS = {
    "rows": read_rows, "an archive": open_archive, "JSON": read_json,
    "lines": lambda path: list(numbered_lines(path, remedy="name it")), "YAML": read_mapping,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, reader):
    os.mkfifo(path := tmp_path / "sample.jsonl")
    with pytest.raises(MedtasksError, match=r"no plain file|no file"):
        reader(path)


def test_a_device_and_a_folder_are_refused(tmp_path):
    (link := tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (folder := tmp_path / "rows.json").mkdir()
    for path in (link, folder):
        with pytest.raises(MedtasksError, match="no plain file"):
            read_rows(path)


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


def test_an_include_by_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret.yaml").write_text("key: value\n")
    (folder := tmp_path / "tasks").mkdir()
    (folder / "inside.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "task.yaml").write_text("include: inside.yaml\n")
    with pytest.raises(MedtasksError, match="outside the folders of tasks"):
        read_yaml(folder / "task.yaml", (folder,))


MAKES_OBJECTS = (
    "{{ ('字'*4800000)|list|length }}",
    "{{ (('x,'*2000000).split(','))|length }}",
    "{{ ('x '*2000000).rsplit()|length }}",
    "{{ ('x' ~ '\\n')|length and ('x\\n'*2000000).splitlines()|length }}",
    "{{ ('字'*4800000)|sort|length }}",
    "{{ ('字'*4800000)|unique|list|length }}",
    "{{ ('字'*4800000)|map('lower')|list|length }}",
    "{{ ('字'*4800000)|groupby(0)|length }}",
)


@pytest.mark.parametrize("template", MAKES_OBJECTS)
def test_a_template_that_makes_millions_of_objects_is_refused_before_they_are_there(template, monkeypatch):
    """With a tenth of the characters that a rendering may make: the trace of memory takes its time."""
    monkeypatch.setattr(sandbox, "CHARACTERS", 5_000_000)
    environment = Declared({})
    tracemalloc.start()
    try:
        with pytest.raises(SecurityError, match="more than"):
            environment.from_string(template).render()
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_lists_as_rows_have_them_are_made():
    template = Declared({}).from_string(
        "{{ text.split()|sort|unique|list|join(' ') }} {{ text|list|length }}"
    )
    assert template.render(text="b a c " * 10_000) == "a b c 60000"
