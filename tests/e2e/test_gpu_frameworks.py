# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime and PyTorch on a real GPU: answers, clients' memory on the device, memory of loads. They run where
NEREID_TEST_CUDA=real says that there is a GPU, with libraries of the frameworks that can use it."""

import concurrent.futures
import shutil

import numpy as np
import pytest
from harness import clients, cuda, models, wire
from harness import server as servers
from harness.shared_memory import both, connected, shared_input, shared_output

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(not cuda.IS_REAL, reason="there is no replacement for the frameworks' libraries for GPUs"),
]

FOLDERS = {
    "onnxruntime": models.EXAMPLES / "digits",
    "pytorch": models.ROOT / "examples" / "platforms" / "pytorch" / "digits_torchscript",
}
PIXELS, SCORES = 64 * 4, 10 * 4
TRUSTED = ["--allow-client-shm=true", "--trust-shared-memory=true"]
GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]\n"
# Without it, ONNX Runtime multiplies with ten bits of mantissa on GPUs that can.
EXACT = """optimization { execution_accelerators { gpu_execution_accelerator [
  { name: "cuda" parameters { key: "use_tf32" value: "0" } }
] } }
"""
TOLERANCE = 1e-4
CPU = "instance_group [ { kind: KIND_CPU } ]\n"


@pytest.fixture(params=FOLDERS)
def backend(request):
    if not servers.has_backend(request.param):
        pytest.skip(f"the build has no backend '{request.param}'")
    return request.param


@pytest.fixture(scope="module")
def images():
    return models.digit_images()


@pytest.fixture
def serve(start_server, tmp_path):
    """Starts a server with the digits of a backend as models "gpu", "cpu" and "auto"."""

    def start(backend, args=()):
        repository = tmp_path / "models"
        gpu = GPU + EXACT if backend == "onnxruntime" else GPU
        for name, group in (("gpu", gpu), ("cpu", CPU), ("auto", "")):
            shutil.copytree(FOLDERS[backend], repository / name)
            with open(repository / name / "config.pbtxt", "a", encoding="utf-8") as config:
                config.write(group)
        return start_server(repository, args=list(args))

    return start


def scores(client, model, batch, output="probabilities"):
    return client.infer(model, [client.input("pixels", batch, "FP32")]).as_numpy(output)


def test_the_gpu_is_used_and_answers_as_the_cpu_does(backend, serve, images):
    server = serve(backend)
    configs = [wire.request(server, "GET", f"/v2/models/{name}/config").json() for name in ("gpu", "cpu", "auto")]
    assert [config["instance_group"][0]["kind"] for config in configs] == ["KIND_GPU", "KIND_CPU", "KIND_GPU"]
    for kind in ("http", "grpc"):
        with connected(kind, server) as client:
            expected = scores(client, "cpu", images[:50])
            for rows in (1, 7, 50):
                for model, tolerance in (("gpu", TOLERANCE), ("auto", 1e-2)):
                    for first in range(0, 50 - rows + 1, rows):
                        found = scores(client, model, images[first : first + rows])
                        np.testing.assert_allclose(found, expected[first : first + rows], atol=tolerance)
    (stats,) = wire.request(server, "GET", "/v2/models/gpu/stats").json()["model_stats"]
    used = {(entry["type"], int(entry.get("id", 0))): int(entry["byte_size"]) for entry in stats["memory_usage"]}
    assert used.get(("GPU", 0), 0) > 0, used


def test_every_client_gets_its_own_answers(backend, serve, images):
    server = serve(backend)
    with connected("http", server) as client:
        expected = scores(client, "cpu", images)

    def work(number):
        made = clients.Client(("http", "grpc")[number % 2], server)
        try:
            for turn in range(40):
                at = (number * 7 + turn) % (len(images) - 4)
                rows = 1 + turn % 4
                found = scores(made, "gpu", images[at : at + rows])
                np.testing.assert_allclose(found, expected[at : at + rows], atol=TOLERANCE)
        finally:
            made.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@both
@pytest.mark.parametrize("args", [TRUSTED, TRUSTED[:1]], ids=["trusted", "not trusted"])
def test_tensors_stay_on_the_gpu(kind, args, backend, serve, images):
    server = serve(backend, args)
    with connected(kind, server) as client:
        expected = scores(client, "cpu", images[:40])
        given, taken = cuda.Memory(8 * PIXELS), cuda.Memory(8 * SCORES)
        given.register(client, "in")
        taken.register(client, "out")
        for turn in range(20):
            rows = 1 + turn % 8
            batch = images[turn : turn + rows]
            given.write(batch.tobytes())
            taken.write(b"\xff" * 8 * SCORES)
            for model in ("gpu", "cpu"):
                tensor = shared_input(client, "pixels", [rows, 64], "FP32", "in", rows * PIXELS)
                output = shared_output(client, "probabilities", "out", rows * SCORES)
                client.infer(model, [tensor], outputs=[output])
                found = np.frombuffer(taken.read(rows * SCORES), np.float32).reshape(rows, 10)
                np.testing.assert_allclose(found, expected[turn : turn + rows], atol=TOLERANCE)
                assert taken.read(8 * SCORES)[rows * SCORES :] == b"\xff" * (8 - rows) * SCORES
        client.unregister_cuda_shared_memory()
        given.close()
        taken.close()


def test_loads_give_the_memory_of_the_gpu_back(backend, serve, images):
    server = serve(backend, ["--model-control-mode=explicit", "--load-model=cpu"])
    free, probe = [], cuda.Memory(1)

    def is_unloaded():
        index = wire.request(server, "POST", "/v2/repository/index").json()
        return "unloaded" in [entry.get("reason") for entry in index]

    with connected("http", server) as client:
        expected = scores(client, "cpu", images[:4])
        for _ in range(30):
            client.load_model("gpu")
            np.testing.assert_allclose(scores(client, "gpu", images[:4]), expected, atol=TOLERANCE)
            client.unload_model("gpu")
            servers.wait_until(is_unloaded, "the model unloaded")
            free.append(probe.free_bytes())
    probe.close()
    print(f"{backend}: free MiB of the GPU after loads {[n >> 20 for n in free]}")
    assert max(free[10:20]) - min(free[20:]) < 64 << 20
