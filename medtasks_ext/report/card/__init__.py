"""What the author of a model publishes: a section for the model card, and results that machines read."""
