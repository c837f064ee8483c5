# SPDX-License-Identifier: Apache-2.0
"""What the server makes of model repositories: versions, incomplete configurations, broken models."""

import json
import re

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import Client

TOLERANT = ["--exit-on-error=false"]


def index(server):
    """{(model, version): (state, reason)} of the repository index."""
    entries = wire.request(server, "POST", "/v2/repository/index").json()
    return {(e["name"], e.get("version")): (e.get("state"), e.get("reason", "")) for e in entries}


def config(server, model):
    reply = wire.request(server, "GET", f"/v2/models/{model}/config")
    assert reply.status == 200, reply
    return reply.json()


def infer(server, model, tensor, datatype="FP32", version=""):
    client = Client("grpc", server)
    result = client.infer(model, [client.input("INPUT0", tensor, datatype)], model_version=version)
    client.close()
    return result.as_numpy("OUTPUT0")


def start_tolerant(start_server, *repositories, args=()):
    server = start_server(*repositories, args=[*TOLERANT, *args], wait=False)
    wait_until_settled(server, *repositories)
    return server


def wait_until_settled(server, *repositories):
    """Until the server listens and has made up its mind about every model."""
    servers.wait_until(server.is_live, "the server is live", timeout=60)
    if servers.REFERENCE:
        return  # It does not listen before that.
    names = {path.name for repository in repositories for path in repository.iterdir() if path.is_dir()}

    def settled():
        states = {name: state for (name, _), (state, _) in index(server).items()}
        return all(states.get(name) in ("READY", "UNAVAILABLE") for name in names)

    servers.wait_until(settled, "every model is ready or has failed", timeout=60)


# --- Versions ---------------------------------------------------------------------------------


def versioned(path, name, policy, versions=("1", "2", "10")):
    models.write_model(
        path, name, models.identity_config("FP32", [-1], extra=policy), {v: {} for v in versions}
    )


@pytest.mark.parametrize(
    "policy,served",
    [
        ("", ["10"]),
        ("version_policy { latest { num_versions: 2 } }", ["2", "10"]),
        ("version_policy { latest { num_versions: 9 } }", ["1", "2", "10"]),
        ("version_policy { all { } }", ["1", "2", "10"]),
        ("version_policy { specific { versions: [ 1 ] } }", ["1"]),
        ("version_policy { specific { versions: [ 1, 10 ] } }", ["1", "10"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_version_policy(empty_repository, start_server, policy, served):
    versioned(empty_repository, "m", policy)
    server = start_server(empty_repository)
    metadata = wire.request(server, "GET", "/v2/models/m").json()
    assert sorted(metadata["versions"], key=int) == served
    for version in ("1", "2", "10"):
        reply = wire.request(server, "GET", f"/v2/models/m/versions/{version}")
        assert reply.status == (200 if version in served else 404)
    # Whoever names no version gets the highest.
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]})
    reply = wire.request(server, "POST", "/v2/models/m/infer", body)
    assert reply.json()["model_version"] == served[-1]


def test_folders_that_are_no_versions_are_passed_over(empty_repository, start_server):
    versioned(empty_repository, "m", "version_policy { all { } }", ("1", "3"))
    for name in ("abc", "003", "notes", "configs"):
        (empty_repository / "m" / name).mkdir()
    (empty_repository / "m" / "7").write_text("a file")
    (empty_repository / "README.md").write_text("not a model")
    server = start_server(empty_repository)
    assert sorted(wire.request(server, "GET", "/v2/models/m").json()["versions"]) == ["1", "3"]


@pytest.mark.newer
def test_a_model_without_versions_is_not_served(empty_repository, start_server):
    versioned(empty_repository, "good", "", versions=("1",))
    versioned(empty_repository, "empty", "", versions=())
    server = start_tolerant(start_server, empty_repository)
    states = index(server)
    assert states[("good", "1")][0] == "READY"
    reasons = " ".join(reason for (name, _), (_, reason) in states.items() if name == "empty")
    text = "at least one version must be available under the version policy of model 'empty'"
    servers.wait_until(lambda: text in reasons + server.log, "the reason")


def test_versions_of_one_model_differ(empty_repository, start_server, onnx):
    files = {
        "1": {"model.onnx": models.onnx_add_sub("FP32", ["n", 4])},
        "2": {"model.onnx": models.onnx_add_sub("FP32", ["n", 4], swap=True)},
    }
    text = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 4\nversion_policy { all { } }\n'
        f"input [ {models.tensor_config('INPUT0', 'FP32', [4])}, {models.tensor_config('INPUT1', 'FP32', [4])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [4])}, {models.tensor_config('OUTPUT1', 'FP32', [4])} ]\n"
    )
    models.write_model(empty_repository, "m", text, files)
    server = start_server(empty_repository)
    client = Client("http", server)
    a, b = np.full((1, 4), 5, np.float32), np.full((1, 4), 3, np.float32)
    for version, expected in (("1", 8), ("2", 2), ("", 2)):
        inputs = [client.input("INPUT0", a, "FP32"), client.input("INPUT1", b, "FP32")]
        result = client.infer("m", inputs, model_version=version)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full((1, 4), expected))
    client.close()


