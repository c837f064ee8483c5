# SPDX-License-Identifier: Apache-2.0
"""Tensors in shared memory on both protocols and on streams, and what is refused of them. Row S07 is of
the security cases."""

import json
import threading

import numpy as np
import pytest
from harness.shared_memory import (  # noqa: F401  fixtures are used by name
    PAGE,
    both,
    clean,
    connected,
    every,
    post,
    refused,
    region,
    shared_input,
    shared_output,
    shm_server,
    status,
    streaming,
)

pytestmark = pytest.mark.newer  # the reference server knows no --allow-client-shm


@every
@pytest.mark.parametrize("register_offset", [0, 1023 * PAGE])
def test_tensors_in_regions(kind, clean, region, register_offset):
    source = region(register_offset + PAGE)
    target = region(register_offset + PAGE)
    first = np.arange(16, dtype=np.int32)
    second = np.arange(100, 116, dtype=np.int32)
    source.set(first, register_offset)
    source.set(second, register_offset + 64)
    with connected(kind, clean) as client:
        source.register(client, size=PAGE, offset=register_offset)
        target.register(client, size=PAGE, offset=register_offset)
        inputs = [
            shared_input(client, "INPUT0", [16], "INT32", source.name, 64),
            shared_input(client, "INPUT1", [16], "INT32", source.name, 64, 64),
        ]
        outputs = [
            shared_output(client, "OUTPUT0", target.name, 64, 128),
            shared_output(client, "OUTPUT1", target.name, 200, 256),
        ]
        result = client.infer("pair", inputs, outputs=outputs)
        if client.is_http:
            assert list(status(client)) == sorted([source.name, target.name])  # in this order
        for name in ("OUTPUT0", "OUTPUT1"):
            output = result.get_output(name)
            if not client.is_http:
                assert (output.datatype, list(output.shape)) == ("INT32", [16])
                assert not output.parameters
            else:
                assert output == {"name": name, "datatype": "INT32", "shape": [16]}
        np.testing.assert_array_equal(target.get(np.int32, [16], register_offset + 128), first)
        np.testing.assert_array_equal(target.get(np.int32, [16], register_offset + 256), second)


@both
def test_some_tensors_in_regions_and_some_not(kind, clean, region):
    made = region(PAGE)
    numbers = np.arange(16, dtype=np.int32)
    made.set(numbers)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [
            client.input("INPUT0", numbers + 1, "INT32"),
            shared_input(client, "INPUT1", [16], "INT32", made.name, 64),
        ]
        result = client.infer("pair", inputs)  # no outputs asked for: all of them, in the answer
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), numbers + 1)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), numbers)
        inputs.reverse()
        outputs = [shared_output(client, "OUTPUT0", made.name, 64, 512), client.output("OUTPUT1")]
        result = client.infer("pair", inputs, outputs=outputs)
        np.testing.assert_array_equal(made.get(np.int32, [16], 512), numbers + 1)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), numbers)


@both
def test_strings_in_regions(kind, clean, region):
    made = region(2 * PAGE)
    strings = np.array([b"", b"one", "zwei ü".encode(), bytes(range(256))], dtype=np.object_)
    with connected(kind, clean) as client:
        made.register(client)
        size = made.set(strings)
        inputs = [shared_input(client, "INPUT0", [4], "BYTES", made.name, size)]
        outputs = [shared_output(client, "OUTPUT0", made.name, PAGE, PAGE)]
        client.infer("text", inputs, outputs=outputs)
        assert list(made.get(np.object_, [4], PAGE)) == list(strings)


# The lengths that a client writes into a region are as bad as those it sends.
@both
@pytest.mark.parametrize(
    "data, size, why",
    [
        (b"\x05\0\0\0hell", 8, "incomplete string data"),
        (b"\xff\xff\xff\xffhell", 8, "incomplete string data"),
        (b"\x05\0", 2, "incomplete string length indicator"),
        (b"\x01\0\0\0h\x01\0\0\0e", 10, "unexpected number of string elements 2"),
        (b"", 1, "incomplete string length indicator"),
    ],
)
def test_s07_strings_in_regions_are_checked(kind, clean, region, data, size, why):
    made = region(64)
    made.set(np.frombuffer(data.ljust(16, b"\0"), dtype=np.uint8))
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [1], "BYTES", made.name, size)]
        assert why in refused(client.infer, "text", inputs)


