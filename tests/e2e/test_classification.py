# SPDX-License-Identifier: Apache-2.0
"""The classification extension: which classes, in which order, in which words, over each client."""

import json

import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from harness.clients import KINDS, Client
from tritonclient.utils import InferenceServerException

LABELS = "zero\none\n\nthree\n"  # index 2 has none, nor have those from 4 on
INTEGERS = ["UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"]


def config(datatype, dims, max_batch_size=0, label_file="labels.txt"):
    labels = f'label_filename: "{label_file}"' if label_file else ""
    return (
        f'backend: "identity"\nmax_batch_size: {max_batch_size}\n'
        f"input [ {models.tensor_config('INPUT0', datatype, dims)} ]\n"
        f"output [ {models.tensor_config('OUTPUT0', datatype, dims, labels)} ]\n"
    )


@pytest.fixture(scope="module")
def class_server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for datatype in [*INTEGERS, "FP32", "FP64", "FP16", "BOOL", "BYTES"]:
        models.write_model(path, f"id_{datatype}", config(datatype, [-1]))
    models.write_model(path, "batched", config("FP32", [-1], max_batch_size=8))
    models.write_model(path, "matrix", config("INT32", [-1, -1]))
    models.write_model(path, "plain", config("FP32", [-1], label_file=None))
    for folder in path.iterdir():
        (folder / "labels.txt").write_text(LABELS)
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=KINDS)
def client(request, class_server):
    made = Client(request.param, class_server)
    yield made
    made.close()


def classify(client, model, tensor, datatype, count, binary=True):
    result = client.infer(
        model,
        [client.input("INPUT0", tensor, datatype)],
        outputs=[client.output("OUTPUT0", binary=binary, class_count=count)],
    )
    classes = result.as_numpy("OUTPUT0")
    output = result.get_output("OUTPUT0")
    shape = output["shape"] if client.is_http else output.shape
    assert (output["datatype"] if client.is_http else output.datatype) == "BYTES"
    assert list(shape) == list(classes.shape)
    as_text = np.vectorize(lambda x: x.decode() if isinstance(x, bytes) else x, otypes=[object])
    return as_text(classes).tolist() if classes.size else classes.tolist()


@pytest.mark.parametrize("binary", [True, False])
def test_the_best_come_first_with_their_labels(client, binary):
    tensor = np.array([1, 5, 10, 4], dtype=np.int32)
    assert classify(client, "id_INT32", tensor, "INT32", 3, binary) == ["10:2", "5:1:one", "4:3:three"]


@pytest.mark.parametrize("datatype", INTEGERS)
def test_every_integer_is_printed_as_it_is(client, datatype):
    info = np.iinfo(models.TYPES[datatype][1])
    tensor = np.array([0, info.max, info.min, 7, 1], dtype=info.dtype)
    first, second = classify(client, f"id_{datatype}", tensor, datatype, 2)
    assert (first, second) == (f"{info.max}:1:one", "7:3:three")


@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_floating_point_numbers_have_six_decimals(client, datatype):
    dtype = models.TYPES[datatype][1]
    tensor = np.array([0.5, -1e-7, 123456.75, -2, np.inf], dtype=dtype)
    assert classify(client, f"id_{datatype}", tensor, datatype, 4) == [
        "inf:4",
        "123456.750000:2",
        "0.500000:0:zero",
        "-0.000000:1:one",
    ]


def test_equal_values_come_in_the_order_of_their_indices(client):
    tensor = np.array([2, 7, 7, 2, 7], dtype=np.int64)
    expected = ["7:1:one", "7:2", "7:4", "2:0:zero", "2:3:three"]
    assert classify(client, "id_INT64", tensor, "INT64", 5) == expected


@pytest.mark.newer  # the reference sorts many equal values in no particular order
def test_so_do_many_equal_values(client):
    tensor = np.zeros(500, dtype=np.float32)
    classes = classify(client, "plain", tensor, "FP32", 500)
    assert classes == [f"0.000000:{i}" for i in range(500)]


@pytest.mark.newer  # the reference gives its sorting function values without an order
def test_what_is_no_number_comes_last(client):
    tensor = np.array([np.nan, 1, np.nan, 3, -np.inf], dtype=np.float32)
    classes = classify(client, "plain", tensor, "FP32", 5)
    assert classes[:3] == ["3.000000:3", "1.000000:1", "-inf:4"]
    assert [text.split(":")[1] for text in classes[3:]] == ["0", "2"]


