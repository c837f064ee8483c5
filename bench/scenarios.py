# SPDX-License-Identifier: Apache-2.0
"""What is not a load in turns: starting up, many models, models that load, connections that idle.

Each scenario is a function (bench, side) -> figures, run in turns for each side.
"""

import dataclasses
import json
import os
import shutil
import socket
import threading
import time
import typing

import models
import tools
from rows import simple


@dataclasses.dataclass(frozen=True)
class Scenario:
    number: int
    title: str
    run: typing.Callable
    aims: tuple = ()
    is_quick: bool = False
    is_only_quick: bool = False  # a small variant of another
    floor: typing.Callable = None

    tool = "bench"
    unit = "request"

    @property
    def key(self):
        return self.title


# --- Row 12: many models ----------------------------------------------------------------------


def start_up(bench, side, write):
    """Starts, idles, and serves all models by Zipf's law for a while."""
    repository = bench.new_folder("repository")
    names = write(repository)
    server = bench.start(side, repository)
    try:
        if len(names) > 1 and not all(server.serves(name) for name in (names[0], names[-1])):
            raise tools.ToolError(f"does not serve {names[-1]}")
        time.sleep(0.5)
        figures = {
            "ready_ms": server.ready_seconds * 1e3,
            "idle_mb": server.resident_bytes() / 1e6,
            "threads": server.threads(),
        }
        shape, name = ((1, 256), "INPUT0") if names[0].startswith("mlp") else ((16,), "INPUT0")
        row = simple(12, "", "http_load", names[0], shape, 8, name=name)
        row = dataclasses.replace(row, models=tuple(names), expected=None)
        server.forget_peak()
        load = tools.OwnLoad(row, bench.folder)
        seconds = 0.3 if bench.arguments.quick else 5
        sample = load.run(bench.tool("http_load"), server.http_port, bench.client_core, seconds)
        # What is there after a rest stays there.
        time.sleep(0.1 if bench.arguments.quick else 2)
        figures |= {
            "loaded_mb": server.resident_bytes() / 1e6,
            "loaded_threads": server.threads(),
            "per_second": sample["per_second"],
            "p50_us": sample["p50_us"],
            "p99_us": sample["p99_us"],
            "lost": sample["lost"],
        }
        return figures
    finally:
        server.stop()
        shutil.rmtree(repository)


def identities(count):
    return lambda bench, side: start_up(bench, side, lambda path: models.write_identities(path, count))


def onnx_models(count):
    def write(repository):
        names = [f"mlp_{i}" for i in range(count)]
        models.write_onnx(repository, names)
        return names

    return lambda bench, side: start_up(bench, side, write)


def bare_loading(bench):
    """How long ONNX Runtime takes for 64 sessions, on the server's core, its own start included."""
    if not bench.tool("ort_loop").exists():
        return None
    file = bench.new_folder("bare") / "model.onnx"
    file.write_bytes(models.tests()[0].onnx_mlp().SerializeToString(deterministic=True))
    command = [bench.tool("ort_loop"), f"--model={file}", "--load=64", "--threads=2"]
    command.append(f"--since={time.monotonic_ns()}")
    return json.loads(tools.run_pinned(command, bench.server_core, timeout=120))


def hot_model(bench, side):
    """The latency of one model while another is loaded and unloaded all the time. The server may use
    all cores here: on one alone, loading takes its time from serving whoever it is that schedules."""
    repository = bench.new_folder("repository")
    models.write_identities(repository, 1)
    models.write_onnx(repository, ["mlp"])
    arguments = ["--model-control-mode=explicit", "--load-model=identity_0"]
    server = bench.start(side, repository, *arguments, cores=os.sched_getaffinity(0))
    row = dataclasses.replace(simple(12, "", "http_load", "identity_0", (16,), 1), expected=None)
    load = tools.OwnLoad(row, bench.folder)
    done, loads = threading.Event(), []

    def reload():
        # Shares a core with the load, whose latency shall not be that of waiting for this script.
        os.sched_setaffinity(0, {bench.client_core})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while not done.is_set():
            server.ask("/v2/repository/models/mlp/load", {})
            loads.append(time.monotonic())
            server.ask("/v2/repository/models/mlp/unload", {})

    def measure():
        return load.run(bench.tool("http_load"), server.http_port, bench.client_core, bench.seconds)

    loader = threading.Thread(target=reload)
    try:
        quiet = measure()
        loader.start()
        busy = measure()
        if not loader.is_alive() or not loads:
            raise tools.ToolError("loading the other model failed, or never got a processor")
        return {
            "quiet_p99_us": quiet["p99_us"],
            "p99_us": busy["p99_us"],
            "p50_us": busy["p50_us"],
            "per_second": busy["per_second"],
            "quiet_ratio": busy["p99_us"] / quiet["p99_us"],
            "loads_per_second": len(loads) / bench.seconds,
        }
    finally:
        done.set()
        if loader.ident is not None:
            loader.join()
        server.stop()
        shutil.rmtree(repository)


# --- Row 13: connections that idle ------------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def _frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _live_call(port):
    """A call of ServerLive: settings, headers without any compression, an empty message."""
    headers = b""
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/inference.GRPCInferenceService/ServerLive"),
        (b":authority", f"127.0.0.1:{port}".encode()),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    ):
        headers += b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value
    call = _frame(1, 4, 1, headers) + _frame(0, 1, 1, b"\0\0\0\0\0")
    return PREFACE + _frame(4, 0, 0, b"") + call


