# SPDX-License-Identifier: Apache-2.0
"""The clock of a simulation, and processor cores that tasks share. Times are in seconds."""

import collections
import heapq


class Simulation:
    """Actions in the order of their times; those of the same time in the order in which they were asked for."""

    def __init__(self):
        self.now = 0.0
        self._events = []
        self._count = 0

    def at(self, time, action, *arguments):
        """Calls action(*arguments) at this time, or now if the time is over."""
        self._count += 1
        heapq.heappush(self._events, (max(time, self.now), self._count, action, arguments))

    def after(self, delay, action, *arguments):
        self.at(self.now + delay, action, *arguments)

    def run(self, until=float("inf")):
        """Runs what is due until this time, or until nothing is left to do."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        if until != float("inf"):
            self.now = until


class Cores:
    """Cores of one machine. A task keeps a core until it is done; tasks that find none wait in line."""

    def __init__(self, simulation, count):
        self._simulation, self._idle = simulation, count
        self._waiting = collections.deque()
        self.busy_seconds = 0.0

    def run(self, seconds, then, *arguments):
        """Calls then(*arguments) when a core has worked for so long. What costs nothing waits for no core."""
        if seconds <= 0:
            then(*arguments)
        elif self._idle == 0:
            self._waiting.append((seconds, then, arguments))
        else:
            self._idle -= 1
            self._begin(seconds, then, arguments)

    def _begin(self, seconds, then, arguments):
        self.busy_seconds += seconds
        self._simulation.after(seconds, self._end, then, arguments)

    def _end(self, then, arguments):
        if self._waiting:
            self._begin(*self._waiting.popleft())
        else:
            self._idle += 1
        then(*arguments)
