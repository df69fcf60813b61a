"""The suites' own words, read at run time from what their authors released. None of them is kept here."""
