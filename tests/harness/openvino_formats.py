# SPDX-License-Identifier: Apache-2.0
"""The smallest models of TensorFlow and TensorFlow Lite, without either: y = x + [1, 2, 3, 4] for FP32 rows."""

import struct

import flatbuffers

CONSTANT = (1.0, 2.0, 3.0, 4.0)
DT_FLOAT = 1


def varint(value):
    value &= (1 << 64) - 1
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def field(number, content):
    """A field of protobuf: a number, a text, or bytes (also of a message)."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def entry(number, key, value):
    return field(number, field(1, key) + field(2, value))


def shape(*dims):
    return b"".join(field(2, field(1, dim)) for dim in dims)


def node(name, op, inputs=(), **attributes):
    attributes = b"".join(entry(5, key, value) for key, value in attributes.items())
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) + attributes)


def graph_def():
    """A frozen graph of TensorFlow."""
    kind = field(6, DT_FLOAT)
    content = struct.pack("<4f", *CONSTANT)
    tensor = field(8, field(1, DT_FLOAT) + field(2, shape(4)) + field(4, content))
    return (
        node("x", "Placeholder", dtype=kind, shape=field(7, shape(-1, 4)))
        + node("constant", "Const", dtype=kind, value=tensor)
        + node("y", "AddV2", ["x", "constant"], T=kind)
    )


def saved_model():
    """saved_model.pb of a SavedModel with one signature."""

    def info(name):
        return field(1, name) + field(2, DT_FLOAT) + field(3, shape(-1, 4))

    signature = entry(1, "x", info("x:0")) + entry(2, "y", info("y:0")) + field(3, "tensorflow/serving/predict")
    meta = field(1, field(4, "serve")) + field(2, graph_def()) + entry(5, "serving_default", signature)
    return field(1, 1) + field(2, meta)


def paddle():
    """A program of PaddlePaddle: y = 1 * x + 2 for FP32 rows. It has no file of weights."""
    fp32, tensor, feed, fetch = 5, 7, 9, 10
    integer, number, flag = 0, 1, 6

    def variable(name, kind, *dims):
        lod = field(3, field(1, field(1, fp32) + b"".join(field(2, dim) for dim in dims))) if dims else b""
        return field(3, field(1, name) + field(2, field(1, kind) + lod) + field(3, 0 if dims else 1))

    def attribute(name, kind, value):
        return field(4, field(1, name) + field(2, kind) + value)

    def operator(kind, source, target, *attributes):
        ports = field(1, field(1, "X") + field(2, source)) + field(2, field(1, "Out") + field(2, target))
        return field(4, ports + field(3, kind) + b"".join(attributes))

    def real(name, value):
        return attribute(name, number, varint(4 << 3 | 5) + struct.pack("<f", value))

    first = attribute("col", integer, field(3, 0))
    after = attribute("bias_after_scale", flag, field(10, 1))
    block = (
        field(1, 0) + field(2, -1)
        + variable("feed", feed) + variable("fetch", fetch)
        + variable("x", tensor, -1, 4) + variable("y", tensor, -1, 4)
        + operator("feed", "feed", "x", first)
        + operator("scale", "x", "y", real("scale", 1), real("bias", 2), after)
        + operator("fetch", "y", "fetch", first)
    )
    return field(1, block) + field(4, field(1, 2004000))


class Lite:
    """Writes tables of a flatbuffer whose fields are given by number."""

    def __init__(self):
        self.builder = flatbuffers.Builder(0)

    def vector(self, items, prepend, size):
        self.builder.StartVector(size, len(items), size)
        for item in reversed(items):
            prepend(item)
        return self.builder.EndVector()

    def numbers(self, items):
        return self.vector(items, self.builder.PrependInt32, 4)

    def tables(self, items):
        return self.vector(items, self.builder.PrependUOffsetTRelative, 4)

    def table(self, fields):
        """`fields` are {number: offset} or {number: (type, value)}."""
        self.builder.StartObject(max(fields, default=-1) + 1)
        for number, value in fields.items():
            if isinstance(value, tuple):
                getattr(self.builder, f"Prepend{value[0]}Slot")(number, value[1], None)
            else:
                self.builder.PrependUOffsetTRelativeSlot(number, value, 0)
        return self.builder.EndObject()


def tflite():
    lite = Lite()
    make = lite.builder
    data = make.CreateByteVector(struct.pack("<4f", *CONSTANT))
    buffers = [lite.table({}), lite.table({0: data})]
    tensors = []
    for name, dims, buffer in (("x", [1, 4], 0), ("constant", [4], 1), ("y", [1, 4], 0)):
        fields = {0: lite.numbers(dims), 1: ("Int8", 0), 2: ("Uint32", buffer), 3: make.CreateString(name)}
        if name != "constant":
            fields[7] = lite.numbers([-1, 4])
        tensors.append(lite.table(fields))
    options = lite.table({0: ("Int8", 0)})
    add = {0: ("Uint32", 0), 1: lite.numbers([0, 1]), 2: lite.numbers([2]), 3: ("Uint8", 11), 4: options}
    operators = lite.tables([lite.table(add)])
    graph = {0: lite.tables(tensors), 1: lite.numbers([0]), 2: lite.numbers([2]), 3: operators}
    graphs = lite.tables([lite.table(graph)])
    codes = lite.tables([lite.table({0: ("Int8", 0), 2: ("Int32", 1), 3: ("Int32", 0)})])
    model = lite.table({0: ("Uint32", 3), 1: codes, 2: graphs, 4: lite.tables(buffers)})
    make.Finish(model, b"TFL3")
    return bytes(make.Output())
