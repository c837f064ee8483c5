# SPDX-License-Identifier: Apache-2.0
"""Inference with the TensorRT backend, through stand-ins for TensorRT and the CUDA driver: memory of the
stand-in's devices cannot be touched by the CPU, and what was not waited for has not happened."""

import base64
import concurrent.futures
import mmap
import tempfile

import numpy as np
import pytest
from harness import clients, models, tensorrt
from harness import server as servers
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(
        not (servers.has_backend("tensorrt") and tensorrt.libraries("driver").exists()),
        reason="the build has no TensorRT backend or no stand-ins for its libraries",
    ),
]

TYPES = ("FP32", "FP16", "BF16", "INT8", "UINT8", "INT32", "INT64", "BOOL")

TWO_PROFILES = """
input A FP32 -1x-1 1x1/2x4/8x8 1x1/2x100/8x200
output COPY FP32 -1x-1 copy A
"""

SHAPED = """
input A FP32 -1x4 1x4/4x4/8x4
shape_input S {type} 3 1x1x1/4x2x2/8x16x16
output COPY FP32 -1x4 copy A
output ONES FP32 -1x-1x-1 fill S
shape_output VALUES INT64 3 values S
"""

STATE = """
input A FP32 -1x1 1x1/4x1/8x1
input OLD FP32 -1x1 1x1/4x1/8x1
output NEW FP32 -1x1 add A OLD
"""

RAGGED = """
input A FP32 -1 1/4/64
input ENDS INT32 -1 1/4/64
output COPY FP32 -1 copy A
"""


def add(repository, name, plan, extra="", version=(10, 3, 0, 26), instances=tensorrt.INSTANCES):
    config = f'platform: "tensorrt_plan"\n{instances}{extra}'
    models.write_model(repository, name, config, {"1": {"model.plan": tensorrt.plan(plan, version)}})


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return tensorrt.Machine(tmp_path_factory.mktemp("machine"), tensorrt=(10, 11))


