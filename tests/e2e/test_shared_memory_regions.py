# SPDX-License-Identifier: Apache-2.0
"""Registering shared memory: what is told, what is refused. Rows S07 and S09 are of the security cases."""

import json
import os

import pytest
from harness import wire
from harness.shared_memory import (  # noqa: F401  fixtures are used by name
    PAGE,
    both,
    clean,
    connected,
    every,
    get,
    post,
    refused,
    region,
    shared_input,
    shm_server,
    status,
)

pytestmark = pytest.mark.newer  # the reference server knows no --allow-client-shm

DISABLED = (
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
)
RESERVED = "triton_python_backend_shm_region_"


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
