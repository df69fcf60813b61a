"""The file of the page: what is inside, and that nothing can get out of its place."""

import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from medtasks_ext.report.page import render
from medtasks_ext.report.payload import number, packed
from tests.report.made import data_of, unpacked


@pytest.mark.parametrize(
    "text",
    ["</script><script>window.hit=1</script>", "<!-- <script>", "$title ${script}", "\u2028 \u0000 \\"],
)
def test_the_data_are_inside_as_they_are_and_end_where_they_should(text, tmp_path):
    page = render({"title": text, "entries": [{"label": text}], "response": "cut off: \ud83d"})
    (tmp_path / "report.html").write_text(page, encoding="utf-8")  # half a character stops no file
    found = data_of(tmp_path / "report.html")
    assert (found["entries"], found["response"]) == ([{"label": text}], "cut off: \ud83d")
    assert page.lower().count("</script>") == page.lower().count("<script") == 2
    with pytest.raises(ValueError, match="JSON"):
        render({"title": "A report", "entries": [], "score": float("nan")})


def test_only_the_page_s_own_script_and_style_may_run_and_nothing_is_fetched():
    page = render({"title": "A report", "entries": []})
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[-1]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    without_scripts = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#)|@import|url\(', without_scripts)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([True] * 9 + [False] * 9, "runs"), ([0.5] * 9 + [None] * 9 + [0.5], "runs"),
        ([*range(20), *range(20), 7, *range(30)], "steps"), (["bridge", "mlb", None, "medhelm"] * 9, None),
        ([0.1, 0.2, 0.3], None), ([], None),
    ],
)  # fmt: skip
def test_a_column_comes_back_as_it_was_and_a_number_shows_the_digits_of_the_score(column, kind):
    found = packed(column)
    assert (next(iter(found)) if isinstance(found, dict) else None) == kind
    back = unpacked(json.loads(json.dumps({"column": found})))["column"]
    assert back == column and [*map(type, back)] == [*map(type, column)]
    for score in (place / 9973 for place in range(-9973, 9973, 7)):
        assert f"{number(score):.3f}" == f"{score:.3f}"
