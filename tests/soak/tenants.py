#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight callers share a model, and one of them sends fifty times its share.

First the seven others send alone, each half of its share, evenly; then the eighth joins. Callers are API
keys without limits, so that nothing but the turns in the model's queue protects the others. The bound:
their p99 is at most twice what it was (docs/scheduling.md, K-1 and K-2).

usage: tests/soak/tenants.py [--seconds 30] [--times 50]
"""

import argparse
import hashlib
import json
import multiprocessing
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parent))

import overload  # noqa: E402

from harness import server as servers  # noqa: E402

TENANTS = 8
# What the model can take, by its configuration.
PEAK = overload.BATCH * 1000 / overload.EXECUTION_MS
SCOPES = ["infer", "metadata", "metrics"]


def key_of(tenant):
    return f"key-of-tenant-{tenant}"


def write_keys(path):
    keys = [
        {"id": f"tenant-{i}", "sha256": hashlib.sha256(key_of(i).encode()).hexdigest(), "scopes": SCOPES}
        for i in range(TENANTS)
    ]
    path.write_text(json.dumps({"keys": keys, "anonymous": {"scopes": ["metadata", "metrics"]}}))
    return path


def send(port, tenant, rate, seconds, deadline_ms, results):
    """The load of one tenant, in a process of its own."""
    load = overload.Load(port, deadline_ms, {"Authorization": f"Bearer {key_of(tenant)}"})
    results.put((tenant, load.run_open(rate, seconds)))


def send_all(port, rates, seconds, deadline_ms):
    """Each tenant at its rate; {tenant: what became of its requests}."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=send, args=(port, tenant, rate, seconds, deadline_ms, results))
        for tenant, rate in rates.items()
    ]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=seconds + 60) for _ in processes)
    for process in processes:
        process.join()
    return found


def run(folder, seconds, times, deadline_ms=1000):
    folder = pathlib.Path(folder)
    overload.write_model(folder / "models", adaptive=False)
    keys = write_keys(folder / "keys.json")
    share = PEAK / TENANTS
    quiet = {tenant: share / 2 for tenant in range(1, TENANTS)}
    with servers.running(folder / "models", args=[f"--api-keys={keys}"]) as server:
        alone = send_all(server.http_port, quiet, seconds, deadline_ms)
        together = send_all(server.http_port, {0: share * times, **quiet}, seconds, deadline_ms)
    busy = together.pop(0)

    def answered(loads):
        return [taken for load in loads.values() for taken in load["seconds"].get(200, [])]

    def count(loads, status):
        return sum(len(load["seconds"].get(status, [])) for load in loads.values())

    return {
        "answers to the others alone": count(alone, 200),
        "answers to the others beside the busy one": count(together, 200),
        "refusals to the others": count(together, 503) + count(together, 504) + count(together, 429),
        "answers to the busy one": len(busy["seconds"].get(200, [])),
        "refusals to the busy one": len(busy["seconds"].get(503, [])) + len(busy["seconds"].get(504, [])),
        "p99 of the others alone, ms": 1000 * overload.quantile(answered(alone), 0.99),
        "p99 of the others beside the busy one, ms": 1000 * overload.quantile(answered(together), 0.99),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--times", type=float, default=50, help="the load of the busy one, in shares")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(folder, arguments.seconds, arguments.times)
    for name, value in figures.items():
        print(f"{name:44} {value:.1f}" if isinstance(value, float) else f"{name:44} {value}")
    alone, beside = (figures[f"p99 of the others {how}, ms"] for how in ("alone", "beside the busy one"))
    if beside > 2 * alone:
        sys.exit(f"MISSED: the others' p99 is {beside / alone:.1f} times what it was")


if __name__ == "__main__":
    main()
