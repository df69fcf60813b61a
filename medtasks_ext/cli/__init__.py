"""The `medtasks` command."""
