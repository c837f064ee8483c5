# SPDX-License-Identifier: Apache-2.0
"""Poll mode: what changes in the repositories is served within one period, the rest is left alone."""

import shutil

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import Client
from onnx import TensorProto, helper, numpy_helper

POLL = ["--model-control-mode=poll", "--repository-poll-secs=1"]
IDENTITY = models.identity_config("FP32", [-1])


def adder(number):
    constant = numpy_helper.from_array(np.array([number], dtype=np.float32), "number")
    return models.onnx_model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        [constant],
    )


def index(server):
    entries = wire.request(server, "POST", "/v2/repository/index").json()
    return {(e["name"], e.get("version")): (e.get("state"), e.get("reason", "")) for e in entries}


def added(client, model, version=""):
    tensor = np.zeros(2, dtype=np.float32)
    result = client.infer(model, [client.input("INPUT0", tensor, "FP32")], model_version=version)
    return result.as_numpy("OUTPUT0")[0]


def wait_for_log(server, text, count=1):
    servers.wait_until(lambda: server.log.count(text) >= count, f"{text!r} is in the log")


def test_changes_are_noticed_and_nothing_else_is_touched(empty_repository, start_server, onnx):
    all_versions = "version_policy: { all { } }"
    models.write_model(empty_repository, "m", all_versions, {"1": {"model.onnx": adder(1)}})
    models.write_model(empty_repository, "still", IDENTITY)
    server = start_server(empty_repository, args=POLL)
    client = Client("grpc", server)
    assert added(client, "m") == 1

    # A version more, a version changed, a version less.
    models.write_model(empty_repository, "m", None, {"2": {"model.onnx": adder(2)}})
    servers.wait_until(lambda: added(client, "m") == 2, "the new version serves")
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": adder(10)}})
    servers.wait_until(lambda: added(client, "m", "1") == 10, "the changed version serves")
    servers.wait_until(lambda: server.log.count("loading: m:1") == 2, "the log tells of the change")
    assert server.log.count("loading: m:2") == 1
    shutil.rmtree(empty_repository / "m" / "2")
    servers.wait_until(lambda: added(client, "m") == 10, "the version is gone")
    servers.wait_until(lambda: index(server)[("m", "2")] == ("UNAVAILABLE", "unloaded"), "it is unloaded")

    # A model more, a model less.
    models.write_model(empty_repository, "new", IDENTITY)
    servers.wait_until(lambda: client.is_model_ready("new"), "the new model serves")
    shutil.rmtree(empty_repository / "new")
    servers.wait_until(lambda: not client.is_model_ready("new"), "the model is gone")
    servers.wait_until(lambda: not any(name == "new" for name, _ in index(server)), "the index is without it")
    servers.wait_until(server.is_ready, "the server is ready")
    assert server.log.count("loading: still:1") == 1 and server.log.count("loading: m:1") == 2
    client.close()


def test_configurations_and_labels_are_noticed(empty_repository, start_server):
    config = models.identity_config("FP32", [2]).replace(
        'name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ]',
        'name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt"')
    folder = models.write_model(empty_repository, "m", config)
    (folder / "labels.txt").write_text("zero\none\n")
    server = start_server(empty_repository, args=POLL)
    client = Client("http", server)

    def label():
        tensor = np.array([0, 1], dtype=np.float32)
        result = client.infer("m", [client.input("INPUT0", tensor, "FP32")],
                              outputs=[client.output("OUTPUT0", class_count=1)])
        return result.as_numpy("OUTPUT0")[0].decode().split(":")[2]

    assert label() == "one"
    (folder / "labels.txt").write_text("null\neins\n")
    servers.wait_until(lambda: label() == "eins", "the new labels are used")
    (folder / "config.pbtxt").write_text(config + 'metric_tags { key: "k" value: "v" }')
    servers.wait_until(
        lambda: wire.request(server, "GET", "/v2/models/m/config").json().get("metric_tags") == {"k": "v"},
        "the new configuration is used")

    # One that cannot be read changes nothing, and is no reason not to be ready.
    (folder / "config.pbtxt").write_text("max_batch_size: 'x'")
    wait_for_log(server, "Poll failed for model directory 'm'")
    assert label() == "eins" and server.is_ready()
    models.write_model(empty_repository, "broken", "max_batch_size: 'x'")
    wait_for_log(server, "Poll failed for model directory 'broken'")
    assert server.is_ready()
    assert index(server)[("broken", None)][0] == "UNAVAILABLE"
    client.close()


def test_a_model_in_two_repositories_is_in_none(tmp_path, start_server):
    one, two = tmp_path / "one", tmp_path / "two"
    models.write_model(one, "m", IDENTITY)
    two.mkdir()
    server = start_server(one, two, args=POLL)
    client = Client("grpc", server)
    assert client.is_model_ready("m")
    models.write_model(two, "m", IDENTITY)
    servers.wait_until(lambda: not client.is_model_ready("m"), "neither is served")
    expected = {("m", None): ("UNAVAILABLE", "model appears in two or more repositories")}
    servers.wait_until(lambda: index(server) == expected, "the index says why")
    shutil.rmtree(one / "m")
    servers.wait_until(lambda: client.is_model_ready("m"), "the other one is served")
    client.close()


