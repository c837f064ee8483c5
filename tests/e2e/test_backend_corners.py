# SPDX-License-Identifier: Apache-2.0
"""Manners of backends that a server has to cope with: outputs that are not written to the end (S26), and
backends that say that they are not ready, one that brings what the server has in it, too, and one
that opens libraries as Intel's TBB does."""

import os
import uuid

import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm
from harness import models
from harness import server as servers
from harness.clients import Client

pytestmark = pytest.mark.newer  # of the reference, outputs are whatever the memory held

CORNERS = (
    'backend: "corners"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('SIZE', 'INT32', [1])} ]\n"
    f"output [ {models.tensor_config('BYTES', 'UINT8', [-1])} ]\n"
)
CACHE = "response_cache { enable: true }\n"
# In the response's own memory, in a pooled buffer, in one of a size that is asked for rarely.
SIZES = [16, 500, 4096, 300_000]
CANARY = 0xA5


@pytest.fixture(scope="module")
def repository(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    library = servers.build_folder() / "tests" / "backends" / "libtriton_corners.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")
    for name, extra in (("corners", ""), ("corners_cached", CACHE)):
        models.write_model(path, name, CORNERS + extra)
        (path / name / "libtriton_corners.so").symlink_to(library)
    models.write_model(path, "id", models.identity_config("UINT8", [-1]))
    return path


@pytest.fixture(scope="module")
def server(repository, tmp_path_factory):
    args = [
        "--allow-client-shm=true",
        f"--cache-directory={servers.backends().parent / 'caches'}",
        "--cache-config=local,size=8388608",
    ]
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server"), args=args) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = Client(request.param, server)
    yield made
    made.close()


def tensor(client, name, values, datatype):
    made = client.tensors.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


def fill_pools(client, size):
    """Leaves the canary in the memory that requests and responses of this size are given."""
    values = np.full(size, CANARY, dtype=np.uint8)
    for _ in range(8):
        answer = client.infer("id", [tensor(client, "INPUT0", values, "UINT8")]).as_numpy("OUTPUT0")
        assert (answer == CANARY).all()


def ask(client, size, model="corners", **options):
    return client.infer(model, [tensor(client, "SIZE", np.array([size], dtype=np.int32), "INT32")], **options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", ["corners", "corners_cached"])
def test_s26_unwritten_bytes_show_nothing_of_other_requests(client, size, model):
    for attempt in range(4):
        fill_pools(client, size + attempt)
        # Of a model with a cache, once executed and once from the cache.
        for _ in range(2):
            answer = ask(client, size + attempt, model).as_numpy("BYTES")
            assert answer[0] == 1
            assert not answer[1:].any()


@pytest.mark.parametrize("size", SIZES)
def test_s26_nor_do_those_in_shared_memory(client, size):
    name = uuid.uuid4().hex
    region = shm.create_shared_memory_region(name, f"/{name}", size)
    try:
        client.register_system_shared_memory(name, f"/{name}", size)
        wanted = client.tensors.InferRequestedOutput("BYTES")
        wanted.set_shared_memory(name, size)
        for _ in range(4):
            fill_pools(client, size)
            ask(client, size, outputs=[wanted])
            answer = shm.get_contents_as_numpy(region, np.uint8, [size])
            assert answer[0] == 1
            assert not answer[1:].any()
        client.unregister_system_shared_memory(name)
    finally:
        shm.destroy_shared_memory_region(region)


def test_readiness_follows_the_backend(repository, server, client):
    marker = repository / "corners" / "not_ready"
    health = f"http://{server.http}/v2/health/ready"
    assert client.is_model_ready("corners") and client.is_server_ready()
    marker.touch()
    try:
        assert not client.is_model_ready("corners")
        assert not client.is_model_ready("corners", "1")
        assert not client.is_server_ready()
        assert requests.get(health, timeout=10).status_code == 400
        answer = requests.get(f"http://{server.http}/v2/models/corners/ready", timeout=10)
        assert answer.status_code == 400
        assert answer.json() == {"error": "Model version not ready"}
        # The others are; and what is not ready is still served, as it is by Triton.
        assert client.is_model_ready("id") and client.is_server_live()
        assert ask(client, 3).as_numpy("BYTES").tolist() == [1, 0, 0]
    finally:
        os.unlink(marker)
    assert client.is_model_ready("corners") and client.is_server_ready()


def write_model_of(repository, backend):
    """A model of the name of one of the tests' backends, which is in its folder."""
    library = servers.build_folder() / "tests" / "backends" / f"libtriton_{backend}.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")
    models.write_model(repository, backend, CORNERS.replace("corners", backend))
    (repository / backend / library.name).symlink_to(library)


def test_a_backend_with_messages_of_the_same_names_is_bound_to_its_own(require_server, tmp_path):
    write_model_of(tmp_path / "models", "messages")
    with servers.running(tmp_path / "models", log_dir=tmp_path) as running:
        # It would have ended the server while loading, or failed.
        client = Client("grpc", running)
        assert client.is_model_ready("messages") and client.is_server_ready()
        client.close()
        mapped = {line.split("/")[-1] for line in open(f"/proc/{running.pid}/maps") if "/" in line}
    assert any(name.startswith("libtriton_messages.so") for name in mapped)
    # What it needs of that name is the program itself.
    assert not any(name.startswith("libtritonserver") for name in mapped)


def test_a_backend_that_opens_a_library_as_tbb_does_leaves_the_server_alive(require_server, tmp_path, monkeypatch):
    monkeypatch.delenv("TBB_ENABLE_SANITIZERS", raising=False)
    write_model_of(tmp_path / "models", "deepbind")
    with servers.running(tmp_path / "models", log_dir=tmp_path) as running:
        client = Client("grpc", running)
        assert client.is_model_ready("deepbind") and client.is_server_ready()
        client.close()


def test_a_backend_that_trims_memory_with_many_threads_leaves_the_server_alive(require_server, tmp_path):
    write_model_of(tmp_path / "models", "trim")
    # A process has only one first time, and where it is not safe, half of them survive it.
    for _ in range(10):
        with servers.running(tmp_path / "models", log_dir=tmp_path) as running:
            client = Client("grpc", running)
            assert client.is_model_ready("trim") and client.is_server_ready()
            client.close()
