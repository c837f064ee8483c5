# SPDX-License-Identifier: Apache-2.0
"""Loading and unloading models of the OpenVINO backend: files that are no models, configurations that do not
fit, memory that is given back."""

import re

import numpy as np
import onnx
import psutil
import pytest
from harness import clients, memory, models, openvino_formats, openvino_models
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

FIRST_LINE = re.compile(r"[IWEV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")


def fp32(*names, dims=(4,)):
    return [(name, "FP32", dims) for name in names]


def random_bytes(count):
    return np.random.default_rng(1).bytes(count)


def field(number, content):
    """A field of protobuf whose contents are bytes."""
    size, count = b"", len(content)
    while count > 127:
        size += bytes([count & 127 | 128])
        count >>= 7
    return bytes([number << 3 | 2]) + size + bytes([count]) + content


@pytest.fixture(scope="module")
def good(require_server, tmp_path_factory):
    """The files of models that can be loaded."""
    repository = openvino_models.Repository(tmp_path_factory.mktemp("good"))
    repository.add("weights", "weights", "FP32", "?x1024").write()
    folder = repository.path / "weights" / "1"
    onnx = models.onnx_add_sub("FP32", ["n", 16]).SerializeToString()
    return {"xml": (folder / "model.xml").read_bytes(), "bin": (folder / "model.bin").read_bytes(), "onnx": onnx}


