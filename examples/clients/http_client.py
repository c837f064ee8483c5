#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shortest useful HTTP client: 16 sums and differences from the model `simple`."""

import sys

import numpy as np
import tritonclient.http as httpclient

url = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
a = np.arange(16, dtype=np.int32).reshape(1, 16)
b = np.ones((1, 16), dtype=np.int32)

inputs = [httpclient.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
inputs[0].set_data_from_numpy(a)
inputs[1].set_data_from_numpy(b)
with httpclient.InferenceServerClient(url) as client:
    result = client.infer("simple", inputs)

print("sums       ", result.as_numpy("OUTPUT0")[0])
print("differences", result.as_numpy("OUTPUT1")[0])
