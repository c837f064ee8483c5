# SPDX-License-Identifier: Apache-2.0
"""A classifier with weights, batches and labels, and a function that calls it in this process.

python examples/functions/classifier.py
curl http://127.0.0.1:8000/v2/models/Classifier/infer -d '{"inputs": [
  {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [5.1, 3.5, 1.4, 0.2]}]}'
"""

import numpy as np

import nereid

CLASSES = ["setosa", "versicolor", "virginica"]


@nereid.model(max_batch_size=64, outputs={"scores": nereid.TensorSpec(np.float32, (3,), labels=CLASSES)})
class Classifier:
    """Assigns a flower to the nearest of three typical ones."""

    def __init__(self):
        self.typical = np.array(
            [[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]], dtype=np.float32
        )

    def __call__(self, x: (np.float32, (4,))):
        distances = np.square(x[:, None, :] - self.typical).sum(axis=2)
        weights = np.exp(-distances)
        return {"scores": weights / weights.sum(axis=1, keepdims=True)}


if __name__ == "__main__":
    nereid.serve(Classifier)
