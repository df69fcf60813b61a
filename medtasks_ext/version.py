"""The version of medtasks: `medtasks_ext.__version__`; and where it can be had."""

__version__ = "0.1.0"

#: Pages of the repository and on the package index. Nothing links to them, and nobody is told to install from
#: an index, before they are set here.
REPOSITORY, PACKAGE = "", ""


def install_words(extra: str) -> str:
    return f'pip install "medtasks[{extra}]"' if PACKAGE else f'in the checkout: pip install ".[{extra}]"'
