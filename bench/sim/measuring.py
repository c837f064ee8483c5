# SPDX-License-Identifier: Apache-2.0
"""What the simulation takes from measurements: loads on one and three replicas, and the costs of connections, health checks
and metrics pages."""

import json
import os
import re
import resource
import socket
import statistics
import sys
import time

import models
from sim import points
import rows
import scenarios
import tools
from process import Process, Server, free_ports, is_healthy, raise_file_limit

FRONTS = {"one": ("leastconn", 1), "least requests": ("leastconn", 3), "round robin": ("roundrobin", 3)}


def balancers():
    """The module of tests/deploy that knows where HAProxy is and how its file is written for a test."""
    models.tests()
    sys.path.append(str(models.ROOT / "tests" / "deploy"))
    import balancers as found

    found.require("haproxy")
    return found


class Front(Process):
    """HAProxy with the file of deploy/proxies before the first replicas of a list."""

    def __init__(self, name, servers, cores, folder, checks_every="1s"):
        known = balancers()
        balance, count = FRONTS[name]
        folder.mkdir()
        self.http_port, grpc, admin = free_ports(3)
        ports = [(server.http_port, server.grpc_port) for server in servers]
        text = known.configuration("haproxy", folder, ports, (self.http_port, grpc, admin))
        # Tests ask for health more often than the file says.
        text = text.replace("inter 200ms", f"inter {checks_every}").replace("balance leastconn", f"balance {balance}")
        text = re.sub(rf"\n  server r[{count + 1}-9] .*", "", text)
        (folder / "haproxy.cfg").write_text(text)
        command = [known.program("haproxy"), "-db", "-f", folder / "haproxy.cfg"]
        super().__init__(command, cores, folder / "log", known.environment(), folder)
        try:
            self._await_replicas()
        except BaseException:
            self.stop()
            raise

    def _await_replicas(self):
        deadline = time.monotonic() + 20
        while not is_healthy(self.http_port, "ready"):
            if self.popen.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"HAProxy does not pass requests on:\n{self.tail()}")
            time.sleep(0.02)


class Loads:
    """Three replicas and the balancers before them, on all cores, and the points of points.py under load."""

    def __init__(self, side, tool, folder):
        cores = os.sched_getaffinity(0)
        self._tool, self._core = tool, max(cores)
        repository = folder / "models"
        for name, (fixed, per_row) in points.WAITS.items():
            code = points.WAITING.format(fixed=fixed, per_row=per_row)
            models.write(repository, name, points.configuration(name), [("model.py", code.encode())])
        self._servers, self._fronts = [], {}
        try:
            for number in range(3):
                self._servers.append(Server(side, repository, cores, folder / f"replica{number}.log"))
            for name in FRONTS:
                self._fronts[name] = Front(name, self._servers, cores, folder / name.replace(" ", "_"))
        except BaseException:  # also when somebody ends the measurement: they have sessions of their own
            self.stop()
            raise
        self._binary = side.binary
        self._loads = {point.key: tools.OwnLoad(self._row(point), folder) for point in points.POINTS if point.clients}

    def stop(self):
        for process in [*self._fronts.values(), *self._servers]:
            process.stop()

    def check_cpu(self, folder, seconds=5):
        """HAProxy's processor seconds for a check of a replica's health, of hundreds a second."""
        front = Front("least requests", self._servers, os.sched_getaffinity(0), folder, checks_every="20ms")
        try:
            lines = (folder / "haproxy.cfg").read_text().splitlines()
            asked = sum(line.lstrip().startswith("server r") for line in lines)
            before, began = front.cpu_seconds(), time.monotonic()
            time.sleep(seconds)
            return (front.cpu_seconds() - before) / (asked * (time.monotonic() - began) / 0.02)
        finally:
            front.stop()

    @staticmethod
    def _row(point):
        return rows.simple(0, "", "http_load", point.model, (1, 16), point.clients, is_batched=True)

    def _closed(self, point, port, seconds, check):
        got = self._loads[point.key].run(self._tool, port, self._core, seconds, check)
        return {"per_second": got["per_second"], "p50": got["p50_us"] / 1e6, "p99": got["p99_us"] / 1e6}

    def _open(self, point, port, seconds):
        """`nereid bench` sleeps until the next arrival, where http_load would keep a core busy. Its arrivals are the
        same each time."""
        command = [self._binary, "bench", point.model, "--url", f"http://127.0.0.1:{port}", "--shape", "INPUT0=1,16"]
        command += ["--rate", f"{point.rate:g}", "--duration", f"{seconds}s", "--rounds", "1", "--json"]
        (level,) = json.loads(tools.run_pinned(command, self._core, timeout=seconds + 60))["levels"]
        if level["failed"] or level["unfinished"]:
            raise tools.ToolError(f"{point.key}: {level['failed']} failed, {level['unfinished']} unfinished")
        p50, p99 = (level["latency_us"][which]["value"] / 1e6 for which in ("p50", "p99"))
        return {"per_second": level["requests_per_s"]["value"], "p50": p50, "p99": p99}

    def measure(self, point, seconds, check=False):
        """One round of a point. Times in seconds; work is processor time for a request."""
        front = self._fronts.get(point.front)
        port = front.http_port if front else self._servers[0].http_port
        used = self._servers[: point.replicas]

        def work():
            client = resource.getrusage(resource.RUSAGE_CHILDREN)
            executions = [server.executions(point.model) for server in used]
            return (
                sum(server.cpu_seconds() for server in used),
                front.cpu_seconds() if front else 0.0,
                client.ru_utime + client.ru_stime,
                sum(inferences for inferences, _ in executions),
                sum(count for _, count in executions),
            )

        before = work()
        load = self._closed(point, port, seconds, check) if point.clients else self._open(point, port, seconds)
        replica, balancer, client, inferences, executions = (now - was for now, was in zip(work(), before))
        return {
            **load,
            "rows": inferences / executions,
            "replica_cpu": replica / inferences,
            "balancer_cpu": balancer / inferences,
            "client_cpu": client / inferences,
            "load_average": os.getloadavg()[0],
        }


