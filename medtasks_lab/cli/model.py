"""A small model for a first try."""

PANEL = "Evaluate"
