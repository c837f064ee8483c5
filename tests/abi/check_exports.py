#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libtritonserver.so, and the server's program, export the C ABI, whole and alone.

    check_exports.py [--nm NM] --table abi_table.txt libtritonserver.so [program]

Expected are the `export` lines of the table and what Nereid adds for backends. A missing symbol is a
function that plug-ins or embedders cannot link against; a further one can clash with what a plug-in
brings itself. A program also exports what its libraries take from it: copies of the standard
library's data and templates, which are no harm, but nothing of its own and of the libraries in it.
"""

import argparse
import re
import subprocess
import sys

ADDED = {
    "NEREIDBACKEND_OutputLend",
    "NEREIDBACKEND_ResponseTrySend",
    "NEREIDBACKEND_InputCopy",
    "NEREIDBACKEND_ModelLendInputs",
    "NEREIDBACKEND_MemoryGuardNew",
    "NEREIDBACKEND_MemoryGuardIsBroken",
    "NEREIDBACKEND_MemoryGuardDelete",
    "NEREIDBACKEND_ModelGivesMaxBatchSize",
    "NEREIDBACKEND_ModelExplain",
}
# Of the library only: the program has flags, and listens by itself.
ADDED_TO_LIBRARY = {
    "NEREIDSERVER_ServerOptionsSetOnDemand",
    "NEREIDSERVER_FrontendsNew",
    "NEREIDSERVER_FrontendsPorts",
    "NEREIDSERVER_FrontendsStop",
    "NEREIDSERVER_FrontendsDelete",
}
# As a part of a mangled name.
OWN = re.compile(r"\d(nereid|google|re2|pugi|spdlog|boost)(?=\d|[A-Z])")


def expected_symbols(table):
    with open(table, encoding="utf-8") as f:
        return {line.split()[1] for line in f if line.startswith("export ")} | ADDED


def exported_symbols(image, nm):
    output = subprocess.run(
        [nm, "-D", "--defined-only", image], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.strip()}


def check(image, exported, others, expected):
    for name in sorted(expected - exported):
        print(f"{image}: missing: {name}")
    for name in sorted(others):
        print(f"{image}: not in the table: {name}")
    print(f"{image}: {len(exported & expected)} of {len(expected)} symbols exported, {len(others)} others")
    return expected <= exported and not others


def main():
    parser = argparse.ArgumentParser(description="Checks the symbols that the server exports.")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--table", required=True)
    parser.add_argument("library")
    parser.add_argument("program", nargs="?")
    args = parser.parse_args()
    expected = expected_symbols(args.table)
    exported = exported_symbols(args.library, args.nm)
    of_library = expected | ADDED_TO_LIBRARY
    is_right = check(args.library, exported, exported - of_library, of_library)
    if args.program:
        exported = exported_symbols(args.program, args.nm)
        is_right &= check(args.program, exported, set(filter(OWN.search, exported)), expected)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
