# SPDX-License-Identifier: Apache-2.0
"""The model repository extension: loading and unloading on demand, over both protocols."""

import base64
import contextlib
import json
import pathlib
import threading
import uuid

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import models, python_models, trouble, wire
from harness import server as servers
from harness.clients import Client
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

EXPLICIT = ["--model-control-mode=explicit"]
IDENTITY = models.identity_config("FP32", [2])
ENSEMBLE = """
platform: "ensemble"
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] }} ]
ensemble_scheduling {{ step [ {{
  model_name: "{part}" model_version: -1
  input_map {{ key: "INPUT0" value: "INPUT0" }} output_map {{ key: "OUTPUT0" value: "OUTPUT0" }}
}} ] }}
"""


def adder(number):
    """An ONNX model that adds a number, which so tells whose answer it is."""
    constant = numpy_helper.from_array(np.array([number], dtype=np.float32), "number")
    return models.onnx_model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", TensorProto.FLOAT, [2])],
        [("OUTPUT0", TensorProto.FLOAT, [2])],
        [constant],
    )


def infer(client, model, values=(1.0, 2.0), version=""):
    tensor = np.array(values, dtype=np.float32)
    result = client.infer(model, [client.input("INPUT0", tensor, "FP32")], model_version=version)
    return result.as_numpy("OUTPUT0") - tensor


def index(server, only_ready=False):
    """{(model, version): (state, reason)}"""
    body = json.dumps({"ready": True}) if only_ready else ""
    entries = wire.request(server, "POST", "/v2/repository/index", body).json()
    return {(e["name"], e.get("version")): (e.get("state"), e.get("reason", "")) for e in entries}


def wait_for_state(server, model, version, state, reason=None):
    def reached():
        entry = index(server).get((model, version), (None, None))
        return entry[0] == state and (reason is None or entry[1] == reason)

    servers.wait_until(reached, f"{model}:{version} is {state}")


def error_of(call, *args, **kwargs):
    with pytest.raises(InferenceServerException) as caught:
        call(*args, **kwargs)
    return caught.value.message()


# --- Loading and unloading ---------------------------------------------------------------------


def test_models_come_and_go_as_they_are_asked_for(empty_repository, start_server, client_of, kind):
    for name in ("a", "b"):
        models.write_model(empty_repository, name, IDENTITY)
    server = start_server(empty_repository, args=EXPLICIT)
    client = client_of(kind, server)
    assert index(server) == {("a", None): (None, ""), ("b", None): (None, "")}
    assert not client.is_model_ready("a")

    client.load_model("a")
    assert client.is_model_ready("a") and client.is_server_ready()
    np.testing.assert_array_equal(infer(client, "a"), [0, 0])
    assert index(server)[("a", "1")] == ("READY", "")
    assert index(server)[("b", None)] == (None, "")
    assert index(server, only_ready=True) == {("a", "1"): ("READY", "")}
    client.load_model("a")  # nothing changed: nothing is done

    client.unload_model("a")
    wait_for_state(server, "a", "1", "UNAVAILABLE", "unloaded")
    server.wait_for_log("successfully unloaded 'a' version 1")
    assert server.log.count("loading: a:1") == 1
    assert not client.is_model_ready("a") and client.is_server_ready()
    assert "has no available versions" in error_of(infer, client, "a")
    assert "version 1 is not at ready state" in error_of(infer, client, "a", version="1")
    client.unload_model("a")
    client.unload_model("never seen")
    client.load_model("a")
    np.testing.assert_array_equal(infer(client, "a"), [0, 0])


def test_the_index_over_grpc(empty_repository, start_server, client_of):
    models.write_model(empty_repository, "m", IDENTITY)
    models.write_model(empty_repository, "other", IDENTITY)
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    client = client_of("grpc", server)
    entries = client.get_model_repository_index().models
    assert [(e.name, e.version, e.state) for e in entries] == [("m", "1", "READY"), ("other", "", "")]
    request = grpcclient.service_pb2.RepositoryIndexRequest(ready=True)
    stub = client.client._client_stub
    assert [e.name for e in stub.RepositoryIndex(request).models] == ["m"]


