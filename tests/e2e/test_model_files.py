# SPDX-License-Identifier: Apache-2.0
"""Model files on a live disk: whatever happens to them never ends the server and never changes a loaded
model, and one that is no model is refused with a text that says what it is."""

import json
import threading

import numpy as np
import pytest
from harness import models, wire
from harness.clients import Client
from onnx import TensorProto, helper

pytestmark = pytest.mark.newer

ROWS, COLUMNS = 4096, 256  # a table of 4 MiB, which ONNX Runtime has no reason to copy


def external(name, dims, location, offset, length):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def table_model(location="weights.bin", offset=0, length=ROWS * COLUMNS * 4, in_subgraph=False):
    """OUTPUT0 is the rows of a table that INPUT0 names; the table is beside the model."""
    table = external("table", [ROWS, COLUMNS], location, offset, length)
    gather = helper.make_node("Gather", ["table", "INPUT0"], ["rows"])
    io = [("INPUT0", TensorProto.INT64, ["n"])], [("OUTPUT0", TensorProto.FLOAT, ["n", COLUMNS])]
    if not in_subgraph:
        gather.output[0] = "OUTPUT0"
        return models.onnx_model([gather], *io, initializers=[table])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, None)
    branch = helper.make_graph([gather], "then", [], [rows], initializer=[table])
    other = helper.make_tensor_value_info("other", TensorProto.FLOAT, None)
    cast = helper.make_node("Cast", ["INPUT0"], ["other"], to=TensorProto.FLOAT)
    nodes = [
        helper.make_node("Size", ["INPUT0"], ["size"]),
        helper.make_node("Greater", ["size", "zero"], ["any"]),
        helper.make_node(
            "If",
            ["any"],
            ["OUTPUT0"],
            then_branch=branch,
            else_branch=helper.make_graph([cast], "else", [], [other]),
        ),
    ]
    zero = helper.make_tensor("zero", TensorProto.INT64, [], [0])
    return models.onnx_model(nodes, *io, initializers=[zero])


CONFIG = (
    'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
    f"input [ {models.tensor_config('INPUT0', 'INT64', [-1])} ]\n"
    f"output [ {models.tensor_config('OUTPUT0', 'FP32', [-1, COLUMNS])} ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
)


def write_table(repository, name, model, weights=None):
    files = {"model.onnx": model}
    if weights is not None:
        files["weights.bin"] = weights.tobytes()
    return models.write_model(repository, name, CONFIG, {"1": files}) / "1"


def load_error(server, name):
    reply = wire.request(server, "POST", f"/v2/repository/models/{name}/load", b"{}")
    assert reply.status >= 400
    return json.loads(reply.body)["error"]


@pytest.fixture
def table():
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def assert_right_rows(client, name, table, step):
    # Rows that no request has named before are on pages that nobody has read.
    rows = np.arange(step, ROWS, 64, dtype=np.int64)
    result = client.infer(name, [client.input("INPUT0", rows, "INT64")])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), table[rows])


