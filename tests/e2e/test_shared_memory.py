# SPDX-License-Identifier: Apache-2.0
"""Tensors in shared memory: registration, inference on both protocols and on streams, what is refused,
and clients that take memory away while it is used. Rows S07, S08 and S09 are of the security cases."""

import contextlib
import json
import mmap
import os
import queue
import threading
import uuid

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.utils.shared_memory as shm
from harness import models, wire
from harness import server as servers
from harness.clients import KINDS, Client
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

pytestmark = pytest.mark.newer  # the reference server knows no --allow-client-shm

ALLOW = ["--allow-client-shm=true"]
DISABLED = (
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
)
PAGE = mmap.PAGESIZE
CACHE = "response_cache { enable: true }\n"
REPEAT = (
    'backend: "repeat"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('IN', 'INT32', [-1])}, {models.tensor_config('DELAY', 'UINT32', [-1])},\n"
    f"{models.tensor_config('WAIT', 'UINT32', [1])} ]\n"
    f"output [ {models.tensor_config('OUT', 'INT32', [1])}, {models.tensor_config('IDX', 'UINT32', [1])} ]\n"
    "model_transaction_policy { decoupled: true }\n"
)
ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('INPUT0', 'FP32', [-1])} ]\n"
    f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1])} ]\n"
    'ensemble_scheduling { step [ { model_name: "STEP" model_version: -1\n'
    'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "MIDDLE" } },\n'
    '{ model_name: "id" model_version: -1\n'
    'input_map { key: "INPUT0" value: "MIDDLE" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }\n'
)
RESERVED = "triton_python_backend_shm_region_"


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
    models.write_model(path, "repeat", REPEAT)
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


# -- Registration --


@every
def test_s09c_a_server_refuses_clients_that_it_was_not_told_to_allow(kind, server):
    with connected(kind, server) as client:
        assert refused(client.register_system_shared_memory, "r", "/k", 8) == DISABLED
        assert refused(client.unregister_system_shared_memory, "r") == DISABLED
        assert refused(client.unregister_system_shared_memory) == DISABLED
        assert refused(client.register_cuda_shared_memory, "r", b"", 0, 8) == DISABLED
        assert refused(client.unregister_cuda_shared_memory) == DISABLED
        assert status(client) == {}
        tensor = shared_input(client, "INPUT0", [2, 2], "FP32", "r", 16)
        assert (
            refused(client.infer, "id_FP32", [tensor])
            == "Unable to find shared memory region: 'r'"
        )


def test_a_refusal_has_the_status_of_an_unsupported_request(server):
    reply = post(server, "/v2/systemsharedmemory/region/r/register", b"{}")
    assert reply.status == 501
    assert json.loads(reply.body) == {"error": DISABLED}
    assert post(server, "/v2/cudasharedmemory/unregister", b"").status == 501


@every
def test_status_tells_what_was_registered(kind, clean, region):
    made = region(4 * PAGE)
    with connected(kind, clean) as client:
        made.register(client, name="b", size=PAGE, offset=2 * PAGE)
        made.register(client, name="a", size=100)
        assert sorted(status(client)) == ["a", "b"]
        assert status(client, "b") == {
            "b": {"name": "b", "key": made.key, "offset": 2 * PAGE, "byte_size": PAGE}
        }
        message = refused(client.get_system_shared_memory_status, "c")
        assert message == "Unable to find system shared memory region: 'c'"
        client.unregister_system_shared_memory("a")
        client.unregister_system_shared_memory("a")
        client.unregister_system_shared_memory("never")
        assert list(status(client)) == ["b"]
        client.unregister_system_shared_memory()
        assert status(client) == {}


@both
def test_a_name_is_taken_until_it_is_unregistered(kind, clean, region):
    made = region(64, "taken")
    with connected(kind, clean) as client:
        made.register(client)
        again = refused(made.register, client, size=32)
        assert again == "shared memory region 'taken' already in manager"
        assert status(client)["taken"]["byte_size"] == 64
        made.register(client, name="other", size=32)  # one object under two names
        client.unregister_system_shared_memory("taken")
        made.register(client, size=32)
        assert status(client)["taken"]["byte_size"] == 32


