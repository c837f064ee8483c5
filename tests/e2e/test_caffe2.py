# SPDX-License-Identifier: Apache-2.0
"""The Caffe2 backend: every operator in its variants and whole networks, against what Caffe2 itself computed
(tests/data/caffe2); batches, ragged batches, sequences, completed configurations, the digits."""

import shutil

import numpy as np
import pytest
from harness import caffe2_models, clients, models
from harness import server as servers
from harness.caffe2_models import net, operator
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(not servers.has_backend("caffe2"), reason="the build has no Caffe2 backend"),
]

CASES = caffe2_models.cases()
NETWORKS = [name for name in CASES if name.startswith("network_")]
# Values that depend on the order of summation, or on few bits.
TOLERANCES = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-9}
# The networks whose requests may be put together, row by row.
BATCHED = ["network_residual_classifier", "network_detector_head"]
SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input [ { name: "start" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "state" output_name: "next" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
"""
RAGGED = """
dynamic_batching { max_queue_delay_microseconds: 20000 }
batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "lengths" data_type: TYPE_INT32 source_input: "ids" } ]
"""
BATCHES = "dynamic_batching { max_queue_delay_microseconds: 20000 }"


def fp32(name, *dims, extra=""):
    return models.tensor_config(name, "FP32", dims, extra)


def write_cases(path):
    for name, case in CASES.items():
        models.write_model(path, name, case.config(), {"1": case.files()})
        models.write_model(path, f"{name}.open", case.config(is_open=True), {"1": case.files()})
    for name in BATCHED:
        case = CASES[name]
        models.write_model(path, f"{name}.batched", case.config(extra=BATCHES, max_batch_size=8), {"1": case.files()})


def write(path, name, config, operators, inputs, outputs, init=()):
    files = {"model.netdef": net(operators, inputs, outputs), "init_model.netdef": net(init)}
    models.write_model(path, name, config, {"1": files})


def write_others(path):
    relu = [operator("Relu", "x", "y")]
    config = caffe2_models.config
    one = fp32("x", 4), fp32("y", 4)
    write(path, "by_backend", 'backend: "caffe2"\n' + config(*one).split("\n", 1)[1], relu, "x", "y")
    write(path, "by_files", config(*one).split("\n", 1)[1], relu, "x", "y")
    write(path, "by_file_name", config(*one, 'default_model_filename: "net.pb"'), relu, "x", "y")
    for file_name in ("model.netdef", "init_model.netdef"):
        folder = path / "by_file_name" / "1"
        (folder / file_name).rename(folder / file_name.replace("model.netdef", "net.pb"))
    write(path, "completed", f"max_batch_size: 8\ninput [ {fp32('x', 4)} ]\n", relu, "x", "y")
    write(path, "no_names", config(*one), relu, "", "")
    echo = [operator("Copy", "x", "y")]
    strings = [models.tensor_config(n, "BYTES", [-1]) for n in "xy"]
    write(path, "strings", config(*strings), echo, "x", "y")
    add = [
        operator("Sub", "one start", "keep"),
        operator("Mul", "state keep", "kept"),
        operator("Add", "kept x", "next"),
        operator("Copy", "next", "y"),
    ]
    init = [operator("ConstantFill", "", "one", shape=[1], value=1.0)]
    state = config(fp32("x", 1), fp32("y", 1), SEQUENCES, 4)
    write(path, "state", state, add, "x state start one", "y next", init)
    embed = [operator("SparseLengthsSum", "table ids lengths", "y")]
    table = [operator("GivenTensorFill", "", "table", shape=[5, 2], values=[float(i) for i in range(10)])]
    ids = models.tensor_config("ids", "INT64", [-1], "allow_ragged_batch: true")
    write(path, "ragged", config(ids, fp32("y", 2), RAGGED, 8), embed, "ids lengths table", "y", table)
    lookup = config(models.tensor_config("ids", "INT64", [-1]), fp32("y", -1, 2))
    gather = [operator("Gather", "table ids", "y")]
    write(path, "lookup", lookup, gather, "ids table", "y", table)
    sums = config(
        f"{models.tensor_config('ids', 'INT64', [-1])}, {models.tensor_config('lengths', 'INT32', [-1])}",
        fp32("y", -1, 2),
    )
    write(path, "sums", sums, embed, "ids lengths table", "y", table)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("caffe2") / "models"
    path.mkdir()
    write_cases(path)
    write_others(path)
    models.copy_example(path, "digits")
    example = models.ROOT / "examples" / "platforms" / "caffe2" / "digits_netdef"
    shutil.copytree(example, path / example.name)
    args = ["--strict-readiness=false", "--exit-on-error=false"]
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server"), args=args, wait=False) as running:
        servers.wait_until(running.is_ready, "the models to be loaded", timeout=300)
        yield running


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = clients.Client(request.param, server)
    yield made
    made.close()


@pytest.fixture(scope="module")
def grpc(server):
    made = clients.Client("grpc", server)
    yield made
    made.close()


def infer(client, model, tensors, datatype=None, **options):
    """The outputs as {name: array} for inputs given in the same way."""
    inputs = [client.input(n, t, datatype or caffe2_models.WIRE[t.dtype.name]) for n, t in tensors.items()]
    answer = client.infer(model, inputs, **options)
    names = [output["name"] for output in client.as_json("get_model_metadata", model)["outputs"]]
    return {name: answer.as_numpy(name) for name in names}


def assert_recorded(case, outputs):
    for name, expected in case.outputs.items():
        got = outputs[name]
        assert got.dtype == expected.dtype, name
        assert got.shape == (expected.shape or (1,)), name
        got = got.reshape(expected.shape)
        if expected.dtype.kind == "f":
            close = TOLERANCES[expected.dtype.name]
            np.testing.assert_allclose(got, expected, rtol=close, atol=close, err_msg=name)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_caffe2_does(grpc, name):
    assert_recorded(CASES[name], infer(grpc, name, CASES[name].inputs))


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_the_same_with_open_dimensions(grpc, name):
    assert_recorded(CASES[name], infer(grpc, f"{name}.open", CASES[name].inputs))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_computes_what_caffe2_does_over_both_protocols(client, name):
    assert_recorded(CASES[name], infer(client, name, CASES[name].inputs))


@pytest.mark.parametrize("name", BATCHED)
def test_a_network_computes_each_row_of_a_batch_alone(client, name):
    case = CASES[name]
    rows = len(case.inputs["data"])
    assert_recorded(case, infer(client, f"{name}.batched", case.inputs))
    for row in range(rows):
        outputs = infer(client, f"{name}.batched", {"data": case.inputs["data"][row : row + 1]})
        for key, expected in case.outputs.items():
            np.testing.assert_allclose(outputs[key][0], expected[row], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("model", ["by_backend", "by_files", "by_file_name", "no_names"])
def test_a_model_is_found_by_platform_backend_or_files(client, model):
    assert infer(client, model, {"x": np.float32([-1, 2, -3, 4])})["y"].tolist() == [0, 2, 0, 4]


def test_outputs_that_a_configuration_leaves_out_are_completed(client):
    made = client.as_json("get_model_config", "completed")
    made = made.get("config", made)
    assert [(o["name"], o["data_type"]) for o in made["output"]] == [("y", "TYPE_FP32")]
    assert [int(d) for d in made["output"][0]["dims"]] == [4]
    assert made["platform"] == "caffe2_netdef" and made["backend"] == "caffe2"
    assert infer(client, "completed", {"x": -np.ones((3, 4), np.float32)})["y"].tolist() == [[0] * 4] * 3


def test_strings_are_passed_on(client):
    values = np.array([b"", b"a\0b", "ü".encode()], np.object_)
    assert infer(client, "strings", {"x": values}, "BYTES")["y"].tolist() == values.tolist()


def test_sequences_keep_their_states_apart(client):
    totals = {7: 0, 8: 0}
    for step in range(4):
        for sequence in totals:
            totals[sequence] += sequence * (step + 1)
            options = {"sequence_id": sequence, "sequence_start": step == 0, "sequence_end": step == 3}
            values = np.float32([[sequence * (step + 1)]])
            assert infer(client, "state", {"x": values}, **options)["y"].item() == totals[sequence]


def test_a_ragged_batch_sums_the_rows_of_each_request(client):
    for ids in ([4], [0, 1, 1], [3, 2]):
        table = np.arange(10, dtype=np.float32).reshape(5, 2)
        values = np.array([ids], np.int64)
        np.testing.assert_array_equal(infer(client, "ragged", {"ids": values})["y"], [table[ids].sum(0)])


@pytest.mark.parametrize(
    "model, tensors, text",
    [
        ("lookup", {"ids": np.int64([0, 5])}, "out of data bounds|index"),
        ("sums", {"ids": np.int64([0, 5]), "lengths": np.int32([2])}, "index 5 is not in a table of 5 rows"),
        ("sums", {"ids": np.int64([0, -1]), "lengths": np.int32([2])}, "index -1 is not in a table of 5 rows"),
        ("sums", {"ids": np.int64([0, 1]), "lengths": np.int32([1])}, "sum up to 1, but there are 2"),
        ("sums", {"ids": np.int64([0, 1]), "lengths": np.int32([3, -1])}, "the lengths do not fit"),
        ("by_backend", {"x": np.ones(5, np.float32)}, "unexpected shape"),
        ("by_backend", {"x": np.ones(4, np.int32)}, "data-type"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(client, model, tensors, text):
    with pytest.raises(InferenceServerException, match=text):
        infer(client, model, tensors)


@pytest.mark.parametrize("rows", [1, 5])
def test_digits_are_those_of_onnx(client, rows):
    images = models.digit_images()
    first, second = (infer(client, model, {"pixels": images[:rows]}) for model in ("digits", "digits_netdef"))
    np.testing.assert_array_equal(second["label"], first["label"])
    np.testing.assert_allclose(second["probabilities"], first["probabilities"], atol=1e-4)
