"""docs/first_hours: what its pages show is what the commands print, in a fresh clone and environment."""

import re
import sys
from pathlib import Path

import pytest

from tests.transcripts.console import PAGES, Shell, agrees, check, fresh, steps


@pytest.mark.install
@pytest.mark.parametrize("page", ["hospital", "contributor", "researcher"])
def test_the_page_shows_what_the_commands_print(page, tmp_path):
    check(PAGES / f"{page}.md", fresh(tmp_path))


def test_a_page_that_cuts_a_table_sets_remarks_aside():
    """`medtasks ... | head` shows remarks of standard error before, after, or not at all."""
    commands = [
        step.command for page in PAGES.glob("*.md") for step in steps(page.read_text(encoding="utf-8"))
    ]
    piped = [command for command in commands if re.search(r"[^|]\|[^|]", command)]
    assert piped and all("2>" in command for command in piped), piped


PAGE = """Text.

```console
$ echo one; \\
  echo two
one
two
$ printf 'score 0.5\\nnoise\\nmore noise\\nend\\n'
score 0.7
...
end
```
"""


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (["score 0.1", "a", "end"], True),
        (["score 12,345.1", "end"], True),
        (["score 0.1", "a"], False),
        (["scores 0.1", "end"], False),
        (["score 0.1", "end", "more"], False),
    ],
)
def test_numbers_may_differ_and_words_may_not(printed, expected):
    assert agrees(steps(PAGE)[1].shown, printed) is expected


def test_a_page_that_shows_something_else_is_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("two\n$", "three\n$"))
    with pytest.raises(AssertionError, match="echo one"):
        check(page, Shell(tmp_path, Path(sys.executable).parent))
    page.write_text(PAGE)
    check(page, Shell(tmp_path, Path(sys.executable).parent))
