# SPDX-License-Identifier: Apache-2.0
"""Request headers that become parameters, and those that must not (S29)."""

import json
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from harness import models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

ECHO = 'parameters { key: "echo_parameters" value: { string_value: "true" } }\n'
BODY = json.dumps(
    {
        "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}],
        "parameters": {"of-body": 7},
    }
).encode()
RESERVED = [
    "sequence_id",
    "sequence_start",
    "sequence_end",
    "priority",
    "timeout",
    "headers",
    "binary_data_output",
    "triton_",
    "triton_enable_empty_final_response",
]


@pytest.fixture(scope="module")
def echo_repository(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    models.write_model(repository, "m", models.identity_config("FP32", [-1], extra=ECHO))
    return repository


@pytest.fixture(scope="module")
def forwarding(require_server, echo_repository, tmp_path_factory):
    """Forwards what begins with my-, and what is reserved."""
    pattern = "^my-|_|^(priority|timeout|headers)$"
    args = [f"--http-header-forward-pattern={pattern}", f"--grpc-header-forward-pattern={pattern}"]
    with servers.running(echo_repository, args=args, log_dir=tmp_path_factory.mktemp("log")) as server:
        yield server


def parameters_over_http(server, headers):
    reply = wire.request(server, "POST", "/v2/models/m/infer", BODY, headers)
    return reply.json()["parameters"] if reply.status == 200 else (reply.status, reply.error)


def infer_over_grpc(client, **options):
    tensor = tritonclient.grpc.InferInput("INPUT0", [1], "FP32")
    tensor.set_data_from_numpy(np.array([1], np.float32))
    return client.infer("m", [tensor], **options)


def parameters_over_grpc(server, headers):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        response = infer_over_grpc(client, headers=headers).get_response()
        return {key: value.string_param for key, value in response.parameters.items()}


def test_matching_headers_become_parameters_over_http(forwarding):
    headers = {"my-one": "1", "MY-Two": " two words ", "not-my-own": "x", "Content-Type": "y"}
    # The name is as the client spelt it, the pattern does not care.
    assert parameters_over_http(forwarding, headers) == {"of-body": 7, "my-one": "1", "MY-Two": "two words "}


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_matching_headers_become_parameters_of_generate(forwarding, action):
    def generate(headers):
        body = b'{"INPUT0": 1, "of-body": 7}'
        reply = wire.request(forwarding, "POST", f"/v2/models/m/{action}", body, headers)
        return reply.status, json.loads(reply.body.removeprefix(b"data: "))

    status, answer = generate({"my-one": "1", "MY-Two": "2", "not-my-own": "x"})
    assert status == 200
    assert (answer["my-one"], answer["MY-Two"], answer["of-body"]) == ("1", "2", 7)
    assert "not-my-own" not in answer
    text = "Header 'sequence_id' is reserved for Triton usage and cannot be forwarded."
    assert generate({"sequence_id": "1"}) == (400, {"error": text})


def test_matching_metadata_become_parameters_over_grpc(forwarding):
    headers = {"my-one": "1", "my-two": "two words", "not-my-own": "x"}
    assert parameters_over_grpc(forwarding, headers) == {"my-one": "1", "my-two": "two words"}


def test_metadata_of_a_stream_belong_to_each_of_its_requests(forwarding):
    answers = []
    with tritonclient.grpc.InferenceServerClient(forwarding.grpc) as client:
        client.start_stream(lambda result, error: answers.append((result, error)), headers={"my-one": "1"})
        tensor = tritonclient.grpc.InferInput("INPUT0", [1], "FP32")
        tensor.set_data_from_numpy(np.array([1], np.float32))
        for _ in range(2):
            client.async_stream_infer("m", [tensor])
        client.stop_stream()
    assert [error for _, error in answers] == [None, None]
    assert [result.get_response().parameters["my-one"].string_param for result, _ in answers] == ["1", "1"]


@pytest.mark.parametrize("name", RESERVED)
def test_s29_reserved_names_are_refused(forwarding, name):
    text = f"Header '{name}' is reserved for Triton usage and cannot be forwarded."
    assert parameters_over_http(forwarding, {name: "1"}) == (400, text)
    with tritonclient.grpc.InferenceServerClient(forwarding.grpc) as client:
        with pytest.raises(Exception, match="cannot be forwarded") as refused:
            infer_over_grpc(client, headers={name: "1"})
        assert refused.value.message() == text
        assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"


@pytest.mark.parametrize("key", ["triton_", "triton_enable_empty_final_response", "triton_x"])
def test_s29_reserved_parameters_of_a_body_are_refused(forwarding, key):
    body = json.loads(BODY)
    body["parameters"] = {key: True}
    reply = wire.request(forwarding, "POST", "/v2/models/m/infer", json.dumps(body))
    assert reply.status == 400
    assert "reserved for Triton usage" in reply.error


def test_nothing_is_forwarded_by_default(start_server, echo_repository):
    server = start_server(echo_repository)
    headers = {"my-one": "1", "sequence_id": "2", "triton_x": "3"}
    assert parameters_over_http(server, headers) == {"of-body": 7}
    assert parameters_over_grpc(server, headers) == {}


def test_a_pattern_may_ask_for_one_case_and_takes_linear_time(start_server, echo_repository):
    server = start_server(echo_repository, args=["--http-header-forward-pattern=(?-i)^MY-|^(a+)+$"])
    before = time.process_time()
    headers = {"MY-one": "1", "my-two": "2", "a" * 5000 + "b": "3"}
    assert parameters_over_http(server, headers) == {"of-body": 7, "MY-one": "1"}
    assert time.process_time() - before < 5


@pytest.mark.parametrize("flag", ["http", "grpc"])
def test_a_pattern_that_is_none_ends_the_start(empty_repository, flag):
    run = servers.run_to_end(
        [f"--model-repository={empty_repository}", f"--{flag}-header-forward-pattern=(my-"]
    )
    assert run.returncode == 1
    assert f"--{flag}-header-forward-pattern '(my-': not a regular expression: missing )" in run.stdout


@pytest.mark.parametrize("sent, seen", [("  two ", "two "), ("\ttab\t", "\ttab\t"), ("   ", " "), ("", "")])
def test_blanks_at_the_ends_of_headers_reach_the_model_as_in_triton(forwarding, sent, seen):
    with wire.Connection(forwarding) as connection:
        head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\nmy-one:{sent}\r\n\r\n"
        connection.send(head.encode() + BODY)
        assert connection.receive().json()["parameters"]["my-one"] == seen


def test_blanks_at_the_ends_of_metadata_reach_the_model(forwarding):
    with grpc.insecure_channel(forwarding.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        request = pb.ModelInferRequest(model_name="m")
        tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
        tensor.contents.fp32_contents.append(1)
        response = stub.ModelInfer(request, metadata=[("my-one", "  two blanks "), ("my-two", " ")])
    assert response.parameters["my-one"].string_param == "  two blanks "
    assert response.parameters["my-two"].string_param == " "
