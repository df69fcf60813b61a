"""A view that raises."""


def fails(report: object) -> dict[str, str]:
    """Divide by nothing."""
    return {"never.csv": str(1 / 0)}
