"""README.md of `medtasks card`, as the hub draws it: its section takes one screen."""

import pytest
from markdown_it import MarkdownIt

from medtasks_ext.results import reading
from medtasks_ext.results.reading import Results
from tests.browser.report_page import on_all, texts
from tests.browser.report_payload import made_entry
from tests.conftest import hashed_anew
from tests.report.made import write_run
from tests.report.test_standing import ASKED, SOME, like
from tests.run_files import edited

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


def fits(browser, folder):
    _, _, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    body = MarkdownIt("commonmark").enable("table").render(text)
    page = folder / "card.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}", encoding="utf-8")
    there = "document.readyState === 'complete' && !!document.querySelector('h2')"
    browser.show(page.as_uri(), width=WIDTH, there=there)
    assert browser.js("document.body.scrollHeight") <= SCREEN
    assert browser.js("document.documentElement.scrollWidth") <= WIDTH
    assert len(texts(browser, "table")) == 1 and not texts(browser, "details")
    assert on_all(browser, "img", "one.naturalWidth > 500") == [True]
    assert len(texts(browser, "h2")) == 1


def test_all_suites_in_all_strategies_take_one_screen(medtasks, browser, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "read_results", lambda *_: Results([made_entry()], []))
    medtasks.done("card", "run", "-o", "card")
    fits(browser, tmp_path / "card")
    assert len(texts(browser, "tbody tr")) == 4 and "The table shows 4 of" in " ".join(texts(browser, "p"))
    [said] = texts(browser, "strong")
    assert "on 87 of BRIDGE's 87 tasks" in said


@pytest.mark.parametrize(("n", "asked", "rank"), [(20, ASKED, "rank "), (20, {}, "20"), (1, ASKED, "1")])
def test_a_part_of_a_suite_takes_one_screen_and_says_its_measure(medtasks, browser, tmp_path, n, asked, rank):
    write_run(
        tmp_path / "run", "ORG/an-organisation-with-a-long-name-8b", like("gemma-3-27b-it", SOME[:n]), **asked
    )
    assert medtasks("card", "run", "-o", "card").code == 0
    fits(browser, tmp_path / "card")
    [said] = texts(browser, "strong")
    assert said.startswith("0.") and f"on {n} of BRIDGE's 87 tasks" in said and "not ranked" not in said


def test_tasks_left_out_are_a_number_on_the_card_and_a_folded_list_beside_it(medtasks, browser, tmp_path):
    write_run(tmp_path / "run", "ORG/med-8b", like("gemma-3-27b-it", SOME), **ASKED)
    for item in SOME[3:]:  # a part of the suite's rows
        with edited(tmp_path / "run", item.id) as record:
            record["conditions"]["n_of_suite"] = 2 * item.n_documents
    hashed_anew(tmp_path / "run")
    assert medtasks("card", "run", "-o", "card").code == 0
    fits(browser, tmp_path / "card")
    assert "Left out: 17 tasks with a part of the rows or judgements." in " ".join(texts(browser, "p"))
    details = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    folded = details.partition("<summary>17 tasks left out: scored on a part")[2]
    assert folded and all(f"`{item.id}` (" in folded.partition("</details>")[0] for item in SOME[3:])
