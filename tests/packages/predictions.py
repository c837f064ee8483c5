# SPDX-License-Identifier: Apache-2.0
"""The digits example as users see it: an image over HTTP and over gRPC."""

import csv

import numpy as np
from harness import server as servers
from harness.clients import MODULES


def first_digit():
    with (servers.ROOT / "examples/clients/digits.csv").open() as file:
        row = list(csv.reader(file))[1]
    return int(row[0]), np.array(row[1:], np.float32)


def check_digits(server):
    """Both protocols see the digit that is in the image."""
    truth, pixels = first_digit()
    for kind, url in (("http", server.http), ("grpc", server.grpc)):
        with MODULES[kind].InferenceServerClient(url) as client:
            tensor = MODULES[kind].InferInput("pixels", [1, 64], "FP32")
            tensor.set_data_from_numpy(pixels.reshape(1, 64))
            assert client.infer("digits", [tensor]).as_numpy("label")[0, 0] == truth, kind
