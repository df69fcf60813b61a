"""The version of medtasks: `medtasks_ext.__version__`."""

__version__ = "0.1.0"
