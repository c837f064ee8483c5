# SPDX-License-Identifier: Apache-2.0
"""Decoupled models: any number of responses to a request, their statistics, and generative sequences."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from harness import models
from harness import server as servers
from harness.decoupled import write_iterative, write_repeat, write_square

@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("decoupled")
    write_repeat(repository)
    write_square(repository)
    write_square(repository, "mixed", CUSTOM_FAIL_COUNT=2, CUSTOM_EMPTY_COUNT=1)
    write_square(repository, "slow", CUSTOM_INFER_DELAY_NS=20_000_000)
    write_iterative(repository)
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


class Stream:
    def __init__(self, server):
        self.answers = queue.Queue()
        self.client = grpc.InferenceServerClient(server.grpc)
        self.client.start_stream(callback=lambda result, error: self.answers.put((result, error)))

    def send(self, model, request_id="", **inputs):
        given = []
        for name, (values, datatype) in inputs.items():
            tensor = np.array(values, models.TYPES[datatype][1])
            given.append(grpc.InferInput(name, list(tensor.shape), datatype))
            given[-1].set_data_from_numpy(tensor)
        self.client.async_stream_infer(
            model, given, request_id=request_id, enable_empty_final_response=True
        )

    def receive(self):
        return self.answers.get(timeout=30 * servers.SLOWNESS)

    def until_final(self):
        """The responses with outputs, or errors, until the final one of a single request."""
        seen = []
        while True:
            result, error = self.receive()
            if error is not None:
                seen.append(error)
                continue
            response = result.get_response()
            if response.outputs:
                seen.append(result)
            if response.parameters["triton_final_response"].bool_param:
                return seen


@pytest.fixture
def stream(server):
    made = Stream(server)
    yield made
    made.client.stop_stream(cancel_requests=True)
    made.client.close()


def repeat(values, delays=None, wait=0):
    return {
        "IN": (values, "INT32"),
        "DELAY": ([0] * len(values) if delays is None else delays, "UINT32"),
        "WAIT": ([wait], "UINT32"),
    }


@pytest.mark.parametrize("count", [0, 1, 5])
def test_request_has_as_many_responses_as_elements(stream, count):
    stream.send("repeat", **repeat(list(range(10, 10 + count))))
    seen = stream.until_final()
    assert [int(result.as_numpy("OUT")[0]) for result in seen] == list(range(10, 10 + count))
    assert [int(result.as_numpy("IDX")[0]) for result in seen] == list(range(count))


def test_instance_is_free_before_the_last_response(stream):
    for delay_ms in (1000, 10_000):  # the first that is long enough for the machine
        stream.send("repeat", request_id="slow", **repeat([1], delays=[delay_ms]))
        stream.send("repeat", request_id="quick", **repeat([2]))
        ids = []
        while len(ids) < 2:
            result, error = stream.receive()
            assert error is None
            if result.get_response().outputs:
                ids.append(result.get_response().id)
        if ids == ["quick", "slow"]:
            break
    assert ids == ["quick", "slow"]


def test_request_that_cannot_be_served_has_one_error(stream):
    stream.send("repeat", **repeat([1, 2], delays=[0]))
    _, error = stream.receive()
    assert "expected IN and DELAY shape to match" in str(error)


def statistics(server, model):
    with grpc.InferenceServerClient(server.grpc) as client:
        return client.get_inference_statistics(model, as_json=True)["model_stats"][0]


def test_each_response_is_counted_by_its_position(server, stream):
    stream.send("mixed", IN=([5], "INT32"))
    seen = stream.until_final()
    assert sum(isinstance(one, InferenceServerException) for one in seen) == 2
    stats = statistics(server, "mixed")["response_stats"]

    def counts(position):
        return {key: int(value["count"]) for key, value in stats[position].items() if value.get("count")}

    assert set(stats) == {"0", "1", "2", "3", "4"}
    assert counts("0") == {"compute_infer": 1, "compute_output": 1, "success": 1}
    assert counts("3") == {"compute_infer": 1, "compute_output": 1, "fail": 1}
    assert counts("4") == {"compute_infer": 1, "empty_response": 1}
    with http.InferenceServerClient(server.http) as client:
        shown = client.get_inference_statistics("mixed")["model_stats"][0]["response_stats"]
    assert shown["0"]["success"]["count"] == 1 and shown["4"]["empty_response"]["count"] == 1
    assert set(shown["0"]) == {"compute_infer", "compute_output", "success", "fail", "empty_response", "cancel"}


def test_cancelled_stream_reaches_the_backend(server):
    stream = Stream(server)
    stream.send("slow", IN=([1000], "INT32"))
    stream.receive()
    stream.client.stop_stream(cancel_requests=True)
    stream.client.close()

    def cancelled():
        responses = statistics(server, "slow").get("response_stats", {})
        return any(int(one["cancel"].get("count", 0)) for one in responses.values())

    servers.wait_until(cancelled, "a cancelled response in the statistics")


def test_generative_sequence_comes_back_until_it_is_done(stream):
    stream.send("iterative", INPUT=([[3]], "INT32"))
    seen = stream.until_final()
    assert [int(result.as_numpy("OUTPUT")[0][0]) for result in seen] == [2, 1, 0]


def test_http_refuses_decoupled_models(server):
    given = http.InferInput("IN", [1], "INT32")
    given.set_data_from_numpy(np.array([1], np.int32))
    with http.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException, match="decoupled"):
            client.infer("square", [given])
