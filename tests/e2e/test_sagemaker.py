# SPDX-License-Identifier: Apache-2.0
"""The entry point of Amazon SageMaker: /ping and /invocations."""

import json
import threading

import pytest
import requests
import sseclient

from harness import cloud, decoupled, models
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


def test_generate(start, empty_repository):
    decoupled.write_square(empty_repository)
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


# Containers of several models: the platform unpacks archives and names what is in them.


@pytest.fixture
def archives(tmp_path):
    folder = tmp_path / "archives"
    folder.mkdir()
    return folder


@pytest.fixture
def platform(start, empty_repository, archives):
    """A server that loads what the platform names."""
    env = {"NEREID_SAGEMAKER_ARCHIVES": str(archives)}
    return start(empty_repository, args=["--model-control-mode=explicit"], env=env)


def echo_config(name):
    return f'name: "{name}"\n' + models.identity_config("INT32", [-1], count=2, max_batch_size=8)


def unpack(archives, digest, name="model_of_a_customer"):
    """An archive of one model."""
    folder = archives / digest / "model"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(echo_config(name))
    return str(folder)


def load(server, name, url, headers=()):
    body = json.dumps({"model_name": name, "url": url})
    return requests.post(f"{server.cloud}/models", data=body, headers=dict(headers), timeout=60)


def invoke_model(server, name, body=None, headers=()):
    url = f"{server.cloud}/models/{name}/invoke"
    return requests.post(url, data=body or cloud.json_body(), headers=dict(headers), timeout=30)


def names(server):
    return [m["modelName"] for m in requests.get(f"{server.cloud}/models", timeout=30).json()["models"]]


def test_models_come_and_go(platform, archives):
    url = unpack(archives, "123abc")
    assert names(platform) == []
    assert load(platform, "hash1", url).status_code == 200
    assert load(platform, "hash1", url).status_code == 409
    assert names(platform) == ["hash1"]
    reply = requests.get(f"{platform.cloud}/models/hash1", timeout=30)
    assert reply.json() == {"modelName": "hash1", "modelUrl": str(archives / "123abc")}
    reply = invoke_model(platform, "hash1")
    assert reply.json()["model_name"] == "hash1"
    assert cloud.outputs_of(reply)["OUTPUT0"] == cloud.ROW
    body, length = cloud.binary_body()
    reply = invoke_model(platform, "hash1", body, {"Content-Type": MIME + str(length)})
    assert cloud.outputs_of(reply)["OUTPUT1"] == cloud.ROW
    assert requests.delete(f"{platform.cloud}/models/hash1", timeout=60).status_code == 200
    for reply in (
        requests.delete(f"{platform.cloud}/models/hash1", timeout=60),
        requests.get(f"{platform.cloud}/models/hash1", timeout=30),
        invoke_model(platform, "hash1"),
    ):
        assert reply.status_code == 404
    assert load(platform, "hash1", url).status_code == 200
    assert invoke_model(platform, "hash1").status_code == 200


def test_models_under_the_name_of_their_archive(platform, archives):
    url = unpack(archives, "456")
    header = {"X-Amzn-SageMaker-Target-Model": "customers_model"}
    assert load(platform, "hash2", url, header).status_code == 200
    assert invoke_model(platform, "hash2", headers=header).json()["model_name"] == "customers_model"
    assert invoke_model(platform, "customers_model").status_code == 404
    assert load(platform, "hash3", url, header).status_code == 409


def test_an_ensemble_with_its_parts(platform, archives):
    folder = archives / "789" / "model"
    (folder / "part" / "1").mkdir(parents=True)
    (folder / "part" / "config.pbtxt").write_text(echo_config("part"))
    (folder / "whole" / "1").mkdir(parents=True)
    tensors = [f"{models.tensor_config(n, 'INT32', [-1])}" for n in ("A", "B", "C")]
    (folder / "whole" / "config.pbtxt").write_text(
        'name: "whole"\nplatform: "ensemble"\nmax_batch_size: 8\n'
        f"input [ {tensors[0]}, {tensors[1]} ]\noutput [ {tensors[2]} ]\n"
        'ensemble_scheduling { step [ { model_name: "part" model_version: -1\n'
        '  input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "B" }\n'
        '  output_map { key: "OUTPUT1" value: "C" } } ] }\n'
    )
    reply = load(platform, "hash4", str(folder))
    assert reply.status_code == 200, reply.text
    inputs = [
        {"name": n, "shape": [1, 2], "datatype": "INT32", "data": d} for n, d in (("A", [1, 2]), ("B", [3, 4]))
    ]
    reply = invoke_model(platform, "hash4", json.dumps({"inputs": inputs}))
    assert cloud.outputs_of(reply) == {"C": [3, 4]}
    assert requests.delete(f"{platform.cloud}/models/hash4", timeout=60).status_code == 200
    ready = requests.post(f"http://{platform.http}/v2/repository/index", timeout=30).json()
    assert not [m for m in ready if m.get("state") == "READY"]


