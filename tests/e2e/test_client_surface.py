# SPDX-License-Identifier: Apache-2.0
"""Every public method of the four published Python clients, called against the server. The methods are
found by looking at the clients, so one that a later release adds fails here until it has a test.

A test is a function named like the method, which gets a Client (harness/clients.py) of each kind that
has it."""

import base64
import contextlib
import inspect
import json
import os
import queue
import urllib.request
import uuid

import numpy as np
import pytest
import tritonclient.utils.shared_memory as shm
from harness import decoupled, models
from harness import server as servers
from harness.clients import KINDS, MODULES, Client
from tritonclient.utils import InferenceServerException

NUMBERS = np.arange(6, dtype=np.float32)
ARGS = [
    "--model-control-mode=explicit",
    "--load-model=id",
    "--load-model=sequence",
    "--load-model=repeat",
]
if not servers.REFERENCE:
    ARGS.append("--allow-client-shm=true")


@pytest.fixture(scope="module")
def surface_server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    models.write_model(path, "id", models.identity_config("FP32", [-1]))
    models.write_model(path, "other", models.identity_config("FP32", [-1]))
    decoupled.write_repeat(path)
    lasting = "sequence_batching { max_sequence_idle_microseconds: 60000000 }"
    models.write_model(path, "sequence", models.identity_config("FP32", [-1], max_batch_size=4, extra=lasting))
    log_dir = tmp_path_factory.mktemp("server")
    trace = f"--trace-config=triton,file={log_dir / 'trace.json'}"
    with servers.running(path, log_dir=log_dir, args=[*ARGS, trace]) as running:
        yield running


def public_methods(kind):
    client = MODULES[kind].InferenceServerClient
    return {name for name, _ in inspect.getmembers(client, callable) if not name.startswith("_")}


TESTS = {}


def surface(function):
    TESTS[function.__name__] = function
    return function


def by_name(client, call, *args, **kwargs):
    """What a status request of shared memory gives, as {name: entry}."""
    answer = client.as_json(call, *args, **kwargs)
    return {entry["name"]: entry for entry in answer} if client.is_http else answer.get("regions", {})


def tensor(client):
    return client.input("INPUT0", NUMBERS, "FP32")


def refused(call, *args, **kwargs):
    with pytest.raises(InferenceServerException) as error:
        call(*args, **kwargs)
    return error.value.message()


def is_absent(client, model):
    """Whether the model is not served. gRPC tells of a model that it does not know with an error."""
    try:
        return client.is_model_ready(model) is False
    except InferenceServerException as error:
        return not client.is_http and "unknown model" in error.message()


# -- Health and metadata --


@surface
def is_server_live(client):
    assert client.is_server_live() is True


@surface
def is_server_ready(client):
    assert client.is_server_ready() is True


@surface
def is_model_ready(client):
    assert client.is_model_ready("id") is True
    assert client.is_model_ready("id", "1") is True
    assert is_absent(client, "other")


@surface
def get_server_metadata(client):
    metadata = client.as_json("get_server_metadata")
    assert metadata["name"] == "triton"
    assert "system_shared_memory" in metadata["extensions"]


@surface
def get_model_metadata(client):
    metadata = client.as_json("get_model_metadata", "id", model_version="1")
    assert (metadata["name"], metadata["versions"]) == ("id", ["1"])
    assert metadata["inputs"][0]["name"] == "INPUT0"
    assert metadata["outputs"][0]["datatype"] == "FP32"


@surface
def get_model_config(client):
    config = client.as_json("get_model_config", "id")
    config = config if client.is_http else config["config"]
    assert (config["name"], config["backend"]) == ("id", "identity")


