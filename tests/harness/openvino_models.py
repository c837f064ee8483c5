# SPDX-License-Identifier: Apache-2.0
"""Models of OpenVINO for tests, made by a program of the build: no OpenVINO for Python."""

import pathlib
import subprocess

from harness import models
from harness import server as servers

MAKER = "backends/openvino/openvino_models"
TYPES = {
    "BOOL": "boolean",
    "UINT8": "u8",
    "UINT16": "u16",
    "UINT32": "u32",
    "UINT64": "u64",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT64": "i64",
    "FP16": "f16",
    "FP32": "f32",
    "FP64": "f64",
    "BF16": "bf16",
    "BYTES": "string",
}


class Repository:
    """Collects models and writes them all at once."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._lines = []

    def add(self, name, kind, datatype, dims, config='backend: "openvino"\n', version="1", file_name="model.xml"):
        """A model of a kind that the program knows; `dims` is like "2x?x3" or "scalar"."""
        models.write_model(self.path, name, config, versions={version: {}})
        self._lines.append(f"{self.path / name / version / file_name} {kind} {TYPES[datatype]} {dims}\n")
        return self

    def write(self):
        subprocess.run([servers.build_folder() / MAKER], input="".join(self._lines), text=True, check=True, timeout=120)
        self._lines = []


def config(inputs, outputs, extra="", max_batch_size=0):
    """A configuration from (name, type, dims[, more]) of each tensor."""

    def listed(tensors):
        return ",\n  ".join(models.tensor_config(*tensor) for tensor in tensors)

    return (
        f'backend: "openvino"\nmax_batch_size: {max_batch_size}\n'
        f"input [\n  {listed(inputs)}\n]\noutput [\n  {listed(outputs)}\n]\n{extra}\n"
    )


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