@pytest.mark.parametrize(
    "url",
    [
        "/etc",
        "/proc/self/fd",
        "../x/model",
        "{archives}/../archives2/model",
        "{archives}/x/../../etc/model",
        "{archives}/abc",
        "{archives}/abc/other",
        "{archives}/abc/model/a/b",
        "{archives}/a-b/model",
        "",
    ],
)
def test_security_s01_urls_outside_of_archives(platform, url, archives):
    reply = load(platform, "hash5", url.format(archives=archives))
    assert reply.status_code == 400
    assert "expected a path of the form" in reply.json()["error"]
    assert names(platform) == []


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "/abs", "", " "])
def test_security_s01_names_that_are_paths(platform, archives, name):
    url = unpack(archives, "abc")
    assert load(platform, name, url).status_code == 400
    header = {"X-Amzn-SageMaker-Target-Model": name.strip()}
    assert load(platform, "hash6", url, header).status_code == 400
    assert names(platform) == []


def test_what_cannot_be_loaded(platform, archives):
    url = unpack(archives, "broken")
    (archives / "broken" / "model" / "config.pbtxt").write_text('backend: "none"\n')
    reply = load(platform, "hash7", url)
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert names(platform) == []
    assert load(platform, "hash7", str(archives / "nothing" / "model")).status_code == 400
    body = requests.post(f"{platform.cloud}/models", data="{", timeout=30)
    assert body.status_code == 400
    # The same name can be used once the archive is right.
    (archives / "broken" / "model" / "config.pbtxt").write_text(echo_config("x"))
    assert load(platform, "hash7", url).status_code == 200


def test_security_s22_restrictions_hold_for_models_too(start, empty_repository, archives):
    url = unpack(archives, "abc")
    server = start(
        empty_repository,
        args=[
            "--model-control-mode=explicit",
            "--http-restricted-api=model-repository:key=secret",
            "--http-restricted-api=inference:k2=s2",
        ],
        env={"NEREID_SAGEMAKER_ARCHIVES": str(archives)},
    )
    key = {"key": "secret"}
    assert load(server, "hash8", url).status_code == 403
    assert requests.get(f"{server.cloud}/models", timeout=30).status_code == 403
    assert requests.get(f"{server.cloud}/models/hash8", timeout=30).status_code == 403
    assert requests.delete(f"{server.cloud}/models/hash8", timeout=30).status_code == 403
    assert load(server, "hash8", url, key).status_code == 200
    assert invoke_model(server, "hash8").status_code == 403
    assert invoke_model(server, "hash8", headers=key).status_code == 403
    assert invoke_model(server, "none").status_code == 403
    assert invoke_model(server, "hash8", headers={"k2": "s2"}).status_code == 200


def test_a_server_whose_models_are_fixed(start, empty_repository, archives):
    cloud.write_models(empty_repository, "one")
    env = {"NEREID_SAGEMAKER_ARCHIVES": str(archives)}
    server = start(empty_repository, env=env)
    reply = load(server, "hash9", unpack(archives, "abc"))
    assert reply.status_code == 400
    assert reply.json()["error"]


def test_security_s16_load_invoke_and_unload_at_once(platform, archives):
    url = unpack(archives, "abc")
    seen = set()

    def act(action):
        for _ in range(15):
            seen.add((action.__name__, action().status_code))

    def loads():
        return load(platform, "hash", url)

    def invokes():
        return invoke_model(platform, "hash")

    def unloads():
        return requests.delete(f"{platform.cloud}/models/hash", timeout=60)

    threads = [threading.Thread(target=act, args=(a,)) for a in (loads, loads, invokes, unloads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {s for a, s in seen if a == "loads"} <= {200, 400, 409}
    assert {s for a, s in seen if a == "invokes"} <= {200, 400, 404}
    assert {s for a, s in seen if a == "unloads"} <= {200, 404}
    assert ping(platform).status_code == 200
