# SPDX-License-Identifier: Apache-2.0
"""What all clients together can make the server hold: refused beyond, with the reason, while others are served."""

import base64
import concurrent.futures
import contextlib
import gzip
import json
import re
import resource
import select
import socket
import subprocess
import urllib.request

import grpc
import numpy as np
import pytest
from harness import cgroup, h2, models, transports, trouble, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

MIB = 1 << 20
INFER = "/v2/models/m/infer"
GOOD = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
SLOW = 'parameters { key: "execute_delay_ms" value: { string_value: "%d" } }\n'


def budget(server, family, name):
    """The value of one budget on the metrics page."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as reply:
        text = reply.read().decode()
    found = re.search(rf'^nereid_budget_{family}{{budget="{name}"}} (\S+)$', text, re.M)
    assert found, f"no nereid_budget_{family} of {name}"
    return float(found.group(1))


def refusals(server, name):
    return budget(server, "refusals_total", name)


def used(server, name):
    return budget(server, "used", name)


def is_well(server):
    """Whether a client that does nothing wrong gets its right response."""
    try:
        reply = wire.request(server, "POST", INFER, GOOD)
    except (EOFError, OSError):
        return False
    return reply.status == 200 and reply.json()["outputs"][0]["data"] == [1, 2]


def reply_to(connection):
    """What the server says, also if it does not read on; None if it only closes."""
    try:
        return connection.receive()
    except (EOFError, OSError):
        return None


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


@pytest.fixture(params=transports.KINDS)
def transport(request):
    made = transports.KINDS[request.param]()
    yield made
    made.close()


# --- Connections ------------------------------------------------------------------------------


def test_connections_beyond_the_budget_are_refused_with_the_reason(start_server, repository, transport):
    args = ["--max-connections=20", "--max-connections-per-address=1000"]
    server = start_server(repository, args=args, transport=transport)
    held = [transport.connect_bare(server, "http", 10) for _ in range(200)]
    refused = held[-1].recv(1000).decode()
    assert refused.startswith("HTTP/1.1 503 "), refused
    assert "\r\nRetry-After: 1\r\n" in refused
    assert refused.endswith('{"error":"too many connections: the server has 20 connections, the most it accepts"}')
    assert refusals(server, "connections") > 0
    for made in held:
        made.close()
    servers.wait_until(lambda: is_well(server), "room for connections")
    assert used(server, "connections") <= 20


def test_the_last_connections_are_for_health(start_server, repository):
    server = start_server(repository, args=["--max-connections=10"])
    held = [wire.Connection(server) for _ in range(10)]
    for connection in held:
        connection.send(wire.encode("GET", "/v2/health/live"))
        assert connection.receive().status == 200
    assert wire.request(server, "GET", "/v2/health/ready").status == 200
    reply = wire.request(server, "GET", "/v2/models/m")
    assert reply.status == 503
    assert reply.error.startswith("too many connections: ")
    assert reply.headers["retry-after"] == "1"
    for connection in held:
        connection.socket.close()


def test_one_address_leaves_connections_to_others(start_server, repository):
    server = start_server(repository, args=["--max-connections-per-address=15"])

    def connect_from(address):
        return socket.create_connection(("127.0.0.1", server.http_port), 10, (address, 0))

    held = [connect_from("127.0.0.9") for _ in range(30)]
    assert b"this address has 15 connections, the most the server accepts" in held[-1].recv(1000)
    with connect_from("127.0.0.8") as other:
        other.sendall(wire.encode("POST", INFER, GOOD))
        assert b" 200 OK" in other.recv(1000)
    assert refusals(server, "connections_per_address") >= 15
    assert refusals(server, "connections") == 0
    for made in held:
        made.close()


def test_few_descriptors_are_said_and_respected(start_server, repository):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    server = start_server(repository, args=["--max-connections=5000"], before=few)
    server.wait_for_log("'ulimit -n' is 256, which is enough for 192 connections: --max-connections is 192")
    held = [socket.create_connection(("127.0.0.1", server.http_port), 10) for _ in range(600)]
    assert b" 503 " in held[-1].recv(1000)
    servers.wait_until(server.is_live, "one of the connections that are kept for health")
    for made in held:
        made.close()
    servers.wait_until(lambda: is_well(server), "room for connections")


# --- Requests in flight -----------------------------------------------------------------------


def stream_errors(server, requests):
    """The error of each response of a stream, in order."""
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        return [response.error_message for response in stub.ModelStreamInfer(iter(requests), timeout=60)]


def request_of(model, values=(1, 2)):
    request = pb.ModelInferRequest(model_name=model)
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[len(values)])
    request.raw_input_contents.append(np.array(values, np.float32).tobytes())
    return request


@contextlib.contextmanager
def in_flight(server, repository, model, count):
    """Has so many requests in flight, which are answered at the end."""
    waiting = [wire.Connection(server) for _ in range(count)]

    def send(connection, command):
        connection.send(wire.encode("POST", f"/v2/models/{model}/infer", trouble.body(command)))

    send(waiting[0], trouble.WAIT)
    with trouble.waiting_at_gate(repository, model):
        for connection in waiting[1:]:
            send(connection, trouble.NOTHING)
        servers.wait_until(lambda: used(server, "requests") == count, f"{count} requests in flight")
        yield
    for connection in waiting:
        assert connection.receive().status == 200
        connection.socket.close()


def test_requests_beyond_the_budget_are_refused_over_every_protocol(start_server, repository, transport):
    trouble.write(repository, "slow")
    args = ["--max-requests=4", "--max-requests-per-model=4", "--exit-timeout-secs=5"]
    server = start_server(repository, args=args, transport=transport)
    with in_flight(server, repository, "slow", 4):
        text = "the server has 4 requests in flight, the most that --max-requests allows"
        reply = wire.request(server, "POST", INFER, GOOD)
        assert (reply.status, reply.error, reply.headers["retry-after"]) == (503, text, "1")
        with server.channel() as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            with pytest.raises(grpc.RpcError) as raised:
                stub.ModelInfer(request_of("m"), timeout=20)
            assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
            assert raised.value.details() == text
        assert stream_errors(server, [request_of("m")]) == [text]
        assert refusals(server, "requests") == 3
    servers.wait_until(lambda: used(server, "requests") == 0, "nothing in flight")
    assert is_well(server)


def test_one_model_leaves_requests_to_others(start_server, repository):
    trouble.write(repository, "slow")
    server = start_server(repository, args=["--max-requests-per-model=3"])
    with in_flight(server, repository, "slow", 3):
        reply = wire.request(server, "POST", "/v2/models/slow/infer", trouble.body(trouble.NOTHING))
        assert reply.status == 503
        assert reply.error == "model 'slow' has 3 requests in flight, the most that --max-requests-per-model allows"
        assert is_well(server)


def test_clients_that_wait_for_each_reply_are_never_too_many(start_server, empty_repository):
    batched = models.identity_config("FP32", [-1], max_batch_size=8, extra="dynamic_batching { }\n")
    models.write_model(empty_repository, "m", batched)
    server = start_server(empty_repository, args=["--max-requests=8", "--max-requests-per-model=8"])
    count = 100_000 // servers.SLOWNESS
    load = ["-c", "8", "--requests", str(count), "--rounds", "1", "--warmup", "10ms", "--json"]
    bench = [str(servers.binary()), "bench", "m", "--url", f"http://{server.http}", *load]
    done = subprocess.run(bench, capture_output=True, text=True, timeout=120)
    (level,) = json.loads(done.stdout)["levels"]
    assert (level["requests"], level["failed"]) == (count, 0)
    assert (refusals(server, "requests"), refusals(server, "requests_per_model")) == (0, 0)


def test_a_stream_with_too_many_requests_ends(start_server, repository):
    models.write_model(repository, "slow", models.identity_config("FP32", [-1], extra=SLOW % 1000))
    server = start_server(repository, args=["--max-requests-per-connection=5"])
    with pytest.raises(grpc.RpcError) as raised:
        stream_errors(server, [request_of("slow")] * 50)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "the stream has 5 requests in progress" in raised.value.details()
    assert is_well(server)


def test_a_connection_announces_how_many_calls_it_may_have(start_server, repository):
    server = start_server(repository, args=["--max-requests-per-connection=7"])
    with server.connect("grpc") as raw:
        raw.sendall(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0))
        received = raw.recv(1000)
    size = int.from_bytes(received[:3], "big")
    settings = {
        int.from_bytes(received[at : at + 2], "big"): int.from_bytes(received[at + 2 : at + 6], "big")
        for at in range(9, 9 + size, 6)
    }
    assert settings[3] == 7


# --- Memory of requests -----------------------------------------------------------------------


def begin_body(server, sent, declared=60 * MIB):
    connection = wire.Connection(server)
    connection.send(wire.encode("POST", INFER, b"", {"Content-Length": str(declared)}))
    if sent > 0:
        connection.send(b" " * sent)
    return connection


def send_body(connection):
    """Sends a fifth of the body, and waits for what the server says to that."""
    with contextlib.suppress(OSError):
        connection.send(b" " * (12 * MIB))
    return reply_to(connection)


def test_bodies_count_as_they_arrive_and_not_as_announced(start_server, repository, transport):
    server = start_server(repository, args=[f"--max-request-memory={64 * MIB}"], transport=transport)
    before = server.resident_bytes()
    announced = [begin_body(server, 1) for _ in range(300)]
    servers.wait_until(lambda: used(server, "request_memory") >= 300 * 4096, "300 bodies begun")
    assert used(server, "request_memory") < 4 * MIB
    assert is_well(server)
    arriving = [begin_body(server, 0) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(len(arriving)) as pool:
        # All at once: a body that rests while the others arrive makes room for them, if this machine is slow.
        replies = concurrent.futures.as_completed([pool.submit(send_body, each) for each in arriving], timeout=60)
        found = (reply.result() for reply in replies)
        refused = next(reply for reply in found if reply is not None and "too slowly" not in reply.error)
        for connection in arriving:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
    assert refused.status == 503
    assert refused.error == "the server holds as many bytes of requests as --max-request-memory allows"
    assert refused.headers["retry-after"] == "1"
    assert refusals(server, "request_memory") > 0
    if not servers.is_sanitized():
        assert server.resident_bytes() - before < 120 * MIB
    assert is_well(server)
    for connection in announced + arriving:
        connection.socket.close()
    servers.wait_until(lambda: used(server, "request_memory") == 0, "the memory is free again")


def test_who_sends_nothing_makes_room_when_memory_is_short(start_server, repository):
    server = start_server(repository, args=[f"--max-request-memory={16 * MIB}"])
    stalled = [begin_body(server, 7 * MIB, declared=14 * MIB) for _ in range(2)]
    # Both together are nearly all of it. That one makes room shows that it came to that.
    refused = select.select([connection.socket for connection in stalled], [], [], 60)[0]
    assert refused
    servers.wait_until(lambda: used(server, "request_memory") <= 12 * MIB, "one of them makes room")
    for connection in stalled:
        if connection.socket in refused:
            reply = connection.receive()
            assert reply.status == 503
            assert reply.error.startswith("the request body is arriving too slowly while --max-request-memory")
        connection.socket.close()
    servers.wait_until(lambda: used(server, "request_memory") == 0, "the memory is free again")


def test_a_body_that_never_fits_is_refused_at_once(start_server, repository):
    server = start_server(repository, args=[f"--max-request-memory={8 * MIB}"])
    connection = begin_body(server, 0, declared=9 * MIB)
    reply = connection.receive()
    assert reply.status == 413
    assert reply.error == "the request body is larger than all that --max-request-memory allows"
    connection.socket.close()
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            stub.ModelInfer(request_of("m", [0] * (9 * MIB // 4)), timeout=20)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "--max-request-memory" in raised.value.details()
    assert is_well(server)


def test_messages_of_grpc_count_as_they_arrive(start_server, repository, transport):
    server = start_server(repository, args=[f"--max-request-memory={32 * MIB}"], transport=transport)
    clients = []
    for _ in range(8):
        client = h2.Connection(server)
        clients.append(client)
        client.begin_call("ModelInfer", h2.prefix(30 * MIB) + bytes(8 * MIB))
    servers.wait_until(lambda: refusals(server, "request_memory") >= 4, "most of them to be refused")
    assert sum(client.is_refused(timeout=2) for client in clients) >= 4
    assert is_well(server)
    for client in clients:
        client.close()
    servers.wait_until(lambda: used(server, "request_memory") == 0, "the memory is free again")


def test_compressed_bodies_count_as_they_are_inflated(start_server, repository):
    # What waits for the resource that another model has keeps its body, as long as the test wants.
    shared = 'instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 1 } ] } } ]\n'
    trouble.write(repository, "plug", extra=shared)
    models.write_model(repository, "held", models.identity_config("FP32", [-1]).split("instance_group")[0] + shared)
    server = start_server(repository, args=[f"--max-request-memory={32 * MIB}", "--rate-limit=execution_count"])
    values = 5 * MIB
    body, headers = wire.infer_body([("INPUT0", "FP32", [values], bytes(4 * values))])
    headers["Content-Encoding"] = "gzip"
    packed = gzip.compress(body, 1)
    with contextlib.ExitStack() as stack:
        first, plug = stack.enter_context(wire.Connection(server)), trouble.connect(server)
        stack.callback(plug.close)
        stack.enter_context(trouble.closed_gate(repository, "plug"))
        trouble.send(plug, "plug", trouble.WAIT)
        with trouble.waiting_at_gate(repository, "plug"):
            first.send(wire.encode("POST", "/v2/models/held/infer", packed, headers))
            servers.wait_until(lambda: used(server, "request_memory") >= 20 * MIB, "a body that is inflated")
            for _ in range(2):
                with wire.Connection(server) as other:
                    other.send(wire.encode("POST", INFER, packed, headers))
                    reply = other.receive()
                    assert reply.status == 503 and "--max-request-memory" in reply.error
        assert first.receive().status == 200


@pytest.mark.slow
def test_ten_thousand_connections_with_one_byte_of_a_large_body(start_server, repository):
    """As many as the descriptors of this machine allow, if those are fewer."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(10_000, (descriptors - 200) * 3 // 4)
    is_limited = not servers.is_sanitized()  # the memory of a sanitizer is not the server's
    if not is_limited:
        count = min(count, 500)  # a sanitizer marks all of the memory that is only announced
    with contextlib.ExitStack() as stack:
        join = stack.enter_context(cgroup.memory(1024 * MIB)) if is_limited else None
        server = start_server(repository, before=join)
        if is_limited:
            assert budget(server, "limit", "request_memory") == 256 * MIB
        held = [begin_body(server, 1) for _ in range(count)]
        for connection in held:
            stack.callback(connection.socket.close)
        servers.wait_until(lambda: used(server, "request_memory") >= count * 4096, "all have begun", timeout=60)
        if is_limited:
            assert server.resident_bytes() < 256 * MIB
        assert is_well(server)
        for connection in held:
            connection.socket.close()
        servers.wait_until(lambda: used(server, "request_memory") == 0, "the memory is free again", timeout=60)
        assert is_well(server)
        server.stop()


