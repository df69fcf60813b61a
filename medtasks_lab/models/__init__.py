"""Models for trying things out."""
