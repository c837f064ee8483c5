#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads three replicas behind a balancer of deploy/proxies for as long as you say, over HTTP and gRPC, while one after
the other is drained and replaced, and every fourth is killed instead.

Every answer is checked, and that nothing was executed twice. Wrong are: a request that fails, but for those that were sent
to a replica that is killed, which no other may have executed; a sequence that fails, but for those of a replica that is killed
(and, behind nginx and Envoy, new ones that a replica refuses while it finishes others: docs/balancers.md). The exit status
is 1 if anything was wrong.

usage: NEREID_BUILD=build/release tests/deploy/proxies_run.py [--balancer haproxy] [--minutes 10]
"""

import argparse
import itertools
import pathlib
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]

import balancers  # noqa: E402
import traffic  # noqa: E402


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def losses(load, replicas, kind, number, is_killed):
    """What was lost that must not be, in words."""
    wrong = load.all("wrong")
    if others := load.lost_by_others(replicas, number):
        wrong.append(f"replicas that went on executed {len(others)} requests that failed: {others[0]}")
    for worker in load.workers:
        if worker.failures and "-request-" in worker.name and not is_killed:
            wrong.append(f"{worker.name} lost {len(worker.failures)}: {worker.failures[0]}")
    allowed = {number, None} if is_killed else set() if kind == "haproxy" else {None}
    if others := [began for began in load.all("broken") if began not in allowed]:
        wrong.append(f"sequences were broken that had begun on {others}, while replica {number} ended")
    return wrong


def one_round(balancer, replicas, number, is_killed):
    """Ends a replica under load and replaces it; returns (what was wrong, requests, sequences, failures)."""
    with traffic.Traffic(balancer) as load:
        load.go_on()
        (traffic.killed if is_killed else traffic.drained)(replicas, number)
        load.go_on(without=number)
        # The ring of nginx and Envoy gives sequences back to a replica that returns.
        if balancer.kind == "haproxy":
            replicas.replace(number)
            load.go_on()
    load.check_answers(replicas)
    if balancer.kind != "haproxy":
        replicas.replace(number)
    traffic.returns(balancer, number)
    sequences = sum(worker.sequences for worker in load.workers)
    found = losses(load, replicas, balancer.kind, number, is_killed)
    return found, len(load.all("answered")), sequences, len(load.all("failures"))


def run(balancer, replicas, minutes):
    began, wrong = time.monotonic(), []
    requests = sequences = drained = killed = 0
    for turn in itertools.count():
        if turn >= 4 and time.monotonic() - began >= 60 * minutes:
            break
        number, is_killed = turn % 3 + 1, turn % 4 == 3
        found, answered, whole, failed = one_round(balancer, replicas, number, is_killed)
        say(f"replica {number} {'killed' if is_killed else 'drained'}: {answered} answers, {whole} whole sequences, "
            f"{failed} failures, wrong: {len(found)}")  # fmt: skip
        wrong += found
        requests, sequences = requests + answered, sequences + whole
        drained, killed = drained + (not is_killed), killed + is_killed
    say(f"{balancer.kind}: {(time.monotonic() - began) / 60:.1f} minutes, {drained} times drained, {killed} times killed, "
        f"{requests} requests answered, {sequences} sequences whole; wrong: {len(wrong)}")  # fmt: skip
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--balancer", choices=balancers.KINDS, default="haproxy")
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    balancers.require(arguments.balancer)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        replicas = traffic.Replicas(path)
        try:
            balancer = balancers.Balancer(arguments.balancer, path, replicas.ports)
            try:
                for number in (1, 2, 3):
                    traffic.returns(balancer, number)
                wrong = run(balancer, replicas, arguments.minutes)
            finally:
                balancer.stop()
        finally:
            replicas.stop()
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
