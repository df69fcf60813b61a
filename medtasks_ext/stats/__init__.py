"""Arithmetic on arrays: counts, resamples, tests, corrections, ranks, agreement. No YAML, no files."""
