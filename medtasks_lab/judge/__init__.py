"""Judges under study: their gold, votes, calibration, and attacks on them."""
