# SPDX-License-Identifier: Apache-2.0
"""Balancers: how they choose a replica, what a request costs them, and what each of several knows: its own requests only.

A choice has choose(key) -> the number of a replica, and is told of the ends of the requests that it placed."""

import bisect
import hashlib


class RoundRobin:
    def __init__(self, count, random):
        self._count, self._next = count, random.randrange(count)

    def choose(self, _):
        self._next = (self._next + 1) % self._count
        return self._next

    def ended(self, _):
        pass


class LeastRequests:
    """The replica with the fewest of this balancer's requests; among equals the one that has waited longest."""

    def __init__(self, count, random):
        order = list(range(count))
        random.shuffle(order)
        self._in_flight = [0] * count
        self._levels = [dict.fromkeys(order)]  # by requests in flight; dicts keep the order of arrival
        self._lowest = 0

    def choose(self, _):
        while not self._levels[self._lowest]:
            self._lowest += 1
        chosen = next(iter(self._levels[self._lowest]))
        self._move(chosen, self._lowest + 1)
        return chosen

    def ended(self, replica):
        level = self._in_flight[replica] - 1
        self._move(replica, level)
        self._lowest = min(self._lowest, level)

    def _move(self, replica, level):
        del self._levels[self._in_flight[replica]][replica]
        if level == len(self._levels):
            self._levels.append({})
        self._levels[level][replica] = None
        self._in_flight[replica] = level


class TwoChoices:
    """Of two replicas at random the one with fewer of this balancer's requests, as Envoy's LEAST_REQUEST does."""

    def __init__(self, count, random):
        self._random, self._in_flight = random, [0] * count

    def choose(self, _):
        count = len(self._in_flight)
        one, other = self._random.randrange(count), self._random.randrange(count)
        chosen = one if self._in_flight[one] <= self._in_flight[other] else other
        self._in_flight[chosen] += 1
        return chosen

    def ended(self, replica):
        self._in_flight[replica] -= 1


class ConsistentHash:
    """The replica whose point on a ring comes next after the hash of the request's key: the same for all balancers."""

    def __init__(self, count, _, points=100):
        ring = sorted((self.hash(f"{replica}/{point}"), replica) for replica in range(count) for point in range(points))
        self._points, self._replicas = zip(*ring)

    @staticmethod
    def hash(key):
        return int.from_bytes(hashlib.blake2b(str(key).encode(), digest_size=8).digest(), "big")

    def choose(self, key):
        return self._replicas[bisect.bisect(self._points, self.hash(key)) % len(self._points)]

    def ended(self, _):
        pass


CHOICES = {
    "round robin": RoundRobin,
    "least requests": LeastRequests,
    "two choices": TwoChoices,
    "consistent hash": ConsistentHash,
}


class Balancer:
    """Passes each request to a replica and its response back. `cpu` is its work for both, `hop` the way to a replica."""

    def __init__(self, simulation, cores, replicas, choice, cpu=0.0, hop=0.0):
        self._simulation, self._cores, self._replicas, self._choice = simulation, cores, replicas, choice
        self._cpu, self._hop = cpu, hop

    def submit(self, request, then):
        self._cores.run(self._cpu / 2, self._place, request, then)

    def _place(self, request, then):
        chosen = self._choice.choose(request.key)

        def answered(request):
            self._simulation.after(self._hop, self._cores.run, self._cpu / 2, passed, request)

        def passed(request):
            self._choice.ended(chosen)
            then(request)

        self._simulation.after(self._hop, self._replicas[chosen].submit, request, answered)
