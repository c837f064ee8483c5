#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes platforms/pytorch/digits_torchscript: the classifier of models/digits as a TorchScript model.

The weights are those of the ONNX model. PyTorch for Python is not needed: a program of the build
(torchscript_models) makes TorchScript from source. With PyTorch for Python, the same file is

    torch.jit.script(module.eval()).save("model.pt")

usage: ./x build --with pytorch && .venv/bin/python examples/make_torchscript.py
"""

import pathlib
import subprocess
import tempfile

import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
MAKER = HERE.parent / "build/release/backends/pytorch/torchscript_models"
TARGET = HERE / "platforms/pytorch/digits_torchscript/1/model.pt"

FORWARD = """
def forward(self, pixels):
    x = pixels / 16.0
    x = torch.relu(torch.addmm(self.b0, x, self.w0))
    x = torch.relu(torch.addmm(self.b1, x, self.w1))
    x = torch.addmm(self.b2, x, self.w2)
    return torch.argmax(x, 1, True), torch.softmax(x, 1)
"""


def main():
    weights = onnx.load(HERE / "models/digits/1/model.onnx").graph.initializer
    arrays = {w.name: numpy_helper.to_array(w) for w in weights if w.name[0] in "wb"}
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "forward.py"
        source.write_text(FORWARD)
        command = [MAKER, "--model", TARGET, "--code", source]
        for name, array in arrays.items():
            path = pathlib.Path(scratch) / name
            path.write_bytes(array.tobytes())
            command += ["--parameter", name, "x".join(map(str, array.shape)), path]
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(command, check=True)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
