# SPDX-License-Identifier: Apache-2.0
"""What many connections cost in memory: idle ones, and ones with a request that waits for its model."""

import json

import pytest
from harness import h2, models, wire
from harness import server as servers

pytestmark = pytest.mark.skipif(servers.is_sanitized(), reason="a sanitizer's memory is not the server's")

CONNECTIONS = 600


def bytes_of_each(server, make):
    """How much memory each of many things takes that `make` makes and returns; they live until then."""
    first = [make() for _ in range(20)]  # with which comes what all have in common
    before = server.resident_bytes()
    things = [make() for _ in range(CONNECTIONS)]
    each = (server.resident_bytes() - before) / CONNECTIONS
    for thing in first + things:
        thing.socket.close()
    return each


def test_an_idle_grpc_connection_keeps_no_memory_for_what_may_come(start_server, empty_repository):
    server = start_server(empty_repository)

    def connection():
        made = h2.Connection(server.grpc_port)
        made.call("ServerLive", h2.message(b""))
        return made

    assert bytes_of_each(server, connection) < 24_000


def test_an_idle_http_connection_keeps_no_memory_for_what_may_come(start_server, empty_repository):
    server = start_server(empty_repository)

    def connection():
        made = wire.Connection(server)
        made.send(wire.encode("GET", "/v2/health/live"))
        assert made.receive().status == 200
        return made

    assert bytes_of_each(server, connection) < 6_000


def test_a_small_http_request_that_waits_keeps_little_more_than_itself(start_server, empty_repository):
    slow = 'parameters { key: "execute_delay_ms" value: { string_value: "60000" } }\n'
    models.write_model(empty_repository, "slow", models.identity_config("FP32", (16,), extra=slow))
    server = start_server(empty_repository, args=["--exit-timeout-secs=1"])
    connections = [wire.Connection(server) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.send(wire.encode("GET", "/v2/health/live"))
        assert connection.receive().status == 200
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [16], "data": list(range(16))}
    request = wire.encode("POST", "/v2/models/slow/infer", json.dumps({"inputs": [tensor]}).encode())
    before = server.resident_bytes()
    for connection in connections:
        connection.send(request)
    pending = ("nv_inference_pending_request_count", "slow")
    servers.wait_until(lambda: server.scrape().get(pending) == CONNECTIONS - 1, "all wait but one")
    each = (server.resident_bytes() - before) / CONNECTIONS
    for connection in connections:
        connection.socket.close()
    server.stop(check=False)
    assert each < 9_000
