# SPDX-License-Identifier: Apache-2.0
"""grpcio against the server: what tritonclient does not do, or does not show."""

import itertools
import threading
import time

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as pb

SERVICE = "/inference.GRPCInferenceService/"


@pytest.fixture
def channel(server):
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with grpc.insecure_channel(server.grpc, options=options) as channel:
        yield channel


def infer(channel):
    return channel.unary_unary(
        SERVICE + "ModelInfer",
        request_serializer=pb.ModelInferRequest.SerializeToString,
        response_deserializer=pb.ModelInferResponse.FromString,
    )


def stream(channel):
    return channel.stream_stream(
        SERVICE + "ModelStreamInfer",
        request_serializer=pb.ModelInferRequest.SerializeToString,
        response_deserializer=pb.ModelStreamInferResponse.FromString,
    )


def raw(channel, path, data=b"", **options):
    return channel.unary_unary(path)(data, timeout=20, **options)


def request(array, model="id_FP32", request_id=""):
    message = pb.ModelInferRequest(model_name=model, id=request_id)
    message.inputs.add(name="INPUT0", datatype="FP32", shape=array.shape)
    message.raw_input_contents.append(array.tobytes())
    return message


def small(value=1.0):
    return np.full((2, 3), value, np.float32)


def error_of(call):
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value.code(), raised.value.details()


def test_unary(channel):
    array = np.random.default_rng(0).random((3, 5), np.float32)
    reply = infer(channel)(request(array, request_id="id-1"), timeout=20)
    assert reply.id == "id-1" and reply.model_name == "id_FP32" and reply.model_version == "1"
    assert reply.outputs[0].datatype == "FP32" and list(reply.outputs[0].shape) == [3, 5]
    assert reply.raw_output_contents[0] == array.tobytes()


def test_typed_contents(channel):
    message = pb.ModelInferRequest(model_name="id_INT16")
    tensor = message.inputs.add(name="INPUT0", datatype="INT16", shape=[1, 3])
    tensor.contents.int_contents[:] = [-1, 70000, 5]  # cut to 16 bits
    reply = infer(channel)(message, timeout=20)
    values = np.frombuffer(reply.raw_output_contents[0], np.int16)
    assert values.tolist() == [-1, 70000 - 65536, 5]


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(channel, compression):
    array = np.zeros((64, 1024), np.float32)
    reply = infer(channel)(request(array), timeout=20, compression=compression)
    assert reply.raw_output_contents[0] == array.tobytes()


def test_compressed_responses(start_server, repository_path):
    server = start_server(repository_path, args=["--grpc-infer-response-compression-level=high"])
    with grpc.insecure_channel(server.grpc) as channel:
        array = np.zeros((64, 1024), np.float32)
        reply = infer(channel)(request(array), timeout=20)
        assert reply.raw_output_contents[0] == array.tobytes()


def test_large_message(channel):
    array = np.arange(16 * 1024 * 1024, dtype=np.float32).reshape(1, -1)  # 64 MiB
    reply = infer(channel)(request(array), timeout=120)
    assert np.array_equal(np.frombuffer(reply.raw_output_contents[0], np.float32), array[0])


def test_many_large_messages_on_one_connection(channel):
    array = np.random.default_rng(1).random((1, 4 * 1024 * 1024), np.float32)
    calls = [infer(channel).future(request(array + i), timeout=120) for i in range(12)]
    for i, call in enumerate(calls):
        assert call.result().raw_output_contents[0] == (array + np.float32(i)).tobytes()


def test_deadline(channel):
    # While an earlier request is still executed, a deadline that cannot be met is refused with
    # UNAVAILABLE at once: the check below needs an idle instance.
    assert infer(channel)(request(np.ones(3, np.float32), "id_slow"), timeout=20)
    code, _ = error_of(lambda: infer(channel)(request(np.ones(3, np.float32), "id_slow"), timeout=0.05))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert infer(channel)(request(small()), timeout=20)


def test_cancel(channel):
    for _ in range(20):
        call = infer(channel).future(request(np.ones(3, np.float32), "id_slow"), timeout=20)
        call.cancel()
        assert call.cancelled()
    assert infer(channel)(request(small()), timeout=20)


