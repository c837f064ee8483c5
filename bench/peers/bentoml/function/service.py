# SPDX-License-Identifier: Apache-2.0
from typing import Annotated

import bentoml
import numpy as np
from bentoml.validators import DType, Shape
from function import softmax


@bentoml.service(workers=1)
class Softmax:
    @bentoml.api(batchable=True, max_batch_size=64)
    def predict(self, rows: Annotated[np.ndarray, DType("float32"), Shape((-1, 256))]) -> np.ndarray:
        return softmax(rows)
