# SPDX-License-Identifier: Apache-2.0
"""Loading plans with the TensorRT backend: files that are no plans, machines without a driver or without the
right TensorRT, configurations that do not fit, failures of the driver, CUDA graphs."""

import os
import pathlib

import numpy as np
import pytest
from harness import clients, memory, models, tensorrt
from harness import server as servers
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(
        not (servers.has_backend("tensorrt") and tensorrt.libraries("driver").exists()),
        reason="the build has no TensorRT backend or no stand-ins for its libraries",
    ),
]

GOOD = tensorrt.plan(tensorrt.ADD)


def serve(folder, machine, *args):
    repository = folder / "models"
    repository.mkdir()
    running = servers.running(
        repository,
        args=["--model-control-mode=explicit", *args],
        env=machine.environment,
        log_dir=folder,
    )
    return repository, running


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return tensorrt.Machine(tmp_path_factory.mktemp("machine"), tensorrt=(10,))


@pytest.fixture(scope="module")
def server(require_server, machine, tmp_path_factory):
    # Named, so that a TensorRT that is really installed does not count.
    library = "--backend-config=tensorrt,library=libnvinfer.so.10"
    repository, running = serve(tmp_path_factory.mktemp("server"), machine, library)
    with running as made:
        made.repository = repository
        yield made


@pytest.fixture
def client(server):
    made = clients.Client("http", server)
    yield made
    made.close()


def refusal(client, name):
    with pytest.raises(InferenceServerException) as caught:
        client.load_model(name)
    return str(caught.value)


def write(repository, name, plan=GOOD, extra="", instances=tensorrt.INSTANCES, file_name="model.plan"):
    config = f'platform: "tensorrt_plan"\n{instances}{extra}'
    models.write_model(repository, name, config, {"1": {} if plan is None else {file_name: plan}})


def add(client, name):
    """What the model answers for two rows, which is their sum."""
    inputs = [client.input(n, np.full((2, 4), v, np.float32), "FP32") for n, v in (("A", 1), ("B", 2))]
    return client.infer(name, inputs).as_numpy("SUM")


