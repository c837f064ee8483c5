# SPDX-License-Identifier: Apache-2.0
"""The metrics endpoint, as dashboards made for Triton read it."""

import re
import urllib.error
import urllib.request

import numpy as np
import pytest
from harness import models, trouble, wire
from harness import server as servers
from harness.clients import Client

COUNTERS = [
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
]


def text_of(server, path="/metrics"):
    with urllib.request.urlopen(f"http://{server.metrics}{path}", timeout=10) as reply:
        return reply.read().decode(), reply.headers


def test_content_type(server):
    _, headers = text_of(server)
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter_is_described_and_labelled(server, name):
    text, _ = text_of(server)
    assert f"# TYPE {name} counter" in text
    assert re.search(rf"^# HELP {name} \S", text, re.M)
    labels = re.search(rf"^{name}\{{(.*)\}} \d+$", text, re.M).group(1)
    assert 'version="1"' in labels and 'model="' in labels


@pytest.mark.newer
def test_failures_are_told_apart(server):
    text, _ = text_of(server)
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        pattern = rf'nv_inference_request_failure{{model="id_pair",reason="{reason}",version="1"}} \d+'
        assert re.search(pattern, text)


def test_the_queue_is_a_gauge(server):
    text, _ = text_of(server)
    assert "# TYPE nv_inference_pending_request_count gauge" in text
    assert server.scrape()[("nv_inference_pending_request_count", "id_pair")] == 0


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_requests_are_counted_and_timed(server, kind):
    before = server.scrape()
    client = Client(kind, server)
    client.infer("id_slow", [client.input("INPUT0", np.zeros(1, np.float32), "FP32")])
    client.close()
    after = server.scrape()

    def grown(name):
        return after[(name, "id_slow")] - before[(name, "id_slow")]

    assert grown("nv_inference_request_success") == 1
    assert grown("nv_inference_count") == 1
    assert grown("nv_inference_exec_count") == 1
    # The model takes 300 ms.
    assert grown("nv_inference_request_duration_us") >= 290_000
    parts = sum(grown(f"nv_inference_{part}_duration_us") for part in ("compute_input", "compute_infer", "compute_output"))
    assert 290_000 <= parts <= grown("nv_inference_request_duration_us")


@pytest.mark.newer
@pytest.mark.parametrize("extra", ["", "sequence_batching {}"])
def test_an_autoscaler_sees_what_waits_and_for_how_long(start_server, empty_repository, extra):
    is_sequence = extra.startswith("sequence")
    trouble.write(empty_repository, "slow", extra=extra)
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]).replace("count: 1", "count: 2"))
    server = start_server(empty_repository, args=["--exit-timeout-secs=5"])

    def value(name, model="slow"):
        return server.scrape()[(f"nereid_{name}", model)]

    def send(connection, command, number):
        members = {"parameters": {"sequence_id": number, "sequence_start": True, "sequence_end": True}}
        body = trouble.body(command, **(members if is_sequence else {}))
        connection.send(wire.encode("POST", "/v2/models/slow/infer", body))

    assert (value("model_instances"), value("model_instances", "m")) == (1, 2)
    assert (value("model_requests_in_flight"), value("queue_oldest_seconds")) == (0, 0)
    connections = [wire.Connection(server) for _ in range(3)]
    send(connections[0], trouble.WAIT, 1)
    with trouble.waiting_at_gate(empty_repository, "slow"):
        # What executes does not wait.
        assert (value("model_requests_in_flight"), value("queue_oldest_seconds")) == (1, 0)
        for number, connection in enumerate(connections[1:], 2):
            send(connection, trouble.NOTHING, number)
        servers.wait_until(lambda: value("model_requests_in_flight") == 3, "three requests in flight")
        waited = servers.wait_until(lambda: value("queue_oldest_seconds"), "a request that waits")
        servers.wait_until(lambda: value("queue_oldest_seconds") > waited, "a longer time")
        assert value("model_requests_in_flight", "m") == 0
    for connection in connections:
        assert connection.receive().status == 200
        connection.socket.close()
    servers.wait_until(lambda: value("model_requests_in_flight") == 0, "nothing in flight")
    assert value("queue_oldest_seconds") == 0
    assert value("execution_seconds_total", "m") == 0
    client = Client("http", server)
    client.infer("m", [client.input("INPUT0", np.zeros(1, np.float32), "FP32")])
    client.close()
    assert value("execution_seconds_total", "m") > 0


def test_only_get_is_allowed(server):
    request = urllib.request.Request(f"http://{server.metrics}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 405
