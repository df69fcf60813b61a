"""Commands that the lab adds to `medtasks`."""
