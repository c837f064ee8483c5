# SPDX-License-Identifier: Apache-2.0
"""What is served, the rows that are sent, and the rows that are right answers."""

import dataclasses
import shutil

import numpy as np

import models
from catalogue import HERE, ROW
from function import softmax


def make_rows(count):
    """Different numbers. In JSON they have up to 17 digits, which is how NumPy's tolist gives 32-bit floats."""
    return np.random.default_rng(7).normal(size=(count, ROW)).round(4).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str  # of the folders
    model: str  # as servers call it that have names for models
    title: str
    file: str  # what is added to the user's files
    forms: tuple = ("JSON",)

    def answers(self, rows):
        if self.name == "function":
            return softmax(rows)
        import onnxruntime

        content = onnx_model()
        return onnxruntime.InferenceSession(content).run(None, {"INPUT0": rows})[0]

    def put(self, peer, folder):
        """Copies the user's files of a server, and what they serve, into an empty folder."""
        shutil.copytree(peer.folder(self), folder, dirs_exist_ok=True)
        versions = folder / "models" / self.model / "1"
        target = versions if (folder / "models").exists() else folder
        target.mkdir(exist_ok=True)
        if self.name == "function":
            shutil.copy(HERE / self.file, target)
        else:
            (target / self.file).write_bytes(onnx_model())


def onnx_model():
    """The multilayer perceptron of bench/run: 256, 512, 512, 512 and 256 wide."""
    return models.tests()[0].onnx_mlp().SerializeToString(deterministic=True)


WORKLOADS = (
    Workload("onnx", "mlp", "An ONNX model", "model.onnx", ("JSON", "binary")),
    Workload("function", "softmax", "A Python function", "function.py"),
)
