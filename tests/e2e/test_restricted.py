# SPDX-License-Identifier: Apache-2.0
"""S22: --http-restricted-api and --grpc-restricted-protocol, for every route and every RPC."""

import contextlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from harness import models, wire
from harness import server as servers
from harness.routes import ROUTES, RPCS
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

pytestmark = pytest.mark.newer


@pytest.fixture(scope="module")
def restricted(require_server, tmp_path_factory):
    """A server on which each category has a key and a value of its own."""
    repository = tmp_path_factory.mktemp("models")
    models.write_model(repository, "m", models.identity_config("FP32", [-1]))
    args = [f"--http-restricted-api={name}:Key-{name}=open {name}" for name in ROUTES]
    args += [f"--grpc-restricted-protocol={name}:Key-{name}=open-{name}" for name in RPCS]
    server = servers.start(
        repository, args=[*args, "--log-verbose=2"], wait=False, log_dir=tmp_path_factory.mktemp("log")
    )
    key = {"Key-health": "open health"}
    servers.wait_until(lambda: answers_200(server, key), "the server is ready")
    yield server
    server.stop()
    for name in ROUTES:
        assert f"open {name}" not in server.log and f"open-{name}" not in server.log


def answers_200(server, headers):
    assert server.process.poll() is None, server.tail()
    with contextlib.suppress(OSError):
        return wire.request(server, "GET", "/v2/health/ready", headers=headers).status == 200
    return False


@pytest.mark.parametrize("category", ROUTES)
def test_no_route_opens_without_its_key(restricted, category):
    wanted = f"This API is restricted, expecting header 'Key-{category}'"
    other = next(name for name in ROUTES if name != category)
    wrong = [
        {},
        {f"Key-{category}": ""},
        {f"Key-{category}": "open"},
        {f"Key-{category}": f"open {category}x"},
        {f"Key-{category}": f"Open {category}"},
        {f"Key-{other}": f"open {other}"},
        {f"Key-{other}": f"open {category}"},
    ]
    with wire.Connection(restricted) as connection:
        for method, path in ROUTES[category]:
            for headers in wrong:
                # Neither a query nor another method is a way around.
                for variant in (path, path + "?x=1"):
                    for verb in (method, "DELETE"):
                        reply = connection.request(verb, variant, b"{}", headers)
                        assert (reply.status, reply.error) == (403, wanted), (verb, variant, headers)


@pytest.mark.parametrize("category", ROUTES)
def test_every_route_opens_with_its_key(restricted, category):
    with wire.Connection(restricted) as connection:
        for method, path in ROUTES[category]:
            if path.endswith("unload"):
                continue
            # The name of a header may be in any case, its value may not.
            reply = connection.request(method, path, b"{}", {f"KEY-{category}": f"open {category}"})
            assert reply.status != 403, (path, reply)


def test_all_rpcs_are_in_the_matrix():
    methods = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods
    assert {m.name for m in methods} == {name for names in RPCS.values() for name in names}


def call(channel, rpc, metadata):
    """The status code and text of the RPC with an empty message."""
    path = f"/inference.GRPCInferenceService/{rpc}"
    if rpc == "ModelStreamInfer":
        reply = channel.stream_stream(path)(iter([b""]), metadata=metadata)
        try:
            next(reply)
        except grpc.RpcError as error:
            return error.code(), error.details()
        return grpc.StatusCode.OK, ""
    try:
        channel.unary_unary(path)(b"", metadata=metadata)
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize("category", RPCS)
def test_no_rpc_opens_without_its_key(restricted, category):
    key = f"triton-grpc-protocol-key-{category}"
    text = f"This protocol is restricted, expecting header 'triton-grpc-protocol-Key-{category}'"
    refusals = [
        (),
        ((key, ""),),
        ((key, f"open-{category}x"),),
        ((key, f"open {category}"),),
        ((f"key-{category}", f"open-{category}"),),
    ]
    with grpc.insecure_channel(restricted.grpc) as channel:
        for rpc in RPCS[category]:
            for metadata in refusals:
                refused = call(channel, rpc, metadata)
                assert refused == (grpc.StatusCode.UNAVAILABLE, text), rpc
            assert call(channel, rpc, ((key, f"open-{category}"),))[1] != text


def test_health_service_and_reflection_are_restricted_too(restricted):
    with grpc.insecure_channel(restricted.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError, match="This protocol is restricted"):
            health.Check(health_pb2.HealthCheckRequest())
        metadata = (("triton-grpc-protocol-key-health", "open-health"),)
        assert health.Check(health_pb2.HealthCheckRequest(), metadata=metadata).status == 1
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        with pytest.raises(grpc.RpcError, match="This protocol is restricted"):
            next(reflection.ServerReflectionInfo(iter([request])))


def test_clients_pass_with_headers(restricted):
    data = np.array([1, 2], np.float32)
    for module, url, headers in (
        (tritonclient.http, restricted.http, {"Key-inference": "open inference"}),
        (tritonclient.grpc, restricted.grpc, {"triton-grpc-protocol-key-inference": "open-inference"}),
    ):
        tensor = module.InferInput("INPUT0", [2], "FP32")
        tensor.set_data_from_numpy(data)
        with module.InferenceServerClient(url) as client:
            with pytest.raises(Exception, match="is restricted, expecting header"):
                client.infer("m", [tensor])
            result = client.infer("m", [tensor], headers=headers)
            assert (result.as_numpy("OUTPUT0") == data).all()


@pytest.mark.parametrize(
    "flag,word", [("--http-restricted-api", "api"), ("--grpc-restricted-protocol", "protocol")]
)
def test_wrong_rules_end_the_start_and_show_no_value(empty_repository, flag, word):
    def error(*rules):
        run = servers.run_to_end([f"--model-repository={empty_repository}", *(f"{flag}={r}" for r in rules)])
        assert run.returncode == 1
        assert "secret" not in run.stdout
        return run.stdout

    assert f"unknown restricted {word} 'model-reposit'" in error("model-reposit,health:k=secret")
    assert f"restricted {word} 'health' can not be specified in multiple config groups" in error(
        "model-repository,health:k1=secret", "metadata,health:k2=secret"
    )
    for rule in ("health", "health:k", "health:=secret", ":k=secret", "health:k="):
        assert f"{flag} option format is" in error(rule)
