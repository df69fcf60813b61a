"""The papers' tables and figures, recomputed from published data."""
