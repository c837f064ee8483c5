# SPDX-License-Identifier: Apache-2.0
"""What is in an HTTP request besides its body: how its path is written, what its client accepts."""

import gzip
import json
import urllib.request

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import models, wire
from harness import server as servers

pytestmark = pytest.mark.newer

NAME = "m\u00f6del x"
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})


@pytest.fixture(scope="module")
def named(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    models.write_model(repository, NAME, models.identity_config("FP32", [-1]))
    args = ["--http-restricted-api=inference:key=secret"]
    with servers.running(repository, args=args, log_dir=tmp_path_factory.mktemp("log")) as server:
        yield server


def test_a_model_whose_name_needs_encoding_is_reached_by_clients(named):
    client = httpclient.InferenceServerClient(named.http)
    assert client.is_model_ready(NAME)
    assert client.get_model_metadata(NAME)["name"] == NAME
    tensor = httpclient.InferInput("INPUT0", [2], "FP32")
    tensor.set_data_from_numpy(np.array([1, 2], np.float32), binary_data=False)
    result = client.infer(NAME, [tensor], headers={"key": "secret"})
    assert result.as_numpy("OUTPUT0").tolist() == [1, 2]
    assert client.get_inference_statistics(NAME)["model_stats"][0]["name"] == NAME


@pytest.mark.parametrize("path", ["/v2/models/m%C3%B6del%20x/infer", "/v2/models/m%c3%b6del%20x/inf%65r", "/%762/models/m%C3%B6del%20x/infer"])
def test_restrictions_hold_for_what_a_path_means(named, path):
    assert wire.request(named, "POST", path, BODY).status == 403
    assert wire.request(named, "POST", path, BODY, {"key": "secret"}).status == 200


@pytest.mark.parametrize("end", ["%", "%2", "%zz", "%2Gx", "a%2Fb", "a%00b", "%%20"])
def test_what_is_no_encoding_is_refused(named, end):
    assert wire.request(named, "GET", f"/v2/models/{end}").status == 400


def test_a_path_is_decoded_once(named):
    reply = wire.request(named, "GET", "/v2/models/m%25C3%25B6del%2520x")
    assert reply.status == 404
    assert "m%C3%B6del%20x" in reply.error


@pytest.mark.parametrize("path, key", [("/v2/health/live", "live"), ("/v2/health/ready", "ready"), ("/v2/models/m%C3%B6del%20x/ready", "ready")])
def test_health_has_a_body_for_those_who_accept_json(named, path, key):
    reply = wire.request(named, "GET", path, b"", {"Accept": "text/html, Application/JSON;q=0.9"})
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == {key: True}
    for headers in ({}, {"Accept": "*/*"}):
        reply = wire.request(named, "GET", path, b"", headers)
        assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b"", "text/plain")


@pytest.mark.parametrize("lines", ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nX: y\r\nhost: b\r\n"])
def test_a_request_has_one_host(named, lines):
    with wire.Connection(named) as connection:
        connection.send(f"GET /v2 HTTP/1.1\r\n{lines}\r\n".encode())
        assert connection.receive().status == 400
        assert connection.is_closed_by_server()


def test_an_older_client_need_not_name_a_host(named):
    with wire.Connection(named) as connection:
        connection.send(b"GET /v2 HTTP/1.0\r\n\r\n")
        assert connection.receive().status == 200


def test_a_folded_trailer_is_refused(named):
    head = {"Transfer-Encoding": "chunked", "key": "secret"}
    with wire.Connection(named) as connection:
        connection.send(wire.encode("POST", "/v2/models/m%C3%B6del%20x/infer", b"", head))
        size = f"{len(BODY):x}\r\n".encode()
        connection.send(size + BODY.encode() + b"\r\n0\r\nX: a\r\n folded\r\n\r\n")
        assert connection.receive().status == 400


def test_data_that_do_not_fit_their_shape_are_named(named):
    for data, count in ([1], 1), ([[1, 2], [3]], 3):
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": data}]}
        reply = wire.request(named, "POST", "/v2/models/m%C3%B6del%20x/infer", json.dumps(body), {"key": "secret"})
        assert reply.status == 400
        assert "does not match true shape" in reply.error
        assert f"(input 'INPUT0': its shape has 2 elements, 'data' has {count})" in reply.error


def test_a_thousand_models_fit_on_a_page_of_metrics(require_server, tmp_path):
    for i in range(1000):
        models.write_model(tmp_path, f"model_{i:03}", models.identity_config("FP32", [-1]))
    with servers.running(tmp_path) as server:
        plain = urllib.request.urlopen(f"http://{server.metrics}/metrics").read()
        assert len(plain) < 1425 * 1000  # bytes for each model
        assert plain.count(b"nv_inference_request_success{") == 1000
        asked = urllib.request.Request(f"http://{server.metrics}/metrics", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(asked) as reply:
            assert reply.headers["Content-Encoding"] == "gzip"
            packed = reply.read()
        assert len(packed) < len(plain) / 8
        assert gzip.decompress(packed).count(b"nv_inference_request_success{") == 1000
