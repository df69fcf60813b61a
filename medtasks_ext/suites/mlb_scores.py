"""The scores that MLB's paper prints."""

from __future__ import annotations

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.results.experiments import Entry
from medtasks_ext.results.published import published, published_entry


def dimension_table(tasks: Registry, suite: Suite) -> list[Entry]:
    """MLB's Table 4: ten models, the average and five dimensions alone."""
    entries = []
    dimensions = suite.axes["dimension"].values
    for row in published(f"{suite.id}_overall.csv"):
        groups = {suite.id: float(row["average"]) / 100}
        for value, title in dimensions.items():
            groups[suite.named(suite.groups["dimension"], value)] = float(row[title]) / 100
        entries.append(published_entry(suite, row["model"], {}, row, groups))
    return entries
