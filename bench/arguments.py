# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/run."""

import argparse
import os
import pathlib
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def parse(description):
    build = pathlib.Path(os.environ.get("NEREID_BUILD", ROOT / "build" / "release"))
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument("--quick", action="store_true", help="one light row of each kind, each answer checked")
    what.add_argument("--rows", help="rows of the table of aims: 1,4,10")
    what.add_argument("--only", help="a regular expression for the titles of the rows")
    what.add_argument("--list", action="store_true", help="print the titles of the rows")
    what.add_argument("--no-reference", action="store_true", help="measure ours alone")
    what.add_argument("--no-defaults", action="store_true", help="leave out the untuned reference")
    how = parser.add_argument_group("how")
    how.add_argument("--rounds", type=int, default=5, help="measurements of each side, 5 or more to publish")
    how.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    how.add_argument("--check", action="store_true", help="compare every answer with the first one")
    how.add_argument("--server", default=build / "src" / "app" / "nereid", help="our binary")
    how.add_argument("--args", default="", help="further arguments for our server")
    how.add_argument("--backends", default=build / "backends", help="our backend directory")
    how.add_argument("--tools", default=build / "bench", help="folder of our load generators")
    how.add_argument("--peer", default=ROOT / ".deps" / "peer", help="folder of the reference server")
    how.add_argument("--reference", help="another binary to compare with, instead of the reference")
    how.add_argument(
        "--reference-args", default=f"--http-thread-count={os.cpu_count()}", help="how the reference is tuned"
    )
    output = parser.add_argument_group("what comes of it")
    now = time.strftime("%Y%m%d-%H%M%S")
    output.add_argument(
        "--json",
        type=pathlib.Path,
        default=ROOT / "build" / "bench-results" / f"{now}.json",
        help="write every measurement to this file, which bench/report reads (build/bench-results/TIME.json)",
    )
    output.add_argument("--output", help="write the tables to this file, too")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.check = 1, min(arguments.seconds, 0.3), True
    return arguments
