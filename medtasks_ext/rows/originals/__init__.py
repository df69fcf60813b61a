"""Sources as their authors distribute them, made into rows of the suite's own shape."""
