# SPDX-License-Identifier: Apache-2.0
"""GPUs: which instances are placed where, the pools of memory, and clients' memory on GPUs, with a
backend that copies on the device. tests/harness/cuda.py says which driver this is."""

import json
import urllib.request

import numpy as np
import pytest
from harness import cuda, models, trouble
from harness import server as servers
from harness.shared_memory import ENSEMBLE, both, connected, refused, shared_input, shared_output
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,  # the reference server of the tests was built without GPUs
    pytest.mark.skipif(not cuda.is_there(), reason="the tests' CUDA driver is not built"),
]
replaced = pytest.mark.skipif(cuda.IS_REAL, reason="a real driver does not count or fail at will")

COPY = (
    'backend: "gpu_copy"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('INPUT', 'UINT8', [-1])} ]\n"
    f"output [ {models.tensor_config('OUTPUT', 'UINT8', [-1])} ]\n"
)
# An address sanitizer keeps the shadow of the fake GPU's memory, and counts what it cannot see.
SHARED = ["--allow-client-shm=true"]
LENIENT = ["--exit-on-error=false", "--strict-readiness=false"]
TRUSTED = [*SHARED, "--trust-shared-memory=true"]
DATA = np.arange(300, dtype=np.uint8)


def group(text):
    return f"instance_group [ {text} ]\n"


ON_SECOND = group("{ kind: KIND_GPU gpus: [ 1 ] }")


@pytest.fixture
def control(tmp_path):
    return cuda.Control(tmp_path / "control")


@pytest.fixture
def serve(require_server, start_server, control, tmp_path):
    """Starts a server with models of the backend, {name: the rest of the configuration}."""
    library = servers.build_folder() / "tests" / "backends" / "libtriton_gpu_copy.so"
    if not library.exists():
        pytest.skip("the tests' backend is not built")

    def start(wanted, args=(), others=(), files=(), **options):
        path = tmp_path / "models"
        for name, extra in wanted.items():
            models.write_model(path, name, COPY + extra)
            (path / name / "libtriton_gpu_copy.so").symlink_to(library)
        for name, config in dict(others).items():
            models.write_model(path, name, config)
        for name, (config, model) in dict(files).items():
            models.write_model(path, name, config, {"1": {"model.onnx": model}})
        path.mkdir(exist_ok=True)
        environment = {} if cuda.IS_REAL else control.environment()
        return start_server(path, args=list(args), env=environment, **options)

    return start


@pytest.fixture
def memory():
    """Makes memory on a GPU that lasts as long as the test."""
    made = []

    def make(size, device=0):
        made.append(cuda.Memory(size, device))
        return made[-1]

    yield make
    for one in made:
        one.close()


def groups(server, model):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/config") as reply:
        config = json.loads(reply.read())
    return [(g["kind"], g["gpus"], g["count"]) for g in config["instance_group"]]


def parameters(result):
    response = result.get_response()
    if isinstance(response, dict):
        return response["parameters"]
    return {
        name: getattr(value, value.WhichOneof("parameter_choice"))
        for name, value in response.parameters.items()
    }


def infer(client, model, data=DATA, **options):
    return client.infer(model, [client.input("INPUT", data, "UINT8")], **options)


def infer_in_regions(client, model, size, **options):
    """Lets a model read region "in" and write region "out"."""
    names = options.pop("names", ("INPUT", "OUTPUT"))
    tensor = shared_input(client, names[0], [size], "UINT8", "in", size)
    output = shared_output(client, names[1], "out", size)
    return client.infer(model, [tensor], outputs=[output], **options)


def regions(client, memory, data=DATA, device=0):
    """Registers "in", with the data, and "out" of a GPU; returns both."""
    given, taken = memory(len(data), device), memory(len(data), device)
    given.write(data.tobytes())
    given.register(client, "in")
    taken.register(client, "out")
    return given, taken


# -- Where instances are --


@replaced
def test_a_model_without_instance_groups_gets_an_instance_on_each_gpu(serve, control):
    server = serve(
        {"plain": "", "twice": group("{ count: 2 }")},
        others={"id": models.identity_config("UINT8", [-1])},
    )
    assert groups(server, "plain") == [("KIND_GPU", [0, 1], 1)]
    assert groups(server, "twice") == [("KIND_GPU", [0, 1], 2)]
    # A backend that has no use for GPUs says so.
    assert groups(server, "id") == [("KIND_CPU", [], 1)]
    server.wait_for_log("Started HTTPService")  # after the lines of all models
    assert server.log.count("TRITONBACKEND_ModelInstanceInitialize") in (0, 7)
    with connected("http", server) as client:
        devices = {
            parameters(infer(client, "plain"))["instance_device"] for _ in range(20)
        }
    assert devices <= {0, 1}


