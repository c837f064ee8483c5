# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's SavedModel and GraphDef for tests, written as protobuf by hand: no TensorFlow for Python.

Numbers of fields are those of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto,
meta_graph.proto and saved_model.proto.
"""

import numpy as np

from harness import models

# Numbers of TensorFlow's types, and the types of arrays with which their values are written.
TYPES = {
    "FP32": 1,
    "FP64": 2,
    "INT32": 3,
    "UINT8": 4,
    "INT16": 5,
    "INT8": 6,
    "BYTES": 7,
    "INT64": 9,
    "BOOL": 10,
    "BF16": 14,
    "UINT16": 17,
    "FP16": 19,
    "RESOURCE": 20,
    "UINT32": 22,
    "UINT64": 23,
}
UNKNOWN_RANK = "unknown rank"


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def shape_proto(dims):
    """`dims` has -1 for unknown sizes, or is UNKNOWN_RANK."""
    if dims is UNKNOWN_RANK:
        return number(3, 1)
    return b"".join(message(2, number(1, dim)) for dim in dims)


def tensor_proto(datatype, array):
    array = np.asarray(array)
    content = number(1, TYPES[datatype]) + message(2, shape_proto(array.shape))
    if datatype == "BYTES":
        texts = (t.encode() if isinstance(t, str) else t for t in array.ravel().tolist())
        return content + b"".join(message(8, text) for text in texts)
    return content + message(4, array.astype(models.TYPES[datatype][1]).tobytes())


# Values of attributes, for Graph.node.


def type_of(datatype):
    return number(6, TYPES[datatype])


def shape_of(dims):
    return message(7, shape_proto(dims))


def value_of(datatype, array):
    return message(8, tensor_proto(datatype, array))


def text_of(text):
    return message(2, text)


def int_of(value):
    return number(3, value)


def flag_of(value):
    return number(5, value)


def types_of(*datatypes):
    return message(1, b"".join(number(6, TYPES[t]) for t in datatypes))


class Graph:
    """Collects nodes. Methods return the names of what they add."""

    def __init__(self):
        self._nodes = b""

    def node(self, name, op, inputs=(), **attributes):
        content = message(1, name) + message(2, op) + b"".join(message(3, i) for i in inputs)
        for key, value in attributes.items():
            content += message(5, message(1, key) + message(2, value))
        self._nodes += message(1, content)
        return name

    def placeholder(self, name, datatype, dims):
        return self.node(name, "Placeholder", dtype=type_of(datatype), shape=shape_of(dims))

    def constant(self, name, datatype, array):
        return self.node(name, "Const", dtype=type_of(datatype), value=value_of(datatype, array))

    def identity(self, name, datatype, source):
        return self.node(name, "Identity", [source], T=type_of(datatype))

    def binary(self, name, op, datatype, left, right):
        return self.node(name, op, [left, right], T=type_of(datatype))

    def graph_def(self):
        return self._nodes + message(4, number(1, 1087))


def tensor_info(place, datatype, dims):
    """`dims` None: no shape is said, which is not the same as an unknown rank in the file only."""
    content = message(1, place) + number(2, TYPES[datatype])
    return content if dims is None else content + message(3, shape_proto(dims))


def signature(inputs, outputs):
    """Both are {name: (place in the graph, type, dims)}."""
    content = b""
    for field, tensors in ((1, inputs), (2, outputs)):
        for name, info in tensors.items():
            content += message(field, message(1, name) + message(2, tensor_info(*info)))
    return content + message(3, "tensorflow/serving/predict")


def meta_graph(graph_def, signatures, tags=("serve",), restore=None, init=None):
    """`restore` is the operation that reads variables from files, `init` one that is run when the graph is loaded."""
    info = b"".join(message(4, tag) for tag in tags)
    content = message(1, info) + message(2, graph_def)
    if restore:
        content += message(3, message(3, restore))
    if init:
        content += message(4, message(1, "saved_model_main_op") + message(2, message(1, message(1, init))))
    return content + b"".join(message(5, message(1, k) + message(2, v)) for k, v in signatures.items())


def saved_model(*meta_graphs):
    return number(1, 1) + b"".join(message(2, graph) for graph in meta_graphs)


# Models by kind: each returns (graph, inputs, outputs), the latter as {name: (place, type, dims)}.


def echo(datatype, dims):
    graph = Graph()
    graph.placeholder("in_x", datatype, dims)
    graph.identity("out_y", datatype, "in_x")
    return graph, {"x": ("in_x:0", datatype, dims)}, {"y": ("out_y:0", datatype, dims)}


def add_sub(datatype, dims):
    """BYTES are joined in both orders."""
    graph = Graph()
    graph.placeholder("in_a", datatype, dims)
    graph.placeholder("in_b", datatype, dims)
    if datatype == "BYTES":
        graph.node("sum", "StringJoin", ["in_a", "in_b"], N=int_of(2), separator=text_of("+"))
        graph.node("difference", "StringJoin", ["in_b", "in_a"], N=int_of(2), separator=text_of("-"))
    else:
        graph.binary("sum", "AddV2", datatype, "in_a", "in_b")
        graph.binary("difference", "Sub", datatype, "in_a", "in_b")
    inputs = {name: (f"in_{name}:0", datatype, dims) for name in "ab"}
    return graph, inputs, {name: (f"{name}:0", datatype, dims) for name in ("sum", "difference")}


def share(datatype, dims):
    """Each element's part of the sum of all: rows depend on each other."""
    graph = Graph()
    graph.placeholder("in_x", datatype, dims)
    graph.constant("all", "INT32", np.arange(len(dims)))
    graph.node("total", "Sum", ["in_x", "all"], T=type_of(datatype), Tidx=type_of("INT32"), keep_dims=flag_of(True))
    graph.binary("out_y", "RealDiv", datatype, "in_x", "total")
    return graph, {"x": ("in_x:0", datatype, dims)}, {"y": ("out_y:0", datatype, dims)}


