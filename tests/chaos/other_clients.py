# SPDX-License-Identifier: Apache-2.0
"""Clients that come by another way or to another API than those of clients.py: through a Unix socket, to OpenAI's API, and
to a model whose versions share its requests."""

import http.client
import json
import socket
import time

import numpy as np

from chaos import repository
from chaos.clients import JSON, SECONDS_OF_PATIENCE, GrpcClient, HttpClient, HttpIdentity
from tritonclient.utils import InferenceServerException


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, context):
        super().__init__("localhost", timeout=SECONDS_OF_PATIENCE)
        self._path, self._context = path, context

    def connect(self):
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(SECONDS_OF_PATIENCE)
        made.connect(str(self._path))
        self.sock = self._context.wrap_socket(made, server_hostname="localhost") if self._context else made


class UnixIdentity(HttpIdentity):
    """Tensors through a Unix socket: the admin listener serves the whole API."""

    THREADS = 1

    def connect(self):
        context = self.world.tls.context() if "http" in self.world.encrypted else None
        return UnixConnection(self.world.socket, context)


class OpenAi(HttpClient):
    """Completions, whole and in pieces, of models that say again what they were told."""

    WORDS = ("wine-dark ", "sea, ", "größer ", "€uro ", "🌞🌛 ", "\"quoted\\\" ", "\n\n", "data: x ")

    def visit(self):
        connection = self.connect()
        try:
            for _ in self.some(30):
                prompt = "".join(self.rng.choice(self.WORDS) for _ in range(self.rng.randrange(1, 60)))
                self._ask(connection, self.rng.choice(repository.SPEAKERS), prompt, self.rng.random() < 0.5)
        finally:
            connection.close()

    def _ask(self, connection, model, prompt, is_stream):
        body = json.dumps({"model": model, "prompt": prompt, "stream": is_stream})
        started = time.monotonic()
        reply = self.post(connection, "/v1/completions", body, JSON)
        if reply is None:
            return
        text = self._joined(reply.body.decode()) if is_stream else reply.json()["choices"][0]["text"]
        if text is not None:
            self.oracle.response(text == prompt, f"{model}: {text!r} to {prompt!r}", started)

    def _joined(self, body):
        """What the pieces say together; None after an error that was judged."""
        events = [event.removeprefix("data: ") for event in body.split("\n\n") if event]
        pieces = [json.loads(event) for event in events if event != "[DONE]"]
        errors = [piece["error"] for piece in pieces if "error" in piece]
        if errors:
            self.oracle.error("/v1/completions", errors[0]["message"])
            return None
        if events[-1:] != ["[DONE]"]:
            return f"no end after {body[-100:]!r}"
        return "".join(choice["text"] for piece in pieces for choice in piece["choices"])


class Shared:
    """What both protocols have in common for the model whose versions share its requests."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def headers_of_request(self):
        """Some belong together: they go to the same version as long as its share does not change."""
        more = {"x-canary-key": str(self.rng.randrange(5))} if self.rng.random() < 0.5 else {}
        return {**self.world.headers(), **more}

    def judge(self, mark, value, answer, version, started):
        allowed = self.oracle.shares.since(mark)
        self.oracle.count("canary's answers")
        self.oracle.response(version in allowed and answer - value == int(version),
                             f"canary: version {version} said {answer} to {value}; allowed were {sorted(allowed)}", started)


class HttpCanary(Shared, HttpClient):
    """A version that has a share of the requests answers, and says which it is; never its shadow."""

    def visit(self):
        connection = self.connect()
        try:
            for _ in self.some(100):
                value = float(self.rng.randrange(1 << 20))
                body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [value]}]})
                mark, started = self.oracle.shares.mark(), time.monotonic()
                reply = self.post(connection, f"/v2/models/{repository.CANARY}/infer", body, self.headers_of_request())
                if reply is not None:
                    answer = reply.json()
                    self.judge(mark, value, answer["outputs"][0]["data"][0], answer["model_version"], started)
        finally:
            connection.close()


class GrpcCanary(Shared, GrpcClient):
    """The same over gRPC."""

    def visit(self):
        with self.connect() as client:
            for _ in self.some(100):
                value = float(self.rng.randrange(1 << 20))
                mark, started = self.oracle.shares.mark(), time.monotonic()
                try:
                    result = client.infer(repository.CANARY, [self.tensor("INPUT0", np.array([value], np.float32))],
                                          client_timeout=SECONDS_OF_PATIENCE, headers=self.headers_of_request())
                except InferenceServerException as error:
                    self.oracle.error(repository.CANARY, error)
                    continue
                version = result.get_response().model_version
                self.judge(mark, value, float(result.as_numpy("OUTPUT0")[0]), version, started)
