# SPDX-License-Identifier: Apache-2.0
"""ONNX models without a configuration are batched only where rows do not depend on each other.

NEREID_GENERATED_MODELS is how many models are generated; at least one of each family.
"""

import concurrent.futures
import os

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as grpcclient
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from harness import generated_onnx, models
from harness import server as servers

pytestmark = [pytest.mark.usefixtures("onnx"), pytest.mark.newer]

COUNT = max(int(os.environ.get("NEREID_GENERATED_MODELS", "0")), len(generated_onnx.FAMILIES))
CLIENTS = 8
REQUESTS = 6


@pytest.fixture(scope="module")
def generated():
    return [generated_onnx.make(i) for i in range(COUNT)]


@pytest.fixture(scope="module")
def server(require_server, generated, tmp_path_factory):
    path = tmp_path_factory.mktemp("generated")
    for one in generated:
        models.write_model(path, one.name, versions={"1": {"model.onnx": one.model}})
    options = {"log_dir": tmp_path_factory.mktemp("log"), "timeout": 60 + COUNT}
    with servers.running(path, **options) as running:
        yield running


def to_inputs(arrays, widen):
    inputs = []
    for name, array in arrays.items():
        # A configuration calls a row without dimensions [1].
        array = array.reshape(-1, 1) if widen and array.ndim == 1 else array
        value = grpcclient.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
        value.set_data_from_numpy(array)
        inputs.append(value)
    return inputs


def alone(session, arrays):
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, arrays)))


def is_wrong(got, expected):
    got = got.reshape(expected.shape) if got.size == expected.size and expected.ndim < 2 else got
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if expected.dtype.kind == "f":
        tolerance = 2e-2 if expected.dtype == np.float16 else 1e-3
        is_close = np.allclose(got, expected, rtol=tolerance, atol=tolerance / 100, equal_nan=True)
        return None if is_close else f"{got} instead of {expected}"
    if expected.dtype == object:
        got = np.array([text.decode() for text in got.ravel()], object).reshape(got.shape)
    return None if np.array_equal(got, expected) else f"{got} instead of {expected}"


def ask(server, one, widen, session, seed):
    """One client: sends requests of its own, one after the other, and returns what is wrong with answers."""
    rng = np.random.default_rng(seed)
    wrong = []
    with grpcclient.InferenceServerClient(server.grpc) as client:
        for _ in range(REQUESTS):
            arrays = one.request(rng, int(rng.choice(one.rows)))
            expected = None if one.is_random else alone(session, arrays)
            try:
                result = client.infer(one.name, to_inputs(arrays, widen))
            except InferenceServerException as error:
                wrong.append(str(error))
                continue
            for name, value in (expected or {}).items():
                if fault := is_wrong(result.as_numpy(name), value):
                    wrong.append(f"{name}: {fault}")
    return wrong


@pytest.mark.parametrize("i", range(COUNT), ids=generated_onnx.name)
def test_every_client_gets_what_it_would_get_alone(server, generated, i):
    one = generated[i]
    with grpcclient.InferenceServerClient(server.grpc) as client:
        size = client.get_model_config(one.name).config.max_batch_size
    session = onnxruntime.InferenceSession(one.model.SerializeToString())
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        faults = list(pool.map(lambda seed: ask(server, one, size > 0, session, seed), range(CLIENTS)))
    wrong = [fault for client in faults for fault in client]
    assert not wrong, f"{len(wrong)} of {CLIENTS * REQUESTS} answers of {one.name} are wrong, such as {wrong[0]}"
    assert (size > 0) == one.is_batch, f"{one.name} has max_batch_size {size}"


def load(client, name, config=None, files=None):
    client.load_model(name, config=config, files=files)
    return client.get_model_config(name).config