@both
@pytest.mark.parametrize(
    "size, offset",
    [(65, 0), (64, 1), (1, 64), (0, 65), (2**64 - 1, 2), (64, 2**64 - 63), (2**63, 2**63)],
)
def test_s07_regions_lie_within_their_objects(kind, clean, region, size, offset):
    made = region(64, "r")
    with connected(kind, clean) as client:
        message = refused(made.register, client, size=size, offset=offset)
        assert message == "failed to register shared memory region 'r': invalid args"
        assert status(client) == {}


@both
@pytest.mark.parametrize("size, offset", [(0, 0), (32, 16)])
def test_s07_what_cannot_be_mapped_is_refused(kind, clean, region, size, offset):
    made = region(64, "r")
    with connected(kind, clean) as client:
        assert refused(made.register, client, size=size, offset=offset) == (
            "failed to register shared memory region 'r': unable to process address spaceInvalid argument"
        )


@both
@pytest.mark.parametrize("slashes", ["", "/", "///"])
def test_s09b_no_client_registers_what_belongs_to_the_python_backend(kind, clean, slashes):
    key = f"{slashes}{RESERVED}_1"
    with connected(kind, clean) as client:
        assert refused(client.register_system_shared_memory, "r", key, 8) == (
            f"cannot register shared memory region 'r' with key '{key}' as the key contains the "
            f"reserved prefix '{RESERVED}'"
        )


@both
@pytest.mark.parametrize("key", ["", "/", "///"])
def test_s09b_a_key_of_slashes_is_none(kind, clean, key):
    with connected(kind, clean) as client:
        message = refused(client.register_system_shared_memory, "r", key, 8)
        assert message == f"cannot register shared memory region 'r' - invalid shm key '{key}'"


@both
def test_an_object_that_is_not_there(kind, clean):
    with connected(kind, clean) as client:
        message = refused(client.register_system_shared_memory, "r", "/nereid_nothing", 8)
        assert message == "Unable to open shared memory region: '/nereid_nothing'"
        message = refused(client.register_system_shared_memory, "r", "/../../etc/passwd", 8)
        assert message == "Unable to open shared memory region: '/../../etc/passwd'"