def test_what_cannot_be_loaded_says_so(empty_repository, start_server, client_of, kind):
    models.write_model(empty_repository, "unreadable", "max_batch_size: 'x'")
    models.write_model(empty_repository, "no_versions", IDENTITY, {})
    models.write_model(empty_repository, "broken", 'backend: "no such backend"\n')
    server = start_server(empty_repository, args=EXPLICIT)
    client = client_of(kind, server)
    assert error_of(client.load_model, "absent") == (
        "failed to load 'absent', failed to poll from model repository: model not found in any model repository")
    path = empty_repository / "unreadable" / "config.pbtxt"
    assert error_of(client.load_model, "unreadable") == (
        "failed to load 'unreadable', failed to poll from model repository: "
        f"failed to read text proto from {path}\n"
        f"  {path}:1:17: max_batch_size: found 'x', expected a 32-bit integer")
    assert error_of(client.load_model, "no_versions").startswith(
        "load failed for model 'no_versions': at least one version must be available under the "
        "version policy of model 'no_versions'. There is no version folder in "
    )
    message = error_of(client.load_model, "broken")
    assert message.startswith("load failed for model 'broken': version 1 is at UNAVAILABLE state: ")
    assert message.endswith(";\n")
    assert index(server)[("broken", "1")][0] == "UNAVAILABLE"
    assert not server.is_ready()
    # What is not wanted any more is not missed.
    client.unload_model("broken")
    client.unload_model("no_versions")
    assert server.is_ready()
    text = "model not found in any model repository."
    servers.wait_until(lambda: server.log.count(text) == 1, "the log tells of it once")


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_other_modes_take_no_orders(empty_repository, start_server, client_of, kind, mode):
    models.write_model(empty_repository, "m", IDENTITY)
    server = start_server(empty_repository, args=[f"--model-control-mode={mode}"])
    client = client_of(kind, server)
    text = ("explicit model load / unload is not allowed if polling is enabled; it needs the model control mode "
            "'explicit'")
    assert error_of(client.load_model, "m") == text
    assert error_of(client.unload_model, "m") == text
    np.testing.assert_array_equal(infer(client, "m"), [0, 0])


