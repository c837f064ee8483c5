# SPDX-License-Identifier: Apache-2.0
"""Loading and unloading models of the Caffe2 backend: files that are no networks, operators without a translation,
configurations that do not fit, memory that is given back."""

import re

import numpy as np
import pytest
from harness import caffe2_models, clients, memory, models
from harness import server as servers
from harness.caffe2_models import config, field, net, operator
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(not servers.has_backend("caffe2"), reason="the build has no Caffe2 backend"),
]

FIRST_LINE = re.compile(r"[IWEV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")
RELU = [operator("Relu", "x", "y")]
FINE = net(RELU, "x", "y")
EMPTY = net()


def fp32(name, *dims):
    return models.tensor_config(name, "FP32", dims)


ONE = config(fp32("x", 4), fp32("y", 4))


def random_bytes(count):
    return np.random.default_rng(1).bytes(count)


def weights(count):
    return operator("GivenTensorFill", "", "w", shape=[count], values=[0.5] * count)


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    write(path, "fine", ONE, RELU)
    args = ["--model-control-mode=explicit", "--load-model=fine"]
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server"), args=args) as running:
        running.repository = path
        yield running


@pytest.fixture
def client(server):
    made = clients.Client("grpc", server)
    yield made
    made.close()


def write(path, name, settings, operators=(), init=(), files=None, inputs="x", outputs="y"):
    if files is None:
        files = {"model.netdef": net(operators, inputs, outputs), "init_model.netdef": net(init)}
    models.write_model(path, name, settings, {"1": files})


def refusal(client, name):
    with pytest.raises(InferenceServerException) as caught:
        client.load_model(name)
    return str(caught.value).rstrip(";\n")


