# SPDX-License-Identifier: Apache-2.0
"""Loading and unloading models of the TensorFlow backend: files that are no models, configurations that do not
fit, sessions that are shared, memory that is given back."""

import re
import shutil

import numpy as np
import pytest
from harness import clients, memory, models
from harness import server as servers
from harness import tensorflow_models as tf
from harness.tensorflow_models import UNKNOWN_RANK, config, message, number, parameter
from tritonclient.utils import InferenceServerException

pytestmark = [
    pytest.mark.newer,
    pytest.mark.skipif(
        not servers.has_backend("tensorflow"),
        reason="the build has no TensorFlow backend (tools/setup --with tensorflow)",
    ),
]

FIRST_LINE = re.compile(r"[IWEV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")
SIZE = 1024


def fp32(*names, dims=(4,)):
    return [(name, "FP32", dims) for name in names]


def random_bytes(count):
    return np.random.default_rng(1).bytes(count)


def saved(model, **signatures):
    graph, inputs, outputs = model
    return tf.saved_model(
        tf.meta_graph(graph.graph_def(), signatures or {"serving_default": tf.signature(inputs, outputs)})
    )


GRAPH = tf.add_sub("FP32", [-1, 4])
SAVED = saved(GRAPH)
DEF = GRAPH[0].graph_def()


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    io = fp32("x", dims=[SIZE]), fp32("y", dims=[SIZE])
    tf.write_saved_model(path, "fine", tf.matrix(SIZE, [-1, SIZE]), config("savedmodel", *io, "", 8))
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


def unknown_operation():
    graph = tf.Graph()
    graph.placeholder("in_a", "FP32", [-1])
    graph.node("sum", "NoSuchOperation", ["in_a"], T=tf.type_of("FP32"))
    return graph


def complex_output():
    graph, inputs, _ = tf.echo("FP32", [-1])
    graph.node("c", "Complex", ["in_x", "in_x"], T=tf.type_of("FP32"), Tout=number(6, 8))
    content = message(1, "c:0") + number(2, 8) + message(3, tf.shape_proto([-1]))
    signature = message(2, message(1, "c") + message(2, content))
    for name, info in inputs.items():
        signature += message(1, message(1, name) + message(2, tf.tensor_info(*info)))
    return tf.saved_model(tf.meta_graph(graph.graph_def(), {"serving_default": signature}))


def other_place(place):
    graph, inputs, outputs = tf.echo("FP32", [-1])
    return saved((graph, inputs, {"y": (place, "FP32", [-1])}))