# --- What a request may say --------------------------------------------------------------------


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    """The folder for temporary files of the server below: others write into the machine's at the same time."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def explicit_server(require_server, tmp_path_factory, temporary):
    path = tmp_path_factory.mktemp("explicit")
    environment = {"TMPDIR": str(temporary)}
    models.write_model(path, "m", IDENTITY)
    for name in ("...", "..my_model", "model..1", "model.version1"):
        models.write_model(path, name, IDENTITY)
    with servers.running(path, args=EXPLICIT, log_dir=path.parent, env=environment) as server:
        yield server


@pytest.mark.parametrize(
    "path, body, status, text",
    [
        ("models/m/load", "{", 500, "failed to parse the request JSON buffer: Missing a name for object member. at 1"),
        ("models/m/load", '{"parameters":7}', 500, "attempt to get members for non-object"),
        ("models/m/load", '{"parameters":{"config":7}}', 500, "attempt to access JSON non-string as string"),
        ("models/m/load", '{"parameters":{"x":"y"}}', 500, "unexpected error on creating Triton parameter"),
        ("models/m/load", '{"parameters":{"file:1/m":"QQ=="}}', 500,
         "failed to load 'm', failed to poll from model repository: Load parameter 'config' must be specified for "
         "model file override"),
        ("models/m/unload", '{"parameters":{"unload_dependents":1}}', 500, "Unable to parse 'unload_dependents': attempt to access JSON non-boolean as boolean"),
        ("r/models/m/load", "", 501, "'repository_name' specification is not supported"),
        ("r/models/m/unload", "", 501, "'repository_name' specification is not supported"),
    ],
)
def test_http_requests_that_are_refused(explicit_server, path, body, status, text):
    reply = wire.request(explicit_server, "POST", f"/v2/repository/{path}", body)
    assert (reply.status, reply.json()) == (status, {"error": text})


def test_the_forms_of_http_answers(explicit_server):
    for action in ("load", "unload"):
        reply = wire.request(explicit_server, "POST", f"/v2/repository/models/m/{action}")
        assert (reply.status, reply.body) == (200, b"")
        reply = wire.request(explicit_server, "GET", f"/v2/repository/models/m/{action}")
        assert reply.status == 405
    assert wire.request(explicit_server, "POST", "/v2/repository/r/index").status == 200


def test_grpc_requests_that_are_refused(explicit_server, client_of):
    stub = client_of("grpc", explicit_server).client._client_stub
    pb = grpcclient.service_pb2

    def refused(method, request):
        with pytest.raises(Exception) as caught:
            method(request)
        return caught.value.code().name, caught.value.details()

    def load(**parameters):
        request = pb.RepositoryModelLoadRequest(model_name="m")
        for name, (field, value) in parameters.items():
            setattr(request.parameters[name], field, value)
        return refused(stub.RepositoryModelLoad, request)

    unsupported = ("UNIMPLEMENTED", "'repository_name' specification is not supported")
    assert refused(stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(repository_name="r")) == unsupported
    assert refused(stub.RepositoryModelUnload, pb.RepositoryModelUnloadRequest(repository_name="r")) == unsupported
    assert refused(stub.RepositoryIndex, pb.RepositoryIndexRequest(repository_name="r")) == unsupported
    assert load(config=("bool_param", True)) == (
        "INVALID_ARGUMENT", "invalid value type for load parameter 'config', expected string_param.")
    assert load(**{"file:1/x": ("string_param", "x")}) == (
        "INVALID_ARGUMENT", "invalid value type for load parameter 'file:1/x', expected bytes_param.")
    assert load(other=("string_param", "x")) == ("INVALID_ARGUMENT", "unrecognized load parameter 'other'.")
    request = pb.RepositoryModelUnloadRequest(model_name="m")
    request.parameters["unload_dependents"].string_param = "true"
    assert refused(stub.RepositoryModelUnload, request) == (
        "INVALID_ARGUMENT", "invalid value type for 'unload_dependents' parameter, expected bool_param.")


def test_names_cannot_leave_the_repository_s01(explicit_server, client_of):
    """S01: by the name of a model nothing outside the repository is reached."""
    stub = client_of("grpc", explicit_server).client._client_stub
    pb = grpcclient.service_pb2

    def load(name):
        try:
            stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name))
        except Exception as error:
            return error.code().name, error.details()
        return "OK", ""

    for name in ("../etc", "a/../b", "/etc/passwd", "model/..", "model/sub", "model/", ".."):
        code, text = load(name)
        assert code == "INVALID_ARGUMENT"
        assert text == f"invalid model name '{name}', model name must not contain path traversal characters"
    for name in (" ..", ".. ", "a\0b"):
        assert load(name)[0] == "INVALID_ARGUMENT"
    for name in ("", " ", "\t\n\v\f\r"):
        assert load(name) == (
            "INVALID_ARGUMENT", "Model name cannot be empty. Please enter a valid name to deploy.")
    for name in ("...", "..my_model", "model..1", "model.version1"):
        assert load(name) == ("OK", "")
    for name in ("%2e%2e%2f", "..%2fetc", "%00", "..\\etc"):
        text = f"failed to load '{name}', failed to poll from model repository: model not found in any model repository"
        assert load(name) == ("INTERNAL", text)
    # Over HTTP the path is decoded, once: what is a slash or a zero byte then is refused before anything looks at it.
    for encoded, status in (("%2e%2e%2f", 400), ("..%2fetc", 400), ("%00", 400), ("%2e%2e", 400),
                            ("%252e%252e%252f", 500), ("..%5cetc", 500)):
        assert wire.request(explicit_server, "POST", f"/v2/repository/models/{encoded}/load").status == status
    # Unloading is no way in either, and such names are simply not loaded.
    stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="../etc"))
    # S14: nor does a name reach a shell.
    touched = pathlib.Path(f"nereid-s14-{uuid.uuid4()}")  # in the folder in which the server was started
    for name in (f"$(touch {touched.name})", f"`touch {touched.name}`", "a;b", "a|b", "a&b", "*"):
        assert load(name)[0] == "INTERNAL"
    assert not touched.exists()


def test_ensembles_reach_no_models_outside_s01(empty_repository, start_server, client_of, kind, tmp_path):
    """S01: the models that a configuration names are names, too."""
    models.write_model(tmp_path / "outside", "secret", IDENTITY)
    models.write_model(empty_repository, "e", ENSEMBLE.format(part="../outside/secret"))
    server = start_server(empty_repository, args=EXPLICIT)
    client = client_of(kind, server)
    assert "contains models that are not available or ambiguous" in error_of(client.load_model, "e")
    assert "loading: ../outside" not in server.log


# --- Overrides ---------------------------------------------------------------------------------


def test_a_configuration_instead_of_the_file(empty_repository, start_server, client_of, kind):
    models.write_model(empty_repository, "m", IDENTITY, {"1": {}, "2": {}})
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    client = client_of(kind, server)
    assert client.is_model_ready("m", "2") and not client.is_model_ready("m", "1")
    config = {"backend": "identity", "version_policy": {"specific": {"versions": [1]}},
              "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [2]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [2]}],
              "metric_tags": {"k": "override"}}
    client.load_model("m", config=json.dumps(config))
    assert client.is_model_ready("m", "1") and not client.is_model_ready("m", "2")
    assert wire.request(server, "GET", "/v2/models/m/config").json()["metric_tags"] == {"k": "override"}
    # A load without one keeps it, as long as nothing changes in the repository ...
    client.load_model("m")
    assert client.is_model_ready("m", "1") and not client.is_model_ready("m", "2")
    # ... and a wrong one changes nothing.
    text = "failed to load 'm', failed to poll from model repository: "
    assert error_of(client.load_model, "m", config='{"max_batch_size": "x"}').startswith(
        text + "Invalid config override: ")
    assert error_of(client.load_model, "m", config='{"name": "other", "backend": "identity"}') == (
        text + "unexpected directory name 'm' for model 'other', directory name must equal model name")
    np.testing.assert_array_equal(infer(client, "m"), [0, 0])
    client.unload_model("m")
    client.load_model("m")
    assert client.is_model_ready("m", "2")


def private_folders(folder):
    return list(folder.glob("nereid-tmp-model-*"))


def test_files_instead_of_the_repository(empty_repository, start_server, client_of, kind, onnx, tmp_path):
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": adder(1)}, "2": {"model.onnx": adder(2)}})
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"], env={"TMPDIR": str(temporary)})
    client = client_of(kind, server)
    content = adder(50).SerializeToString()
    assert error_of(client.load_model, "m", files={"file:1/model.onnx": content}) == (
        "failed to load 'm', failed to poll from model repository: Load parameter 'config' must be specified for "
        "model file override")
    np.testing.assert_array_equal(infer(client, "m"), [2, 2])
    # Under a name that no repository has, and in place of what one has.
    for name in ("new", "m"):
        client.load_model(name, config='{"backend":"onnxruntime"}', files={"file:7/model.onnx": content})
        np.testing.assert_array_equal(infer(client, name), [50, 50])
        assert client.is_model_ready(name, "7") and not client.is_model_ready(name, "2")
    assert (empty_repository / "m" / "2" / "model.onnx").exists()
    assert not (empty_repository / "m" / "7").exists()
    assert len(private_folders(temporary)) == 2
    # Files that are no model leave everything as it is.
    assert "load failed for model 'm'" in error_of(
        client.load_model, "m", config='{"backend":"onnxruntime"}', files={"file:1/model.onnx": b"no model"})
    np.testing.assert_array_equal(infer(client, "m"), [50, 50])
    # Back to the repository.
    client.load_model("m")
    np.testing.assert_array_equal(infer(client, "m"), [2, 2])
    client.unload_model("new")
    servers.wait_until(lambda: not private_folders(temporary), "the private folders are gone")
    assert error_of(client.load_model, "new") == (
        "failed to load 'new', failed to poll from model repository: model not found in any model repository")


@pytest.mark.parametrize("path", ["../../x", "1/../../x", "..", "", "/", "1/" + "x" * 256, "1/", "a\0b"])
def test_files_stay_in_their_folder_s01(explicit_server, client_of, kind, path, temporary):
    """S01: the paths of a load request name nothing outside the model's private folder."""
    client = client_of(kind, explicit_server)
    # The client puts "file:" before a key only when it is not there.
    text = error_of(client.load_model, "written", config=IDENTITY_JSON, files={f"file:{path}": b"x" * 100})
    assert text.startswith("failed to load 'written', failed to poll from model repository: ")
    assert not (temporary / "x").exists()
    assert not private_folders(temporary)


