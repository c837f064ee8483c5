# SPDX-License-Identifier: Apache-2.0
"""The entry point of Google Vertex AI: health, predictions, and redirections to other routes."""

import pytest
import requests

from harness import cloud, wire
from harness import server as servers

pytestmark = pytest.mark.newer  # the reference of the tests has no such entry point

ROUTES = {"AIP_PREDICT_ROUTE": "/v1/predict", "AIP_HEALTH_ROUTE": "/v1/health"}
MIME = "application/vnd.vertex-ai-triton.binary+json;json-header-size="


@pytest.fixture
def start(start_server):
    def start(repository, args=(), env=None, **options):
        return cloud.start(start_server, repository, "vertex-ai", {**ROUTES, **(env or {})}, args, **options)

    return start


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("vertex")
    cloud.write_models(repository, "one", "two")
    port = servers.free_ports(1)[0]
    args = [
        "--allow-vertex-ai=true",
        f"--vertex-ai-port={port}",
        "--vertex-ai-address=127.0.0.1",
        "--vertex-ai-default-model=one",
    ]
    log = tmp_path_factory.mktemp("log")
    with servers.running(repository, args=args, env=ROUTES, log_dir=log) as running:
        running.cloud = f"http://127.0.0.1:{port}"
        cloud.wait_for_vertex_ai(running)
        yield running


def predict(server, body, headers=(), **options):
    options.setdefault("timeout", 30)
    return requests.post(f"{server.cloud}/v1/predict", data=body, headers=dict(headers), **options)


def redirect(server, target, body=b"", headers=()):
    return predict(server, body, {"X-Vertex-Ai-Triton-Redirect": target, **dict(headers)})


def test_health(server):
    assert requests.get(f"{server.cloud}/v1/health", timeout=30).status_code == 200
    assert requests.post(f"{server.cloud}/v1/health", timeout=30).status_code == 405


def test_predictions_of_the_default_model(server):
    reply = predict(server, cloud.json_body(), {"Content-Type": "application/json"})
    assert reply.status_code == 200
    assert reply.json()["model_name"] == "one"
    assert cloud.outputs_of(reply)["OUTPUT0"] == cloud.ROW


def test_binary_tensors(server):
    body, length = cloud.binary_body()
    reply = predict(server, body, {"Content-Type": MIME + str(length)})
    assert cloud.outputs_of(reply) == {"OUTPUT0": cloud.ROW, "OUTPUT1": cloud.ROW}
    reply = predict(server, cloud.json_body([("OUTPUT0", True), ("OUTPUT1", False)]))
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert len(reply.content) == int(reply.headers["Inference-Header-Content-Length"]) + 64


@pytest.mark.parametrize(
    "content_type, text",
    [
        ("x/" + MIME + "10", "expect MIME type for binary data starts with"),
        (MIME + "abc", "Unable to parse inference header size, got: abc"),
        (MIME, "Unable to parse inference header size, got: "),
        (MIME + "-123", "inference header size should be in range (0, "),
        (MIME + "1234567", "inference header size should be in range (0, "),
        (MIME + "99999999999", "Unable to parse inference header size, value is out of range"),
    ],
)
def test_malformed_binary_types(server, content_type, text):
    reply = predict(server, cloud.binary_body()[0], {"Content-Type": content_type})
    assert reply.status_code == 400
    assert text in reply.json()["error"]
    assert requests.get(f"{server.cloud}/v1/health", timeout=30).status_code == 200


@pytest.mark.parametrize(
    "target, text",
    [
        ("v2", '"name":"triton"'),
        ("v2/health/live", ""),
        ("v2/health/ready", ""),
        ("v2/models/two", '"name":"two"'),
        ("v2/models/two/versions/1/ready", ""),
        ("v2/models/two/config", '"max_batch_size"'),
        ("v2/models/two/stats", '"model_stats"'),
        ("v2/models/stats", '"model_stats"'),
        ("v2/repository/index", '"state":"READY"'),
        ("metrics", "nv_inference_request_success"),
    ],
)
def test_redirections_to_what_only_looks(server, target, text):
    reply = redirect(server, target)
    assert reply.status_code == 200
    assert text in reply.text


def test_redirections_to_other_models(server):
    reply = redirect(server, "v2/models/two/infer", cloud.json_body())
    assert reply.json()["model_name"] == "two"
    body, length = cloud.binary_body()
    reply = redirect(server, "v2/models/two/infer", body, {"Content-Type": MIME + str(length)})
    assert cloud.outputs_of(reply)["OUTPUT0"] == cloud.ROW
    assert redirect(server, "v2/models/none/infer", cloud.json_body()).status_code == 404


@pytest.mark.parametrize(
    "target",
    [
        "v2/repository/models/one/load",
        "v2/repository/models/one/unload",
        "v2/repository/any/models/one/unload",
        "v2/systemsharedmemory/region/r/register",
        "v2/systemsharedmemory/unregister",
        "v2/cudasharedmemory/region/r/unregister",
    ],
)
def test_security_s22_redirections_change_nothing(server, target):
    reply = redirect(server, target, b"{}")
    assert reply.status_code == 403
    assert reply.json() == {"error": "Forbidden"}