# The graph of a SavedModel, and what the error says.
BAD_SAVED_MODELS = {
    "empty": (b"", "is empty"),
    "zeros": (bytes(5000), "nothing but zeros"),
    "random": (random_bytes(5000), "is not the graph of a SavedModel"),
    "cut": (SAVED[:-20], "is damaged, cut off"),
    "inside_random": (number(1, 1) + message(2, random_bytes(900)), "is not the graph of a SavedModel"),
    "deep_random": (
        tf.saved_model(tf.meta_graph(message(1, random_bytes(90)), {"serving_default": tf.signature(*GRAPH[1:])})),
        "is damaged",
    ),
    "no_graph": (number(1, 1), "is not the graph of a SavedModel"),
    "graph_def": (DEF, "is not the graph of a SavedModel|expected 'serve' tag"),
    "onnx": (models.onnx_add_sub("FP32", ["n", 16]).SerializeToString(), "is not the graph of a SavedModel"),
    "zip": (b"PK\x03\x04" + random_bytes(500), "as PyTorch and Keras make them"),
    "keras": (b"\x89HDF\r\n" + random_bytes(500), "HDF5"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid 1\n", "Git LFS"),
    "html": (b"<!DOCTYPE html><html></html>", "a web page"),
    "no_tags": (tf.saved_model(tf.meta_graph(DEF, {}, [])), "expected 'serve' tag; the file has ''"),
    "other_tag": (
        tf.saved_model(tf.meta_graph(DEF, {}, ["train", "gpu"])),
        "expected 'serve' tag; the file has 'train,gpu'",
    ),
    "no_signature": (tf.saved_model(tf.meta_graph(DEF, {})), "expected 'serving_default' signature; the file has none"),
    "no_nodes": (saved((tf.Graph(), *GRAPH[1:])), "'in_a:0', which is not in the graph"),
    "unknown_operation": (
        saved((unknown_operation(), {"a": ("in_a:0", "FP32", [-1])}, {"y": ("sum:0", "FP32", [-1])})),
        "Op type not registered 'NoSuchOperation'",
    ),
    "complex": (complex_output(), "unable to process output 'c' for 'complex', unsupported datatype 'DT_COMPLEX64'"),
    "place_of_nothing": (other_place("nothing:0"), "output 'y' is 'nothing:0', which is not in the graph"),
    "place_too_far": (other_place("out_y:7"), "output 'y' is 'out_y:7', which is not in the graph"),
    "place_wrong": (other_place("out_y:-1"), "which is not in the graph"),
    "type_of_signature": (
        saved((tf.echo("FP32", [-1])[0], {"x": ("in_x:0", "INT32", [-1])}, {"y": ("out_y:0", "INT32", [-1])})),
        "has the type DT_INT32 in its signature and DT_FLOAT in the graph",
    ),
    "unknown_rank": (
        saved(tf.echo("FP32", UNKNOWN_RANK)),
        "Unable to autofill for 'unknown_rank': the rank of model tensor 'x'",
    ),
}

BAD_GRAPH_DEFS = {
    "empty": (b"", "is empty"),
    "zeros": (bytes(5000), "nothing but zeros"),
    "random": (random_bytes(5000), "is not a GraphDef"),
    "cut": (DEF[:-20], "is damaged, cut off"),
    "inside_random": (message(1, random_bytes(900)), "is not a GraphDef"),
    "onnx": (models.onnx_add_sub("FP32", ["n", 16]).SerializeToString(), "is not a GraphDef"),
    "saved_model": (SAVED, "is not a GraphDef|has an empty network"),
    "text": (b'node {\n  name: "x"\n  op: "Placeholder"\n}\n' * 20, "as_text=False"),
    "lite": (b"\x1c\0\0\0TFL3" + random_bytes(500), "TensorFlow Lite"),
    "no_nodes": (message(4, number(1, 1087)), "model graphdef_no_nodes has an empty network"),
    "unknown_operation": (unknown_operation().graph_def(), "Op type not registered 'NoSuchOperation'"),
    "unknown_input": (DEF.replace(b"in_b", b"in_c", 1), "in_b"),
}


def check_refusal(server, client, name, text):
    before = server.log_length()
    said = refusal(client, name)
    assert re.search(text, said), said
    assert "\n" not in said, said
    index = {entry["name"]: entry for entry in client.as_json("get_model_repository_index")["models"]}
    assert re.search(text, index[name]["reason"])
    assert client.is_model_ready("fine") and client.is_server_live()
    server.wait_for_log(f"failed to load '{name}'")
    raw = [line for line in server.log[before:].splitlines() if line and not FIRST_LINE.match(line)]
    assert raw == [], "the library has written to the log by itself"


@pytest.mark.parametrize("name", BAD_SAVED_MODELS)
def test_a_saved_model_that_is_none_is_refused_with_a_reason(server, client, name):
    content, text = BAD_SAVED_MODELS[name]
    tf.write_saved_model_bytes(server.repository, name, content)
    check_refusal(server, client, name, text)


@pytest.mark.parametrize("name", BAD_GRAPH_DEFS)
def test_a_graph_def_that_is_none_is_refused_with_a_reason(server, client, name):
    content, text = BAD_GRAPH_DEFS[name]
    io = [("in_a", "FP32", [4])], [("sum", "FP32", [4])]
    tf.write_graph_def(server.repository, f"graphdef_{name}", content, config("graphdef", *io))
    check_refusal(server, client, f"graphdef_{name}", text)


def test_files_and_folders_in_each_others_place_are_refused(server, client):
    models.write_model(
        server.repository, "file", 'platform: "tensorflow_savedmodel"\n', {"1": {"model.savedmodel": SAVED}}
    )
    assert "it is a file, and a SavedModel is a folder" in refusal(client, "file")
    folder = tf.write_saved_model_bytes(server.repository, "bare", SAVED)
    (folder / "saved_model.pb").unlink()
    assert "the folder has no saved_model.pb" in refusal(client, "bare")
    io = fp32("in_a"), fp32("sum")
    models.write_model(server.repository, "folder", config("graphdef", *io))
    (server.repository / "folder" / "1" / "model.graphdef").mkdir()
    assert "it is a folder" in refusal(client, "folder")


def test_gigabytes_of_zeros_are_refused_without_reading_them(server, client):
    folder = tf.write_saved_model_bytes(server.repository, "huge", b"")
    io = fp32("in_a"), fp32("sum")
    models.write_model(server.repository, "huge_graph", config("graphdef", *io))
    before = server.resident_bytes()
    for name, path in (
        ("huge", folder / "saved_model.pb"),
        ("huge_graph", folder.parents[2] / "huge_graph/1/model.graphdef"),
    ):
        with open(path, "wb") as file:
            file.truncate(2 << 30)
        assert "nothing but zeros" in refusal(client, name)
        with open(path, "ab") as file:
            file.truncate((2 << 30) + 1)
        assert "larger than 2 GiB" in refusal(client, name)
    assert server.resident_bytes() < before + (256 << 20)


COUNTER = tf.signature({"by": ("by:0", "INT32", [])}, {"count": ("count:0", "INT32", [])})


def counter_without_files(**options):
    """A SavedModel that names files with the values of its variable, without these files."""
    graph = tf.counter().graph_def()
    return tf.saved_model(tf.meta_graph(graph, {"serving_default": COUNTER}, restore="restore_all", **options))


def test_a_saved_model_that_was_copied_without_its_variables_is_refused(server, client):
    tf.write_saved_model_bytes(server.repository, "no_weights", counter_without_files())
    check_refusal(server, client, "no_weights", "has no variables/variables.index")


@pytest.mark.parametrize("is_configured", [False, True])
def test_variables_that_an_operation_sets_need_no_files(server, client, is_configured):
    name = f"sets_weights_{is_configured}"
    content = counter_without_files() if is_configured else counter_without_files(init="init")
    extra = parameter("TF_INIT_OPS_FILE", "init_ops.json") if is_configured else ""
    text = config("savedmodel", [("by", "INT32", [1])], [("count", "INT32", [1])], extra)
    tf.write_saved_model_bytes(server.repository, name, content, text)
    if is_configured:
        (server.repository / name / "init_ops.json").write_text('{"init_ops": ["init"]}')
    client.load_model(name)
    answer = client.infer(name, [client.input("by", np.array([5], np.int32), "INT32")])
    assert answer.as_numpy("count").tolist() == [105]
    client.unload_model(name)


def test_a_model_that_is_not_there_is_told_with_what_is(server, client):
    models.write_model(server.repository, "absent", 'platform: "tensorflow_savedmodel"\n', {"1": {"model.pb": SAVED}})
    said = refusal(client, "absent")
    assert "unable to find" in said and "model.pb" in said


# What a configuration says of a model with inputs a and b, outputs sum and difference, all [-1, 4].
AB, SUM = fp32("a", "b"), fp32("sum")
MISFITS = [
    (fp32("a", "b", "c"), SUM, "", "unexpected inference input 'c', allowed inputs are: a, b"),
    (AB, fp32("z"), "", "unexpected inference output 'z', allowed outputs are: difference, sum"),
    (
        fp32("a", "b", dims=[5]),
        SUM,
        "",
        "tensor 'a': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 dimensions (an "
        "initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape "
        "[-1,5])",
    ),
    (
        [("a", "INT32", [4]), *fp32("b")],
        SUM,
        "",
        "unable to load model 'misfit', configuration expects datatype TYPE_INT32 for input 'a', model provides TYPE_FP32",
    ),
    (
        AB,
        [("sum", "BYTES", [4])],
        "",
        "configuration expects datatype TYPE_STRING for output 'sum', model provides TYPE_FP32",
    ),
    (AB, SUM, parameter("TF_NUM_INTRA_THREADS", "-1"), "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number"),
    (AB, SUM, parameter("TF_NUM_INTER_THREADS", "x"), "failed to convert 'x' to integral number"),
    (AB, SUM, parameter("MAX_SESSION_SHARE_COUNT", "0"), "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number"),
    (AB, SUM, parameter("TF_SIGNATURE_DEF", "no"), "expected 'no' signature; the file has serving_default"),
    (AB, SUM, parameter("TF_GRAPH_TAG", "no"), "expected 'no' tag; the file has 'serve'"),
    (AB, SUM, parameter("TF_INIT_OPS_FILE", "no.json"), "no.json' cannot be read"),
    (AB, SUM, 'model_operations { op_library_filename: "/no.so" }\n', "failed to load the operations in '/no.so'"),
    (AB, SUM, "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n", "GPU"),
    (
        AB,
        SUM,
        'optimization { execution_accelerators { cpu_execution_accelerator { name: "x" } } }\n',
        "CPU Execution Accelerator is not supported in TensorFlow backend",
    ),
]


@pytest.mark.parametrize("inputs, outputs, extra, text", MISFITS)
def test_a_configuration_that_does_not_fit_a_saved_model_is_refused(server, client, inputs, outputs, extra, text):
    tf.write_saved_model(server.repository, "misfit", GRAPH, config("savedmodel", inputs, outputs, extra, 8))
    assert text in refusal(client, "misfit")


def test_a_model_of_a_fixed_first_dimension_is_not_batched(server, client):
    model = tf.add_sub("FP32", [2, 4])
    tf.write_saved_model(server.repository, "fixed", model, config("savedmodel", AB, SUM, "", 8))
    said = refusal(client, "fixed")
    assert "configuration specified max-batch 8 but model signature does not support batching" in said
    assert said.endswith("the first dimension of 'a' is not variable")


GRAPH_MISFITS = [
    (fp32("a", "b"), fp32("sum"), "unexpected inference input 'a', allowed inputs are: in_a, in_b"),
    (fp32("in_a", "in_b", "x"), fp32("sum"), "configuration expects 3 inputs, model provides at most 2"),
    (fp32("in_a", "in_b"), fp32("in_b"), "unexpected inference output 'in_b', allowed outputs are: difference, sum"),
    (
        [("in_a", "INT32", [4]), *fp32("in_b")],
        fp32("sum"),
        "configuration expects datatype TYPE_INT32 for input 'in_a'",
    ),
    (fp32("in_a", "in_b"), [("sum", "INT32", [4])], "configuration expects datatype TYPE_INT32 for output 'sum'"),
    (fp32("in_a", "in_b"), fp32("sum:1"), "output 'sum:1' is 'sum:1', which is not in the graph"),
]


@pytest.mark.parametrize("inputs, outputs, text", GRAPH_MISFITS)
def test_a_configuration_that_does_not_fit_a_graph_def_is_refused(server, client, inputs, outputs, text):
    tf.write_graph_def(server.repository, "graph_misfit", GRAPH[0], config("graphdef", inputs, outputs))
    assert text in refusal(client, "graph_misfit")


def test_a_graph_def_without_outputs_in_its_configuration_is_told_what_it_has(server, client):
    tf.write_graph_def(server.repository, "unlisted", GRAPH[0], 'platform: "tensorflow_graphdef"\n')
    said = refusal(client, "unlisted")
    assert "placeholders 'in_a' (DT_FLOAT), 'in_b' (DT_FLOAT)" in said and "ends with 'difference', 'sum'" in said


def test_init_ops_that_are_none_are_refused(server, client):
    io = [("by", "INT32", [1])], [("count", "INT32", [1])]
    for text, content in (
        ("is not in the graph", '{"init_ops": ["absent"]}'),
        ("no list 'init_ops'", "{}"),
        ("no name of an operation", '{"init_ops": [1]}'),
        ("as a JSON object", "init"),
    ):
        settings = config("graphdef", *io, parameter("TF_INIT_OPS_FILE", "init.json"))
        tf.write_graph_def(server.repository, "bad_init", tf.counter(), settings)
        (server.repository / "bad_init" / "init.json").write_text(content)
        assert text in refusal(client, "bad_init")


def test_models_of_the_same_files_share_their_memory(server, client):
    """Each of these models has 64 MB of weights, and a second copy in TensorFlow's own session."""
    io = fp32("x", dims=[4096]), fp32("y", dims=[4096])
    text = config("savedmodel", *io, "", 8)
    folder = tf.write_saved_model(server.repository, "large_0", tf.matrix(4096, [-1, 4096]), text)
    for n in range(1, 5):
        models.write_model(server.repository, f"large_{n}", text)
        (server.repository / f"large_{n}" / "1" / "model.savedmodel").symlink_to(folder)
    values = client.input("x", np.ones((1, 4096), np.float32), "FP32")
    resident = []
    for n in range(5):
        client.load_model(f"large_{n}")
        assert client.infer(f"large_{n}", [values]).as_numpy("y")[0, 0] == 2048
        resident.append(server.resident_bytes())
    assert resident[4] < resident[0] + (60 << 20)
    for n in range(5):
        client.unload_model(f"large_{n}")


def test_files_that_were_replaced_are_loaded_anew(server, client):
    dims = [4]
    text = config("savedmodel", [("INPUT", "FP32", dims)], [("OUTPUT", "FP32", dims)])
    values = client.input("INPUT", np.ones(4, np.float32), "FP32")
    for factor in (2, 3):
        tf.write_saved_model(server.repository, "replaced", tf.multiply(factor, dims), text)
        client.load_model("replaced")
        assert client.infer("replaced", [values]).as_numpy("OUTPUT").tolist() == [factor] * 4
    shutil.rmtree(server.repository / "replaced")


def test_the_bytes_of_the_weights_are_reported_until_the_model_is_unloaded(server, client):
    client.load_model("fine")
    matrix = 4 * SIZE * SIZE
    (use,) = client.as_json("get_inference_statistics", "fine")["model_stats"][0]["memory_usage"]
    assert use["type"] == "CPU" and matrix <= int(use["byte_size"]) < matrix + 100
    assert server.scrape()["nereid_model_memory_bytes", "fine"] == int(use["byte_size"])
    client.unload_model("fine")
    servers.wait_until(lambda: not client.is_model_ready("fine"), "the model to be gone")
    assert ("nereid_model_memory_bytes", "fine") not in server.scrape()
    client.load_model("fine")


def test_what_a_model_took_is_given_back_when_it_is_unloaded(server, client):
    """The weights of all cycles would be 800 MB."""
    values = client.input("x", np.ones((2, SIZE), np.float32), "FP32")
    memory.check_cycles(server, client, {"fine": lambda: client.infer("fine", [values])})
    client.load_model("fine")
