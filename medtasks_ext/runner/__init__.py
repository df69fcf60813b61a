"""Running tasks: one at a time, resumable, with every response stored as it comes."""
