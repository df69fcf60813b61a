#!/bin/sh
# Checks the submissions that differ between $BASE and the head of a clone: sh check_submissions.sh CLONE
# Names of files are somebody else's: they are data here, and never words of a command.
set -eu
cd "$1"
places=results/submissions
# deleted files count, too: what is left of their folder must still fit
git diff --name-only --no-renames -z "$BASE...HEAD" -- "$places" | python3 -c '
import os, subprocess, sys

names = [name.split("/") for name in os.fsdecode(sys.stdin.buffer.read()).split("\0") if name]
stray = ["/".join(parts) for parts in names if len(parts) not in (6, 7) and parts[2:] != ["README.md"]]
for name in stray:
    print(f"{ascii(name)}: is no file of a submission (results/submissions/ORG/MODEL/DATE/FILE)")
folders = sorted({"/".join(parts[:5]) for parts in names if len(parts) in (6, 7)})
here = [folder for folder in folders if os.path.lexists(folder)]
code = subprocess.run(["medtasks", "rescore", "--check", "--", *here]).returncode if here else 0
sys.exit(1 if stray else code)
'
