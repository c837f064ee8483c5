# SPDX-License-Identifier: Apache-2.0
"""One replica: its front end, its queue, and the instances of its model."""

import collections
import dataclasses
import itertools

from sim import batching


class Request:
    """A request on its way. `done` is called with it when the client has the response."""

    __slots__ = ("began_at", "done", "key", "queued_at", "rows", "then")

    def __init__(self, began_at, done, key=None, rows=1):
        self.began_at, self.done, self.key, self.rows = began_at, done, key, rows
        self.queued_at, self.then = 0.0, None


@dataclasses.dataclass(frozen=True)
class Model:
    """`execution` gives the seconds that a batch of so many rows takes on an instance, waiting or computing."""

    execution: object
    policy: batching.Policy = batching.Policy()
    instances: int = 1
    # Of the execution, what a core works for; the rest is waiting (for an accelerator, another service, a timer).
    cpu_per_execution: float = 0.0


def affine(fixed, per_row):
    """The time of a batch that is `fixed` and so much more for each row."""
    return lambda rows: fixed + per_row * rows


class Replica:
    """Serves one model. `cpu` is what the front end works for a request: half when it comes, half when it leaves."""

    def __init__(self, simulation, cores, model, cpu):
        self._simulation, self._cores, self._model, self._cpu = simulation, cores, model, cpu
        self._idle = model.instances
        self._queue = collections.deque()
        self._looks_at = None
        self.executions = self.rows = self.served = 0
        self.busy_seconds = 0.0

    def submit(self, request, then):
        """Calls then(request) when its response leaves."""
        request.then = then
        self._cores.run(self._cpu / 2, self._enqueue, request)

    def _enqueue(self, request):
        request.queued_at = self._simulation.now
        self._queue.append(request)
        self._start()

    def _start(self):
        while self._idle > 0:
            count, look_at = batching.decide(self._model.policy, self._queue, self._simulation.now)
            if count == 0:
                if look_at is not None and look_at != self._looks_at:
                    self._looks_at = look_at
                    self._simulation.at(look_at, self._look)
                return
            self._execute([self._queue.popleft() for _ in itertools.repeat(None, count)])

    def _look(self):
        self._looks_at = None
        self._start()

    def _execute(self, batch):
        self._idle -= 1
        self.executions += 1
        rows = sum(request.rows for request in batch)
        self.rows += rows
        self._cores.run(self._model.cpu_per_execution, self._wait, batch, rows)

    def _wait(self, batch, rows):
        seconds = self._model.execution(rows)
        self.busy_seconds += seconds
        self._simulation.after(seconds, self._executed, batch)

    def _executed(self, batch):
        self._idle += 1
        self._start()
        for request in batch:
            self._cores.run(self._cpu / 2, self._leave, request)

    def _leave(self, request):
        self.served += 1
        request.then(request)
