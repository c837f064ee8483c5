# SPDX-License-Identifier: Apache-2.0
"""What many replicas cost, from what one costs. Each table is a function of what was measured and of the fitted parameters;
whatever is assumed stands here by name, and in docs/scale.md."""

import bisect
import collections
import math
import random

from sim.balancer import ConsistentHash
from sim.cold import OnDemand, Storm
from sim.fleet import Setup, simulate
from sim.replica import Model, affine

REPLICAS = 1000
SCRAPE_SECONDS = 15  # deploy/prometheus/prometheus.yml
POLL_SECONDS = 15  # --repository-poll-secs
CHECKS_PER_SECOND = 6  # of a replica by one balancer: deploy/proxies/haproxy.cfg names it in six backends
GIGABIT = 1e9 / 8
IDLE_BYTES = 14.3e6  # row "1 model" of part 12 in docs/performance.md


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def size(count):
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.3g} B"


def duration(seconds):
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


# --- Connections ------------------------------------------------------------------------------


def connections(measured, _):
    """Each client has a connection to each replica, or some balancers have."""
    rows = []
    for who, each in (
        ("1,000 clients", 1_000), ("10,000 clients", 10_000), ("60,000 clients", 60_000),
        ("20 balancers, 16 connections each", 320),
    ):  # fmt: skip
        for protocol, memory in measured["connection_bytes"].items():
            rows.append([who, protocol, f"{each:,}", f"{each * REPLICAS:,}", size(each * memory), size(each * memory * REPLICAS)])
    head = ["who connects to each replica", "protocol", "connections of a replica", "in all", "memory of a replica", "in all"]
    return table(head, rows)


# --- Balancers --------------------------------------------------------------------------------


def _latencies(parameters, choice, count, replicas, times_vary, seconds):
    """A model of 20 ms with one instance, asked at 70 % of what all replicas can do, on a network of 0.2 ms one way."""
    service, generator = 0.02, random.Random(1)
    execution = (lambda rows: generator.expovariate(1 / service)) if times_vary else affine(service, 0)
    setup = Setup(
        Model(execution), rate=0.7 * replicas / service, replicas=replicas, balancers=count, choice=choice,
        replica_cpu=parameters.replica_cpu, balancer_cpu=parameters.balancer_cpu, hop=0.0002, cores=64,
    )  # fmt: skip
    return simulate(setup, seconds, warmup=0.5)


def balancers(_, parameters, replicas=REPLICAS, seconds=2.0):
    """What clients wait by how replicas are chosen, where each balancer knows of its own requests only."""
    cases = [(choice, count, 1) for choice in ("round robin", "two choices", "least requests") for count in (1, 20, replicas)]
    rows = []
    for choice, count, cells in [*cases, ("least requests", 1, 20)]:
        size_of_cell = replicas // cells
        cells_text = f"20 cells of {size_of_cell} replicas, 1 each" if cells > 1 else f"{count:,}"
        row = [choice, cells_text]
        for times_vary in (False, True):
            # One cell is like the others: a longer run of one tells as much.
            outcome = _latencies(parameters, choice, count, size_of_cell, times_vary, seconds * cells)
            row += [f"{outcome.quantile(share) * 1e3:.0f}" for share in (0.5, 0.99)]
        rows.append(row)
    head = ["choice", "balancers", "20 ms: median", "p99, ms", "20 ms on average: median", "p99, ms"]
    return table(head, rows)


def sequences(_, __, replicas=REPLICAS):
    """How many sequences the busiest replica has, relative to the mean."""
    rows = []
    for points in (2, 16, 100, 400):
        ring = ConsistentHash(replicas, None, points)
        cells = []
        for count in (1_000, 10_000, 100_000):
            found = collections.Counter(ring.choose(number) for number in range(count))
            cells.append(f"{max(found.values()) * replicas / count:.1f}")
        rows.append([f"{points:,}", *cells])
    head = ["points of a replica on the ring", "1 sequence a replica", "10 a replica", "100 a replica"]
    return table(head, rows)


