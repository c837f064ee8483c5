# SPDX-License-Identifier: Apache-2.0
"""The entry point of Amazon SageMaker: /ping and /invocations."""

import json

import pytest
import requests
import sseclient

from harness import cloud, models
from harness import server as servers

pytestmark = pytest.mark.newer  # the reference of the tests has no such entry point

MIME = "application/vnd.sagemaker-triton.binary+json;json-header-size="


@pytest.fixture
def start(start_server):
    def start(repository, args=(), env=None, **options):
        return cloud.start(start_server, repository, "sagemaker", env, args, **options)

    return start


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("sagemaker")
    cloud.write_models(repository, "one")
    port = servers.free_ports(1)[0]
    args = ["--allow-sagemaker=true", f"--sagemaker-port={port}", "--sagemaker-address=127.0.0.1"]
    env = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one"}
    log = tmp_path_factory.mktemp("log")
    with servers.running(repository, args=args, env=env, log_dir=log) as running:
        running.cloud = f"http://127.0.0.1:{port}"
        yield running


def invoke(server, body, headers=(), **options):
    options.setdefault("timeout", 30)
    return requests.post(f"{server.cloud}/invocations", data=body, headers=dict(headers), **options)


def ping(server, **options):
    return requests.get(f"{server.cloud}/ping", timeout=30, **options)


def test_ping(server):
    assert ping(server).status_code == 200
    assert requests.post(f"{server.cloud}/ping", timeout=30).status_code == 405


def test_invocations(server):
    reply = invoke(server, cloud.json_body(), {"Content-Type": "application/json"})
    assert reply.json()["model_name"] == "one"
    assert cloud.outputs_of(reply)["OUTPUT0"] == cloud.ROW
    assert requests.get(f"{server.cloud}/invocations", timeout=30).status_code == 405


def test_binary_tensors_in_both_directions(server):
    body, length = cloud.binary_body()
    reply = invoke(server, body, {"Content-Type": MIME + str(length)})
    assert cloud.outputs_of(reply) == {"OUTPUT0": cloud.ROW, "OUTPUT1": cloud.ROW}
    reply = invoke(server, cloud.json_body([("OUTPUT0", True), ("OUTPUT1", False)]))
    assert reply.headers["Content-Type"].startswith(MIME)
    length = int(reply.headers["Content-Type"][len(MIME) :])
    assert len(reply.content) == length + 64
    assert json.loads(reply.content[:length])["model_name"] == "one"
    assert "Inference-Header-Content-Length" not in reply.headers


@pytest.mark.parametrize(
    "content_type, text",
    [
        ("x/" + MIME + "10", "expect MIME type for binary data starts with"),
        (MIME + "abc", "Unable to parse inference header size, got: abc"),
        (MIME + "-123", "inference header size should be in range (0, "),
        (MIME + "1234567", "inference header size should be in range (0, "),
        (MIME + "99999999999", "Unable to parse inference header size, value is out of range"),
    ],
)
def test_malformed_binary_types(server, content_type, text):
    reply = invoke(server, cloud.binary_body()[0], {"Content-Type": content_type})
    assert reply.status_code == 400
    assert text in reply.json()["error"]
    assert ping(server).status_code == 200


def test_other_paths(server):
    for path in ("/v2", "/", "/pings", "/invocations/", "/v2/models/one/infer"):
        assert requests.post(f"{server.cloud}{path}", timeout=30).status_code == 400


def test_a_model_that_nobody_named(start, empty_repository):
    cloud.write_models(empty_repository, "one")
    reply = invoke(start(empty_repository), cloud.json_body())
    assert reply.status_code == 404
    name = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
    assert reply.json() == {"error": f"Request for unknown model: '{name}' is not found"}


def write_square(repository):
    config = (
        'backend: "square"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('IN', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUT', 'INT32', [1])} ]\n"
        "model_transaction_policy { decoupled: true }\n"
    )
    models.write_model(repository, "square", config)


def test_generate(start, empty_repository):
    write_square(empty_repository)
    env = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "square"}
    server = start(empty_repository, env={**env, "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate"})
    assert invoke(server, '{"IN":1}').json()["OUT"] == 1
    streaming = start(
        empty_repository, env={**env, "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"}
    )
    reply = invoke(streaming, '{"IN":3}', stream=True)
    events = [json.loads(e.data)["OUT"] for e in sseclient.SSEClient(reply).events()]
    assert events == [3, 3, 3]


def test_ping_of_a_server_that_is_not_ready(start, empty_repository):
    models.write_model(empty_repository, "broken", 'backend: "none"')
    args = ["--exit-on-error=false"]
    server = start(empty_repository, args=args, wait=False)
    servers.wait_until(server.is_live, "the server")
    servers.wait_until(lambda: ping(server).status_code == 400, "ping to tell")
    live = start(empty_repository, args=args, wait=False, env={"SAGEMAKER_TRITON_PING_MODE": "live"})
    servers.wait_until(live.is_live, "the server")
    assert ping(live).status_code == 200


def test_security_s22_restrictions_hold_here_too(start, empty_repository):
    cloud.write_models(empty_repository, "one")
    server = start(
        empty_repository,
        args=["--http-restricted-api=inference:key=secret", "--http-restricted-api=health:k2=s2"],
        env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one"},
        wait=False,
    )
    servers.wait_until(lambda: "Started Sagemaker HTTPService" in server.log, "the entry point")
    key = {"key": "secret"}
    servers.wait_until(
        lambda: invoke(server, cloud.json_body(), key).status_code == 200, "the model to load"
    )
    assert invoke(server, cloud.json_body()).status_code == 403
    assert invoke(server, cloud.json_body(), {"key": "secrets"}).status_code == 403
    assert ping(server).status_code == 403
    assert ping(server, headers=key).status_code == 403
    assert ping(server, headers={"k2": "s2"}).status_code == 200


@pytest.mark.parametrize(
    "args, env, text",
    [
        (
            ["--sagemaker-safe-port-range=20000-20001", "--http-port=9000"],
            {},
            "The server cannot listen to HTTP requests at port 9000, allowed port range is [20000, 20001]",
        ),
        (["--sagemaker-safe-port-range=20000"], {}, "expected a range of ports"),
        (["--sagemaker-port=9000", "--http-port=9000"], {}, "HTTP requests and SageMaker requests"),
        ([], {"SAGEMAKER_TRITON_INFERENCE_TYPE": "guess"}, "infer, generate, generate_stream"),
    ],
)
def test_refusals_to_start(tmp_path, require_server, args, env, text):
    result = servers.run_to_end(
        [
            f"--model-repository={tmp_path}",
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--allow-sagemaker=true",
            "--http-address=127.0.0.1",
            "--sagemaker-address=127.0.0.1",
            *args,
        ],
        env=env,
    )
    assert result.returncode == 1
    assert text in result.stdout
