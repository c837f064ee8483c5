# SPDX-License-Identifier: Apache-2.0
"""Attacks that have worked on servers of this kind. After each: an error, and a server as before."""

import gzip
import json
import random
import zlib

import grpc
import pytest
from harness import server as servers
from harness import wire
from tritonclient.grpc import service_pb2 as pb

MIB = 1 << 20
# A sanitizer keeps freed memory for a while, so that its growth says nothing.
GROWTH = MIB if not servers.is_sanitized() else 1 << 40
PATH = "/v2/models/id_FP32/infer"
POSTS = [PATH, "/v2/repository/index", "/v2/models/none/infer", "/v2/health/live"]
GOOD = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
).encode()

pytestmark = pytest.mark.newer


@pytest.fixture
def server(any_server):
    return any_server


@pytest.fixture(autouse=True)
def server_is_as_before(server):
    """The server is alive, still right, and has not kept what it was sent."""
    assert wire.request(server, "POST", PATH, GOOD).status == 200
    before = server.resident_bytes()
    yield
    assert server.process.poll() is None
    reply = wire.request(server, "POST", PATH, GOOD)
    assert reply.json()["outputs"][0]["data"] == [1.0, 2.0]
    # Large buffers go back after a while, not at once.
    servers.wait_until(lambda: server.resident_bytes() - before < 64 * GROWTH, "memory goes back", timeout=30)


def refused(reply, *statuses):
    assert reply.status in statuses, reply
    assert reply.error is not None, reply
    return reply.error


def infer_json(**changes):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    tensor.update(changes)
    return json.dumps({"inputs": [tensor]}).encode()


# --- S11: a body of a million chunks ----------------------------------------------------------


@pytest.mark.parametrize("path", POSTS)
def test_a_million_chunks_are_refused_early(server, path):
    with wire.Connection(server) as connection:
        connection.send(connection.encode("POST", path, b"", {"Transfer-Encoding": "chunked"}))
        try:
            for _ in range(100):
                connection.send(b"1\r\nA\r\n" * 10000)
            connection.send(b"0\r\n\r\n")
        except ConnectionError:
            pass  # The server had enough and closed.
        try:
            reply = connection.receive()
            assert reply.status in (400, 404, 405)
            if reply.status == 400:
                assert reply.error == (
                    "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger "
                    "HTTP chunks."
                )
        except (EOFError, ConnectionError):
            pass


def test_as_many_chunks_as_allowed(server):
    # Spaces between JSON tokens mean nothing.
    body = GOOD + b" " * (65536 - len(GOOD))
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    reply = wire.request(server, "POST", PATH, chunks, {"Transfer-Encoding": "chunked"})
    assert reply.status == 200


# --- S12: lengths that contradict each other --------------------------------------------------


def test_random_lengths_that_do_not_agree(server):
    rng = random.Random(5)
    connection = wire.Connection(server)
    for _ in range(400):
        sizes = [rng.choice([0, 1, 4, 8, 12, 2**31, 2**32 + 8, 2**63, 2**64 - 4, 2**64 - 1]) for _ in range(2)]
        head = json.dumps(
            {
                "inputs": [
                    {
                        "name": f"INPUT{i}",
                        "datatype": "FP32",
                        "shape": [rng.choice([0, 1, 2, 2**31, 2**62])],
                        "parameters": {"binary_data_size": sizes[i]},
                    }
                    for i in range(2)
                ]
            }
        ).encode()
        body = head + bytes(rng.randrange(24))
        length = rng.choice([len(head), len(head) + 1, len(head) - 1, 0, len(body), len(body) + 1, 2**31])
        reply = connection.request(
            "POST", "/v2/models/id_pair/infer", body, {"Inference-Header-Content-Length": str(length)}
        )
        assert reply.status in (200, 400, 500), reply
        if reply.status != 200:
            assert reply.error is not None
    connection.socket.close()


def test_a_fragmented_request_is_read_as_a_whole(server):
    data = bytes(range(256)) * 8
    body, headers = wire.infer_body([("INPUT0", "UINT8", [1, len(data)], data)])
    rng = random.Random(6)
    with wire.Connection(server) as connection:
        raw = connection.encode("POST", "/v2/models/id_UINT8/infer", body, headers)
        for _ in range(20):
            cuts = sorted(rng.sample(range(1, len(raw)), 6))
            for start, end in zip([0, *cuts], [*cuts, len(raw)]):
                connection.send(raw[start:end])
            assert connection.receive().status == 200


