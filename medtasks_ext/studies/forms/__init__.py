"""Blinded forms for experts: one YAML a kind, over one page."""