@pytest.mark.slow
def test_a_container_with_little_memory_is_respected(start_server, repository):
    """Clients that send and read as little as they can get away with, in a cgroup that kills."""
    if servers.is_sanitized():
        pytest.skip("a sanitizer's memory is not the server's")
    with cgroup.memory(400 * MIB) as join:
        server = start_server(repository, before=join)
        assert budget(server, "limit", "request_memory") == 100 * MIB
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            held = list(pool.map(lambda _: greedy(server), range(60)))
        assert server.process.poll() is None
        assert refusals(server, "request_memory") > 0
        assert is_well(server)
        for connection in held:
            connection.socket.close()
        servers.wait_until(lambda: used(server, "request_memory") == 0, "the memory is free again")
        server.stop()


def greedy(server):
    """A client that sends most of a large body and then waits."""
    connection = begin_body(server, 0)
    try:
        connection.send(b" " * (40 * MIB))
    except OSError:
        pass
    return connection


def test_an_address_space_that_is_limited_is_respected(start_server, repository):
    if servers.is_sanitized():
        pytest.skip("a sanitizer reserves terabytes")
    limit = 2048 * MIB

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    server = start_server(repository, before=little)
    assert budget(server, "limit", "request_memory") < limit / 4
    held = [greedy(server) for _ in range(30)]
    assert server.process.poll() is None
    assert is_well(server)
    for connection in held:
        connection.socket.close()


