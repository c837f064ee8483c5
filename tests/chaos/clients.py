# SPDX-License-Identifier: Apache-2.0
"""The load: clients that send until they are told to stop, and know what must come back.

A kind of client is a class below `Client`; `THREADS` is how many of it a run has.
"""

import http.client
import json
import queue
import random
import socket
import ssl
import threading
import time

import grpc
import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from chaos import repository
from harness import wire

SECONDS_OF_PATIENCE = 60
JSON = {"Content-Type": "application/json"}


class Client:
    """Connects, sends for a while, and leaves, again and again."""

    THREADS = 1

    def __init__(self, world, seed, is_over):
        self.world, self.oracle, self.server = world, world.oracle, world.server
        self.rng = random.Random(seed)
        self.is_over = is_over  # of all clients

    @classmethod
    def is_possible(cls, world):
        return True

    def visit(self):
        """Connects, sends some requests and leaves."""
        raise NotImplementedError

    def run(self):
        while not self.is_over.is_set():
            try:
                self.visit()
            except InferenceServerException as error:
                self.oracle.error(type(self).__name__, error)
            except Exception as error:  # Client libraries raise exceptions of many kinds.
                self.oracle.error(type(self).__name__, f"{type(error).__name__}: {error}")

    def some(self, most):
        """Numbers up to a random one, until the run is over."""
        for number in range(self.rng.randrange(most)):
            if self.is_over.is_set():
                return
            yield number


# --- Over HTTP --------------------------------------------------------------------------------


class HttpClient(Client):
    def connect(self):
        port = self.server.http_port
        if "http" in self.world.encrypted:
            return http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS_OF_PATIENCE,
                                               context=self.world.tls.context())
        return http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_OF_PATIENCE)

    def post(self, connection, path, body, headers=()):
        """The reply, or None after an error that was judged."""
        connection.request("POST", path, body, {**dict(headers), **self.world.headers()})
        reply = connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            self.oracle.error(path, content.decode(errors="replace"))
            return None
        return wire.Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, content)


class HttpIdentity(HttpClient):
    """Tensors to all models that answer them, in JSON and in binary, compressed or not."""

    THREADS = 2

    def visit(self):
        connection = self.connect()
        try:
            for _ in self.some(200):
                self._ask(connection, self.rng.choice(self.world.identities))
        finally:
            connection.close()

    def _ask(self, connection, model):
        is_binary = self.rng.random() < 0.6
        values = model.values(self.rng, self.rng.choice((1, 16, 1000, 100_000) if is_binary else (1, 16, 300)))
        tag = str(self.rng.randrange(1 << 40))
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": list(values.shape)}
        headers = {}
        if is_binary:
            outputs = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
            body, headers = wire.infer_body([("INPUT0", "FP32", values.shape, values.tobytes())], outputs, id=tag)
        else:
            body = json.dumps({"id": tag, "inputs": [{**tensor, "data": values.ravel().tolist()}]})
        started = time.monotonic()
        reply = self.post(connection, f"/v2/models/{model.name}/infer", body, headers)
        if reply is None:
            return
        head, data = wire.split_reply(reply)
        output = head["outputs"][0]
        got = np.frombuffer(data, np.float32) if is_binary else np.array(output["data"], np.float32)
        is_right = (head.get("id") == tag and output["shape"] == list(values.shape)
                    and np.array_equal(got, values.ravel()))
        self.oracle.response(is_right, f"{model.name}: wrong, to {values.size} values from {values.ravel()[0]}", started)


