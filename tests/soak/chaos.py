#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disturbs a server under load and checks every response.

Clients of both protocols send requests whose right response follows from the request itself, while models
are unloaded and loaded, workers of Python models are killed, both at once, and connections are
left in the middle. A response must be the right one, or one of the errors that the disturbance
explains. At the end the server gets SIGTERM under load: it must end in time and leave no process, folder or
shared memory behind.

usage: tests/soak/chaos.py [--minutes 20 | --disturbances N] [--seed S]
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import psutil
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import decoupled, models, python_models, sequences  # noqa: E402
from harness import server as servers  # noqa: E402

EXIT_TIMEOUT_SECONDS = 10

# What a client may be told while models come and go and workers die, with how it is matched: as a part.
EXPLAINED = (
    "has no available versions",
    "is not at ready state",
    "is not healthy",
    "The stream is no longer in valid state",
    "must specify the START flag",
    "models that are not available or ambiguous",
    "failed to load",
)
# What it may be told besides once the server has been asked to end.
EXPLAINED_AT_THE_END = (
    "Connection refused",
    "Connection reset",
    "onnection closed",
    "Socket closed",
    "GOAWAY",
    "shutting down",
    "Server is stopping",
    "not ready",
    "RemoteDisconnected",
)

BATCHED = "dynamic_batching { }\n"
PYTHON_MODELS = ("python_one", "python_two", "python_batched")
UNARY_MODELS = ("identity", "identity_batched", "mlp_identity", "chain", *PYTHON_MODELS)


