"""Studies beside the scores: contamination, difficulty levels, samples, a model that judges."""
