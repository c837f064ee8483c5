# SPDX-License-Identifier: Apache-2.0
"""The parameters of the simulation from a few of the measured loads, and how well it foretells the others."""

import dataclasses
import statistics

from sim import points
from sim.bucket import BANDWIDTH, BYTES
from sim.cold import Storm
from sim.fleet import Setup, simulate
from sim.replica import Model, affine

CORES = 2


@dataclasses.dataclass(frozen=True)
class Parameters:
    """All in seconds; `cpu` is work for a request."""

    replica_cpu: float
    client_cpu: float
    balancer_cpu: float
    hop: float  # one way from a program to the next, without work
    fixed: float  # of an execution, for the batch
    per_row: float  # and for each row of it

    @property
    def overhead(self):
        """What an execution takes beyond what the model waits."""
        return self.fixed + self.per_row - sum(points.WAITS["eager"])


@dataclasses.dataclass(frozen=True)
class Compared:
    """A point as it was measured and as it was simulated."""

    point: object
    measured: dict  # medians of the rounds
    simulated: dict

    def error(self, figure):
        return self.simulated[figure] / self.measured[figure] - 1


def median(measured, point, figure):
    return statistics.median(round_[figure] for round_ in measured["points"][point.key])


def fit(measured):
    """Reads nothing but the fitted points."""
    path, proxied, one, full = (point for point in points.POINTS if point.is_fitted)
    # A request that waits for nothing: its work, and two ways. What a model that waits costs besides is taken for a part of
    # its execution.
    replica_cpu, client_cpu = median(measured, path, "replica_cpu"), median(measured, path, "client_cpu")
    way = median(measured, path, "p50")
    hop = max(way - replica_cpu - client_cpu, 0.0) / 2
    alone = median(measured, one, "p50") - (replica_cpu + client_cpu + 2 * hop)
    most = points.POLICIES["eager"].max_batch_size
    per_row = (most / median(measured, full, "per_second") - alone) / (most - 1)
    balancer_cpu = median(measured, proxied, "balancer_cpu")
    return Parameters(replica_cpu, client_cpu, balancer_cpu, hop, alone - per_row, per_row)


def model_of(name, parameters):
    """A model of points.py: the fitted time of an execution, or what it waits and the fitted overhead."""
    if name == "path":
        execution = affine(0, 0)  # What it takes is part of the way.
    elif points.WAITS[name] == points.WAITS["eager"]:
        execution = affine(parameters.fixed, parameters.per_row)
    else:
        fixed, per_row = points.WAITS[name]
        execution = affine(fixed + parameters.overhead, per_row)
    return Model(execution, points.POLICIES[name], points.INSTANCES[name])


def simulated(point, parameters, seconds=None):
    """Closed loops repeat themselves soon; open ones have random arrivals."""
    setup = Setup(
        model_of(point.model, parameters),
        clients=point.clients,
        rate=point.rate,
        replicas=point.replicas,
        balancers=0 if point.front == "replica" else 1,
        choice="round robin" if point.front == "round robin" else "least requests",
        replica_cpu=parameters.replica_cpu,
        balancer_cpu=parameters.balancer_cpu,
        client_cpu=parameters.client_cpu,
        hop=parameters.hop,
        cores=CORES,
        is_one_machine=True,
    )
    outcome = simulate(setup, seconds or (3 if point.clients else 20))
    return {
        "per_second": outcome.per_second,
        "p50": outcome.quantile(0.5),
        "p99": outcome.quantile(0.99),
        "rows": outcome.mean_rows,
    }


def compare(measured, parameters):
    found = []
    for point in points.POINTS:
        medians = {figure: median(measured, point, figure) for figure in ("per_second", "p50", "p99", "rows")}
        found.append(Compared(point, medians, simulated(point, parameters)))
    return found


def compare_cold(measured):
    """(seconds that one replica takes beyond its download; {replicas: (measured, simulated) until the last is ready}).

    One replica is fitted: what it takes beyond BYTES ÷ BANDWIDTH is its load.
    """
    def last(count):
        return statistics.median(round_[count][-1] for round_ in measured["cold"])

    load = last("1") - BYTES / BANDWIDTH
    found = {}
    for count in measured["cold"][0]:
        storm = Storm(int(count), BYTES, BANDWIDTH, BANDWIDTH, load)
        found[int(count)] = last(count), storm.ready_times()[-1]
    return load, found