def test_a_budget_beyond_the_memory_is_said_and_reduced(start_server, repository):
    with cgroup.memory(512 * MIB) as join:
        server = start_server(repository, args=[f"--max-request-memory={1024 * MIB}"], before=join)
        server.wait_for_log("the cgroup leaves 536870912 bytes of memory, of which a budget may take half: "
                            "--max-request-memory is 268435456 instead of 1073741824")  # fmt: skip
        assert budget(server, "limit", "request_memory") == 256 * MIB
        server.stop()


# --- Slow readers -----------------------------------------------------------------------------


def test_who_does_not_read_is_closed_when_too_much_waits(start_server, repository):
    server = start_server(repository, args=[f"--max-unsent-memory={40 * MIB}"])
    values = 4 * MIB
    body, headers = wire.infer_body([("INPUT0", "FP32", [values], bytes(4 * values))])
    output = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
    output["outputs"] = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
    head = json.dumps(output).encode()
    headers["Inference-Header-Content-Length"] = str(len(head))
    held = []
    for _ in range(8):
        connection = wire.Connection(server)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(wire.encode("POST", INFER, head + bytes(4 * values), headers))
        held.append(connection)
    servers.wait_until(lambda: refusals(server, "unsent_memory") > 0, "readers that are closed")
    servers.wait_until(lambda: 0 < used(server, "unsent_memory") <= 40 * MIB, "some that are served")
    assert is_well(server)
    for connection in held:
        connection.socket.close()
    servers.wait_until(lambda: used(server, "unsent_memory") == 0, "nothing waits")


