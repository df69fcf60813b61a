"""Ready files of models, and a model to try things out with."""

PANEL = "Evaluate"
