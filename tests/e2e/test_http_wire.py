# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 itself: keep-alive, pipelining, chunks, Expect, compression, and what breaks them."""

import gzip
import json
import zlib

import pytest
from harness import wire

PATH = "/v2/models/id_FP32/infer"
REQUEST = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
).encode()


def numbered(number):
    """A request that names itself."""
    return json.dumps(
        {
            "id": str(number),
            "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [number]}],
        }
    ).encode()


def is_answer(reply):
    return reply.status == 200 and reply.json()["outputs"][0]["data"] == [1.0, 2.0]


def chunked(body, size):
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.fixture
def connection(server):
    with wire.Connection(server) as made:
        yield made


def test_a_connection_serves_many_requests(connection):
    for i in range(200):
        assert connection.request("POST", PATH, numbered(i)).json()["id"] == str(i)


def test_pipelined_requests_are_answered_in_order(connection):
    connection.send(b"".join(wire.encode("POST", PATH, numbered(i)) for i in range(100)))
    assert [connection.receive().json()["id"] for _ in range(100)] == [str(i) for i in range(100)]


def test_an_error_in_a_pipeline_does_not_disturb_its_neighbours(connection):
    bodies = [REQUEST, b"{", REQUEST, b"{}", REQUEST]
    connection.send(b"".join(wire.encode("POST", PATH, body) for body in bodies))
    assert [connection.receive().status for _ in bodies] == [200, 500, 200, 500, 200]


def test_a_slow_request_in_a_pipeline_keeps_its_place(connection):
    slow = json.dumps(
        {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}]}
    ).encode()
    connection.send(wire.encode("POST", "/v2/models/id_slow/infer", slow) + wire.encode("POST", PATH, REQUEST))
    assert connection.receive().json()["model_name"] == "id_slow"
    assert is_answer(connection.receive())


def test_a_request_may_come_byte_by_byte(connection):
    for byte in wire.encode("POST", PATH, REQUEST):
        connection.send(bytes([byte]))
    assert is_answer(connection.receive())


@pytest.mark.newer
def test_a_target_may_be_a_whole_address(connection):
    assert is_answer(connection.request("POST", f"http://anyone:80{PATH}", REQUEST))
    assert connection.request("GET", "HTTPS://localhost/v2/health/ready?verbose").json()["ready"] is True
    assert connection.request("GET", "http://localhost").status == 404
    assert connection.request("GET", "http:/v2/health/ready").status == 404


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunked_body(connection, size):
    reply = connection.request("POST", PATH, chunked(REQUEST, size), {"Transfer-Encoding": "chunked"})
    assert is_answer(reply)
    assert is_answer(connection.request("POST", PATH, REQUEST))


def test_chunked_binary_body(connection):
    data = bytes(range(256)) * 64
    body, headers = wire.infer_body([("INPUT0", "UINT8", [1, len(data)], data)])
    headers.update({"Transfer-Encoding": "chunked", "Accept": "*/*"})
    head, tail = wire.split_reply(
        connection.request("POST", "/v2/models/id_UINT8/infer", chunked(body, 999), headers)
    )
    assert head["outputs"][0]["shape"] == [1, len(data)]


@pytest.mark.newer
def test_chunk_extensions_and_trailers_are_skipped(connection):
    body = b"%x;name=value\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (len(REQUEST), REQUEST)
    assert is_answer(connection.request("POST", PATH, body, {"Transfer-Encoding": "chunked"}))
    assert is_answer(connection.request("POST", PATH, REQUEST))


def test_expect_continue(connection):
    connection.send(
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
        % (PATH.encode(), len(REQUEST))
    )
    assert connection.receive().status == 100
    connection.send(REQUEST)
    assert is_answer(connection.receive())


def test_connection_close_is_honoured(connection):
    assert is_answer(connection.request("POST", PATH, REQUEST, {"Connection": "close"}))
    assert connection.is_closed_by_server()


def test_http_1_0_without_keep_alive(server):
    with wire.Connection(server) as connection:
        connection.send(
            b"POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (PATH.encode(), len(REQUEST), REQUEST)
        )
        assert is_answer(connection.receive())
        assert connection.is_closed_by_server()



