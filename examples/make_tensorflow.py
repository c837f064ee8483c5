#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes platforms/tensorflow: the classifier of models/digits as a SavedModel and as a GraphDef.

The weights are those of the ONNX model. TensorFlow for Python is not needed: the files are written field by
field (tests/harness/tensorflow_models.py). With TensorFlow, a SavedModel comes from
tf.saved_model.save(module, FOLDER, signatures=function), or model.export(FOLDER) of Keras.

usage: .venv/bin/python examples/make_tensorflow.py
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "platforms/tensorflow"

sys.path.insert(0, str(HERE.parent / "tests"))
from harness import tensorflow_models as tf  # noqa: E402


def classifier(weights):
    fp32, int64 = tf.type_of("FP32"), tf.type_of("INT64")
    graph = tf.Graph()
    graph.placeholder("pixels", "FP32", [-1, 64])
    graph.constant("brightest", "FP32", np.float32(16))
    last = graph.binary("scaled", "RealDiv", "FP32", "pixels", "brightest")
    for layer in range(3):
        w, b = (graph.constant(f"{kind}{layer}", "FP32", weights[f"{kind}{layer}"]) for kind in "wb")
        graph.binary(f"product{layer}", "MatMul", "FP32", last, w)
        last = graph.node(f"sum{layer}", "BiasAdd", [f"product{layer}", b], T=fp32)
        if layer < 2:
            last = graph.node(f"relu{layer}", "Relu", [last], T=fp32)
    graph.node("probabilities", "Softmax", [last], T=fp32)
    graph.constant("one", "INT32", np.int32(1))
    graph.node("highest", "ArgMax", [last, "one"], T=fp32, Tidx=tf.type_of("INT32"), output_type=int64)
    graph.node("label", "ExpandDims", ["highest", "one"], T=int64, Tdim=tf.type_of("INT32"))
    return graph.graph_def()


def main():
    initializers = onnx.load(HERE / "models/digits/1/model.onnx").graph.initializer
    graph = classifier({w.name: numpy_helper.to_array(w) for w in initializers})
    signature = tf.signature(
        {"pixels": ("pixels:0", "FP32", [-1, 64])},
        {"label": ("label:0", "INT64", [-1, 1]), "probabilities": ("probabilities:0", "FP32", [-1, 10])},
    )
    files = {
        TARGET / "digits_savedmodel/1/model.savedmodel/saved_model.pb": tf.saved_model(
            tf.meta_graph(graph, {"serving_default": signature})
        ),
        TARGET / "digits_graphdef/1/model.graphdef": graph,
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path}: {len(content)} bytes")


if __name__ == "__main__":
    main()