@replaced
def test_the_listed_gpus_are_used(serve):
    server = serve(
        {
            "second": ON_SECOND,
            "auto": group("{ gpus: [ 1 ] }"),
            "cpu": group("{ kind: KIND_CPU }"),
        }
    )
    with connected("grpc", server) as client:
        for model, kind, device in (("second", "GPU", 1), ("auto", "GPU", 1), ("cpu", "CPU", 0)):
            result = infer(client, model)
            assert result.as_numpy("OUTPUT").tobytes() == DATA.tobytes()
            told = parameters(result)
            assert (told["instance_kind"], told["instance_device"]) == (kind, device)


@replaced
@pytest.mark.skipif(not servers.has_backend("onnxruntime"), reason="the backend is not built")
def test_onnx_models_stay_on_the_cpu_without_a_provider_for_gpus(serve):
    session = models.onnx_identity("UINT8", [-1])
    platform = 'platform: "onnxruntime_onnx"\n'
    server = serve(
        {},
        files={"auto": (platform, session), "gpu": (platform + group("{ kind: KIND_GPU }"), session)},
        args=[*LENIENT],
    )
    assert groups(server, "auto")[0][:2] == ("KIND_CPU", [])
    server.wait_for_log(
        "unable to load model 'gpu', GPU instances not supported: this ONNX Runtime library has no "
        "CUDAExecutionProvider; execution providers available: "
    )


@replaced
def test_a_gpu_that_is_not_there_is_refused(serve):
    server = serve(
        {"wrong": group("{ kind: KIND_GPU gpus: [ 5 ] }")}, args=[*LENIENT]
    )
    server.wait_for_log(
        "instance group wrong_0 of model wrong specifies invalid or unsupported gpu id 5. GPUs with "
        "at least the minimum required CUDA compute compatibility of 0.000000 are: 0, 1"
    )


@replaced
def test_gpus_without_the_compute_capability_are_not_used(serve, control):
    control["capability"] = 61
    server = serve(
        {"plain": "", "gpu": group("{ kind: KIND_GPU }")},
        args=["--min-supported-compute-capability=7.0", *LENIENT],
    )
    assert groups(server, "plain") == [("KIND_CPU", [], 1)]
    server.wait_for_log("gpu_0 of model gpu has kind KIND_GPU but no GPUs are available")
    server.wait_for_log("GPU 0 is not used: it has compute capability 6.1")


@replaced
def test_gpus_get_access_to_each_other_unless_told_otherwise(serve, control):
    serve({"plain": ""}).stop()
    assert control["peers_enabled"] == 2


@replaced
def test_peer_access_can_be_switched_off_and_may_be_missing(serve, control):
    serve({"plain": ""}, args=["--enable-peer-access=false"]).stop()
    assert control["peers_enabled"] == 0
    control["has_no_peers"] = 1
    server = serve({})
    assert server.is_ready()
    server.wait_for_log("failed to enable peer access of GPU 0 to GPU 1")


@replaced
def test_no_instance_is_made_on_a_gpu_that_is_too_full(serve):
    server = serve(
        {"plain": ON_SECOND},
        args=["--model-load-gpu-limit=1:0.01", *LENIENT],
    )
    server.wait_for_log(
        "can not create model 'plain_0_0': memory limit set for GPU 1 has exceeded, model loading is "
        "rejected."
    )


# -- Pools --


@replaced
def test_pools_are_made_for_gpus_that_are_used_and_given_back_at_the_end(serve, control):
    size = 1 << 20
    server = serve(
        {"second": ON_SECOND},
        args=[f"--cuda-memory-pool-byte-size=1:{size}", f"--pinned-memory-pool-byte-size={size}"],
    )
    assert (control["live_device_bytes"], control["live_host_bytes"]) == (size, size)
    server.wait_for_log(f"CUDA memory pool is created on device 1 with size {size}")
    server.wait_for_match(rf"Pinned memory pool is created at '0x\w+' with size {size}")
    server.stop()
    assert (control["live_device_bytes"], control["live_host_bytes"]) == (0, 0)


