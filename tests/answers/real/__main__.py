"""Read the kept answers anew, or those of a folder of `tools/real_answers.py`."""

import sys
from pathlib import Path

from tests.answers.real import DRAWN, kept, of_runs, write_answers, write_readings

if len(sys.argv) > 1:
    drawn = [item for item in kept() if item.made == DRAWN]
    write_answers([*drawn, *of_runs(Path(sys.argv[1]))])
write_readings()