@pytest.mark.parametrize(
    "target",
    [
        "v2/logging",
        "v2/trace/setting",
        "v2/models/one/generate",
        "v2/models/one/trace/setting",
        "v2/nothing",
        "/v2",
        "../v2",
        "",
        "v1/predict",
    ],
)
def test_redirections_to_nowhere(server, target):
    assert redirect(server, target).status_code == 400


def test_other_paths_and_methods(server):
    assert requests.get(f"{server.cloud}/v2", timeout=30).status_code == 400
    assert requests.get(f"{server.cloud}/v1/predict", timeout=30).status_code == 405
    headers = {"X-Vertex-Ai-Triton-Redirect": "v2"}
    assert requests.get(f"{server.cloud}/v1/predict", headers=headers, timeout=30).status_code == 405


def test_security_s11_chunks(server):
    port = int(server.cloud.rsplit(":", 1)[1])
    head = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with wire.Connection(servers.Server(None, None, (port, 0, 0))) as connection:
        connection.send(head)
        try:
            connection.send(b"1\r\nA\r\n" * 70_000)
        except OSError:
            pass  # closed while we were sending
        assert connection.receive().status == 400
    assert requests.get(f"{server.cloud}/v1/health", timeout=30).status_code == 200


def test_security_s22_restrictions_hold_here_too(start, empty_repository):
    cloud.write_models(empty_repository, "one")
    rule = "--http-restricted-api=inference,health,metadata,model-config,model-repository,statistics:key=secret"
    server = start(empty_repository, args=["--allow-http=false", rule], wait=False)
    health = f"{server.cloud}/v1/health"
    key = {"key": "secret"}

    def is_up():
        try:
            return requests.get(health, headers=key, timeout=30).status_code == 200
        except requests.ConnectionError:
            return False

    servers.wait_until(is_up, "the health route to open to the key")
    assert requests.get(health, timeout=30).status_code == 403
    assert predict(server, cloud.json_body()).status_code == 403
    assert predict(server, cloud.json_body(), {"key": "wrong"}).status_code == 403
    assert predict(server, cloud.json_body(), key).status_code == 200
    for target in ("v2", "v2/health/ready", "v2/models/one", "v2/models/one/config"):
        assert redirect(server, target).status_code == 403
        assert redirect(server, target, headers=key).status_code == 200
    for target in ("v2/models/one/stats", "v2/models/stats", "v2/repository/index"):
        assert redirect(server, target).status_code == 403
        assert redirect(server, target, headers=key).status_code == 200
    assert redirect(server, "v2/models/one/infer", cloud.json_body()).status_code == 403


def test_the_only_model_is_the_default(start, empty_repository):
    cloud.write_models(empty_repository, "one")
    reply = predict(start(empty_repository), cloud.json_body())
    assert reply.json()["model_name"] == "one"


def test_the_environment_of_vertex_ai(start_server, empty_repository):
    """Its variables choose the port and the models; HTTP and gRPC stay closed."""
    cloud.write_models(empty_repository, "one")
    port = servers.free_ports(1)[0]
    env = {
        **ROUTES,
        "AIP_MODE": "PREDICTION",
        "AIP_HTTP_PORT": str(port),
        "AIP_STORAGE_URI": str(empty_repository),
    }
    server = start_server(args=["--vertex-ai-address=127.0.0.1"], env=env, wait=False)
    server.cloud = f"http://127.0.0.1:{port}"
    servers.wait_until(lambda: "Started Vertex AI" in server.log, "the entry point")
    assert predict(server, cloud.json_body()).json()["model_name"] == "one"
    assert not server.is_live()
    assert "Started HTTPService" not in server.log
    assert "Started GRPCInferenceService" not in server.log


@pytest.mark.parametrize(
    "args, env, text",
    [
        ([], {"AIP_PREDICT_ROUTE": ""}, "API_PREDICT_ROUTE is not defined for Vertex AI endpoint"),
        ([], {"AIP_HEALTH_ROUTE": ""}, "AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint"),
        (
            [],
            {},
            "Expect the model repository contains only a single model if default model is not specified",
        ),
        (["--vertex-ai-default-model=three"], {}, "Expect the default model 'three' is loaded"),
        ([], {"AIP_HTTP_PORT": "many"}, "AIP_HTTP_PORT"),
        (["--allow-http=true", "--http-port=9999", "--vertex-ai-port=9999"], {}, "9999"),
    ],
)
def test_refusals_to_start(tmp_path, require_server, args, env, text):
    cloud.write_models(tmp_path, "one", "two")
    port = servers.free_ports(1)[0]
    result = servers.run_to_end(
        [
            f"--model-repository={tmp_path}",
            f"--backend-directory={servers.backends()}",
            "--allow-http=false",
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--allow-vertex-ai=true",
            "--http-address=127.0.0.1",
            "--vertex-ai-address=127.0.0.1",
            f"--vertex-ai-port={port}",
            *args,
        ],
        env={**ROUTES, **env},
    )
    assert result.returncode == 1
    assert text in result.stdout
