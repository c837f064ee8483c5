#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes platforms/caffe2/digits_netdef: the classifier of models/digits as a Caffe2 NetDef.

The weights are those of the ONNX model. Caffe2 is not needed: the messages of caffe2.proto that a network
consists of are declared here. With Caffe2 for Python they are caffe2.proto.caffe2_pb2.

usage: .venv/bin/python examples/make_netdef.py
"""

import pathlib

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "platforms/caffe2/digits_netdef/1"

# Message → fields as (name, number, type, repeated).
MESSAGES = {
    "Argument": [
        ("name", 1, "STRING", False),
        ("f", 2, "FLOAT", False),
        ("i", 3, "INT64", False),
        ("floats", 5, "FLOAT", True),
        ("ints", 6, "INT64", True),
    ],
    "OperatorDef": [
        ("input", 1, "STRING", True),
        ("output", 2, "STRING", True),
        ("type", 4, "STRING", False),
        ("arg", 5, "Argument", True),
    ],
    "NetDef": [
        ("name", 1, "STRING", False),
        ("op", 2, "OperatorDef", True),
        ("external_input", 7, "STRING", True),
        ("external_output", 8, "STRING", True),
    ],
}


def declare():
    """The messages as classes."""
    file = descriptor_pb2.FileDescriptorProto(name="netdef.proto", package="caffe2", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            made = message.field.add(name=field, number=number)
            made.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in MESSAGES:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".caffe2.{kind}"
            else:
                made.type = getattr(kinds, f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"caffe2.{name}")) for name in MESSAGES}


CAFFE2 = declare()


def operator(kind, inputs, outputs, **arguments):
    made = CAFFE2["OperatorDef"](type=kind, input=inputs, output=outputs)
    for name, value in arguments.items():
        field = {int: "i", float: "f"}.get(type(value)) or ("ints" if isinstance(value[0], int) else "floats")
        made.arg.append(CAFFE2["Argument"](name=name, **{field: value}))
    return made


def main():
    initializers = onnx.load(HERE / "models/digits/1/model.onnx").graph.initializer
    weights = {w.name: numpy_helper.to_array(w) for w in initializers if w.name[0] in "wb"}
    layers = len(weights) // 2
    init, net = CAFFE2["NetDef"](name="digits_init"), CAFFE2["NetDef"](name="digits")
    net.op.append(operator("Scale", ["pixels"], ["x"], scale=1 / 16))
    for i in range(layers):
        # FC has its weights as [outputs, inputs].
        for name, value in ((f"w{i}", weights[f"w{i}"].T), (f"b{i}", weights[f"b{i}"])):
            shape, values = list(value.shape), value.flatten().tolist()
            init.op.append(operator("GivenTensorFill", [], [name], shape=shape, values=values))
        net.op.append(operator("FC", ["x", f"w{i}", f"b{i}"], ["x"]))
        if i < layers - 1:
            net.op.append(operator("Relu", ["x"], ["x"]))
    net.op.append(operator("Softmax", ["x"], ["probabilities"], axis=1))
    net.op.append(operator("ArgMax", ["x"], ["label"], axis=1, keepdims=1))
    net.external_input.extend(["pixels", *weights])
    net.external_output.extend(["label", "probabilities"])
    TARGET.mkdir(parents=True, exist_ok=True)
    for file_name, message in (("model.netdef", net), ("init_model.netdef", init)):
        (TARGET / file_name).write_bytes(message.SerializeToString(deterministic=True))
        print(f"{TARGET / file_name}: {(TARGET / file_name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
