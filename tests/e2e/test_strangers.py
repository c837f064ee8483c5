# SPDX-License-Identifier: Apache-2.0
"""Hostile requests of strangers, who have no API key: each is refused as soon as its head is there, and costs no memory,
over every transport and on every route. What those with a key may try is in test_hostile_requests.py and its
neighbours."""

import contextlib
import gzip
import json

import grpc
import pytest
from harness import h2, transports, wire
from harness import server as servers
from harness.routes import ROUTES, RPCS
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.newer

MIB = 1 << 20
PATH = "/v2/models/id_FP32/infer"
GOOD = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
).encode()
POSTS = [path for category, routes in ROUTES.items() if category != "health"
         for method, path in routes if method == "POST"]  # fmt: skip
CALLS = [rpc for category, rpcs in RPCS.items() if category != "health" for rpc in rpcs]
# Long enough that nobody waits for the rest of it.
LARGE = {"Content-Length": str(64 * MIB)}
CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.fixture(scope="module", params=transports.KEYED)
def server(request, require_server, repository_path, tmp_path_factory):
    transport = transports.KEYED[request.param]()
    args = ["--model-control-mode=explicit", "--allow-client-shm=true", "--load-model=id_FP32"]
    with servers.running(
        repository_path, args=args, transport=transport, log_dir=tmp_path_factory.mktemp("server")
    ) as running:
        yield running
        assert transports.KEY not in running.log
    transport.close()


@pytest.fixture(autouse=True)
def server_is_as_before(server):
    before = server.resident_bytes()
    yield
    assert server.process.poll() is None
    assert wire.request(server, "POST", PATH, GOOD).json()["outputs"][0]["data"] == [1, 2]
    if not servers.is_sanitized():
        servers.wait_until(lambda: server.resident_bytes() - before < 24 * MIB, "memory goes back", timeout=30)


def stranger(server):
    return wire.Connection(server, is_strange=True)


def check_refused(reply):
    assert reply.status == 401, reply
    assert "needs an API key or a token" in reply.error
    assert reply.headers["www-authenticate"] == 'Bearer realm="nereid"'


# --- HTTP -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*POSTS, "/v2/%6dodels/id_FP32/infer"])
@pytest.mark.parametrize("fields", [LARGE, CHUNKED], ids=["large", "chunked"])
def test_s11_no_body_is_waited_for_on_any_route(server, path, fields):
    with stranger(server) as connection:
        connection.send(wire.encode("POST", path, b"1\r\n", fields))
        check_refused(connection.receive())
        assert connection.is_closed_by_server()


def test_s17_the_length_of_a_body_does_not_matter(server):
    for length in (1, 65_536, 65_537, 2**32 + 1, 2**62):
        for awaits in ({}, {"Expect": "100-continue"}):
            with stranger(server) as connection:
                connection.send(wire.encode("POST", PATH, b"", {"Content-Length": str(length), **awaits}))
                if length <= 65_536:
                    # The connection goes on after a small body, for which the server therefore waits.
                    if awaits:
                        assert connection.receive().status == 100
                    connection.send(b" " * length)
                check_refused(connection.receive())


def test_s17_who_sends_everything_all_the_same_is_told_why_not(server):
    with stranger(server) as connection:
        connection.send(wire.encode("POST", PATH, b"", LARGE))
        for _ in range(64):
            connection.send(b" " * MIB)
        check_refused(connection.receive())


def test_a_path_that_is_none_has_no_body(server):
    with stranger(server) as connection:
        connection.send(wire.encode("POST", "/v2/nothing/here", b"", LARGE))
        assert connection.receive().status == 404
        assert connection.is_closed_by_server()


@pytest.mark.parametrize("body", [
    b'{"inputs":' + b"[" * 250_000,
    b"[" * 60_000,
    gzip.compress(b" " * (60 * MIB)),
    b"\0" * 60_000,
], ids=["nested", "short", "bomb", "noise"])  # fmt: skip
def test_s18_s19_nothing_is_unpacked_or_parsed(server, body):
    with stranger(server) as connection:
        connection.send(wire.encode("POST", PATH, body, {"Content-Encoding": "gzip"}))
        check_refused(connection.receive())


