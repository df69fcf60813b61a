"""The shared reader: what a response announces as its answer. It never guesses, and its time is linear."""
