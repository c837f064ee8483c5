# SPDX-License-Identifier: Apache-2.0
"""What one client can take from the others: memory by announcing much, a reactor's time by small messages
that become large ones."""

import json
import queue
import struct
import threading
import zlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import h2, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

MIB = 1 << 20
INFER = "/v2/models/id_FP32/infer"
DECLARED = 60 * MIB


@pytest.fixture(scope="module")
def one_reactor(require_server, repository_path):
    """All connections are on one reactor, so that every client meets every other."""
    args = ["--http-thread-count=1"]
    with servers.running(repository_path, args=args) as server:
        yield server


def test_a_body_that_is_announced_and_does_not_come_takes_no_memory(one_reactor):
    before = one_reactor.resident_bytes()
    head = wire.encode("POST", INFER, b"", {"Content-Length": str(DECLARED)})
    clients = [wire.Connection(one_reactor) for _ in range(200)]
    try:
        for client in clients:
            client.send(head)
        for client in clients:
            client.send(b"{")
        # A reactor hears what was sent earlier first.
        assert one_reactor.is_ready()
        if not servers.is_sanitized():
            assert one_reactor.resident_bytes() - before < 200 * MIB / 4
    finally:
        for client in clients:
            client.socket.close()


GRPC_HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/inference.GRPCInferenceService/ModelInfer"),
    (":authority", "x"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]


def call_head(stream, *more):
    block = b"".join(h2.header(name, value) for name, value in [*GRPC_HEADERS, *more])
    return h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block)


def test_grpc_messages_that_are_announced_and_do_not_come_take_no_memory(one_reactor):
    before = one_reactor.resident_bytes()
    connection = h2.Connection(one_reactor.grpc_port)
    prefix = struct.pack(">BI", 0, 2 * MIB + 500_000)
    frames = [call_head(2 * i + 1) + h2.frame(h2.DATA, 0, 2 * i + 1, prefix + b"\n") for i in range(300)]
    connection.socket.sendall(b"".join(frames))
    # The answer to a ping comes after all that was sent before.
    connection.socket.sendall(h2.frame(6, 0, 0, b"progress"))
    while connection.next_frame()[0] != 6:
        pass
    if not servers.is_sanitized():
        assert one_reactor.resident_bytes() - before < 300 * MIB / 4
    connection.close()


def bomb(size):
    """A request that is 65 KB on the wire and `size` bytes in memory; broken, so that nothing comes of it."""
    return zlib.compress(b"\xff" * size, 9)


def count_answers_until(server, done):
    """Small requests one after another by a client of its own, until `done`."""
    count = 0
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [1]}]})
    with wire.Connection(server) as client:
        while not done.is_set():
            assert client.request("POST", INFER, body).status == 200
            count += 1
    return count


def test_messages_that_grow_leave_others_their_turns(one_reactor):
    count = 40
    message = bomb(60 * MIB)
    connection = h2.Connection(one_reactor.grpc_port, timeout=120)
    prefix = struct.pack(">BI", 1, len(message))
    done = threading.Event()
    stream = b""
    for i in range(count):
        stream_id = 2 * i + 1
        stream += call_head(stream_id, ("grpc-encoding", "deflate"))
        data = prefix + message
        for at in range(0, len(data), h2.FRAME):
            stream += h2.frame(h2.DATA, 0, stream_id, data[at : at + h2.FRAME])
        stream += h2.frame(h2.DATA, h2.END_STREAM, stream_id)

    def attack():
        try:
            ended = 0
            while ended < count:
                kind, flags, *_ = connection.next_frame()
                ended += kind == h2.HEADERS and bool(flags & h2.END_STREAM)
        finally:
            done.set()

    connection.socket.sendall(stream)
    thread = threading.Thread(target=attack)
    thread.start()
    answers = count_answers_until(one_reactor, done)
    thread.join()
    connection.close()
    # All of them would otherwise be answered in three turns of the reactor.
    assert answers >= count


def test_a_large_json_leaves_others_their_turns(one_reactor):
    count = 8 * MIB
    # One value is missing, which shows when all have been read.
    head = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,%d],"data":[' % (count + 2)
    body = head + b"1.25," * count + b"1.25]}]}"
    done = threading.Event()
    statuses = []
    with wire.Connection(one_reactor, timeout=120) as attacker:
        attacker.send(wire.encode("POST", INFER, body)[:-1])

        def attack():
            try:
                attacker.send(body[-1:])
                statuses.append(attacker.receive().status)
            finally:
                done.set()

        thread = threading.Thread(target=attack)
        thread.start()
        answers = count_answers_until(one_reactor, done)
        thread.join()
    assert statuses[0] in (400, 500)
    # It would otherwise be read in one turn.
    assert answers > 20


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_messages_of_one_stream_keep_their_order_whoever_reads_them(one_reactor, compression):
    """Large ones with typed contents, or compressed, are read by a worker, small ones by the reactor."""
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(one_reactor.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)), compression_algorithm=compression)
        for i in range(60):
            count = 40_000 if i % 3 == 0 else 2
            tensor = grpcclient.InferInput("INPUT0", [1, count], "FP32")
            tensor.set_data_from_numpy(np.full((1, count), i, np.float32))
            client.async_stream_infer("id_FP32", [tensor], request_id=str(i))
        for i in range(60):
            result, error = answers.get(timeout=30 * servers.SLOWNESS)
            assert error is None
            assert result.get_response().id == str(i)
            assert result.as_numpy("OUTPUT0")[0, 0] == i
        client.stop_stream()


def test_large_typed_contents_are_answered_and_can_be_cancelled(one_reactor):
    count = 200_000
    request = pb.ModelInferRequest(model_name="id_FP32")
    tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, count])
    tensor.contents.fp32_contents.extend([0.5] * count)
    with grpc.insecure_channel(one_reactor.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.ModelInfer.future(request) for _ in range(8)]
        for call in calls[::2]:
            call.cancel()
        for call in calls[1::2]:
            assert len(call.result(timeout=30 * servers.SLOWNESS).raw_output_contents[0]) == 4 * count
        stream = stub.ModelStreamInfer(iter([request] * 3))
        assert [len(r.infer_response.raw_output_contents[0]) for r in stream] == [4 * count] * 3


def test_many_empty_items_of_a_message_are_refused_and_leave_no_memory(one_reactor):
    before = one_reactor.resident_bytes()
    empty = b"\x2a\x00" * (3 * MIB)
    with grpc.insecure_channel(one_reactor.grpc) as channel:
        infer = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=lambda message: message,
            response_deserializer=pb.ModelInferResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as error:
            infer(pb.ModelInferRequest(model_name="id_FP32").SerializeToString() + empty)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "more than 65536 inputs" in error.value.details()
        assert service_pb2_grpc.GRPCInferenceServiceStub(channel).ServerLive(pb.ServerLiveRequest()).live
    if not servers.is_sanitized():
        servers.wait_until(
            lambda: one_reactor.resident_bytes() - before < 64 * MIB, "memory goes back", timeout=30
        )


def test_a_body_that_makes_no_progress_is_given_up(require_server, repository_path):
    args = ["--min-body-rate=1000000"]
    with servers.running(repository_path, args=args) as server:
        with wire.Connection(server, timeout=59) as client:
            client.send(wire.encode("POST", INFER, b"", {"Content-Length": str(DECLARED)}) + b"{" * 5000)
            reply = client.receive()
            assert reply.status == 408
            assert reply.error == "the request body is arriving too slowly"
            assert client.is_closed_by_server()