@pytest.mark.parametrize(
    "body, status, error",
    [
        (b"", 500, "failed to parse the request JSON buffer: The document is empty. at 0"),
        (b"[", 500, "failed to parse the request JSON buffer: Invalid value. at 1"),
        (b"{}", 400, "Shared memory register request has no 'key' field"),
        (b'{"key":1}', 500, "attempt to access JSON non-string as string"),
        (b'{"key":"/k"}', 400, "Shared memory register request has no 'byte_size' field"),
        (
            b'{"key":"/k","offset":-1,"byte_size":1}',
            500,
            "attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            b'{"key":"/k","byte_size":"1"}',
            500,
            "attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (b'{"key":"/nereid_no","byte_size":1}', 500, "Unable to open shared memory region: '/nereid_no'"),
    ],
)
def test_bodies_of_registrations_over_http(clean, body, status, error):
    reply = post(clean, "/v2/systemsharedmemory/region/r/register", body)
    assert json.loads(reply.body) == {"error": error}
    assert reply.status == status


def test_the_http_routes_of_regions(clean, region):
    made = region(64)
    body = json.dumps({"key": made.key, "byte_size": 64}).encode()
    reply = post(clean, "/v2/systemsharedmemory/region/r/register", body)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-type"] == "application/json"
    again = post(clean, "/v2/systemsharedmemory/region/r/register", body)
    assert again.status == 400
    listed = get(clean, "/v2/systemsharedmemory/region/r/status")
    assert json.loads(listed.body) == [{"name": "r", "key": made.key, "offset": 0, "byte_size": 64}]
    assert get(clean, "/v2/systemsharedmemory/region/x/status").status == 404
    nameless = post(clean, "/v2/systemsharedmemory/register", body)
    assert nameless.status == 400
    assert json.loads(nameless.body) == {
        "error": "'region name' is necessary to register system shared memory region"
    }
    wrong_kind = get(clean, "/v2/cudasharedmemory/region/r/status")
    assert wrong_kind.status == 404
    assert json.loads(wrong_kind.body) == {
        "error": "The region named 'r' is registered as system shared memory, not CUDA shared memory"
    }
    assert post(clean, "/v2/cudasharedmemory/unregister", b"").status == 200
    assert post(clean, "/v2/systemsharedmemory/unregister", b"").status == 200
    assert get(clean, "/v2/systemsharedmemory/status").body == b"[]"
    for memory in ("system", "cuda"):
        for action, method, allow in (
            ("status", "POST", "GET, HEAD"),
            ("register", "GET", "POST"),
            ("unregister", "GET", "POST"),
        ):
            path = f"/v2/{memory}sharedmemory/region/r/{action}"
            reply = wire.request(clean, method, path)
            assert (reply.status, reply.headers["allow"]) == (405, allow), path


@every
def test_cuda_regions_without_a_gpu(kind, clean):
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a GPU")
    with connected(kind, clean) as client:
        assert client.as_json("get_cuda_shared_memory_status") in ([], {})
        message = refused(client.register_cuda_shared_memory, "c", b"aGFuZGxl", 0, 8)
        assert message == "failed to register CUDA shared memory region: 'c', GPUs not supported"
        client.unregister_cuda_shared_memory("c")
        client.unregister_cuda_shared_memory()
        message = refused(client.get_cuda_shared_memory_status, "c")
        assert message == "Unable to find cuda shared memory region: 'c'"


# -- Inference --


@every
@pytest.mark.parametrize("register_offset", [0, 1023 * PAGE])
def test_tensors_in_regions(kind, clean, region, register_offset):
    source = region(register_offset + PAGE)
    target = region(register_offset + PAGE)
    first = np.arange(16, dtype=np.int32)
    second = np.arange(100, 116, dtype=np.int32)
    source.set(first, register_offset)
    source.set(second, register_offset + 64)
    with connected(kind, clean) as client:
        source.register(client, size=PAGE, offset=register_offset)
        target.register(client, size=PAGE, offset=register_offset)
        inputs = [
            shared_input(client, "INPUT0", [16], "INT32", source.name, 64),
            shared_input(client, "INPUT1", [16], "INT32", source.name, 64, 64),
        ]
        outputs = [
            shared_output(client, "OUTPUT0", target.name, 64, 128),
            shared_output(client, "OUTPUT1", target.name, 200, 256),
        ]
        result = client.infer("pair", inputs, outputs=outputs)
        if client.is_http:
            assert list(status(client)) == sorted([source.name, target.name])  # in this order
        for name in ("OUTPUT0", "OUTPUT1"):
            output = result.get_output(name)
            if not client.is_http:
                assert (output.datatype, list(output.shape)) == ("INT32", [16])
                assert not output.parameters
            else:
                assert output == {"name": name, "datatype": "INT32", "shape": [16]}
        np.testing.assert_array_equal(target.get(np.int32, [16], register_offset + 128), first)
        np.testing.assert_array_equal(target.get(np.int32, [16], register_offset + 256), second)


@both
def test_some_tensors_in_regions_and_some_not(kind, clean, region):
    made = region(PAGE)
    numbers = np.arange(16, dtype=np.int32)
    made.set(numbers)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [
            client.input("INPUT0", numbers + 1, "INT32"),
            shared_input(client, "INPUT1", [16], "INT32", made.name, 64),
        ]
        result = client.infer("pair", inputs)  # no outputs asked for: all of them, in the answer
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), numbers + 1)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), numbers)
        inputs.reverse()
        outputs = [shared_output(client, "OUTPUT0", made.name, 64, 512), client.output("OUTPUT1")]
        result = client.infer("pair", inputs, outputs=outputs)
        np.testing.assert_array_equal(made.get(np.int32, [16], 512), numbers + 1)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), numbers)


@both
def test_strings_in_regions(kind, clean, region):
    made = region(2 * PAGE)
    strings = np.array([b"", b"one", "zwei ü".encode(), bytes(range(256))], dtype=np.object_)
    with connected(kind, clean) as client:
        made.register(client)
        size = made.set(strings)
        inputs = [shared_input(client, "INPUT0", [4], "BYTES", made.name, size)]
        outputs = [shared_output(client, "OUTPUT0", made.name, PAGE, PAGE)]
        client.infer("text", inputs, outputs=outputs)
        assert list(made.get(np.object_, [4], PAGE)) == list(strings)


