# SPDX-License-Identifier: Apache-2.0
"""What one request may cost, counted and not timed, so that a busy machine does not matter.

A library preloaded into the server (count.c) counts allocations, locks and large copies; a program
that follows the server (calls.c) counts its system calls; the kernel counts how often its threads
went to sleep. The server is warm, the connections stay open, and what is counted is divided by the
requests (or the streamed responses) made in between.
"""

import contextlib
import dataclasses
import json
import mmap
import pathlib
import platform
import shutil
import struct
import subprocess

import numpy as np
import pytest
from harness import decoupled, h2, models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2

MIB = 1 << 20

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(servers.is_sanitized(), reason="a sanitizer allocates and locks by itself"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@dataclasses.dataclass
class Budget:
    """The most of everything that one request may cost."""

    calls: float  # system calls other than waits for events
    locks: float  # mutexes locked; nearly none may be held by somebody else at that moment
    allocations: float = 0.02  # threads that have nothing to do with requests allocate now and then
    signals: float = 0.02  # condition variables
    polls: float = 1.05  # waits for events, which requests that come together share
    sleeps: float = 1.05  # times a thread gave its processor up
    copies: float = 0.0  # of the tensor, where it is large


# epoll_wait, epoll_pwait and epoll_pwait2
POLLS = [232, 281, 441] if platform.machine() == "x86_64" else [22, 441]


# --- The server and its counters ----------------------------------------------------------------

IDENTITY = models.identity_config("FP32", [-1])
STEP = """{{ model_name: "{model}" model_version: -1
  input_map {{ key: "INPUT0" value: "{source}" }} output_map {{ key: "OUTPUT0" value: "{target}" }} }}"""


def ensemble(model):
    names = ["INPUT0", "first", "second", "OUTPUT0"]
    steps = ",".join(
        STEP.format(model=model, source=source, target=target) for source, target in zip(names, names[1:])
    )
    return IDENTITY.replace('backend: "identity"', 'platform: "ensemble"').split("instance_group")[0] + (
        f"ensemble_scheduling {{ step [ {steps} ] }}\n"
    )


def write_models(repository):
    repository.mkdir()
    batched = IDENTITY.replace("max_batch_size: 0", "max_batch_size: 64")
    models.write_model(repository, "id", IDENTITY)
    models.write_model(repository, "batched", batched + "dynamic_batching { }\n")
    models.write_model(repository, "ensemble", ensemble("id"))
    models.write_model(repository, "sequence", batched + "sequence_batching { direct { } }\n")
    models.write_model(repository, "cached", IDENTITY + "response_cache { enable: true }\n")
    decoupled.write_repeat(repository)
    if servers.has_backend("onnxruntime"):
        models.copy_example(repository, "digits")


class Counted:
    """A server under count."""

    def __init__(self, server, folder, memory):
        self.server, self.folder, self.memory = server, folder, memory

    def counters(self):
        """allocations, locks, waits, signals, bytes copied"""
        return np.array(struct.unpack_from("<5Q", self.memory), dtype=np.float64)

    def sleeps(self):
        total = 0
        for status in pathlib.Path(f"/proc/{self.server.pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):
                total += int(status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
        return total

    @contextlib.contextmanager
    def followed(self):
        """A function that reads the number of system calls so far."""
        path = self.folder / "calls.bin"
        path.write_bytes(b"\0" * 8192)
        follower = subprocess.Popen(
            [self.folder / "calls", str(self.server.pid), path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            if follower.stdout.readline().strip() != "ready":
                pytest.skip(f"processes cannot be followed here: {follower.stderr.read()}")
            with open(path, "r+b") as file, mmap.mmap(file.fileno(), 8192) as memory:
                yield lambda: np.array(struct.unpack_from("<1024Q", memory), dtype=np.float64)
        finally:
            follower.terminate()
            follower.wait(30)
            follower.stdout.close()
            follower.stderr.close()


def compile_c(name, to, *flags):
    source = models.ROOT / "tests" / "budget" / name
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", to, source, *flags], check=True)


@pytest.fixture(scope="module")
def counted(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    compile_c("count.c", folder / "count.so", "-shared", "-fPIC", "-fno-builtin", "-ldl", "-pthread")
    compile_c("calls.c", folder / "calls")
    (folder / "counters").write_bytes(b"\0" * 4096)
    write_models(folder / "models")
    args = [
        # A model may be put aside while it is timed; that must not decide who runs it.
        "--inline-exec-budget-us=1000000",
        # Reactors that meet at a model wait for each other now and then; here is one.
        "--http-thread-count=1",
        # Its thread wakes once a second, whatever the requests do.
        "--console=false",
        "--cache-config=local,size=1048576",
        f"--cache-directory={servers.backends().parent / 'caches'}",
    ]
    env = {"LD_PRELOAD": str(folder / "count.so"), "NEREID_COUNT_FILE": str(folder / "counters")}
    with open(folder / "counters", "r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        with servers.running(folder / "models", args=args, env=env, log_dir=folder) as server:
            counted = Counted(server, folder, memory)
            assert counted.counters()[0] > 0, "the server's allocations are not counted"
            yield counted


# --- Loads: a function that makes one round of requests, and how many those are ------------------


def tensor(count):
    return np.arange(count, dtype=np.float32)


class HttpLoad:
    """The same request on every connection, all of them at once. `first` and `then` are parameters of
    the request that opens a connection and of those that follow."""

    def __init__(self, model, connections=1, count=16, batched=False, as_json=False, first=None, then=None):
        self.model, self.size, self.requests = model, connections, connections
        self.data, self.as_json = tensor(count), as_json
        if count > 100_000:
            self.rounds = 100
        self.shape = [1, count] if batched else [count]
        self.first, self.then = first or {}, then or {}

    def _encode(self, parameters):
        if self.as_json:
            tensor = {"name": "INPUT0", "datatype": "FP32", "shape": self.shape, "data": self.data.tolist()}
            body, headers = json.dumps({"inputs": [tensor], "parameters": parameters}).encode(), {}
        else:
            body, headers = wire.infer_body(
                [("INPUT0", "FP32", self.shape, self.data.tobytes())],
                outputs=[{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
                parameters=parameters,
            )
        return wire.encode("POST", f"/v2/models/{self.model}/infer", body, headers)

    def open(self, server):
        self.connections = [wire.Connection(server) for _ in range(self.size)]
        self.request = self._encode(self.then)
        for connection in self.connections:
            connection.send(self._encode(self.first))
            reply = connection.receive()
            assert reply.status == 200, reply
        result, binary = wire.split_reply(reply)
        assert self.is_right(result, binary)
        # The replies to come are as long.
        head = b"".join(f"{name}: {value}\r\n".encode() for name, value in reply.headers.items())
        self.reply_bytes = len(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n") + len(reply.body)

    def is_right(self, result, binary):
        got = np.frombuffer(binary, np.float32) if binary else result["outputs"][0]["data"]
        return np.array_equal(got, self.data)

    def round(self):
        for connection in self.connections:
            connection.send(self.request)
        for connection in self.connections:
            left = self.reply_bytes
            while left > 0:
                received = connection.socket.recv(min(left, MIB))
                assert received
                left -= len(received)

    def close(self):
        for connection in self.connections:
            connection.socket.close()


class DigitsLoad(HttpLoad):
    """The ONNX model of the examples, whose answer is not its question."""

    def __init__(self):
        super().__init__("digits", count=64, batched=True)

    def _encode(self, _):
        body, headers = wire.infer_body([("pixels", "FP32", [1, 64], self.data.tobytes())])
        return wire.encode("POST", "/v2/models/digits/infer", body, headers)

    def is_right(self, *_):
        return True


class GrpcLoad:
    """The same call on every stream of every connection, all of them at once."""

    def __init__(self, model, connections=1, streams=1, count=16, batched=False):
        self.size, self.streams, self.requests = connections, streams, connections * streams
        self.data = tensor(count)
        if count > 100_000:
            self.rounds = 100
        self.message = service_pb2.ModelInferRequest(model_name=model)
        self.message.inputs.add(
            name="INPUT0", datatype="FP32", shape=[1, count] if batched else [count]
        )
        self.message.raw_input_contents.append(self.data.tobytes())

    def open(self, server):
        self.connections = [h2.Connection(server.grpc_port) for _ in range(self.size)]
        self.body = h2.message(self.message.SerializeToString())
        for connection in self.connections:
            (answer,) = connection.call("ModelInfer", self.body)
            answer = service_pb2.ModelInferResponse.FromString(answer)
            assert answer.raw_output_contents[0] == self.data.tobytes()

    def round(self):
        for connection in self.connections:
            connection.send_calls("ModelInfer", self.body, self.streams)
        for connection in self.connections:
            connection.await_ends(self.streams)

    def close(self):
        for connection in self.connections:
            connection.close()


class StreamLoad:
    """One call of a stream whose request has many responses; they count, and not the request."""

    def __init__(self, responses):
        self.requests = responses
        self.message = service_pb2.ModelInferRequest(model_name="repeat")
        for name, datatype, data in (
            ("IN", "INT32", np.arange(responses, dtype=np.int32)),
            ("DELAY", "UINT32", np.zeros(responses, np.uint32)),
            ("WAIT", "UINT32", np.zeros(1, np.uint32)),
        ):
            self.message.inputs.add(name=name, datatype=datatype, shape=[len(data)])
            self.message.raw_input_contents.append(data.tobytes())

    def open(self, server):
        self.connection = h2.Connection(server.grpc_port)
        self.body = h2.message(self.message.SerializeToString())
        assert len(self.connection.call("ModelStreamInfer", self.body)) == self.requests

    def round(self):
        self.connection.send_calls("ModelStreamInfer", self.body, 1)
        self.connection.await_ends(1)

    def close(self):
        self.connection.close()


# --- The budgets --------------------------------------------------------------------------------

# A request costs a read and a write, and a part in a wait: how many share that is up to the clients.
LOADS = {
    "http": (HttpLoad("id"), Budget(calls=2.1, locks=2.1)),
    "http_16": (HttpLoad("id", 16), Budget(calls=2.1, locks=2.1)),
    "http_json": (HttpLoad("id", count=1000, as_json=True), Budget(calls=2.1, locks=2.1)),
    "http_batched": (HttpLoad("batched", batched=True), Budget(calls=2.1, locks=3.1)),
    "http_batched_16": (HttpLoad("batched", 16, batched=True), Budget(calls=2.1, locks=3.1)),
    "http_ensemble": (HttpLoad("ensemble"), Budget(calls=2.1, locks=8.1)),
    "http_ensemble_16": (HttpLoad("ensemble", 16), Budget(calls=2.1, locks=8.1)),
    "http_cached": (HttpLoad("cached"), Budget(calls=2.1, locks=1.1, allocations=4.1)),
    "http_sequence": (
        HttpLoad("sequence", batched=True, first={"sequence_id": 1, "sequence_start": True}, then={"sequence_id": 1}),
        Budget(calls=2.1, locks=5.1),
    ),
    # How often a large body is looked at depends on how fast the client sends it.
    "http_1mb": (HttpLoad("id", count=MIB // 4), Budget(calls=20, locks=8, polls=20, sleeps=20, copies=1)),
    "grpc": (GrpcLoad("id"), Budget(calls=2.1, locks=2.1)),
    "grpc_4x4": (GrpcLoad("id", 4, 4), Budget(calls=0.6, locks=2.1)),
    "grpc_batched": (GrpcLoad("batched", batched=True), Budget(calls=2.1, locks=3.1)),
    "grpc_batched_4x4": (GrpcLoad("batched", 4, 4, batched=True), Budget(calls=0.6, locks=3.1)),
    "grpc_ensemble_4x4": (GrpcLoad("ensemble", 4, 4), Budget(calls=0.6, locks=8.1)),
    "grpc_1mb": (GrpcLoad("id", count=MIB // 4), Budget(calls=40, locks=60, polls=40, sleeps=40, copies=1)),
    # How many responses leave together depends on who gets the processor, and following the calls slows
    # whoever makes them: never more than one each.
    "stream_1000": (StreamLoad(1000), Budget(calls=1.05, locks=4.2, allocations=0.1)),
}
if servers.has_backend("onnxruntime"):
    # The allocations are the library's own.
    LOADS["http_digits"] = (DigitsLoad(), Budget(calls=2.1, locks=7.1, allocations=35))


def count(counted, load, rounds):
    """The least of three attempts per request: of everything in Budget, and the calls by number."""
    server = counted.server
    requests = rounds * load.requests
    load.open(server)
    for _ in range(max(rounds // 2, 100 // load.requests)):
        load.round()
    attempts = []
    for _ in range(3):
        before, slept = counted.counters(), counted.sleeps()
        for _ in range(rounds):
            load.round()
        attempts.append([*(counted.counters() - before), counted.sleeps() - slept])
    with counted.followed() as calls_so_far:
        load.round()
        followed = []
        for _ in range(3):
            before = calls_so_far()
            for _ in range(rounds):
                load.round()
            followed.append((calls_so_far() - before) / requests)
    load.close()
    return np.min(attempts, axis=0) / requests, min(followed, key=np.sum)


@pytest.mark.parametrize("name", LOADS)
def test_a_request_stays_within_its_budget(counted, name, record_property):
    load, budget = LOADS[name]
    rounds = load.rounds if hasattr(load, "rounds") else max(1600 // load.requests, 20)
    (allocations, locks, waits, signals, copied, sleeps), calls = count(counted, load, rounds)
    copies = copied / load.data.nbytes if hasattr(load, "data") else 0
    polls = calls[POLLS].sum()
    spent = Budget(calls.sum() - polls, locks, allocations, signals, polls, sleeps, copies)
    numbers = {int(n): round(float(calls[n]), 2) for n in np.argsort(-calls)[:6] if calls[n] >= 0.01}
    print(f"{name}: {spent}, waited for {waits:.4f} locks, calls by number {numbers}")
    for field, value in dataclasses.asdict(spent).items():
        record_property(f"{field}_per_request", f"{value:.3f}")
    assert waits <= 0.01
    over = {
        field: f"{value:.3f} where {most} are allowed"
        for (field, value), most in zip(dataclasses.asdict(spent).items(), dataclasses.astuple(budget))
        if value > most
    }
    assert not over
