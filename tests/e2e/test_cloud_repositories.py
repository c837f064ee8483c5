# SPDX-License-Identifier: Apache-2.0
"""Model repositories in Google Cloud Storage and Azure Storage: what is served, fetched and told. Accounts and
tokens are in test_cloud_accounts.py; test_s3_repository.py is the same for S3."""

import base64
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from harness import models, object_stores, python_package, s3, wire
from harness import server as servers
from harness.clients import Client
from harness.remote_models import (
    POLL,
    add_or_subtract,
    compare_servers,
    get,
    infer_identity,
    is_ready,
    start_failing,
    start_while_away,
    write_identity,
    write_models,
)

pytestmark = pytest.mark.skipif(
    servers.REFERENCE, reason="the reference server's release is built without clouds"
)

FAKES = {"gs": object_stores.FakeGoogle, "as": object_stores.FakeAzure}
EMULATORS = {"gcp-storage-emulator": object_stores.GoogleEmulator, "azurite": object_stores.Azurite}


@pytest.fixture(params=FAKES)
def store(request):
    """A running fake with a bucket."""
    fake = FAKES[request.param]()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture(params=EMULATORS)
def emulator(request, tmp_path):
    if request.param == "azurite" and not object_stores.Azurite.program().exists():
        pytest.skip("Azurite is not installed (tools/setup --emulators)")
    program = EMULATORS[request.param](tmp_path / "emulator")
    program.start()
    yield program
    program.stop()


@pytest.fixture
def proxy(store):
    between = s3.Proxy(store.port)
    yield between
    between.close()


@pytest.fixture
def environment(store, tmp_path):
    return store.environment(tmp_path / "cache", tmp_path)


@pytest.fixture
def by_proxy(store, proxy, tmp_path):
    """The environment of a server whose requests go through the proxy."""
    return store.environment(tmp_path / "cache", tmp_path, port=proxy.port)


def put_identity(store, folder, name, blob=b"weights"):
    object_stores.put_folder(store, write_identity(folder / "made", name, blob), f"{name}/")


def is_list(line):
    return "/o?fields" in line or "comp=list" in line


def lists(proxy):
    return proxy.count("/o?fields") + proxy.count("comp=list")


def copies(tmp_path, name="weights.bin"):
    # Unlike rglob, os.walk goes on where the server removes a folder meanwhile.
    places = os.walk(tmp_path / "cache")
    return [pathlib.Path(place) / name for place, folders, files in places if name in (*folders, *files)]


# --- The same models --------------------------------------------------------------------------


def test_the_same_models_are_served_as_from_a_folder(start_server, store, environment, tmp_path):
    write_models(tmp_path / "local")
    object_stores.put_folder(store, tmp_path / "local", "models/")
    local = start_server(tmp_path / "local")
    compare_servers(local, start_server(store.url("bucket/models"), env=environment))


def test_programs_of_others_are_understood(start_server, emulator, tmp_path):
    write_models(tmp_path / "local")
    blob = np.random.default_rng(5).bytes(20 << 20)  # three parts
    write_identity(tmp_path / "local", "m", blob)
    object_stores.put_folder(emulator, tmp_path / "local", "models/")
    environment = emulator.environment(tmp_path / "cache", tmp_path)
    server = start_server(emulator.url("bucket/models"), env=environment)
    compare_servers(start_server(tmp_path / "local"), server)
    infer_identity(server, "m")
    assert [copy.read_bytes() == blob for copy in copies(tmp_path)] == [True]
    log = start_failing(start_server, emulator.url("elsewhere"), env=environment)
    assert emulator.cannot_open in log and "'elsewhere'" in log
    log = start_failing(start_server, emulator.url("bucket/nothing"), env=environment)
    assert "repository path is not a valid directory" in log


def test_programs_of_others_are_polled(start_server, emulator, tmp_path):
    object_stores.put_folder(emulator, write_identity(tmp_path / "local", "m"), "m/")
    environment = emulator.environment(tmp_path / "cache", tmp_path)
    server = start_server(emulator.url("bucket"), args=POLL, env=environment)
    emulator.put("m/1/weights.bin", b"changed")

    def is_there():
        with contextlib.suppress(FileNotFoundError):  # a copy of before, which the server removes
            return b"changed" in {copy.read_bytes() for copy in copies(tmp_path)}

    servers.wait_until(is_there, "the change")
    infer_identity(server, "m")


