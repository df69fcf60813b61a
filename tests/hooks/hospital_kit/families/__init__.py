"""How the answers of this package are scored."""