@surface
def get_inference_statistics(client):
    client.infer("id", [tensor(client)])
    stats = client.as_json("get_inference_statistics", "id", "1")["model_stats"]
    assert [(entry["name"], entry["version"]) for entry in stats] == [("id", "1")]
    assert int(stats[0]["inference_count"]) >= 1
    assert int(stats[0]["inference_stats"]["success"]["count"]) >= 1
    everything = client.as_json("get_inference_statistics")["model_stats"]
    assert {"id", "repeat"} <= {entry["name"] for entry in everything}


# -- The model repository --


@surface
def get_model_repository_index(client):
    index = client.as_json("get_model_repository_index")
    index = index if client.is_http else index["models"]
    states = {entry["name"]: entry.get("state") for entry in index}
    assert set(states) == {"id", "other", "repeat", "sequence"}
    assert states["id"] == "READY"


@surface
def load_model(client):
    client.load_model("other")
    assert client.is_model_ready("other")
    override = {"backend": "identity", "max_batch_size": 3, **{
        key: [{"name": name, "data_type": "TYPE_FP32", "dims": [-1]}]
        for key, name in (("input", "INPUT0"), ("output", "OUTPUT0"))
    }}
    client.load_model("other", config=json.dumps(override))
    config = client.as_json("get_model_config", "other")
    assert (config if client.is_http else config["config"])["max_batch_size"] == 3
    client.load_model("other", config=json.dumps(override), files={"file:7/nothing": b"\0\1"})
    assert client.is_model_ready("other", "7")
    client.unload_model("other")
    assert "failed to load 'never'" in refused(client.load_model, "never")


@surface
def unload_model(client):
    client.load_model("other")
    client.unload_model("other")
    assert is_absent(client, "other")
    client.load_model("other")
    client.unload_model("other", unload_dependents=True)
    assert is_absent(client, "other")


# -- Settings --


@surface
def get_trace_settings(client):
    for settings in (
        client.as_json("get_trace_settings"),
        client.as_json("get_trace_settings", model_name="id"),
    ):
        settings = settings if client.is_http else settings["settings"]
        assert {"trace_level", "trace_rate", "trace_count", "log_frequency", "trace_file"} <= set(settings)


def trace_setting(client, settings, name):
    value = settings[name] if client.is_http else settings["settings"][name]["value"]
    return value if isinstance(value, list) else [value]


@surface
def update_trace_settings(client):
    for model in (None, "id"):
        change = {"trace_rate": "77", "trace_level": ["TIMESTAMPS"]}
        answer = client.as_json("update_trace_settings", model_name=model, settings=change)
        assert trace_setting(client, answer, "trace_rate") == ["77"]
        assert trace_setting(client, answer, "trace_level") == ["TIMESTAMPS"]
        change = {"trace_rate": None, "trace_level": None}
        answer = client.as_json("update_trace_settings", model_name=model, settings=change)
        assert trace_setting(client, answer, "trace_rate") == ["1000"]
        assert trace_setting(client, answer, "trace_level") == ["OFF"]


def log_setting(client, settings, name):
    return settings[name] if client.is_http else next(iter(settings["settings"][name].values()))


@surface
def get_log_settings(client):
    settings = client.as_json("get_log_settings")
    assert log_setting(client, settings, "log_info") is True
    assert log_setting(client, settings, "log_format") == "default"


@surface
def update_log_settings(client):
    answer = client.as_json("update_log_settings", {"log_verbose_level": 1, "log_format": "ISO8601"})
    assert log_setting(client, answer, "log_verbose_level") == 1
    assert log_setting(client, answer, "log_format") == "ISO8601"
    answer = client.as_json("update_log_settings", {"log_verbose_level": 0, "log_format": "default"})
    assert log_setting(client, answer, "log_verbose_level") == 0


# -- Shared memory --


@surface
def get_system_shared_memory_status(client):
    assert by_name(client, "get_system_shared_memory_status") == {}
    message = refused(client.get_system_shared_memory_status, "r")
    assert message == "Unable to find system shared memory region: 'r'"