def test_who_reads_nothing_for_so_long_is_closed(start_server, repository):
    server = start_server(repository, args=["--write-timeout-secs=1"])
    values = 8 * MIB
    body, headers = wire.infer_body([("INPUT0", "FP32", [values], bytes(4 * values))], binary_data_output=True)
    head = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
    head = json.dumps({"inputs": head["inputs"], "parameters": {"binary_data_output": True}}).encode()
    headers["Inference-Header-Content-Length"] = str(len(head))
    with wire.Connection(server) as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(wire.encode("POST", INFER, head + bytes(4 * values), headers))
        servers.wait_until(lambda: used(server, "connections") <= 1, "the connection is closed")


# --- HTTP/2 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flood", [
    h2.frame(6, 0, 0, bytes(8)), h2.frame(h2.SETTINGS, 0, 0), h2.frame(2, 0, 1, bytes(5)),
], ids=["ping", "settings", "priority"])  # fmt: skip
def test_frames_of_no_call_are_limited(start_server, repository, flood):
    args = ["--max-control-frames-per-second=2", "--grpc-http2-max-ping-strikes=0"]
    server = start_server(repository, args=args)
    client = h2.Connection(server)
    try:
        client.socket.sendall(flood * 300)
        code = client.goaway_code()
    except OSError:
        code = None  # closed with what we sent unread
    client.close()
    assert code in (11, None)  # ENHANCE_YOUR_CALM
    assert refusals(server, "http2_control_frames_per_second") == 1
    assert is_well(server)