def _read_call(connection):
    """Reads until the call's stream has ended and the settings of both sides are acknowledged."""
    data = b""
    while True:
        received = connection.recv(65536)
        if not received:
            raise tools.ToolError("the server closed a connection")
        data += received
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            kind, flags, size = data[3], data[4], int.from_bytes(data[:3], "big")
            if kind == 4 and not flags & 1:
                connection.sendall(_frame(4, 1, 0, b""))
            if kind == 6 and not flags & 1:
                connection.sendall(_frame(6, 1, 0, data[9:17]))
            stream, data = int.from_bytes(data[5:9], "big"), data[9 + size :]
            if kind == 1 and stream == 1 and flags & 1:
                return


def _read_answer(connection):
    if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
        raise tools.ToolError("an answer that is not 200")


def idle_connections(count, protocol):
    """Each connection makes one call, so that whatever belongs to it is there, and then is left alone."""

    def run(bench, side):
        repository = bench.new_folder("repository")
        models.write_identities(repository, 1)
        server = bench.start(side, repository)
        connections = []
        port = server.http_port if protocol == "HTTP" else server.grpc_port
        call, read = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", _read_answer
        if protocol == "gRPC":
            call, read = _live_call(port), _read_call

        def connect(number):
            # Several addresses of this machine: each has only so many ports.
            source = (f"127.0.0.{number // 5000 + 2}", 0)
            connection = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=source)
            connections.append(connection)
            connection.sendall(call)
            read(connection)

        try:
            # What the first few bring with them is not theirs alone.
            for i in range(min(20, count)):
                connect(i)
            time.sleep(0.2)
            before = server.resident_bytes()
            start = time.perf_counter()
            for i in range(count):
                connect(i)
            took = time.perf_counter() - start
            time.sleep(1)
            bytes_each = (server.resident_bytes() - before) / count
            return {"bytes_each": bytes_each, "per_second": count / took, "threads": server.threads()}
        finally:
            for connection in connections:
                connection.close()
            server.stop()
            shutil.rmtree(repository)

    return run


def queued_requests(count):
    """What a request costs that waits for its model, on a connection of its own."""

    def run(bench, side):
        repository = bench.new_folder("repository")
        delay = 'parameters { key: "execute_delay_ms" value: { string_value: "60000" } }'
        models.write_identities(repository, 1, extra=delay)
        server = bench.start(side, repository)
        row = simple(13, "", "http_load", "identity_0", (16,))
        body, head = row.make()[0].http()
        call = f"POST {row.paths()[0]} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        call = f"{call}Inference-Header-Content-Length: {head}\r\n\r\n".encode() + body
        live = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
        connections = []
        try:
            for _ in range(count):
                connections.append(socket.create_connection(("127.0.0.1", server.http_port), timeout=20))
                connections[-1].sendall(live)
                _read_answer(connections[-1])
            time.sleep(0.5)
            before, start = server.resident_bytes(), time.perf_counter()
            for connection in connections:
                connection.sendall(call)
            took = time.perf_counter() - start
            time.sleep(1)
            bytes_each = (server.resident_bytes() - before) / count
            return {"bytes_each": bytes_each, "per_second": count / took, "threads": server.threads()}
        finally:
            # It would wait for all of them.
            server.popen.kill()
            server.stop()
            for connection in connections:
                connection.close()
            shutil.rmtree(repository)

    return run


# ----------------------------------------------------------------------------------------------


def all_scenarios(has_onnx):
    # Threads by the number of cores, not of models.
    memory = (("idle", ">=", 4), ("thread_count", "<=", 16 + 4 * os.cpu_count()))
    scenarios = [
        Scenario(12, "1 model", identities(1), (("ready", ">=", 5), *memory), is_quick=True),
        Scenario(12, "100 models", identities(100), memory),
        Scenario(12, "400 models", identities(400), (("ready", ">=", 4), *memory)),
        Scenario(12, "1,000 models", identities(1000), memory),
    ]
    if has_onnx:
        aims = (("ready_floor", "<=", 1.15), *memory)
        scenarios += [
            Scenario(12, "64 ONNX models", onnx_models(64), aims, floor=bare_loading),
            Scenario(12, "a hot model while another loads", hot_model, (("quiet_ratio", "<=", 1.2),)),
        ]
    return scenarios + [
        Scenario(13, "10,000 idle HTTP connections", idle_connections(10_000, "HTTP"), (("bytes_each", "<=", 8192),)),
        Scenario(13, "1,000 idle gRPC connections", idle_connections(1000, "gRPC"), (("bytes_each", "<=", 40960),)),
        Scenario(13, "1,000 requests that wait for their model", queued_requests(1000)),
        Scenario(13, "100 idle HTTP connections", idle_connections(100, "HTTP"), is_quick=True, is_only_quick=True),
        Scenario(13, "100 idle gRPC connections", idle_connections(100, "gRPC"), is_quick=True, is_only_quick=True),
    ]


def run_scenario(bench, scenario):
    """The scenario's result, as it goes into the file."""
    result = {"samples": {side.name: [] for side in bench.sides}, "errors": {}, "options": []}
    for i in range(bench.rounds):
        for side in bench.sides if i % 2 == 0 else reversed(bench.sides):
            if side.name in result["errors"] or (side.name == "defaults" and i % 3 != 0):
                continue
            try:
                result["samples"][side.name].append(scenario.run(bench, side))
            except (tools.ToolError, OSError, RuntimeError) as error:
                result["errors"][side.name] = str(error)
                bench.fail(scenario.key, f"{side.name}: {error}")
        floor = scenario.floor and scenario.floor(bench)
        if floor:
            result["samples"].setdefault("floor", []).append(floor)
    return result
