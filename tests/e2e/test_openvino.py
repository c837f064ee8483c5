# SPDX-License-Identifier: Apache-2.0
"""The OpenVINO backend: types and shapes, completed configurations, batches of every size, parameters,
states, formats of other frameworks."""

import concurrent.futures
import shutil

import numpy as np
import pytest
from harness import clients, models, openvino_formats, openvino_models
from harness import server as servers
from harness.openvino_models import config, parameter
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(
        not servers.has_backend("openvino"),
        reason="the build has no OpenVINO backend (tools/setup --with openvino)",
    ),
]

TYPES = list(openvino_models.TYPES)
SUMS = [t for t in TYPES if t not in ("BYTES", "BOOL")]
BATCHES = "dynamic_batching { max_queue_delay_microseconds: 20000 }"
SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input [ { name: "start" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "state" output_name: "next" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
"""
RAGGED = """
dynamic_batching { max_queue_delay_microseconds: 20000 }
batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "offsets" data_type: TYPE_INT32 source_input: "x" } ]
batch_output [ { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" } ]
"""


def fp32(*names, dims=(4,)):
    return [(name, "FP32", dims) for name in names]


def write_types(repository):
    for datatype in TYPES:
        io = [("x", datatype, [-1, -1])], [("y", datatype, [-1, -1])]
        repository.add(f"echo_{datatype}", "echo", datatype, "?x?", config(*io))
        io = [("x", datatype, [3])], [("y", datatype, [3])]
        repository.add(f"batch_{datatype}", "echo", datatype, "?x3", config(*io, BATCHES, max_batch_size=8))
    for datatype in SUMS:
        io = [("a", datatype, [-1]), ("b", datatype, [-1])], [("sum", datatype, [-1]), ("difference", datatype, [-1])]
        repository.add(f"sums_{datatype}", "add_sub", datatype, "?", config(*io))


def write_others(repository):
    add = repository.add
    one = fp32("x"), fp32("y")
    add("scalar", "echo", "FP32", "scalar", config(fp32("x", dims=[1]), fp32("y", dims=[1])))
    add("completed", "add_sub", "FP32", "?x4")
    add("completed_fixed", "add_sub", "FP32", "2x4")
    add("completed_share", "share", "FP32", "?x4")
    add("layout", "N:add_sub", "FP32", "1x4")
    add("layout_variable", "N:share", "FP32", "?x4")
    add("layout_of_eight_rows", "N:as_made", "FP32", "8x4")
    add("layout_listed", "N:echo", "FP32", "1x4", config(*one, max_batch_size=8))
    add("layout_of_one_row", "N:echo", "FP32", "1x4", config(fp32("x", dims=[1, 4]), fp32("y", dims=[1, 4])))
    listed = ", ".join(models.tensor_config(name, "FP32", [-1, 4]) for name in "ab")
    add("completed_outputs", "add_sub", "FP32", "?x4", f'backend: "openvino"\ninput [ {listed} ]\n')
    add("made_for_one_row", "add_sub", "FP32", "1x4", config(fp32("a", "b"), fp32("sum"), max_batch_size=8))
    skip = parameter("SKIP_OV_DYNAMIC_BATCHSIZE", "YES")
    add("padded", "add_sub", "FP32", "?x4", config(fp32("a", "b"), fp32("sum"), skip, max_batch_size=8))
    add("made_for_eight_rows", "as_made", "FP32", "8x4", config(*one, max_batch_size=8))
    add("opened", "echo", "FP32", "1x4", config(fp32("x", dims=[-1, -1]), fp32("y", dims=[-1, -1])))
    add("positive", "positive", "FP32", "?", config(fp32("x", dims=[-1]), [("y", "INT64", [1, -1])]))
    add("converted", "echo", "FP16", "?x4", config(*one, max_batch_size=8))
    add("accumulate", "accumulate", "FP32", "1x4", config(fp32("x", dims=[1, 4]), fp32("y", dims=[1, 4])))
    add("state", "state", "FP32", "?x1", config(fp32("x", dims=[1]), fp32("y", dims=[1]), SEQUENCES, 4))
    ragged = config([("x", "FP32", [-1], "allow_ragged_batch: true")], fp32("y", dims=[-1]), RAGGED, 8)
    add("ragged", "offsets", "FP32", "?", ragged)
    settings = "".join(
        parameter(key, value)
        for key, value in (
            ("PERFORMANCE_HINT", "THROUGHPUT"),
            ("INFERENCE_NUM_THREADS", "1"),
            ("COMPILATION_NUM_THREADS", "1"),
            ("NUM_STREAMS", "AUTO"),
            ("TARGET_DEVICE", "CPU"),
            ("CACHE_DIR", repository.path.parent / "compiled"),
            ("ENABLE_BATCH_PADDING", "YES"),
        )
    )
    add("parameters", "weights", "FP32", "?x1024", config(*[fp32(n, dims=[1024]) for n in "xy"], settings, 8))
    add("other_name", "echo", "FP32", "?x4", 'backend: "openvino"\ndefault_model_filename: "net.xml"\n', "1", "net.xml")
    group = "instance_group [ { kind: KIND_CPU count: 3 } ]"
    add("instances", "add_sub", "FP32", "?x4", config(fp32("a", "b"), fp32("sum", "difference"), group, 8))
    for name in ("added", "onnx"):
        io = [(f"INPUT{i}", "FP32", [16]) for i in range(2)], [(f"OUTPUT{i}", "FP32", [16]) for i in range(2)]
        text = config(*io, max_batch_size=8) + 'default_model_filename: "model.onnx"\n'
        models.write_model(repository.path, name, text, {"1": {"model.onnx": models.onnx_add_sub("FP32", ["n", 16])}})


def write_handed_over(path):
    """ONNX models that ask for OpenVINO, as Triton's users write it."""
    settings = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 8\noptimization { execution_accelerators {\n'
        '  cpu_execution_accelerator [ { name: "openvino" parameters { key: "num_of_threads" value: "1" } } ] } }\n'
    )
    model = models.onnx_add_sub("FP32", ["n", 16])
    models.write_model(path, "accelerated", settings, {"1": {"model.onnx": model}})
    folder = models.write_model(path, "accelerated_folder", settings) / "1" / "model.onnx"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model.SerializeToString())


FORMATS = {
    "frozen_graph": ("model.pb", openvino_formats.graph_def),
    "saved_model": ("model.savedmodel/saved_model.pb", openvino_formats.saved_model),
    "lite": ("model.tflite", openvino_formats.tflite),
}


def write_formats(path):
    for name, (file, content) in FORMATS.items():
        settings = f'backend: "openvino"\nmax_batch_size: 8\ndefault_model_filename: "{file.split("/")[0]}"\n'
        place = models.write_model(path, name, settings) / "1" / file
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content())


def write_digits(path):
    models.copy_example(path, "digits")
    example = models.ROOT / "examples" / "platforms" / "openvino" / "digits_openvino"
    shutil.copytree(example, path / example.name)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = openvino_models.Repository(tmp_path_factory.mktemp("openvino") / "models")
    repository.path.mkdir()
    write_types(repository)
    write_others(repository)
    write_handed_over(repository.path)
    write_formats(repository.path)
    write_digits(repository.path)
    repository.write()
    with servers.running(repository.path, log_dir=tmp_path_factory.mktemp("server")) as running:
        running.repository = repository.path
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


def infer(client, model, tensors, datatype="FP32", **options):
    """The outputs as {name: array} for inputs given in the same way."""
    answer = client.infer(model, [client.input(n, t, datatype) for n, t in tensors.items()], **options)
    outputs = client.as_json("get_model_metadata", model)["outputs"]
    return {o["name"]: answer.as_numpy(o["name"]) for o in outputs}


def configuration(client, model):
    made = client.as_json("get_model_config", model)
    return made.get("config", made)


def ones(*shape):
    return np.ones(shape, np.float32)


def random_tensor(datatype, shape, seed=3):
    """Values that OpenVINO computes with: 32 bits where the type has 64."""
    rng = np.random.default_rng(seed)
    narrow = {"INT64": "INT32", "UINT64": "UINT16", "FP64": "FP32"}.get(datatype, datatype)
    values = models.random_tensor(rng, narrow, shape)
    return values if narrow == datatype else values.astype(models.TYPES[datatype][1])


@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (200, 100), (0, 3), (3, 0)], ids=str)
def test_every_type_arrives_and_returns_in_every_shape(client, datatype, shape):
    values = random_tensor(datatype, shape)
    answer = client.infer(f"echo_{datatype}", [client.input("x", values, datatype)])
    np.testing.assert_array_equal(answer.as_numpy("y"), values)


