# SPDX-License-Identifier: Apache-2.0
import os

import function
import nereid.ray
import numpy as np
from ray import serve

ROWS = (np.float32, (256,))


@nereid.model(max_batch_size=64)
def softmax(INPUT0: ROWS) -> ROWS:
    return function.softmax(INPUT0)


serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
serve.run(nereid.ray.app(softmax), blocking=True)
