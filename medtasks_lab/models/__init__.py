"""A model for trying things out."""
