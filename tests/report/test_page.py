"""The file of the page: what is inside, and that nothing can get out of its place."""

import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from medtasks_ext.report.page import render

MINIMAL = {"title": "A report", "entries": []}


def data_of(page):
    [content] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(content)


@pytest.mark.parametrize(
    "text",
    [
        "</script><script>window.hit=1</script>", "<!-- <script>", "$title ${script}", "中文",
        "\u2028 \u0000 \\",
    ],
)  # fmt: skip
def test_the_data_are_inside_as_they_are_and_end_where_they_should(text):
    page = render({**MINIMAL, "title": text, "entries": [{"label": text}]})
    assert data_of(page)["entries"] == [{"label": text}]
    assert page.lower().count("</script>") == page.lower().count("<script") == 2


def test_half_a_character_of_a_response_does_not_stop_the_file(tmp_path):
    page = render({**MINIMAL, "title": "\ud83d", "response": "cut off: \ud83d"})
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    assert data_of(page)["response"] == "cut off: \ud83d"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(number):
    with pytest.raises(ValueError, match="JSON"):
        render({**MINIMAL, "score": number})


def test_only_the_page_s_own_script_and_style_may_run_and_nothing_is_fetched():
    page = render(MINIMAL)
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[-1]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    without_scripts = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#)|@import|url\(', without_scripts)
