"""Reports and model cards from results."""
