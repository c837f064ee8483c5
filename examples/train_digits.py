#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the classifier of handwritten digits in models/digits and exports it to ONNX.

The data are the 1,797 8x8 images that scikit-learn carries. A fifth of them, never shown to the
network in training, measures it; clients/digits.csv holds some of those. The graph is written out by
hand, so the model is what it looks like here and needs no converter.

usage: .venv/bin/python examples/train_digits.py
"""

import json
import os
import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Before onnxruntime is imported, whose telemetry is on otherwise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime  # noqa: E402
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE / "models" / "digits"
# Gray levels in the data run from 0 to 16; clients send them as they are.
LEVELS = 16.0


def split():
    """Training and test images with their labels, the same on every call."""
    digits = load_digits()
    return train_test_split(
        digits.data.astype(np.float32), digits.target, test_size=0.2, random_state=1, stratify=digits.target
    )


def export(network: MLPClassifier) -> onnx.ModelProto:
    """pixels [n,64] -> / 16 -> dense, relu -> ... -> dense -> probabilities [n,10], label [n,1]."""
    nodes, weights = [], []

    def constant(name, value):
        weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    nodes.append(helper.make_node("Div", ["pixels", constant("levels", np.float32(LEVELS))], ["x0"]))
    last = len(network.coefs_) - 1
    for i, (w, b) in enumerate(zip(network.coefs_, network.intercepts_)):
        inputs = [f"x{i}", constant(f"w{i}", w.astype(np.float32)), constant(f"b{i}", b.astype(np.float32))]
        nodes.append(helper.make_node("Gemm", inputs, [f"y{i}"]))
        if i < last:
            nodes.append(helper.make_node("Relu", [f"y{i}"], [f"x{i + 1}"]))
    nodes.append(helper.make_node("Softmax", [f"y{last}"], ["probabilities"], axis=1))
    nodes.append(helper.make_node("ArgMax", [f"y{last}"], ["label"], axis=1, keepdims=1))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 64])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n", 1]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10]),
        ],
        weights,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="examples/train_digits.py"
    )
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    train_x, test_x, train_y, test_y = split()
    network = MLPClassifier((64, 32), alpha=1e-3, max_iter=300, random_state=1)
    network.fit(train_x / LEVELS, train_y)

    path = MODEL / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(export(network), path)
    (MODEL / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
    # The same file for OpenVINO.
    shutil.copy(path, HERE / "platforms" / "openvino" / "digits_openvino" / "1")
    shutil.copy(MODEL / "labels.txt", HERE / "platforms" / "openvino" / "digits_openvino")

    # What was exported must say what was trained.
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    label, probabilities = session.run(None, {"pixels": test_x})
    np.testing.assert_allclose(probabilities, network.predict_proba(test_x / LEVELS), atol=1e-5)
    accuracy = float((label[:, 0] == test_y).mean())

    # A few test images for the clients, and one of them as a request, for those with nothing but curl.
    rows = [",".join(map(str, [label, *image.astype(int)])) for label, image in zip(test_y[:50], test_x)]
    (HERE / "clients" / "digits.csv").write_text("label,64 pixels\n" + "\n".join(rows) + "\n")
    request = {"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": test_x[0].tolist()}]}
    (HERE / "clients" / "digit.json").write_text(json.dumps(request) + "\n")
    print(f"{path}: {path.stat().st_size} bytes, {accuracy:.1%} of {len(test_y)} test images right")


if __name__ == "__main__":
    main()