@pytest.mark.parametrize("mode", ["none", "poll"])
@pytest.mark.parametrize("in_subgraph", [False, True])
def test_weights_that_are_overwritten_or_cut_off_in_place_change_nothing_of_a_loaded_model(
    onnx, start_server, empty_repository, table, mode, in_subgraph
):
    folder = write_table(empty_repository, "table", table_model(in_subgraph=in_subgraph), table)
    args = [f"--model-control-mode={mode}"]
    if mode == "poll":
        args.append("--repository-poll-secs=1")
    server = start_server(empty_repository, args=args)
    client = Client("http", server)
    assert_right_rows(client, "table", table, 0)
    # Too large a number for the file, so that a poll that sees it does not load another table.
    (folder / "model.onnx").write_bytes(
        table_model(offset=4, in_subgraph=in_subgraph).SerializeToString()
    )
    with open(folder / "weights.bin", "r+b") as file:
        file.write(b"\xff" * (table.nbytes // 2))
        file.flush()
        for step in range(1, 20):
            assert_right_rows(client, "table", table, step)
        file.truncate(4096)
    for step in range(20, 60):
        assert_right_rows(client, "table", table, step)
    if mode == "poll":
        server.wait_for_log("which has 4096")
        assert_right_rows(client, "table", table, 60)
    client.close()


def test_weights_that_are_cut_off_and_restored_while_models_are_loaded_end_in_right_answers_or_errors(
    onnx, start_server, empty_repository, table
):
    folder = write_table(empty_repository, "table", table_model(), table)
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    client = Client("http", server)
    is_over = threading.Event()

    def tear():
        with open(folder / "weights.bin", "r+b") as file:
            while not is_over.is_set():
                file.truncate(8192)
                file.truncate(0)
                file.seek(0)
                file.write(table.tobytes())
                file.flush()

    thread = threading.Thread(target=tear)
    thread.start()
    try:
        for _ in range(100):
            wire.request(server, "POST", "/v2/repository/models/table/load", b"{}")
            wire.request(server, "POST", "/v2/repository/models/table/unload", b"{}")
    finally:
        is_over.set()
        thread.join()
    assert wire.request(server, "POST", "/v2/repository/models/table/load", b"{}").status == 200
    assert_right_rows(client, "table", table, 0)
    client.close()


@pytest.mark.parametrize(
    "model, reason",
    [
        (table_model(location="../../other/secret.bin"), "outside the model's folder"),
        (table_model(location="/etc/passwd"), "not a path relative to the model's folder"),
        (table_model(location="link.bin"), "outside the model's folder"),
        (table_model(location="missing.bin"), "does not exist"),
        (table_model(location="folder"), "not a regular file"),
        (table_model(offset=8), "which has 4194304"),
        (table_model(offset=2**64 - 1), "which has 4194304"),
        (table_model(length=2**63), "which has 4194304"),
        (table_model(offset="all"), "is not a number"),
        (table_model(offset=-4), "is not a number"),
    ],
)
def test_a_model_whose_weights_are_elsewhere_or_too_short_is_refused(
    onnx, start_server, empty_repository, tmp_path, table, model, reason
):
    folder = write_table(empty_repository, "table", model, table)
    (tmp_path / "outside.bin").write_bytes(table.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "folder").mkdir()
    secret = empty_repository / "other" / "secret.bin"
    secret.parent.mkdir()
    secret.write_bytes(table.tobytes())
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    assert reason in load_error(server, "table")


def test_weights_in_a_folder_of_the_version_and_by_a_link_within_it_are_found(
    onnx, start_server, empty_repository, table
):
    folder = write_table(empty_repository, "table", table_model(location="data/weights.bin"))
    (folder / "data").mkdir()
    (folder / "blob").write_bytes(table.tobytes())
    (folder / "data" / "weights.bin").symlink_to("../blob")
    server = start_server(empty_repository)
    client = Client("http", server)
    assert_right_rows(client, "table", table, 0)
    client.close()


def test_weights_beside_the_file_that_a_linked_model_leads_to_are_found(
    onnx, start_server, empty_repository, tmp_path, table
):
    """As in stores that keep each content once, under its hash."""
    folder = write_table(empty_repository, "table", table_model(), table)
    store = tmp_path / "blobs"
    store.mkdir()
    for name in ("model.onnx", "weights.bin"):
        (folder / name).rename(store / f"hash-of-{name}")
        (folder / name).symlink_to(store / f"hash-of-{name}")
    server = start_server(empty_repository)
    client = Client("http", server)
    assert_right_rows(client, "table", table, 0)
    client.close()


def classifier():
    """What a converter makes of a classifier: a label, and a list of {class: probability}."""
    nodes = [
        helper.make_node("ArgMax", ["X"], ["label"], axis=1, keepdims=0),
        helper.make_node("Softmax", ["X"], ["scores"]),
        helper.make_node("ZipMap", ["scores"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]),
    ]
    row = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 3])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
            helper.make_value_info("probabilities", helper.make_sequence_type_proto(row)),
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10
    return model


def classifier_config(*outputs):
    listed = ", ".join(f'{{ name: "{n}" data_type: {t} dims: [ {d} ] }}' for n, t, d in outputs)
    return (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]\n' + (f"output [ {listed} ]\n" if outputs else "")
    )


LABEL, PROBABILITIES = ("label", "TYPE_INT64", "-1"), ("probabilities", "TYPE_FP32", "-1, 3")


@pytest.mark.parametrize("config", [None, classifier_config(), classifier_config(LABEL, PROBABILITIES)])
def test_a_classifier_with_maps_for_probabilities_is_refused_with_the_way_out(
    onnx, start_server, empty_repository, config
):
    models.write_model(empty_repository, "classifier", config, {"1": {"model.onnx": classifier()}})
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    error = load_error(server, "classifier")
    assert "'probabilities', expected 'ONNX_TYPE_TENSOR'" in error
    assert "options={'zipmap': False}" in error and "tensors in the model's configuration: 'label'" in error


def test_a_classifier_with_maps_for_probabilities_gives_its_label_when_only_that_is_configured(
    onnx, start_server, empty_repository
):
    config = classifier_config(LABEL)
    models.write_model(empty_repository, "classifier", config, {"1": {"model.onnx": classifier()}})
    client = Client("http", start_server(empty_repository))
    rows = np.array([[0.1, 0.2, 0.9], [3, 1, 2]], np.float32)
    result = client.infer("classifier", [client.input("X", rows, "FP32")])
    assert result.as_numpy("label").tolist() == [2, 0]
    client.close()


WHOLE = models.onnx_model(
    [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])],
    [("INPUT0", TensorProto.FLOAT, ["n"])],
    [("OUTPUT0", TensorProto.FLOAT, ["n"])],
    [helper.make_tensor("weights", TensorProto.FLOAT, [64], range(64))],
).SerializeToString()
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "the file is empty"),
        (POINTER, "git lfs pull"),
        (b"\n\n<!DOCTYPE html>\n<html><body>Sign in</body></html>", "an HTML page"),
        (b"<html><head><title>404</title>", "an HTML page"),
        (b"Entry not found", "a text that begins with 'Entry not found'"),
        (b'{"error": "no such model"}', "a text that begins with '{\"error\""),
        (b"PK\x03\x04" + bytes(60), "a ZIP archive"),
        (WHOLE[:-20], "it is cut off"),
        (WHOLE[:20] + b"\xff" * 20 + WHOLE[40:], "it is damaged"),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_what_it_is(
    onnx, start_server, empty_repository, content, reason
):
    models.write_model(empty_repository, "broken", versions={"1": {"model.onnx": content}})
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    assert reason in load_error(server, "broken")
