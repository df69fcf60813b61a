"""Get a model to try things out with."""

PANEL = "Evaluate"
