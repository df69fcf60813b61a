"""Ready model files, and a small model for a first try."""

PANEL = "Evaluate"
