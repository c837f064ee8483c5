# SPDX-License-Identifier: Apache-2.0
import os

import litserve
import numpy as np
from function import softmax


class Softmax(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return np.asarray(request["input"], np.float32)

    def predict(self, rows):
        return softmax(rows)

    def encode_response(self, row):
        return {"output": row.tolist()}


if __name__ == "__main__":
    server = litserve.LitServer(Softmax(max_batch_size=64, batch_timeout=0), accelerator="cpu", fast_queue=True)
    server.run(host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning", generate_client_file=False)
