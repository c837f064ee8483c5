# SPDX-License-Identifier: Apache-2.0
"""Attacks on the connections themselves: S11 on every route, S19 over gRPC, S23 and S32."""

import gzip
import json
import struct
import zlib

import grpc
import psutil
import pytest
from harness import server as servers
from harness import wire
from harness.routes import ROUTES
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

MIB = 1 << 20
INFER = "/v2/models/id_FP32/infer"
GOOD = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
).encode()
POSTS = [path for routes in ROUTES.values() for method, path in routes if method == "POST"]
CHUNKS = (
    "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks."
)


@pytest.fixture
def server(any_server):
    return any_server


@pytest.fixture(autouse=True)
def server_is_as_before(server):
    before = server.resident_bytes()
    yield
    assert server.process.poll() is None
    assert wire.request(server, "POST", INFER, GOOD).json()["outputs"][0]["data"] == [1, 2]
    if not servers.is_sanitized():
        servers.wait_until(lambda: server.resident_bytes() - before < 192 * MIB, "memory goes back", timeout=30)


# --- S11 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", POSTS)
def test_s11_chunks_are_counted_on_every_route(server, path):
    with wire.Connection(server) as connection:
        connection.send(connection.encode("POST", path, b"", {"Transfer-Encoding": "chunked"}))
        connection.send(b"1\r\nA\r\n" * 65536)
        connection.send(b"1\r\nA\r\n")
        reply = connection.receive()
        assert (reply.status, reply.error) == (400, CHUNKS)
        assert connection.is_closed_by_server()


# --- S19 over gRPC ----------------------------------------------------------------------------


def grpc_frame(message, compressed):
    return struct.pack(">BI", compressed, len(message)) + message


