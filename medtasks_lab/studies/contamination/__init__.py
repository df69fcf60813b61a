"""Does a model continue the inputs of a benchmark word for word? The contamination probe of BRIDGE."""