# The lengths that a client writes into a region are as bad as those it sends.
@both
@pytest.mark.parametrize(
    "data, size, why",
    [
        (b"\x05\0\0\0hell", 8, "incomplete string data"),
        (b"\xff\xff\xff\xffhell", 8, "incomplete string data"),
        (b"\x05\0", 2, "incomplete string length indicator"),
        (b"\x01\0\0\0h\x01\0\0\0e", 10, "unexpected number of string elements 2"),
        (b"", 1, "incomplete string length indicator"),
    ],
)
def test_s07_strings_in_regions_are_checked(kind, clean, region, data, size, why):
    made = region(64)
    made.set(np.frombuffer(data.ljust(16, b"\0"), dtype=np.uint8))
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [1], "BYTES", made.name, size)]
        assert why in refused(client.infer, "text", inputs)


@both
def test_s07_uses_lie_within_their_regions(kind, clean, region):
    made = region(2 * PAGE, "r")
    numbers = np.zeros(16, dtype=np.float32)
    with connected(kind, clean) as client:
        made.register(client, size=64)

        def error(size, offset, name="r"):
            as_input = shared_input(client, "INPUT0", [16], "FP32", name, size, offset)
            message = refused(client.infer, "id", [as_input])
            as_output = shared_output(client, "OUTPUT0", name, size, offset)
            plain = [client.input("INPUT0", numbers, "FP32")]
            assert refused(client.infer, "id", plain, outputs=[as_output]) == message
            return message

        assert error(64, 64) == "Invalid offset for shared memory region: 'r'"
        assert error(64, 2**63 - 1) == "Invalid offset for shared memory region: 'r'"
        assert error(64, 1) == "Invalid offset + byte size for shared memory region: 'r'"
        assert error(2**63 - 1, 0) == "Invalid offset + byte size for shared memory region: 'r'"
        assert error(64, 0, "other") == "Unable to find shared memory region: 'other'"
        if client.is_http:
            assert error(64, 2**64 - 32) == "Invalid offset for shared memory region: 'r'"
            assert error(2**64 - 32, 32) == (
                "Integer overflow detected: byte_size (18446744073709551584) + offset (32) exceeds "
                "maximum value (18446744073709551615) for region 'r'"
            )
        else:  # negative numbers are as large as can be
            assert error(64, -32) == "Invalid offset for shared memory region: 'r'"
            assert error(-32, 0) == "Invalid offset + byte size for shared memory region: 'r'"
            assert error(-32, 32).startswith("Integer overflow detected: byte_size (184467")


@both
def test_sizes_that_do_not_fit_the_tensor(kind, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 128)]
        assert (
            "input byte size mismatch for input 'INPUT0' for model 'id'. Expected 64, got 128"
            in refused(client.infer, "id", inputs)
        )
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 63)]
        assert (
            "shared memory size specified with the request for output 'OUTPUT0' (63 bytes) should "
            "be at least 64 bytes to hold the results" in refused(client.infer, "id", inputs, outputs=outputs)
        )


@both
def test_tensors_without_elements(kind, clean, region):
    made = region(64)
    with connected(kind, clean) as client:
        made.register(client)
        inputs = [shared_input(client, "INPUT0", [0], "FP32", made.name, 0)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 64)]
        output = client.infer("id", inputs, outputs=outputs).get_output("OUTPUT0")
        assert list(output["shape"] if client.is_http else output.shape) == [0]


def infer_http(server, head, model="id"):
    reply = post(server, f"/v2/models/{model}/infer", json.dumps(head).encode())
    return reply.status, json.loads(reply.body).get("error")