@contextlib.contextmanager
def shared_object(size):
    key = f"/nereid_surface_{uuid.uuid4().hex}"
    handle = shm.create_shared_memory_region("r", key, size)
    try:
        yield key
    finally:
        shm.destroy_shared_memory_region(handle)


@surface
def register_system_shared_memory(client):
    with shared_object(8192) as key:
        client.register_system_shared_memory("r", key, 100, offset=4096)
        entry = by_name(client, "get_system_shared_memory_status", "r")["r"]
        assert (entry["key"], int(entry["offset"]), int(entry["byte_size"])) == (key, 4096, 100)
        client.unregister_system_shared_memory("r")


@surface
def unregister_system_shared_memory(client):
    with contextlib.ExitStack() as stack:
        for name in ("a", "b", "c"):
            client.register_system_shared_memory(name, stack.enter_context(shared_object(64)), 64)
        client.unregister_system_shared_memory("b")
        assert set(by_name(client, "get_system_shared_memory_status")) == {"a", "c"}
        client.unregister_system_shared_memory()
        assert by_name(client, "get_system_shared_memory_status") == {}


@surface
def get_cuda_shared_memory_status(client):
    assert by_name(client, "get_cuda_shared_memory_status") == {}
    message = refused(client.get_cuda_shared_memory_status, "c")
    assert message == "Unable to find cuda shared memory region: 'c'"


@surface
def register_cuda_shared_memory(client):
    if os.path.exists("/dev/nvidiactl") or servers.REFERENCE:
        pytest.skip("there is a GPU, or a server built for one")
    handle = base64.b64encode(bytes(64))
    message = refused(client.register_cuda_shared_memory, "c", handle, 0, 64)
    assert message == "failed to register CUDA shared memory region: 'c', GPUs not supported"


@surface
def unregister_cuda_shared_memory(client):
    client.unregister_cuda_shared_memory("c")
    client.unregister_cuda_shared_memory()


# -- Inference --


def check(result):
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), NUMBERS)


@surface
def infer(client):
    options = {"request_id": "7", "priority": 1, "timeout": 10**7, "parameters": {"mine": "x"}}
    result = client.infer("id", [tensor(client)], "1", [client.output("OUTPUT0")], **options)
    check(result)
    response = result.get_response()
    assert (response["id"] if client.is_http else response.id) == "7"
    for start, end in ((True, False), (False, True)):
        batched = client.input("INPUT0", NUMBERS[None, :], "FP32")
        client.infer("sequence", [batched], sequence_id=9, sequence_start=start, sequence_end=end)
    assert "unknown model" in refused(client.infer, "never", [tensor(client)])
    if client.is_http:
        for algorithm in ("gzip", "deflate"):
            check(
                client.infer(
                    "id",
                    [tensor(client)],
                    request_compression_algorithm=algorithm,
                    response_compression_algorithm=algorithm,
                )
            )
    else:
        for algorithm in ("gzip", "deflate"):
            check(client.infer("id", [tensor(client)], compression_algorithm=algorithm))


@surface
def async_infer(client):
    if client.is_http:
        pending = [client.client.async_infer("id", [tensor(client)]) for _ in range(3)]
        for one in pending:
            check(one.get_result(timeout=20))
        return
    answers = queue.Queue()
    for _ in range(3):
        client.client.async_infer("id", [tensor(client)], lambda result, error: answers.put((result, error)))
    for _ in range(3):
        result, error = answers.get(timeout=20)
        assert error is None
        check(result)


def repeat_inputs(client, values):
    data = {
        "IN": (np.array(values, dtype=np.int32), "INT32"),
        "DELAY": (np.zeros(len(values), dtype=np.uint32), "UINT32"),
        "WAIT": (np.zeros(1, dtype=np.uint32), "UINT32"),
    }
    return [client.input(name, array, datatype) for name, (array, datatype) in data.items()]


