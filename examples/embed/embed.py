#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server inside this program: one prediction without a socket.

PYTHONPATH=build/release/python .venv/bin/python examples/embed/embed.py
"""

import csv
import pathlib

import nereid
import numpy

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]
with open(EXAMPLES / "clients" / "digits.csv", encoding="utf-8") as file:
    label, *pixels = list(csv.reader(file))[7]

with nereid.Server(model_repository=str(EXAMPLES / "models"), log_error=True) as server:
    image = numpy.array([pixels], dtype=numpy.float32)
    for response in server.model("digits").infer(inputs={"pixels": image}):
        probabilities = numpy.from_dlpack(response.outputs["probabilities"])
        print(f"a {label}, recognised as {probabilities.argmax()}, probability {probabilities.max():.3f}")
