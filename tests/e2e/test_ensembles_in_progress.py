# SPDX-License-Identifier: Apache-2.0
"""Ensembles while their steps are busy, which lasts until a test opens a gate (harness/trouble.py); each test names its
sentences in docs/scheduling.md."""

import concurrent.futures
import json
import queue
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpc
from harness import models, python_models, trouble
from harness import server as servers
from harness.clients import Client
from tritonclient.utils import InferenceServerException

ONE = ("INT32", [1])


def step(model, inputs, outputs):
    def entries(kind, pairs):
        return " ".join(f'{kind} {{ key: "{key}" value: "{value}" }}' for key, value in pairs.items())

    return (f'step {{ model_name: "{model}" model_version: -1 '
            f"{entries('input_map', inputs)} {entries('output_map', outputs)} }}\n")


def at_gate(model, source, target):
    """A step of a model that waits at its gate when it is told to, and passes on what it was told."""
    return step(model, {"COMMAND": source}, {"DONE": target})


def write_ensemble(repository, name, *steps, outputs=("OUT",), extra=""):
    listed = ", ".join(models.tensor_config(output, *ONE) for output in outputs)
    models.write_model(repository, name, (
        f'platform: "ensemble"\nmax_batch_size: 0\ninput [ {models.tensor_config("IN", *ONE)} ]\n'
        f"output [ {listed} ]\nensemble_scheduling {{\n{''.join(steps)}{extra} }}\n"))


def write_chain(repository):
    """A model with a gate, and behind it one that tells how many requests have passed."""
    trouble.write(repository, "gated")
    models.write_model(repository, "counts", models.identity_config("INT32", [1]))
    write_ensemble(repository, "chain", at_gate("gated", "IN", "t"), step("counts", {"INPUT0": "t"}, {"OUTPUT0": "OUT"}))


def ask(kind, server, model, command):
    """The outputs by name."""
    client = Client(kind, server)
    try:
        result = client.infer(model, [client.input("IN", np.array([command], np.int32), "INT32")])
        return {name: result.as_numpy(name).tolist() for name in ("OUT", "LEFT", "RIGHT") if result.as_numpy(name) is not None}
    finally:
        client.close()


def wait_for_pending(server, model, count):
    pending = ("nv_inference_pending_request_count", model)
    servers.wait_until(lambda: server.scrape().get(pending, 0) == count, f"{count} requests of {model} that wait")


class Calls:
    """Requests that are on their way."""

    def __init__(self, client, model):
        self.client, self.model = client, model
        self.answers = queue.Queue()
        self.sent = []

    def send(self, command):
        tensor = grpc.InferInput("IN", [1], "INT32")
        tensor.set_data_from_numpy(np.array([command], np.int32))
        number = len(self.sent)
        self.sent.append(self.client.async_infer(
            self.model, [tensor], lambda result, error: self.answers.put((number, result, error))))

    def receive(self):
        """The results or errors of all, in the order in which they were sent."""
        got = [self.answers.get(timeout=60 * servers.SLOWNESS) for _ in self.sent]
        return [error or result.as_numpy("OUT").tolist() for _, result, error in sorted(got, key=lambda one: one[0])]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_steps_without_a_path_between_them_run_at_once(empty_repository, start_server, kind):
    """E-1: both models execute while one request is in the ensemble."""
    for name in ("left", "right"):
        trouble.write(empty_repository, name)
    steps = at_gate("left", "IN", "LEFT"), at_gate("right", "IN", "RIGHT")
    write_ensemble(empty_repository, "parallel", *steps, outputs=("LEFT", "RIGHT"))
    server = start_server(empty_repository)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, kind, server, "parallel", trouble.WAIT)
        with trouble.waiting_at_gate(empty_repository, "left"), trouble.waiting_at_gate(empty_repository, "right"):
            assert not asked.done()
        assert asked.result(timeout=60) == {"LEFT": [trouble.WAIT], "RIGHT": [trouble.WAIT]}


