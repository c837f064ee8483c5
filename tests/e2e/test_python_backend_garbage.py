# SPDX-License-Identifier: Apache-2.0
"""Objects of Python models that garbage collection ends, at any moment: what they have to tell the server
arrives, and no thread waits for itself."""

import re

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers

DECOUPLED = "model_transaction_policy { decoupled: true }\n"

COUNTS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for i in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.full(1, i, np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# Makes as many objects as the input says, each in a cycle that only garbage collection ends. The threshold
# varies, so that collections begin wherever an object is made.
CYCLES = """
import gc

class Cycle:
    def __init__(self, content):
        self.content, self.itself = content, self

class TritonPythonModel:
    def initialize(self, args):
        make = pb_utils.MetricFamily
        self.family = make("py_kept", "stays", make.GAUGE)

    def stream(self, i):
        answers = pb_utils.InferenceRequest(
            model_name="counts", requested_output_names=["OUTPUT0"],
            inputs=[pb_utils.Tensor("INPUT0", np.ones(1, np.float32))]).exec(decoupled=True)
        next(answers)
        return answers

    def metric(self, i):
        metric = self.family.Metric(labels={"number": str(i)})
        metric.set(i)
        return metric

    def families(self, i):
        family = pb_utils.MetricFamily("py_dropped_%d" % i, "goes", pb_utils.MetricFamily.GAUGE)
        return family, family.Metric(labels={"number": str(i)})

    def execute(self, requests):
        for request in requests:
            count = int(request.inputs()[0].as_numpy()[0])
            for i in range(count):
                gc.set_threshold(1 + i % 97)
                Cycle(getattr(self, KIND)(i))
            gc.set_threshold(700)
            gc.collect()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", request.inputs()[0].as_numpy())])
                for request in requests]
"""

# Drops senders in cycles, until the input is 0: then it collects what is left.
SENDERS = """
import gc

class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0

    def execute(self, requests):
        for request in requests:
            self.seen += 1
            gc.set_threshold(1 + self.seen % 97)
            cycle = [request.get_response_sender()]
            cycle.append(cycle)
            cycle[0].send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.ones(1, np.float32))]))
            if request.inputs()[0].as_numpy()[0] == 0:
                cycle[0].send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                gc.collect()
"""

KINDS = ("stream", "metric", "families")


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    python_models.write(folder, "counts", COUNTS, extra=DECOUPLED)
    python_models.write(folder, "senders", SENDERS, extra=DECOUPLED)
    for kind in KINDS:
        python_models.write(folder, kind, CYCLES.replace("KIND", repr(kind)))
    with servers.running(folder, log_dir=tmp_path_factory.mktemp("server"), env=python_models.ENVIRONMENT) as running:
        yield running


def number(value):
    tensor = httpclient.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(np.array([value], np.float32))
    return [tensor]


@pytest.mark.parametrize("kind", KINDS)
def test_a_collection_at_any_moment_hangs_nothing_and_ends_what_was_dropped(server, kind):
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for _ in range(3):
            assert client.infer(kind, number(400)).as_numpy("OUTPUT0")[0] == 400
    page = server.scrape()
    assert page[("nereid_model_requests_in_flight", "counts")] == 0
    assert [line for line in page if "py_dropped" in str(line)] == []


def test_senders_that_a_collection_ends_complete_their_requests(server):
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put(error))
        for value in [1] * 1000 + [0]:
            tensor = grpcclient.InferInput("INPUT0", [1], "FP32")
            tensor.set_data_from_numpy(np.array([value], np.float32))
            client.async_stream_infer("senders", [tensor], enable_empty_final_response=True)
        # A response and an end for each.
        assert [answers.get(timeout=60) for _ in range(2002)] == [None] * 2002
        client.stop_stream(cancel_requests=True)
