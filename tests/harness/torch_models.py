# SPDX-License-Identifier: Apache-2.0
"""TorchScript models for tests, made from their source by a program of the build: no PyTorch for Python."""

import pathlib
import subprocess
import tempfile

import numpy as np

from harness import models
from harness import server as servers

MAKER = "backends/pytorch/torchscript_models"


class Repository:
    """Collects models and writes them all at once, because starting PyTorch takes longer than a model."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._arguments = []
        self._scratch = tempfile.TemporaryDirectory()

    def add(self, name, code, config, parameters=None, version="1", file_name="model.pt", lists=None):
        """A model whose methods are `code`; `parameters` are FP32 arrays, self.NAME in the code, and `lists`
        lists of them."""
        models.write_model(self.path, name, config, versions={version: {}})
        source = self._file(code.encode())
        self._arguments += ["--model", str(self.path / name / version / file_name), "--code", source]
        for key, array in (parameters or {}).items():
            self._add_tensor("--parameter", key, array)
        for key, arrays in (lists or {}).items():
            for array in arrays:
                self._add_tensor("--element", key, array)
        return self

    def write(self):
        subprocess.run([servers.build_folder() / MAKER, *self._arguments], check=True, timeout=120)
        self._arguments = []

    def _add_tensor(self, kind, key, array):
        shape = "x".join(map(str, array.shape))
        self._arguments += [kind, key, shape, self._file(array.astype(np.float32).tobytes())]

    def _file(self, content):
        path = pathlib.Path(self._scratch.name) / str(len(list(pathlib.Path(self._scratch.name).iterdir())))
        path.write_bytes(content)
        return str(path)


def config(inputs, outputs, extra="", max_batch_size=0):
    """A configuration from (name, type, dims[, more]) of each tensor."""

    def listed(tensors):
        return ",\n  ".join(models.tensor_config(*tensor) for tensor in tensors)

    return (
        f'platform: "pytorch_libtorch"\nmax_batch_size: {max_batch_size}\n'
        f"input [\n  {listed(inputs)}\n]\noutput [\n  {listed(outputs)}\n]\n{extra}\n"
    )


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