IDENTITY_JSON = json.dumps(
    {"backend": "identity", "max_batch_size": 0,
     "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [2]}],
     "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [2]}]})


def test_absolute_paths_mean_the_folder_s01(explicit_server, client_of, kind, temporary):
    client = client_of(kind, explicit_server)
    client.load_model("absolute", config=IDENTITY_JSON, files={"file:/1/nereid-s01-file": b"x"})
    assert not pathlib.Path("/1/nereid-s01-file").exists()
    np.testing.assert_array_equal(infer(client, "absolute"), [0, 0])
    client.unload_model("absolute")
    servers.wait_until(lambda: not private_folders(temporary), "the private folder is gone")


def test_paths_in_a_configuration_s02(explicit_server, client_of, kind):
    """S02: a configuration of a client's own cannot name files elsewhere."""
    client = client_of(kind, explicit_server)
    config = json.loads(IDENTITY_JSON)
    config["output"][0]["label_filename"] = "../../../etc/passwd"
    text = "failed to load 'm', failed to poll from model repository: "
    assert error_of(client.load_model, "m", config=json.dumps(config)).startswith(text)
    servers.wait_until(lambda: "is outside model directory" in explicit_server.log, "the log says why")
    config["output"][0]["label_filename"] = ""
    config["default_model_filename"] = "../../x"
    assert error_of(client.load_model, "m", config=json.dumps(config)).startswith(text)


def test_the_size_of_a_load_request_is_bounded_s17(empty_repository, start_server):
    models.write_model(empty_repository, "m", IDENTITY)
    server = start_server(empty_repository, args=[*EXPLICIT, "--http-max-input-size=100000"])
    content = base64.b64encode(b"x" * 100_000).decode()
    body = json.dumps({"parameters": {"config": IDENTITY_JSON, "file:1/x": content}})
    reply = wire.request(server, "POST", "/v2/repository/models/m/load", body)
    assert reply.status == 400 and "exceeds the maximum allowed input size" in reply.error
    nested = '{"parameters":{"config":' + "[" * 40_000
    assert wire.request(server, "POST", "/v2/repository/models/m/load", nested).status == 500
    assert server.is_live()


# --- Changes -----------------------------------------------------------------------------------


def test_only_what_changed_is_loaded_again(empty_repository, start_server, client_of, kind, onnx):
    policy = 'version_policy: { all { } }\nplatform: "onnxruntime_onnx"\n'
    folder = models.write_model(
        empty_repository, "m", policy, {v: {"model.onnx": adder(int(v))} for v in ("1", "2")})
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    client = client_of(kind, server)

    def expect_loads(*counts):
        """The lines of the log are written a moment after what they tell of."""
        def loads():
            return tuple(server.log.count(f"loading: m:{version}") for version in (1, 2, 3))
        servers.wait_until(lambda: loads() == counts, f"loads of versions 1, 2 and 3: {counts}")

    expect_loads(1, 1, 0)
    models.write_model(empty_repository, "m", None, {"3": {"model.onnx": adder(3)}})
    client.load_model("m")
    expect_loads(1, 1, 1)
    np.testing.assert_array_equal(infer(client, "m"), [3, 3])
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": adder(11)}})
    client.load_model("m")
    expect_loads(2, 1, 1)
    np.testing.assert_array_equal(infer(client, "m", version="1"), [11, 11])
    # Another policy is no reason to load anything again.
    (folder / "config.pbtxt").write_text(policy.replace("all { }", "specific { versions: [ 2 ] }"))
    client.load_model("m")
    expect_loads(2, 1, 1)
    assert [client.is_model_ready("m", v) for v in "123"] == [False, True, False]
    wait_for_state(server, "m", "3", "UNAVAILABLE", "unloaded")
    # Another configuration is.
    (folder / "config.pbtxt").write_text(policy + 'metric_tags { key: "k" value: "v" }')
    client.load_model("m")
    expect_loads(3, 2, 2)


def test_a_failed_reload_changes_nothing(empty_repository, start_server, client_of, kind, onnx):
    models.write_model(empty_repository, "m", 'version_policy: { all { } }', {"1": {"model.onnx": adder(1)}})
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    client = client_of(kind, server)
    models.write_model(
        empty_repository, "m", None, {"1": {"model.onnx": adder(10)}, "2": {"model.onnx": b"no model"}})
    for _ in range(2):  # it is tried again each time
        message = error_of(client.load_model, "m")
        assert message.startswith("load failed for model 'm': version 2 is at UNAVAILABLE state: ")
        np.testing.assert_array_equal(infer(client, "m"), [1, 1])
        assert index(server)[("m", "1")] == ("READY", "")
        assert index(server)[("m", "2")][0] == "UNAVAILABLE"
    assert not server.is_ready()
    models.write_model(empty_repository, "m", None, {"2": {"model.onnx": adder(2)}})
    client.load_model("m")
    np.testing.assert_array_equal(infer(client, "m"), [2, 2])
    np.testing.assert_array_equal(infer(client, "m", version="1"), [10, 10])
    assert server.is_ready()
    # S25: a configuration that cannot be read leaves the model alone, and everything else.
    (empty_repository / "m" / "config.pbtxt").write_text("max_batch_size: 'x'")
    assert error_of(client.load_model, "m").startswith(
        "failed to load 'm', failed to poll from model repository: failed to read text proto from ")
    np.testing.assert_array_equal(infer(client, "m"), [2, 2])


def test_failed_loads_are_tried_again(empty_repository, start_server, onnx):
    models.write_model(empty_repository, "m", None, {"1": {"model.onnx": b"no model"}})
    server = start_server(empty_repository, args=[*EXPLICIT, "--model-load-retry-count=2"])
    assert wire.request(server, "POST", "/v2/repository/models/m/load").status == 400
    text = "failed to load 'm' version 1:"
    servers.wait_until(lambda: server.log.count(text) >= 3, "the log to tell of three attempts")
    assert server.log.count(text) == 3


# --- Ensembles ---------------------------------------------------------------------------------


def test_ensembles_bring_their_parts_and_follow_them(empty_repository, start_server, client_of, kind, onnx):
    models.write_model(empty_repository, "part", None, {"1": {"model.onnx": adder(1)}})
    models.write_model(empty_repository, "inner", ENSEMBLE.format(part="part"))
    models.write_model(empty_repository, "outer", ENSEMBLE.format(part="inner"))
    server = start_server(empty_repository, args=EXPLICIT)
    client = client_of(kind, server)
    client.load_model("outer")
    assert set(index(server, only_ready=True)) == {("part", "1"), ("inner", "1"), ("outer", "1")}
    np.testing.assert_array_equal(infer(client, "outer"), [1, 1])

    models.write_model(empty_repository, "part", None, {"1": {"model.onnx": adder(5)}})
    client.load_model("part")
    np.testing.assert_array_equal(infer(client, "outer"), [5, 5])

    client.unload_model("part")
    for name in ("part", "inner", "outer"):
        assert not client.is_model_ready(name)
    server.wait_for_log("ensemble inner contains models that are not available or ambiguous: part")
    client.load_model("part")  # and what it was missing from comes back
    np.testing.assert_array_equal(infer(client, "outer"), [5, 5])

    client.unload_model("outer", unload_dependents=True)
    servers.wait_until(
        lambda: set(index(server, only_ready=True)) == {("part", "1")},
        "everything is gone but what was asked for by its own name")
    client.load_model("inner")
    client.unload_model("inner")
    assert client.is_model_ready("part")


def test_an_ensemble_without_its_parts_says_why(empty_repository, start_server, client_of, kind, onnx):
    models.write_model(empty_repository, "bad", None, {"1": {"model.onnx": b"no model"}})
    models.write_model(empty_repository, "e", ENSEMBLE.format(part="bad"))
    models.write_model(empty_repository, "lonely", ENSEMBLE.format(part="absent"))
    server = start_server(empty_repository, args=EXPLICIT)
    client = client_of(kind, server)
    message = error_of(client.load_model, "e")
    assert message.startswith(
        "load failed for model 'e': ensemble 'e' depends on 'bad' which has no loaded version. Model 'bad' "
        "loading failed with error: version 1 is at UNAVAILABLE state: ")
    assert error_of(client.load_model, "lonely") == (
        "load failed for model 'lonely': ensemble lonely contains models that are not available or "
        "ambiguous: absent\n")
    # One that is served stays so when the configuration of a part becomes unreadable.
    models.write_model(empty_repository, "good", IDENTITY)
    models.write_model(empty_repository, "served", ENSEMBLE.format(part="good"))
    client.load_model("served")
    path = empty_repository / "good" / "config.pbtxt"
    path.write_text("max_batch_size: 'x'")
    assert error_of(client.load_model, "served").startswith(
        "failed to load 'served', failed to poll from model repository: part 'good': failed to read text proto from "
        f"{path}")
    assert client.is_model_ready("served")


@pytest.mark.parametrize("unloads", [[("late", False)], [("e", True)], [("e", False), ("late", False)]])
def test_requests_in_an_ensemble_end_before_its_parts_go(empty_repository, start_server, client_of, unloads):
    trouble.write(empty_repository, "gated")
    models.write_model(empty_repository, "late", models.identity_config("INT32", [1]))
    models.write_model(empty_repository, "e", """
platform: "ensemble"
input [ { name: "COMMAND" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "DONE" data_type: TYPE_INT32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "gated" model_version: -1
    input_map { key: "COMMAND" value: "COMMAND" } output_map { key: "DONE" value: "between" } },
  { model_name: "late" model_version: -1
    input_map { key: "INPUT0" value: "between" } output_map { key: "OUTPUT0" value: "DONE" } }
] }
""")
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=e"])
    with two_requests(server, "e", empty_repository, gated="gated"):
        for model, with_parts in unloads:
            client_of("http", server).unload_model(model, unload_dependents=with_parts)
        assert not client_of("grpc", server).is_model_ready("e")
    wait_for_state(server, "late", "1", "UNAVAILABLE", "unloaded")


@contextlib.contextmanager
def two_requests(server, model, repository, gated, kind="grpc"):
    """Two requests in flight, of which one executes and the other waits; both are answered afterwards."""
    results = []

    def ask(command):
        client = Client(kind, server)
        try:
            results.append(client.infer(model, [trouble.tensor(client, command)]).as_numpy("DONE").tolist())
        except InferenceServerException as error:
            results.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=ask, args=(command,)) for command in (trouble.WAIT, trouble.NOTHING)]
    pending = ("nv_inference_pending_request_count", gated)
    try:
        with trouble.closed_gate(repository, gated):
            threads[0].start()
            with trouble.waiting_at_gate(repository, gated):
                threads[1].start()
                servers.wait_until(lambda: server.scrape().get(pending) == 1, "a request waits")
                yield
                assert results == []
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    assert sorted(results, key=str) == [[trouble.NOTHING], [trouble.WAIT]]


