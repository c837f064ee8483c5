#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many requests at once from one thread: every digit in digits.csv, over asyncio and gRPC.

The server answers requests that arrive together in one batch; this is the traffic that it gains
most from.
"""

import asyncio
import sys

import tritonclient.grpc.aio as grpcclient
from digits_client import read_images


async def predict(client, pixels):
    tensor = grpcclient.InferInput("pixels", [1, 64], "FP32")
    tensor.set_data_from_numpy(pixels.reshape(1, 64))
    result = await client.infer("digits", [tensor])
    return int(result.as_numpy("label")[0, 0])


async def main():
    images = read_images()
    url = sys.argv[1] if len(sys.argv) > 1 else "localhost:8001"
    async with grpcclient.InferenceServerClient(url) as client:
        labels = await asyncio.gather(*(predict(client, pixels) for _, pixels in images))
    right = sum(label == truth for label, (truth, _) in zip(labels, images))
    print(f"{right} of {len(images)} digits recognised")


asyncio.run(main())
