"""Parsed answer + gold -> per-document statistics -> score.

Each module has a `process_results` for the task YAML and the aggregations of its corpus-level
metrics. A metric never raises on a model's output, whatever it is.
"""