@pytest.mark.parametrize("args", [[], ["--backend-config=isolation=process"]], ids=["in the server", "isolated"])
def test_what_the_configuration_says_counts(start_server, empty_repository, args):
    """A zero, too, which protobuf does not tell from a field that is not there."""
    honest = generated_onnx.make(0).model
    mixing = generated_onnx.make(generated_onnx.FAMILIES.index(generated_onnx.summed_over_time)).model
    versions = {"1": {"model.onnx": honest}}
    models.write_model(empty_repository, "nothing", "", versions)
    models.write_model(empty_repository, "zero", "max_batch_size: 0", versions)
    models.write_model(empty_repository, "eight", "max_batch_size: 8", {"1": {"model.onnx": mixing}})
    models.write_model(empty_repository, "mixing", "", {"1": {"model.onnx": mixing}})
    tensor = honest.graph.input[0]
    assert len(honest.graph.input) == 1
    dims = [-1, *[d.dim_value or -1 for d in tensor.type.tensor_type.shape.dim[1:]]]
    listed = f"input [ {models.tensor_config(tensor.name, 'FP32', dims)} ]"
    models.write_model(empty_repository, "all_dimensions", listed, versions)
    server = start_server(empty_repository, args=["--model-control-mode=explicit", *args])
    with grpcclient.InferenceServerClient(server.grpc) as client:
        config = load(client, "nothing")
        assert (config.max_batch_size, len(config.input[0].dims)) == (4, 1)
        assert config.HasField("dynamic_batching")
        config = load(client, "zero")
        assert (config.max_batch_size, len(config.input[0].dims)) == (0, 2)
        assert not config.HasField("dynamic_batching")
        assert load(client, "eight").max_batch_size == 8
        assert load(client, "mixing").max_batch_size == 0
        assert load(client, "all_dimensions").max_batch_size == 0
        # What comes with a request to load counts the same way.
        assert load(client, "nothing", config='{"backend": "onnxruntime", "max_batch_size": 0}').max_batch_size == 0
        assert load(client, "zero", config='{"backend": "onnxruntime"}').max_batch_size == 4
        files = {"file:1/model.onnx": mixing.SerializeToString()}
        assert load(client, "sent", config='{"backend": "onnxruntime"}', files=files).max_batch_size == 0
    server.wait_for_log("model 'mixing' is not batched (row_values): element")
    server.wait_for_log("model 'sent' is not batched (row_values): element")
    assert "model 'eight' is" not in server.log  # which was loaded before 'sent'


def test_generated_batches_can_be_turned_off(start_server, empty_repository):
    models.write_model(empty_repository, "m", versions={"1": {"model.onnx": generated_onnx.make(0).model}})
    server = start_server(empty_repository, args=["--backend-config=default-max-batch-size=0"])
    with grpcclient.InferenceServerClient(server.grpc) as client:
        assert client.get_model_config("m").config.max_batch_size == 0


def test_an_output_that_is_not_the_batch_is_an_error(start_server, empty_repository):
    """Where the configuration asks for batches that the model does not make."""
    model = generated_onnx.make(generated_onnx.FAMILIES.index(generated_onnx.doubled_rows)).model
    models.write_model(empty_repository, "m", "max_batch_size: 8", {"1": {"model.onnx": model}})
    server = start_server(empty_repository)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        width = client.get_model_config("m").config.input[0].dims[0]
        with pytest.raises(InferenceServerException) as error:
            client.infer("m", to_inputs({"X": np.ones((2, width), np.float32)}, widen=False))
    assert str(error.value).endswith("failed to split the output tensor 'Y' in responses: expected batch size of 2 "
                                     "in model output, got 4")


@pytest.mark.slow
def test_no_model_keeps_a_load_waiting(start_server, empty_repository):
    """A row takes longer than all of the probe may."""
    loops = 10**12
    body = helper.make_graph(
        [helper.make_node("Identity", ["more"], ["on"]), helper.make_node("Sin", ["x"], ["y"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("more", TensorProto.BOOL, []),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "X"], ["Y"], body=body)], "slow",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 4])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 4])],
        [numpy_helper.from_array(np.array(loops, np.int64), "n")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    models.write_model(empty_repository, "slow", versions={"1": {"model.onnx": model}})
    server = start_server(empty_repository)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        assert client.get_model_config("slow").config.max_batch_size == 0
    server.wait_for_log("model 'slow' is not batched (too_slow)")


def test_a_load_that_fails_for_want_of_batches_says_why_there_are_none(start_server, empty_repository):
    """The tensors are written as those of a batched model, as before a probe looked at it."""
    index = generated_onnx.FAMILIES.index(generated_onnx.summed_over_time)
    config = 'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]'
    models.write_model(empty_repository, "m", config, {"1": {"model.onnx": generated_onnx.make(index).model}})
    server = start_server(empty_repository, args=["--model-control-mode=explicit"])
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match="it is not batched: element .* of output 'Y'"):
            client.load_model("m")