class Http2:
    """HTTP/2 by hand, as far as an attacker needs it."""

    HEADERS, SETTINGS, CONTINUATION, RST, WINDOW_UPDATE = 1, 4, 9, 3, 8

    def __init__(self, server, is_strange=False):
        self.credentials = {} if is_strange else server.transport.credentials
        self.socket = server.connect("grpc")
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(self.SETTINGS, 0, 0, b""))
        # From then on there is room for what a client may send.
        for kind, _, _ in self.frames():
            if kind == self.WINDOW_UPDATE:
                break
        self.socket.sendall(self.frame(self.SETTINGS, 1, 0, b""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    @staticmethod
    def header(name, value):
        """A literal header field that is not indexed."""
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def call_headers(self, extra=b""):
        return b"".join(
            self.header(name, value)
            for name, value in (
                (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
                (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
                (b"content-type", b"application/grpc"), (b"te", b"trailers"),
                *((name.lower().encode(), value.encode()) for name, value in self.credentials.items()),
            )
        ) + extra  # fmt: skip

    def send(self, data):
        self.socket.sendall(data)

    def read_to_end(self):
        """What the server sent until it closed the connection; fails when it does not."""
        received = b""
        try:
            while more := self.socket.recv(1 << 16):
                received += more
        except OSError:
            pass
        return received

    def frames(self):
        buffer = b""
        while more := self.socket.recv(1 << 16):
            buffer += more
            while len(buffer) >= 9 + (length := int.from_bytes(buffer[:3], "big")):
                yield buffer[3], int.from_bytes(buffer[5:9], "big"), buffer[9 : 9 + length]
                buffer = buffer[9 + length :]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_s19_what_grows_a_thousandfold_is_refused_over_grpc(server, encoding):
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    bomb = squeeze.compress(bytes(65 * MIB))
    with Http2(server) as connection:
        extra = connection.header(b"grpc-encoding", encoding.encode())
        connection.send(connection.frame(1, 4, 1, connection.call_headers(extra)))
        message = grpc_frame(bomb + squeeze.flush(), 1)
        for at in range(0, len(message), 16384):
            piece = message[at : at + 16384]
            connection.send(connection.frame(0, at + len(piece) == len(message), 1, piece))
        for kind, stream, payload in connection.frames():
            assert kind != Http2.RST
            if (kind, stream) == (Http2.HEADERS, 1):
                break
        else:
            pytest.fail("no answer")


@pytest.mark.parametrize("data", [
    gzip.compress(b"x" * 1000)[:-9], gzip.compress(b"x" * 1000)[:-4] + b"abcd", b"no gzip", b"",
], ids=["cut", "checksum", "noise", "empty"])  # fmt: skip
def test_s19_faulty_compression_over_grpc(server, data):
    def send():
        with server.channel() as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            call(data)

    for _ in range(3):
        with Http2(server) as connection:
            extra = connection.header(b"grpc-encoding", b"gzip")
            connection.send(connection.frame(1, 4, 1, connection.call_headers(extra)))
            connection.send(connection.frame(0, 1, 1, grpc_frame(data, 1)))
            statuses = [p for kind, stream, p in take(connection.frames(), 6) if (kind, stream) == (1, 1)]
            assert statuses
    with pytest.raises(grpc.RpcError):
        send()


def take(frames, most):
    """Frames until the end of stream 1, at most so many."""
    for _, frame in zip(range(most), frames):
        yield frame
        if frame[0] == Http2.HEADERS:
            return


# --- S23 --------------------------------------------------------------------------------------


def test_s23_headers_that_never_end(server):
    with Http2(server) as connection:
        connection.send(connection.frame(Http2.HEADERS, 0, 1, connection.call_headers()))
        more = connection.header(b"x", b"y" * 100) * 140
        try:
            for _ in range(20_000):
                connection.send(connection.frame(Http2.CONTINUATION, 0, 1, more))
        except OSError:
            return
        connection.read_to_end()


def test_s23_empty_continuations_that_never_end(server):
    with Http2(server) as connection:
        connection.send(connection.frame(Http2.HEADERS, 0, 1, connection.call_headers()))
        try:
            for _ in range(2_000):
                connection.send(connection.frame(Http2.CONTINUATION, 0, 1, b"") * 1000)
        except OSError:
            return
        connection.read_to_end()


def test_s23_rapid_resets(server):
    with Http2(server) as connection:
        try:
            for stream in range(1, 200_001, 2):
                connection.send(
                    connection.frame(Http2.HEADERS, 4, stream, connection.call_headers())
                    + connection.frame(Http2.RST, 0, stream, struct.pack(">I", 8))
                )
        except OSError:
            return
        assert connection.read_to_end()


@pytest.mark.parametrize("flood", [
    Http2.frame(Http2.SETTINGS, 0, 0, b""),
    Http2.frame(6, 0, 0, bytes(8)),  # PING
    Http2.frame(Http2.SETTINGS, 0, 0, struct.pack(">HI", 1, 4096) * 100),
], ids=["settings", "ping", "long settings"])  # fmt: skip
def test_s23_frames_that_want_answers_nobody_reads(server, flood):
    with Http2(server) as connection:
        connection.socket.settimeout(5)
        try:
            for _ in range(500):
                connection.send(flood * 500)
        except OSError:
            pass


def test_s23_idle_connections_cost_little(server):
    before = server.resident_bytes()
    sockets = [
        server.connect(service) for service in ("http", "grpc") for _ in range(400)
    ]
    head = wire.encode("POST", INFER, headers={**server.transport.credentials, "Content-Length": "60000000"})
    for raw in sockets:
        raw.sendall(head.removesuffix(b"\r\n"))
    assert wire.request(server, "POST", INFER, GOOD).status == 200
    if not servers.is_sanitized():
        assert server.resident_bytes() - before < 64 * MIB
    for raw in sockets:
        raw.close()


def test_s23_ten_million_elements_in_one_message(server):
    request = pb.ModelInferRequest(model_name="id_BYTES")
    tensor = request.inputs.add(name="INPUT0", datatype="BYTES", shape=[1, 2_000_000])
    # One million empty elements, encoded as fast as can be, again and again.
    empty = bytes([0x42, 0x00])  # InferTensorContents.bytes_contents
    contents = empty * 10_000_000
    encoded = bytes([0x2A]) + varint(len(contents)) + contents  # ModelInferRequest...contents
    inner = tensor.SerializeToString() + encoded
    message = pb.ModelInferRequest(model_name="id_BYTES").SerializeToString()
    message += bytes([0x2A]) + varint(len(inner)) + inner
    with server.channel() as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(message)
    assert refused.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


# --- S32 --------------------------------------------------------------------------------------


def test_s32_nothing_listens_but_what_was_asked_for(server):
    listening = {
        connection.laddr.port
        for connection in psutil.Process(server.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    ports = {server.metrics_port}
    if server.transport.has_ports:
        ports |= {server.http_port, server.grpc_port}
    assert listening == ports


def test_s32_nobody_changes_anything_by_default(server):
    for path in (
        "/v2/repository/models/id_FP32/load",
        "/v2/repository/models/id_FP32/unload",
        "/v2/systemsharedmemory/region/r/register",
        "/v2/cudasharedmemory/region/r/register",
    ):
        reply = wire.request(server, "POST", path, b'{"key":"/r","offset":0,"byte_size":64}')
        assert reply.status in (400, 501, 503), (path, reply)
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for call, request in (
            (stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="id_FP32")),
            (stub.RepositoryModelUnload, pb.RepositoryModelUnloadRequest(model_name="id_FP32")),
            (stub.SystemSharedMemoryRegister,
             pb.SystemSharedMemoryRegisterRequest(name="r", key="/r", byte_size=64)),
        ):  # fmt: skip
            with pytest.raises(grpc.RpcError):
                call(request)
    assert wire.request(server, "POST", INFER, GOOD).status == 200