# --- What is paid without a request -----------------------------------------------------------


class _Bench:
    """What the scenarios of the bench ask for."""

    def __init__(self, folder):
        self._folder, self._count = folder, 0

    def new_folder(self, name):
        self._count += 1
        return self._folder / f"{name}{self._count}"

    def start(self, side, repository, args=()):
        self._count += 1
        return Server(side, repository, os.sched_getaffinity(0), self._folder / f"server{self._count}.log", args)


def connection_bytes(side, folder):
    """Bytes of the server's memory for an idle connection, by protocol."""
    raise_file_limit()
    return {
        protocol: scenarios.idle_connections(count, protocol)(_Bench(folder), side)["bytes_each"]
        for protocol, count in (("HTTP", 5000), ("gRPC", 1000))
    }


def health_check_cpu(side, folder, checks=2000):
    """The server's processor seconds for a check of its health on a connection of its own."""
    bench = _Bench(folder)
    repository = bench.new_folder("repository")
    models.write_identities(repository, 1)
    server = bench.start(side, repository)
    try:
        for _ in range(100):
            is_healthy(server.http_port, "ready")
        before = server.cpu_seconds()
        for _ in range(checks):
            is_healthy(server.http_port, "ready")
        return (server.cpu_seconds() - before) / checks
    finally:
        server.stop()


def scrape(server):
    """The metrics page, read on a connection of its own, as bytes."""
    with socket.create_connection(("127.0.0.1", server.metrics_port), timeout=60) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        parts = iter(lambda: connection.recv(1 << 20), b"")
        head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the metrics page: {head[:100]!r}")
    return body


def metrics_pages(side, folder, counts=(1, 100, 1000), scrapes=15):
    """Size, series and cost of the metrics page with so many models that have answered a request, without and with
    histograms."""
    found = []
    for arguments in ((), ("--metrics-config=nereid_histograms=true",)):
        for count in counts:
            bench = _Bench(folder / f"metrics{count}{len(arguments)}")
            (folder / f"metrics{count}{len(arguments)}").mkdir()
            repository = bench.new_folder("repository")
            names = models.write_identities(repository, count)
            server = bench.start(side, repository, arguments)
            try:
                tensor = {"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}
                for name in names:
                    server.ask(f"/v2/models/{name}/infer", {"inputs": [tensor]})
                times, before = [], server.cpu_seconds()
                for _ in range(scrapes):
                    began = time.perf_counter()
                    page = scrape(server)
                    times.append(time.perf_counter() - began)
                cpu = (server.cpu_seconds() - before) / scrapes
            finally:
                server.stop()
            series = sum(line[:1] not in (b"#", b"") for line in page.splitlines())
            found.append({
                "models": count, "has_histograms": bool(arguments), "bytes": len(page), "series": series,
                "seconds": statistics.median(times), "cpu": cpu,
            })  # fmt: skip
    return found