@pytest.mark.parametrize("datatype", ["INT64", "UINT64"])
def test_whole_numbers_that_the_library_would_cut_off_are_refused(client, datatype):
    values = np.array([[1 << 40]]).astype(models.TYPES[datatype][1])
    with pytest.raises(InferenceServerException, match="beyond 32 bits"):
        client.infer(f"echo_{datatype}", [client.input("x", values, datatype)])


def test_an_output_that_is_an_input_leaves_earlier_inputs_alone(client):
    for shape in [(3, 4), (3, 4), (2000, 4), (3, 4), (3, 4), (5, 5)]:
        values = random_tensor("FP32", shape)
        answer = client.infer("echo_FP32", [client.input("x", values, "FP32")]).as_numpy("y")
        np.testing.assert_array_equal(answer, values)


@pytest.mark.parametrize("datatype", TYPES)
def test_requests_of_different_sizes_share_a_batch(client, datatype):
    rows = [random_tensor(datatype, (n, 3), seed=n) for n in (1, 3, 2, 1)]

    def one(values):
        own = clients.Client(client.kind, type("", (), {"http": client.url, "grpc": client.url}))
        try:
            return own.infer(f"batch_{datatype}", [own.input("x", values, datatype)]).as_numpy("y")
        finally:
            own.close()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for values, answer in zip(rows, pool.map(one, rows), strict=True):
            np.testing.assert_array_equal(answer, values)