def test_error_codes(channel):
    unknown_model = lambda: infer(channel)(request(small(), "nobody"), timeout=20)  # noqa: E731
    assert error_of(unknown_model) == (
        grpc.StatusCode.NOT_FOUND,
        "Request for unknown model: 'nobody' is not found",
    )
    short = request(small())
    short.raw_input_contents[0] = b"1234"
    assert error_of(lambda: infer(channel)(short, timeout=20))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert error_of(lambda: raw(channel, SERVICE + "Nope")) == (grpc.StatusCode.UNIMPLEMENTED, "")
    assert error_of(lambda: raw(channel, "/grpc.health.v1.Health/Watch"))[0] is (
        grpc.StatusCode.UNIMPLEMENTED
    )
    for damaged in (b"\xff\xff", b"\x0a", b"\x0a\x01\xff"):
        assert error_of(lambda damaged=damaged: raw(channel, SERVICE + "ModelInfer", damaged)) == (
            grpc.StatusCode.INTERNAL,
            "Unable to parse request",
        )


def test_error_texts_survive_any_character(channel):
    model = "nö\n%$"
    code, details = error_of(lambda: infer(channel)(request(small(), model), timeout=20))
    assert code is grpc.StatusCode.NOT_FOUND and f"'{model}'" in details


def test_health(channel):
    assert raw(channel, "/grpc.health.v1.Health/Check") == b"\x08\x01"  # SERVING


def test_reflection(channel):
    call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    list_services = b"\x3a\x00"
    symbol = b"\x22" + bytes([len("inference.ModelInferRequest")]) + b"inference.ModelInferRequest"
    missing = b"\x22\x02no"
    replies = list(call(iter([list_services, symbol, missing]), timeout=20))
    assert b"inference.GRPCInferenceService" in replies[0]
    assert b"grpc_service.proto" in replies[1] and b"model_config.proto" in replies[1]
    assert b"Symbol not found" in replies[2]


def test_stream_keeps_the_order_of_requests(channel):
    def requests():
        for i in range(40):
            slow = i % 20 == 0
            array = np.full(3, i, np.float32) if slow else small(i)
            yield request(array, "id_slow" if slow else "id_FP32", str(i))

    replies = list(stream(channel)(requests(), timeout=60))
    assert [r.infer_response.id for r in replies] == [str(i) for i in range(40)]
    for i, reply in enumerate(replies):
        assert reply.error_message == ""
        assert np.frombuffer(reply.infer_response.raw_output_contents[0], np.float32)[0] == i
        assert reply.infer_response.parameters["triton_final_response"].bool_param


def test_stream_survives_errors(channel):
    messages = [request(small(), "nobody", "a"), request(small(), request_id="b")]
    first, second = stream(channel)(iter(messages), timeout=20)
    assert first.error_message == "Request for unknown model: 'nobody' is not found"
    assert first.infer_response.id == "a"
    assert second.error_message == "" and second.infer_response.id == "b"


def test_stream_cancelled_half_way(channel):
    for _ in range(10):
        more = threading.Event()

        def requests():
            yield request(small())
            yield request(np.ones(3, np.float32), "id_slow")
            more.wait(20)

        call = stream(channel)(requests(), timeout=30)
        assert next(call).error_message == ""
        call.cancel()
        more.set()
    assert infer(channel)(request(small()), timeout=20)


def test_concurrent_calls_get_their_own_answers(channel):
    calls = [infer(channel).future(request(small(i)), timeout=60) for i in range(500)]
    for i, call in enumerate(calls):
        assert call.result().raw_output_contents[0] == small(i).tobytes()


def test_keepalive_pings_of_a_client(server):
    options = [
        ("grpc.keepalive_time_ms", 200),
        ("grpc.keepalive_timeout_ms", 5000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with grpc.insecure_channel(server.grpc, options=options) as channel:
        deadline = time.monotonic() + 1.5
        for i in itertools.count():
            assert infer(channel)(request(small(i)), timeout=20)
            if time.monotonic() > deadline:
                break


def test_calls_end_before_the_server_does(start_server, repository_path):
    server = start_server(repository_path)
    with grpc.insecure_channel(server.grpc) as channel:
        infer(channel)(request(small()), timeout=20)
        call = infer(channel).future(request(np.ones(3, np.float32), "id_slow"), timeout=20)
        # On the same connection: once this is answered, the call has arrived.
        raw(channel, SERVICE + "ServerLive")
        server.signal()
        assert call.result().raw_output_contents[0] == np.ones(3, np.float32).tobytes()
    assert server.wait() == 0
