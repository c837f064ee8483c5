# SPDX-License-Identifier: Apache-2.0
"""What a client of a stream that reads slowly, or not at all, costs (S23), and the flags that say so."""


import grpc
import numpy as np
import pytest
from harness import models, wire
from harness import server as servers
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer

RESPONSES = 20_000
SQUARE = (
    'backend: "square"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('IN', 'INT32', [1])} ]\n"
    f"output [ {models.tensor_config('OUT', 'INT32', [1])} ]\n"
    "model_transaction_policy { decoupled: true }\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n"
)
# A client that takes no more than it was asked for.
SMALL_WINDOW = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65536)]


@pytest.fixture
def repository(empty_repository):
    models.write_model(empty_repository, "square", SQUARE)
    models.write_model(empty_repository, "m", models.identity_config("FP32", [-1]))
    return empty_repository


def square_request(count):
    request = pb.ModelInferRequest(model_name="square")
    request.inputs.add(name="IN", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([count], np.int32).tobytes())
    return request


def responses_made(server):
    stats = wire.request(server, "GET", "/v2/models/square/stats").json()
    return len(stats["model_stats"][0]["response_stats"])


def settled(server):
    """How many responses the model has made when it makes no more."""
    seen = [-1] * 10

    def unchanged():
        assert all(server.is_ready() for _ in range(20))  # time in which it could make some
        seen.append(responses_made(server))
        return seen[-1] > 0 and len(set(seen[-10:])) == 1

    servers.wait_until(unchanged, "the model makes no more responses")
    return seen[-1]


@pytest.mark.parametrize("limit", [1, 100])
def test_a_model_waits_for_the_client_of_its_stream(start_server, repository, limit):
    server = start_server(repository, args=[f"--grpc-max-response-pool-size={limit}"])
    with grpc.insecure_channel(server.grpc, options=SMALL_WINDOW) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stream = stub.ModelStreamInfer(iter([square_request(RESPONSES)]))
        next(stream)
        assert settled(server) < RESPONSES - 1000
        # Others are served meanwhile, and a client that reads again gets everything.
        assert wire.request(server, "GET", "/v2/models/m/ready").status == 200
        assert sum(1 for _ in stream) == RESPONSES - 1
    assert responses_made(server) == RESPONSES


def test_a_client_that_leaves_lets_its_model_go_on(start_server, repository):
    server = start_server(repository, args=["--grpc-max-response-pool-size=1"])
    with grpc.insecure_channel(server.grpc, options=SMALL_WINDOW) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stream = stub.ModelStreamInfer(iter([square_request(RESPONSES)]))
        next(stream)
        settled(server)
        stream.cancel()
        # The only instance is free for another.
        assert sum(1 for _ in stub.ModelStreamInfer(iter([square_request(5)]))) == 5


def test_without_a_limit_the_model_does_not_wait(start_server, repository):
    server = start_server(repository)
    with grpc.insecure_channel(server.grpc, options=SMALL_WINDOW) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stream = stub.ModelStreamInfer(iter([square_request(RESPONSES)]))
        next(stream)
        servers.wait_until(lambda: responses_made(server) == RESPONSES, "the model is through")
        assert sum(1 for _ in stream) == RESPONSES - 1


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_limit_is_a_positive_number(empty_repository, value):
    run = servers.run_to_end(
        [f"--model-repository={empty_repository}", f"--grpc-max-response-pool-size={value}"]
    )
    assert run.returncode == 1
    if value == "many":
        assert "--grpc-max-response-pool-size 'many': expected a whole number" in run.stdout
    else:
        assert "Error: --grpc-max-response-pool-size must be greater than 0." in run.stdout
