"""The datasets of this package."""
