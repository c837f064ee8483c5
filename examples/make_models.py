#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small ONNX models of models/ that are not trained: simple, simple_int8, simple_string.

Each adds and subtracts two vectors of 16, with the names, types and shapes that the example clients
of Triton expect; simple_string does so with numbers written as strings.

usage: .venv/bin/python examples/make_models.py
"""

import os
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

# Before onnxruntime is imported, whose telemetry is on otherwise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime  # noqa: E402

MODELS = pathlib.Path(__file__).resolve().parent / "models"


def add_sub(name: str, tensor_type: int) -> onnx.ModelProto:
    """OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, computed in INT32, on [n,16]."""
    nodes, operands = [], []
    for i in range(2):
        if tensor_type == TensorProto.INT32:
            operands.append(f"INPUT{i}")
        else:
            operands.append(f"number{i}")
            nodes.append(helper.make_node("Cast", [f"INPUT{i}"], [f"number{i}"], to=TensorProto.INT32))
    for i, operation in enumerate(["Add", "Sub"]):
        if tensor_type == TensorProto.INT32:
            nodes.append(helper.make_node(operation, operands, [f"OUTPUT{i}"]))
        else:
            nodes.append(helper.make_node(operation, operands, [f"result{i}"]))
            nodes.append(helper.make_node("Cast", [f"result{i}"], [f"OUTPUT{i}"], to=tensor_type))

    def values(names):
        return [helper.make_tensor_value_info(n, tensor_type, ["n", 16]) for n in names]

    graph = helper.make_graph(nodes, name, values(["INPUT0", "INPUT1"]), values(["OUTPUT0", "OUTPUT1"]))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="examples/make_models.py"
    )
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    return model


def check(path: pathlib.Path, encode, decode):
    """Runs the model on random numbers and compares with NumPy."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    a, b = np.random.default_rng(1).integers(-60, 60, (2, 3, 16))
    total, difference = session.run(["OUTPUT0", "OUTPUT1"], {"INPUT0": encode(a), "INPUT1": encode(b)})
    np.testing.assert_array_equal(decode(total), a + b)
    np.testing.assert_array_equal(decode(difference), a - b)


def main():
    for name, tensor_type, encode in [
        ("simple", TensorProto.INT32, lambda x: x.astype(np.int32)),
        ("simple_int8", TensorProto.INT8, lambda x: x.astype(np.int8)),
        ("simple_string", TensorProto.STRING, lambda x: x.astype(str).astype(object)),
    ]:
        path = MODELS / name / "1" / "model.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(add_sub(name, tensor_type), path)
        check(path, encode, lambda x: x.astype(np.int64))
        print(f"{path}: {path.stat().st_size} bytes, checked")


if __name__ == "__main__":
    main()