def multiply(factor, dims):
    graph = Graph()
    graph.placeholder("in_x", "FP32", dims)
    graph.constant("factor", "FP32", np.float32(factor))
    graph.binary("out_y", "Mul", "FP32", "in_x", "factor")
    return graph, {"INPUT": ("in_x:0", "FP32", dims)}, {"OUTPUT": ("out_y:0", "FP32", dims)}


def matrix(size, dims):
    """y = x times a matrix of size × size elements of 1/2, in the graph."""
    graph = Graph()
    graph.placeholder("in_x", "FP32", dims)
    graph.constant("weights", "FP32", np.full((size, size), 0.5, np.float32))
    graph.binary("out_y", "MatMul", "FP32", "in_x", "weights")
    return graph, {"x": ("in_x:0", "FP32", dims)}, {"y": ("out_y:0", "FP32", dims)}


def counter():
    """A variable that init ops set to 100, to which each run adds; and what it is, without a change."""
    graph = Graph()
    handle = {"dtype": type_of("INT32"), "shape": shape_of([]), "shared_name": text_of("v"), "container": text_of("")}
    graph.placeholder("by", "INT32", [])
    graph.node("v", "VarHandleOp", **handle)
    graph.constant("first", "INT32", np.int32(100))
    graph.node("init", "AssignVariableOp", ["v", "first"], dtype=type_of("INT32"))
    graph.node("add", "AssignAddVariableOp", ["v", "by"], dtype=type_of("INT32"))
    graph.node("count", "ReadVariableOp", ["v", "^add"], dtype=type_of("INT32"))
    graph.node("now", "ReadVariableOp", ["v"], dtype=type_of("INT32"))
    return graph


def reference_counter():
    """The same, with a variable as TensorFlow 1 made them."""
    graph = Graph()
    kind = type_of("INT32")
    graph.placeholder("by", "INT32", [])
    graph.node("v", "VariableV2", dtype=kind, shape=shape_of([]), shared_name=text_of(""), container=text_of(""))
    graph.constant("first", "INT32", np.int32(100))
    graph.node("init", "Assign", ["v", "first"], T=kind)
    graph.node("sum", "AddV2", ["v", "by"], T=kind)
    graph.node("set", "Assign", ["v", "sum"], T=kind)
    graph.identity("count", "INT32", "set")
    return graph


def keeper(datatype, dims):
    """Returns the input of the run before, which a variable has kept: `last`; `keep` sets it."""
    graph = Graph()
    handle = {
        "dtype": type_of(datatype),
        "shape": shape_of(dims),
        "shared_name": text_of("k"),
        "container": text_of(""),
    }
    graph.placeholder("x", datatype, dims)
    graph.node("k", "VarHandleOp", **handle)
    graph.node("assign", "AssignVariableOp", ["k", "x"], dtype=type_of(datatype))
    graph.node("done", "Identity", ["x", "^assign"], T=type_of(datatype))
    graph.node("last", "ReadVariableOp", ["k"], dtype=type_of(datatype))
    return graph


# Repositories.


def write_saved_model(repository, name, model, config=None, version="1", signatures=None, tags=("serve",)):
    """Writes a model of a kind as a SavedModel and returns its folder."""
    graph, inputs, outputs = model
    signatures = signatures or {"serving_default": signature(inputs, outputs)}
    content = saved_model(meta_graph(graph.graph_def(), signatures, tags))
    return write_saved_model_bytes(repository, name, content, config, version)


def write_saved_model_bytes(repository, name, content, config=None, version="1"):
    models.write_model(repository, name, config, {version: {}})
    folder = repository / name / version / "model.savedmodel"
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(content)
    return folder


def write_graph_def(repository, name, graph, config, version="1", file_name="model.graphdef"):
    content = graph if isinstance(graph, bytes) else graph.graph_def()
    models.write_model(repository, name, config, {version: {file_name: content}})


def config(platform, inputs, outputs, extra="", max_batch_size=0):
    """A configuration from (name, type, dims[, more]) of each tensor."""

    def listed(tensors):
        return ",\n  ".join(models.tensor_config(*tensor) for tensor in tensors)

    return (
        f'platform: "tensorflow_{platform}"\nmax_batch_size: {max_batch_size}\n'
        f"input [\n  {listed(inputs)}\n]\noutput [\n  {listed(outputs)}\n]\n{extra}\n"
    )


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
