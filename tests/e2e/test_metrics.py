# SPDX-License-Identifier: Apache-2.0
"""The metrics endpoint, as dashboards made for Triton read it."""

import re
import urllib.error
import urllib.request

import numpy as np
import pytest
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


def test_only_get_is_allowed(server):
    request = urllib.request.Request(f"http://{server.metrics}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 405
