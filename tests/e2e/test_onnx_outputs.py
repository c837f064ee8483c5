# SPDX-License-Identifier: Apache-2.0
"""Outputs of ONNX models that no operator makes."""

import numpy as np
import pytest
from harness import clients, models
from harness import server as servers
from onnx import TensorProto, helper

pytestmark = pytest.mark.newer


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name, shape in (("small", [4]), ("large", [100_000])):
        tensor = ("x", TensorProto.FLOAT, shape)
        graph = [helper.make_node("Relu", ["x"], ["y"])], [tensor], [tensor, ("y", *tensor[1:])]
        models.write_model(path, name, "max_batch_size: 0\n", {"1": {"model.onnx": models.onnx_model(*graph)}})
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.mark.parametrize("model, size", [("small", 4), ("large", 100_000)])
def test_an_input_that_is_an_output_comes_back_each_time(server, model, size):
    client = clients.Client("grpc", server)
    for round_number in range(4):
        values = np.arange(size, dtype=np.float32) + round_number
        answer = client.infer(model, [client.input("x", values, "FP32")])
        np.testing.assert_array_equal(answer.as_numpy("x"), values)
    client.close()