@pytest.mark.parametrize("count", [1, 3, 4, 5, 1000, 2**31])
def test_no_more_classes_than_there_are_elements(client, count):
    tensor = np.array([3, 1, 2, 0], dtype=np.uint8)
    classes = classify(client, "id_UINT8", tensor, "UINT8", count)
    assert classes == ["3:0:zero", "2:2", "1:1:one", "0:3:three"][:count]


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("batch", [1, 3])
def test_every_row_of_a_batch_has_its_own(client, batch, binary):
    rows = np.array([[1, 2, 3], [3, 2, 1], [2, 3, 1]], dtype=np.float32)[:batch]
    expected = [
        ["3.000000:2", "2.000000:1:one"],
        ["3.000000:0:zero", "2.000000:1:one"],
        ["3.000000:1:one", "2.000000:0:zero"],
    ][:batch]
    assert classify(client, "batched", rows, "FP32", 2, binary) == expected
    assert classify(client, "batched", rows, "FP32", 9, binary)[0][:2] == expected[0]


def test_without_batches_a_tensor_is_one_list(client):
    tensor = np.array([[1, 2, 3], [6, 5, 4]], dtype=np.int32)
    assert classify(client, "matrix", tensor, "INT32", 4) == ["6:3:three", "5:4", "4:5", "3:2"]


def test_without_labels_there_are_none(client):
    tensor = np.array([1, 2], dtype=np.float32)
    assert classify(client, "plain", tensor, "FP32", 1) == ["2.000000:1"]


@pytest.mark.newer  # the reference ends with a signal
@pytest.mark.parametrize("datatype", ["BYTES", "FP16", "BOOL"])
def test_types_without_an_order_are_refused(client, datatype):
    """S13"""
    values = {"BYTES": [b"a", b"b"], "FP16": [1, 2], "BOOL": [True, False]}[datatype]
    tensor = np.array(values, dtype=models.TYPES[datatype][1])
    with pytest.raises(InferenceServerException) as error:
        classify(client, f"id_{datatype}", tensor, datatype, 1)
    assert error.value.message() == (
        f"class result not available for output due to unsupported type '{datatype}'"
    )


@pytest.mark.newer  # the limit is of 2.69
def test_a_million_elements_are_sorted_and_no_more(client):
    """S13"""
    tensor = np.arange(1_000_000, dtype=np.float32)
    assert classify(client, "plain", tensor, "FP32", 1) == ["999999.000000:999999"]
    with pytest.raises(InferenceServerException) as error:
        classify(client, "plain", np.zeros(1_000_001, dtype=np.float32), "FP32", 1)
    assert error.value.message() == "classification output tensor too large"


def ask(server, parameters):
    head = {
        "inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [3], "data": [3, 1, 2]}],
        "outputs": [{"name": "OUTPUT0", "parameters": parameters}],
    }
    reply = wire.request(server, "POST", "/v2/models/id_INT32/infer", json.dumps(head))
    return reply.status, reply.json()


def test_the_parameter_over_http(class_server):
    """S13"""
    status, answer = ask(class_server, {"classification": 2})
    assert status == 200
    assert answer["outputs"] == [
        {"name": "OUTPUT0", "datatype": "BYTES", "shape": [2], "data": ["3:0:zero", "2:2"]}
    ]
    status, answer = ask(class_server, {"classification": 0})  # none: the tensor itself
    assert answer["outputs"] == [{"name": "OUTPUT0", "datatype": "INT32", "shape": [3], "data": [3, 1, 2]}]
    for wrong in (-1, "2", 1.5, None):
        status, answer = ask(class_server, {"classification": wrong})
        assert status == 500
        assert answer["error"] == (
            "Unable to set 'classification': attempt to access JSON non-unsigned-integer as "
            "unsigned-integer"
        )


def test_the_parameter_over_grpc(class_server):
    """S13"""
    client = Client("grpc", class_server)
    tensor = client.input("INPUT0", np.array([3, 1, 2], dtype=np.int32), "INT32")
    output = client.output("OUTPUT0", class_count=2)
    parameter = output._get_tensor().parameters["classification"]
    for field, value, why in (
        ("string_param", "2", "invalid value type for 'classification' parameter, expected int64_param"),
        ("int64_param", 0, "invalid value for 'classification' parameter, expected >= 0"),
        ("int64_param", -1, "invalid value for 'classification' parameter, expected >= 0"),
    ):
        setattr(parameter, field, value)
        with pytest.raises(InferenceServerException) as error:
            client.infer("id_INT32", [tensor], outputs=[output])
        assert error.value.message() == why
    client.close()


@pytest.mark.newer
@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**63 - 1])
def test_s13_counts_beyond_all_sizes(client, count):
    assert classify(client, "plain", np.array([3, 1, 2], np.float32), "FP32", count) == [
        "3.000000:0", "2.000000:2", "1.000000:1"
    ]
    empty = np.zeros(0, np.float32)
    assert classify(client, "plain", empty, "FP32", count) == []


@pytest.mark.newer
@pytest.mark.parametrize("count", [2**64 - 1, 2**64, 10**30])
def test_s13_counts_that_no_protocol_has(class_server, count):
    status, answer = ask(class_server, {"classification": count})
    assert (status, sorted(answer)) in [(200, ["model_name", "model_version", "outputs"]), (500, ["error"])]
    if status == 200:
        assert answer["outputs"][0]["data"] == ["3:0:zero", "2:2", "1:1:one"]
