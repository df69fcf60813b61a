"""Protocols of the papers: figures, forms for experts, judges under study, contamination, departments."""
