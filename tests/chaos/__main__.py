#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disturbs a server under load (chaos), or only loads it for hours (soak), and checks every response.

usage: ./x chaos [--minutes 30] [--seed N] [--only KIND,...] [--list] [--output FOLDER]
       ./x soak [--minutes 120] [--seed N] [--output FOLDER]
"""

import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests")
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from chaos import run as runs  # noqa: E402
from chaos import troubles  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="./x", description=__doc__.split("\n\n")[0])
    parser.add_argument("kind", choices=("chaos", "soak"), help="with troubles, or without")
    parser.add_argument("--minutes", type=float, help="default: 30, and 120 for soak")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats the run that had it")
    parser.add_argument("--only", help="kinds of trouble, with commas between them")
    parser.add_argument("--list", action="store_true", help="only name the kinds of trouble")
    parser.add_argument("--output", default=ROOT / "build" / "chaos", help="for the report and its picture")
    arguments = parser.parse_args()
    if arguments.list:
        for kind in troubles.kinds():
            print(f"{kind.__name__:<20}{(kind.__doc__ or '').splitlines()[0] if kind.__doc__ else ''}")
        return 0
    minutes = arguments.minutes or (30 if arguments.kind == "chaos" else 120)
    only = arguments.only.split(",") if arguments.only else None
    report = runs.run(arguments.kind, arguments.seed, minutes=minutes, only=only,
                      say=lambda text: print(text, flush=True))
    for what, count in report["counts"].items():
        print(f"{count:>12,}  {what}")
    for what, trend in report["trends"].items():
        print(f"{trend['rise']:>+12.1f}  {what} in the second half, with a noise of {trend['noise']:.1f}")
    print(f"{report['seconds to the end after SIGTERM']!s:>12}  seconds to the end after SIGTERM")
    for problem in report["problems"]:
        print(f"PROBLEM {problem}")
    print("\n".join(map(str, runs.write(report, arguments.output))))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
