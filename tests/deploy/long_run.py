#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets Prometheus scrape loaded servers for as long as you say, and makes the causes of the alerts one after the other.

A minute of the rules is a second here, and servers are scraped every second. All the time, every query of the dashboard
must have an answer, and nothing may fire without a cause. For each cause, its
alerts must fire, and clear once it is gone. The exit status is 1 if anything of that failed.

usage: NEREID_BUILD=build/release tests/deploy/long_run.py [--minutes 10]
"""

import argparse
import collections
import math
import pathlib
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]

import causes  # noqa: E402
import dashboards  # noqa: E402
import monitoring  # noqa: E402
import scene  # noqa: E402
from harness import server as servers  # noqa: E402

FACTOR, INTERVAL_S = 60, 1
QUIET_S = 60


class Watcher:
    """Asks every query of the dashboard again and again, and counts."""

    def __init__(self, prometheus):
        self.prometheus = prometheus
        self.asked = 0
        self.unanswered = collections.Counter()
        self.blinded = False  # while Prometheus has no targets
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._end.wait(5):
            self.ask()

    def ask(self):
        for panel, expression in dashboards.queries("5s"):
            was_blinded = self.blinded
            series = self.prometheus.query(expression)
            if was_blinded or self.blinded:
                continue
            self.asked += 1
            if all(math.isnan(value) for _, value in series):
                self.unanswered[panel] += 1

    def stop(self):
        self._end.set()
        self._thread.join()


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def wait(condition, timeout_s):
    """Whether the condition holds in time."""
    try:
        servers.wait_until(condition, "it", timeout=timeout_s)
        return True
    except AssertionError:
        return False


def has_data(prometheus):
    """Whether there is data for the windows of the queries."""
    return prometheus.query("nv_inference_count{model='batched'} offset 10s")


def make(cause, expected, s):
    """Makes a cause; returns what went wrong, in words."""
    began = time.monotonic()
    wrong = []
    with cause(s):
        if not wait(lambda: expected <= s.prometheus.fired(time.monotonic() - began), 120):
            missing = expected - s.prometheus.fired(time.monotonic() - began)
            wrong.append(f"{cause.__name__}: {sorted(missing)} did not fire")
        fired, took = s.prometheus.fired(time.monotonic() - began), time.monotonic() - began
    ended = time.monotonic()
    if not wait(lambda: not s.prometheus.fired(), 180):
        wrong.append(f"{cause.__name__}: {sorted(s.prometheus.fired())} did not clear")
    others = f", also {', '.join(sorted(fired - expected))}" if fired - expected else ""
    say(f"{cause.__name__}: {', '.join(sorted(expected))}{others} fired in {took:.0f} s, "
        f"cleared in {time.monotonic() - ended:.0f} s")  # fmt: skip
    return wrong


def run(s, minutes):
    began = time.monotonic()
    wrong, count = [], 0
    wait(lambda: has_data(s.prometheus), 60)
    watcher = Watcher(s.prometheus)
    begin_quiet = time.monotonic()
    say(f"{QUIET_S} s of load without a cause")
    quiet = threading.Event()
    quiet.wait(QUIET_S)
    if fired := s.prometheus.fired(time.monotonic() - begin_quiet):
        wrong.append(f"without a cause: {sorted(fired)}")
    made = {**causes.possible(s), **causes.BLINDING}
    while count == 0 or time.monotonic() - began < 60 * minutes:
        for cause, expected in made.items():
            if count >= len(made) and time.monotonic() - began >= 60 * minutes:
                break
            watcher.blinded = cause in causes.BLINDING
            wrong += make(cause, expected, s)
            if watcher.blinded and not wait(lambda: has_data(s.prometheus), 60):
                wrong.append(f"{cause.__name__}: no data after it")
            watcher.blinded = False
            count += 1
    watcher.stop()
    for panel, times in watcher.unanswered.items():
        wrong.append(f"the panel '{panel}' had no answer {times} times")
    wrong += [f"a request of the load failed: {failure}" for failure in s.load.failures[:5]]
    scraped = s.prometheus.query("count(up)")[0][1]
    say(f"{(time.monotonic() - began) / 60:.1f} minutes, {scraped:.0f} targets, {count} times one of {len(made)} causes, "
        f"{watcher.asked} queries of the dashboard asked; wrong: {len(wrong)}")  # fmt: skip
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    if reason := monitoring.missing():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        s = scene.Scene(folder, FACTOR, INTERVAL_S)
        try:
            wrong = run(s, arguments.minutes)
        finally:
            s.close()
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