@pytest.mark.parametrize("name", ["m ~1%2F", "plus+and&=?#", "ünïcode"])
def test_keys_with_odd_characters_are_found(start_server, emulator, tmp_path, name):
    if emulator.name == "gs" and name != "ünïcode":
        pytest.skip("gcp-storage-emulator decodes names twice")
    folder = write_identity(tmp_path / "local", name)
    (folder / "1" / "more &=+?#.bin").write_bytes(b"x")
    object_stores.put_folder(emulator, tmp_path / "local", "a b+c/")
    environment = emulator.environment(tmp_path / "cache", tmp_path)
    server = start_server(emulator.url("bucket/a b+c"), env=environment)
    client = Client("grpc", server)
    assert client.client.is_model_ready(name)
    client.close()
    assert [copy.read_bytes() for copy in copies(tmp_path, "more &=+?#.bin")] == [b"x"]


def test_keys_with_odd_characters_are_found_in_fakes(start_server, store, environment, tmp_path):
    folder = write_identity(tmp_path / "local", "m ~1%2F")
    (folder / "1" / "ünïcode &=+?#.bin").write_bytes(b"x")
    object_stores.put_folder(store, tmp_path / "local", "a b+c/")
    server = start_server(store.url("bucket/a b+c"), env=environment)
    assert Client("grpc", server).client.is_model_ready("m ~1%2F")
    assert [copy.read_bytes() for copy in copies(tmp_path, "ünïcode &=+?#.bin")] == [b"x"]