@pytest.mark.newer
def test_a_model_without_versions_is_missed_until_it_is_gone(empty_repository, start_server):
    models.write_model(empty_repository, "m", IDENTITY)
    server = start_server(empty_repository, args=POLL)
    models.write_model(empty_repository, "empty", IDENTITY, {})
    servers.wait_until(lambda: not server.is_ready(), "the model without versions is missed")
    shutil.rmtree(empty_repository / "empty")
    servers.wait_until(server.is_ready, "it is gone")


def test_a_repository_that_is_away_for_a_while_keeps_its_models(tmp_path, start_server):
    one, two = tmp_path / "one", tmp_path / "two"
    models.write_model(one, "m", IDENTITY)
    models.write_model(two, "n", IDENTITY)
    server = start_server(one, two, args=POLL)
    client = Client("grpc", server)
    one.rename(tmp_path / "away")
    wait_for_log(server, "failed to poll model repository")
    assert client.is_model_ready("m") and client.is_model_ready("n")
    (tmp_path / "away").rename(one)
    assert client.is_model_ready("m")
    client.close()


def test_the_named_configuration_comes_and_goes(empty_repository, start_server):
    folder = models.write_model(empty_repository, "m", IDENTITY)
    server = start_server(empty_repository, args=[*POLL, "--model-config-name=special"])

    def tags():
        return wire.request(server, "GET", "/v2/models/m/config").json().get("metric_tags", {})

    assert tags() == {}
    (folder / "configs").mkdir()
    (folder / "configs" / "special.pbtxt").write_text(IDENTITY + 'metric_tags { key: "k" value: "v" }')
    servers.wait_until(lambda: tags() == {"k": "v"}, "the named configuration is used")
    (folder / "configs" / "special.pbtxt").unlink()
    servers.wait_until(lambda: tags() == {}, "the other one is used again")


@pytest.mark.parametrize("flag", ["--allow-poll-model-repository=true", "--model-control-mode=POLL"])
def test_other_ways_to_ask_for_polling(empty_repository, start_server, flag):
    server = start_server(empty_repository, args=[flag, "--repository-poll-secs=1"])
    models.write_model(empty_repository, "m", IDENTITY)
    servers.wait_until(lambda: wire.request(server, "GET", "/v2/models/m/ready").status == 200, "m is served")


@pytest.mark.newer
def test_what_is_broken_is_told_once_and_again_when_it_is_broken_otherwise(empty_repository, start_server):
    models.write_model(empty_repository, "no_config", 'backend: "identity"\nnonsense')
    models.write_model(empty_repository, "no_backend", IDENTITY.replace("identity", "missing_backend"))
    models.write_model(empty_repository, "beat", IDENTITY)
    server = start_server(empty_repository, args=[*POLL, "--exit-on-error=false", "--strict-readiness=false"])

    def poll():
        # A model that comes shows that a whole look at the repository is over.
        poll.count += 1
        models.write_model(empty_repository, f"beat_{poll.count}", IDENTITY)
        servers.wait_until(lambda: index(server).get((f"beat_{poll.count}", "1"), ("",))[0] == "READY", "a poll")

    poll.count = 0
    for _ in range(3):
        poll()
    for name in ("no_config", "no_backend"):
        errors = [line for line in server.log.splitlines() if line.startswith("E") and name in line]
        assert len(errors) == len({line.split("] ", 1)[1] for line in errors}), errors
    servers.wait_until(lambda: server.log.count("loading: no_backend:1") == 1, "the log tells of one attempt")
    models.write_model(empty_repository, "no_backend", IDENTITY.replace("identity", "other_backend"))
    server.wait_for_log("other_backend")
    models.write_model(empty_repository, "no_backend", IDENTITY)
    servers.wait_until(lambda: index(server)[("no_backend", "1")][0] == "READY", "the mended model")


@pytest.mark.newer
def test_an_ensemble_that_is_lost_says_why(empty_repository, start_server):
    def write_ensemble(part):
        models.write_model(empty_repository, "e", (
            f'platform: "ensemble"\ninput [ {models.tensor_config("X", "FP32", [-1])} ]\n'
            f'output [ {models.tensor_config("Y", "FP32", [-1])} ]\nensemble_scheduling {{ step {{ model_name: "{part}" '
            'model_version: -1 input_map { key: "INPUT0" value: "X" } output_map { key: "OUTPUT0" value: "Y" } } }\n'))

    models.write_model(empty_repository, "part", IDENTITY)
    write_ensemble("part")
    server = start_server(empty_repository, args=POLL)

    def wait_for(state, reason=""):
        servers.wait_until(
            lambda: index(server)[("e", "1")][0] == state and reason in index(server)[("e", "1")][1],
            f"the ensemble is {state}: {reason!r}")

    wait_for("READY")
    why = "ensemble e contains models that are not available"
    write_ensemble("nowhere")
    wait_for("UNAVAILABLE", why)
    write_ensemble("part")
    wait_for("READY")
    shutil.rmtree(empty_repository / "part")
    wait_for("UNAVAILABLE", why)
