#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that codecs, schedulers and backends take and compares them with table.txt.

    check.py BINARY... [--refresh]

Counts of one machine and compiler are the same each time; between compilers and processors they differ by
a few per cent, so that only what takes a tenth more than the table fails. Whoever makes a path cheaper, or
dearer for a reason, writes the new numbers with --refresh and says why in the commit.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).with_name("table.txt")
RUNS = 100  # as in measured_runs.h
MOST = 1.10


def count(binary):
    """{case: instructions of one run}"""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=MeasuredRuns",
            "--dump-after=MeasuredRuns",
            f"--callgrind-out-file={folder}/out",
            str(binary),
        ]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with status {run.returncode}\n{run.stderr}")
        cases = run.stdout.split()
        counts = {}
        for number, case in enumerate(cases, 1):
            text = pathlib.Path(f"{folder}/out.{number}").read_text()
            counts[case] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.M).group(1)) // RUNS
        return counts


def main():
    binaries = [argument for argument in sys.argv[1:] if argument != "--refresh"]
    counts = {case: number for binary in binaries for case, number in count(binary).items()}
    if "--refresh" in sys.argv:
        TABLE.write_text("".join(f"{case} {number}\n" for case, number in counts.items()))
        return
    table = {case: int(number) for case, number in (line.split() for line in TABLE.read_text().splitlines())}
    dearer = []
    for case in sorted({*table, *counts}):
        was, now = table.get(case, 0), counts.get(case, 0)
        change = f"{(now / was - 1) * 100:+.1f} %" if was else "not in the table"
        print(f"{case:24} {now:8} {change}")
        if now > was * MOST or not now:
            dearer.append(case)
    if dearer:
        sys.exit(f"more instructions than table.txt allows: {', '.join(dearer)}; to accept: {sys.argv[0]} BINARY... --refresh")


if __name__ == "__main__":
    main()