# --- Several at once ---------------------------------------------------------------------------


def test_the_same_model_from_many_clients(empty_repository, start_server, client_of):
    models.write_model(empty_repository, "m", IDENTITY)
    server = start_server(empty_repository, args=EXPLICIT)
    failures = []

    def work(number):
        client = Client("http" if number % 2 else "grpc", server)
        try:
            for i in range(10):
                if (i + number) % 3:
                    client.load_model("m")
                else:
                    client.unload_model("m")
        except InferenceServerException as error:
            failures.append(str(error))
        finally:
            client.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A load that is overtaken by an unloading finds no version, which Triton says, too, or is given up.
    overtaken = ("no version is available", "the load was given up")
    assert [f for f in failures if not any(text in f for text in overtaken)] == []
    client = client_of("grpc", server)
    client.load_model("m")
    np.testing.assert_array_equal(infer(client, "m"), [0, 0])


def test_many_models_at_once(empty_repository, start_server):
    for i in range(40):
        models.write_model(empty_repository, f"m{i}", IDENTITY)
    server = start_server(empty_repository, args=[*EXPLICIT, "--model-load-thread-count=8"])
    failures = []

    def work(i):
        client = Client("http" if i % 2 else "grpc", server)
        try:
            client.load_model(f"m{i}")
            np.testing.assert_array_equal(infer(client, f"m{i}"), [0, 0])
        except Exception as error:
            failures.append(str(error))
        finally:
            client.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(index(server, only_ready=True)) == 40


