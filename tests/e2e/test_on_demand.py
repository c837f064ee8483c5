# SPDX-License-Identifier: Apache-2.0
"""The control mode ondemand: models are loaded when requests need them, and unloaded when others need their memory."""

import concurrent.futures
import json
import os
import queue
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models, python_models, sequences, trouble, wire
from harness import server as servers
from harness.clients import Client
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

ON_DEMAND = ["--model-control-mode=ondemand"]
IDENTITY = models.identity_config("FP32", [2])
MEBIBYTE = 1 << 20
NOT_LOADED = ("UNAVAILABLE", "not loaded: the first request loads it")
# A model that is loaded when a test opens its gate.
GATED = """
class TritonPythonModel:
    def initialize(self, args):
        open({gate!r}).read()
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [ {
  model_name: "part" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }
} ] }
"""


def write_large(repository, name, number, mebibytes=4):
    """A model that adds a number, so that its answers tell which model gave them, and that takes memory."""
    initializers = [
        numpy_helper.from_array(np.array([number], dtype=np.float32), "number"),
        numpy_helper.from_array(np.zeros(mebibytes * MEBIBYTE // 4, dtype=np.float32), "weights"),
        numpy_helper.from_array(np.array([0], dtype=np.int64), "first"),
    ]
    nodes = [
        helper.make_node("Add", ["INPUT0", "number"], ["sum"]),
        helper.make_node("Cast", ["INPUT0"], ["index"], to=TensorProto.INT64),
        helper.make_node("Mul", ["index", "first"], ["zeros"]),
        helper.make_node("Gather", ["weights", "zeros"], ["nothing"]),
        helper.make_node("Add", ["sum", "nothing"], ["OUTPUT0"]),
    ]
    tensors = [("INPUT0", TensorProto.FLOAT, [2])], [("OUTPUT0", TensorProto.FLOAT, [2])]
    models.write_model(repository, name, None, {"1": {"model.onnx": models.onnx_model(nodes, *tensors, initializers)}})


def infer(client, model, values=(1.0, 2.0), version=""):
    tensor = np.array(values, dtype=np.float32)
    result = client.infer(model, [client.input("INPUT0", tensor, "FP32")], model_version=version)
    return result.as_numpy("OUTPUT0") - tensor


def send(server, model, headers=()):
    """The reply to an inference over HTTP, with all its headers."""
    data = np.array([1, 2], np.float32).tobytes()
    body, more = wire.infer_body([("INPUT0", "FP32", [2], data)])
    return wire.request(server, "POST", f"/v2/models/{model}/infer", body, {**more, **dict(headers)})


def index(server, only_ready=False):
    """{model: (state, reason)}"""
    body = json.dumps({"ready": True}) if only_ready else ""
    entries = wire.request(server, "POST", "/v2/repository/index", body).json()
    return {e["name"]: (e.get("state"), e.get("reason", "")) for e in entries}


def loaded(server):
    return {name for name, (state, _) in index(server).items() if state == "READY"}


def metric(server, name):
    return server.scrape()[(f"nereid_on_demand_{name}", "")]


def error_of(call, *args, **kwargs):
    with pytest.raises(InferenceServerException) as caught:
        call(*args, **kwargs)
    return caught.value.message()


def write_gated(repository, name):
    gate = repository / f"{name}.gate"
    os.mkfifo(gate)
    python_models.write(repository, name, GATED.format(gate=str(gate)), dims=(2,))
    return gate


def open_gate(gate):
    with open(gate, "w"):
        pass


# --- What clients see --------------------------------------------------------------------------


def test_models_are_known_at_once_and_loaded_by_requests(empty_repository, start_server, client_of, kind):
    for name in ("a", "b"):
        models.write_model(empty_repository, name, IDENTITY)
    server = start_server(empty_repository, args=ON_DEMAND)
    client = client_of(kind, server)
    assert client.is_server_ready()
    assert index(server) == {"a": NOT_LOADED, "b": NOT_LOADED}
    # Ready means that a request would be served.
    assert client.is_model_ready("a")
    assert index(server, only_ready=True) == {}
    np.testing.assert_array_equal(infer(client, "a"), [0, 0])
    assert index(server) == {"a": ("READY", ""), "b": NOT_LOADED}
    assert index(server, only_ready=True) == {"a": ("READY", "")}
    assert "is not found" in error_of(infer, client, "unknown")
    assert "version 7 is not found" in error_of(infer, client, "b", version="7")
    assert loaded(server) == {"a", "b"}
    assert not client.is_model_ready("unknown")


def test_metadata_and_configuration_load_a_model_but_statistics_do_not(
    empty_repository, start_server, client_of, kind
):
    for name in ("a", "b", "c"):
        models.write_model(empty_repository, name, IDENTITY)
    server = start_server(empty_repository, args=ON_DEMAND)
    client = client_of(kind, server)
    assert client.as_json("get_model_metadata", "a")["name"] == "a"
    assert "name" in json.dumps(client.as_json("get_model_config", "b"))
    assert client.as_json("get_inference_statistics", "c").get("model_stats", []) == []
    assert loaded(server) == {"a", "b"}


def test_the_first_request_may_name_a_label(empty_repository, start_server, client_of, kind):
    labels = 'parameters { key: "version_labels" value { string_value: "stable=1" } }\n'
    models.write_model(empty_repository, "labelled", models.identity_config("FP32", [2], extra=labels))
    models.write_model(empty_repository, "plain", IDENTITY)
    server = start_server(empty_repository, args=ON_DEMAND)
    client = client_of(kind, server)
    np.testing.assert_array_equal(infer(client, "labelled", version="stable"), [0, 0])
    assert "stable" in error_of(infer, client, "plain", version="stable")


def test_a_new_model_is_found(empty_repository, start_server, client_of):
    server = start_server(empty_repository, args=[*ON_DEMAND, "--repository-poll-secs=1"])
    client = client_of("http", server)
    models.write_model(empty_repository, "late", IDENTITY)
    servers.wait_until(lambda: send(server, "late").status == 200, "the new model is served")
    np.testing.assert_array_equal(infer(client, "late"), [0, 0])


def test_models_are_loaded_and_unloaded_explicitly(empty_repository, start_server, client_of, kind):
    models.write_model(empty_repository, "a", IDENTITY)
    server = start_server(empty_repository, args=[*ON_DEMAND, "--load-model=a"])
    assert loaded(server) == {"a"}
    client = client_of(kind, server)
    client.unload_model("a")
    assert loaded(server) == set()
    np.testing.assert_array_equal(infer(client, "a"), [0, 0])
    client.unload_model("a")
    client.load_model("a")
    assert loaded(server) == {"a"}


def test_a_stream_waits_for_its_model_and_keeps_its_order(empty_repository, start_server):
    gate = write_gated(empty_repository, "gated")
    server = python_models.start(start_server, empty_repository, *ON_DEMAND)
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(20):
            tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
            tensor.set_data_from_numpy(np.array([i, i], np.float32))
            client.async_stream_infer("gated", [tensor], request_id=str(i))
        servers.wait_until(lambda: metric(server, "waiting_requests") > 0, "a request waits")
        # What waits holds up nobody else.
        assert client.is_server_live()
        open_gate(gate)
        for i in range(20):
            result, error = answers.get(timeout=60)
            assert error is None
            assert result.get_response().id == str(i)
            assert result.as_numpy("OUTPUT0")[0] == i
        client.stop_stream()


def test_requests_of_a_stream_that_wait_get_their_own_answers(empty_repository, start_server):
    gate = write_gated(empty_repository, "gated")
    server = python_models.start(start_server, empty_repository, *ON_DEMAND)
    answers = queue.Queue()
    versions = ["9", "", "1", "8"]
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for version in versions:
            tensor = grpcclient.InferInput("INPUT0", [2], "FP32")
            tensor.set_data_from_numpy(np.zeros(2, np.float32))
            client.async_stream_infer("gated", [tensor], model_version=version, request_id=version)
        servers.wait_until(lambda: metric(server, "waiting_requests") > 0, "a request waits")
        open_gate(gate)
        for version in versions:
            result, error = answers.get(timeout=60)
            if version in ("", "1"):
                assert error is None
                assert result.get_response().id == version
            else:
                assert f"version {version} is not found" in error.message()
        client.stop_stream()


def test_a_client_that_goes_away_while_it_waits(empty_repository, start_server, client_of):
    gate = write_gated(empty_repository, "gated")
    models.write_model(empty_repository, "other", IDENTITY)
    server = python_models.start(start_server, empty_repository, *ON_DEMAND)
    client = client_of("grpc", server)
    call = client.client.async_infer(
        "gated", [client.input("INPUT0", np.zeros(2, np.float32), "FP32")], lambda result, error: None
    )
    data = np.array([1, 2], np.float32).tobytes()
    body, headers = wire.infer_body([("INPUT0", "FP32", [2], data)])
    with wire.Connection(server) as connection:
        connection.send(wire.encode("POST", "/v2/models/gated/infer", body, headers))
        servers.wait_until(lambda: metric(server, "waiting_requests") == 2, "both wait")
        call.cancel()
    open_gate(gate)
    servers.wait_until(lambda: "gated" in loaded(server), "the model is loaded")
    np.testing.assert_array_equal(infer(client, "gated"), [0, 0])
    np.testing.assert_array_equal(infer(client, "other"), [0, 0])


def test_a_wait_ends(empty_repository, start_server, client_of):
    gate = write_gated(empty_repository, "gated")
    server = python_models.start(start_server, empty_repository, *ON_DEMAND, "--load-wait-secs=1")
    client = client_of("grpc", server)
    reply = send(server, "gated")
    assert reply.status == 503
    assert "model 'gated' is still being loaded after" in reply.json()["error"]
    assert int(reply.headers["retry-after"]) >= 1
    with pytest.raises(InferenceServerException) as caught:
        infer(client, "gated")
    assert "UNAVAILABLE" in caught.value.status()
    open_gate(gate)
    servers.wait_until(lambda: send(server, "gated").status == 200, "the model is served")
    assert metric(server, "refusals_total") >= 2


def test_all_who_wait_learn_why_a_load_failed(empty_repository, start_server, client_of, kind):
    models.write_model(empty_repository, "broken", None, {"1": {"model.onnx": b"no model"}})
    models.write_model(empty_repository, "good", IDENTITY)
    server = start_server(empty_repository, args=ON_DEMAND)

    def fail(_):
        client = Client(kind, server)
        try:
            return error_of(infer, client, "broken")
        finally:
            client.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        errors = list(pool.map(fail, range(8)))
    assert all("model 'broken' could not be loaded: load failed for model 'broken'" in e for e in errors), errors
    client = client_of(kind, server)
    np.testing.assert_array_equal(infer(client, "good"), [0, 0])
    # A model that failed does not make the server unready, but is not ready itself.
    assert client.is_server_ready()
    assert not client.is_model_ready("broken")
    reply = send(server, "broken")
    assert reply.status == 503 and int(reply.headers["retry-after"]) >= 1


def test_an_ensemble_is_loaded_with_its_parts(empty_repository, start_server, client_of, kind):
    models.write_model(empty_repository, "part", IDENTITY)
    models.write_model(empty_repository, "ensemble", ENSEMBLE)
    server = start_server(empty_repository, args=[*ON_DEMAND, "--model-idle-secs=1", "--model-min-stay-secs=0"])
    client = client_of(kind, server)
    np.testing.assert_array_equal(infer(client, "ensemble"), [0, 0])
    servers.wait_until(lambda: loaded(server) == set(), "both are unloaded")
    servers.wait_until(lambda: metric(server, "unloads_total") == 1, "an unload to be counted")
    np.testing.assert_array_equal(infer(client, "ensemble"), [0, 0])


# --- Memory ------------------------------------------------------------------------------------


measured = pytest.mark.skipif(servers.is_sanitized(), reason="a sanitizer's own memory is most of what a model takes")


@measured
@pytest.mark.usefixtures("onnx")
def test_hundreds_of_models_share_memory_for_few(empty_repository, start_server):
    count, budget = 150, 32 * MEBIBYTE
    for i in range(count):
        write_large(empty_repository, f"m{i}", i, 2)
    args = [*ON_DEMAND, f"--model-memory-budget={budget}", "--model-min-stay-secs=0", "--load-wait-secs=300"]
    server = start_server(empty_repository, args=args)
    wrong, most = [], []

    def use(seed):
        random = np.random.default_rng(seed)
        client = Client("http" if seed % 2 else "grpc", server)
        try:
            for _ in range(6):
                number = int(min(random.zipf(1.3), count)) - 1
                if list(infer(client, f"m{number}")) != [number, number]:
                    wrong.append(number)
        finally:
            client.close()
        most.append(metric(server, "memory_bytes"))

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(most) == 64
    # Only what one load takes may come on top, and nobody knows how much before.
    assert max(most) <= budget + 32 * MEBIBYTE
    page = server.scrape()
    assert page[("nereid_on_demand_unloads_total", "")] > 0
    assert page[("nereid_on_demand_refusals_total", "")] == 0
    assert 2 * MEBIBYTE <= page[("nereid_on_demand_memory_bytes", "")]
    assert page[("nereid_on_demand_budget_bytes", "")] == budget
    assert 1 <= len(loaded(server)) <= budget // (2 * MEBIBYTE)


@pytest.mark.usefixtures("onnx")
def test_one_load_serves_all_who_ask(empty_repository, start_server):
    write_large(empty_repository, "m", 5)
    server = start_server(empty_repository, args=ON_DEMAND)

    def use(seed):
        client = Client("http" if seed % 2 else "grpc", server)
        try:
            return list(infer(client, "m"))
        finally:
            client.close()

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(use, range(64))) == [[5, 5]] * 64
    assert server.log.count("loading: m:1") == 1
    assert metric(server, "loads_total") == 1


@measured
@pytest.mark.usefixtures("onnx")
def test_pinned_models_stay_and_what_cannot_fit_is_refused(empty_repository, start_server, client_of):
    write_large(empty_repository, "pinned", 1, 48)
    write_large(empty_repository, "small", 2, 2)
    write_large(empty_repository, "large", 3, 48)
    budget = 72 * MEBIBYTE
    args = [*ON_DEMAND, f"--model-memory-budget={budget}", "--pin-model=pinned", "--model-min-stay-secs=0"]
    server = start_server(empty_repository, args=args)
    assert loaded(server) == {"pinned"}
    reply = send(server, "large")
    assert reply.status == 503
    assert "model 'large' needs" in reply.json()["error"] and "--model-memory-budget" in reply.json()["error"]
    assert int(reply.headers["retry-after"]) >= 1
    servers.wait_until(lambda: loaded(server) == {"pinned"}, "the model that does not fit is unloaded")
    np.testing.assert_array_equal(infer(client_of("http", server), "small"), [2, 2])
    # It is not loaded again only to be refused again.
    assert send(server, "large").status == 503
    assert server.log.count("loading: large:1") == 1


@pytest.mark.usefixtures("onnx")
def test_a_model_with_a_sequence_or_a_request_stays(empty_repository, start_server, client_of):
    sequences.write_show(empty_repository, "sequence")
    models.write_model(empty_repository, "idle", IDENTITY)
    trouble.write(empty_repository, "busy")
    args = [*ON_DEMAND, "--model-idle-secs=1", "--model-min-stay-secs=0", "--exit-timeout-secs=1"]
    server = start_server(empty_repository, args=args)
    client = client_of("http", server)
    show = np.array([[7]], np.int32)

    def step(**flags):
        return client.infer("sequence", [client.input("INPUT", show, "INT32")], sequence_id=9, **flags)

    step(sequence_start=True)
    connection = trouble.connect(server)
    trouble.send(connection, "busy", trouble.WAIT)
    with trouble.waiting_at_gate(empty_repository, "busy") as gate:
        for _ in range(2):
            infer(client, "idle")
            servers.wait_until(lambda: "idle" not in loaded(server), "the idle model is unloaded")
        assert loaded(server) == {"sequence", "busy"}
        os.write(gate, b"x")
        assert connection.getresponse().status == 200
    # The sequence goes on, which a model that was loaded anew would refuse.
    step(sequence_end=True)
    servers.wait_until(lambda: loaded(server) == set(), "all are unloaded")
