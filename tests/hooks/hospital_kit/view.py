"""A view of a report."""

from medtasks_ext.report.gather import Report


def wards(report: Report) -> dict[str, str]:
    """Which entries the report has."""
    return {"wards.csv": "entry\n" + "".join(f"{entry.label}\n" for entry in report.own)}