def proxies(measured, parameters):
    """Cores of HAProxy for the requests, at 60 % of what they can do, and what the health checks of all of them cost."""
    rows = []
    for rate in (10_000, 100_000, 1_000_000):
        cores = rate * parameters.balancer_cpu / 0.6
        # Eight cores each, and at least two, so that one may fail.
        count = math.ceil(cores / 8) + 1
        checks = count * CHECKS_PER_SECOND
        rows.append([
            f"{rate:,}", f"{cores:,.1f}", f"{count}", f"{checks * REPLICAS:,}",
            f"{CHECKS_PER_SECOND * REPLICAS * measured['balancer_check_cpu']:.2f}", f"{checks:,}",
            f"{checks * measured['health_check_cpu']:.2%}",
        ])  # fmt: skip
    return table([
        "requests/s", "cores of HAProxy", "balancers of 8 cores", "checks/s in all", "cores of a balancer for its checks",
        "checks/s of a replica", "share of a replica's core",
    ], rows)  # fmt: skip


# --- Metrics ----------------------------------------------------------------------------------


def page_of(measured, models, has_histograms):
    """(series, bytes, seconds of work) of a metrics page with so many models: straight lines between what was measured."""
    known = [page for page in measured["metrics"] if page["has_histograms"] == has_histograms]
    known.sort(key=lambda page: page["models"])
    counts = [page["models"] for page in known]
    if not counts[0] <= models <= counts[-1]:
        raise ValueError(f"{models} models: pages were measured with {counts[0]} to {counts[-1]}")
    right = max(1, bisect.bisect_left(counts, models))
    share = (models - counts[right - 1]) / (counts[right] - counts[right - 1])
    return [known[right - 1][figure] * (1 - share) + known[right][figure] * share for figure in ("series", "bytes", "cpu")]


def series_memory(name_bytes, labels=4):
    """Bytes of a Prometheus for a series, with three hours of its samples: the published estimate of Robust Perception for
    Prometheus 2.x, whose parts are doubled for the garbage collector."""
    samples = 3 * 3600 / SCRAPE_SECONDS
    return 2 * (732 + 32 * labels + 2 * name_bytes + samples * 1.5 * 1.5)


def metrics(measured, _):
    rows = []
    for models in (1, 20, 100, 1000):
        for has_histograms in (False, True):
            series, page, cpu = page_of(measured, models, has_histograms)
            in_all = series * REPLICAS
            rows.append([
                f"{models:,}", "yes" if has_histograms else "no", f"{series:,.0f}", size(page), duration(cpu),
                f"{in_all / 1e6:,.2f} million", f"{in_all / SCRAPE_SECONDS:,.0f}", f"{size(page * REPLICAS / SCRAPE_SECONDS)}/s",
                size(in_all * series_memory(page / series)),
            ])  # fmt: skip
    return table([
        "models on a replica", "histograms", "series", "page", "work for a page", "series in all", "samples/s", "bytes",
        "memory of Prometheus",
    ], rows)  # fmt: skip


# --- Models -----------------------------------------------------------------------------------