@replaced
def test_a_server_without_models_on_gpus_takes_no_memory_there(serve, control):
    server = serve({"cpu": group("{ kind: KIND_CPU }")})
    with connected("http", server) as client:
        infer(client, "cpu")
    assert (control.calls("allocate"), control.calls("host_allocate")) == (0, 0)


@replaced
@both
def test_a_backend_stages_data_in_the_pools(kind, serve, control):
    server = serve({"second": ON_SECOND})
    with connected(kind, server) as client:
        result = infer(client, "second", parameters={"stage": True})
        assert result.as_numpy("OUTPUT").tobytes() == DATA.tobytes()
    assert (control["to_device_copies"], control["to_host_copies"]) == (1, 2)
    metrics = server.scrape()
    assert metrics["nv_pinned_memory_pool_used_bytes", ""] == 0
    assert metrics["nv_pinned_memory_pool_total_bytes", ""] == 256 << 20


@replaced
def test_full_pools_are_an_error_of_the_request(serve):
    server = serve(
        {"second": ON_SECOND},
        args=["--cuda-memory-pool-byte-size=1:256", "--pinned-memory-pool-byte-size=1024"],
    )
    with connected("http", server) as client:
        text = refused(infer, client, "second", parameters={"stage": True})
        assert text.startswith("Failed to allocate CUDA memory with byte size 300 on GPU 1")
        text = refused(infer, client, "second", DATA.repeat(4), parameters={"stage": True})
        assert text.startswith("failed to allocate pinned system memory")
        small = DATA[:200]
        for _ in range(5):  # everything was given back
            result = infer(client, "second", small, parameters={"stage": True})
            assert result.as_numpy("OUTPUT").tobytes() == small.tobytes()


# -- Clients' memory on GPUs --


@both
def test_memory_of_a_gpu_reaches_the_model_without_the_host(kind, serve, control, memory):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")}, args=TRUSTED)
    with connected(kind, server) as client:
        _, taken = regions(client, memory)
        told = parameters(infer_in_regions(client, "copy", len(DATA)))
        assert taken.read(len(DATA)) == DATA.tobytes()
        assert (told["input_type"], told["input_id"]) == ("GPU", 0)
        assert (told["output_type"], told["output_id"]) == ("GPU", 0)
        assert told["has_ipc_handle"]
        client.unregister_cuda_shared_memory()
    if not cuda.IS_REAL:
        assert (control["to_host_copies"], control["to_device_copies"]) == (0, 0)
        assert control["on_device_copies"] == 1  # the model's own
        assert control["open_handles"] == 0


@both
def test_a_client_that_is_not_trusted_shares_copies_on_the_gpu(kind, serve, control, memory):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")}, args=SHARED)
    with connected(kind, server) as client:
        _, taken = regions(client, memory)
        told = parameters(infer_in_regions(client, "copy", len(DATA)))
        assert taken.read(len(DATA)) == DATA.tobytes()
        assert (told["input_type"], told["output_type"]) == ("GPU", "GPU")
        assert not told["has_ipc_handle"]
    if not cuda.IS_REAL:
        assert (control["to_host_copies"], control["to_device_copies"]) == (0, 0)
        assert control["on_device_copies"] == 3


@replaced
def test_memory_of_one_gpu_reaches_a_model_on_another(serve, control, memory):
    server = serve({"second": ON_SECOND}, args=TRUSTED)
    with connected("grpc", server) as client:
        _, taken = regions(client, memory, device=0)
        told = parameters(infer_in_regions(client, "second", len(DATA)))
        assert taken.read(len(DATA)) == DATA.tobytes()
    assert (told["instance_device"], told["input_id"], told["output_id"]) == (1, 0, 1)
    assert (control["to_host_copies"], control["to_device_copies"]) == (0, 0)


def test_a_full_pool_means_copies_in_host_memory(serve, control, memory):
    server = serve(
        {"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")},
        args=[*SHARED, "--cuda-memory-pool-byte-size=0:0"],
    )
    with connected("http", server) as client:
        _, taken = regions(client, memory)
        told = parameters(infer_in_regions(client, "copy", len(DATA)))
        assert taken.read(len(DATA)) == DATA.tobytes()
    assert (told["input_type"], told["output_type"]) == ("CPU", "CPU")


