# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np
import onnxruntime
from ray import serve


@serve.deployment(max_ongoing_requests=1000)
class Mlp:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession("model.onnx", options)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0)
    async def infer(self, rows):
        return list(self.session.run(None, {"INPUT0": np.stack(rows)})[0])

    async def __call__(self, request):
        row = np.asarray((await request.json())["input"], np.float32)
        return {"output": (await self.infer(row)).tolist()}


serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
serve.run(Mlp.bind(), blocking=True)
