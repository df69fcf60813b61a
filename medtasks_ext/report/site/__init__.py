"""`medtasks dev site`: the static leaderboard of published and submitted models."""
