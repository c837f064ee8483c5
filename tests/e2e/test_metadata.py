# SPDX-License-Identifier: Apache-2.0
"""What the server says about itself and its models, through the published clients."""

import json

import pytest
from harness import wire
from harness.clients import KINDS, Client

EXTENSIONS = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
]


@pytest.fixture(params=KINDS)
def client(request, server):
    made = Client(request.param, server)
    yield made
    made.close()


def numbers(shape):
    """A shape as numbers; the gRPC clients give them as strings in JSON."""
    return [int(dim) for dim in shape]


def test_server_and_models_are_live_and_ready(client):
    assert client.is_server_live() is True
    assert client.is_server_ready() is True
    assert client.is_model_ready("id_FP32") is True
    assert client.is_model_ready("id_FP32", "1") is True


@pytest.mark.parametrize("kind", ["grpc", "grpc.aio"])
def test_an_unknown_model_is_not_ready(server, kind):
    client = Client(kind, server)
    assert client.is_model_ready("none") is False
    assert client.is_model_ready("id_FP32", "77") is False
    client.close()


def test_server_metadata(client):
    metadata = client.as_json("get_server_metadata")
    assert metadata["name"] == "triton"
    assert metadata["version"]
    extensions = metadata["extensions"]
    # A server names what it serves, in the order that the list has.
    assert extensions == [name for name in EXTENSIONS if name in extensions]
    assert {"classification", "model_configuration", "binary_tensor_data", "parameters"} <= set(extensions)


def test_model_metadata(client):
    metadata = client.as_json("get_model_metadata", "id_pair")
    assert metadata["name"] == "id_pair"
    assert metadata["versions"] == ["1"]
    for direction, name in (("inputs", "INPUT"), ("outputs", "OUTPUT")):
        tensors = metadata[direction]
        assert [t["name"] for t in tensors] == [f"{name}0", f"{name}1"]
        assert [t["datatype"] for t in tensors] == ["FP32", "FP32"]
        assert [numbers(t["shape"]) for t in tensors] == [[-1], [-1]]


def test_metadata_shows_the_batch_dimension(client):
    metadata = client.as_json("get_model_metadata", "idb_BYTES", "1")
    assert metadata["inputs"][0]["datatype"] == "BYTES"
    assert numbers(metadata["inputs"][0]["shape"]) == [-1, -1]


def test_metadata_of_a_model_without_configuration_file(client, onnx):
    metadata = client.as_json("get_model_metadata", "onnx_add_INT64")
    assert metadata["platform"] == "onnxruntime_onnx"
    assert [(t["name"], t["datatype"], numbers(t["shape"])) for t in metadata["inputs"]] == [
        ("INPUT0", "INT64", [-1, 16]),
        ("INPUT1", "INT64", [-1, 16]),
    ]
    assert sorted(t["name"] for t in metadata["outputs"]) == ["OUTPUT0", "OUTPUT1"]


def test_model_configuration(client):
    config = client.as_json("get_model_config", "idb_FP32")
    config = config.get("config", config)
    assert config["name"] == "idb_FP32"
    assert config["backend"] == "identity"
    assert config["max_batch_size"] == 8
    assert config["version_policy"]["latest"]["num_versions"] == 1
    assert config["input"][0]["data_type"] == "TYPE_FP32"
    group = config["instance_group"][0]
    assert (group["name"], group["kind"], group["count"]) == ("idb_FP32_0", "KIND_CPU", 1)


def test_completed_configuration_of_an_onnx_model(client, onnx):
    config = client.as_json("get_model_config", "onnx_add_FP32")
    config = config.get("config", config)
    assert config["platform"] == "onnxruntime_onnx"
    assert config["backend"] == "onnxruntime"
    assert config["default_model_filename"] == "model.onnx"
    # The model has a batch dimension: batches of four, formed by the server.
    assert config["max_batch_size"] == 4
    assert numbers(config["dynamic_batching"]["preferred_batch_size"]) == [4]
    assert {t["name"]: numbers(t["dims"]) for t in config["input"]} == {"INPUT0": [16], "INPUT1": [16]}


def test_http_prints_every_field_of_a_configuration(server):
    text = wire.request(server, "GET", "/v2/models/idb_FP32/config").body.decode()
    config = json.loads(text)
    # Numbers of 64 bits are numbers, and fields that nobody set are there.
    assert config["input"][0] == {
        "name": "INPUT0",
        "data_type": "TYPE_FP32",
        "format": "FORMAT_NONE",
        "dims": [-1],
        **{k: v for k, v in config["input"][0].items() if k not in ("name", "data_type", "format", "dims")},
    }
    assert config["input"][0]["optional"] is False
    assert config["batch_input"] == [] and config["parameters"] == {}
    assert config["optimization"]["priority"] == "PRIORITY_DEFAULT"
    assert config["optimization"]["input_pinned_memory"] == {"enable": True}
    assert config["instance_group"][0]["gpus"] == []


def test_repository_index_lists_every_model(server, repository_path):
    models = wire.request(server, "POST", "/v2/repository/index").json()
    assert sorted(m["name"] for m in models) == sorted(p.name for p in repository_path.iterdir())
    assert all(m["state"] == "READY" and m["version"] == "1" for m in models)