# --- S17: sizes that overflow -----------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [[2**31, 2**31, 4], [2**31, 2**31], [2**63 - 1, 1], [2**62, 4], [2**63, 1], [2**64, 1], [2**32, 2**32]],
)
@pytest.mark.parametrize("tail", [None, b"", b"\0" * 8])
def test_shapes_that_overflow(server, shape, tail):
    if tail is None:
        reply = wire.request(server, "POST", PATH, infer_json(shape=shape))
    else:
        body, headers = wire.infer_body([("INPUT0", "FP32", shape, tail)])
        reply = wire.request(server, "POST", PATH, body, headers)
    refused(reply, 400, 500)


@pytest.mark.parametrize("dim", [-1, -2, -(2**63), 1.5, "2", None, True, [1]])
def test_dimensions_that_are_no_counts(server, dim):
    refused(wire.request(server, "POST", PATH, infer_json(shape=[dim, 2])), 400, 500)


@pytest.mark.parametrize("size", [-1, 1.5, "12", None, 2**64, 2**64 - 1, 2**63, 2**32])
def test_binary_sizes_that_lie(server, size):
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "INPUT0",
                    "datatype": "FP32",
                    "shape": [1, 2],
                    "parameters": {"binary_data_size": size},
                }
            ]
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    refused(wire.request(server, "POST", PATH, head + b"\0" * 8, headers), 400, 500)


@pytest.mark.parametrize("batch", [9, 2**31, 2**62])
def test_batches_that_are_too_large(server, batch):
    body, headers = wire.infer_body([("INPUT0", "FP32", [batch, 1], b"\0" * 4)])
    reply = wire.request(server, "POST", "/v2/models/idb_FP32/infer", body, headers)
    error = refused(reply, 400)
    assert "byte size" in error or "inference request batch-size must be <= 8 for 'idb_FP32'" in error


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 6, 0x7FFFFFFF])
def test_strings_longer_than_their_tensor(server, length):
    data = length.to_bytes(4, "little") + b"abcde"
    body, headers = wire.infer_body([("INPUT0", "BYTES", [1, 1], data)])
    reply = wire.request(server, "POST", "/v2/models/id_BYTES/infer", body, headers)
    refused(reply, 400, 500)


@pytest.mark.parametrize("mebibytes", [65, 400])
def test_a_body_beyond_the_limit_is_not_kept(server, mebibytes):
    size, before = mebibytes * MIB, server.resident_bytes()
    with wire.Connection(server) as connection:
        connection.send(connection.encode("POST", PATH, b"", {"Content-Length": str(size)}))
        try:
            for _ in range(mebibytes):
                connection.send(b" " * MIB)
                assert server.resident_bytes() - before < 80 * GROWTH
        except ConnectionError:
            pass  # The server may say no and close before it has seen everything.
        try:
            reply = connection.receive()
        except (EOFError, ConnectionError):
            return
        assert "exceeds the maximum allowed input size of 67108864 bytes" in refused(reply, 400)


def test_json_that_grows_when_it_becomes_a_tensor(server):
    # "0," is two bytes of text and eight of tensor.
    count = 9 * MIB
    text = b'{"inputs":[{"name":"INPUT0","datatype":"FP64","shape":[1,%d],"data":[' % count
    text += b"0," * (count - 1) + b"0]}]}"
    reply = wire.request(server, "POST", "/v2/models/id_FP64/infer", text)
    error = refused(reply, 400)
    assert "(75497472 bytes) that exceeds the maximum allowed value of 67108864 bytes" in error


# --- S18: nesting -----------------------------------------------------------------------------


MANY = 150_000


def tensors(count, **extra):
    return [{"name": f"T{i}", "datatype": "FP32", "shape": [1, 1], **extra} for i in range(count)]


# Looking each name up among the others would take minutes; the answers come within the timeout of
# the connection or the test fails.
def test_very_many_invented_outputs(server):
    body = json.loads(GOOD) | {"outputs": [{"name": f"T{i}"} for i in range(MANY)]}
    error = refused(wire.request(server, "POST", PATH, json.dumps(body).encode()), 400)
    assert "unexpected inference output" in error


def test_very_many_invented_inputs(server):
    body = {"inputs": tensors(MANY, data=[1])}
    refused(wire.request(server, "POST", PATH, json.dumps(body).encode()), 400)


