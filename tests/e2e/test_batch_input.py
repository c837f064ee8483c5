# SPDX-License-Identifier: Apache-2.0
"""Ragged batches: requests of different sizes in one execution, and what the model is told of them."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc

from harness import stateful
from harness import server as servers

pytestmark = pytest.mark.usefixtures("onnx")


def send_together(server, tensors, model="ragged"):
    """The answers to requests that reach the server in this order, on one stream."""
    answers = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i, tensor in enumerate(tensors):
            given = grpc.InferInput("X", list(tensor.shape), "FP32")
            given.set_data_from_numpy(tensor)
            client.async_stream_infer(model, [given], request_id=str(i))
        received = {}
        for _ in tensors:
            result, error = answers.get(timeout=30 * servers.SLOWNESS)
            assert error is None, error
            received[int(result.get_response().id)] = result
        client.stop_stream()
    return [received[i] for i in range(len(tensors))]


def rows(*values):
    return np.array([values], np.float32)


@pytest.fixture
def hold(start_server, empty_repository):
    """Starts a server that runs nothing before so many requests wait."""

    def make(count):
        stateful.write_ragged(empty_repository)
        return start_server(empty_repository, env={"TRITONSERVER_DELAY_SCHEDULER": str(count)})

    return make


def executions(server):
    with grpc.InferenceServerClient(server.grpc) as client:
        return client.get_inference_statistics("ragged").model_stats[0].execution_count


def test_ragged_requests_share_an_execution(hold):
    server = hold(3)
    tensors = [rows(1, 2, 3), rows(4), rows(5, 6)]
    answers = send_together(server, tensors)
    for tensor, answer in zip(tensors, answers):
        np.testing.assert_array_equal(answer.as_numpy("Y"), 2 * tensor)
    assert executions(server) == 1


def test_model_is_told_how_the_batch_was_put_together(hold):
    answers = send_together(hold(3), [rows(1, 2, 3), rows(4), rows(5, 6)])

    def seen(name):
        return [answer.as_numpy(f"{name}_SEEN").ravel().tolist()[0] for answer in answers]

    assert seen("COUNT") == [3, 1, 2]
    assert seen("SUM") == [3, 4, 6]
    assert seen("OFFSET") == [0, 3, 4]
    assert seen("MAX") == [3, 3, 3]
    assert seen("SHAPES") == [3, 1, 2]
    assert seen("FLAT") == [3, 1, 2]


def test_single_request_is_a_batch_too(hold):
    server = hold(0)
    (answer,) = send_together(server, [rows(1, 2)])
    np.testing.assert_array_equal(answer.as_numpy("Y"), [[2, 4]])
    assert answer.as_numpy("COUNT_SEEN").tolist() == [[2]]
    (empty,) = send_together(server, [np.empty((1, 0), np.float32)])
    assert empty.as_numpy("Y").shape == (1, 0)


def test_model_that_cannot_be_ragged_is_refused(start_server, empty_repository):
    stateful.write_ragged(empty_repository)
    config = empty_repository / "ragged" / "config.pbtxt"
    config.write_text(config.read_text().replace('target_name: "COUNT"', 'target_name: "NOBODY"'))
    server = start_server(empty_repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(server.is_live, "a live server")
    servers.wait_until(lambda: "unexpected inference input 'NOBODY'" in server.log, "the refusal")
