#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small language model in models/letters and exports it to ONNX.

It reads text letter by letter and guesses the next one from the last 16. The text is what every
Python has at hand: the documentation strings of its standard library, 0.9 MB. A twentieth
of it, never shown in training, measures the result. A minute on one core.

The graph takes one letter and the letters before it, which are its state: the server keeps it
between the requests of a sequence, so that a client sends one letter at a time.

usage: .venv/bin/python examples/language_model/train.py
"""

import ast
import inspect
import os
import pathlib
import sysconfig
import time

# One core is enough, and sums do not depend on how many there are.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MODEL = pathlib.Path(__file__).resolve().parent / "models" / "letters" / "1" / "model.onnx"
# Letter 0 is the end of a line, and what is before the first letter; 1 to 95 are printable ASCII.
LETTERS = 96
CONTEXT = 16
EMBEDDING = 16
HIDDEN = 256
STEPS = 6000
BATCH = 512


def documentation():
    """The documentation strings of the modules at the top of the standard library."""
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node)
                if text:
                    # Columns and indentation would teach it little but spaces.
                    lines = (" ".join(line.split()) for line in inspect.cleandoc(text).splitlines())
                    yield "\n".join(lines) + "\n\n"


def encode(text):
    codes = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int64) - 31
    return np.where((codes >= 1) & (codes < LETTERS), codes, 0)


class Network:
    """Letters -> vectors, side by side -> one hidden layer -> a number for each next letter."""

    def __init__(self, random):
        def matrix(rows, columns):
            return (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

        self.weights = {
            "embedding": matrix(LETTERS, EMBEDDING) * np.float32(np.sqrt(LETTERS) * 0.3),
            "w0": matrix(CONTEXT * EMBEDDING, HIDDEN),
            "b0": np.zeros(HIDDEN, np.float32),
            "w1": matrix(HIDDEN, LETTERS),
            "b1": np.zeros(LETTERS, np.float32),
        }

    def forward(self, contexts):
        w = self.weights
        x = w["embedding"][contexts].reshape(len(contexts), -1)
        hidden = np.maximum(x @ w["w0"] + w["b0"], 0)
        logits = hidden @ w["w1"] + w["b1"]
        logits -= logits.max(axis=1, keepdims=True)
        probabilities = np.exp(logits)
        return x, hidden, probabilities / probabilities.sum(axis=1, keepdims=True)

    def loss(self, contexts, letters):
        *_, probabilities = self.forward(contexts)
        return -np.log2(probabilities[np.arange(len(letters)), letters] + 1e-12).mean()

    def gradients(self, contexts, letters):
        w = self.weights
        x, hidden, error = self.forward(contexts)
        error[np.arange(len(letters)), letters] -= 1
        error /= len(letters)
        before = error @ w["w1"].T * (hidden > 0)
        embedding = np.zeros_like(w["embedding"])
        np.add.at(embedding, contexts.ravel(), (before @ w["w0"].T).reshape(-1, EMBEDDING))
        return {
            "embedding": embedding,
            "w0": x.T @ before,
            "b0": before.sum(axis=0),
            "w1": hidden.T @ error,
            "b1": error.sum(axis=0),
        }


def train(network, contexts, letters, random):
    """Adam, with a rate that falls to nothing."""
    first = {name: np.zeros_like(w) for name, w in network.weights.items()}
    second = {name: np.zeros_like(w) for name, w in network.weights.items()}
    for step in range(1, STEPS + 1):
        picked = random.integers(0, len(letters), BATCH)
        rate = np.float32(3e-3 * (1 - step / (STEPS + 1)))
        for name, gradient in network.gradients(contexts[picked], letters[picked]).items():
            first[name] += np.float32(0.1) * (gradient - first[name])
            second[name] += np.float32(0.005) * (gradient * gradient - second[name])
            mean = first[name] / np.float32(1 - 0.9**step)
            square = second[name] / np.float32(1 - 0.995**step)
            network.weights[name] -= rate * mean / (np.sqrt(square) + np.float32(1e-8))


def export(network):
    """letter [n,1], seen [n,16] -> logits [n,96], seen_next [n,16]."""
    constants = [numpy_helper.from_array(value, name) for name, value in network.weights.items()]
    constants += [
        numpy_helper.from_array(np.array([value], np.int64), name)
        for name, value in (("one", 1), ("end", CONTEXT + 1), ("axis", 1))
    ]
    constants.append(numpy_helper.from_array(np.array([0, CONTEXT * EMBEDDING], np.int64), "flat"))
    nodes = [
        helper.make_node("Concat", ["seen", "letter"], ["all"], axis=1),
        helper.make_node("Slice", ["all", "one", "end", "axis"], ["seen_next"]),
        helper.make_node("Gather", ["embedding", "seen_next"], ["vectors"]),
        helper.make_node("Reshape", ["vectors", "flat"], ["x"]),
        helper.make_node("Gemm", ["x", "w0", "b0"], ["y"]),
        helper.make_node("Relu", ["y"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w1", "b1"], ["logits"]),
    ]

    def tensor(name, kind, size):
        return helper.make_tensor_value_info(name, kind, ["n", size])

    graph = helper.make_graph(
        nodes,
        "letters",
        [tensor("letter", TensorProto.INT64, 1), tensor("seen", TensorProto.INT64, CONTEXT)],
        [tensor("logits", TensorProto.FLOAT, LETTERS), tensor("seen_next", TensorProto.INT64, CONTEXT)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def main():
    begin = time.monotonic()
    random = np.random.default_rng(1)
    letters = encode("".join(documentation()))
    padded = np.concatenate([np.zeros(CONTEXT, np.int64), letters])
    contexts = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT)[:-1]
    # Long stretches, so that what is held back does not overlap with what is shown.
    is_shown = np.arange(len(letters)) // 2000 % 20 != 19
    network = Network(random)
    train(network, contexts[is_shown], letters[is_shown], random)
    bits = network.loss(contexts[~is_shown], letters[~is_shown])
    MODEL.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(export(network), MODEL)
    print(f"{len(letters)} letters, {bits:.2f} bits for each that was held back (6.58 without a model)")
    print(f"{MODEL}: {MODEL.stat().st_size} bytes, in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