class HttpGenerations(HttpClient):
    """The model that is replaced again and again: a response has the number of a version that may have served it."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def visit(self):
        connection = self.connect()
        try:
            for _ in self.some(200):
                self._ask(connection)
        finally:
            connection.close()

    def _ask(self, connection):
        value = float(self.rng.randrange(1 << 20))
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [value]}]})
        oldest, started = self.oracle.generations.oldest(), time.monotonic()
        reply = self.post(connection, f"/v2/models/{repository.CHANGING}/infer", body)
        if reply is None:
            return
        number = reply.json()["outputs"][0]["data"][0] - value
        newest = self.oracle.generations.newest()
        self.oracle.response(oldest <= number <= newest,
                             f"generation {number} answered, but only {oldest} to {newest} were there", started)


class HttpSequences(HttpClient):
    """Each response repeats the first value of its own sequence."""

    @classmethod
    def is_possible(cls, world):
        return world.has_onnx

    def visit(self):
        connection = self.connect()
        sequence, first = self.rng.randrange(1, 1 << 40), self.rng.randrange(1 << 40)
        length = self.rng.randrange(2, 10)
        try:
            for step in range(length):
                body = json.dumps({
                    "parameters": {"sequence_id": sequence, "sequence_start": step == 0,
                                   "sequence_end": step == length - 1},
                    "inputs": [{"name": "INPUT", "datatype": "INT64", "shape": [1, 1],
                                "data": [first if step == 0 else self.rng.randrange(1 << 40)]}]})
                started = time.monotonic()
                reply = self.post(connection, "/v2/models/keep/infer", body)
                if reply is None:
                    return
                self.oracle.response(reply.json()["outputs"][0]["data"][0] == first,
                                     f"keep: another sequence's state in {sequence}", started)
        finally:
            connection.close()


class HttpStream(HttpClient):
    """Server-sent events of a decoupled model, or of an ensemble that begins with it, each of which tells its place."""

    def visit(self):
        model = self.rng.choice(("repeat", repository.FLOW))
        start, count = self.rng.randrange(1 << 20), self.rng.randrange(1, 50)
        body = json.dumps({"IN": list(range(start, start + count)), "DELAY": [0] * count, "WAIT": [0]})
        connection = self.connect()
        try:
            started = time.monotonic()
            connection.request("POST", f"/v2/models/{model}/generate_stream", body, {**JSON, **self.world.headers()})
            reply = connection.getresponse()
            if self.rng.random() < 0.1:
                reply.read(self.rng.randrange(200))
                self.oracle.count("streams left")
                return
            lines = reply.read().decode().split("\n\n")
            events = []
            if reply.status == 200:
                events = [json.loads(line.removeprefix("data:")) for line in lines if line.strip()]
            errors = [event["error"] for event in events if "error" in event]
            if reply.status != 200 or errors:
                self.oracle.error(model, errors[0] if errors else "".join(lines))
                return
            self.oracle.response([event["OUT"] for event in events] == list(range(start, start + count)),
                                 f"{model}: {len(events)} events for {count} from {start}", started)
        finally:
            connection.close()


class Leaver(HttpClient):
    """Connections that are closed in the middle of a request, or before its response."""

    def visit(self):
        model = self.rng.choice(self.world.identities).name
        body = '{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}'
        message = wire.encode("POST", f"/v2/models/{model}/infer", body, self.world.headers())
        with socket.create_connection(("127.0.0.1", self.server.http_port), timeout=10) as connection:
            if "http" in self.world.encrypted and self.rng.random() < 0.8:
                connection = self.world.tls.context().wrap_socket(connection, server_hostname="127.0.0.1")
            connection.sendall(message[:self.rng.randrange(1, len(message) + 1)])
            if isinstance(connection, ssl.SSLSocket):
                connection.close()
        self.oracle.count("connections left")
        self.is_over.wait(0.02)


# --- Over gRPC --------------------------------------------------------------------------------


class GrpcClient(Client):
    def connect(self):
        # Each visit a connection of its own: channels to the same address otherwise share one.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        if "grpc" in self.world.encrypted:
            credentials = grpc.ssl_channel_credentials(self.world.tls.authority.cert.read_bytes())
            return grpcclient.InferenceServerClient(f"localhost:{self.server.grpc_port}", creds=credentials,
                                                    channel_args=options)
        return grpcclient.InferenceServerClient(self.server.grpc, channel_args=options)

    @staticmethod
    def tensor(name, values, datatype="FP32"):
        given = grpcclient.InferInput(name, list(values.shape), datatype)
        given.set_data_from_numpy(values)
        return given


class GrpcIdentity(GrpcClient):
    """Tensors to all models that answer them."""

    THREADS = 2

    def visit(self):
        with self.connect() as client:
            for _ in self.some(200):
                self._ask(client, self.rng.choice(self.world.identities))

    def _ask(self, client, model):
        values = model.values(self.rng, self.rng.choice((1, 16, 1000, 100_000)))
        tag, started = str(self.rng.randrange(1 << 40)), time.monotonic()
        try:
            result = client.infer(model.name, [self.tensor("INPUT0", values)], request_id=tag,
                                  client_timeout=SECONDS_OF_PATIENCE, headers=self.world.headers())
        except InferenceServerException as error:
            self.oracle.error(model.name, error)
            return
        is_right = result.get_response().id == tag and np.array_equal(result.as_numpy("OUTPUT0"), values)
        self.oracle.response(is_right, f"{model.name}: wrong, to {values.size} values from {values.ravel()[0]}", started)


class GrpcStream(GrpcClient):
    """A stream of responses, each of which tells its place; some are left in the middle."""

    def visit(self):
        model = self.rng.choice(("repeat", repository.FLOW))
        start, count = self.rng.randrange(1 << 20), self.rng.randrange(1, 50)
        done, got, errors = threading.Event(), [], []

        def take(result, error):
            # An error of the request may be followed by one of the stream.
            if error:
                errors.append(error)
            else:
                got.append(int(result.as_numpy("OUT")[0]))
            if error or len(got) == count:
                done.set()

        started = time.monotonic()
        with self.connect() as client:
            client.start_stream(take, headers=self.world.headers())
            client.async_stream_infer(model, [
                self.tensor("IN", np.arange(start, start + count, dtype=np.int32), "INT32"),
                self.tensor("DELAY", np.zeros(count, np.uint32), "UINT32"),
                self.tensor("WAIT", np.zeros(1, np.uint32), "UINT32")])
            if self.rng.random() < 0.2:
                client.stop_stream(cancel_requests=True)
                self.oracle.count("streams left")
                return
            if not done.wait(SECONDS_OF_PATIENCE):
                self.oracle.problem(f"{model}: {len(got)} of {count} responses after a minute")
            client.stop_stream()
        for error in errors:
            self.oracle.error(model, error)
        self.oracle.response(got == list(range(start, start + len(got))), f"{model}: {got} for {count} from {start}",
                             started)


class GrpcPipelined(GrpcClient):
    """Many requests at once on one stream, whose responses may come in any order, each with its own tag."""

    def visit(self):
        answers = queue.Queue()
        with self.connect() as client:
            client.start_stream(lambda result, error: answers.put(error or result), headers=self.world.headers())
            sent = {}
            for _ in range(self.rng.randrange(1, 30)):
                model, tag = self.rng.choice(self.world.identities), str(self.rng.randrange(1 << 40))
                sent[tag] = model.values(self.rng, self.rng.choice((1, 16, 1000)))
                client.async_stream_infer(model.name, [self.tensor("INPUT0", sent[tag])], request_id=tag)
            started = time.monotonic()
            for _ in range(len(sent)):
                try:
                    answer = answers.get(timeout=SECONDS_OF_PATIENCE)
                except queue.Empty:
                    self.oracle.problem(f"{len(sent)} requests of a stream have no response after a minute")
                    return
                if isinstance(answer, Exception):
                    self.oracle.error("stream", answer)
                    if "Socket closed" in str(answer) or "UNAVAILABLE" in str(answer.status()):
                        return
                    continue
                values = sent.pop(answer.get_response().id, None)
                is_right = values is not None and np.array_equal(answer.as_numpy("OUTPUT0"), values)
                self.oracle.response(is_right, f"stream: wrong, with the id {answer.get_response().id}", started)
            client.stop_stream()


def kinds(of=Client):
    """All kinds of clients."""
    for kind in of.__subclasses__():
        if kind.visit is not Client.visit:
            yield kind
        yield from kinds(kind)


class Load:
    """All clients at once, each in threads of its own."""

    def __init__(self, world, seed):
        self._oracle, self._over = world.oracle, threading.Event()
        self._threads = []
        for kind in kinds():
            if not kind.is_possible(world):
                continue
            for number in range(kind.THREADS):
                client = kind(world, f"{seed} {kind.__name__} {number}", self._over)
                self._threads.append(threading.Thread(target=client.run, name=f"{kind.__name__} {number}", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join(2 * SECONDS_OF_PATIENCE)
            if thread.is_alive():
                self._oracle.problem(f"a client never got its response: {thread.name}")