def test_a_slow_load_holds_up_nobody_else(empty_repository, start_server, client_of, kind, tmp_path):
    go = tmp_path / "go"
    python_models.write(empty_repository, "slow", f"""
        class TritonPythonModel:
            def initialize(self, args):
                while not os.path.exists({str(go)!r}):
                    time.sleep(0.01)

            def execute(self, requests):
                return [pb_utils.InferenceResponse([]) for _ in requests]
    """)
    for name in ("fast", "later"):
        models.write_model(empty_repository, name, IDENTITY)
    args = [*EXPLICIT, "--load-model=fast", "--http-thread-count=1", "--grpc-infer-thread-count=2"]
    server = python_models.start(start_server, empty_repository, *args)
    client, other = client_of(kind, server), client_of(kind, server)
    done = threading.Event()
    loader = threading.Thread(target=lambda: (client.load_model("slow"), done.set()))
    loader.start()
    try:
        wait_for_state(server, "slow", "1", "LOADING")
        for _ in range(20):
            assert other.is_server_live()
            assert not other.is_model_ready("slow")
            np.testing.assert_array_equal(infer(other, "fast"), [0, 0])
        assert "version 1 is not at ready state" in error_of(infer, other, "slow", version="1")
        other.load_model("later")
        np.testing.assert_array_equal(infer(other, "later"), [0, 0])
        assert not done.is_set()
    finally:
        go.touch()
        loader.join()
    assert done.is_set() and other.is_model_ready("slow")


