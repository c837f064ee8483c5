# SPDX-License-Identifier: Apache-2.0
"""The parameters of the simulation from a few of the measured loads, and how well it foretells the others."""

import dataclasses
import statistics

import points
from fleet import Setup, simulate
from replica import Model, affine

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
    spread: float  # of the measured p99: the largest distance from the median, relative to it
    simulated: dict

    def error(self, figure):
        return self.simulated[figure] / self.measured[figure] - 1


def median(measured, point, figure):
    return statistics.median(round_[figure] for round_ in measured["points"][point.key])


def fit(measured):
    """Reads nothing but the fitted points."""
    path, proxied, one, full = (point for point in points.POINTS if point.is_fitted)
    replica_cpu, client_cpu = median(measured, one, "replica_cpu"), median(measured, one, "client_cpu")
    balancer_cpu = median(measured, proxied, "balancer_cpu")
    # A request that waits for nothing, in turn with itself: work, and four ways, two of them to the balancer and back.
    way = median(measured, path, "p50")
    path_cpu = median(measured, path, "replica_cpu") + median(measured, path, "client_cpu")
    hop = max(way - path_cpu, 0.0) / 2
    alone = median(measured, one, "p50") - (replica_cpu + client_cpu + 2 * hop)
    most = points.POLICIES["eager"].max_batch_size
    per_row = (most / median(measured, full, "per_second") - alone) / (most - 1)
    return Parameters(replica_cpu, client_cpu, balancer_cpu, hop, alone - per_row, per_row)


def model_of(name, parameters):
    """A model of points.py: the fitted time of an execution, or what it waits and the fitted overhead."""
    if points.WAITS[name] == points.WAITS["eager"]:
        execution = affine(parameters.fixed, parameters.per_row)
    else:
        fixed, per_row = points.WAITS[name]
        execution = affine(fixed + parameters.overhead, per_row)
    return Model(execution, points.POLICIES[name], points.INSTANCES[name])


def simulated(point, parameters, seconds=20):
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
        # The load generator keeps a core for itself while it waits for the next arrival of an open loop.
        cores=CORES if point.clients else CORES - 1,
        is_one_machine=True,
    )
    outcome = simulate(setup, seconds)
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
        p99s = [round_["p99"] for round_ in measured["points"][point.key]]
        spread = max(abs(p99 / medians["p99"] - 1) for p99 in p99s)
        found.append(Compared(point, medians, spread, simulated(point, parameters)))
    return found
