# SPDX-License-Identifier: Apache-2.0
"""Starts one server with one workload, checks it, loads it and stops it."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import statistics
import time

import numpy as np

import process
import tools
from workloads import make_rows

CLIENTS = (1, 16, 64)


class Failure(RuntimeError):
    """A server that does not start, or does not answer rightly."""


def ask(port, request, timeout=60):
    """The body of a reply; OSError or HTTPException if there is none, Failure if it is not a good one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        headers = dict(line.split(": ", 1) for line in request.headers)
        connection.request("POST", request.path, request.body, headers)
        reply = connection.getresponse()
        body = reply.read()
    finally:
        connection.close()
    if reply.status != 200:
        raise Failure(f"status {reply.status}: {body[:300]!r}")
    return body


class Checker:
    """Knows the rows of a workload and what the right answers to them are."""

    def __init__(self, workload, count=max(CLIENTS)):
        self.workload, self.rows = workload, make_rows(count)
        self.right = workload.answers(self.rows)

    def request(self, protocol, index=0):
        return protocol.request(self.workload, self.rows[index])

    def check(self, protocol, body, index=0):
        try:
            row = protocol.read(body)
        except (ValueError, KeyError, IndexError) as error:
            raise Failure(f"an answer that cannot be read ({error!r}): {body[:300]!r}") from None
        if row.shape != self.right[index].shape or not np.allclose(row, self.right[index], rtol=1e-3, atol=1e-5):
            raise Failure(f"a wrong answer: {body[:300]!r}")

    def check_many(self, protocol, port):
        """Different rows at once: each client gets the answer to its own."""

        def one(index):
            self.check(protocol, ask(port, self.request(protocol, index)), index)

        with concurrent.futures.ThreadPoolExecutor(len(self.rows)) as pool:
            list(pool.map(one, range(len(self.rows))))


class Served(process.Process):
    """A server that has given its first right answer when the constructor returns."""

    def __init__(self, folder, env, core, checker, protocol, patience):
        self.port, grpc_port, metrics_port = process.free_ports(3)
        ports = {"PORT": self.port, "GRPC_PORT": grpc_port, "METRICS_PORT": metrics_port}
        env = {**env, **{name: str(port) for name, port in ports.items()}}
        log = pathlib.Path(f"{folder}.log")
        super().__init__(["sh", "start"], {core}, log, env, folder)
        try:
            body = self._first_answer(checker.request(protocol), patience)
            self.start_seconds = time.perf_counter() - self.started
            checker.check(protocol, body)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Ends it, and what it started and left behind."""
        pids = self.pids()
        super().stop()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _first_answer(self, request, patience):
        last = None
        while time.perf_counter() < self.started + patience:
            if self.popen.poll() is not None:
                raise Failure(f"it ended with {self.popen.returncode}:\n{self.tail()}")
            try:
                return ask(self.port, request)
            except (OSError, http.client.HTTPException, Failure) as error:
                last = error
            time.sleep(0.002)
        raise Failure(f"no answer in {patience:g} s ({last}):\n{self.tail()}")


def load(bench, server, protocol, checker, clients, folder):
    """The figures of one load."""
    request = checker.request(protocol)
    body, answer = folder.with_suffix(".body"), folder.with_suffix(".answer")
    body.write_bytes(request.body)
    command = [bench.tool, f"--port={server.port}", f"--path={request.path}", f"--body={body}", f"--answer={answer}"]
    command += [f"--header={line}" for line in request.headers]
    # Which batch a row is part of decides how its results are rounded, and so how long they are in JSON.
    command += ["--any-length", f"--connections={clients}"]
    command += [f"--seconds={bench.seconds}", f"--warmup={bench.warmup}"]
    cpu = server.cpu_seconds()
    result = json.loads(tools.run_pinned(command, bench.client_core, timeout=bench.seconds + bench.warmup + 60))
    cpu = server.cpu_seconds() - cpu
    checker.check(protocol, answer.read_bytes())
    if result["lost"]:
        raise Failure(f"{result['lost']} of {result['all_requests']} requests with {clients} clients had no answer")
    return {
        "per_second": result["per_second"],
        "p50_us": result["p50_us"],
        "p99_us": result["p99_us"],
        "cpu_us": cpu * 1e6 / max(result["all_requests"], 1),
    }


def measure(bench, peer, workload, env, folder):
    """One start of one server: its figures, as they go into the file."""
    checker = bench.checkers[workload.name]
    workload.put(peer, folder)
    first = next(iter(peer.protocols.values()))
    server = Served(folder, {**env, **dict(peer.env)}, bench.server_core, checker, first, bench.patience)
    try:
        idle = server.proportional_bytes()
        loads = {}
        for form in workload.forms:
            protocol = peer.protocols.get(form)
            if protocol is None:
                continue
            for _ in range(2):
                checker.check_many(protocol, server.port)
            loads[form] = {
                str(clients): load(bench, server, protocol, checker, clients, folder) for clients in CLIENTS
            }
        return {
            "start_ms": server.start_seconds * 1e3,
            "idle_mb": idle / 1e6,
            "memory_mb": server.proportional_bytes() / 1e6,
            "processes": len(server.pids()),
            "loads": loads,
        }
    except (OSError, http.client.HTTPException, tools.ToolError) as error:
        raise Failure(f"{error}\n{server.tail()}") from None
    finally:
        server.stop()


def median(samples, *path):
    """The median of one figure over rounds, or None."""
    values = []
    for sample in samples:
        for key in path:
            sample = sample.get(key) if sample else None
        if sample is not None:
            values.append(sample)
    return statistics.median(values) if values else None
