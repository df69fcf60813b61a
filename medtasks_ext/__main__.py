"""`python -m medtasks_ext` is the `medtasks` command."""

from medtasks_ext.cli.main import main

if __name__ == "__main__":
    main()
