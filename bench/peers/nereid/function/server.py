# SPDX-License-Identifier: Apache-2.0
import os

import function
import nereid
import numpy as np

ROWS = (np.float32, (256,))


@nereid.model(max_batch_size=64)
def softmax(INPUT0: ROWS) -> ROWS:
    return function.softmax(INPUT0)


nereid.serve(softmax, http_port=int(os.environ["PORT"]))
