"""Submissions: what of a run may be public, in a folder `ORG/MODEL/DATE`; making, checking, reading."""
