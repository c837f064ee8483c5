#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends a handwritten digit to the model `digits`, draws it and says what the model sees in it.

usage: .venv/bin/python examples/clients/digits_client.py [--url HOST:PORT] [--grpc] [--index N]
"""

import argparse
import csv
import pathlib
import sys
import time

import numpy as np

IMAGES = pathlib.Path(__file__).resolve().parent / "digits.csv"


def read_images():
    """(label, 64 gray levels from 0 to 16) for each image; none of them was used in training."""
    with IMAGES.open() as file:
        rows = list(csv.reader(file))[1:]
    return [(int(row[0]), np.array(row[1:], np.float32)) for row in rows]


def draw(pixels):
    """The image as lines of text: gray blocks on a terminal, characters elsewhere."""
    for row in pixels.reshape(8, 8).astype(int):
        if sys.stdout.isatty():
            yield "".join(f"\x1b[48;5;{232 + min(level * 23 // 16, 23)}m  " for level in row) + "\x1b[0m"
        else:
            yield "".join(" .:-=+*#%@"[level * 9 // 16] * 2 for level in row)


def predict(client_module, url, pixels):
    """The model's label, its probabilities, and the seconds it took."""
    with client_module.InferenceServerClient(url) as client:
        tensor = client_module.InferInput("pixels", [1, 64], "FP32")
        tensor.set_data_from_numpy(pixels.reshape(1, 64))
        start = time.perf_counter()
        result = client.infer("digits", [tensor])
        seconds = time.perf_counter() - start
    return int(result.as_numpy("label")[0, 0]), result.as_numpy("probabilities")[0], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="default: localhost:8000, or localhost:8001 with --grpc")
    parser.add_argument("--grpc", action="store_true", help="ask over gRPC instead of HTTP")
    parser.add_argument("--index", type=int, default=0, help="which image, from 0 to 49")
    arguments = parser.parse_args()

    if arguments.grpc:
        import tritonclient.grpc as client_module
    else:
        import tritonclient.http as client_module
    images = read_images()
    if not 0 <= arguments.index < len(images):
        parser.error(f"--index takes 0 to {len(images) - 1}")
    truth, pixels = images[arguments.index]
    url = arguments.url or ("localhost:8001" if arguments.grpc else "localhost:8000")
    try:
        label, probabilities, seconds = predict(client_module, url, pixels)
    except Exception as error:  # a refused connection or the server's own words
        sys.exit(f"{url}: {error}")

    print(*draw(pixels), sep="\n")
    print(f"\nThe model sees a {label} ({probabilities[label]:.1%} sure; it is a {truth}).", end=" ")
    print(f"Answered in {seconds * 1000:.1f} ms over {'gRPC' if arguments.grpc else 'HTTP'}.")


if __name__ == "__main__":
    main()
