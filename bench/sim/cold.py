# SPDX-License-Identifier: Apache-2.0
"""Cold loads: many replicas that fetch the same models from a bucket at once, and models on demand."""

import dataclasses
import heapq
import itertools
import random

from sim.events import Simulation


class SharedLink:
    """A bucket's bandwidth, in bytes a second, shared equally by the downloads in progress; none is faster than `most`."""

    def __init__(self, simulation, total, most):
        self._simulation, self._total, self._most = simulation, total, most
        self._each = 0.0  # bytes that a download would have got that is in progress since the beginning
        self._since = 0.0
        self._ends = []  # (value of _each at the end, number, action)
        self._numbers = itertools.count()
        self._plan = 0

    def fetch(self, size, then):
        self._advance()
        heapq.heappush(self._ends, (self._each + size, next(self._numbers), then))
        self._plan_next()

    def _rate(self):
        return min(self._most, self._total / len(self._ends)) if self._ends else 0.0

    def _advance(self):
        self._each += (self._simulation.now - self._since) * self._rate()
        self._since = self._simulation.now

    def _plan_next(self):
        self._plan += 1
        if self._ends:
            left = max(self._ends[0][0] - self._each, 0.0)
            self._simulation.after(left / self._rate(), self._end, self._plan)

    def _end(self, plan):
        if plan != self._plan:
            return  # Another download has begun or ended since.
        self._advance()
        target, _, then = heapq.heappop(self._ends)
        self._each = target
        then()
        self._plan_next()


@dataclasses.dataclass(frozen=True)
class Storm:
    """Replicas that start together. Bytes, bytes a second, seconds."""

    replicas: int
    size: float
    bucket: float
    replica_link: float
    load: float
    at_once: int = 0  # so many replicas are in progress at most; 0: all

    def ready_times(self):
        """When each replica is ready, ascending."""
        simulation = Simulation()
        link = SharedLink(simulation, self.bucket, self.replica_link)
        waiting, ready = iter(range(self.replicas)), []

        def start():
            if next(waiting, None) is not None:
                link.fetch(self.size, lambda: simulation.after(self.load, finish))

        def finish():
            ready.append(simulation.now)
            start()

        for _ in range(self.at_once or self.replicas):
            start()
        simulation.run()
        return ready


@dataclasses.dataclass(frozen=True)
class OnDemand:
    """A replica in --model-control-mode=ondemand, all of whose models take the same memory and time to load.

    Which model makes room is decided as docs/on_demand.md says: the one that is used least, by a count that halves every
    half hour. Requests follow Zipf's law.
    """

    models: int
    room: int
    rate: float  # requests a second that reach the replica

    HALF_LIFE = 1800.0

    def miss_rate(self, requests, warmup, seed=1):
        """The share of the requests that find their model not loaded, after `warmup` requests."""
        generator = random.Random(seed)
        weights = list(itertools.accumulate(1 / rank for rank in range(1, self.models + 1)))
        chosen = generator.choices(range(self.models), cum_weights=weights, k=warmup + requests)
        uses, loaded, misses, weight = [0.0] * self.models, set(), 0, 1.0
        growth = 2 ** (1 / (self.rate * self.HALF_LIFE))
        for number, model in enumerate(chosen):
            # Later uses weigh more, which orders the models as a decay of earlier ones does.
            weight *= growth
            if weight > 1e200:
                uses, weight = [use / weight for use in uses], 1.0
            uses[model] += weight
            if model in loaded:
                continue
            misses += number >= warmup
            if len(loaded) >= self.room:
                loaded.remove(min(loaded, key=uses.__getitem__))
            loaded.add(model)
        return misses / requests