@both
def test_s07_uses_lie_within_their_regions(kind, clean, region):
    made = region(2 * PAGE, "r")
    numbers = np.zeros(16, dtype=np.float32)
    with connected(kind, clean) as client:
        made.register(client, size=64)

        def error(size, offset, name="r"):
            as_input = shared_input(client, "INPUT0", [16], "FP32", name, size, offset)
            message = refused(client.infer, "id", [as_input])
            as_output = shared_output(client, "OUTPUT0", name, size, offset)
            plain = [client.input("INPUT0", numbers, "FP32")]
            assert refused(client.infer, "id", plain, outputs=[as_output]) == message
            return message

        assert error(64, 64) == "Invalid offset for shared memory region: 'r'"
        assert error(64, 2**63 - 1) == "Invalid offset for shared memory region: 'r'"
        assert error(64, 1) == "Invalid offset + byte size for shared memory region: 'r'"
        assert error(2**63 - 1, 0) == "Invalid offset + byte size for shared memory region: 'r'"
        assert error(64, 0, "other") == "Unable to find shared memory region: 'other'"
        if client.is_http:
            assert error(64, 2**64 - 32) == "Invalid offset for shared memory region: 'r'"
            assert error(2**64 - 32, 32) == (
                "Integer overflow detected: byte_size (18446744073709551584) + offset (32) exceeds "
                "maximum value (18446744073709551615) for region 'r'"
            )
        else:  # negative numbers are as large as can be
            assert error(64, -32) == "Invalid offset for shared memory region: 'r'"
            assert error(-32, 0) == "Invalid offset + byte size for shared memory region: 'r'"
            assert error(-32, 32).startswith("Integer overflow detected: byte_size (184467")


@both
def test_sizes_that_do_not_fit_the_tensor(kind, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 128)]
        assert (
            "input byte size mismatch for input 'INPUT0' for model 'id'. Expected 64, got 128"
            in refused(client.infer, "id", inputs)
        )
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 63)]
        assert (
            "shared memory size specified with the request for output 'OUTPUT0' (63 bytes) should "
            "be at least 64 bytes to hold the results" in refused(client.infer, "id", inputs, outputs=outputs)
        )


@both
def test_tensors_without_elements(kind, clean, region):
    made = region(64)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [0], "FP32", made.name, 0)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 64)]
        output = client.infer("id", inputs, outputs=outputs).get_output("OUTPUT0")
        assert list(output["shape"] if client.is_http else output.shape) == [0]


def infer_http(server, head, model="id"):
    reply = post(server, f"/v2/models/{model}/infer", json.dumps(head).encode())
    return reply.status, json.loads(reply.body).get("error")