# What model.netdef and init_model.netdef are, and what the error says.
BAD_FILES = {
    "empty": (b"", EMPTY, "the file is empty"),
    "zeros": (bytes(5000), EMPTY, "nothing but zeros"),
    "random": (random_bytes(5000), EMPTY, "is not a Caffe2 NetDef"),
    "cut": (FINE[:-1], EMPTY, "is cut off"),
    "cut_in_an_operator": (FINE[:9], EMPTY, "is not a Caffe2 NetDef"),
    "text": (b'op { input: "x" type: "Relu" }\n' * 20, EMPTY, "networks in text form"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid 1\n", EMPTY, "Git LFS"),
    "zip": (b"PK\x03\x04" + random_bytes(500), EMPTY, "as PyTorch writes them"),
    "hdf5": (b"\x89HDF" + random_bytes(500), EMPTY, "HDF5"),
    "onnx": (models.onnx_add_sub("FP32", ["n", 16]).SerializeToString(), EMPTY, "is not a Caffe2 NetDef"),
    "operator_random": (field(2, random_bytes(900)), EMPTY, "its operator #0 cannot be read"),
    "operator_without_type": (field(2, field(1, "x")), EMPTY, "its operator #0 cannot be read"),
    "argument_random": (field(2, field(4, "Relu") + field(5, b"\x0a\xff")), EMPTY, "its operator #0 cannot be read"),
    "length_beyond_everything": (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", EMPTY, "is cut off"),
    "groups": (b"\x0b\x0c", EMPTY, "is not a Caffe2 NetDef"),
    "name_as_number": (field(1, 5), EMPTY, "is not a Caffe2 NetDef"),
    "init_random": (FINE, random_bytes(5000), "init_model.netdef' is not a Caffe2 NetDef"),
    "init_text": (FINE, b"op { }\n" * 50, "init_model.netdef' is not a Caffe2 NetDef: it is a text"),
    "init_is_missing": (FINE, None, "unable to find .*init_model.netdef"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_network_is_refused_with_a_reason(server, client, name):
    content, init, text = BAD_FILES[name]
    files = {"model.netdef": content}
    if init is not None:
        files["init_model.netdef"] = init
    write(server.repository, name, ONE, files=files)
    before = server.log_length()
    message = refusal(client, name)
    assert re.search(text, message), message
    assert "\n" not in message and "src/" not in message, message
    index = {entry["name"]: entry for entry in client.as_json("get_model_repository_index")["models"]}
    assert re.search(text, index[name]["reason"])
    assert client.is_model_ready("fine") and client.is_server_live()
    server.wait_for_log(f"failed to load '{name}'")
    raw = [line for line in server.log[before:].splitlines() if line and not FIRST_LINE.match(line)]
    assert raw == [], "a library has written to the log by itself"


def test_a_folder_in_place_of_a_file_is_refused(server, client):
    models.write_model(server.repository, "folder", ONE, {"1": {"init_model.netdef": EMPTY}})
    (server.repository / "folder" / "1" / "model.netdef").mkdir()
    assert "it is not a file" in refusal(client, "folder")


def test_gigabytes_of_zeros_are_refused_without_reading_them(server, client):
    models.write_model(server.repository, "huge", ONE, {"1": {"init_model.netdef": EMPTY}})
    with open(server.repository / "huge" / "1" / "model.netdef", "wb") as file:
        file.truncate(2 << 30)
    before = server.resident_bytes()
    assert "larger than 2 GB" in refusal(client, "huge")
    assert server.resident_bytes() < before + (64 << 20)


# Operators of model.netdef and of init_model.netdef, and what the error says.
BAD_NETWORKS = {
    "unknown": (
        [operator("Relu", "x", "h"), operator("FooBar", "h", "y")],
        [],
        r"operator #1 'FooBar' \(output 'y'\) of model.netdef has no translation to ONNX",
    ),
    "random_fill": (
        [operator("Add", "x w", "y")],
        [operator("XavierFill", "", "w", shape=[4])],
        r"operator #0 'XavierFill' \(output 'w'\) of init_model.netdef fills a tensor at random",
    ),
    "dropout": ([operator("Dropout", "x", "y mask")], [], "is_test is not 1"),
    "missing_weight": ([operator("Add", "x w", "y")], [], "reads 'w', which is not there"),
    "missing_output": ([operator("Relu", "x", "z")], [], "nothing in model.netdef makes its output 'y'"),
    "too_few_inputs": ([operator("Add", "x", "y")], [], r"operator #0 'Add' \(output 'y'\) .* has 1 inputs"),
    "too_many_inputs": ([operator("Relu", "x x", "y")], [], "has 2 inputs"),
    "no_outputs_of_an_operator": ([operator("Split", "x", ""), *RELU], [], None),
    "second_result": (
        [operator("MaxPool", "w", "p index", kernel=2), operator("Copy", "index", "y")],
        [operator("ConstantFill", "", "w", shape=[1, 1, 4, 4])],
        "second result, 'index'",
    ),
    "values_and_shape": (
        [operator("Add", "x w", "y")],
        [operator("GivenTensorFill", "", "w", shape=[5], values=[1.0])],
        "has 1 values for a shape of 5",
    ),
    "huge_fill": (
        [operator("Add", "x w", "y")],
        [operator("ConstantFill", "", "w", shape=[1 << 40])],
        "may take 2 GB at most",
    ),
    "huge_fill_by_input": (
        [operator("ConstantFill", "s", "w", input_as_shape=1), operator("Add", "x w", "y")],
        [operator("GivenTensorInt64Fill", "", "s", shape=[1], values=[1 << 40])],
        "may take 2 GB at most",
    ),
    "overflowing_fill": (
        [operator("Add", "x w", "y")],
        [operator("ConstantFill", "", "w", shape=[1 << 62, 1 << 62])],
        "impossible shape",
    ),
    "negative_fill": (
        [operator("Add", "x w", "y")],
        [operator("ConstantFill", "", "w", shape=[-4])],
        "impossible shape",
    ),
    "axis": ([operator("Softmax", "x", "y", axis=7)], [], "has axis 7, but its input has 1 dimensions"),
    "window": ([operator("MaxPool", "x", "y", kernel=2)], [], "has an input with 1 dimensions"),
    "legacy_pad": (
        [operator("Conv", "w w", "y", kernel=2, legacy_pad=3)],
        [operator("ConstantFill", "", "w", shape=[1, 1, 2, 2])],
        "has legacy_pad 3, which has no translation",
    ),
    "transpose": ([operator("Transpose", "x", "y", axes=[1, 1])], [], "not an order"),
    "reshape": ([operator("Reshape", "x", "y old", shape=[3, 3])], [], "onnx runtime error|dimensions"),
    "cast": ([operator("Cast", "x", "y", to=4)], [], "casts to or from a type"),
    "input_as_output": ([operator("Relu", "x", "x"), operator("Copy", "x", "y")], [], None),
}


@pytest.mark.parametrize("name", BAD_NETWORKS)
def test_an_operator_that_cannot_be_translated_is_named(server, client, name):
    operators, init, text = BAD_NETWORKS[name]
    write(server.repository, name, ONE, operators, init)
    if text is None:
        client.load_model(name)
        assert client.is_model_ready(name)
        return
    message = refusal(client, name)
    assert re.search(text, message), message
    assert client.is_model_ready("fine")


MISFITS = {
    "input_name": (config(fp32("a", 4), fp32("y", 4)), "unexpected inference input 'a', allowed inputs are: x"),
    "output_name": (config(fp32("x", 4), fp32("b", 4)), "unexpected inference output 'b', allowed outputs are: y"),
    "input_type": (
        config(models.tensor_config("x", "UINT32", [4]), fp32("y", 4)),
        "unsupported datatype TYPE_UINT32 for input 'x' for model 'misfit'",
    ),
    "output_type": (
        config(fp32("x", 4), models.tensor_config("y", "UINT64", [4])),
        "unsupported datatype TYPE_UINT64 for output 'y' for model 'misfit'",
    ),
    "output_other_type": (
        config(fp32("x", 4), models.tensor_config("y", "INT32", [4])),
        "configuration expects datatype TYPE_INT32 for output 'y', model provides TYPE_FP32",
    ),
    "output_shape": (config(fp32("x", 4), fp32("y", 5)), "the model expects 1 dimensions (shape [4])"),
    "output_rank": (config(fp32("x", 4), fp32("y", 4, 1)), "the model expects 1 dimensions (shape [4])"),
    "nothing": ('platform: "caffe2_netdef"\n', 'To begin with: input { name: "x" data_type: TYPE_FP32'),
    "gpu": (config(fp32("x", 4), fp32("y", 4), "instance_group [ { kind: KIND_GPU } ]"), "GPU"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_configuration_that_does_not_fit_is_refused(server, client, name):
    settings, text = MISFITS[name]
    write(server.repository, "misfit", settings, RELU)
    assert text in refusal(client, "misfit")


@pytest.mark.parametrize("operators", [[operator("Relu", "x", "x")], []])
def test_a_tensor_that_is_input_and_output_is_refused(server, client, operators):
    settings = config(fp32("x", 4), fp32("x", 4))
    write(server.repository, "in_place", settings, operators, inputs="x", outputs="x")
    assert "'x' is an input and an output of model.netdef" in refusal(client, "in_place")


def test_what_a_model_took_is_given_back_when_it_is_unloaded(server, client):
    operators = [operator("Reshape", "w", "m old", shape=[4, -1]), operator("MatMul", "x m", "y")]
    settings = config(fp32("x", 1, 4), fp32("y", 1, 65536))
    write(server.repository, "heavy", settings, operators, [weights(4 * 65536)])
    values = client.input("x", np.ones((1, 4), np.float32), "FP32")
    # The weights of all cycles would be 200 MB.
    memory.check_cycles(server, client, {"heavy": lambda: client.infer("heavy", [values])})