@pytest.mark.parametrize("field", ["inputs", "outputs"])
def test_very_many_invented_tensors_over_grpc(server, field):
    request = pb.ModelInferRequest(model_name="id_FP32")
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1])
    for i in range(MANY):
        added = getattr(request, field).add(name=f"T{i}")
        if field == "inputs":
            added.datatype = "FP32"
            added.shape.append(1)
    count = len(request.inputs)
    request.raw_input_contents.extend([b"1234"] * count)
    with server.channel() as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelInferResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as raised:
            call(request, timeout=20 * servers.SLOWNESS)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def nested(depth):
    return infer_json(data="@").replace(b'"@"', b"[" * depth + b"1,2" + b"]" * depth)


def test_deeply_nested_data(server):
    assert wire.request(server, "POST", PATH, nested(50)).status == 200
    error = refused(wire.request(server, "POST", PATH, nested(120)), 400, 500)
    assert "JSON nesting depth exceeds maximum allowed limit (100)" in error


@pytest.mark.parametrize("depth", [10_000, 250_000, 4_000_000])
def test_nesting_that_would_exhaust_the_stack(server, depth):
    refused(wire.request(server, "POST", PATH, nested(depth)), 400, 500)
    refused(wire.request(server, "POST", PATH, b"[" * depth), 400, 500)
    refused(wire.request(server, "POST", PATH, b'{"inputs":' * (depth // 10)), 400, 500)


def test_nesting_in_the_repository_index(server):
    body = b'{"ready":' + b"[" * 250_000 + b"]" * 250_000 + b"}"
    refused(wire.request(server, "POST", "/v2/repository/index", body), 400, 500)


# --- S19: compression -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_a_body_that_grows_beyond_the_limit(server, name):
    compress = gzip.compress if name == "gzip" else zlib.compress
    reply = wire.request(server, "POST", PATH, compress(b" " * (65 * MIB)), {"Content-Encoding": name})
    assert "exceeds the maximum allowed" in refused(reply, 400)


def test_a_body_that_grows_to_just_below_the_limit(server):
    body = gzip.compress(GOOD + b" " * (63 * MIB))
    assert wire.request(server, "POST", PATH, body, {"Content-Encoding": "gzip"}).status == 200


def test_compression_inside_compression(server):
    body = gzip.compress(gzip.compress(b" " * (60 * MIB)))
    refused(wire.request(server, "POST", PATH, body, {"Content-Encoding": "gzip"}), 400, 500)


def test_an_endless_compressed_body(server):
    body = zlib.compress(b" " * (60 * MIB))[:-4]
    refused(wire.request(server, "POST", PATH, body, {"Content-Encoding": "deflate"}), 400)


def test_a_wrong_checksum(server):
    body = bytearray(gzip.compress(GOOD))
    body[-6] ^= 0xFF
    refused(wire.request(server, "POST", PATH, bytes(body), {"Content-Encoding": "gzip"}), 400)


def test_refused_compressed_requests_leave_nothing_behind(server):
    body = gzip.compress(b"{" + b" " * (8 * MIB))
    headers = {"Content-Encoding": "gzip", "Inference-Header-Content-Length": "9999999"}
    for _ in range(10):
        refused(wire.request(server, "POST", PATH, body, headers), 400)
    before = server.resident_bytes()
    for _ in range(100):
        refused(wire.request(server, "POST", PATH, body, headers), 400)
    servers.wait_until(lambda: server.resident_bytes() - before < 32 * GROWTH, "memory goes back", timeout=30)


# --- Memory -----------------------------------------------------------------------------------

BAD = [
    b"{",
    b"{}",
    infer_json(shape=[-1, 2]),
    infer_json(name="X" * 1000),
    infer_json(datatype="FP16"),
    infer_json(shape=[2**62, 8]),
    infer_json(data=[1]),
    infer_json(data=["text"] * 100),
    json.dumps({"inputs": [json.loads(GOOD)["inputs"][0]] * 2}).encode(),
]


def test_memory_is_flat_under_bad_requests(server):
    def some(count):
        with wire.Connection(server) as connection:
            for i in range(count):
                assert connection.request("POST", PATH, BAD[i % len(BAD)]).status in (400, 500)

    for _ in range(4):
        some(500)
    before = server.resident_bytes()
    for _ in range(10):
        some(500)
    servers.wait_until(lambda: server.resident_bytes() - before < 8 * GROWTH, "memory goes back", timeout=30)


def test_memory_is_flat_under_connections_that_break_off(server):
    def some(count):
        for i in range(count):
            with wire.Connection(server) as connection:
                raw = connection.encode("POST", PATH, GOOD)
                connection.send(raw[: (i * 7) % len(raw)])

    some(500)
    before = server.resident_bytes()
    some(2000)
    servers.wait_until(lambda: server.resident_bytes() - before < 8 * GROWTH, "memory goes back", timeout=30)
