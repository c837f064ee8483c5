# SPDX-License-Identifier: Apache-2.0
"""Clients that stop reading in the middle of a stream, while the server has more for them than it keeps for a client."""

import json
import threading
import time

import numpy as np

from chaos import repository
from chaos.clients import JSON, SECONDS_OF_PATIENCE, GrpcClient, HttpClient


class Slow:
    """What both protocols have in common."""

    def choose(self):
        """The first number, and how many pieces."""
        return self.rng.randrange(1 << 40), self.rng.randrange(1, 500)

    def pause(self):
        """Less than the server waits for a client that takes nothing."""
        self.is_over.wait(self.rng.uniform(0, 2))

    def judge(self, pieces, start, count, began):
        is_right = pieces == [repository.piece(number) for number in range(start, start + count)]
        self.oracle.response(is_right, f"pieces: {len(pieces)} of {count} from {start}, {[p[:20] for p in pieces]}", began)


class HttpSlow(Slow, HttpClient):
    """Server-sent events."""

    def visit(self):
        start, count = self.choose()
        connection = self.connect()
        try:
            began = time.monotonic()
            connection.request("POST", f"/v2/models/{repository.PIECES}/generate_stream",
                               json.dumps({"INPUT0": [start, count]}), {**JSON, **self.world.headers()})
            reply = connection.getresponse()
            self.pause()
            if self.rng.random() < 0.2:
                self.oracle.count("streams left")
                return
            text = reply.read(1000)
            self.pause()
            text = (text + reply.read()).decode()
            if reply.status != 200:
                self.oracle.error(repository.PIECES, text)
                return
            events = [json.loads(event.removeprefix("data:")) for event in text.split("\n\n") if event.strip()]
            errors = [event["error"] for event in events if "error" in event]
            if errors:
                self.oracle.error(repository.PIECES, errors[0])
                return
            self.judge([event["OUTPUT0"].encode() for event in events], start, count, began)
        finally:
            connection.close()


class GrpcSlow(Slow, GrpcClient):
    """A stream over gRPC, whose library reads nothing while it is told of a response."""

    def visit(self):
        start, count = self.choose()
        pieces, errors, done = [], [], threading.Event()

        def take(result, error):
            if error:
                errors.append(error)
            else:
                pieces.append(result.as_numpy("OUTPUT0")[0])
                if len(pieces) == 1:
                    self.pause()
            if error or len(pieces) == count:
                done.set()

        began = time.monotonic()
        with self.connect() as client:
            client.start_stream(take, headers=self.world.headers())
            client.async_stream_infer(repository.PIECES, [self.tensor("INPUT0", np.array([start, count]), "INT64")])
            if self.rng.random() < 0.2:
                self.pause()
                client.stop_stream(cancel_requests=True)
                self.oracle.count("streams left")
                return
            if not done.wait(SECONDS_OF_PATIENCE):
                self.oracle.problem(f"pieces: {len(pieces)} of {count} responses after a minute")
            client.stop_stream()
        if errors:
            self.oracle.error(repository.PIECES, errors[0])
        else:
            self.judge(pieces, start, count, began)
