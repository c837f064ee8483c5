# SPDX-License-Identifier: Apache-2.0
"""Writes the model repositories of the tests. The same call always writes the same bytes."""

import pathlib
import shutil

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "models"

# Data type on the wire → (name in a configuration, NumPy type, ONNX type)
TYPES = {
    "BOOL": ("TYPE_BOOL", np.bool_, TensorProto.BOOL),
    "UINT8": ("TYPE_UINT8", np.uint8, TensorProto.UINT8),
    "UINT16": ("TYPE_UINT16", np.uint16, TensorProto.UINT16),
    "UINT32": ("TYPE_UINT32", np.uint32, TensorProto.UINT32),
    "UINT64": ("TYPE_UINT64", np.uint64, TensorProto.UINT64),
    "INT8": ("TYPE_INT8", np.int8, TensorProto.INT8),
    "INT16": ("TYPE_INT16", np.int16, TensorProto.INT16),
    "INT32": ("TYPE_INT32", np.int32, TensorProto.INT32),
    "INT64": ("TYPE_INT64", np.int64, TensorProto.INT64),
    "FP16": ("TYPE_FP16", np.float16, TensorProto.FLOAT16),
    "FP32": ("TYPE_FP32", np.float32, TensorProto.FLOAT),
    "FP64": ("TYPE_FP64", np.float64, TensorProto.DOUBLE),
    "BF16": ("TYPE_BF16", ml_dtypes.bfloat16, TensorProto.BFLOAT16),
    "BYTES": ("TYPE_STRING", np.object_, TensorProto.STRING),
}
CONFIG_TYPE = {datatype: entry[0] for datatype, entry in TYPES.items()}


def random_tensor(rng, datatype, shape):
    """Random content of any type of the protocol."""
    if datatype == "BYTES":
        lengths = rng.integers(0, 12, size=shape)
        flat = [bytes(rng.integers(0, 256, n, dtype=np.uint8)) for n in lengths.ravel()]
        tensor = np.empty(len(flat), dtype=np.object_)
        tensor[:] = flat
        return tensor.reshape(shape)
    if datatype == "BOOL":
        return rng.integers(0, 2, shape).astype(np.bool_)
    kind = np.dtype(TYPES[datatype][1])
    if datatype in ("FP16", "BF16", "FP32", "FP64"):
        return rng.standard_normal(shape).astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def tensor_config(name, datatype, dims, extra=""):
    dims = ", ".join(map(str, dims))
    return f'{{ name: "{name}" data_type: {CONFIG_TYPE.get(datatype, datatype)} dims: [ {dims} ] {extra} }}'


def identity_config(datatype, dims, count=1, max_batch_size=0, extra="", tensor_extra=""):
    """The configuration of an identity model with `count` pairs of one type."""
    inputs = ",\n  ".join(tensor_config(f"INPUT{i}", datatype, dims, tensor_extra) for i in range(count))
    outputs = ",\n  ".join(tensor_config(f"OUTPUT{i}", datatype, dims, tensor_extra) for i in range(count))
    return (
        f'backend: "identity"\nmax_batch_size: {max_batch_size}\n'
        f"input [\n  {inputs}\n]\noutput [\n  {outputs}\n]\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n" + extra
    )


def write_model(repository, name, config=None, versions=None):
    """Writes a model; `versions` maps a version to its files, {file name: bytes or ModelProto}."""
    folder = pathlib.Path(repository) / name
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    for version, files in ({"1": {}} if versions is None else versions).items():
        (folder / version).mkdir(exist_ok=True)
        for file_name, content in files.items():
            if isinstance(content, onnx.ModelProto):
                content = content.SerializeToString(deterministic=True)
            (folder / version / file_name).write_bytes(content)
    return folder


def copy_example(repository, name):
    shutil.copytree(EXAMPLES / name, pathlib.Path(repository) / name)


def digit_images():
    """The images of the digits example, a row of 64 gray levels each."""
    table = np.loadtxt(ROOT / "examples" / "clients" / "digits.csv", np.float32, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, 1:])


def onnx_model(nodes, inputs, outputs, initializers=()):
    """A model from (name, ONNX type, shape) triples."""

    def values(triples):
        return [helper.make_tensor_value_info(*triple) for triple in triples]

    graph = helper.make_graph(nodes, "test", values(inputs), values(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="tests")
    model.ir_version = 10
    return model


def onnx_identity(datatype, shape, count=1):
    kind = TYPES[datatype][2]
    return onnx_model(
        [helper.make_node("Identity", [f"INPUT{i}"], [f"OUTPUT{i}"]) for i in range(count)],
        [(f"INPUT{i}", kind, shape) for i in range(count)],
        [(f"OUTPUT{i}", kind, shape) for i in range(count)],
    )


def onnx_add_sub(datatype, shape, swap=False):
    """OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, or the other way round."""
    kind = TYPES[datatype][2]
    outputs = ["OUTPUT1", "OUTPUT0"] if swap else ["OUTPUT0", "OUTPUT1"]
    return onnx_model(
        [
            helper.make_node("Add", ["INPUT0", "INPUT1"], [outputs[0]]),
            helper.make_node("Sub", ["INPUT0", "INPUT1"], [outputs[1]]),
        ],
        [("INPUT0", kind, shape), ("INPUT1", kind, shape)],
        [("OUTPUT0", kind, shape), ("OUTPUT1", kind, shape)],
    )


def onnx_mlp(sizes=(256, 512, 512, 512, 256), seed=7):
    """A multilayer perceptron on [n, sizes[0]] with fixed random weights."""
    rng = np.random.default_rng(seed)
    nodes, initializers, current = [], [], "INPUT0"
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        weights = (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        initializers.append(onnx.numpy_helper.from_array(weights, f"w{i}"))
        last = i == len(sizes) - 2
        product = "OUTPUT0" if last else f"product{i}"
        nodes.append(helper.make_node("MatMul", [current, f"w{i}"], [product]))
        if not last:
            nodes.append(helper.make_node("Relu", [product], [f"relu{i}"]))
            current = f"relu{i}"
    return onnx_model(
        nodes,
        [("INPUT0", TensorProto.FLOAT, ["n", sizes[0]])],
        [("OUTPUT0", TensorProto.FLOAT, ["n", sizes[-1]])],
        initializers,
    )
