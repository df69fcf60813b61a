"""Sources as their authors distribute them, made into rows of the suite's own shape."""

from medtasks_ext.rows.originals.build import read_original, recovered
from medtasks_ext.rows.originals.tree import SourceFile, files_below, missing_files

__all__ = ["SourceFile", "files_below", "missing_files", "read_original", "recovered"]
