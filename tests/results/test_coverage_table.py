"""The page of coverage: written anew at night, and what it must hold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.results.simulated import PAGE, SCORES, SIZES, kinds, page, simulated


@pytest.mark.nightly
def test_coverage_holds_and_the_page_is_written():
    found = simulated()
    PAGE.write_text(page(found), encoding="utf-8")
    for n in SIZES:
        cells = [found["right or wrong", n, p].covered for p in SCORES]
        assert 0.93 < np.mean(cells) < 0.985 and min(cells) > 0.86  # two standard errors beyond the target
    for place, cell in found.items():
        # the intervals that miss are marked: they lie nearer to the end than most
        assert cell.covered > 0.87 or cell.rough > 0.1, place


def test_the_page_has_every_cell():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    heads = [line[3:].lower() for line in lines if line.startswith("## ")]
    assert heads == [name.lower() for name in kinds()]
    rows = [line for line in lines if line.startswith("| ") and "score" not in line and "---" not in line]
    assert len(rows) == len(kinds()) * len(SIZES)
    assert all(row.count("(") == len(SCORES) for row in rows)