@pytest.mark.parametrize("datatype", SUMS)
def test_every_type_is_computed_with(client, datatype):
    kind = np.dtype(models.TYPES[datatype][1])
    a, b = (np.array(values).astype(kind) for values in ([5, 6, 7], [1, 2, 3]))
    answer = infer(client, f"sums_{datatype}", {"a": a, "b": b}, datatype)
    np.testing.assert_array_equal(answer["sum"], np.array([6, 8, 10]).astype(kind))
    np.testing.assert_array_equal(answer["difference"], np.array([4, 4, 4]).astype(kind))


def test_a_scalar_is_a_tensor_of_one_element(client):
    assert infer(client, "scalar", {"x": ones(1) * 7})["y"].tolist() == [7]


def test_a_configuration_is_completed_with_batches_where_rows_do_not_depend_on_each_other(client):
    made = configuration(client, "completed")
    assert made["max_batch_size"] == 4 and "dynamic_batching" in made
    assert sorted(i["name"] for i in made["input"]) == ["a", "b"]
    answer = infer(client, "completed", {"a": ones(3, 4), "b": ones(3, 4)})
    assert answer["sum"].tolist() == [[2] * 4] * 3


@pytest.mark.parametrize("model", ["completed_fixed", "completed_share", "completed_outputs"])
def test_a_configuration_is_completed_without_batches_elsewhere(client, model):
    made = configuration(client, model)
    assert made.get("max_batch_size", 0) == 0
    assert len(made["input"][0]["dims"]) == 2


@pytest.mark.parametrize("model, size", [("layout", 4), ("layout_variable", 4), ("layout_listed", 8)])
def test_a_file_whose_layouts_name_the_batch_is_batched(client, model, size):
    made = configuration(client, model)
    assert made["max_batch_size"] == size and "dynamic_batching" in made
    assert [int(d) for d in made["input"][0]["dims"]] == [4]
    inputs = {i["name"]: ones(3, 4) for i in made["input"]}
    assert infer(client, model, inputs)[made["output"][0]["name"]].shape == (3, 4)


@pytest.mark.parametrize("model, rows", [("layout_of_eight_rows", 8), ("layout_of_one_row", 1)])
def test_a_layout_does_not_decide_for_a_model_of_one_size_or_against_the_configuration(client, model, rows):
    made = configuration(client, model)
    assert made.get("max_batch_size", 0) == 0 and "dynamic_batching" not in made
    assert infer(client, model, {"x": ones(rows, 4)})["y"].shape == (rows, 4)


@pytest.mark.parametrize("model", ["made_for_one_row", "padded"])
@pytest.mark.parametrize("rows", [1, 2, 7, 8])
def test_a_model_of_a_fixed_batch_serves_every_size(client, model, rows):
    a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    np.testing.assert_array_equal(infer(client, model, {"a": a, "b": 10 * a})["sum"], 11 * a)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_a_model_that_can_only_have_the_rows_it_was_made_for_serves_every_size(client, rows):
    x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    np.testing.assert_array_equal(infer(client, "made_for_eight_rows", {"x": x})["y"], x)


def test_dimensions_that_the_configuration_leaves_open_are_open(client):
    values = np.arange(35, dtype=np.float32).reshape(5, 7)
    np.testing.assert_array_equal(infer(client, "opened", {"x": values})["y"], values)