# The quick and the exact reader of heads take and refuse the same.
def test_heads_over_http(clean, region):
    made = region(PAGE, "r")
    made.set(np.arange(4, dtype=np.float32))
    with connected("http", clean) as client:
        made.register(client)

    def tensor(**parameters):
        return {"name": "INPUT0", "datatype": "FP32", "shape": [4], "parameters": parameters}

    def named(**rest):
        return {f"shared_memory_{key}": value for key, value in rest.items()}

    good = tensor(**named(region="r", byte_size=16))
    assert infer_http(clean, {"inputs": [good]}) == (200, None)
    # An escape makes the exact reader read it.
    assert infer_http(clean, {"id": "\\u00e9", "inputs": [{**good, "x\n": 1}]}) == (200, None)
    unable = "Unable to parse 'shared_memory_{}': attempt to access JSON non-{} as {}"
    number = ("unsigned-integer", "unsigned-integer")
    for wrong, status, error in (
        (tensor(**named(region=1)), 500, unable.format("region", "string", "string")),
        (tensor(**named(region="r", offset=-1)), 500, unable.format("offset", *number)),
        (tensor(**named(region="r", byte_size=1.5)), 500, unable.format("byte_size", *number)),
        ({**tensor(**named(offset="x")), "data": [1, 2, 3, 4]}, 500, unable.format("offset", *number)),
        (
            {**good, "data": [1, 2, 3, 4]},
            400,
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            "'parameters', 'shared_memory_region' in 'parameters'. But set 'data' "
            "'shared_memory_region'",
        ),
    ):
        assert infer_http(clean, {"inputs": [wrong]}) == (status, error)
    # Numbers without a region mean nothing.
    plain = {**tensor(**named(offset=7, byte_size=9)), "data": [1, 2, 3, 4]}
    assert infer_http(clean, {"inputs": [plain]}) == (200, None)

    def output(**parameters):
        return {"inputs": [good], "outputs": [{"name": "OUTPUT0", "parameters": parameters}]}

    there = named(region="r", byte_size=16, offset=64)
    assert infer_http(clean, output(**there)) == (200, None)
    assert infer_http(clean, output(**there, binary_data=False)) == (200, None)
    for parameters, error in (
        ({**there, "binary_data": True}, "Output can't set both 'shared_memory_region' and 'binary_data'"),
        ({**there, "classification": 1}, "Output can't set both 'shared_memory_region' and 'classification'"),
    ):
        assert infer_http(clean, output(**parameters)) == (400, error)


def test_parameters_over_grpc(clean, region):
    made = region(PAGE, "r")
    with connected("grpc", clean) as client:
        made.register(client)
        tensor = shared_input(client, "INPUT0", [16], "FP32", "r", 64)
        parameters = tensor._get_tensor().parameters

        def error(parameter, field, value):
            kept = parameters[parameter].SerializeToString() if parameter in parameters else None
            setattr(parameters[parameter], field, value)
            message = refused(client.infer, "id", [tensor])
            del parameters[parameter]
            if kept is not None:
                parameters[parameter].ParseFromString(kept)
            return message

        for name, expected in (("region", "string"), ("offset", "int64"), ("byte_size", "int64")):
            assert error(f"shared_memory_{name}", "bool_param", True) == (
                f"invalid value type for 'shared_memory_{name}' parameter for tensor 'INPUT0', "
                f"expected {expected}_param."
            )
        del parameters["shared_memory_byte_size"]
        assert refused(client.infer, "id", [tensor]) == (
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter "
            "for tensor 'INPUT0'"
        )
        parameters["shared_memory_byte_size"].int64_param = 64
        del parameters["shared_memory_region"]
        message = refused(client.infer, "id", [tensor])
        assert message.endswith(
            "can not be specified without 'shared_memory_region' parameter for tensor 'INPUT0'"
        )
        good = shared_input(client, "INPUT0", [16], "FP32", "r", 64)
        output = client.output("OUTPUT0", class_count=2)
        output._get_tensor().parameters["shared_memory_region"].string_param = "r"
        output._get_tensor().parameters["shared_memory_byte_size"].int64_param = 64
        assert refused(client.infer, "id", [good], outputs=[output]) == (
            "output can't set both 'shared_memory_region' and 'classification'"
        )


def test_tensors_in_regions_on_a_stream(clean, region):
    count = 20
    source = region(count * 64)
    target = region(count * 64)
    numbers = np.arange(count * 16, dtype=np.float32)
    source.set(numbers)
    with connected("grpc", clean) as client:
        source.register(client)
        target.register(client)
        with streaming(client) as answers:
            for i in range(count):
                client.async_stream_infer(
                    "batched" if i % 2 else "id",
                    [shared_input(client, "INPUT0", [1, 16] if i % 2 else [16], "FP32", source.name, 64, i * 64)],
                    outputs=[shared_output(client, "OUTPUT0", target.name, 64, i * 64)],
                    request_id=str(i),
                )
            client.async_stream_infer(
                "id", [shared_input(client, "INPUT0", [16], "FP32", "gone", 64)], request_id="bad"
            )
            for i in range(count):
                result, error = answers.get(timeout=20)
                assert error is None and result.get_response().id == str(i)
            _, error = answers.get(timeout=20)
            assert error.message() == "Unable to find shared memory region: 'gone'"
        np.testing.assert_array_equal(target.get(np.float32, [count * 16]), numbers)
        client.unregister_system_shared_memory()
        assert status(client) == {}