# --- Several repositories ---------------------------------------------------------------------


def test_several_repositories(tmp_path, start_server):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        models.write_model(tmp_path / name, f"model_{name}", models.identity_config("FP32", [-1]))
    server = start_server(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        tensor = np.arange(3, dtype=np.float32)
        np.testing.assert_array_equal(infer(server, f"model_{name}", tensor), tensor)


def test_a_model_in_two_repositories_is_not_served(tmp_path, start_server):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        models.write_model(tmp_path / name, "same", models.identity_config("FP32", [-1]))
        models.write_model(tmp_path / name, f"own_{name}", models.identity_config("FP32", [-1]))
    server = start_tolerant(start_server, tmp_path / "a", tmp_path / "b")
    states = index(server)
    assert states[("own_a", "1")][0] == states[("own_b", "1")][0] == "READY"
    reasons = " ".join(reason for (name, _), (_, reason) in states.items() if name == "same")
    servers.wait_until(lambda: "appears in two or more repositories" in reasons + server.log, "the reason")
    assert wire.request(server, "GET", "/v2/models/same/ready").status in (400, 404)


# --- Incomplete configurations ----------------------------------------------------------------


def onnx_file():
    return {"1": {"model.onnx": models.onnx_add_sub("FP32", ["n", 16])}}


@pytest.mark.parametrize(
    "name,text",
    [
        ("nothing", None),
        ("empty", ""),
        ("platform_only", 'platform: "onnxruntime_onnx"'),
        ("backend_only", 'backend: "onnxruntime"'),
        ("by_name.onnxruntime", None),
    ],
)
def test_a_configuration_is_completed_from_the_model(empty_repository, start_server, onnx, name, text):
    models.write_model(empty_repository, name, text, onnx_file())
    server = start_server(empty_repository)
    made = config(server, name)
    assert made["name"] == name
    assert made["platform"] == "onnxruntime_onnx" and made["backend"] == "onnxruntime"
    assert made["max_batch_size"] == 4
    assert made["dynamic_batching"]["preferred_batch_size"] == [4]
    assert {t["name"]: (t["data_type"], t["dims"]) for t in made["input"]} == {
        "INPUT0": ("TYPE_FP32", [16]),
        "INPUT1": ("TYPE_FP32", [16]),
    }
    assert {t["name"]: (t["data_type"], t["dims"]) for t in made["output"]} == {
        "OUTPUT0": ("TYPE_FP32", [16]),
        "OUTPUT1": ("TYPE_FP32", [16]),
    }


def test_default_max_batch_size_can_be_set(empty_repository, start_server, onnx):
    models.write_model(empty_repository, "m", None, onnx_file())
    server = start_server(empty_repository, args=["--backend-config=default-max-batch-size=7"])
    assert config(server, "m")["max_batch_size"] == 7


def test_what_the_configuration_says_is_kept(empty_repository, start_server, onnx):
    models.write_model(empty_repository, "m", "max_batch_size: 3\n", onnx_file())
    server = start_server(empty_repository)
    made = config(server, "m")
    assert made["max_batch_size"] == 3
    assert sorted(t["name"] for t in made["input"]) == ["INPUT0", "INPUT1"]


def test_a_model_without_batch_dimension(empty_repository, start_server, onnx):
    files = {"1": {"model.onnx": models.onnx_add_sub("FP32", [16])}}
    models.write_model(empty_repository, "m", None, files)
    server = start_server(empty_repository)
    made = config(server, "m")
    assert made["max_batch_size"] == 0
    assert made["input"][0]["dims"] == [16]
    assert "dynamic_batching" not in made


@pytest.mark.parametrize("flag", ["--disable-auto-complete-config", "--strict-model-config=true"])
def test_completion_can_be_switched_off(empty_repository, start_server, onnx, flag):
    models.write_model(empty_repository, "incomplete", None, onnx_file())
    models.copy_example(empty_repository, "simple")
    server = start_tolerant(start_server, empty_repository, args=[flag])
    states = index(server)
    assert states[("simple", "1")][0] == "READY"
    assert wire.request(server, "GET", "/v2/models/incomplete/ready").status in (400, 404)
    server.wait_for_log("incomplete")
    warning = "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."
    server.wait_for_log("Started HTTPService")  # after all of what is said about flags
    assert (warning in server.log) == ("strict" in flag)


@pytest.mark.parametrize("flags, completes", [
    (["--strict-model-config=false"], True),
    (["--strict-model-config=true", "--strict-model-config=false"], True),
    (["--disable-auto-complete-config", "--strict-model-config=false"], False),
])
def test_the_older_flag_for_completion_gives_way(empty_repository, start_server, onnx, flags, completes):
    models.write_model(empty_repository, "incomplete", None, onnx_file())
    server = start_tolerant(start_server, empty_repository, args=flags)
    assert (index(server)[("incomplete", "1")][0] == "READY") if completes else ("READY" not in server.log)
    warning = ("Warning: Overriding deprecated '--strict-model-config' from False to True in favor of "
               "'--disable-auto-complete-config'!")
    server.wait_for_log("Started HTTPService")  # after all of what is said about flags
    assert (warning in server.log) != completes


def test_default_model_filename(empty_repository, start_server, onnx):
    text = 'platform: "onnxruntime_onnx"\ndefault_model_filename: "other.onnx"\n'
    files = {"1": {"other.onnx": models.onnx_add_sub("FP32", ["n", 16])}}
    models.write_model(empty_repository, "m", text, files)
    server = start_server(empty_repository)
    assert config(server, "m")["default_model_filename"] == "other.onnx"
    assert wire.request(server, "GET", "/v2/models/m/ready").status == 200


def test_instance_groups(empty_repository, start_server):
    text = models.identity_config("FP32", [-1]).replace("count: 1", "count: 3")
    models.write_model(empty_repository, "m", text)
    server = start_server(empty_repository)
    assert config(server, "m")["instance_group"][0]["count"] == 3
    tensor = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(infer(server, "m", tensor), tensor)


def test_reshape(empty_repository, start_server):
    text = models.identity_config("FP32", [4], max_batch_size=2, tensor_extra="reshape { shape: [ 2, 2 ] }")
    models.write_model(empty_repository, "m", text)
    server = start_server(empty_repository)
    tensor = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(infer(server, "m", tensor), tensor)


# --- Broken models ----------------------------------------------------------------------------

GOOD = models.identity_config("FP32", [-1])
BROKEN = {
    "syntax": (GOOD + "input [", "syntax|parse|config.pbtxt|Expected"),
    "unknown_field": (GOOD + "no_such_field: 1", "no_such_field"),
    "unknown_backend": (GOOD.replace('"identity"', '"no_such_backend"'), "no_such_backend"),
    "other_name": ('name: "another"\n' + GOOD, "another|unexpected directory name"),
    "negative_batch": (GOOD.replace("max_batch_size: 0", "max_batch_size: -1"), "max_batch_size"),
    "bad_type": (GOOD.replace("TYPE_FP32", "TYPE_FP33"), "TYPE_FP33"),
    "no_type": (GOOD.replace("data_type: TYPE_FP32", ""), "data.?type"),
    "zero_dim": (GOOD.replace("dims: [ -1 ]", "dims: [ 0 ]"), "dim"),
    "too_negative_dim": (GOOD.replace("dims: [ -1 ]", "dims: [ -2 ]"), "dim"),
    "same_input_twice": (
        GOOD + f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n",
        "INPUT0|pairs",
    ),
    "backend_refuses": (
        GOOD.replace('"OUTPUT0" data_type: TYPE_FP32', '"OUTPUT0" data_type: TYPE_INT32'),
        "datatype to match|data.?type",
    ),
    "preferred_beyond_max": (
        GOOD.replace("max_batch_size: 0", "max_batch_size: 4")
        + "dynamic_batching { preferred_batch_size: [ 8 ] }\n",
        "preferred",
    ),
    "label_outside": (
        GOOD.replace("name: \"OUTPUT0\"", 'name: "OUTPUT0" label_filename: "../../../etc/passwd"'),
        "label|outside|No such file|failed to",
    ),
}


@pytest.fixture(scope="module")
def broken(require_server, tmp_path_factory):
    """A server with every broken model beside one good one."""
    path = tmp_path_factory.mktemp("broken")
    models.write_model(path, "good", GOOD)
    for name, (text, _) in BROKEN.items():
        if not (servers.REFERENCE and name in ("label_outside", "same_input_twice")):
            models.write_model(path, name, text)
    server = servers.start(path, args=TOLERANT, wait=False, log_dir=path.parent)
    wait_until_settled(server, path)
    yield server
    server.stop()


@pytest.mark.newer
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_says_why_in_the_index(broken, name):
    entries = [(state, reason) for (n, _), (state, reason) in index(broken).items() if n == name]
    assert entries, f"{name} is not in the index"
    for state, reason in entries:
        assert state == "UNAVAILABLE"
        assert re.search(BROKEN[name][1], reason, re.I), reason
    reply = wire.request(broken, "POST", f"/v2/models/{name}/infer", "{}")
    assert reply.status in (400, 404, 503) and reply.error


def test_the_good_model_beside_them_serves(broken):
    tensor = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(infer(broken, "good", tensor), tensor)
    assert wire.request(broken, "GET", "/v2/health/live").status == 200
    assert wire.request(broken, "GET", "/v2/health/ready").status == 400


@pytest.mark.parametrize(
    "content", [b"", b"this is no model", b"\x08\x0a" + bytes(range(200))], ids=["empty", "text", "bytes"]
)
def test_a_broken_onnx_file_fails_alone(empty_repository, start_server, onnx, content):
    models.write_model(empty_repository, "bad", None, {"1": {"model.onnx": content}})
    models.write_model(empty_repository, "good", GOOD)
    server = start_tolerant(start_server, empty_repository)
    states = index(server)
    assert states[("good", "1")][0] == "READY"
    assert all(state != "READY" for (name, _), (state, _) in states.items() if name == "bad")


def test_a_configuration_that_contradicts_the_onnx_file(empty_repository, start_server, onnx):
    text = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
        f"input [ {models.tensor_config('WRONG', 'FP32', [16])}, {models.tensor_config('INPUT1', 'FP32', [16])} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', 'FP32', [16])} ]\n"
    )
    models.write_model(empty_repository, "bad", text, onnx_file())
    server = start_tolerant(start_server, empty_repository)
    reasons = [reason for (name, _), (_, reason) in index(server).items() if name == "bad"]
    assert any("WRONG" in reason for reason in reasons), reasons


@pytest.mark.newer
def test_an_empty_repository_is_served(empty_repository, start_server):
    server = start_server(empty_repository)
    assert index(server) == {}
    assert wire.request(server, "GET", "/v2/models/none").status == 404
