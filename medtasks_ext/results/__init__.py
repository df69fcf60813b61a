"""From task results to roll-ups."""