def test_folders_that_are_objects_are_folders(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    for key in ("m/", "m/1/", "m/empty/"):
        store.put(key, b"")
    infer_identity(start_server(store.url("bucket"), env=environment), "m")
    assert [path.is_dir() for path in copies(tmp_path, "empty")] == [True]


def test_thousands_of_objects_are_listed_page_by_page(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "z")
    for i in range(3000):
        store.put(f"a/{i}/file", b"x")
    server = start_server(
        store.url("bucket"),
        args=["--model-control-mode=explicit", "--load-model=z"],
        env=environment,
    )
    infer_identity(server, "z")
    pages = [path for path, _ in store.requests if "pageToken=" in path or "marker=" in path]
    assert len(pages) >= 3
    index = wire.request(server, "POST", "/v2/repository/index").json()
    assert {entry["name"] for entry in index} == {"a", "z"}


def test_names_that_leave_the_folder_are_ignored(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    names = ["m/../../evil", "m/1/../../../evil", "../evil", "m//evil", "m/1/./evil", "m/" + "e" * 256]
    for name in names:
        store.put(name, b"x")
    server = start_server(store.url("bucket"), env=environment)
    infer_identity(server, "m")
    assert not [path for path in tmp_path.rglob("*evil*")]
    server.wait_for_log("its key is no path of a file")
    assert not [path for path, _ in store.requests if "evil" in path]


# --- Errors -----------------------------------------------------------------------------------


def test_a_bucket_or_folder_that_is_not_there_is_told(start_server, store, environment):
    log = start_failing(start_server, store.url("elsewhere"), env=environment)
    assert store.cannot_open in log
    assert "does not exist" in log and "'elsewhere' at http://127.0.0.1" in log
    log = start_failing(start_server, store.url("bucket/nothing"), env=environment)
    assert "repository path is not a valid directory" in log


def test_a_path_without_a_bucket_is_told(start_server, store, environment):
    path = "gs://" if store.name == "gs" else "as://account"
    log = start_failing(start_server, path, env=environment)
    assert "No bucket name found in path: gs://" in log or "Invalid azure storage path: as://account" in log


def test_a_server_that_is_away_is_tried_again_and_told(start_server, store, environment):
    store.stop()
    log = start_failing(start_server, store.url("bucket"), env=environment)
    assert "trying again (5 of 5)" in log
    assert "curlCode: 7" in log and f"http://127.0.0.1:{store.port}" in log


def test_a_server_that_comes_back_is_found(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    server = start_while_away(
        lambda: start_server(store.url("bucket"), env=environment, wait=False), store.stop, store.start
    )
    infer_identity(server, "m")


# --- What is fetched --------------------------------------------------------------------------


def test_an_interrupted_download_goes_on_where_it_ended(start_server, store, proxy, by_proxy, tmp_path):
    blob = np.random.default_rng(1).bytes(20 << 20)
    put_identity(store, tmp_path, "m", blob)
    proxy.bytes_left = 12 << 20
    log = start_failing(start_server, store.url("bucket"), env=by_proxy)
    assert f"Failed to get object at {store.url('bucket')}/m/1/weights.bin" in log
    proxy.bytes_left = None
    proxy.clear()
    server = start_server(store.url("bucket"), env=by_proxy)
    infer_identity(server, "m")
    # Three connections got 12 MiB together; what they had of their last MiB is fetched again.
    assert proxy.bytes_passed < 12 << 20
    assert [copy.read_bytes() == blob for copy in copies(tmp_path)] == [True]


def test_connections_that_break_are_made_again(start_server, store, proxy, by_proxy, tmp_path):
    blob = np.random.default_rng(2).bytes(20 << 20)
    put_identity(store, tmp_path, "m", blob)
    server = start_while_away(
        lambda: start_server(store.url("bucket"), env=by_proxy, wait=False),
        lambda: setattr(proxy, "bytes_left", 3 << 20),
        lambda: setattr(proxy, "bytes_left", None),
    )
    infer_identity(server, "m")
    assert [copy.read_bytes() == blob for copy in copies(tmp_path)] == [True]


def test_an_object_that_changes_meanwhile_is_not_mixed(start_server, store, environment, tmp_path):
    old, new = (np.random.default_rng(i).bytes(20 << 20) for i in (1, 2))
    put_identity(store, tmp_path, "m", old)
    reads = []

    def change(key):
        if key.endswith("weights.bin"):
            reads.append(key)
            if len(reads) == 2:
                store.put(key, new)

    store.on_read = change
    log = start_failing(start_server, store.url("bucket"), env=environment)
    assert "it was changed meanwhile" in log
    server = start_server(store.url("bucket"), env=environment)
    infer_identity(server, "m")
    assert [copy.read_bytes() == new for copy in copies(tmp_path)] == [True]


def test_a_restart_fetches_nothing_that_is_unchanged(start_server, store, proxy, by_proxy, tmp_path):
    put_identity(store, tmp_path, "same")
    put_identity(store, tmp_path, "changed", b"first")
    start_server(store.url("bucket"), env=by_proxy).stop()
    proxy.clear()
    server = start_server(store.url("bucket"), env=by_proxy)
    infer_identity(server, "same")
    assert lists(proxy) == len(proxy.requests) > 0
    server.stop()
    # The same length and, perhaps, the same second: only the generation or ETag differs.
    store.put("changed/1/weights.bin", b"other")
    proxy.clear()
    server = start_server(store.url("bucket"), env=by_proxy)
    assert proxy.count("weights.bin") == 1
    assert len(proxy.requests) - lists(proxy) == 1
    found = {c.read_bytes() for c in copies(tmp_path) if "changed" in c.parts}
    assert found == {b"other"}  # the state before is gone, too


def test_an_object_that_arrives_damaged_is_refused(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    store.objects["m/1/weights.bin"].md5 = lambda: base64.b64encode(bytes(16)).decode()
    log = start_failing(start_server, store.url("bucket"), env=environment)
    assert "does not have the checksum 00000000000000000000000000000000" in log


def test_a_cache_that_others_could_write_to_is_not_used(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    planted = tmp_path / "cache" / store.cache
    planted.mkdir(parents=True)
    os.chmod(planted, 0o777)
    log = start_failing(start_server, store.url("bucket"), env=environment)
    assert "is not a folder that only this user can write to" in log


# --- Polling ----------------------------------------------------------------------------------


def test_polling_fetches_what_changed_and_nothing_else(start_server, store, proxy, by_proxy, tmp_path):
    put_identity(store, tmp_path, "same")
    calc = models.write_model(
        tmp_path / "made", "calc", versions={"1": {"model.onnx": models.onnx_add_sub("FP32", [4])}}
    )
    object_stores.put_folder(store, calc, "calc/")
    server = start_server(store.url("bucket"), args=POLL, env=by_proxy)
    assert add_or_subtract(server) == 1
    proxy.clear()
    # A poll is one request, whatever the number of files; besides, there are looks at the generation file.
    servers.wait_until(lambda: lists(proxy) >= 2, "polls")
    assert [line for line in list(proxy.requests) if not is_list(line) and "/.nereid-generation" not in line] == []
    changed = models.onnx_add_sub("FP32", [4], swap=True).SerializeToString(deterministic=True)
    store.put("calc/1/model.onnx", changed)
    put_identity(store, tmp_path, "added")
    servers.wait_until(lambda: add_or_subtract(server) == -1, "the changed model")
    servers.wait_until(lambda: is_ready(server, "added"), "the new model")
    infer_identity(server, "same")
    assert proxy.count("/same") == 0
    store.remove("added/")
    servers.wait_until(lambda: not is_ready(server, "added"), "its end")


def test_polling_outlives_an_absence_of_the_cloud(start_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    server = start_server(store.url("bucket"), args=POLL, env=environment)
    store.stop()
    servers.wait_until(
        lambda: "failed to poll model repository" in server.log, "the server says so", timeout=40
    )
    assert server.is_live() and server.is_ready()
    infer_identity(server, "m")
    put_identity(store, tmp_path, "later")
    store.start()
    servers.wait_until(lambda: is_ready(server, "later"), "the new model", timeout=40)
    infer_identity(server, "m")


def test_models_are_fetched_when_they_are_loaded(start_server, store, proxy, by_proxy, tmp_path):
    for name in ("a", "b"):
        put_identity(store, tmp_path, name)
    server = start_server(
        store.url("bucket"),
        args=["--model-control-mode=explicit", "--load-model=a"],
        env=by_proxy,
    )
    infer_identity(server, "a")
    assert proxy.count("b%2F1%2Fweights.bin") + proxy.count("/b/1/weights.bin") == 0
    index = wire.request(server, "POST", "/v2/repository/index").json()
    assert {entry["name"] for entry in index} == {"a", "b"}
    reply = wire.request(server, "POST", "/v2/repository/models/b/load", b"{}")
    assert reply.status == 200, reply
    infer_identity(server, "b")
    assert wire.request(server, "POST", "/v2/repository/models/b/unload", b"{}").status == 200
    store.stop()
    reply = wire.request(server, "POST", "/v2/repository/models/b/load", b"{}")
    assert reply.status == 500
    infer_identity(server, "a")


# --- Together with other features ---------------------------------------------------------------


def test_files_of_a_load_request_replace_those_of_the_cloud(start_server, store, environment, tmp_path):
    calc = models.write_model(
        tmp_path / "made", "calc", versions={"1": {"model.onnx": models.onnx_add_sub("FP32", [4])}}
    )
    object_stores.put_folder(store, calc, "calc/")
    server = start_server(
        store.url("bucket"),
        args=["--model-control-mode=explicit", "--load-model=calc"],
        env=environment,
    )
    assert add_or_subtract(server) == 1
    swapped = models.onnx_add_sub("FP32", [4], swap=True).SerializeToString(deterministic=True)
    parameters = {
        "config": json.dumps({"backend": "onnxruntime"}),
        "file:1/model.onnx": base64.b64encode(swapped).decode(),
    }
    body = json.dumps({"parameters": parameters}).encode()
    reply = wire.request(server, "POST", "/v2/repository/models/calc/load", body)
    assert reply.status == 200, reply
    assert add_or_subtract(server) == -1
    # A load without files takes those of the cloud again.
    assert wire.request(server, "POST", "/v2/repository/models/calc/load", b"{}").status == 200
    assert add_or_subtract(server) == 1


def test_agents_work_on_the_copy(start_server, store, environment, tmp_path):
    folder = write_identity(tmp_path / "made", "m")
    config = (folder / "config.pbtxt").read_text()
    agent = 'model_repository_agents { agents { name: "checksum" parameters { key: "MD5:1/weights.bin" value: "%s" } } }'
    (folder / "config.pbtxt").write_text(config + agent % ("0" * 32))
    object_stores.put_folder(store, folder, "m/")
    log = start_failing(start_server, store.url("bucket"), env=environment)
    assert "Mismatched MD5 hash for file 1/weights.bin" in log
    found = log.split("got: ")[1].split('"')[0].strip()
    store.put("m/config.pbtxt", (config + agent % found).encode())
    infer_identity(start_server(store.url("bucket"), env=environment), "m")


def test_a_folder_and_two_clouds_are_served_together(start_server, tmp_path):
    fakes = [fake() for fake in FAKES.values()]
    environment = {}
    for fake in fakes:
        fake.start()
        put_identity(fake, tmp_path, f"in_{fake.name}")
        environment |= fake.environment(tmp_path / "cache", tmp_path)
    write_identity(tmp_path / "local", "here")
    server = start_server(tmp_path / "local", *(fake.url("bucket") for fake in fakes), env=environment)
    for model in ("here", "in_gs", "in_as"):
        infer_identity(server, model)
    for fake in fakes:
        fake.stop()


def test_labels_are_found_in_the_copy(start_server, store, environment, tmp_path):
    models.copy_example(tmp_path / "made", "digits")
    object_stores.put_folder(store, tmp_path / "made")
    server = start_server(store.url("bucket"), env=environment)
    assert get(server, "/v2/models/digits/config")["name"] == "digits"


PROGRAM = """
import sys, nereid, numpy
with nereid.Server(model_repository=sys.argv[1], exit_timeout=10) as server:
    (response,) = server.model("m").infer(inputs={"INPUT0": numpy.ones(3, numpy.int32)})
    print("served", response.final)
"""


def test_a_program_that_embeds_the_server_has_the_same_stores(require_server, store, environment, tmp_path):
    put_identity(store, tmp_path, "m")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, store.url("bucket")],
        env={
            **python_package.environment(),
            **environment,
            "PYTHONPATH": str(servers.build_folder() / "python"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "served True\n", done.stdout + done.stderr
