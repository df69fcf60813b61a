"""The papers' tables, figures and claims, recomputed from published data, with own runs beside them."""
