# SPDX-License-Identifier: Apache-2.0
"""Methods: HEAD where GET is, 405 that says what is allowed, and CORS for pages in browsers."""

import json

import pytest
from harness import models, wire

pytestmark = pytest.mark.newer

GETS = [
    "/v2",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/m",
    "/v2/models/m/ready",
    "/v2/models/m/config",
    "/v2/models/m/stats",
    "/v2/models/stats",
]
POSTS = ["/v2/models/m/infer", "/v2/repository/index", "/v2/repository/models/m/load"]
BODY = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
PAGE = "https://app.example.com"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


def cors_of(reply):
    return {name: value for name, value in reply.headers.items() if name.startswith("access-control-")}


def test_head_is_where_get_is_and_has_no_body(start_server, repository):
    server = start_server(repository)
    with wire.Connection(server) as connection:
        for path in [*GETS, "/v2/models/none"]:
            got = connection.request("GET", path)
            connection.send(wire.encode("HEAD", path))
            head = connection._until(b"\r\n\r\n").decode().split("\r\n")
            assert head[0] == f"HTTP/1.1 {got.status} " + head[0].split(" ", 2)[2]
            # The head is that of GET, and what follows is the next reply, not a body.
            assert f"Content-Length: {got.headers['content-length']}" in head or "stats" in path
        for path in POSTS:
            connection.send(wire.encode("HEAD", path))
            assert connection._until(b"\r\n\r\n").startswith(b"HTTP/1.1 405 ")


def test_405_names_the_methods_there_are(start_server, repository):
    server = start_server(repository)
    with wire.Connection(server) as connection:
        for paths, allowed in ((GETS, "GET, HEAD"), (POSTS, "POST"), (["/v2/logging"], "GET, HEAD, POST")):
            for path in paths:
                for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                    reply = connection.request(method, path)
                    assert reply.status == 405
                    assert reply.error == "Method Not Allowed"
                    assert reply.headers["allow"] == allowed


def test_no_page_reads_answers_by_default(start_server, repository):
    server = start_server(repository)
    with wire.Connection(server) as connection:
        for method, path, body in (("GET", "/v2", b""), ("POST", POSTS[0], BODY), ("OPTIONS", "/v2", b"")):
            assert cors_of(connection.request(method, path, body, {"Origin": PAGE, **PREFLIGHT})) == {}


def test_allowed_pages_read_every_answer(start_server, repository):
    args = [f"--http-cors-allow-origin={PAGE}", "--http-cors-allow-origin=http://localhost:3000"]
    server = start_server(repository, args=[*args, "--http-restricted-api=metadata:k=v"])
    asked = [("GET", "/v2/health/live", b""), ("POST", POSTS[0], BODY), ("POST", POSTS[0], b"{"),
             ("GET", "/nowhere", b""), ("GET", "/v2", b""), ("PUT", "/v2/health/live", b"")]  # fmt: skip
    with wire.Connection(server) as connection:
        for method, path, body in asked:
            for origin in (PAGE, "http://localhost:3000"):
                reply = connection.request(method, path, body, {"Origin": origin})
                assert reply.headers["access-control-allow-origin"] == origin
                assert reply.headers["vary"] == "Origin"
                assert "Inference-Header-Content-Length" in reply.headers["access-control-expose-headers"]
            for origin in ("https://evil.example.com", PAGE + ".evil.com", "null", ""):
                assert cors_of(connection.request(method, path, body, {"Origin": origin})) == {}
            assert cors_of(connection.request(method, path, body)) == {}


def test_preflights_are_granted_to_allowed_pages_only(start_server, repository):
    args = [f"--http-cors-allow-origin={PAGE}", "--http-cors-allow-headers=X-One, X-Two",
            "--http-cors-allow-methods=POST", "--http-cors-max-age=7",
            "--http-restricted-api=inference:k=v"]  # fmt: skip
    server = start_server(repository, args=args)
    with wire.Connection(server) as connection:
        reply = connection.request("OPTIONS", POSTS[0], b"", {"Origin": PAGE, **PREFLIGHT})
        assert (reply.status, reply.body) == (200, b"")
        granted = cors_of(reply)
        assert granted["access-control-allow-origin"] == PAGE
        assert granted["access-control-allow-methods"] == "POST"
        assert granted["access-control-allow-headers"] == "X-One, X-Two"
        assert granted["access-control-max-age"] == "7"
        # A preflight opens nothing itself.
        assert connection.request("POST", POSTS[0], BODY, {"Origin": PAGE}).status == 403
        evil = {"Origin": "https://evil.example.com", **PREFLIGHT}
        reply = connection.request("OPTIONS", POSTS[0], b"", evil)
        assert reply.status in (403, 405)
        assert cors_of(reply) == {}


@pytest.mark.parametrize("path", ["/ui/api/log", "/ui/api/traces", "/ui/api/models/m/sequences"])
def test_the_console_says_under_which_names_it_tells_of_requests(start_server, repository, path):
    def under(server, host):
        with wire.Connection(server) as connection:
            connection.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            return connection.receive()

    server = start_server(repository)
    reply = under(server, "app.example.com:8000")
    assert reply.status == 403
    error = reply.json()["error"]
    assert "not under 'app.example.com:8000'" in error and "DNS rebinding" in error
    assert "--api-keys" in error and "--http-cors-allow-origin" in error and "IP address" in error
    assert under(server, "10.0.0.1").status != 403
    # A name that the operator gave the server is no stranger's; "*" is no name.
    named = start_server(repository, args=[f"--http-cors-allow-origin={PAGE}"])
    assert under(named, "app.example.com:8000").status != 403
    assert under(named, "other.example.com").status == 403
    any_page = start_server(repository, args=["--http-cors-allow-origin=*"])
    assert under(any_page, "app.example.com").status == 403


def test_any_page_when_asked_for(start_server, repository):
    server = start_server(repository, args=["--http-cors-allow-origin=*"])
    reply = wire.request(server, "POST", POSTS[0], BODY, {"Origin": PAGE})
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "*"
    reply = wire.request(server, "OPTIONS", POSTS[0], b"", {"Origin": PAGE, **PREFLIGHT})
    assert reply.status == 200
