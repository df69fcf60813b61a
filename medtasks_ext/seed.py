"""The seed of every draw, where neither an option nor the rule of a benchmark says otherwise."""

SEED = 42
