# SPDX-License-Identifier: Apache-2.0
"""Outputs of ONNX models that no operator makes."""

import concurrent.futures

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
    number, text = ("x", TensorProto.FLOAT, ["n", 2]), ("text", TensorProto.STRING, ["n", 1])
    graph = [helper.make_node("Relu", ["x"], ["y"])], [number, text], [number, ("y", *number[1:]), text]
    config = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 20000 }\n"
    models.write_model(path, "batched", config, {"1": {"model.onnx": models.onnx_model(*graph)}})
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


@pytest.mark.parametrize("outputs", [["x"], ["text"], ["x", "text"], ["text", "x", "y"]])
def test_inputs_of_a_batch_come_back_to_those_who_sent_them(server, outputs):
    def work(number):
        client = clients.Client(("http", "grpc")[number % 2], server)
        for round_number in range(5):
            value = np.float32(100 * number + round_number)
            sent = {"x": np.array([[value, -value]]), "text": np.array([[f"of {value}".encode()]], object)}
            inputs = [client.input("x", sent["x"], "FP32"), client.input("text", sent["text"], "BYTES")]
            answer = client.infer("batched", inputs, outputs=[client.output(name) for name in outputs])
            for name in outputs:
                expected = np.maximum(sent["x"], 0) if name == "y" else sent[name]
                np.testing.assert_array_equal(answer.as_numpy(name), expected)
        client.close()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
