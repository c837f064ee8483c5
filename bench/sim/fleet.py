# SPDX-License-Identifier: Apache-2.0
"""A set-up of clients, balancers and replicas, and what its clients see."""

import dataclasses
import itertools
import random

from sim.balancer import CHOICES, Balancer
from sim.events import Cores, Simulation
from sim.replica import Model, Replica, Request


@dataclasses.dataclass(frozen=True)
class Setup:
    """What is simulated. Exactly one of `clients` (a closed loop) and `rate` (an open loop with Poisson arrivals, requests
    a second) is given."""

    model: Model
    clients: int = 0
    rate: float = 0.0
    replicas: int = 1
    balancers: int = 0  # 0: there is one replica, and clients ask it themselves
    choice: str = "least requests"
    sequences: int = 0  # keys for consistent hashing
    # Seconds of work for a request: of a replica, a balancer and a client.
    replica_cpu: float = 0.0
    balancer_cpu: float = 0.0
    client_cpu: float = 0.0
    # Seconds from one program to the next, in one direction, without work.
    hop: float = 0.0
    # Cores of a replica; with `is_one_machine`, of all programs together.
    cores: int = 1
    is_one_machine: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was seen while it was measured. Latencies in seconds, ascending."""

    per_second: float
    latencies: list
    mean_rows: float
    in_flight: float  # the mean over time
    busiest: float  # requests of the busiest replica, relative to the mean

    def quantile(self, share):
        return self.latencies[min(int(share * len(self.latencies)), len(self.latencies) - 1)]


class Clients:
    """Sends requests and keeps what became of them."""

    def __init__(self, simulation, setup, cores, targets, generator):
        self._simulation, self._setup, self._cores = simulation, setup, cores
        self._targets = itertools.cycle(targets)
        self._random = generator
        self.latencies = []
        self._in_flight, self._area, self._since, self._began = 0, 0.0, 0.0, 0.0

    def begin(self):
        if self._setup.clients:
            for _ in range(self._setup.clients):
                self._send()
        else:
            self._arrive()

    def measure(self):
        """Forgets what was before."""
        self._count(0)
        self._began, self._area, self.latencies = self._simulation.now, 0.0, []

    def mean_in_flight(self):
        """Since measure(), by the time and not by the requests, so that Little's law can be tried."""
        self._count(0)
        return self._area / (self._simulation.now - self._began)

    def _count(self, change):
        self._area += self._in_flight * (self._simulation.now - self._since)
        self._since = self._simulation.now
        self._in_flight += change

    def _arrive(self):
        self._simulation.after(self._random.expovariate(self._setup.rate), self._arrive)
        self._send()

    def _send(self):
        self._count(1)
        sequences = self._setup.sequences
        key = self._random.randrange(sequences) if sequences else None
        request = Request(self._simulation.now, self._received, key)
        self._cores.run(self._setup.client_cpu / 2, self._leave, request)

    def _leave(self, request):
        self._simulation.after(self._setup.hop, next(self._targets).submit, request, self._return)

    def _return(self, request):
        self._simulation.after(self._setup.hop, self._cores.run, self._setup.client_cpu / 2, request.done, request)

    def _received(self, request):
        self._count(-1)
        self.latencies.append(self._simulation.now - request.began_at)
        if self._setup.clients:
            self._send()


def simulate(setup, seconds, warmup=1.0, seed=1):
    """Runs the set-up for `warmup` seconds, which do not count, and then for `seconds`."""
    if bool(setup.clients) == bool(setup.rate):
        raise ValueError("a set-up has either clients (a closed loop) or a rate (an open loop)")
    if setup.balancers == 0 and setup.replicas != 1:
        raise ValueError(f"{setup.replicas} replicas need a balancer")
    simulation, generator = Simulation(), random.Random(seed)
    machine = Cores(simulation, setup.cores)

    def cores():
        return machine if setup.is_one_machine else Cores(simulation, setup.cores)

    replicas = [Replica(simulation, cores(), setup.model, setup.replica_cpu) for _ in range(setup.replicas)]
    targets = replicas
    if setup.balancers:
        make = CHOICES[setup.choice]
        # The ring of a consistent hash is the same everywhere; whatever counts requests is each balancer's own.
        shared = make(setup.replicas, generator) if setup.choice == "consistent hash" else None
        targets = [
            Balancer(simulation, cores(), replicas, shared or make(setup.replicas, generator), setup.balancer_cpu, setup.hop)
            for _ in range(setup.balancers)
        ]
    # Clients on machines of their own are as many as there are cores for them.
    client_cores = machine if setup.is_one_machine else Cores(simulation, 1_000_000)
    clients = Clients(simulation, setup, client_cores, targets, generator)
    clients.begin()
    simulation.run(warmup)
    clients.measure()
    before = [(replica.served, replica.executions, replica.rows) for replica in replicas]
    simulation.run(warmup + seconds)
    served = [replica.served - was[0] for replica, was in zip(replicas, before)]
    executions = sum(replica.executions - was[1] for replica, was in zip(replicas, before))
    rows = sum(replica.rows - was[2] for replica, was in zip(replicas, before))
    return Outcome(
        per_second=len(clients.latencies) / seconds,
        latencies=sorted(clients.latencies),
        mean_rows=rows / max(executions, 1),
        in_flight=clients.mean_in_flight(),
        busiest=max(served) * len(served) / max(sum(served), 1),
    )
