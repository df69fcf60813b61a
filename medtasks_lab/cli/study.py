"""Study questions, answers and models beside the scores."""

PANEL = "Studies"