def write_repository(path):
    models.write_model(path, "identity", models.identity_config("FP32", [-1]))
    models.write_model(path, "identity_batched",
                       models.identity_config("FP32", [-1], max_batch_size=8, extra=BATCHED))
    models.write_model(path, "mlp_identity", 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n' + BATCHED
                       + f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
                       + f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n",
                       {"1": {"model.onnx": models.onnx_identity("FP32", ["n", "m"])}})
    python_models.write(path, "python_one", python_models.IDENTITY)
    python_models.write(path, "python_two", python_models.IDENTITY,
                        extra="instance_group [ { kind: KIND_CPU count: 2 } ]\n",
                        config=f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
                               f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n")
    python_models.write(path, "python_batched", python_models.IDENTITY, max_batch_size=8, extra=BATCHED)
    models.write_model(path, "chain", (
        'platform: "ensemble"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n"
        'ensemble_scheduling { step [ { model_name: "python_one" model_version: -1\n'
        'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "MIDDLE" } },\n'
        '{ model_name: "identity" model_version: -1\n'
        'input_map { key: "INPUT0" value: "MIDDLE" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }\n'))
    decoupled.write_repeat(path)
    sequences.write_keep(path, "keep", idle_us=5_000_000)


class Counts:
    """What was seen, counted by many threads."""

    def __init__(self):
        self._mutex = threading.Lock()
        self.seen = collections.Counter()
        self.problems = []
        self.is_ending = False

    def add(self, what):
        with self._mutex:
            self.seen[what] += 1

    def problem(self, text):
        with self._mutex:
            self.problems.append(text)

    def error(self, where, error):
        """An error that the disturbances explain is counted, any other is a problem."""
        text = str(error)
        explained = EXPLAINED + (EXPLAINED_AT_THE_END if self.is_ending else ())
        if any(part in text for part in explained):
            self.add("explained errors")
            # What failed a moment ago still does; asking again at once would only be load of another kind.
            time.sleep(0.02)
        else:
            self.problem(f"{where}: {text}")


def tensor(package, name, values, datatype="FP32"):
    given = package.InferInput(name, list(values.shape), datatype)
    given.set_data_from_numpy(values)
    return given


class Load:
    """Clients that send until they are told to stop."""

    def __init__(self, server, counts, seed):
        self._server, self._counts, self._seed = server, counts, seed
        self._over = threading.Event()
        kinds = [self._http, self._http, self._grpc, self._grpc, self._repeat, self._sequences, self._leave]
        self._threads = [threading.Thread(target=self._run, args=(kind, seed * 100 + number))
                         for number, kind in enumerate(kinds)]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join(120)
            if thread.is_alive():
                self._counts.problem(f"a client never got its response: {thread.name}")

    def _run(self, kind, seed):
        rng = random.Random(seed)
        while not self._over.is_set():
            try:
                kind(rng)
            except InferenceServerException as error:
                self._counts.error(kind.__name__, error)
            except Exception as error:  # Client libraries raise exceptions of many kinds.
                self._counts.error(kind.__name__, f"{type(error).__name__}: {error}")

    def _unary(self, package, client, rng):
        model = rng.choice(UNARY_MODELS)
        size = rng.choice((1, 16, 1000, 100_000))
        values = np.arange(size, dtype=np.float32) + rng.randrange(1 << 20)
        if model in ("identity_batched", "mlp_identity", "python_batched"):
            values = values.reshape(1, size)
        try:
            result = client.infer(model, [tensor(package, "INPUT0", values)], request_id="1")
        except InferenceServerException as error:
            self._counts.error(model, error)
            return
        if np.array_equal(result.as_numpy("OUTPUT0"), values):
            self._counts.add("right responses")
        else:
            self._counts.problem(f"{model}: a wrong response to {size} values from {values.ravel()[0]}")

    def _http(self, rng):
        with httpclient.InferenceServerClient(self._server.http, network_timeout=60) as client:
            for _ in range(rng.randrange(200)):
                if self._over.is_set():
                    return
                self._unary(httpclient, client, rng)

    def _grpc(self, rng):
        with grpcclient.InferenceServerClient(self._server.grpc) as client:
            for _ in range(rng.randrange(200)):
                if self._over.is_set():
                    return
                self._unary(grpcclient, client, rng)

    def _repeat(self, rng):
        """A stream of responses, each of which tells its place."""
        start, count = rng.randrange(1 << 20), rng.randrange(1, 50)
        done, got = threading.Event(), []

        def take(result, error):
            got.append(error if error else int(result.as_numpy("OUT")[0]))
            if error or len(got) == count:
                done.set()

        with grpcclient.InferenceServerClient(self._server.grpc) as client:
            client.start_stream(take)
            client.async_stream_infer("repeat", [
                tensor(grpcclient, "IN", np.arange(start, start + count, dtype=np.int32), "INT32"),
                tensor(grpcclient, "DELAY", np.zeros(count, np.uint32), "UINT32"),
                tensor(grpcclient, "WAIT", np.zeros(1, np.uint32), "UINT32")])
            if rng.random() < 0.2:
                client.stop_stream(cancel_requests=True)
                return
            if not done.wait(60):
                self._counts.problem(f"repeat: {len(got)} of {count} responses after a minute")
            client.stop_stream()
        if got and isinstance(got[-1], Exception):
            self._counts.error("repeat", got.pop())
        if got != list(range(start, start + len(got))):
            self._counts.problem(f"repeat: {got} for {count} from {start}")
        self._counts.add("right responses")

    def _sequences(self, rng):
        """Each response repeats the first value of its own sequence."""
        with httpclient.InferenceServerClient(self._server.http, network_timeout=60) as client:
            sequence, first = rng.randrange(1, 1 << 40), rng.randrange(1 << 40)
            length = rng.randrange(2, 10)
            for step in range(length):
                values = np.array([[first if step == 0 else rng.randrange(1 << 40)]], np.int64)
                result = client.infer("keep", [tensor(httpclient, "INPUT", values, "INT64")],
                                      sequence_id=sequence, sequence_start=step == 0,
                                      sequence_end=step == length - 1)
                if result.as_numpy("OUTPUT")[0, 0] != first:
                    self._counts.problem(f"keep: another sequence's state in {sequence}")
                self._counts.add("right responses")

    def _leave(self, rng):
        """Connections that are closed in the middle of a request."""
        body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}'
        head = (f"POST /v2/models/{rng.choice(UNARY_MODELS)}/infer HTTP/1.1\r\nHost: a\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        message = head + body
        with socket.create_connection(("127.0.0.1", self._server.http_port), timeout=10) as connection:
            connection.sendall(message[:rng.randrange(1, len(message) + 1)])
        self._counts.add("connections left")
        self._over.wait(0.02)


class Disturber:
    """Unloads, loads and kills, one disturbance after the other or two at once."""

    def __init__(self, server, counts, rng):
        self._server, self._counts, self._rng = server, counts, rng

    def disturb(self):
        kinds = [self.reload, self.kill, self.kill_then_unload, self.kill_and_unload_together,
                 self.load_what_is_loaded]
        kind = self._rng.choice(kinds)
        kind()
        self._counts.add(kind.__name__.replace("_", " "))

    def reload(self, model=None):
        model = model or self._rng.choice((*UNARY_MODELS, "repeat", "keep"))
        self._control("unload_model", model)
        self._control("load_model", model)

    def load_what_is_loaded(self):
        self._control("load_model", self._rng.choice(PYTHON_MODELS))

    def kill(self):
        workers = python_models.workers(self._server)
        if workers:
            try:
                self._rng.choice(workers).send_signal(self._rng.choice((signal.SIGKILL, signal.SIGSEGV)))
            except psutil.NoSuchProcess:
                pass

    def kill_then_unload(self):
        """The next worker is being started when its model goes."""
        self.kill()
        time.sleep(self._rng.random())
        self.reload(self._rng.choice(PYTHON_MODELS))

    def kill_and_unload_together(self):
        killer = threading.Thread(target=self.kill)
        killer.start()
        self.reload(self._rng.choice(PYTHON_MODELS))
        killer.join()

    def _control(self, what, model):
        with httpclient.InferenceServerClient(self._server.http, network_timeout=60) as client:
            try:
                getattr(client, what)(model)
            except InferenceServerException as error:
                self._counts.error(f"{what} {model}", error)


def everything_works(server, counts):
    """Loads all models; each must then serve."""
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for model in UNARY_MODELS:
            client.load_model(model)
        for model in UNARY_MODELS:
            shape = (1, 4) if "batched" in model or model == "mlp_identity" else (4,)
            values = np.ones(shape, np.float32)
            # A worker that was killed a moment ago comes back by itself.
            deadline = time.monotonic() + 30
            while True:
                try:
                    result = client.infer(model, [tensor(httpclient, "INPUT0", values)])
                    break
                except InferenceServerException as error:
                    if time.monotonic() > deadline:
                        counts.problem(f"{model} does not serve in the end: {error}")
                        return
                    time.sleep(0.1)
            if not np.array_equal(result.as_numpy("OUTPUT0"), values):
                counts.problem(f"{model} is wrong in the end")


def shared_memory_objects():
    return {name for name in os.listdir("/dev/shm") if "nereid" in name}


def leftovers(temporary, before):
    """What lies in the server's temporary folder, and shared memory objects of its making."""
    left = [str(path) for path in pathlib.Path(temporary).iterdir()]
    return left + sorted(shared_memory_objects() - before)


def end(server, counts, temporary, shared_memory):
    """SIGTERM under load; returns how long the server took to end."""
    children = psutil.Process(server.pid).children(recursive=True)
    counts.is_ending = True
    started = time.monotonic()
    server.signal(signal.SIGTERM)
    try:
        # Twice the time limit tells an end that is bounded from one that is not, on a busy machine, too.
        status = server.wait(2 * EXIT_TIMEOUT_SECONDS)
        if status != 0:
            counts.problem(f"the server ended with status {status}: {server.tail()}")
    except subprocess.TimeoutExpired:
        server.process.kill()
        counts.problem(f"the server did not end after SIGTERM: {server.tail()}")
    took = time.monotonic() - started
    _, alive = psutil.wait_procs(children, 5)
    if alive:
        counts.problem(f"processes were left: {alive}")
    left = leftovers(temporary, shared_memory)
    if left:
        counts.problem(f"was left behind: {left}")
    return took


def run(folder, seed=1, disturbances=None, minutes=None):
    """Runs chaos in this empty folder; returns (what was counted, problems)."""
    repository, temporary = pathlib.Path(folder) / "models", pathlib.Path(folder) / "tmp"
    repository.mkdir()
    temporary.mkdir()
    write_repository(repository)
    counts, shared_memory = Counts(), shared_memory_objects()
    server = servers.start(
        repository, log_dir=folder, env={**python_models.ENVIRONMENT, "TMPDIR": str(temporary)},
        args=["--model-control-mode=explicit", "--load-model=*",
              f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}"])
    load = Load(server, counts, seed)
    disturber = Disturber(server, counts, random.Random(seed))
    deadline = time.monotonic() + (minutes or 0) * 60
    done, resident = 0, []
    while server.process.poll() is None:
        if (minutes and time.monotonic() > deadline) or (disturbances and done >= disturbances):
            break
        disturber.disturb()
        done += 1
        if done % 50 == 0:
            resident.append(server.resident_bytes() // 1_000_000)
    if server.process.poll() is None:
        everything_works(server, counts)
        counts.seen["seconds to the end after SIGTERM"] = round(end(server, counts, temporary, shared_memory), 1)
    else:
        counts.problem(f"the server ended by itself with status {server.process.poll()}: {server.tail()}")
    load.stop()
    if resident:
        counts.seen["resident MB, first and last"] = (resident[0], resident[-1])
    return counts.seen, counts.problems


def main():
    parser = argparse.ArgumentParser(description="Disturbs a server under load and checks every response.")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--disturbances", type=int, help="instead of a time")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen, problems = run(folder, arguments.seed, arguments.disturbances,
                             None if arguments.disturbances else arguments.minutes)
    print(f"seed {arguments.seed}")
    for what, count in seen.items():
        print(f"{count!s:>12}  {what}")
    for problem in problems:
        print(f"PROBLEM {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
