# SPDX-License-Identifier: Apache-2.0
import os

import nereid.ray
from ray import serve

config = {"name": "mlp", "parameters": {"intra_op_thread_count": {"string_value": "1"}}}
serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
serve.run(nereid.ray.app("model.onnx", config=config), blocking=True)