def test_resets_are_limited(start_server, repository):
    server = start_server(repository, args=["--max-resets-per-second=10"])
    client = h2.Connection(server)
    try:
        for _ in range(200):
            stream = client.begin_call("ModelInfer", b"")
            client.socket.sendall(h2.frame(h2.RST_STREAM, 0, stream, bytes([0, 0, 0, 8])))
        code = client.goaway_code()
    except OSError:
        code = None
    client.close()
    assert code in (11, None)
    assert refusals(server, "http2_resets_per_second") == 1
    assert is_well(server)


# --- Headers ----------------------------------------------------------------------------------


def test_headers_may_be_limited_more(start_server, repository):
    server = start_server(repository, args=["--max-header-bytes=2000"])
    headers = {"x": "y" * 3000}
    assert wire.request(server, "GET", "/v2/health/live", b"", headers).status == 431
    assert is_well(server)
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            stub.ServerLive(pb.ServerLiveRequest(), metadata=[("x", "y" * 3000)], timeout=20)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


# --- Loads ------------------------------------------------------------------------------------

CONFIG = {"backend": "identity", "max_batch_size": 0,
          "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
          "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}  # fmt: skip


def load_over_http(server, parameters):
    body = json.dumps({"parameters": parameters}).encode()
    reply = wire.request(server, "POST", "/v2/repository/models/m/load", body)
    return reply.error or ""


def load_over_grpc(server, parameters):
    request = pb.RepositoryModelLoadRequest(model_name="m")
    for name, value in parameters.items():
        if name == "config":
            request.parameters[name].string_param = value
        else:
            request.parameters[name].bytes_param = base64.b64decode(value)
    with server.channel() as channel:
        try:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).RepositoryModelLoad(request, timeout=60)
        except grpc.RpcError as error:
            return error.details()
    return ""


