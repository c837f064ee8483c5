# SPDX-License-Identifier: Apache-2.0
"""Functions that the tests deploy: each says in which process, which is the replica, it ran."""

import os
import pathlib
import threading
import time
from typing import Iterator

import numpy as np

import nereid

PAIR = (np.int64, (2,))


def note(request_id):
    """Writes down what is executed, where somebody wants to know."""
    if request_id and (path := os.environ.get("NEREID_RAY_EXECUTED")):
        with open(path, "a") as file:
            file.write(f"{os.getpid()} {request_id}\n")


@nereid.model(outputs=PAIR)
def number(value: int, context: nereid.RequestContext):
    """The value, and the replica."""
    note(context.id)
    return np.array([value, os.getpid()])


@nereid.model(max_batch_size=4, max_queue_delay_us=60_000_000)
def together(value: (np.int64, (1,))) -> (np.int64, (1,)):
    """How many rows ran together: four, or whoever sends fewer waits for a minute."""
    return np.full_like(value, len(value))


@nereid.model
def count(n: int) -> Iterator[int]:
    yield from range(n)


@nereid.model
def endless(ended: str, begun: str = "") -> Iterator[int]:
    """Counts until its client goes away, and then writes a file."""
    value = 0
    if begun:
        pathlib.Path(begun).touch()
    try:
        while True:
            yield value
            value += 1
    finally:
        pathlib.Path(ended).write_text(str(os.getpid()))


@nereid.model
def gate(began: str, opened: str) -> int:
    """Answers when a file appears."""
    pathlib.Path(began).touch()
    while not os.path.exists(opened):
        time.sleep(0.01)
    return os.getpid()


@nereid.model
def metrics_page(value: int) -> str:
    """The metrics of the replica, whose own page is closed."""
    from nereid._api._server import _running

    (server,) = _running
    return server.metrics(nereid.MetricFormat.PROMETHEUS)


@nereid.model
def end_server(value: int) -> int:
    """Stops the server in which this runs, once this has answered."""
    from nereid._api._server import _running

    for server in list(_running):
        threading.Thread(target=server.stop).start()
    return os.getpid()


SEQUENCES = {
    "sequence_batching": {
        "oldest": {"max_candidate_sequences": 256},
        "max_sequence_idle_microseconds": 60_000_000,
        "control_input": [
            {"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}]},
        ],
    }
}


@nereid.model(name="sum", max_batch_size=8, config=SEQUENCES, outputs=PAIR)
class Sum:
    """The sum of a sequence's values, and the replica that has the sequence."""

    def __init__(self):
        self.sums = {}

    def __call__(self, value: (np.int64, (1,)), context: list[nereid.RequestContext], **controls):
        answers = []
        for row, (number, start) in enumerate(zip(value[:, 0], controls["START"].ravel())):
            sequence = context[row].correlation_id
            note(context[row].id)
            self.sums[sequence] = int(number) + (0 if start else self.sums[sequence])
            answers.append([self.sums[sequence], os.getpid()])
        return np.array(answers)


ALL = (number, together, count, endless, gate, end_server, Sum)
