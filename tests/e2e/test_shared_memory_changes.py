# SPDX-License-Identifier: Apache-2.0
"""Clients that change their shared memory while a model reads it, or writes to it, get the right result for
something that was there, or a clean error; the server lives, and tells nothing of its own memory."""

import contextlib
import threading

import numpy as np
import pytest
from harness import models
from harness import server as servers
from harness.shared_memory import ALLOW, connected, region, shared_input, shared_output  # noqa: F401
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.newer

ROWS = 1000
COUNT = 100_000  # elements of a tensor: large enough to be read where it lies, if anything is
HOSTILE = 1 << 40
ONNX = {"INT64": TensorProto.INT64, "FP32": TensorProto.FLOAT, "INT32": TensorProto.INT32}


def write(repository, name, nodes, inputs, outputs, initializers=()):
    def io(tensors):
        return [(n, ONNX[t], dims) for n, t, dims in tensors]

    def configs(tensors):
        return ", ".join(models.tensor_config(n, t, dims) for n, t, dims in tensors)

    config = (
        'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
        f"input [ {configs(inputs)} ]\noutput [ {configs(outputs)} ]\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    if servers.is_sanitized():
        # ThreadSanitizer does not see how ONNX Runtime's own threads hand over what they wrote.
        config += 'parameters { key: "intra_op_thread_count" value: { string_value: "1" } }\n'
    model = models.onnx_model(nodes, io(inputs), io(outputs), initializers)
    models.write_model(repository, name, config, {"1": {"model.onnx": model}})


@pytest.fixture
def changing_server(onnx, start_server, empty_repository):
    def start(*args):
        table = helper.make_tensor("table", TensorProto.FLOAT, [ROWS, 1], np.arange(ROWS, dtype=np.float32))
        k = helper.make_tensor("k", TensorProto.INT64, [1], [COUNT // 2])
        indices = ("INPUT0", "INT64", [COUNT])
        values = ("INPUT0", "FP32", [COUNT])
        rows = ("OUTPUT0", "FP32", [COUNT, 1])
        write(
            empty_repository,
            "gather",
            [helper.make_node("Gather", ["table", "INPUT0"], ["OUTPUT0"])],
            [indices],
            [rows],
            [table],
        )
        write(
            empty_repository,
            "gather_view",
            [
                helper.make_node("Unsqueeze", ["INPUT0", "zero"], ["view"]),
                helper.make_node("Squeeze", ["view", "zero"], ["flat"]),
                helper.make_node("Gather", ["table", "flat"], ["OUTPUT0"]),
            ],
            [indices],
            [rows],
            [table, helper.make_tensor("zero", TensorProto.INT64, [1], [0])],
        )
        # An output of the model that another of its operators takes for positions.
        write(
            empty_repository,
            "output_as_indices",
            [
                helper.make_node("Add", ["INPUT0", "INPUT0"], ["OUTPUT1"]),
                helper.make_node("Gather", ["table", "OUTPUT1"], ["OUTPUT0"]),
            ],
            [indices],
            [rows, ("OUTPUT1", "INT64", [COUNT])],
            [table],
        )
        # Sorts by values that it reads again and again.
        write(
            empty_repository,
            "top",
            [helper.make_node("TopK", ["INPUT0", "k"], ["OUTPUT0", "OUTPUT1"], sorted=1)],
            [values],
            [("OUTPUT0", "FP32", [COUNT // 2]), ("OUTPUT1", "INT64", [COUNT // 2])],
            [k],
        )
        return start_server(empty_repository, args=[*ALLOW, *args])

    return start


@contextlib.contextmanager
def flipping(array, *contents):
    """A client's thread that fills the array with each of the contents in turn, without end."""
    is_over = threading.Event()

    def flip():
        while not is_over.is_set():
            for content in contents:
                array[:] = content

    array[:] = contents[0]  # never what it was before, however late the thread begins
    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def array_in(made, dtype, count):
    return np.memmap(f"/dev/shm{made.key}", dtype=dtype, mode="r+", shape=(count,))


def ask(client, model, made, datatype, outputs=None):
    size = COUNT * np.dtype(models.TYPES[datatype][1]).itemsize
    tensor = shared_input(client, "INPUT0", [COUNT], datatype, made.name, size)
    try:
        return client.infer(model, [tensor], outputs=outputs)
    except InferenceServerException as error:
        assert "onnx runtime error" in error.message() or "indices" in error.message(), error.message()
        return None


def assert_rows_of_the_table(result, expected):
    """Each element is right for one of the values that its index had; a copy may be of a moment between."""
    if result is not None:
        rows = result.as_numpy("OUTPUT0").ravel()
        assert np.isin(rows, expected).all(), rows[~np.isin(rows, expected)][:5]


@pytest.mark.parametrize("model", ["gather", "gather_view"])
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_indices_that_change_while_a_model_reads_them_reach_nothing_but_the_table(
    changing_server, region, model, kind
):
    server = changing_server()
    made = region(COUNT * 8)
    indices = array_in(made, np.int64, COUNT)
    with connected(kind, server) as client:
        made.register(client)
        with flipping(indices, 3, HOSTILE, 5, -HOSTILE):
            for _ in range(300):
                assert_rows_of_the_table(ask(client, model, made, "INT64"), [3, 5])
        indices[:] = 7
        assert_rows_of_the_table(ask(client, model, made, "INT64"), [7])


def test_an_output_that_its_client_changes_while_the_model_still_needs_it_does_no_harm(
    changing_server, region
):
    server = changing_server()
    made, result = region(COUNT * 8), region(COUNT * 8)
    array_in(made, np.int64, COUNT)[:] = 21
    with connected("http", server) as client:
        made.register(client)
        result.register(client)
        with flipping(array_in(result, np.int64, COUNT), HOSTILE, 42):
            for _ in range(300):
                outputs = [
                    client.output("OUTPUT0"),
                    shared_output(client, "OUTPUT1", result.name, COUNT * 8),
                ]
                assert_rows_of_the_table(ask(client, "output_as_indices", made, "INT64", outputs), [42])


def test_numbers_that_change_while_a_model_sorts_by_them_do_no_harm(changing_server, region):
    server = changing_server()
    made = region(COUNT * 4)
    rng = np.random.default_rng(3)
    contents = [rng.standard_normal(COUNT).astype(np.float32) for _ in range(4)]
    with connected("http", server) as client:
        made.register(client)
        with flipping(array_in(made, np.float32, COUNT), *contents):
            for _ in range(100):
                result = ask(client, "top", made, "FP32")
                indices = result.as_numpy("OUTPUT1")
                assert indices.min() >= 0 and indices.max() < COUNT
                assert len(np.unique(indices)) == len(indices)
