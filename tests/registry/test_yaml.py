"""Files that people write are read as lm-eval reads them, and a fault is one message with line and remedy."""

import pytest
from lm_eval.tasks._yaml_loader import load_yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import read_suite
from medtasks_ext.strict import read_mapping, read_yaml

#: What is wrong, its line, and what is said. PyYAML's pure parser reads the first, and libyaml,
#: with which lm-eval reads, refuses it.
BAD = {
    "a colon before a comma": ("title: {x: [a:, b]}\n", "", "not valid YAML"),
    "a bracket without end": ("title: a\nabout: [\n", ":3", "not valid YAML"),
    "a tab before a key": ("title: a\n\tabout: b\n", ":2", "not valid YAML"),
    "an unknown tag": ("title: !here a\n", ":1", "not valid YAML"),
    "a date that there is not": ("title: 2024-13-45\n", "", "not valid YAML (month must be in 1..12)"),
    "a key twice": ("title: a\nabout: b\ntitle: c\n", ":3", "key 'title' is given twice"),
    "an inner key twice": ("axes:\n  a: {x: 1, x: 2}\n", ":2", "key 'x' is given twice"),
    "no mapping": ("- title\n", "", "expected a mapping of keys"),
    "nothing": ("", "", "expected a mapping of keys"),
}


DOUBLED = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOUBLED, "aliases repeat"),
        ("a: " + "[" * 5000 + "]" * 5000, "too deep|nesting depth"),
        ("a: " + "9" * 5000, "not valid"),
        ("a: 1" + ":59" * 200_000, "a number of more than 300 characters"),
        ("a: 1" + ":59" * 200_000 + ".5", "a number of more than 300 characters"),
        ("#" * (9 << 20), "more than 8 MB"),
    ],
)
def test_a_file_that_is_made_to_keep_the_machine_busy_is_refused(tmp_path, text, message):
    (tmp_path / "task.yaml").write_text(text)
    with pytest.raises(MedtasksError, match=message):
        read_yaml(tmp_path / "task.yaml")
    (tmp_path / "other.yaml").write_text("include: /dev/zero\n")
    with pytest.raises(MedtasksError, match="no file"):
        read_yaml(tmp_path / "other.yaml")


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_is_one_message_with_the_line(tmp_path, fault):
    text, line, message = BAD[fault]
    suite = tmp_path / "ward" / "suite.yaml"
    suite.parent.mkdir()
    suite.write_text(text, encoding="utf-8")
    for read in (read_mapping, read_yaml, lambda file: read_suite(file.parent)):
        with pytest.raises(MedtasksError, match="→") as error:
            read(suite)
        assert str(error.value).startswith(f"{suite}{line}: ") or not line
        assert str(suite) in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    "text", ["title:\tWard\n", "base: &one {a: 1}\nother: {<<: *one, b: 2}\n", "a: 012\n"]
)
def test_what_lm_eval_reads_is_read_alike(tmp_path, text):
    file = tmp_path / "task.yaml"
    file.write_text(text, encoding="utf-8")
    assert read_yaml(file) == read_mapping(file) == load_yaml(file)


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("task.yaml", "include: the file includes itself"),
        ("5", "include: 5 is no path"),
        ("[x.yaml]", "no such file"),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)
def test_an_include_that_leads_nowhere_is_named(tmp_path, include, message):
    file = tmp_path / "task.yaml"
    file.write_text(f"include: {include}\ntask: x\n", encoding="utf-8")
    with pytest.raises(MedtasksError, match="→") as error:
        read_yaml(file)
    assert message in str(error.value)