def test_header_names_are_case_insensitive(connection):
    body, headers = wire.infer_body([("INPUT0", "FP32", [1, 1], b"\0\0\x80\x3f")])
    headers = {"iNFERENCE-hEADER-cONTENT-lENGTH": headers["Inference-Header-Content-Length"]}
    assert connection.request("POST", PATH, body, headers).json()["outputs"][0]["data"] == [1.0]


# --- Compression ------------------------------------------------------------------------------


@pytest.mark.parametrize("name,compress", [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_request(connection, name, compress):
    body = compress(REQUEST)
    assert is_answer(connection.request("POST", PATH, body, {"Content-Encoding": name}))


def test_compressed_binary_request_counts_the_plain_header(connection):
    body, headers = wire.infer_body([("INPUT0", "FP32", [1, 1], b"\0\0\x80\x3f")])
    headers["Content-Encoding"] = "gzip"
    reply = connection.request("POST", PATH, gzip.compress(body), headers)
    assert reply.json()["outputs"][0]["data"] == [1.0]


@pytest.mark.parametrize(
    "accept,expected",
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip;q=0.2, deflate;q=0.9", "deflate"),
        ("identity, gzip;q=0.5", None),
        ("br", None),
        ("", None),
    ],
)
def test_compressed_reply(connection, accept, expected):
    reply = connection.request("POST", PATH, REQUEST, {"Accept-Encoding": accept})
    assert reply.status == 200
    assert reply.headers.get("content-encoding") == expected
    if expected is not None:
        # 32: zlib finds out which of the two it is.
        reply.body = zlib.decompress(reply.body, zlib.MAX_WBITS | 32)
    assert is_answer(reply)


@pytest.mark.newer
# The names of tests must not tell the time, as the head of gzip does: all workers have to find the same ones.
@pytest.mark.parametrize("body", [b"this is no gzip", gzip.compress(REQUEST)[:-12]], ids=["no gzip", "torn"])
def test_broken_compression_is_refused(connection, body):
    reply = connection.request("POST", PATH, body, {"Content-Encoding": "gzip"})
    assert reply.status == 400 and reply.error
    assert is_answer(connection.request("POST", PATH, REQUEST))


# --- What must be refused ---------------------------------------------------------------------


def is_refused(server, data):
    """A 4xx or 5xx answer, or a closed connection; in both cases the server goes on."""
    with wire.Connection(server, timeout=10) as connection:
        try:
            connection.send(data)
            reply = connection.receive()
            refused = 400 <= reply.status < 600
        except (EOFError, ConnectionError):
            refused = True
    assert is_answer(wire.request(server, "POST", PATH, REQUEST))
    return refused


HEAD = b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.newer
@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"\0\1\2\3\r\n\r\n",
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"GET  /v2  HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1x\r\n\r\nabc",
        HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        HEAD + b"Bad Header: x\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n",
    ],
    ids=[
        "no http",
        "binary",
        "version",
        "spaces",
        "two lengths",
        "length and chunks",
        "negative length",
        "length with letters",
        "length beyond 64 bits",
        "chunk size with letters",
        "chunk size beyond 64 bits",
        "unknown transfer encoding",
        "space in a header name",
        "header of a megabyte",
    ],
)
def test_malformed_http_is_refused(server, data):
    assert is_refused(server, data)


@pytest.mark.newer
def test_an_old_connection_ends_with_its_next_reply(start_server, empty_repository):
    path = "/v2/health/live"
    for age_ms in (500, 5_000, 50_000):  # the first that is enough for a reply before
        server = start_server(empty_repository, args=[f"--http-max-connection-age={age_ms}"])
        with wire.Connection(server) as busy, wire.Connection(server) as idle:
            if idle.request("GET", path).headers.get("connection") == "close":
                continue
            while (reply := busy.request("GET", path)).headers.get("connection") != "close":
                assert reply.status == 200
            assert reply.status == 200
            assert busy.is_closed_by_server()
            assert idle.is_closed_by_server()
            return
    raise AssertionError("every connection was old at once")
