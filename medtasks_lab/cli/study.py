"""Studies of contamination, difficulty and departments."""

PANEL = "Studies"
