# SPDX-License-Identifier: Apache-2.0
"""Caffe2 networks for tests: those that Caffe2 was recorded with (tests/data/caffe2), and files put together from
operators without Caffe2."""

import base64
import functools
import json
import lzma
import struct

import numpy as np

from harness import models

WIRE = {
    "float32": "FP32",
    "float64": "FP64",
    "float16": "FP16",
    "int64": "INT64",
    "int32": "INT32",
    "int16": "INT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "bool": "BOOL",
}


class Case:
    """Networks with inputs and what Caffe2 made of them."""

    def __init__(self, name, recorded):
        self.name = name
        self.net = base64.b64decode(recorded["net"])
        self.init = base64.b64decode(recorded["init"])
        self.inputs = {key: _array(value) for key, value in recorded["inputs"].items()}
        self.outputs = {key: _array(value) for key, value in recorded["outputs"].items()}

    def files(self):
        return {"model.netdef": self.net, "init_model.netdef": self.init}

    def config(self, is_open=False, extra="", max_batch_size=0):
        """A configuration with the recorded shapes, or with open dimensions only."""

        def listed(tensors):
            return ",\n  ".join(
                models.tensor_config(name, WIRE[tensor.dtype.name], self._dims(tensor, is_open, max_batch_size))
                for name, tensor in tensors.items()
            )

        return config(listed(self.inputs), listed(self.outputs), extra, max_batch_size)

    @staticmethod
    def _dims(tensor, is_open, max_batch_size):
        shape = tensor.shape[1:] if max_batch_size else tensor.shape
        return [-1 if is_open else size for size in shape] or [1]


def config(inputs, outputs, extra="", max_batch_size=0):
    return (
        f'platform: "caffe2_netdef"\nmax_batch_size: {max_batch_size}\n'
        f"input [\n  {inputs}\n]\noutput [\n  {outputs}\n]\n{extra}\n"
    )


def _array(recorded):
    data = base64.b64decode(recorded["data"])
    return np.frombuffer(data, recorded["dtype"]).reshape(recorded["shape"])


@functools.cache
def cases():
    path = models.ROOT / "tests" / "data" / "caffe2" / "recordings.json.xz"
    recorded = json.loads(lzma.decompress(path.read_bytes()))
    return {name: Case(name, case) for name, case in recorded.items()}


# Protobuf, as much as a network needs.


def _varint(value):
    value &= (1 << 64) - 1
    coded = b""
    while value > 127:
        coded += bytes([value & 127 | 128])
        value >>= 7
    return coded + bytes([value])


def field(number, content):
    """A field with text, bytes, a message or a whole number."""
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    content = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def argument(name, value):
    content = field(1, name)
    if isinstance(value, float):
        content += _varint(2 << 3 | 5) + struct.pack("<f", value)
    elif isinstance(value, int):
        content += field(3, value)
    elif isinstance(value, (str, bytes)):
        content += field(4, value)
    elif isinstance(value, np.ndarray):
        content += field(5, value.astype("<f4").tobytes())
    elif len(value) and isinstance(value[0], float):
        content += b"".join(_varint(5 << 3 | 5) + struct.pack("<f", v) for v in value)
    elif len(value) and isinstance(value[0], (str, bytes)):
        content += b"".join(field(7, v) for v in value)
    else:
        content += b"".join(field(6, int(v)) for v in value)
    return content


def operator(kind, inputs="", outputs="", **arguments):
    content = b"".join(field(1, name) for name in inputs.split())
    content += b"".join(field(2, name) for name in outputs.split())
    content += field(4, kind)
    return content + b"".join(field(5, argument(key, value)) for key, value in arguments.items())


def net(operators=(), inputs="", outputs="", name="net"):
    content = field(1, name) + b"".join(field(2, one) for one in operators)
    content += b"".join(field(7, one) for one in inputs.split())
    return content + b"".join(field(8, one) for one in outputs.split())