@pytest.mark.parametrize("load", [load_over_http, load_over_grpc])
def test_load_requests_may_ask_for_so_much(start_server, repository, load):
    args = ["--model-control-mode=explicit", "--load-model=m", "--max-load-instances=3",
            "--max-load-warm-up-runs=5", f"--max-load-memory={MIB}"]  # fmt: skip
    server = start_server(repository, args=args)

    def config(**changes):
        return {"config": json.dumps(CONFIG | changes)}

    def warm_up(count):
        inputs = {"INPUT0": {"data_type": "TYPE_FP32", "dims": [1], "zero_data": True}}
        return [{"name": "w", "batch_size": 1, "count": count, "inputs": inputs}]

    def groups(*counts):
        return [{"kind": "KIND_CPU", "count": count} for count in counts]

    assert load(server, config(instance_group=groups(2, 1))) == ""
    assert "asks for 4 instances, the limit is 3 (--max-load-instances)" in load(
        server, config(instance_group=groups(2, 2))
    )
    assert load(server, config(model_warmup=warm_up(5))) == ""
    assert "asks for 6 executions to warm up, the limit is 5 (--max-load-warm-up-runs)" in load(
        server, config(model_warmup=warm_up(6))
    )
    files = {"file:1/data": base64.b64encode(bytes(2 * MIB)).decode()}
    assert "the limit is 1048576 (--max-load-memory)" in load(server, config() | files)
    assert refusals(server, "load_memory") == 1
    assert used(server, "load_memory") == 0
    assert is_well(server)