# The quick and the exact reader of heads take and refuse the same.
def test_heads_over_http(clean, region):
    made = region(PAGE, "r")
    made.set(np.arange(4, dtype=np.float32))
    with connected("http", clean) as client:
        made.register(client)

    def tensor(**parameters):
        return {"name": "INPUT0", "datatype": "FP32", "shape": [4], "parameters": parameters}

    def named(**rest):
        return {f"shared_memory_{key}": value for key, value in rest.items()}

    good = tensor(**named(region="r", byte_size=16))
    assert infer_http(clean, {"inputs": [good]}) == (200, None)
    # An escape makes the exact reader read it.
    assert infer_http(clean, {"id": "\\u00e9", "inputs": [{**good, "x\n": 1}]}) == (200, None)
    unable = "Unable to parse 'shared_memory_{}': attempt to access JSON non-{} as {}"
    number = ("unsigned-integer", "unsigned-integer")
    for wrong, status, error in (
        (tensor(**named(region=1)), 500, unable.format("region", "string", "string")),
        (tensor(**named(region="r", offset=-1)), 500, unable.format("offset", *number)),
        (tensor(**named(region="r", byte_size=1.5)), 500, unable.format("byte_size", *number)),
        ({**tensor(**named(offset="x")), "data": [1, 2, 3, 4]}, 500, unable.format("offset", *number)),
        (
            {**good, "data": [1, 2, 3, 4]},
            400,
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            "'parameters', 'shared_memory_region' in 'parameters'. But set 'data' "
            "'shared_memory_region'",
        ),
    ):
        assert infer_http(clean, {"inputs": [wrong]}) == (status, error)
    # Numbers without a region mean nothing.
    plain = {**tensor(**named(offset=7, byte_size=9)), "data": [1, 2, 3, 4]}
    assert infer_http(clean, {"inputs": [plain]}) == (200, None)

    def output(**parameters):
        return {"inputs": [good], "outputs": [{"name": "OUTPUT0", "parameters": parameters}]}

    there = named(region="r", byte_size=16, offset=64)
    assert infer_http(clean, output(**there)) == (200, None)
    assert infer_http(clean, output(**there, binary_data=False)) == (200, None)
    for parameters, error in (
        ({**there, "binary_data": True}, "Output can't set both 'shared_memory_region' and 'binary_data'"),
        ({**there, "classification": 1}, "Output can't set both 'shared_memory_region' and 'classification'"),
    ):
        assert infer_http(clean, output(**parameters)) == (400, error)


def test_parameters_over_grpc(clean, region):
    made = region(PAGE, "r")
    with connected("grpc", clean) as client:
        made.register(client)
        tensor = shared_input(client, "INPUT0", [16], "FP32", "r", 64)
        parameters = tensor._get_tensor().parameters

        def error(parameter, field, value):
            kept = parameters[parameter].SerializeToString() if parameter in parameters else None
            setattr(parameters[parameter], field, value)
            message = refused(client.infer, "id", [tensor])
            del parameters[parameter]
            if kept is not None:
                parameters[parameter].ParseFromString(kept)
            return message

        for name, expected in (("region", "string"), ("offset", "int64"), ("byte_size", "int64")):
            assert error(f"shared_memory_{name}", "bool_param", True) == (
                f"invalid value type for 'shared_memory_{name}' parameter for tensor 'INPUT0', "
                f"expected {expected}_param."
            )
        del parameters["shared_memory_byte_size"]
        assert refused(client.infer, "id", [tensor]) == (
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter "
            "for tensor 'INPUT0'"
        )
        parameters["shared_memory_byte_size"].int64_param = 64
        del parameters["shared_memory_region"]
        message = refused(client.infer, "id", [tensor])
        assert message.endswith(
            "can not be specified without 'shared_memory_region' parameter for tensor 'INPUT0'"
        )
        good = shared_input(client, "INPUT0", [16], "FP32", "r", 64)
        output = client.output("OUTPUT0", class_count=2)
        output._get_tensor().parameters["shared_memory_region"].string_param = "r"
        output._get_tensor().parameters["shared_memory_byte_size"].int64_param = 64
        assert refused(client.infer, "id", [good], outputs=[output]) == (
            "output can't set both 'shared_memory_region' and 'classification'"
        )


