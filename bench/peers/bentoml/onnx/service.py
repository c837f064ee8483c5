# SPDX-License-Identifier: Apache-2.0
from typing import Annotated

import bentoml
import numpy as np
import onnxruntime
from bentoml.validators import DType, Shape


@bentoml.service(workers=1)
class Mlp:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession("model.onnx", options)

    @bentoml.api(batchable=True, max_batch_size=64)
    def predict(self, rows: Annotated[np.ndarray, DType("float32"), Shape((-1, 256))]) -> np.ndarray:
        return self.session.run(None, {"INPUT0": rows})[0]
