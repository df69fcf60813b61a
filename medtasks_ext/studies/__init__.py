"""Protocols of the papers: forms for experts, judges under study, contamination, difficulty, departments."""
