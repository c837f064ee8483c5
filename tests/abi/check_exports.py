#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libtritonserver.so exports the C ABI, whole and alone.

    check_exports.py [--nm NM] --table abi_table.txt libtritonserver.so

Expected are the `export` lines of the table nereid_main, by which the server's program starts,
and what Nereid adds for backends.
A missing symbol is a function that plug-ins or embedders cannot link against; a further one can
clash with what a plug-in brings itself.
"""

import argparse
import subprocess
import sys

ENTRY_POINTS = {"nereid_main", "NEREIDBACKEND_OutputLend"}


def expected_symbols(table):
    with open(table, encoding="utf-8") as f:
        return {line.split()[1] for line in f if line.startswith("export ")} | ENTRY_POINTS


def exported_symbols(library, nm):
    output = subprocess.run(
        [nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.strip()}


def main():
    parser = argparse.ArgumentParser(description="Checks the exported symbols of libtritonserver.so.")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--table", required=True)
    parser.add_argument("library")
    args = parser.parse_args()
    expected = expected_symbols(args.table)
    exported = exported_symbols(args.library, args.nm)
    for name in sorted(expected - exported):
        print(f"missing: {name}")
    for name in sorted(exported - expected):
        print(f"not in the table: {name}")
    print(f"{len(exported & expected)} of {len(expected)} symbols exported, {len(exported - expected)} others")
    return 0 if exported == expected else 1


if __name__ == "__main__":
    sys.exit(main())