@pytest.fixture(scope="module")
def server(require_server, machine, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    add(repository, "add", tensorrt.ADD)
    add(repository, "add_11", tensorrt.ADD, version=(11, 4, 0, 106))
    for datatype in TYPES:
        add(repository, f"copy_{datatype}", f"input A {datatype} -1x-1 1x0/2x4/8x8\noutput B {datatype} -1x-1 copy A\n")
    add(repository, "fixed", "input A FP32 2x3\noutput B FP32 2x3 copy A\n", "max_batch_size: 0\n"
        'input { name: "A" data_type: TYPE_FP32 dims: [ 2, 3 ] }\n')
    both = 'instance_group { kind: KIND_MODEL profile: [ "0", "1" ] }\n'
    add(repository, "profiles", TWO_PROFILES, instances=both)
    add(repository, "second_profile", TWO_PROFILES, instances=both.replace('"0", ', ""))
    for datatype in ("INT32", "INT64"):
        add(repository, f"shaped_{datatype}", SHAPED.format(type=datatype))
    add(repository, "shaped_unbatched", SHAPED.format(type="INT64"), """
        input [ { name: "A" data_type: TYPE_FP32 dims: [ -1, 4 ] },
                { name: "S" data_type: TYPE_INT64 dims: [ 3 ] is_shape_tensor: true } ]\n""")
    add(repository, "nonzero", "input A FP32 -1x4 1x4/4x4/8x4\noutput B FP32 -1 nonzero A\n",
        'input { name: "A" data_type: TYPE_FP32 dims: [ -1, 4 ] }\n')
    add(repository, "several", tensorrt.ADD, instances=tensorrt.INSTANCES.replace("count: 1", "count: 3"))
    add(repository, "streams", tensorrt.ADD,
        "optimization { priority: PRIORITY_MAX cuda { output_copy_stream: true busy_wait_events: true }\n"
        "  input_pinned_memory { enable: false } output_pinned_memory { enable: false } }\n")
    add(repository, "big", "input A FP32 -1x65536 1x65536/2x65536/4x65536\noutput B FP32 -1x65536 copy A\n")
    add(repository, "state", STATE, """max_batch_size: 8
        input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }
        output { name: "NEW" data_type: TYPE_FP32 dims: [ 1 ] }
        sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 4 } state {
          input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ 1 ]
          initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }\n""")
    add(repository, "ragged", RAGGED, """max_batch_size: 8
        input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
        output { name: "COPY" data_type: TYPE_FP32 dims: [ -1 ] }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 source_input: "A" }
        batch_output { target_name: "COPY" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "A" }
        dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [ 3 ] }\n""")
    add(repository, "batched", tensorrt.ADD,
        "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 10000000 preferred_batch_size: [ 8 ] }\n")
    add(repository, "auto", tensorrt.ADD, instances="")
    add(repository, "gpus", tensorrt.ADD, instances="instance_group { kind: KIND_GPU gpus: [ 0, 1 ] count: 2 }\n")
    add(repository, "refused", "option fails enqueue\n" + tensorrt.ADD)
    add(repository, "dla", tensorrt.ADD,
        instances="instance_group { kind: KIND_MODEL secondary_devices { kind: KIND_NVDLA device_id: 1 } }\n")
    folder = tmp_path_factory.mktemp("server")
    args = ["--allow-client-shm=true"]
    with servers.running(repository, log_dir=folder, args=args, env=machine.environment) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


def refusal(call, *args, **kwargs):
    with pytest.raises(InferenceServerException) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def infer(client, model, outputs=None, datatypes=None, **tensors):
    """The outputs by name; extra arguments of the client in `parameters`."""
    parameters = tensors.pop("parameters", {})
    inputs = [
        client.input(name, tensor, (datatypes or {}).get(name) or np_to_triton_dtype(tensor.dtype))
        for name, tensor in tensors.items()
    ]
    wanted = [client.output(name) for name in outputs] if outputs else None
    result = client.infer(model, inputs, outputs=wanted, **parameters)
    response = result.get_response()
    listed = response["outputs"] if client.is_http else response.outputs
    names = [output["name"] if client.is_http else output.name for output in listed]
    return {name: result.as_numpy(name) for name in names}


def rows(count, columns=4):
    return np.arange(1, count * columns + 1, dtype=np.float32).reshape(count, columns)


@pytest.mark.parametrize("model", ["add", "add_11", "streams", "several", "dla", "auto", "gpus"])
@pytest.mark.parametrize("count", [1, 5, 8])
def test_sums_are_computed_by_either_version(client, model, count):
    a, b = np.random.default_rng(count).standard_normal((2, count, 4)).astype(np.float32)
    np.testing.assert_array_equal(infer(client, model, A=a, B=b)["SUM"], a + b)


@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("shape", [(1, 3), (8, 8), (2, 0)])
def test_every_type_and_a_tensor_without_elements_come_back(client, datatype, shape):
    tensor = models.random_tensor(np.random.default_rng(3), datatype, shape)
    got = infer(client, f"copy_{datatype}", A=tensor, datatypes={"A": datatype})["B"]
    np.testing.assert_array_equal(got, tensor)


def test_the_configuration_is_completed_from_the_engine(client):
    config = client.as_json("get_model_config", "add")
    config = config.get("config", config)
    assert int(config["max_batch_size"]) == 8
    assert [(i["name"], i["data_type"], [int(d) for d in i["dims"]]) for i in config["input"]] == [
        ("A", "TYPE_FP32", [4]),
        ("B", "TYPE_FP32", [4]),
    ]
    assert [(o["name"], [int(d) for d in o["dims"]]) for o in config["output"]] == [("SUM", [4])]
    assert "dynamic_batching" in config
    metadata = client.as_json("get_model_metadata", "add")
    assert metadata["platform"] == "tensorrt_plan"


def test_a_model_without_a_batch_dimension(client):
    tensor = rows(2, 3)
    np.testing.assert_array_equal(infer(client, "fixed", A=tensor)["B"], tensor)


def test_the_nearest_profile_that_takes_the_shape_is_used(client, machine):
    machine.forget()
    for shape, profile in [((2, 4), 0), ((1, 60), 1), ((8, 8), 0), ((1, 200), 1)]:
        tensor = rows(*shape)
        np.testing.assert_array_equal(infer(client, "profiles", A=tensor)["COPY"], tensor)
        used = [line for line in machine.calls() if line.startswith("enqueue")][-1]
        assert used.startswith(f"enqueue profile {profile} A[{shape[0]},{shape[1]},]")
    tensor = rows(1, 3)
    infer(client, "second_profile", A=tensor)
    assert [line for line in machine.calls() if line.startswith("enqueue")][-1].startswith("enqueue profile 1 ")


def test_a_shape_that_no_profile_takes_is_refused_and_computes_nothing(client, machine):
    machine.forget()
    text = refusal(infer, client, "profiles", A=rows(1, 201))
    assert "request specifies invalid shape for input 'A' for profiles_0_0" in text
    assert "model expected the shape of dimension 1 to be between 1 and 8 but received 201" in text
    assert not machine.calls()
    text = refusal(infer, client, "fixed", A=rows(2, 3)[:, :2])
    assert "unexpected shape for input 'A'" in text


@pytest.mark.parametrize("datatype", ["INT32", "INT64"])
def test_shape_tensors_give_outputs_their_shape(client, datatype):
    values = np.array([3, 5], np.dtype(datatype.lower()))
    got = infer(client, f"shaped_{datatype}", A=rows(2), S=values)
    np.testing.assert_array_equal(got["COPY"], rows(2))
    np.testing.assert_array_equal(got["ONES"], np.ones((2, 3, 5), np.float32))
    np.testing.assert_array_equal(got["VALUES"], np.array([[3, 5], [3, 5]], np.int64))
    text = refusal(infer, client, f"shaped_{datatype}", A=rows(2), S=values * 4)
    assert "The shape value at index 2 is expected to be in range from 1 to 16, Got: 20" in text


def test_shape_tensors_without_a_batch_dimension(client):
    got = infer(client, "shaped_unbatched", A=rows(2), S=np.array([4, 1, 2], np.int64))
    assert got["ONES"].shape == (4, 1, 2)
    np.testing.assert_array_equal(got["VALUES"], [4, 1, 2])


def test_an_output_whose_shape_is_computed(client):
    tensor = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], np.float32)
    np.testing.assert_array_equal(infer(client, "nonzero", A=tensor)["B"], [1, 2, 3])
    assert infer(client, "nonzero", A=np.zeros((1, 4), np.float32))["B"].shape == (0,)


