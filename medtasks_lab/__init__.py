"""What medtasks has besides running, judging and reporting: it enters the core by entry points alone."""