@pytest.mark.newer
def test_a_client_that_goes_away_stops_the_steps(empty_repository, start_server):
    """E-10: its step leaves the queue, and the next one is not started."""
    write_chain(empty_repository)
    server = start_server(empty_repository)
    with grpc.InferenceServerClient(server.grpc) as client:
        calls = Calls(client, "chain")
        calls.send(trouble.WAIT)
        with trouble.waiting_at_gate(empty_repository, "gated"):
            calls.send(trouble.NOTHING)
            wait_for_pending(server, "gated", 1)
            calls.sent[1].cancel()
            wait_for_pending(server, "gated", 0)
            failures = ("nv_inference_request_failure", "chain")
            servers.wait_until(lambda: server.scrape().get(failures, 0) == 1, "the end of the one that was cancelled")
        stays, leaves = calls.receive()
    assert stays == [trouble.WAIT]
    assert leaves.status() == "StatusCode.CANCELLED"
    assert server.scrape()["nv_inference_count", "counts"] == 1


@pytest.mark.newer
def test_a_deadline_ends_the_wait_for_a_place(empty_repository, start_server):
    """O-6, E-13: also while everybody in front of the request is still busy."""
    trouble.write(empty_repository, "gated")
    write_ensemble(empty_repository, "narrow", at_gate("gated", "IN", "OUT"), extra="max_inflight_requests: 1")
    server = start_server(empty_repository)
    tensor = {"name": "IN", "datatype": "INT32", "shape": [1], "data": [trouble.NOTHING]}
    late = urllib.request.Request(
        f"http://{server.http}/v2/models/narrow/infer", data=json.dumps({"inputs": [tensor]}).encode(),
        headers={"Request-Timeout": "100ms"})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, "http", server, "narrow", trouble.WAIT)
        with trouble.waiting_at_gate(empty_repository, "gated"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(late, timeout=60 * servers.SLOWNESS)
            assert not first.done()
        assert first.result(timeout=60 * servers.SLOWNESS) == {"OUT": [trouble.WAIT]}
    assert refused.value.code == 504
    assert "before model 'gated' could execute it" in refused.value.read().decode()


def test_a_stopping_server_finishes_requests_in_ensembles(empty_repository, start_server):
    """E-15: the models of the second step are there until the ensemble is through."""
    write_chain(empty_repository)
    server = start_server(empty_repository)
    with grpc.InferenceServerClient(server.grpc) as client:
        calls = Calls(client, "chain")
        calls.send(trouble.WAIT)
        with trouble.waiting_at_gate(empty_repository, "gated"):
            calls.send(trouble.NOTHING)
            wait_for_pending(server, "gated", 1)
            server.signal()
            server.wait_for_log("Waiting for in-flight requests to complete.")
        assert calls.receive() == [[trouble.WAIT], [trouble.NOTHING]]
    assert server.wait() == 0


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_full_queue_in_a_step_is_the_ensembles_answer(empty_repository, start_server, kind):
    """E-7, E-9"""
    trouble.write(empty_repository, "busy", extra="dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n")
    write_ensemble(empty_repository, "front", at_gate("busy", "IN", "OUT"))
    server = start_server(empty_repository)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        executing = pool.submit(ask, kind, server, "front", trouble.WAIT)
        with trouble.waiting_at_gate(empty_repository, "busy"):
            waiting = pool.submit(ask, kind, server, "front", trouble.NOTHING)
            wait_for_pending(server, "busy", 1)
            for _ in range(4):
                with pytest.raises(InferenceServerException) as caught:
                    ask(kind, server, "front", trouble.NOTHING)
                assert caught.value.message().startswith("in ensemble 'front', ")
                assert caught.value.message().endswith("Exceeds maximum queue size")
        assert executing.result(timeout=60) == {"OUT": [trouble.WAIT]}
        assert waiting.result(timeout=60) == {"OUT": [trouble.NOTHING]}


SENDS_EACH = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy():
                tensor = pb_utils.Tensor("OUTPUT0", np.array([value], np.float32))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.newer
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("shape", ["two", "three", "nested"])
def test_a_decoupled_step_behind_another_one_ends_with_limits(empty_repository, start_server, limit, shape):
    """E-13: the limit is reached as soon as the first step has sent more responses; nobody waits for himself."""
    if not servers.has_backend("python"):
        pytest.skip("no backend python here")
    for name in ("first", "second"):
        python_models.write(empty_repository, name, SENDS_EACH, extra="model_transaction_policy { decoupled: true }\n")
    models.write_model(empty_repository, "plain", models.identity_config("FP32", [-1]))

    def write(name, *parts, limited=True):
        tensors = ["X", *(f"t{i}" for i in range(1, len(parts))), "Y"]
        steps = "".join(
            step(part, {"X" if part == "inner" else "INPUT0": tensors[i]},
                 {"Y" if part == "inner" else "OUTPUT0": tensors[i + 1]})
            for i, part in enumerate(parts))
        models.write_model(empty_repository, name, (
            f'platform: "ensemble"\ninput [ {models.tensor_config("X", "FP32", [-1])} ]\n'
            f'output [ {models.tensor_config("Y", "FP32", [-1])} ]\nensemble_scheduling {{\n{steps}'
            f'{f"max_inflight_requests: {limit}" if limited else ""} }}\n'))

    if shape == "nested":
        write("inner", "second", limited=False)
    write("e", "first", *{"two": ["second"], "three": ["second", "plain"], "nested": ["inner"]}[shape])
    server = start_server(empty_repository, env=python_models.ENVIRONMENT)
    values = list(range(1, 9))

    def stream(_):
        asked = urllib.request.Request(f"http://{server.http}/v2/models/e/generate_stream",
                                       data=json.dumps({"X": values}).encode())
        with urllib.request.urlopen(asked, timeout=60 * servers.SLOWNESS) as reply:
            return [json.loads(event[6:])["Y"] for event in reply.read().decode().split("\n\n") if event]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for got in pool.map(stream, range(3)):
            assert sorted(got) == values


@pytest.mark.newer
def test_a_decoupled_model_does_not_wait_for_steps_that_need_its_resource(empty_repository, start_server):
    """E-13: it gives the resource up only when it has sent all."""
    if not servers.has_backend("python"):
        pytest.skip("no backend python here")
    limited = "instance_group [ { kind: KIND_CPU count: 1 rate_limiter { resources [ { name: \"R\" count: 1 } ] } } ]\n"
    one = (f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
           f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n{limited}")
    python_models.write(empty_repository, "first", SENDS_EACH, config=f"{one}model_transaction_policy {{ decoupled: true }}\n")
    models.write_model(empty_repository, "second", f'backend: "identity"\n{one}')
    models.write_model(empty_repository, "e", (
        f'platform: "ensemble"\ninput [ {models.tensor_config("X", "FP32", [-1])} ]\n'
        f'output [ {models.tensor_config("Y", "FP32", [-1])} ]\n'
        f'ensemble_scheduling {{ {step("first", {"INPUT0": "X"}, {"OUTPUT0": "t"})}'
        f'{step("second", {"INPUT0": "t"}, {"OUTPUT0": "Y"})} max_inflight_requests: 1 }}\n'))
    server = start_server(empty_repository, args=["--rate-limit=execution_count"], env=python_models.ENVIRONMENT)
    values = list(range(1000))  # more than a model in Python may be ahead
    asked = urllib.request.Request(f"http://{server.http}/v2/models/e/generate_stream", data=json.dumps({"X": values}).encode())
    with urllib.request.urlopen(asked, timeout=60 * servers.SLOWNESS) as reply:
        assert sorted(json.loads(event[6:])["Y"] for event in reply.read().decode().split("\n\n") if event) == values
