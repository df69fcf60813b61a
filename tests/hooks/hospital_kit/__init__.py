"""A package of somebody else, which adds to medtasks by entry points alone."""