@pytest.mark.parametrize("count", [0, 1, 3, 30_000])
def test_an_output_may_have_another_shape_each_time(client, count):
    values = np.zeros(40_000, np.float32)
    values[:count] = 1
    np.testing.assert_array_equal(infer(client, "positive", {"x": values})["y"], [np.arange(count)])


def test_a_type_that_is_not_the_models_is_converted(client):
    assert infer(client, "converted", {"x": ones(2, 4) * 1.5})["y"].tolist() == [[1.5] * 4] * 2


def test_a_variable_inside_the_model_keeps_nothing_of_other_requests(client):
    for _ in range(3):
        assert infer(client, "accumulate", {"x": ones(1, 4)})["y"].tolist() == [[1] * 4]


def test_sequences_keep_their_states_apart(client):
    totals = {7: 0, 8: 0, 9: 0}
    for step in range(4):
        for sequence in totals:
            totals[sequence] += sequence * (step + 1)
            options = {"sequence_id": sequence, "sequence_start": step == 0, "sequence_end": step == 3}
            values = ones(1, 1) * sequence * (step + 1)
            assert infer(client, "state", {"x": values}, **options)["y"].item() == totals[sequence]


def test_requests_of_different_lengths_share_a_ragged_batch(client):
    values = np.arange(3, dtype=np.float32)[None]
    np.testing.assert_array_equal(infer(client, "ragged", {"x": values})["y"], values + 3)


def test_parameters_are_accepted_and_compiled_models_kept(server, client):
    assert infer(client, "parameters", {"x": ones(3, 1024)})["y"].tolist() == [[512.0] * 1024] * 3
    assert any((server.repository.parent / "compiled").iterdir())


def test_the_bytes_of_the_weights_are_in_the_statistics(client):
    statistics = client.as_json("get_inference_statistics", "parameters")["model_stats"][0]
    (use,) = statistics["memory_usage"]
    assert use["type"] == "CPU"
    assert 4 << 20 <= int(use["byte_size"]) < 5 << 20


def test_a_file_of_another_name_and_several_instances_are_served(client):
    metadata = client.as_json("get_model_metadata", "other_name")
    assert [o["shape"] for o in metadata["outputs"]] in ([["-1", "4"]], [[-1, 4]])
    for _ in range(20):
        assert infer(client, "instances", {"a": ones(2, 4), "b": ones(2, 4)})["difference"].sum() == 0


@pytest.mark.parametrize("model", ["onnx", "accelerated", "accelerated_folder"])
def test_an_onnx_model_is_served(client, model):
    values = np.arange(32, dtype=np.float32).reshape(2, 16)
    answer = infer(client, model, {"INPUT0": values, "INPUT1": values})
    np.testing.assert_array_equal(answer["OUTPUT0"], 2 * values)
    np.testing.assert_array_equal(answer["OUTPUT1"], 0 * values)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("model", FORMATS)
def test_models_of_tensorflow_are_served(client, model, rows):
    metadata = client.as_json("get_model_metadata", model)
    assert [len(metadata[side]) for side in ("inputs", "outputs")] == [1, 1]
    values = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
    answer = infer(client, model, {metadata["inputs"][0]["name"]: values})
    np.testing.assert_array_equal(answer[metadata["outputs"][0]["name"]], values + openvino_formats.CONSTANT)


@pytest.mark.parametrize("rows", [1, 5])
def test_digits_are_those_of_onnx_runtime(server, client, rows):
    metadata = client.as_json("get_model_metadata", "digits")
    tensor = metadata["inputs"][0]
    images = models.digit_images()
    inputs = {tensor["name"]: images[:rows]}
    first, second = (infer(client, model, inputs, "FP32") for model in ("digits", "digits_openvino"))
    for name, expected in first.items():
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(second[name], expected, atol=1e-4)
        else:
            np.testing.assert_array_equal(second[name], expected)


@pytest.mark.parametrize(
    "tensors, datatype, text",
    [
        ({"a": ones(1, 4)}, "FP32", "expected 2 inputs"),
        ({"a": ones(1, 5), "b": ones(1, 5)}, "FP32", "unexpected shape"),
        ({"a": ones(1, 4, 1), "b": ones(1, 4, 1)}, "FP32", "unexpected shape"),
        ({"a": ones(1, 4).astype(np.int32), "b": ones(1, 4).astype(np.int32)}, "INT32", "data-type"),
    ],
)
def test_inputs_of_another_number_shape_or_type_are_refused(client, tensors, datatype, text):
    with pytest.raises(InferenceServerException, match=text):
        infer(client, "instances", tensors, datatype)
