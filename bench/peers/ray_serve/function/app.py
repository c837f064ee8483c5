# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np
from function import softmax
from ray import serve


@serve.deployment(max_ongoing_requests=1000)
class Softmax:
    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0)
    async def compute(self, rows):
        return list(softmax(np.stack(rows)))

    async def __call__(self, request):
        row = np.asarray((await request.json())["input"], np.float32)
        return {"output": (await self.compute(row)).tolist()}


serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
serve.run(Softmax.bind(), blocking=True)