@both
@pytest.mark.parametrize("args", [SHARED, TRUSTED])
def test_models_on_the_cpu_get_host_memory(kind, args, serve, memory):
    ensemble = ENSEMBLE.replace("STEP", "id").replace("FP32", "UINT8").replace("TYPE_FP32", "TYPE_UINT8")
    server = serve(
        {"cpu": group("{ kind: KIND_CPU }")},
        others={
            "id": models.identity_config("UINT8", [-1]),
            "ensemble": ensemble,
        },
        args=args,
    )
    with connected(kind, server) as client:
        given, taken = regions(client, memory)
        told = parameters(infer_in_regions(client, "cpu", len(DATA)))
        assert (told["input_type"], told["output_type"]) == ("CPU", "CPU")
        assert taken.read(len(DATA)) == DATA.tobytes()
        for number, model in enumerate(("id", "ensemble"), start=1):
            data = DATA + number
            given.write(data.tobytes())
            infer_in_regions(client, model, len(data), names=("INPUT0", "OUTPUT0"))
            assert taken.read(len(data)) == data.tobytes(), model


@both
def test_instances_on_the_cpu_and_on_a_gpu_serve_the_same_requests(kind, serve, memory):
    both_kinds = group("{ kind: KIND_CPU }, { kind: KIND_GPU gpus: [ 0 ] }")
    server = serve({"mixed": both_kinds}, args=TRUSTED)
    seen = set()
    with connected(kind, server) as client:
        given, taken = regions(client, memory)
        for number in range(40):
            data = DATA + number
            given.write(data.tobytes())
            told = parameters(infer_in_regions(client, "mixed", len(data)))
            assert taken.read(len(data)) == data.tobytes()
            assert told["input_type"] == told["output_type"] == told["instance_kind"]
            seen.add(told["instance_kind"])
    assert seen <= {"CPU", "GPU"}


def test_part_of_a_region_is_used(serve, memory):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")}, args=TRUSTED)
    with connected("grpc", server) as client:
        given, taken = regions(client, memory)
        tensor = shared_input(client, "INPUT", [10], "UINT8", "in", 10, offset=100)
        output = shared_output(client, "OUTPUT", "out", 20, offset=200)
        taken.write(bytes(len(DATA)))
        client.infer("copy", [tensor], outputs=[output])
        assert taken.read(30, offset=200) == DATA[100:110].tobytes() + bytes(20)
        small = shared_output(client, "OUTPUT", "out", 5)
        assert "should be at least 10 bytes to hold the results" in refused(
            client.infer, "copy", [tensor], outputs=[small]
        )


# -- A driver that fails --


@replaced
@pytest.mark.parametrize("call", ["allocate", "host_allocate"])
def test_without_room_for_a_pool_models_are_served_without_it(call, serve, control, memory):
    control.fail(call, cuda.OUT_OF_MEMORY)
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")}, args=SHARED)
    server.wait_for_log("its pool will not be available: out of memory")
    with connected("http", server) as client:
        _, taken = regions(client, memory)
        infer_in_regions(client, "copy", len(DATA))
        assert taken.read(len(DATA)) == DATA.tobytes()
        kind = "CUDA memory of GPU 0" if call == "allocate" else "pinned system memory"
        text = refused(infer, client, "copy", parameters={"stage": True})
        assert text == f"failed to allocate {kind}: out of memory"


@replaced
@pytest.mark.parametrize("call", ["copy", "synchronize"])
@pytest.mark.parametrize("model", ["copy", "cpu"])
@pytest.mark.parametrize("args", [SHARED, TRUSTED])
def test_a_copy_that_fails_is_an_error_of_the_request(call, model, args, serve, control, memory):
    server = serve(
        {"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }"), "cpu": group("{ kind: KIND_CPU }")},
        args=args,
    )
    with connected("http", server) as client:
        _, taken = regions(client, memory)
        for _ in range(3):
            control.fail(call, cuda.DEVICE_LOST)
            text = refused(infer_in_regions, client, model, len(DATA))
            assert "an illegal memory access was encountered" in text or "CUDA error 700" in text
            control.fail(call, 0)
            infer_in_regions(client, model, len(DATA))
            assert taken.read(len(DATA)) == DATA.tobytes()
        client.unregister_cuda_shared_memory()
    server.stop()
    left = ("live_device_bytes", "live_host_bytes", "open_handles")
    assert [control[name] for name in left] == [0, 0, 0]


