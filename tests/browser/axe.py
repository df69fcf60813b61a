"""axe-core, which checks a page for what keeps people out (WCAG 2 and good practice)."""

import os
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium

#: the window widths and colours in which pages are checked: each of them every day, other pairs every night
DAILY = [(1440, False), (420, True)]
NIGHTLY = [(1440, True), (420, False)]
LOOKS = [*DAILY, *(pytest.param(*look, marks=pytest.mark.nightly) for look in NIGHTLY)]
# Addresses of these pages say after `#` what is shown. The rule `skip-link` takes such a link for one that
# skips to an element of that id, where a narrow screen has scrolled the link away.
_RUN = """axe.run(document, {resultTypes: ["violations"], rules: {"skip-link": {enabled: false}}})
  .then(({violations}) => violations.flatMap(({id, nodes}) =>
    nodes.map(({target, failureSummary}) => `${id}: ${target} ${failureSummary}`)))"""


def violations(browser: Chromium) -> list[str]:
    """What axe-core finds on the page that is open: a line for each rule and element.

    `$MEDTASKS_AXE` names `axe.min.js` of the npm package axe-core, which is no part of this project; without
    the variable the test is skipped.
    """
    named = os.environ.get("MEDTASKS_AXE")
    if not named:
        pytest.skip("no axe-core here: `make axe`, and MEDTASKS_AXE=build/axe/axe.min.js")
    if not browser.js("!!window.axe"):
        browser.js(f"{Path(named).read_text(encoding='utf-8')}; null")
    browser.wait("document.getAnimations().every((one) => one.playState !== 'running')")
    return browser.js(_RUN)
