"""A package whose hooks fail."""