def state(server):
    """What control requests could change."""
    return [wire.request(server, method, path).body for method, path in (
        ("POST", "/v2/repository/index"), ("GET", "/v2/logging"), ("GET", "/v2/trace/setting"),
        ("GET", "/v2/systemsharedmemory/status"), ("GET", "/v2/models/id_FP32/config"))]  # fmt: skip


def test_s01_to_s09_nothing_is_changed(server, tmp_path):
    before = state(server)
    file = tmp_path / "written"
    for path, body in (
        ("/v2/repository/models/..%2fetc/load", {}),
        ("/v2/repository/models/%2e%2e/load", {}),
        ("/v2/repository/models/id_BYTES/load", {}),
        ("/v2/repository/models/id_FP32/unload", {}),
        ("/v2/repository/models/id_FP32/load", {"parameters": {"config": '{"max_batch_size":-1}'}}),
        ("/v2/logging", {"log_file": str(file), "log_verbose_level": 9}),
        ("/v2/trace/setting", {"trace_file": str(file), "trace_level": ["TIMESTAMPS"]}),
        ("/v2/systemsharedmemory/region/r/register", {"key": "/r", "offset": 0, "byte_size": 64}),
        ("/v2/systemsharedmemory/unregister", {}),
    ):
        reply = wire.request(server, "POST", path, json.dumps(body).encode(), is_strange=True)
        # A path that is not well-formed is refused before anybody asks who sent it.
        assert reply.status == (400 if "%2f" in path else 401), (path, reply)
    assert state(server) == before
    assert not file.exists()


def test_s06_what_strangers_show_stays_out_of_the_log(server):
    for field in ({"Authorization": "Bearer a-guess"}, {"X-API-Key": "a-guess"}):
        reply = wire.request(server, "POST", PATH, GOOD, field, is_strange=True)
        assert reply.status == 401
    assert "a-guess" not in server.log


def test_s23_hundreds_of_bodies_at_once_cost_nothing(server):
    before = server.resident_bytes()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(stranger(server)) for _ in range(200)]
        for connection in connections:
            connection.send(wire.encode("POST", PATH, b" " * 1000, LARGE))
        for connection in connections:
            check_refused(connection.receive())
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.send(b" " * (MIB // 4))
        assert wire.request(server, "POST", PATH, GOOD).status == 200
        if not servers.is_sanitized():
            assert server.resident_bytes() - before < 24 * MIB


# --- gRPC -------------------------------------------------------------------------------------


@pytest.fixture
def channel(server):
    with server.transport.channel_of_a_stranger(server) as channel:
        yield channel


def path_of(rpc):
    return f"/inference.GRPCInferenceService/{rpc}"


@pytest.mark.parametrize("rpc", CALLS)
def test_no_message_of_a_call_is_waited_for(server, rpc):
    connection = h2.Connection(server)
    try:
        connection.begin_call(rpc, b"")
        assert connection.is_refused(30)
    finally:
        connection.close()


@pytest.mark.parametrize("rpc", CALLS)
def test_calls_are_refused_before_they_are_parsed(channel, rpc):
    call = channel.stream_stream(path_of(rpc))
    with pytest.raises(grpc.RpcError) as refused:
        list(call(iter([b"\xff" * 1000]), timeout=30 * servers.SLOWNESS))
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert "needs an API key or a token" in refused.value.details()


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_s19_s23_large_messages_cost_nothing(channel, compression):
    request = pb.ModelInferRequest(model_name="id_FP32")
    request.raw_input_contents.append(bytes(60 * MIB))
    for rpc in ("ModelInfer", "RepositoryModelLoad"):
        with pytest.raises(grpc.RpcError) as refused:
            call = channel.unary_unary(path_of(rpc))
            call(request.SerializeToString(), compression=compression, timeout=60 * servers.SLOWNESS)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_stream_does_not_begin(channel):
    request = pb.ModelInferRequest(model_name="id_FP32").SerializeToString()
    with pytest.raises(grpc.RpcError) as refused:
        next(channel.stream_stream(path_of("ModelStreamInfer"))(iter([request]), timeout=30))
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
