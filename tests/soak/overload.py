#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends a model ten times what it can take, and measures what its clients get.

First it measures the peak: the responses per second to as many clients as keep the model busy. Then requests
arrive evenly at a multiple of that rate, each with a deadline in Request-Timeout, whatever becomes of the
earlier ones; meanwhile another process asks for health and metrics, each time on a connection of its own, and
afterwards a single client shows how soon everything is as before. The model sleeps instead of
computing, so that the load generator and the server leave each other the processor.

The bounds, of which any that is missed makes the exit status 1:

  goodput    responses within their deadline per second are at least 90 % of the peak
  in time    99 % of the responses to admitted requests come within their deadline
  health     is answered within 100 ms, and so are metrics
  recovery   one second after the overload, a request takes what it took before

usage: tests/soak/overload.py [--seconds 120] [--times 10] [--deadline-ms 250] [--adaptive]
"""

import argparse
import collections
import json
import multiprocessing
import pathlib
import selectors
import socket
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import models, wire  # noqa: E402
from harness import server as servers  # noqa: E402

EXECUTION_MS, BATCH = 20, 4
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [1]}]})
MAX_CONNECTIONS = 800


def write_model(folder, adaptive):
    config = models.identity_config("FP32", [1], max_batch_size=BATCH, extra="dynamic_batching { }\n")
    settings = {"execute_delay_ms": EXECUTION_MS, "adaptive_concurrency": str(adaptive).lower()}
    for key, value in settings.items():
        config += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
    models.write_model(folder, "model", config)


def encode(deadline_ms, headers=()):
    headers = dict(headers)
    if deadline_ms is not None:
        headers["Request-Timeout"] = f"{deadline_ms}ms"
    return wire.encode("POST", "/v2/models/model/infer", BODY, headers)


class Call:
    """One connection with at most one request on its way."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.received = b""
        self.sent_at = 0.0

    def send(self, request, now):
        self.sent_at = now
        self.received = b""
        self.socket.send(request)

    def receive(self):
        """The status and head of the reply once all of it is there."""
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server closed a connection under load")
        self.received += data
        head, mark, body = self.received.partition(b"\r\n\r\n")
        if not mark:
            return None
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return (int(head[9:12]), head) if len(body) >= length else None


class Load:
    """Sends requests and keeps what became of them: lists of seconds by status."""

    def __init__(self, port, deadline_ms, headers=()):
        self.port, self.request = port, encode(deadline_ms, headers)
        self.selector = selectors.DefaultSelector()
        self.idle, self.all = [], []
        self.seconds = collections.defaultdict(list)
        self.unsent = 0
        self.without_retry_after = 0

    def send(self, now):
        if not self.idle:
            if len(self.all) == MAX_CONNECTIONS:
                self.unsent += 1
                return
            call = Call(self.port)
            self.selector.register(call.socket, selectors.EVENT_READ, call)
            self.all.append(call)
            self.idle.append(call)
        self.idle.pop().send(self.request, now)

    def collect(self, wait):
        for key, _ in self.selector.select(wait):
            if (reply := key.data.receive()) is not None:
                status, head = reply
                self.seconds[status].append(time.monotonic() - key.data.sent_at)
                self.without_retry_after += status == 503 and b"\r\nRetry-After: " not in head
                self.idle.append(key.data)

    def run_closed(self, clients, seconds):
        end = time.monotonic() + seconds
        for _ in range(clients):
            self.send(time.monotonic())
        while (now := time.monotonic()) < end:
            self.collect(0.1)
            while self.idle:
                self.send(now)
        return self.finish()

    def run_open(self, rate, seconds):
        begin = time.monotonic()
        sent = 0
        while (now := time.monotonic()) < begin + seconds:
            due = int((now - begin) * rate)
            while sent < due:
                self.send(time.monotonic())
                sent += 1
                # A burst must not keep the replies waiting.
                if sent % 16 == 0:
                    self.collect(0)
            self.collect(max(0.0, begin + (sent + 1) / rate - time.monotonic()))
        return self.finish()

    def finish(self):
        end = time.monotonic() + 30
        while len(self.idle) < len(self.all) and time.monotonic() < end:
            self.collect(0.1)
        lost = len(self.all) - len(self.idle)
        for call in self.all:
            call.socket.close()
        return {
            "seconds": dict(self.seconds),
            "unsent": self.unsent,
            "lost": lost,
            "without_retry_after": self.without_retry_after,
        }


