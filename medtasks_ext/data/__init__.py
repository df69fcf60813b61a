"""The data folder of a user: what is at hand, and whether the rows are right."""
