# SPDX-License-Identifier: Apache-2.0
"""Python models that use one array for the outputs of a whole batch, or the list of requests as a queue of what is left
to do: each client gets the answer to its own request, and the worker goes on."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

# Fills one array for each request in turn.
REUSES = """
class TritonPythonModel:
    def execute(self, requests):
        text, numbers, responses = np.empty((1, 1), object), np.empty((1, 2, 2), np.float32), []
        for request in requests:
            value = request.inputs()[0].as_numpy()[0, 0]
            text[0, 0] = "label %d of %d" % (value, len(requests))
            numbers[0] = [[value, -value], [1, 2]]
            responses.append(pb_utils.InferenceResponse(
                [pb_utils.Tensor("TEXT", text), pb_utils.Tensor("NUMBERS", numbers.transpose(0, 2, 1))]))
        return responses
"""

# What models do with the list, each without the class around it.
QUEUES = {
    "threads": """
def execute(self, requests):
    while requests:
        request = requests.pop()
        args = request.get_response_sender(), request.inputs()[0].as_numpy() * 2
        threading.Thread(target=self.send, args=args).start()
""",
    "coroutine": """
async def execute(self, requests):
    while requests:
        request = requests.pop()
        await asyncio.sleep(0)
        self.send(request.get_response_sender(), request.inputs()[0].as_numpy() * 2)
""",
    "fills": """
def execute(self, requests):
    for request in list(requests):
        self.send(request.get_response_sender(), request.inputs()[0].as_numpy() * 2)
        requests.append(None)
""",
}
SEND = """
    def send(self, sender, value):
        response = pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value)])
        sender.send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# Not decoupled: answers in order, or fails if an input is negative.
POPS = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        while requests:
            value = requests.pop(0).inputs()[0].as_numpy()
            if value[0, 0] < 0:
                raise ValueError("negative")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value * 2)]))
        return responses
"""

# Answers with as many rows as the input says, by way of DLPack.
ROWS = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            rows = np.ones((int(request.inputs()[0].as_numpy()[0]), 2, 4), np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUTPUT0", rows)]))
        return responses
"""

BATCHES = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 5000000 }\n"


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    python_models.write(folder, "reuses", REUSES, config=(
        "max_batch_size: 4\n"
        f"input [ {models.tensor_config('INPUT0', 'FP32', [1])} ]\n"
        f"output [ {models.tensor_config('TEXT', 'BYTES', [1])}, {models.tensor_config('NUMBERS', 'FP32', [2, 2])} ]\n"
        + BATCHES))
    for name, execute in QUEUES.items():
        code = "class TritonPythonModel:\n" + execute.replace("\n", "\n    ") + SEND
        python_models.write(folder, name, code, dims=(1,), max_batch_size=4,
                            extra=BATCHES + "model_transaction_policy { decoupled: true }\n")
    python_models.write(folder, "pops", POPS, dims=(1,), max_batch_size=4, extra=BATCHES)
    python_models.write(folder, "rows", ROWS, config=(
        f"input [ {models.tensor_config('INPUT0', 'FP32', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1, 2, 4])} ]\n"))
    with servers.running(folder, log_dir=tmp_path_factory.mktemp("server"), env=python_models.ENVIRONMENT) as running:
        yield running


@pytest.fixture(autouse=True)
def no_worker_ends(server):
    before = {worker.pid for worker in python_models.workers(server)}
    yield
    assert {worker.pid for worker in python_models.workers(server)} == before


def inputs(module, value):
    tensor = module.InferInput("INPUT0", list(value.shape), "FP32")
    tensor.set_data_from_numpy(value)
    return [tensor]


def ask_together(server, model, values):
    """Results and errors of requests that are one batch."""
    with httpclient.InferenceServerClient(server.http, concurrency=len(values), network_timeout=60) as client:
        waiting = [client.async_infer(model, inputs(httpclient, np.full((1, 1), v, np.float32))) for v in values]
        answers = []
        for one in waiting:
            try:
                answers.append(one.get_result())
            except InferenceServerException as error:
                answers.append(error.message())
        return answers


def test_an_array_that_serves_a_whole_batch_is_right_for_each_request(server):
    for number, answer in enumerate(ask_together(server, "reuses", range(4))):
        assert answer.as_numpy("TEXT").tolist() == [[b"label %d of 4" % number]]
        assert answer.as_numpy("NUMBERS").tolist() == [[[number, 1], [-number, 2]]]


@pytest.mark.parametrize("model", QUEUES)
def test_a_model_whose_senders_answer_may_change_the_list(server, model):
    values = [1, 2, 3, 4, 5, 6, 7, 8]
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for value in values:
            client.async_stream_infer(model, inputs(grpcclient, np.full((1, 1), value, np.float32)))
        seen = []
        for _ in values:
            result, error = answers.get(timeout=60)
            assert error is None, error
            seen.append(result.as_numpy("OUTPUT0").item())
        client.stop_stream(cancel_requests=True)
    assert sorted(seen) == [2 * value for value in values]


def test_so_may_one_that_returns_its_responses(server):
    assert [answer.as_numpy("OUTPUT0").item() for answer in ask_together(server, "pops", [1, 2, 3, 4])] == [2, 4, 6, 8]
    for answer in ask_together(server, "pops", [1, -1, 3, 4]):
        assert "ValueError: negative" in answer
    assert [answer.as_numpy("OUTPUT0").item() for answer in ask_together(server, "pops", [4, 3, 2, 1])] == [8, 6, 4, 2]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_tensor_without_elements_comes_through_dlpack(server, rows):
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer("rows", inputs(httpclient, np.full(1, rows, np.float32))).as_numpy("OUTPUT0")
    assert result.shape == (rows, 2, 4) and (result == 1).all()