def lose(control, error=cuda.DEVICE_LOST):
    """Lets the GPUs fail for good: from now on, every call that asks says so."""
    for call in ("copy", "synchronize", "memory_info"):
        control.fail(call, error)


def status_of_copy(connection):
    """The status of a request whose data is in the message, which the backend copies to the GPU."""
    tensor = {"name": "INPUT", "datatype": "UINT8", "shape": [3], "data": [1, 2, 3]}
    connection.request("POST", "/v2/models/copy/infer", json.dumps({"inputs": [tensor]}))
    reply = connection.getresponse()
    reply.read()
    return reply.status


@replaced
def test_a_gpu_that_has_failed_for_good_makes_the_server_not_live_until_its_end(serve, control):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }"), "cpu": group("{ kind: KIND_CPU }")})
    connection = trouble.connect(server)
    assert status_of_copy(connection) == 200
    lose(control)
    assert status_of_copy(connection) != 200
    server.wait_for_log("GPU 0 has failed for good (an illegal memory access was encountered)")
    status, body = trouble.get(connection, "/v2/health/live?verbose")
    problem = "GPU 0 has failed for good: an illegal memory access was encountered"
    assert (status, trouble.problems(body)) == (400, {"devices": [problem]})
    assert not server.is_ready()
    status, body = trouble.get(connection, "/v2/models/copy/ready?verbose")
    assert (status, trouble.problems(body)) == (400, {"instances": [problem]})
    assert trouble.get(connection, "/v2/models/cpu/ready")[0] == 200
    # A driver that seems to work again has not been started again.
    lose(control, 0)
    assert status_of_copy(connection) == 200
    assert not server.is_live()


@replaced
def test_an_error_that_passes_is_not_taken_for_a_failure_for_good(serve, control):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")})
    connection = trouble.connect(server)
    control.fail("copy", cuda.OUT_OF_MEMORY)
    assert status_of_copy(connection) != 200
    control.fail("copy", 0)
    assert status_of_copy(connection) == 200
    assert server.is_live() and server.is_ready()


@replaced
def test_the_process_ends_after_a_fatal_error_if_it_shall(serve, control):
    server = serve({"copy": group("{ kind: KIND_GPU gpus: [ 0 ] }")}, args=["--exit-on-fatal-error=true"])
    connection = trouble.connect(server)
    lose(control)
    assert status_of_copy(connection) != 200
    assert server.wait() == 1
    server.wait_for_log("the server ends after an error that only a new process cures: GPU 0 has failed for good")


@replaced
@pytest.mark.parametrize("call", ["ipc_open", "retain_context", "create_stream"])
def test_a_region_that_the_driver_refuses_is_not_registered(call, serve, control, memory):
    server = serve({"cpu": group("{ kind: KIND_CPU }")}, args=SHARED)
    with connected("http", server) as client:
        control.fail(call, cuda.OUT_OF_MEMORY)
        made = memory(16)
        text = refused(made.register, client, "in")
        assert text == "failed to register shared memory region: invalid args"
        server.wait_for_log("failed to open CUDA IPC handle: out of memory")
        control.fail(call, 0)
        made.register(client, "in")
        assert len(client.get_cuda_shared_memory_status()) == 1


@replaced
def test_a_backend_that_gets_no_stream_fails_to_load_and_loads_later(serve, control):
    control.fail("create_stream", cuda.OUT_OF_MEMORY)
    server = serve(
        {"copy": ON_SECOND}, args=[*LENIENT, "--model-control-mode=explicit"]
    )
    with connected("http", server) as client:
        with pytest.raises(InferenceServerException, match="cuCtxPushCurrent|cuStreamCreate"):
            client.load_model("copy")
        control.fail("create_stream", 0)
        client.load_model("copy")
        assert infer(client, "copy").as_numpy("OUTPUT").tobytes() == DATA.tobytes()


@replaced
def test_a_driver_that_does_not_start_means_no_gpus(serve, control):
    control.fail("init", 999)
    server = serve({"plain": ""}, args=SHARED)
    assert groups(server, "plain") == [("KIND_CPU", [], 1)]
    with connected("http", server) as client:
        assert "GPUs not supported" in refused(
            client.register_cuda_shared_memory, "r", b"AAAA", 0, 8
        )