def test_instances_are_on_the_gpus_of_the_configuration(client, server):
    config = client.as_json("get_model_config", "auto")
    group = config.get("config", config)["instance_group"][0]
    assert group["kind"] == "KIND_GPU" and list(map(int, group["gpus"])) == [0, 1]
    for device in (0, 1):
        server.wait_for_log(f"Created instance gpus_0_1 on GPU {device}")
        # One engine for both instances.
        loads = [line for line in server.log.splitlines() if f"model 'gpus' is loaded on GPU {device}" in line]
        assert len(loads) == 1


def test_the_memory_of_inputs_and_outputs_is_in_the_statistics(client):
    statistics = client.as_json("get_inference_statistics", "auto")["model_stats"][0]
    on_gpus = {int(use.get("id", 0)): int(use["byte_size"]) for use in statistics["memory_usage"] if use["type"] == "GPU"}
    # Two inputs and an output of 8 rows of 4 numbers on each GPU.
    assert on_gpus == {0: 3 * 128, 1: 3 * 128}


def test_several_instances_serve_at_once_from_one_engine(client, machine):
    def call(seed):
        own = clients.Client(client.kind, server=client_server(client))
        try:
            a, b = np.random.default_rng(seed).standard_normal((2, 3, 4)).astype(np.float32)
            np.testing.assert_array_equal(infer(own, "several", A=a, B=b)["SUM"], a + b)
        finally:
            own.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(40)))


class client_server:
    """The server of a client, for another client."""

    def __init__(self, client):
        self.http = self.grpc = client.url


def test_large_outputs_arrive_whole_also_while_others_are_being_sent(client):
    tensors = [np.full((4, 65536), n, np.float32) for n in range(6)]
    for _ in range(3):
        for tensor in tensors:
            np.testing.assert_array_equal(infer(client, "big", A=tensor)["B"], tensor)


def test_requests_are_batched_on_the_device(client, machine):
    machine.forget()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        def call(first):
            own = clients.Client(client.kind, client_server(client))
            try:
                tensor = rows(4) + first
                np.testing.assert_array_equal(infer(own, "batched", A=tensor, B=tensor)["SUM"], tensor * 2)
            finally:
                own.close()

        list(pool.map(call, [0, 100]))
    assert [line for line in machine.calls() if line.startswith("enqueue")] == ["enqueue profile 0 A[8,4,] B[8,4,]"]
    # One copy for each input and output of the batch.
    assert sorted(line for line in machine.calls() if line.startswith("to ")) == [
        "to device 128", "to device 128", "to host 128"]


