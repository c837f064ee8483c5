# SPDX-License-Identifier: Apache-2.0
"""What tests of shared memory have in common: a server that allows it, objects to share, and tensors in
them. The fixtures are imported by the modules that want them."""

import contextlib
import mmap
import os
import queue
import uuid

import numpy as np
import pytest
import tritonclient.utils.shared_memory as shm
from harness import decoupled, models, wire
from harness import server as servers
from harness.clients import KINDS, Client
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

ALLOW = ["--allow-client-shm=true"]
PAGE = mmap.PAGESIZE
CACHE = "response_cache { enable: true }\n"
ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
    f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n"
    'ensemble_scheduling { step [ { model_name: "STEP" model_version: -1\n'
    'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "MIDDLE" } },\n'
    '{ model_name: "id" model_version: -1\n'
    'input_map { key: "INPUT0" value: "MIDDLE" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }\n'
)


def delay(ms):
    return f'parameters {{ key: "execute_delay_ms" value: {{ string_value: "{ms}" }} }}\n'


@pytest.fixture(scope="module")
def shm_server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    models.write_model(path, "id", models.identity_config("FP32", [-1]))
    models.write_model(path, "pair", models.identity_config("INT32", [-1], count=2))
    models.write_model(path, "batched", models.identity_config("FP32", [-1], max_batch_size=8))
    models.write_model(path, "text", models.identity_config("BYTES", [-1]))
    models.write_model(path, "cached", models.identity_config("FP32", [-1], extra=CACHE))
    models.write_model(path, "slow", models.identity_config("FP32", [-1], extra=delay(400)))
    decoupled.write_repeat(path)
    for name, step in (("through", "id"), ("through_cache", "cached")):
        models.write_model(path, name, ENSEMBLE.replace("STEP", step))
    with servers.running(
        path,
        log_dir=tmp_path_factory.mktemp("server"),
        args=[
            *ALLOW,
            f"--cache-directory={servers.backends().parent / 'caches'}",
            "--cache-config=local,size=1048576",
        ],
    ) as running:
        yield running


@pytest.fixture
def clean(shm_server):
    """The server, without regions before and after the test."""
    with connected("http", shm_server) as client:
        client.unregister_system_shared_memory()
    yield shm_server
    with connected("http", shm_server) as client:
        client.unregister_system_shared_memory()
        assert client.get_system_shared_memory_status() == []


def post(server, path, body):
    return wire.request(server, "POST", path, body)


def get(server, path):
    return wire.request(server, "GET", path)


@contextlib.contextmanager
def connected(kind, server):
    client = Client(kind, server)
    try:
        yield client
    finally:
        client.close()


class Region:
    """A shared memory object of a test, which it can see into and shrink."""

    def __init__(self, size, name=None):
        self.name = name or f"r{uuid.uuid4().hex[:12]}"
        self.key = f"/nereid_{uuid.uuid4().hex}"
        self.size = size
        self.handle = shm.create_shared_memory_region(self.name, self.key, size)

    def register(self, client, size=None, offset=0, name=None):
        client.register_system_shared_memory(
            name or self.name, self.key, self.size if size is None else size, offset=offset
        )
        return self

    def set(self, array, offset=0):
        if array.dtype == np.object_:
            array = serialize_byte_tensor(array).item()
            with open(f"/dev/shm{self.key}", "r+b") as file:
                file.seek(offset)
                file.write(array)
            return len(array)
        shm.set_shared_memory_region(self.handle, [array], offset=offset)
        return array.nbytes

    def get(self, dtype, shape, offset=0):
        return shm.get_contents_as_numpy(self.handle, dtype, shape, offset=offset)

    def truncate(self, size):
        os.truncate(f"/dev/shm{self.key}", size)

    def destroy(self):
        shm.destroy_shared_memory_region(self.handle)


@pytest.fixture
def region():
    made = []

    def make(size, name=None):
        made.append(Region(size, name))
        return made[-1]

    yield make
    for each in made:
        each.destroy()


def shared_input(client, name, shape, datatype, region, size, offset=0):
    tensor = client.tensors.InferInput(name, list(shape), datatype)
    tensor.set_shared_memory(region, size, offset)
    return tensor


def shared_output(client, name, region, size, offset=0):
    tensor = client.output(name, binary=False) if client.is_http else client.output(name)
    tensor.set_shared_memory(region, size, offset)
    return tensor


def status(client, name=""):
    """The registered regions by name, whatever the protocol."""
    answer = client.as_json("get_system_shared_memory_status", region_name=name)
    if client.is_http:
        return {entry["name"]: entry for entry in answer}
    return {
        name: {**entry, "offset": int(entry.get("offset", 0)), "byte_size": int(entry["byte_size"])}
        for name, entry in answer.get("regions", {}).items()
    }


def refused(call, *args, **kwargs):
    with pytest.raises(InferenceServerException) as error:
        call(*args, **kwargs)
    return error.value.message()


both = pytest.mark.parametrize("kind", ["http", "grpc"])
every = pytest.mark.parametrize("kind", KINDS)


@contextlib.contextmanager
def streaming(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        yield answers
    finally:
        client.stop_stream()


def mapped(server):
    """The shared memory objects that the server has mapped."""
    maps = open(f"/proc/{server.pid}/maps").read()
    return sorted({line.split("/dev/shm")[1].split(" ")[0] for line in maps.splitlines() if "/dev/shm" in line})
