"""README.md of `medtasks card`, as the hub draws it: its section takes one screen."""

import pytest
from markdown_it import MarkdownIt

from medtasks_ext.cli import card as card_command
from medtasks_ext.results.reading import Results
from tests.browser.report_page import on_all, texts
from tests.browser.report_payload import made_entry
from tests.report.made import write_run
from tests.report.test_standing import ASKED, SOME, like

pytestmark = pytest.mark.long

#: pixels of the column of a model card beside the hub's panel, and of a window without the browser's own bars
WIDTH, SCREEN = 830, 900
#: sizes of the hub's text
STYLE = """
body { margin: 0; font: 16px/1.75 "Source Sans Pro", system-ui, sans-serif; }
h2 { font-size: 24px; line-height: 1.33; margin: 24px 0 16px; }
p { margin: 0 0 20px; } img { max-width: 100%; display: block; }
table { font-size: 14px; line-height: 1.7; border-collapse: collapse; margin: 0 0 20px; }
th, td { padding: 8px 12px; border: 1px solid #ddd; text-align: left; }
"""


@pytest.mark.parametrize(
    ("n", "asked", "said"), [(87, {}, "on 87 of"), (20, ASKED, "on 20 of"), (1, ASKED, "on 1 of")]
)
def test_the_card_takes_one_screen_and_says_its_measure(
    medtasks, browser, tmp_path, monkeypatch, n, asked, said
):
    if n == 87:  # all suites in all strategies
        monkeypatch.setattr(card_command, "read_results", lambda *_: Results([made_entry()], []))
    else:
        model = "ORG/an-organisation-with-a-long-name-8b"
        write_run(tmp_path / "run", model, like("gemma-3-27b-it", SOME[:n]), **asked)
    medtasks.done("card", "run", "-o", "card")
    _, _, text = (tmp_path / "card" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    body = MarkdownIt("commonmark").enable("table").render(text)
    page = tmp_path / "card" / "card.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}", encoding="utf-8")
    there = "document.readyState === 'complete' && !!document.querySelector('h2')"
    browser.show(page.as_uri(), width=WIDTH, there=there)
    assert browser.js("document.body.scrollHeight") <= SCREEN
    assert browser.js("document.documentElement.scrollWidth") <= WIDTH
    assert len(texts(browser, "table")) == 1 == len(texts(browser, "h2")) and not texts(browser, "details")
    assert on_all(browser, "img", "one.naturalWidth > 500") == [True]
    [words] = texts(browser, "strong")
    assert f"{said} BRIDGE's 87 tasks" in words and "not ranked" not in words