def load(method, port, deadline_ms, *arguments):
    """Runs a load in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (method, port, deadline_ms, arguments))


def _load(method, port, deadline_ms, arguments):
    return getattr(Load(port, deadline_ms), method)(*arguments)


def probe(http_port, metrics_port, stop, results):
    """Asks for health and metrics until told to stop; puts the seconds that each took."""
    seconds = {"/v2/health/ready": [], "/v2/health/live": [], "/metrics": []}
    while not stop.is_set():
        for path, taken in seconds.items():
            begin = time.monotonic()
            port = metrics_port if path == "/metrics" else http_port
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(wire.encode("GET", path, headers={"Connection": "close"}))
                reply = b""
                while data := connection.recv(65536):
                    reply += data
            assert reply.startswith(b"HTTP/1.1 200"), reply[:200]
            taken.append(time.monotonic() - begin)
        stop.wait(0.05)
    results.put(seconds)


def count_refusals(server):
    return server.scrape().get(("nereid_overload_refusals_total", "model"), 0.0)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def run(folder, seconds, times, deadline_ms, adaptive=False, args=()):
    """Measures everything once; returns the figures."""
    write_model(folder, adaptive)
    with servers.running(folder, args=args) as server:
        quiet = load("run_closed", server.http_port, None, 1, min(seconds, 5))["seconds"][200]
        # One batch executes while another one waits.
        clients = 2 * BATCH
        peak_seconds = max(1.0, min(seconds / 4, 10))
        busy = load("run_closed", server.http_port, None, clients, peak_seconds)["seconds"][200]
        peak = len(busy) / peak_seconds
        refusals = count_refusals(server)
        context = multiprocessing.get_context("spawn")
        stop, results = context.Event(), context.Queue()
        prober = context.Process(target=probe, args=(server.http_port, server.metrics_port, stop, results))
        prober.start()
        loaded = load("run_open", server.http_port, deadline_ms, peak * times, seconds)
        ended = time.monotonic()
        refusals = count_refusals(server) - refusals
        stop.set()
        health = results.get(timeout=30)
        prober.join()
        time.sleep(max(0.0, ended + 1 - time.monotonic()))
        after = load("run_closed", server.http_port, None, 1, min(seconds, 5))["seconds"][200]
    answers = loaded["seconds"]
    within = [s for s in answers.get(200, []) if s <= deadline_ms / 1000]
    return {
        "peak per second": peak,
        "sent per second": sum(map(len, answers.values())) / seconds,
        "answers by status": {status: len(taken) for status, taken in sorted(answers.items())},
        "not sent for lack of connections": loaded["unsent"],
        "lost": loaded["lost"],
        "refused without Retry-After": loaded["without_retry_after"],
        "counted refusals": refusals,
        "goodput per second": len(within) / seconds,
        "goodput of the peak": len(within) / seconds / peak,
        "p50 of admitted, ms": 1000 * quantile(answers.get(200, []), 0.5),
        "p99 of admitted, ms": 1000 * quantile(answers.get(200, []), 0.99),
        "p99 of refusals, ms": 1000 * quantile(answers.get(503, []), 0.99),
        "health and metrics": {path: len(taken) for path, taken in health.items()},
        "slowest health, ms": 1000 * max(max(health[p]) for p in health if p != "/metrics"),
        "slowest metrics, ms": 1000 * max(health["/metrics"]),
        "p99 alone before, ms": 1000 * quantile(quiet, 0.99),
        "p99 alone after, ms": 1000 * quantile(after, 0.99),
    }


def missed(figures, deadline_ms):
    """What is not as it must be."""
    bounds = {
        "goodput is below 90 % of the peak": figures["goodput of the peak"] < 0.9,
        "admitted requests miss their deadline": figures["p99 of admitted, ms"] > deadline_ms,
        "health takes longer than 100 ms": figures["slowest health, ms"] > 100,
        "metrics take longer than 100 ms": figures["slowest metrics, ms"] > 100,
        "a request after the overload takes longer than before":
            figures["p99 alone after, ms"] > 1.5 * figures["p99 alone before, ms"] + 5,
        "requests were lost": figures["lost"] > 0,
    }
    return [what for what, is_missed in bounds.items() if is_missed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--times", type=float, default=10, help="the load, in peaks")
    parser.add_argument("--deadline-ms", type=int, default=250)
    parser.add_argument("--adaptive", action="store_true", help="limit requests in flight by the model's speed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(
            folder, arguments.seconds, arguments.times, arguments.deadline_ms, arguments.adaptive
        )
    for name, value in figures.items():
        print(f"{name:36} {value:.1f}" if isinstance(value, float) else f"{name:36} {value}")
    problems = missed(figures, arguments.deadline_ms)
    for problem in problems:
        print("MISSED:", problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