def test_unloading_waits_for_requests_in_flight(empty_repository, start_server, client_of, kind):
    trouble.write(empty_repository, "m")
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=m"])
    client = client_of(kind, server)
    with two_requests(server, "m", empty_repository, gated="m", kind=kind):
        client.unload_model("m")  # returns at once
        assert index(server)[("m", "1")] == ("UNLOADING", "")
        message = error_of(client.infer, "m", [trouble.tensor(client, trouble.NOTHING)], model_version="1")
        assert "not at ready state" in message
        client.load_model("m")  # beside the one that still works
        assert client.is_model_ready("m")
    done = client.infer("m", [trouble.tensor(client, trouble.NOTHING)]).as_numpy("DONE")
    assert done.tolist() == [trouble.NOTHING]


# --- Start -------------------------------------------------------------------------------------


def test_models_to_load_at_the_start(empty_repository, start_server):
    for name in ("a", "b", "c"):
        models.write_model(empty_repository, name, IDENTITY)
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=a", "--load-model=b"])
    assert set(index(server, only_ready=True)) == {("a", "1"), ("b", "1")}
    server = start_server(empty_repository, args=[*EXPLICIT, "--load-model=*"])
    assert set(index(server, only_ready=True)) == {("a", "1"), ("b", "1"), ("c", "1")}