def test_states_stay_with_their_sequence(client):
    def step(sequence, value, **ends):
        options = {"sequence_id": sequence, **ends}
        return infer(client, "state", A=np.array([[value]], np.float32), parameters=options)["NEW"].item()

    assert step(1, 1, sequence_start=True) == 1
    assert step(2, 10, sequence_start=True) == 10
    assert step(1, 2) == 3
    assert step(2, 20, sequence_end=True) == 30
    assert step(1, 3, sequence_end=True) == 6


def test_ragged_requests_are_one_batch(client):
    def call(size):
        own = clients.Client(client.kind, client_server(client))
        try:
            tensor = rows(1, size)
            np.testing.assert_array_equal(infer(own, "ragged", ["COPY"], A=tensor)["COPY"], tensor)
        finally:
            own.close()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(call, [1, 5, 3]))


@pytest.fixture
def region(client):
    """Memory of the stand-in's device that client and server share, registered as "gpu"."""
    with tempfile.NamedTemporaryFile(prefix="nereid_", dir="/dev/shm") as file:
        file.truncate(4096)
        with mmap.mmap(file.fileno(), 4096) as memory:
            handle = base64.b64encode(file.name.encode().ljust(64, b"\0"))
            client.register_cuda_shared_memory("gpu", handle, 0, 4096)
            try:
                yield memory
            finally:
                client.unregister_cuda_shared_memory("gpu")


@pytest.mark.parametrize("count", [1, 4])
def test_tensors_in_cuda_shared_memory_are_copied_on_the_device_only(client, machine, region, count):
    a, b = np.random.default_rng(count).standard_normal((2, count, 4)).astype(np.float32)
    inputs = []
    for name, tensor, offset in (("A", a, 0), ("B", b, 512)):
        region[offset : offset + tensor.nbytes] = tensor.tobytes()
        inputs.append(client.tensors.InferInput(name, list(tensor.shape), "FP32"))
        inputs[-1].set_shared_memory("gpu", tensor.nbytes, offset)
    output = client.tensors.InferRequestedOutput("SUM")
    output.set_shared_memory("gpu", a.nbytes, 1024)
    machine.forget()
    client.infer("add", inputs, outputs=[output])
    np.testing.assert_array_equal(np.frombuffer(region[1024 : 1024 + a.nbytes], np.float32).reshape(a.shape), a + b)
    copies = [line for line in machine.calls() if line.startswith(("to ", "on "))]
    assert copies == [f"on device {a.nbytes}"] * 3


def test_wrong_types_and_a_missing_input_reach_no_kernel(client, machine):
    machine.forget()
    text = refusal(infer, client, "add", A=rows(1), B=rows(1).astype(np.int32))
    assert "inference input 'B' data-type is 'INT32', but model 'add' expects 'FP32'" in text
    assert "expected 2 inputs but got 1 inputs" in refusal(infer, client, "add", A=rows(1))
    assert not machine.calls()


def test_a_failed_execution_is_told_and_the_next_one_works(client):
    text = refusal(infer, client, "refused", A=rows(1), B=rows(1))
    assert "unable to enqueue for inference refused_0_0" in text
    np.testing.assert_array_equal(infer(client, "add", A=rows(1), B=rows(1))["SUM"], rows(1) * 2)


@pytest.mark.parametrize("function", [
    "cuCtxPushCurrent_v2", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuMemcpyDtoHAsync_v2", "cuEventSynchronize"])
def test_a_failure_of_the_driver_fails_the_request_only(client, machine, function):
    machine.fail(function)
    try:
        text = refusal(infer, client, "add", A=rows(2), B=rows(2))
    finally:
        machine.fail()
    assert "an illegal memory access was encountered" in text
    np.testing.assert_array_equal(infer(client, "add", A=rows(2), B=rows(2))["SUM"], rows(2) * 2)


def test_statistics_count_what_was_computed(client):
    before = client.as_json("get_inference_statistics", "add_11")["model_stats"][0]
    infer(client, "add_11", A=rows(3), B=rows(3))
    after = client.as_json("get_inference_statistics", "add_11")["model_stats"][0]
    assert int(after["inference_count"]) - int(before.get("inference_count", 0)) == 3
    assert int(after["inference_stats"]["compute_infer"]["ns"]) > 0
