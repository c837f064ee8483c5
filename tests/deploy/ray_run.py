#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads two replicas of nereid.ray behind Ray Serve's proxy for as long as you say, while in turns one of them is killed,
and all of them are replaced by a new deployment.

Every answer is checked, and that nothing was executed twice. Wrong are: a wrong answer; a request that was executed twice;
a request that fails, but for those that a killed replica had; a sequence that fails, but for those of a replica that was
killed or replaced (docs/ray.md), and, of clients without the header that docs/ray.md recommends, those of which a killed
replica had a request that it was to hand on to another one. One of three clients sends the header, or all with --header.
The exit status is 1 if anything was wrong, and then the logs of Ray are kept.

usage: NEREID_BUILD=build/release tests/deploy/ray_run.py [--minutes 3] [--header] [--logs FOLDER]
"""

import argparse
import collections
import itertools
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
import tritonclient.http
from tritonclient.utils import InferenceServerException

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ray_serve"), str(TESTS)]

import cluster as clusters  # noqa: E402
from harness import server as servers  # noqa: E402

STEPS = 8  # of a sequence
REPLICAS = 2
ENOUGH = 20  # answers of each replica, before something happens to one


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Worker(threading.Thread):
    """Sends requests, or sequences, one after the other, until told to end. With the header it says its sequence to Ray's
    proxy, which saves a hop."""

    sequence_ids = itertools.count(1)

    def __init__(self, name, url, end, has_header):
        super().__init__(name=name, daemon=True)
        self.client = tritonclient.http.InferenceServerClient(url, network_timeout=60)
        self.end, self.has_header = end, has_header
        self.answered = []  # (id, replica)
        self.failures = []  # texts
        self.wrong = []  # texts
        self.broken = []  # of each that failed: its replica, None if it had not begun; whether no replica had it
        self.whole = 0  # sequences

    def run(self):
        work = self.one_sequence if "sequence" in self.name else self.one_request
        for number in itertools.count():
            if self.end.is_set():
                break
            work(number)
        self.client.close()

    def ask(self, model, value, shape, key, **options):
        tensor = tritonclient.http.InferInput("value", list(shape), "INT64")
        tensor.set_data_from_numpy(np.full(shape, value, np.int64))
        result = self.client.infer(model, [tensor], request_id=key, **options)
        if result.get_response()["id"] != key:
            self.wrong.append(f"{key} got the answer of {result.get_response()['id']}")
        answer, replica = result.as_numpy("output").ravel().tolist()
        self.answered.append((key, replica))
        return answer, replica

    def failed(self, key, error):
        self.failures.append(f"{key}: {type(error).__name__} {error}")

    def one_request(self, number):
        key = f"{self.name}-{number}"
        try:
            answer, _ = self.ask("number", number, (1,), key)
            if answer != number:
                self.wrong.append(f"{key}: {answer} for {number}")
        except (InferenceServerException, OSError) as error:
            self.failed(key, error)

    def one_sequence(self, number):
        sequence, began_on, total = next(self.sequence_ids), None, 0
        headers = {"x-session-id": str(sequence)} if self.has_header else None
        for step in range(STEPS):
            key = f"{self.name}-{number}-{step}"
            total += step + 1
            try:
                answer, replica = self.ask(
                    "sum", step + 1, (1, 1), key, sequence_id=sequence, sequence_start=step == 0,
                    sequence_end=step == STEPS - 1, headers=headers)  # fmt: skip
            except (InferenceServerException, OSError) as error:
                self.failed(key, error)
                self.broken.append((began_on, "START flag" in str(error)))
                return
            began_on = began_on or replica
            if (answer, replica) != (total, began_on):
                self.wrong.append(f"{key}: {answer} of {replica} for {total} of {began_on}")
        self.whole += 1


class Load:
    """Workers for the length of a with block."""

    def __init__(self, url, turn, all_have_header, count=3):
        self.end = threading.Event()
        self.workers = [
            Worker(f"{turn}-{what}-{number}", url, self.end, all_have_header or number == 0)
            for what in ("request", "sequence") for number in range(count)
        ]  # fmt: skip

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for worker in self.workers:
            worker.join(120)
            if worker.is_alive():
                worker.wrong.append(f"{worker.name} waits for an answer")

    def all(self, what):
        return list(itertools.chain.from_iterable(list(getattr(worker, what)) for worker in self.workers))

    def wait_for(self, known=frozenset(), count=REPLICAS):
        """Until so many replicas, none of them among those known, have answered often; returns them."""

        def answering():
            often = collections.Counter(replica for _, replica in self.all("answered"))
            found = {replica for replica, answers in often.items() if answers >= ENOUGH and replica not in known}
            return found if len(found) >= count else None

        return servers.wait_until(answering, f"answers of {count} replicas", timeout=120)


def executed_twice(cluster, turn):
    counts = collections.Counter(line.split()[1] for line in cluster.executed_path.read_text().splitlines())
    return [key for key, count in counts.items() if count > 1 and key.startswith(f"{turn}-")]


def may_break(broken, has_header, before, is_killed):
    """Whether a sequence may fail in a round in which one of the replicas was killed, or all were replaced."""
    began_on, is_nowhere = broken
    if not is_killed:
        return began_on in before
    # Without the header, a request of any sequence may have been with the replica that was killed.
    return began_on in (min(before), None) or not (is_nowhere or has_header)


def one_round(cluster, turn, is_killed, all_have_header):
    """Kills a replica under load, or replaces all; returns (what was wrong, the load, the replicas that ended)."""
    with Load(cluster.url("load"), turn, all_have_header) as load:
        before = load.wait_for()
        ended = {min(before)} if is_killed else before
        if is_killed:
            os.kill(min(before), signal.SIGKILL)
            load.wait_for(before, 1)
        else:
            cluster.ask("run", app="load")
            load.wait_for(before)
    wrong = load.all("wrong") + [f"executed twice: {key}" for key in executed_twice(cluster, turn)]
    for worker in load.workers:
        # What a killed replica had in progress fails, which is at most one request of each worker.
        if "-request-" in worker.name and len(worker.failures) > is_killed:
            wrong.append(f"{worker.name} lost {len(worker.failures)}: {worker.failures[0]}")
    for worker in load.workers:
        # Of a worker with sequences, each failure is that of one.
        for broken, failure in zip(worker.broken, worker.failures, strict=False):
            if not may_break(broken, worker.has_header, before, is_killed):
                wrong.append(f"a sequence of replica {broken[0]} was broken, while those before were {before}: {failure}")
    return wrong, load, ended


def run(cluster, minutes, all_have_header):
    began, wrong = time.monotonic(), []
    totals = collections.Counter()
    for turn in itertools.count():
        if turn >= 2 and time.monotonic() - began >= 60 * minutes:
            break
        is_killed = turn % 2 == 0
        found, load, ended = one_round(cluster, turn, is_killed, all_have_header)
        requests = sum(len(worker.failures) for worker in load.workers if "-request-" in worker.name)
        figures = {
            "answers": len(load.all("answered")),
            "whole sequences": sum(worker.whole for worker in load.workers),
            "requests lost": requests,
            "sequences broken": len(load.all("broken")),
            "of which another replica's": sum(began_on not in (None, *ended) for began_on, _ in load.all("broken")),
            "wrong": len(found),
        }
        what = "one killed" if is_killed else "all replaced"
        say(f"{what}: " + ", ".join(f"{count} {name}" for name, count in figures.items()))
        wrong += found
        totals.update({what: 1, **figures})
    say(f"{(time.monotonic() - began) / 60:.1f} minutes: " + ", ".join(f"{count} {name}" for name, count in totals.items()))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--header", action="store_true", help="all clients with sequences send x-session-id")
    parser.add_argument("--logs", type=pathlib.Path, default=servers.build_folder() / "ray_run_logs")
    arguments = parser.parse_args()
    if reason := clusters.missing():
        sys.exit(reason)
    cluster = clusters.Cluster(lambda folder: None)
    try:
        cluster.scale(REPLICAS)
        cluster.ask("run", app="load")
        wrong = run(cluster, arguments.minutes, arguments.header)
        if wrong:
            cluster.keep_logs(arguments.logs)
            say(f"the logs are in {arguments.logs}")
    finally:
        cluster.stop()
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