@pytest.mark.parametrize(
    "args, text",
    [
        (["--load-model=m"], "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."),
        ([*EXPLICIT, "--load-model=*", "--load-model=m"],
         "creating server: Invalid argument - Wildcard model name '*' must be the ONLY startup model if "
         "specified at all."),
        ([*EXPLICIT, "--load-model=absent"],
         "creating server: Internal - failed to load all models; no model repository has 'absent'"),
        (["--model-control-mode=sometimes"], "--model-control-mode"),
    ],
)
def test_starts_that_fail(empty_repository, require_server, args, text):
    models.write_model(empty_repository, "m", IDENTITY)
    ports = servers.free_ports(3)
    done = servers.run_to_end(servers.command([empty_repository], ports, args)[1:])
    assert done.returncode == 1
    assert text in done.stdout


# --- Namespaces --------------------------------------------------------------------------------


def test_models_of_one_name_in_several_repositories(tmp_path, start_server, client_of, kind, onnx):
    for repository, number in (("one", 1), ("two", 2)):
        path = tmp_path / repository
        path.mkdir()
        models.write_model(path, "shared", None, {"1": {"model.onnx": adder(number)}})
        models.write_model(path, f"ensemble_{repository}", ENSEMBLE.format(part="shared"))
    models.write_model(tmp_path / "one", "only", IDENTITY)
    server = start_server(
        tmp_path / "one", tmp_path / "two", args=[*EXPLICIT, "--load-model=*", "--model-namespacing=true"])
    client = client_of(kind, server)
    np.testing.assert_array_equal(infer(client, "only"), [0, 0])
    text = error_of(infer, client, "shared")
    assert "There are 2 identifiers of model 'shared' in global map, model namespace must be provided" in text
    # Each ensemble prefers the model beside it.
    np.testing.assert_array_equal(infer(client, "ensemble_one"), [1, 1])
    np.testing.assert_array_equal(infer(client, "ensemble_two"), [2, 2])
    client.unload_model("ensemble_two")
    client.unload_model("shared")
    assert "not found in global map" in error_of(infer, client, "shared")
    text = error_of(infer, client, "unheard")
    assert "Request for unknown model: 'unheard' is not found" in text
