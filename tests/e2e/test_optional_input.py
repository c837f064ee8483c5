# SPDX-License-Identifier: Apache-2.0
"""Optional inputs: requests may leave them out, and only requests with the same ones share a batch."""

import queue

import numpy as np
import onnx as onnx_library
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from harness import models
from harness import server as servers


def write_pairs(repository):
    """Identity of two optional pairs, in batches: an output whose input is absent is zero."""
    config = models.identity_config("INT32", [1], count=2, max_batch_size=4, extra="dynamic_batching { }\n")
    config = config.replace('name: "INPUT0"', 'name: "INPUT0" optional: true')
    config = config.replace('name: "INPUT1"', 'name: "INPUT1" optional: true')
    models.write_model(repository, "pairs", config)


def make_inputs(module, values):
    made = []
    for name, value in values.items():
        made.append(module.InferInput(name, [1, 1], "INT32"))
        made[-1].set_data_from_numpy(np.array([[value]], np.int32))
    return made


@pytest.fixture
def pairs(start_server, empty_repository):
    def make(waiting=0):
        write_pairs(empty_repository)
        return start_server(empty_repository, env={"TRITONSERVER_DELAY_SCHEDULER": str(waiting)})

    return make


def send_in_order(server, requests):
    answers = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i, values in enumerate(requests):
            client.async_stream_infer("pairs", make_inputs(grpc, values), request_id=str(i))
        received = {}
        for _ in requests:
            result, error = answers.get(timeout=30 * servers.SLOWNESS)
            assert error is None, error
            received[int(result.get_response().id)] = (
                result.as_numpy("OUTPUT0").item(),
                result.as_numpy("OUTPUT1").item(),
            )
        stats = client.get_inference_statistics("pairs").model_stats[0]
        client.stop_stream()
    batches = {entry.batch_size: entry.compute_infer.count for entry in stats.batch_stats}
    return [received[i] for i in range(len(requests))], batches


def test_requests_with_the_same_inputs_share_a_batch(pairs):
    values = [{"INPUT0": 1, "INPUT1": 2}, {"INPUT0": 3, "INPUT1": 4}]
    answers, batches = send_in_order(pairs(2), values)
    assert answers == [(1, 2), (3, 4)]
    assert batches == {2: 1}


def test_requests_with_other_inputs_do_not(pairs):
    values = [{"INPUT0": 1}, {"INPUT0": 2}, {"INPUT1": 3}, {"INPUT0": 4, "INPUT1": 5}]
    answers, batches = send_in_order(pairs(4), values)
    assert answers == [(1, 0), (2, 0), (0, 3), (4, 5)]
    assert batches == {2: 1, 1: 2}


def write_scaled(repository):
    """OUTPUT = INPUT * SCALE, where SCALE is 2 unless a request brings it."""
    model = models.onnx_model(
        [helper.make_node("Mul", ["INPUT", "SCALE"], ["OUTPUT"])],
        [("INPUT", TensorProto.FLOAT, [2]), ("SCALE", TensorProto.FLOAT, [1])],
        [("OUTPUT", TensorProto.FLOAT, [2])],
        [onnx_library.numpy_helper.from_array(np.array([2], np.float32), "SCALE")],
    )
    config = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT', 'FP32', [2])}, "
        f"{models.tensor_config('SCALE', 'FP32', [1], 'optional: true')} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'FP32', [2])} ]\n"
    )
    models.write_model(repository, "scaled", config, {"1": {"model.onnx": model}})


@pytest.mark.usefixtures("onnx")
def test_onnx_model_has_its_own_value_for_an_absent_input(start_server, empty_repository):
    write_scaled(empty_repository)
    server = start_server(empty_repository)
    with http.InferenceServerClient(server.http) as client:
        given = http.InferInput("INPUT", [2], "FP32")
        given.set_data_from_numpy(np.array([1, 2], np.float32))
        scale = http.InferInput("SCALE", [1], "FP32")
        scale.set_data_from_numpy(np.array([10], np.float32))
        assert client.infer("scaled", [given]).as_numpy("OUTPUT").tolist() == [2, 4]
        assert client.infer("scaled", [given, scale]).as_numpy("OUTPUT").tolist() == [10, 20]
        with pytest.raises(InferenceServerException, match="INPUT"):
            client.infer("scaled", [scale])