@both
def test_batches_of_requests_in_regions(kind, clean, region):
    """Requests of several threads, each with its own piece of one region, in batches."""
    made = region(64 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)

    def work(i):
        with connected(kind, clean) as own:
            for turn in range(20):
                numbers = np.full([4], i * 1000 + turn, dtype=np.float32)
                made.set(numbers, i * PAGE)
                own.infer(
                    "batched",
                    [shared_input(own, "INPUT0", [1, 4], "FP32", made.name, 16, i * PAGE)],
                    outputs=[shared_output(own, "OUTPUT0", made.name, 16, i * PAGE + 64)],
                )
                if not np.array_equal(made.get(np.float32, [4], i * PAGE + 64), numbers):
                    wrong.append((i, turn))

    wrong = []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


@both
def test_answers_from_the_cache_go_into_regions(kind, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        for turn in range(3):  # a miss, and hits
            numbers = np.full([16], 5, dtype=np.float32) + (kind == "grpc")
            made.set(numbers)
            made.set(np.zeros(16, dtype=np.float32), 512)
            client.infer(
                "cached",
                [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
                outputs=[shared_output(client, "OUTPUT0", made.name, 64, 512)],
            )
            np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)
        short = [shared_output(client, "OUTPUT0", made.name, 32, 512)]
        message = refused(
            client.infer,
            "cached",
            [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
            outputs=short,
        )
        assert "(32 bytes) should be at least 64 bytes" in message
        stats = client.as_json("get_inference_statistics", "cached")["model_stats"][0]
        assert int(stats["inference_stats"]["cache_hit"]["count"]) >= 2


@both
@pytest.mark.parametrize("model", ["through", "through_cache"])
def test_ensembles_read_and_write_regions(kind, model, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        for turn in range(2):
            numbers = np.arange(16, dtype=np.float32) + turn
            made.set(numbers)
            client.infer(
                model,
                [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
                outputs=[shared_output(client, "OUTPUT0", made.name, 64, 512)],
            )
            np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)
        short = [shared_output(client, "OUTPUT0", made.name, 60, 512)]
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)]
        message = refused(client.infer, model, inputs, outputs=short)
        assert "(60 bytes) should be at least 64 bytes to hold the results" in message
        client.unregister_system_shared_memory()
        assert status(client) == {}


def test_a_decoupled_model_writes_every_answer_to_the_same_place(clean, region):
    made = region(PAGE)
    made.set(np.array([7, 8, 9], dtype=np.int32))
    with connected("grpc", clean) as client:
        made.register(client)
        with streaming(client) as answers:
            client.async_stream_infer(
                "repeat",
                [
                    shared_input(client, "IN", [3], "INT32", made.name, 12),
                    client.input("DELAY", np.zeros(3, dtype=np.uint32), "UINT32"),
                    client.input("WAIT", np.zeros(1, dtype=np.uint32), "UINT32"),
                ],
                outputs=[shared_output(client, "OUT", made.name, 4, 64), client.output("IDX")],
                enable_empty_final_response=True,
            )
            indices = []
            while True:
                result, error = answers.get(timeout=20)
                assert error is None
                if result.get_response().parameters["triton_final_response"].bool_param:
                    break
                indices.append(int(result.as_numpy("IDX")[0]))
            assert indices == [0, 1, 2]
            assert made.get(np.int32, [1], 64)[0] == 9
            client.unregister_system_shared_memory()
            assert status(client) == {}
