#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes platforms/pytorch/digits_aoti: the classifier of models/digits, compiled by PyTorch's AOTInductor.

The weights are those of platforms/pytorch/digits_torchscript. Needs PyTorch 2.15 for Python (pip install torch)
and a compiler for C++; compiling takes about a minute. For a model of your own, everything that matters is

    rows = torch.export.Dim("rows", min=1, max=64)                      # the batch dimension
    program = torch.export.export(module.eval(), (example,), dynamic_shapes=({0: rows},))
    torch._inductor.aoti_compile_and_package(program, package_path="model.pt2")

That makes code for the processor of this machine, at best speed. This example is meant for every machine, so it
leaves out what is special to one, and its library is stripped and compressed to a tenth of its size.

usage: python examples/make_aoti.py
"""

import getpass
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

os.environ["ATEN_CPU_CAPABILITY"] = "default"  # counts when PyTorch is imported

import torch  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "platforms/pytorch/digits_torchscript/1/model.pt"
TARGET = HERE / "platforms/pytorch/digits_aoti/1/model.pt2"


class Digits(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        for name, value in weights.items():
            self.register_buffer(name, value.detach().clone())

    def forward(self, pixels):
        x = pixels / 16.0
        x = torch.relu(torch.addmm(self.b0, x, self.w0))
        x = torch.relu(torch.addmm(self.b1, x, self.w1))
        x = torch.addmm(self.b2, x, self.w2)
        return torch.argmax(x, 1, True), torch.softmax(x, 1)


def without_local_paths(data):
    """The same bytes without the folders of this machine, which PyTorch leaves in comments and messages."""
    folders = [sys.prefix, sys.base_prefix, os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""),
               os.path.join(tempfile.gettempdir(), "torchinductor_" + getpass.getuser())]
    for folder in sorted(filter(None, folders), key=len, reverse=True):
        # Of the same length, because the positions in a library count.
        data = data.replace(folder.encode(), b"/".ljust(len(folder.encode()), b"_"))
    return data


def compile_for_every_machine(program, path):
    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder) / "whole.pt2"
        with torch._inductor.config.patch({"cpp.march": "", "cpp.simdlen": 1}):
            torch._inductor.aoti_compile_and_package(program, package_path=str(whole))
        with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
            for name in sorted(source.namelist()):
                data = source.read(name)
                if name.endswith(".kernel.cpp"):
                    continue  # the server reads the shapes of the inputs from the other source
                if name.endswith(".so"):
                    library = pathlib.Path(folder) / "library.so"
                    library.write_bytes(data)
                    subprocess.check_call(["strip", str(library)])
                    data = library.read_bytes()
                target.writestr(zipfile.ZipInfo(name), without_local_paths(data), zipfile.ZIP_DEFLATED, 9)


def main():
    script = torch.jit.load(str(SOURCE))
    module = Digits({**dict(script.named_parameters()), **dict(script.named_buffers())}).eval()
    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(module, (torch.zeros(2, 64),), dynamic_shapes=({0: rows},))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    compile_for_every_machine(program, TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