# What is in the file, and what the error says.
BAD = {
    "empty": (b"", "is empty"),
    "zeros": (bytes(5000), "begins with nothing but zeros"),
    "random": (np.random.default_rng(1).bytes(5000), "is not a plan of TensorRT"),
    "zip": (b"PK\x03\x04" + bytes(100), "but a zip archive"),
    "xml": (b"<?xml version='1.0'?><net/>", "but an XML file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "onnx": (models.onnx_add_sub("FP32", [16]).SerializeToString(), "if it is an ONNX model"),
    "header_only": (GOOD[:20], "ends after 20 bytes"),
    "rtx": (tensorrt.plan("", (1, 7, 1, 116), b"vtrt"), "was made by TensorRT for RTX 1.7.1.116"),
    "old_format": (b"ptrt" + bytes(100), "TensorRT 7 or older"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("has_driver", [True, False])
def test_a_file_that_is_no_plan_is_refused_before_the_driver_is_needed(
    kind, has_driver, server, client, machine, tmp_path, request
):
    if not has_driver:
        client = request.getfixturevalue("client_without_driver")
        server = client.server
    content, expected = BAD[kind]
    write(server.repository, f"bad_{kind}", content)
    machine.forget()
    text = refusal(client, f"bad_{kind}")
    assert expected in text
    # The server itself asks the driver once which GPUs there are.
    assert not [line for line in machine.calls() if line != "cuInit"]
    index = [m for m in client.as_json("get_model_repository_index") if m["name"] == f"bad_{kind}"]
    assert expected in index[0]["reason"]


@pytest.fixture(scope="module")
def client_without_driver(require_server, tmp_path_factory):
    machine = tensorrt.Machine(tmp_path_factory.mktemp("machine"), driver=False)
    repository, running = serve(tmp_path_factory.mktemp("bare"), machine)
    with running as server:
        server.repository = repository
        made = clients.Client("http", server)
        made.server = server
        yield made
        made.close()


def test_without_a_driver_the_error_says_exactly_that(client_without_driver):
    write(client_without_driver.server.repository, "plan")
    text = refusal(client_without_driver, "plan")
    assert "failed to load model 'plan': TensorRT needs a GPU of NVIDIA and its driver, which is not there" in text
    assert "libcuda.so.1" in text


def test_a_folder_and_a_missing_file_are_told(server, client):
    write(server.repository, "missing", None)
    assert "unable to find" in refusal(client, "missing")
    write(server.repository, "folder", None)
    (server.repository / "folder" / "1" / "model.plan").mkdir()
    assert "is a folder, not a plan" in refusal(client, "folder")
    write(server.repository, "misnamed", file_name="engine.plan")
    assert "rename it to 'model.plan'" in refusal(client, "misnamed")


def test_two_gigabytes_of_zeros_are_not_read(server, client):
    write(server.repository, "sparse", None)
    with open(server.repository / "sparse" / "1" / "model.plan", "wb") as file:
        file.truncate(2 << 30)
    before = server.resident_bytes()
    assert "begins with nothing but zeros" in refusal(client, "sparse")
    assert server.resident_bytes() - before < 64 << 20


def test_a_truncated_plan_is_told_with_its_versions(server, client):
    write(server.repository, "truncated", tensorrt.header(size=4000)[:63])
    text = refusal(client, "truncated")
    assert "unable to create TensorRT engine: " in text
    assert "the plan was made by TensorRT 10.3.0, and this is TensorRT 10.3.0" in text
    assert "its header speaks of 4000 bytes, but the file has 63" in text


def test_a_plan_of_another_version_is_refused_with_both(server, client, machine):
    machine.forget()
    write(server.repository, "newer", tensorrt.plan(tensorrt.ADD, (11, 4, 0, 106)))
    text = refusal(client, "newer")
    assert "the plan was made by TensorRT 11.4.0, and the library here is TensorRT 10.3.0 (libnvinfer.so.10)" in text
    assert not [line for line in machine.calls() if line.startswith("runtime")]
    write(server.repository, "minor", tensorrt.plan(tensorrt.ADD, (10, 8, 0, 1)))
    text = refusal(client, "minor")
    assert "is not compatible with this version of TensorRT" in text
    assert "the plan was made by TensorRT 10.8.0, and this is TensorRT 10.3.0" in text
    write(server.repository, "old", tensorrt.plan(tensorrt.ADD, (8, 6, 1, 6)))
    assert "made by TensorRT 8.6.1, and the library here is TensorRT 10.3.0" in refusal(client, "old")


def test_without_tensorrt_the_version_that_is_needed_is_named(require_server, tmp_path):
    repository, running = serve(tmp_path, tensorrt.Machine(tmp_path, tensorrt=()),
                                "--backend-config=tensorrt,library=libnvinfer_nowhere.so")
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        text = refusal(client, "plan")
        client.close()
    assert "TensorRT's library cannot be opened; the plan was made by TensorRT 10.3.0" in text
    assert "libnvinfer_nowhere.so: cannot open shared object file" in text


def test_version_compatible_plans_are_left_to_the_library(require_server, tmp_path):
    machine = tensorrt.Machine(tmp_path, tensorrt=(11,))
    repository, running = serve(tmp_path, machine, "--backend-config=tensorrt,version-compatible=true",
                                "--backend-config=tensorrt,library=libnvinfer.so.11")
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        text = refusal(client, "plan")
        client.close()
    assert "the plan was made by TensorRT 10.3.0, and this is TensorRT 11.4.0" in text
    assert "host code allowed" in machine.calls()


@pytest.mark.parametrize("value", ["version-compatible=perhaps", "coalesce-request-input=2"])
def test_options_that_are_no_booleans_are_refused(require_server, tmp_path, value):
    repository, running = serve(tmp_path, tensorrt.Machine(tmp_path), f"--backend-config=tensorrt,{value}")
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        assert f"failed to convert '{value.split('=')[1]}' to boolean" in refusal(client, "plan")
        client.close()


def test_a_plugin_that_cannot_be_opened_is_logged_and_the_model_served(require_server, tmp_path):
    repository, running = serve(tmp_path, tensorrt.Machine(tmp_path),
                                "--backend-config=tensorrt,plugins=/nowhere/a.so;/nowhere/b.so",
                                "--backend-config=tensorrt,execution-policy=BLOCKING")
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        client.load_model("plan")
        np.testing.assert_array_equal(add(client, "plan"), np.full((2, 4), 3))
        server.wait_for_log("/nowhere/b.so: cannot open shared object file")
        client.close()


@pytest.mark.parametrize("error, text", [(100, "no CUDA-capable device is detected"), (999, "CUDA error 999")])
def test_a_driver_that_does_not_start_is_told(require_server, tmp_path, error, text):
    machine = tensorrt.Machine(tmp_path)
    machine.fail("cuInit", error)
    repository, running = serve(tmp_path, machine)
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        assert f"which is not there: cuInit: {text}" in refusal(client, "plan")
        # A driver may start later.
        machine.fail()
        client.load_model("plan")
        client.close()


@pytest.mark.parametrize("function", [
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuCtxGetStreamPriorityRange",
    "cuStreamCreateWithPriority", "cuEventCreate", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemsetD8Async",
    "cuStreamSynchronize"])
def test_a_failure_of_the_driver_fails_the_load(require_server, tmp_path, function):
    machine = tensorrt.Machine(tmp_path)
    repository, running = serve(tmp_path, machine)
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        machine.fail(function, 2)
        assert "out of memory" in refusal(client, "plan")
        machine.fail()
        client.load_model("plan")
        np.testing.assert_array_equal(add(client, "plan"), np.full((2, 4), 3))
        client.close()


# The function of TensorRT that fails, and what the error says.
FAILURES = {
    "create_context": "unable to create TensorRT context: IExecutionContext is not made: out of memory",
    "set_profile": "Can not set the specified optimization profile 1[1] for failing_set_profile_0_0",
    "set_input_shape": "trt failed to set binding dimension to [8,4] for input 'A'",
    "set_address": "'A' does not map to an input or output tensor",
    "infer_shapes": "failed to specify the dimensions of all input tensors",
    "max_output_size": "unable to allocate memory for output 'SUM'",
}


@pytest.mark.parametrize("function", FAILURES)
def test_a_failure_of_tensorrt_fails_the_load(server, client, function):
    plan = tensorrt.ADD.replace("1x4/4x4/8x4", "1x4/4x4/8x4 1x4/2x4/8x4") + f"option fails {function}\n"
    instances = 'instance_group { kind: KIND_MODEL profile: [ "0", "1" ] }\n'
    write(server.repository, f"failing_{function}", tensorrt.plan(plan), instances=instances)
    assert FAILURES[function] in refusal(client, f"failing_{function}")


def io(kind, name, datatype, dims, extra=""):
    return f"{kind} {models.tensor_config(name, datatype, dims, extra)}\n"


A = io("input", "A", "FP32", [4])
B = io("input", "B", "FP32", [4])
SUM = io("output", "SUM", "FP32", [4])
# A configuration, and what the error says.
MISFITS = {
    "unknown_input": ("max_batch_size: 8\n" + A + io("input", "C", "FP32", [4]) + SUM,
                      "unexpected inference input 'C', allowed inputs are: A, B"),
    "unknown_output": ("max_batch_size: 8\n" + A + B + io("output", "X", "FP32", [4]),
                       "unexpected inference output 'X', allowed outputs are: SUM"),
    "missing_input": ("max_batch_size: 8\n" + A + SUM, "expected configuration for input 'B' for misfit_missing_input"),
    "too_many": ("max_batch_size: 8\n" + A + B + io("input", "C", "FP32", [4]) + SUM,
                 "configuration expects 3 inputs, model provides at most 2"),
    "type": ("max_batch_size: 8\n" + A + io("input", "B", "INT32", [4]) + SUM,
             "unexpected datatype TYPE_FP32 for inference input 'B', expecting TYPE_INT32"),
    "dims": ("max_batch_size: 8\n" + A + io("input", "B", "FP32", [5]) + SUM,
             "model 'misfit_dims', tensor 'B': the model expects 2 dimensions (shape [-1,4]) but the model "
             "configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed "
             "by the explicit tensor shape, making complete shape [-1,5])"),
    "batch": ("max_batch_size: 9\n" + A + B + SUM,
              "configuration specified max-batch 9 but TensorRT engine only supports max-batch 8"),
    "shape_mark": ("max_batch_size: 8\n" + io("input", "A", "FP32", [4], "is_shape_tensor: true") + B + SUM,
                   "is incorrectly specified as a shape tensor"),
    "graph_batch": ("max_batch_size: 8\n" + A + B + SUM +
                    "optimization { cuda { graphs: true graph_spec { batch_size: 9 } } }\n",
                    "graph spec expects 'batch_size' to be >= 1 and <= 8"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_a_configuration_that_does_not_fit_is_refused_with_tritons_words(server, client, kind):
    config, expected = MISFITS[kind]
    write(server.repository, f"misfit_{kind}", extra=config)
    assert expected in refusal(client, f"misfit_{kind}")


@pytest.mark.parametrize("profile, expected", [
    ("2", "specified invalid profile 2 . Number of profiles supported by TensorRT engine: 1"),
    ("first", "unable to parse 'first'"),
])
def test_a_profile_that_does_not_exist_is_refused(server, client, profile, expected):
    instances = f'instance_group {{ kind: KIND_MODEL profile: "{profile}" }}\n'
    write(server.repository, f"profile_{profile}", instances=instances)
    assert expected in refusal(client, f"profile_{profile}")


def test_instances_on_the_cpu_and_on_a_core_that_is_not_there_are_refused(server, client):
    write(server.repository, "cpu", instances="instance_group { kind: KIND_CPU }\n",
          extra="max_batch_size: 8\n" + A + B + SUM)
    assert "unable to load model 'cpu', TensorRT backend supports only GPU device" in refusal(client, "cpu")
    write(server.repository, "core", instances=(
        "instance_group { kind: KIND_MODEL secondary_devices { kind: KIND_NVDLA device_id: 2 } }\n"))
    assert ("unable to create TensorRT runtime with DLA Core ID: 2, available number of DLA cores: 2"
            in refusal(client, "core"))


def test_formats_that_are_not_linear_are_refused(server, client):
    write(server.repository, "vectorised", tensorrt.plan(
        "input A FP32 -1x3x2x2 1x3x2x2/4x3x2x2/8x3x2x2\noutput B FP32 -1x3x2x2 copy A\noption format chw32\n"))
    assert "uses a non-linear IO format (a format), which is not supported" in refusal(client, "vectorised")


def test_the_plan_is_chosen_by_the_devices_compute_capability(server, client):
    config = f'platform: "tensorrt_plan"\n{tensorrt.INSTANCES}' + (
        'cc_model_filenames [ { key: "9.0" value: "hopper.plan" }, { key: "8.0" value: "ampere.plan" } ]\n')
    models.write_model(server.repository, "capability", config,
                       {"1": {"hopper.plan": GOOD, "ampere.plan": tensorrt.plan("option dla_cores 1\n")}})
    client.load_model("capability")
    np.testing.assert_array_equal(add(client, "capability"), np.full((2, 4), 3))


def graph_calls(machine):
    return [line for line in machine.calls() if line.startswith(("graph", "enqueue"))]


def test_a_graph_is_captured_once_for_each_shape_and_replayed(server, client, machine):
    write(server.repository, "graphs", extra="max_batch_size: 8\n" + A + B + SUM +
          "optimization { cuda { graphs: true } }\n")
    machine.forget()
    client.load_model("graphs")
    captured = graph_calls(machine)
    assert captured.count("graph captured") == 6  # 1, 2, 3, 4, 6 and 8 rows
    for size in (1, 2, 3, 4, 6, 8):
        assert captured.count(f"enqueue profile 0 A[{size},4,] B[{size},4,]") == 2
    machine.forget()
    for _ in range(3):
        np.testing.assert_array_equal(add(client, "graphs"), np.full((2, 4), 3))
    assert graph_calls(machine) == ["graph launched"] * 3
    machine.forget()
    five = [client.input(name, np.full((5, 4), 2, np.float32), "FP32") for name in "AB"]
    np.testing.assert_array_equal(client.infer("graphs", five).as_numpy("SUM"), np.full((5, 4), 4))
    assert graph_calls(machine) == ["enqueue profile 0 A[5,4,] B[5,4,]"]


def test_a_graph_with_a_lower_bound_serves_fewer_rows(server, client, machine):
    dims = "".join(f'input {{ key: "{name}" value {{ dim: [ 4 ] }} }} ' for name in "AB")
    write(server.repository, "bounded", extra="max_batch_size: 8\n" + A + B + SUM + (
        f"optimization {{ cuda {{ graphs: true graph_spec {{ batch_size: 4 {dims}"
        f" graph_lower_bound {{ batch_size: 2 {dims} }} }} }} }}\n"))
    client.load_model("bounded")
    machine.forget()
    np.testing.assert_array_equal(add(client, "bounded"), np.full((2, 4), 3))
    one = [client.input(name, np.full((1, 4), 2, np.float32), "FP32") for name in "AB"]
    np.testing.assert_array_equal(client.infer("bounded", one).as_numpy("SUM"), np.full((1, 4), 4))
    assert graph_calls(machine) == ["graph launched", "enqueue profile 0 A[1,4,] B[1,4,]"]


@pytest.mark.parametrize("function", ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"])
def test_without_a_graph_the_model_is_served_as_usual(server, client, machine, function):
    write(server.repository, f"ungraphed_{function}", extra="max_batch_size: 8\n" + A + B + SUM +
          "optimization { cuda { graphs: true } }\n")
    machine.fail(function, 901)
    client.load_model(f"ungraphed_{function}")
    machine.fail()
    server.wait_for_log(f"unable to record CUDA graph for ungraphed_{function}_0_0")
    np.testing.assert_array_equal(add(client, f"ungraphed_{function}"), np.full((2, 4), 3))


def test_streams_have_the_priority_and_the_way_of_waiting_of_the_configuration(server, client, machine):
    write(server.repository, "urgent", extra=(
        "optimization { priority: PRIORITY_MAX cuda { output_copy_stream: true busy_wait_events: true } }\n"))
    machine.forget()
    client.load_model("urgent")
    assert [line for line in machine.calls() if line.startswith("stream")] == ["stream flags 1 priority -5"] * 2
    assert {line for line in machine.calls() if line.startswith("event")} == {"event flags 0"}
    machine.forget()
    add(client, "urgent")
    assert "stream waits for event" in machine.calls()


def test_loading_again_and_again_gives_memory_back(server, client):
    """The memory of the tensors on the device, which is the driver's own here, would be 1.6 GB."""
    columns = 262144
    plan = tensorrt.plan(f"input A FP32 -1x{columns} 1x{columns}/2x{columns}/4x{columns}\n"
                         f"output B FP32 -1x{columns} copy A\n")
    write(server.repository, "large", plan)
    values = client.input("A", np.ones((4, columns), np.float32), "FP32")
    memory.check_cycles(server, client, {"large": lambda: client.infer("large", [values])})


LEAN = pathlib.Path(os.environ.get("NEREID_TENSORRT_ROOT", servers.ROOT / ".deps" / "tensorrt")) / "lib"


@pytest.mark.skipif(not LEAN.exists(), reason="no TensorRT there (tools/setup --with tensorrt)")
@pytest.mark.parametrize("library", ["libnvinfer_lean.so.11", "libnvinfer_dispatch.so.11"])
def test_the_real_libraries_are_opened_and_say_their_version(require_server, tmp_path, library):
    machine = tensorrt.Machine(tmp_path, tensorrt=())
    repository, running = serve(tmp_path, machine, f"--backend-config=tensorrt,library={LEAN / library}")
    with running as server:
        client = clients.Client("http", server)
        write(repository, "plan")
        text = refusal(client, "plan")
        client.close()
    assert "the plan was made by TensorRT 10.3.0, and the library here is TensorRT 11.4.0" in text
    assert library in text