def run_stream(client):
    """The three methods of streams belong together."""
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        client.async_stream_infer("id", [tensor(client)], request_id="1")
        result, error = answers.get(timeout=20)
        assert error is None and result.get_response().id == "1"
        check(result)
        client.async_stream_infer(
            "repeat", repeat_inputs(client, [4, 5]), enable_empty_final_response=True
        )
        values = []
        while True:
            result, error = answers.get(timeout=20)
            assert error is None
            if result.get_response().parameters["triton_final_response"].bool_param:
                break
            values.append(int(result.as_numpy("OUT")[0]))
        assert values == [4, 5]
        client.async_stream_infer("never", [tensor(client)])
        _, error = answers.get(timeout=20)
        assert "unknown model" in error.message()
    finally:
        client.stop_stream()


@surface
def start_stream(client):
    run_stream(client)


@surface
def async_stream_infer(client):
    run_stream(client)


@surface
def stop_stream(client):
    client.start_stream(lambda result, error: None)
    client.stop_stream()
    client.stop_stream()  # a second time does nothing


@surface
def stream_infer(client):
    async def run():
        async def requests():
            yield {"model_name": "id", "inputs": [tensor(client)]}
            yield {"model_name": "never", "inputs": [tensor(client)]}

        return [answer async for answer in client.client.stream_infer(requests())]

    (first, first_error), (_, second_error) = client.loop.run_until_complete(run())
    assert first_error is None
    check(first)
    assert "unknown model" in second_error.message()


# -- What needs no answer of its own --


@surface
def generate_request_body(client):
    body, header_length = client.client.generate_request_body([tensor(client)], request_id="8")
    headers = {} if header_length is None else {"Inference-Header-Content-Length": str(header_length)}
    request = urllib.request.Request(f"http://{client.url}/v2/models/id/infer", body, headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        length = int(reply.headers["Inference-Header-Content-Length"])
        assert json.loads(reply.read()[:length])["id"] == "8"


@surface
def parse_response_body(client):
    outputs = [client.output("OUTPUT0")]
    body, header_length = client.client.generate_request_body([tensor(client)], outputs=outputs)
    headers = {"Inference-Header-Content-Length": str(header_length)}
    request = urllib.request.Request(f"http://{client.url}/v2/models/id/infer", body, headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        length = int(reply.headers["Inference-Header-Content-Length"])
        check(client.client.parse_response_body(reply.read(), header_length=length))


def with_plugin(client):
    from tritonclient._plugin import InferenceServerClientPlugin

    class Plugin(InferenceServerClientPlugin):
        def __init__(self):
            self.calls = 0

        def __call__(self, request):
            self.calls += 1
            request.headers["x-from-plugin"] = "yes"

    plugin = Plugin()
    client.client.register_plugin(plugin)
    assert client.client.plugin() is plugin
    assert client.is_server_live() is True
    check(client.infer("id", [tensor(client)]))
    assert plugin.calls == 2
    client.client.unregister_plugin()
    assert client.client.plugin() is None


@surface
def register_plugin(client):
    with_plugin(client)


@surface
def unregister_plugin(client):
    with_plugin(client)


@surface
def plugin(client):
    assert client.client.plugin() is None
    with_plugin(client)


@surface
def close(client):
    assert client.is_server_live() is True
    # The fixture closes it.


CASES = [(kind, name) for kind in KINDS for name in sorted(public_methods(kind))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_has_a_test(kind):
    assert public_methods(kind) - set(TESTS) == set(), "the client can do more than is tested"


def test_every_test_has_a_method():
    assert set(TESTS) == set().union(*(public_methods(kind) for kind in KINDS))


def parameters():
    for kind, name in CASES:
        yield pytest.param(kind, name, id=f"{kind}-{name}")


@pytest.mark.parametrize("kind, name", parameters())
def test_client(kind, name, surface_server):
    client = Client(kind, surface_server)
    try:
        TESTS[name](client)
    finally:
        client.close()
