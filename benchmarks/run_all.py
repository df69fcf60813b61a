"""Runs the benchmarks and prints one table. `--quick`: a tenth of the volume; names: only those."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time

from common import Row

BENCHMARKS = (
    *("start", "prompts", "loading", "rows", "scoring", "ehrsql", "rouge", "intervals", "volume"),
    *("report", "viewer", "judge", "stub", "runner"),
    *("endpoints", "watch", "stream_vllm", "prefixes"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the volume")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            for row in importlib.import_module(name).run(options.quick):
                rows.append(row)  # one by one: a fault costs what comes after it only
                print(f"  {row.name}: {row.measured}", file=sys.stderr, flush=True)
        except Exception as error:
            rows.append(Row(name, f"failed: {error}", "", False))
    print_table(rows)


def print_table(rows: list[Row]) -> None:
    print(
        f"{time.strftime('%Y-%m-%d %H:%M')}, Python {platform.python_version()}, {os.cpu_count()} cores",
        end="",
    )
    print(f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "", end="\n\n")
    met = {True: "yes", False: "no", None: ""}
    table = [("name", "measured", "target", "met"), *((*row[:3], met[row.met]) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(4)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