def storm(_, __, replicas=REPLICAS):
    """Cold starts: a link of 10 Gb/s for each replica, and a load that reads 1 GB a second from the disk."""
    rows = []
    for gigabytes in (0.1, 1, 10):
        for gigabits, at_once in ((10, 0), (100, 0), (1000, 0), (100, 50)):
            one = Storm(replicas, gigabytes * 1e9, gigabits * GIGABIT, 10 * GIGABIT, load=gigabytes, at_once=at_once)
            ready = one.ready_times()
            rows.append([
                f"{gigabytes:g} GB", f"{gigabits:,} Gb/s", f"{at_once}" if at_once else "all",
                size(gigabytes * 1e9 * replicas), *(duration(ready[place]) for place in (0, replicas // 2, -1)),
            ])  # fmt: skip
    head = ["models of a replica", "bucket", "at once", "bytes in all", "first is ready", "half are", "last"]
    return table(head, rows)


def on_demand(_, __, replicas=REPLICAS):
    """A thousand models of 1 GB that take a second to load, by Zipf's law, 2,000 requests a second: each replica is asked for
    any of them, or replicas are in groups, each of which has a part of the models."""
    models, rate, load, rows = 1000, 2_000, 1.0, []
    for room in (20, 100):
        for groups in sorted({1, 10, models // room}):
            # The models of a group are spread over the ranks, as a hash of the name would.
            one = OnDemand(models // groups, room, rate / replicas)
            share = one.miss_rate(20_000, warmup=40_000) if room < one.models else 0.0
            rows.append([
                f"{room}", f"{groups}", f"{models // groups:,}", f"{share:.1%}", f"{share * rate:,.0f}",
                f"{share * rate / replicas * load:.0%}", f"{size(share * rate * 1e9)}/s",
            ])  # fmt: skip
    return table([
        "room on a replica", "groups of replicas", "models of a group", "requests that find no model", "loads/s in all",
        "of its time a replica loads", "read by all replicas",
    ], rows)  # fmt: skip


def control(_, __, replicas=REPLICAS):
    """A new version of a model of 1 GB that is loaded by request, on so many replicas at once, and what polling asks."""
    rows = []
    for at_once in (1, 10, 50, replicas):
        ready = Storm(replicas, 1e9, 100 * GIGABIT, 10 * GIGABIT, load=1.0, at_once=at_once).ready_times()
        rows.append([f"{at_once:,}", duration(ready[0]), duration(ready[-1])])
    return table(["replicas at once", "first has it", "last"], rows)


def polling(_, __, replicas=REPLICAS):
    rows = []
    for objects in (100, 10_000, 100_000):
        lists = -(-objects // 1000)
        per_second = replicas * lists / POLL_SECONDS
        rows.append([f"{objects:,}", f"{lists:,}", f"{per_second:,.0f}", f"{per_second * 86400 / 1e6:,.1f} million"])
    return table(["objects in the repository", "requests of a scan", "requests/s in all", "a day"], rows)


def fleet(measured, _, replicas=REPLICAS):
    """All parts of one fleet: 20 models of 1 GB in all on each replica, 10,000 clients over gRPC, 20 balancers."""
    connection = measured["connection_bytes"]["gRPC"]
    series, page, _ = page_of(measured, 20, False)
    storm_end = Storm(replicas, 1e9, 100 * GIGABIT, 10 * GIGABIT, load=1).ready_times()[-1]
    memory = series * series_memory(page / series)
    checks = 20 * CHECKS_PER_SECOND
    check_cores = checks * measured["health_check_cpu"]
    return table(["part", "of a replica", "in all"], [
        ["memory of servers, each with one small model", size(IDLE_BYTES), size(IDLE_BYTES * replicas)],
        ["connections, through 20 balancers with 16 each", "320", f"{320 * replicas:,}"],
        ["their memory", size(320 * connection), size(320 * connection * replicas)],
        ["connections, clients directly", "10,000", f"{10_000 * replicas:,}"],
        ["their memory", size(10_000 * connection), size(10_000 * connection * replicas)],
        ["health checks", f"{checks}/s", f"{checks * replicas:,}/s"],
        ["work for them", f"{check_cores:.2%} of a core", f"{check_cores * replicas:.1f} cores"],
        ["metrics, every 15 s", f"{series:,.0f} series, {size(page)}", f"{series * replicas / SCRAPE_SECONDS:,.0f} samples/s"],
        ["memory of Prometheus for them", size(memory), size(memory * replicas)],
        ["all start at once, bucket of 100 Gb/s", "1 GB", f"{size(1e9 * replicas)}: {duration(storm_end)} until one is ready"],
        ["polling of 100 objects, every 15 s", f"{1 / POLL_SECONDS:.2g} requests/s", f"{replicas / POLL_SECONDS:.0f} requests/s"],
    ])  # fmt: skip


TABLES = {
    one.__name__: one
    for one in (fleet, connections, balancers, sequences, proxies, storm, on_demand, control, polling, metrics)
}
