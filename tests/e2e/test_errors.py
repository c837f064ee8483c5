# SPDX-License-Identifier: Apache-2.0
"""What the published clients see when a request is wrong: one text, whatever the protocol."""

import numpy as np
import pytest
from harness.clients import KINDS, Client
from tritonclient.utils import InferenceServerException

GRPC_STATUS = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND"}
ANONYMOUS = "[request id: <id_unknown>] "
RAISE = "; the limit is max_batch_size in the model's configuration"
ROW = np.zeros((1, 2), np.float32)


@pytest.fixture(params=KINDS)
def client(request, server):
    made = Client(request.param, server)
    yield made
    made.close()


def refused(client, status, call):
    with pytest.raises(InferenceServerException) as caught:
        call()
    if client.is_http:
        assert caught.value.status() == str(status)
    else:
        assert caught.value.status() == GRPC_STATUS[status]
    return caught.value.message()


def infer(client, model, *tensors, **options):
    inputs = [client.input(name, tensor, datatype) for name, tensor, datatype in tensors]
    return lambda: client.infer(model, inputs, **options)


CASES = {
    "unknown model": (
        404,
        "none",
        [("INPUT0", ROW, "FP32")],
        {},
        "Request for unknown model: 'none' is not found",
    ),
    "unknown version": (
        404,
        "id_FP32",
        [("INPUT0", ROW, "FP32")],
        {"model_version": "7"},
        "Request for unknown model: 'id_FP32' version 7 is not found",
    ),
    "unknown input": (
        400,
        "id_FP32",
        [("X", ROW, "FP32")],
        {},
        "unexpected inference input 'X' for model 'id_FP32'",
    ),
    "input twice": (
        400,
        "id_FP32",
        [("INPUT0", ROW, "FP32")] * 2,
        {},
        ANONYMOUS + "input 'INPUT0' already exists in request",
    ),
    "no input": (
        400,
        "id_FP32",
        [],
        {},
        ANONYMOUS + "expected 1 inputs but got 0 inputs for model 'id_FP32'. Got input(s) [], but missing "
        "required input(s) ['INPUT0']. Please provide all required input(s).",
    ),
    "one input missing": (
        400,
        "id_pair",
        [("INPUT1", ROW[0], "FP32")],
        {},
        ANONYMOUS + "expected 2 inputs but got 1 inputs for model 'id_pair'. Got input(s) ['INPUT1'], but "
        "missing required input(s) ['INPUT0']. Please provide all required input(s).",
    ),
    "data type": (
        400,
        "id_FP32",
        [("INPUT0", ROW.astype(np.int32), "INT32")],
        {},
        ANONYMOUS + "inference input 'INPUT0' data-type is 'INT32', but model 'id_FP32' expects 'FP32'",
    ),
    "rank": (
        400,
        "id_FP32",
        [("INPUT0", ROW[0], "FP32")],
        {},
        ANONYMOUS + "unexpected shape for input 'INPUT0' for model 'id_FP32'. Expected [-1,-1], got [2]. ",
    ),
    "batch size": (
        400,
        "idb_FP32",
        [("INPUT0", np.zeros((9, 1), np.float32), "FP32")],
        {},
        ANONYMOUS + "inference request batch-size must be <= 8 for 'idb_FP32', got 9" + RAISE,
    ),
    "the request id stands in the text": (
        400,
        "idb_FP32",
        [("INPUT0", np.zeros((9, 1), np.float32), "FP32")],
        {"request_id": "r1"},
        "[request id: r1] inference request batch-size must be <= 8 for 'idb_FP32', got 9" + RAISE,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_inference(client, case):
    status, model, tensors, options, text = CASES[case]
    assert refused(client, status, infer(client, model, *tensors, **options)) == text
    # The same client goes on.
    assert client.is_server_live()


def test_unknown_output(client):
    call = infer(client, "id_FP32", ("INPUT0", ROW, "FP32"), outputs=[client.output("Z")])
    assert refused(client, 400, call) == "unexpected inference output 'Z' for model 'id_FP32'"


@pytest.mark.parametrize("call", ["get_model_metadata", "get_model_config"])
def test_queries_about_unknown_models(client, call):
    text = "Request for unknown model: 'none' is not found"
    assert refused(client, 404, lambda: getattr(client, call)("none")) == text


@pytest.mark.parametrize("kind", ["grpc", "grpc.aio"])
def test_grpc_version_must_be_a_number(server, kind):
    client = Client(kind, server)
    call = infer(client, "id_FP32", ("INPUT0", ROW, "FP32"), model_version="x")
    assert refused(client, 400, call) == (
        "failed to get model version from specified version string 'x' (details: stol), version should "
        "be an integral value > 0"
    )
    client.close()


def test_shapes_of_two_inputs_must_agree_in_their_batch(client, onnx):
    call = infer(
        client,
        "simple",
        ("INPUT0", np.zeros((1, 16), np.int32), "INT32"),
        ("INPUT1", np.zeros((2, 16), np.int32), "INT32"),
    )
    text = ANONYMOUS + "input 'INPUT0' batch size does not match other inputs for 'simple'"
    assert refused(client, 400, call) in (text, text.replace("INPUT0", "INPUT1"))
