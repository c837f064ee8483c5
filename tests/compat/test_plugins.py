# SPDX-License-Identifier: Apache-2.0
"""Every plug-in answers in the server under test, whoever built the one and the other: ours in ours, ours in
the reference server (NEREID_REFERENCE), and those of Triton's sources in ours (NEREID_BACKENDS names their
folder, beside which are `caches` and `repoagents`). See docs/backends-compatibility.md."""

import hashlib
import queue
import shutil
import subprocess

import numpy as np
import pytest
import tritonclient.grpc
from harness import decoupled, models, python_models
from harness import server as servers
from harness.clients import Client

DOUBLE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(r, "INPUT0").as_numpy() for r in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", 2 * t)]) for t in tensors]
"""
# Asks the model above, through the server.
ASKING = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            asked = pb_utils.InferenceRequest(
                model_name="double",
                requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.get_input_tensor_by_name(request, "INPUT0")],
            ).exec()
            assert not asked.has_error(), asked.error().message()
            responses.append(pb_utils.InferenceResponse(asked.output_tensors()))
        return responses
"""
COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for i in range(int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([i], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
PYTHON = 'backend: "python"\n'
PAIR = (
    f"input [ {models.tensor_config('INPUT0', 'FP32', [4])} ]\n"
    f"output [ {models.tensor_config('OUTPUT0', 'FP32', [4])} ]\n"
)
COUNT = (
    f"input [ {models.tensor_config('IN', 'INT32', [1])} ]\n"
    f"output [ {models.tensor_config('OUT', 'INT32', [1])} ]\n" + decoupled.DECOUPLED
)


def needs(backend):
    return pytest.mark.skipif(not servers.has_backend(backend), reason=f"no backend {backend}")


def beside(folder):
    return servers.backends().parent / folder


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    if servers.has_backend("identity"):
        models.write_model(path, "identity", models.identity_config("FP32", [4]))
    if servers.has_backend("onnxruntime"):
        models.write_model(path, "onnx", None, {"1": {"model.onnx": models.onnx_add_sub("FP32", ["n", 4])}})
    if servers.has_backend("repeat"):
        decoupled.write_repeat(path)
    if servers.has_backend("square"):
        decoupled.write_square(path)
    if servers.has_backend("python"):
        models.write_model(path, "double", PYTHON, {"1": {"model.py": DOUBLE.encode()}})
        models.write_model(path, "asking", PYTHON + PAIR, {"1": {"model.py": ASKING.encode()}})
        models.write_model(path, "counting", PYTHON + COUNT, {"1": {"model.py": COUNTING.encode()}})
    log_dir = tmp_path_factory.mktemp("server")
    with servers.running(path, log_dir=log_dir, env=python_models.ENVIRONMENT) as running:
        yield running


@pytest.fixture
def connect():
    clients = []

    def connect(kind, server):
        clients.append(Client(kind, server))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def ask(client, model, tensor, name="INPUT0", datatype="FP32"):
    return client.infer(model, [client.input(name, tensor, datatype)])


def stream(server, model, inputs, count):
    """The answers to one request, which are `count`."""
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        tensors = []
        for name, values in inputs.items():
            datatype = {np.dtype(np.int32): "INT32", np.dtype(np.uint32): "UINT32"}[values.dtype]
            tensors.append(tritonclient.grpc.InferInput(name, list(values.shape), datatype))
            tensors[-1].set_data_from_numpy(values)
        client.async_stream_infer(model, tensors)
        got = [answers.get(timeout=30 * servers.SLOWNESS) for _ in range(count)]
        client.stop_stream()
    assert answers.empty()
    assert [error for _, error in got] == [None] * count
    return [result.as_numpy("OUT").tolist() for result, _ in got]


VALUES = np.array([1, 2.5, -3, 4], dtype=np.float32)


@needs("identity")
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_identity(server, connect, kind):
    assert ask(connect(kind, server), "identity", VALUES).as_numpy("OUTPUT0").tolist() == VALUES.tolist()


@needs("onnxruntime")
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_onnxruntime(server, connect, kind):
    client = connect(kind, server)
    rows = np.stack([VALUES, VALUES + 1])
    inputs = [client.input("INPUT0", rows, "FP32"), client.input("INPUT1", 2 * rows, "FP32")]
    result = client.infer("onnx", inputs)
    assert result.as_numpy("OUTPUT0").tolist() == (3 * rows).tolist()
    assert result.as_numpy("OUTPUT1").tolist() == (-rows).tolist()


@needs("repeat")
def test_repeat(server):
    inputs = {
        "IN": np.array([4, 2, 0], dtype=np.int32),
        "DELAY": np.array([1, 2, 3], dtype=np.uint32),
        "WAIT": np.array([5], dtype=np.uint32),
    }
    assert stream(server, "repeat", inputs, 3) == [[4], [2], [0]]


@needs("square")
def test_square(server):
    assert stream(server, "square", {"IN": np.array([3], dtype=np.int32)}, 3) == [[3], [3], [3]]


@needs("python")
@pytest.mark.parametrize("model", ["double", "asking"])
def test_python(server, connect, model):
    answer = ask(connect("http", server), model, VALUES).as_numpy("OUTPUT0")
    assert answer.tolist() == (2 * VALUES).tolist()


@needs("python")
def test_python_decoupled(server):
    assert stream(server, "counting", {"IN": np.array([3], dtype=np.int32)}, 3) == [[0], [1], [2]]


def serve_from_cache(start_server, connect, repository, *settings):
    models.write_model(
        repository, "cached", models.identity_config("FP32", [4], extra="response_cache { enable: true }\n")
    )
    directory = f"--cache-directory={beside('caches')}"
    server = start_server(repository, args=[directory, *(f"--cache-config={s}" for s in settings)])
    client = connect("http", server)
    for _ in range(3):
        assert ask(client, "cached", VALUES).as_numpy("OUTPUT0").tolist() == VALUES.tolist()
    statistics = client.get_inference_statistics("cached")["model_stats"][0]
    return {name: statistics["inference_stats"][f"cache_{name}"]["count"] for name in ("hit", "miss")}


@needs("identity")
def test_local_cache(start_server, connect, empty_repository):
    if not (beside("caches") / "local").exists():
        pytest.skip("no local cache")
    counts = serve_from_cache(start_server, connect, empty_repository, "local,size=1048576")
    assert counts == {"hit": 2, "miss": 1}


@needs("identity")
def test_redis_cache(start_server, connect, empty_repository, tmp_path):
    binary = shutil.which("redis-server")
    if not (beside("caches") / "redis").exists() or binary is None:
        pytest.skip("no redis cache, or no redis")
    port = servers.free_ports(1)[0]
    quiet = ["--save", "", "--appendonly", "no", "--dir", tmp_path, "--bind", "127.0.0.1"]
    redis = subprocess.Popen([binary, "--port", str(port), *map(str, quiet)], stdout=subprocess.DEVNULL)
    try:
        ping = ["redis-cli", "-p", str(port), "PING"]
        servers.wait_until(lambda: subprocess.run(ping, capture_output=True).stdout == b"PONG\n", "redis")
        where = ["redis,host=127.0.0.1", f"redis,port={port}"]
        assert serve_from_cache(start_server, connect, empty_repository, *where) == {"hit": 2, "miss": 1}
    finally:
        redis.kill()
        redis.wait()


@needs("identity")
def test_checksum_agent(start_server, connect, empty_repository):
    if not (beside("repoagents") / "checksum").exists():
        pytest.skip("no checksum agent")
    for name, digest in (("good", hashlib.md5(b"weights").hexdigest()), ("bad", "0" * 32)):
        agent = (
            'model_repository_agents { agents { name: "checksum" parameters '
            f'{{ key: "MD5:1/weights.bin" value: "{digest}" }} }} }}\n'
        )
        config = models.identity_config("FP32", [4], extra=agent)
        models.write_model(empty_repository, name, config, {"1": {"weights.bin": b"weights"}})
    args = [f"--repoagent-directory={beside('repoagents')}", "--exit-on-error=false", "--strict-readiness=false"]
    server = start_server(empty_repository, args=args)
    client = connect("http", server)
    assert ask(client, "good", VALUES).as_numpy("OUTPUT0").tolist() == VALUES.tolist()
    assert not client.is_model_ready("bad")
    server.wait_for_log("Mismatched MD5 hash for file 1/weights.bin")