@contextlib.contextmanager
def streaming(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        yield answers
    finally:
        client.stop_stream()


def test_tensors_in_regions_on_a_stream(clean, region):
    count = 20
    source = region(count * 64)
    target = region(count * 64)
    numbers = np.arange(count * 16, dtype=np.float32)
    source.set(numbers)
    with connected("grpc", clean) as client:
        source.register(client)
        target.register(client)
        with streaming(client) as answers:
            for i in range(count):
                client.async_stream_infer(
                    "batched" if i % 2 else "id",
                    [shared_input(client, "INPUT0", [1, 16] if i % 2 else [16], "FP32", source.name, 64, i * 64)],
                    outputs=[shared_output(client, "OUTPUT0", target.name, 64, i * 64)],
                    request_id=str(i),
                )
            client.async_stream_infer(
                "id", [shared_input(client, "INPUT0", [16], "FP32", "gone", 64)], request_id="bad"
            )
            for i in range(count):
                result, error = answers.get(timeout=20)
                assert error is None and result.get_response().id == str(i)
            _, error = answers.get(timeout=20)
            assert error.message() == "Unable to find shared memory region: 'gone'"
        np.testing.assert_array_equal(target.get(np.float32, [count * 16]), numbers)
        client.unregister_system_shared_memory()
        assert status(client) == {}


@both
def test_batches_of_requests_in_regions(kind, clean, region):
    """Requests of several threads, each with its own piece of one region, in batches."""
    made = region(64 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)

    def work(i):
        with connected(kind, clean) as own:
            for turn in range(20):
                numbers = np.full([4], i * 1000 + turn, dtype=np.float32)
                made.set(numbers, i * PAGE)
                own.infer(
                    "batched",
                    [shared_input(own, "INPUT0", [1, 4], "FP32", made.name, 16, i * PAGE)],
                    outputs=[shared_output(own, "OUTPUT0", made.name, 16, i * PAGE + 64)],
                )
                if not np.array_equal(made.get(np.float32, [4], i * PAGE + 64), numbers):
                    wrong.append((i, turn))

    wrong = []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


@both
def test_answers_from_the_cache_go_into_regions(kind, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        for turn in range(3):  # a miss, and hits
            numbers = np.full([16], 5, dtype=np.float32) + (kind == "grpc")
            made.set(numbers)
            made.set(np.zeros(16, dtype=np.float32), 512)
            client.infer(
                "cached",
                [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
                outputs=[shared_output(client, "OUTPUT0", made.name, 64, 512)],
            )
            np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)
        short = [shared_output(client, "OUTPUT0", made.name, 32, 512)]
        message = refused(
            client.infer,
            "cached",
            [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
            outputs=short,
        )
        assert "(32 bytes) should be at least 64 bytes" in message
        stats = client.as_json("get_inference_statistics", "cached")["model_stats"][0]
        assert int(stats["inference_stats"]["cache_hit"]["count"]) >= 2


@both
@pytest.mark.parametrize("model", ["through", "through_cache"])
def test_ensembles_read_and_write_regions(kind, model, clean, region):
    made = region(PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        for turn in range(2):
            numbers = np.arange(16, dtype=np.float32) + turn
            made.set(numbers)
            client.infer(
                model,
                [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)],
                outputs=[shared_output(client, "OUTPUT0", made.name, 64, 512)],
            )
            np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)
        short = [shared_output(client, "OUTPUT0", made.name, 60, 512)]
        inputs = [shared_input(client, "INPUT0", [16], "FP32", made.name, 64)]
        message = refused(client.infer, model, inputs, outputs=short)
        assert "(60 bytes) should be at least 64 bytes to hold the results" in message
        client.unregister_system_shared_memory()
        assert status(client) == {}


def test_a_decoupled_model_writes_every_answer_to_the_same_place(clean, region):
    made = region(PAGE)
    made.set(np.array([7, 8, 9], dtype=np.int32))
    with connected("grpc", clean) as client:
        made.register(client)
        with streaming(client) as answers:
            client.async_stream_infer(
                "repeat",
                [
                    shared_input(client, "IN", [3], "INT32", made.name, 12),
                    client.input("DELAY", np.zeros(3, dtype=np.uint32), "UINT32"),
                    client.input("WAIT", np.zeros(1, dtype=np.uint32), "UINT32"),
                ],
                outputs=[shared_output(client, "OUT", made.name, 4, 64), client.output("IDX")],
                enable_empty_final_response=True,
            )
            indices = []
            while True:
                result, error = answers.get(timeout=20)
                assert error is None
                if result.get_response().parameters["triton_final_response"].bool_param:
                    break
                indices.append(int(result.as_numpy("IDX")[0]))
            assert indices == [0, 1, 2]
            assert made.get(np.int32, [1], 64)[0] == 9
            client.unregister_system_shared_memory()
            assert status(client) == {}


# -- Clients that take memory away --


class Pending:
    """A request on a thread of its own."""

    def __init__(self, kind, server, model, tensors, results):
        self.error = None
        self.thread = threading.Thread(target=self._run, args=(kind, server, model, tensors, results))
        self.thread.start()

    def _run(self, kind, server, model, tensors, results):
        with connected(kind, server) as client:
            try:
                client.infer(
                    model,
                    [shared_input(client, "INPUT0", *tensor) for tensor in tensors],
                    outputs=[shared_output(client, "OUTPUT0", *result) for result in results],
                )
            except InferenceServerException as error:
                self.error = error.message()

    def is_over(self):
        return not self.thread.is_alive()

    def wait(self):
        self.thread.join()
        return self.error


def begin(kind, server, made, model="slow", elements=16, name=""):
    """A request that uses the region, which was unregistered (`name`, or all) meanwhile."""
    size = elements * 4
    tensors = [([elements], "FP32", made.name, size)]
    results = [(made.name, size, size)]
    with connected("http", server) as client:
        while True:
            pending = Pending(kind, server, model, tensors, results)
            while not pending.is_over():
                client.unregister_system_shared_memory(name)
                if made.name in status(client):
                    return pending  # it stays, so it is in use
                made.register(client)
            # The request came while the region was not there: once more.
            assert "Unable to find" in (pending.wait() or "Unable to find")
            if made.name not in status(client):
                made.register(client)


def mapped(server):
    """The shared memory objects that the server has mapped."""
    maps = open(f"/proc/{server.pid}/maps").read()
    return sorted({line.split("/dev/shm")[1].split(" ")[0] for line in maps.splitlines() if "/dev/shm" in line})


@both
@pytest.mark.parametrize("which", ["one", "all"])
def test_s08_a_region_that_is_unregistered_in_use_stays_as_long(kind, which, clean, region):
    made = region(PAGE)
    numbers = np.arange(16, dtype=np.float32)
    made.set(numbers)
    with connected(kind, clean) as client:
        made.register(client)
        pending = begin(kind, clean, made, name=made.name if which == "one" else "")
        assert mapped(clean) == [made.key]
        again = refused(made.register, client)
        assert again == f"shared memory region '{made.name}' already in manager"
        assert pending.wait() is None
        # With the answer the region is gone, and its name is free.
        assert status(client) == {}
        assert mapped(clean) == []
        np.testing.assert_array_equal(made.get(np.float32, [16], 64), numbers)
        made.register(client)
        assert list(status(client)) == [made.name]


@both
def test_s08_many_requests_keep_a_region(kind, clean, region):
    made = region(PAGE)
    numbers = np.arange(16, dtype=np.float32)
    made.set(numbers)
    with connected(kind, clean) as client:
        made.register(client)
        first = begin(kind, clean, made)
        tensor = ([16], "FP32", made.name, 64)
        others = [
            Pending(kind, clean, "slow", [tensor], [(made.name, 64, 128 + 64 * i)]) for i in range(3)
        ]
        assert first.wait() is None
        assert [other.wait() for other in others] == [None] * 3
        assert status(client) == {}
        for i in range(3):
            np.testing.assert_array_equal(made.get(np.float32, [16], 128 + 64 * i), numbers)


@both
def test_s07_an_object_that_shrinks_after_registration(kind, clean, region):
    made, other = region(4 * PAGE), region(PAGE)
    numbers = np.arange(16, dtype=np.float32)
    with connected(kind, clean) as client:
        made.register(client)
        other.register(client)
        other.set(numbers)

        def ask(source, target, offset=0):
            client.infer(
                "id",
                [shared_input(client, "INPUT0", [16], "FP32", source.name, 64, offset)],
                outputs=[shared_output(client, "OUTPUT0", target.name, 64, 512)],
            )

        ask(other, made)
        made.truncate(PAGE)
        ask(other, made)  # what is still there can be used
        lost = f"shared memory region '{made.name}' has lost its memory"
        assert lost in refused(ask, made, other, 3 * PAGE)
        assert lost in refused(ask, other, made)
        assert lost in refused(ask, made, other)
        ask(other, other)
        np.testing.assert_array_equal(other.get(np.float32, [16], 512), numbers)
        client.unregister_system_shared_memory(made.name)
        made.truncate(4 * PAGE)
        made.register(client)
        ask(other, made, 0)
        np.testing.assert_array_equal(made.get(np.float32, [16], 512), numbers)


@both
def test_s07_an_output_whose_object_shrank(kind, clean, region):
    made, other = region(64 * PAGE), region(64 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        other.register(client)
        made.truncate(0)
        elements = 60 * PAGE // 4
        inputs = [shared_input(client, "INPUT0", [elements], "FP32", other.name, 60 * PAGE)]
        outputs = [shared_output(client, "OUTPUT0", made.name, 60 * PAGE)]
        lost = f"shared memory region '{made.name}' has lost its memory"
        assert lost in refused(client.infer, "id", inputs, outputs=outputs)
        assert lost in refused(client.infer, "id", inputs, outputs=outputs)


@both
def test_s07_strings_whose_object_shrank(kind, clean, region):
    made = region(2 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        made.truncate(0)
        inputs = [shared_input(client, "INPUT0", [4], "BYTES", made.name, 16)]
        assert "has lost its memory" in refused(client.infer, "text", inputs)


@both
def test_s07_an_object_that_shrinks_in_use(kind, clean, region):
    made = region(256 * PAGE)
    with connected(kind, clean) as client:
        made.register(client)
        elements = 64 * PAGE // 4
        pending = begin(kind, clean, made, elements=elements)
        made.truncate(0)
        # The answer is right when the model was done with the region, and else says what happened.
        error = pending.wait()
        assert error is None or "has lost its memory" in error
        assert status(client) == {}
        assert clean.is_live()


def test_s07_s08_a_storm_of_clients(clean, region):
    """Threads that infer, register, unregister and shrink the same regions, on every protocol."""
    objects = [region(32 * PAGE) for _ in range(2)]
    size = 8 * PAGE
    allowed = ("Unable to find", "has lost its memory", "already in manager", "invalid args")
    unexpected = []
    good = []
    is_over = threading.Event()

    def guarded(call, *args, **kwargs):
        try:
            call(*args, **kwargs)
            return True
        except InferenceServerException as error:
            if not any(text in error.message() for text in allowed):
                unexpected.append(error.message())
            return False

    def infer(kind):
        with connected(kind, clean) as client:
            for turn in range(120):
                source, target = objects[turn % 2], objects[turn // 2 % 2]
                inputs = [shared_input(client, "INPUT0", [size // 4], "FP32", source.name, size)]
                outputs = [shared_output(client, "OUTPUT0", target.name, size, 16 * PAGE)]
                if guarded(client.infer, "id", inputs, outputs=outputs):
                    good.append(kind)

    def stream():
        with connected("grpc", clean) as client, streaming(client) as answers:
            for turn in range(120):
                source = objects[turn % 2]
                inputs = [shared_input(client, "INPUT0", [size // 4], "FP32", source.name, size)]
                client.async_stream_infer("id", inputs)
            for _ in range(120):
                _, error = answers.get(timeout=60)
                if error is not None and not any(text in error.message() for text in allowed):
                    unexpected.append(error.message())

    def register(kind):
        with connected(kind, clean) as client:
            while not is_over.is_set():
                for made in objects:
                    guarded(made.register, client)
                guarded(client.unregister_system_shared_memory, objects[0].name)
                guarded(client.unregister_system_shared_memory)

    def shrink():
        while not is_over.is_set():
            objects[0].truncate(PAGE)
            objects[0].truncate(32 * PAGE)

    workers = [threading.Thread(target=infer, args=(kind,)) for kind in KINDS]
    workers.append(threading.Thread(target=stream))
    others = [threading.Thread(target=register, args=(kind,)) for kind in ("http", "grpc")]
    others.append(threading.Thread(target=shrink))
    for thread in workers + others:
        thread.start()
    for thread in workers:
        thread.join()
    is_over.set()
    for thread in others:
        thread.join()
    assert unexpected == []
    assert clean.is_ready()
    with connected("http", clean) as client:
        client.unregister_system_shared_memory()
        assert status(client) == {}
        assert mapped(clean) == []  # nothing is left behind
        objects[1].register(client)
        inputs = [shared_input(client, "INPUT0", [16], "FP32", objects[1].name, 64)]
        client.infer("id", inputs)


def test_s09e_the_server_has_no_shared_memory_with_a_name(clean):
    assert mapped(clean) == []