@pytest.fixture(scope="module")
def server(good, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    files = {"model.xml": good["xml"], "model.bin": good["bin"]}
    models.write_model(path, "fine", 'backend: "openvino"\n', {"1": files})
    args = ["--model-control-mode=explicit", "--load-model=fine"]
    with servers.running(path, log_dir=tmp_path_factory.mktemp("server"), args=args) as running:
        running.repository = path
        yield running


@pytest.fixture
def client(server):
    made = clients.Client("grpc", server)
    yield made
    made.close()


def refusal(client, name):
    with pytest.raises(InferenceServerException) as caught:
        client.load_model(name)
    return str(caught.value).rstrip(";\n")


# Name of the file, what is in it (of the files of good models, or bytes), and what the error says.
BAD = {
    "empty": ("model.xml", lambda g: b"", "is empty"),
    "zeros": ("model.xml", lambda g: bytes(5000), "nothing but zeros"),
    "random": ("model.xml", lambda g: random_bytes(5000), "is not a model of OpenVINO"),
    "cut": ("model.xml", lambda g: g["xml"][:-200], "its end is missing"),
    "onnx_as_xml": ("model.xml", lambda g: g["onnx"], "is not a model of OpenVINO"),
    "no_weights": ("model.xml", lambda g: g["xml"], "bin file"),
    "other_xml": ("model.xml", lambda g: b"<?xml version='1.0'?><html></html>", "is not a model of OpenVINO"),
    "unknown_layer": ("model.xml", lambda g: g["xml"].replace(b'type="MatMul"', b'type="MatMol"'), "MatMol"),
    "broken_xml": ("model.xml", lambda g: g["xml"].replace(b"<layers>", b"<layers"), "failed to load"),
    "onnx_empty": ("model.onnx", lambda g: b"", "is empty"),
    "onnx_zeros": ("model.onnx", lambda g: bytes(5000), "nothing but zeros"),
    "onnx_random": ("model.onnx", lambda g: random_bytes(5000), "is not an ONNX model"),
    "onnx_cut": ("model.onnx", lambda g: g["onnx"][:-3], "is not an ONNX model"),
    "onnx_inside_random": ("model.onnx", lambda g: b"\x08\x08" + field(7, random_bytes(900)), "failed to load"),
    "onnx_no_outputs": ("model.onnx", lambda g: b"\x08\x08" + field(7, b""), "failed to load|at least one"),
    "graphdef_as_onnx": ("model.onnx", lambda g: field(1, field(1, b"node")), "is not an ONNX model"),
    "torch_as_onnx": ("model.onnx", lambda g: b"PK\x03\x04" + random_bytes(500), "as PyTorch makes"),
    "pb_random": ("model.pb", lambda g: random_bytes(5000), "is not a frozen graph"),
    "pb_text": ("model.pb", lambda g: b'node { name: "x" op: "Placeholder" }\n' * 20, "is not a frozen graph"),
    "pb_inside_random": ("model.pb", lambda g: field(1, random_bytes(900)), "is not a frozen graph"),
    "pb_onnx": ("model.pb", lambda g: g["onnx"], "failed to load"),
    "lfs": ("model.xml", lambda g: b"version https://git-lfs.github.com/spec/v1\noid 1\n", "Git LFS"),
    "tflite_random": ("model.tflite", lambda g: random_bytes(5000), "is not a TensorFlow Lite model"),
    "tflite_inside_random": ("model.tflite", lambda g: b"\x1c\0\0\0TFL3" + random_bytes(5000), "failed to load"),
    "pdmodel_random": ("model.pdmodel", lambda g: random_bytes(5000), "is not a PaddlePaddle model"),
    "other_ending": ("model.pt", lambda g: g["onnx"], "has no ending that says its format"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_model_is_refused_with_a_reason(server, client, good, name):
    file_name, content, text = BAD[name]
    settings = f'backend: "openvino"\ndefault_model_filename: "{file_name}"\n'
    files = {file_name: content(good)}
    if name in ("unknown_layer", "broken_xml"):
        files["model.bin"] = good["bin"]
    models.write_model(server.repository, name, settings, {"1": files})
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


def test_weights_that_are_cut_off_are_refused(server, client, good):
    files = {"model.xml": good["xml"], "model.bin": good["bin"][:-100]}
    models.write_model(server.repository, "short", 'backend: "openvino"\n', {"1": files})
    assert "failed to load" in refusal(client, "short")


def test_folders_in_place_of_files_are_refused(server, client):
    for name, file_name in (("folder", "model.xml"), ("onnx_folder", "model.onnx")):
        settings = f'backend: "openvino"\ndefault_model_filename: "{file_name}"\n'
        models.write_model(server.repository, name, settings)
        (server.repository / name / "1" / file_name).mkdir()
        assert "a folder without saved_model.pb" in refusal(client, name)


def test_gigabytes_of_zeros_are_refused_without_reading_them(server, client):
    models.write_model(server.repository, "huge", 'backend: "openvino"\ndefault_model_filename: "model.onnx"\n')
    with open(server.repository / "huge" / "1" / "model.onnx", "wb") as file:
        file.truncate(2 << 30)
    before = server.resident_bytes()
    assert "is not an ONNX model" in refusal(client, "huge")
    assert server.resident_bytes() < before + (256 << 20)


def test_a_model_that_is_not_there_is_told_with_what_is(server, client, good):
    models.write_model(server.repository, "absent", 'backend: "openvino"\n', {"1": {"net.xml": good["xml"]}})
    message = refusal(client, "absent")
    assert "unable to find" in message and "net.xml" in message


@pytest.mark.parametrize(
    "inputs, outputs, extra, text",
    [
        (fp32("a"), fp32("sum"), "", "configuration expects 1 inputs, model provides 2"),
        (fp32("a", "b", "c"), fp32("sum"), "", "configuration expects 3 inputs, model provides 2: a, b"),
        (fp32("a", "c"), fp32("sum"), "", "unexpected inference input 'c', allowed inputs are: a, b"),
        (fp32("a", "b"), fp32("z"), "", "unexpected inference output 'z', allowed outputs are: difference, sum"),
        (fp32("a", "b", dims=[5]), fp32("sum"), "", "the model expects 2 dimensions"),
        ([("a", "BYTES", [4]), *fp32("b")], fp32("sum"), "", "configuration expects datatype TYPE_STRING"),
        (fp32("a", "b"), fp32("sum"), parameter("NUM_STREAMS", "many"), "to be either AUTO/NUMA/<int_value>"),
        (fp32("a", "b"), fp32("sum"), parameter("TARGET_DEVICE", "NPU"), "on device 'NPU'"),
        (fp32("a", "b"), fp32("sum"), parameter("CPU_EXTENSION_PATH", "/no.so"), "no.so"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(server, client, inputs, outputs, extra, text):
    repository = openvino_models.Repository(server.repository)
    repository.add("misfit", "add_sub", "FP32", "?x4", config(inputs, outputs, extra, 8)).write()
    assert text in refusal(client, "misfit")


ACCELERATED = """platform: "onnxruntime_onnx"
optimization { execution_accelerators { cpu_execution_accelerator [ { name: "openvino" } ] } }
"""


def test_an_onnx_model_that_asks_for_openvino_is_handed_over(start_server, empty_repository):
    onnx = models.onnx_add_sub("FP32", ["n", 16])
    models.write_model(empty_repository, "accelerated", ACCELERATED, {"1": {"model.onnx": onnx}})
    server = start_server(empty_repository)
    libraries = {region.path.rsplit("/", 1)[-1] for region in psutil.Process(server.pid).memory_maps()}
    assert "libtriton_openvino.so" in libraries and "libtriton_onnxruntime.so" not in libraries
    client = clients.Client("http", server)
    assert client.get_model_metadata("accelerated")["platform"] == "onnxruntime_onnx"
    assert client.get_model_config("accelerated")["backend"] == "onnxruntime"
    client.close()


def test_without_its_backend_an_onnx_model_that_asks_for_openvino_is_refused(start_server, empty_repository, tmp_path):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime backend")
    (tmp_path / "onnxruntime").symlink_to(servers.backends() / "onnxruntime")
    onnx = models.onnx_add_sub("FP32", ["n", 16])
    models.write_model(empty_repository, "accelerated", ACCELERATED, {"1": {"model.onnx": onnx}})
    args = ["--model-control-mode=explicit", f"--backend-directory={tmp_path}"]
    client = clients.Client("grpc", start_server(empty_repository, args=args))
    message = refusal(client, "accelerated")
    client.close()
    assert "Execution Accelerator 'openvino' is requested" in message
    assert "tools/setup --with openvino" in message


def test_a_model_that_makes_one_row_of_several_is_not_batched(server, client):
    repository = openvino_models.Repository(server.repository)
    repository.add("flat", "flat", "FP32", "?x4", config(fp32("x"), fp32("y", dims=[-1]), "", 8)).write()
    assert "has a first dimension of 1 for every batch" in refusal(client, "flat")


FORMATS = {
    "ir": ("model.xml", lambda g: {"model.xml": g["xml"], "model.bin": g["bin"]}, "x", 1024),
    "onnx": ("model.onnx", lambda g: {"model.onnx": onnx_matrix()}, "x", 1024),
    "frozen_graph": ("model.pb", lambda g: {"model.pb": openvino_formats.graph_def()}, "x:0", 4),
    "saved_model": ("model.savedmodel", lambda g: {"saved_model.pb": openvino_formats.saved_model()}, "x", 4),
    "lite": ("model.tflite", lambda g: {"model.tflite": openvino_formats.tflite()}, "x", 4),
    "paddle": ("model.pdmodel", lambda g: {"model.pdmodel": openvino_formats.paddle()}, "x", 4),
}


def onnx_matrix():
    """y = x times 1024×1024 weights."""
    weights = onnx.numpy_helper.from_array(np.full((1024, 1024), 0.5, np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 1024]) for name in "xy"]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "matrix", ends[:1], ends[1:], [weights])
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def test_what_a_model_took_is_given_back_when_it_is_unloaded(server, client, good):
    """The weights of all cycles would be 800 MB, where a format has some."""
    asks = {}
    for kind, (file, content, name, columns) in FORMATS.items():
        text = f'backend: "openvino"\nmax_batch_size: 8\ndefault_model_filename: "{file}"\n'
        folder = models.write_model(server.repository, kind, text) / "1"
        for part, data in content(good).items():
            place = folder / file / part if kind == "saved_model" else folder / part
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data)
        values = client.input(name, np.ones((2, columns), np.float32), "FP32")
        asks[kind] = lambda kind=kind, values=values: client.infer(kind, [values])
    memory.check_cycles(server, client, asks)
