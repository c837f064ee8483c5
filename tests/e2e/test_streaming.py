# SPDX-License-Identifier: Apache-2.0
"""ModelStreamInfer through the published clients."""

import asyncio
import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as grpc_aio


def row(number):
    return np.full((1, 4), number, np.float32)


def inputs(tensor):
    made = grpc.InferInput("INPUT0", list(tensor.shape), "FP32")
    made.set_data_from_numpy(tensor)
    return [made]


@pytest.fixture
def stream(server):
    """(client, queue of (result, error)) of an open stream."""
    answers = queue.Queue()
    client = grpc.InferenceServerClient(server.grpc)
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    yield client, answers
    client.stop_stream()
    client.close()


def test_responses_come_in_the_order_of_the_requests(stream):
    client, answers = stream
    count = 300
    for i in range(count):
        client.async_stream_infer("id_FP32", inputs(row(i)), request_id=str(i))
    for i in range(count):
        result, error = answers.get(timeout=30)
        assert error is None
        assert result.get_response().id == str(i)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), row(i))


def test_every_response_is_marked_as_final(stream):
    client, answers = stream
    client.async_stream_infer("id_FP32", inputs(row(1)))
    result, error = answers.get(timeout=30)
    assert error is None
    assert result.get_response().parameters["triton_final_response"].bool_param is True


def test_an_error_does_not_end_the_stream(stream):
    client, answers = stream
    client.async_stream_infer("none", inputs(row(1)), request_id="bad")
    result, error = answers.get(timeout=30)
    assert result is None
    assert "Request for unknown model: 'none' is not found" in str(error)
    client.async_stream_infer("id_FP32", inputs(row(2)), request_id="good")
    result, error = answers.get(timeout=30)
    assert error is None
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), row(2))


def test_a_slow_model_holds_back_the_fast_one_behind_it(stream):
    client, answers = stream
    slow = grpc.InferInput("INPUT0", [1], "FP32")
    slow.set_data_from_numpy(np.zeros(1, np.float32))
    client.async_stream_infer("id_slow", [slow], request_id="slow")
    client.async_stream_infer("id_FP32", inputs(row(1)), request_id="fast")
    assert [answers.get(timeout=30)[0].get_response().id for _ in range(2)] == ["slow", "fast"]


def test_two_streams_do_not_mix(server):
    async def one(first):
        async with grpc_aio.InferenceServerClient(server.grpc) as client:

            async def requests():
                for i in range(100):
                    yield {
                        "model_name": "id_FP32",
                        "inputs": inputs(row(first + i)),
                        "request_id": str(first + i),
                    }

            number = first
            async for result, error in client.stream_infer(requests()):
                assert error is None
                assert result.get_response().id == str(number)
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), row(number))
                number += 1
            assert number == first + 100

    async def all_of_them():
        await asyncio.gather(*(one(1000 * i) for i in range(8)))

    asyncio.run(all_of_them())


def test_large_messages_in_a_stream(stream):
    client, answers = stream
    tensor = np.arange(1 << 20, dtype=np.float32).reshape(1, -1)
    for _ in range(4):
        client.async_stream_infer("id_FP32", inputs(tensor))
    for _ in range(4):
        result, error = answers.get(timeout=60)
        assert error is None
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), tensor)
