# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/aoti/nested.pt2, for a Python with PyTorch: make_aoti_package.py FILE.pt2

The package is made as that of the examples (examples/make_aoti.py), for every x86-64 processor.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import make_aoti  # noqa: E402
import torch  # noqa: E402


class Nested(torch.nn.Module):
    """Inputs and outputs of several kinds, and a batch dimension that three inputs have in common."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        with torch.no_grad():
            self.linear.weight.copy_(torch.arange(12.0).reshape(3, 4) / 10)
            self.linear.bias.copy_(torch.tensor([0.5, -0.5, 1.0]))

    def forward(self, x, ids, options, *, bias):
        y = self.linear(x) + options["add"] + bias
        return {"y": y, "pair": (x.sum(-1), ids + 1)}


def main(path):
    rows = torch.export.Dim("rows", min=1, max=64)
    examples = (torch.ones(2, 4), torch.ones(2, dtype=torch.int64), {"add": torch.ones(2, 3)})
    program = torch.export.export(
        Nested().eval(), examples, {"bias": torch.ones(3)},
        dynamic_shapes={"x": {0: rows}, "ids": {0: rows}, "options": {"add": {0: rows}}, "bias": None})
    make_aoti.compile_for_every_machine(program, path)


if __name__ == "__main__":
    main(sys.argv[1])
